"""Prints the table of all figures; the exit status is 1 if a budget is not kept."""

import os
import platform
import sys

from tests.benchmarks import messages, reading, replies, rpc, runs, safety, starting, turns
