"""Run commands with limits, in a sandbox, and end their whole process tree."""
