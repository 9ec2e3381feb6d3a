"""Prints the table of all figures; the exit status is 1 if a budget is not kept."""

import hashlib
import os
import platform
import statistics
import sys

from tests.benchmarks import (
    best,
    choosing,
    history,
    large,
    listing,
    megabyte,
    messages,
    page,
    reading,
    replies,
    rpc,
    runs,
    safety,
    secrets,
    starting,
    tools,
    turns,
)
from tests.benchmarks.measuring import milliseconds

_ROOMS = (
    starting,
    page,
    listing,
    choosing,
    history,
    turns,
    large,
    best,
    megabyte,
    reading,
    safety,
    messages,
    runs,
    replies,
    rpc,
    tools,
    secrets,
)


def calibration() -> tuple[float, float]:
    """Return what two fixed pieces of work take, in milliseconds: figures of two machines can be compared."""
    data = bytes(2**24)

    def python() -> None:
        for number in range(2_000_000):
            number & 1  # the loop is all there is

    def c() -> None:
        hashlib.sha256(data)

    return tuple(statistics.median(milliseconds(each) for _ in range(5)) for each in (python, c))  # type: ignore[return-value]


def main() -> int:
    """Takes every figure, one after the other."""
    # Modules that are compiled at each start are no figure of ours.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    python, c = calibration()
    sys.stdout.write(
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()},"
        f" {os.cpu_count()} cores; a fixed loop of Python takes {python:.0f} ms here, one of C {c:.0f} ms\n\n"
        "| what | ours | against | figure | budget |\n|---|---|---|---|---|\n"
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
