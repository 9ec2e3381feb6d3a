"""Prints the table of all figures; the exit status is 1 if a budget is not kept."""

import os
import platform
import sys

from tests.benchmarks import (
    choosing,
    listing,
    messages,
    reading,
    replies,
    rpc,
    runs,
    safety,
    secrets,
    starting,
    turns,
)

_ROOMS = (
    starting,
    listing,
    choosing,
    turns,
    reading,
    safety,
    messages,
    runs,
    replies,
    rpc,
    secrets,
)


def main() -> int:
    """Takes every figure, one after the other."""
    sys.stdout.write(
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()},"
        f" {os.cpu_count()} cores\n\n| what | ours | against | figure | budget |\n|---|---|---|---|---|\n"
    )
    kept = True
    for take in (take for room in _ROOMS for take in room.ALL):
        for figure in take():
            kept = kept and figure.holds
            mark = "" if figure.holds else " **not kept**"
            sys.stdout.write(
                f"| {figure.name} | {figure.ours} | {figure.peer} | {figure.figure:.2f} {figure.unit}"
                f" | {figure.budget:g} {figure.unit}{mark} |\n"
            )
            sys.stdout.flush()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
