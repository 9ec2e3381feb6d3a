"""How figures are taken: both sides in turn, in one run, and their medians compared."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: what was measured, against what, and what is promised of it."""

    name: str
    ours: str
    peer: str
    figure: float
    budget: float
    unit: str = "x"

    @property
    def holds(self) -> bool:
        return self.figure <= self.budget


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def interleaved(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the medians of two pieces of work, in milliseconds, each done once before it counts."""
    ours()
    peer()
    pairs = [(milliseconds(ours), milliseconds(peer)) for _ in range(rounds)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def ratio(
    name: str, ours: Callable[[], object], peer: Callable[[], object], budget: float, rounds: int
) -> Figure:
    """Return how many times longer one takes than the other."""
    a, b = interleaved(ours, peer, rounds)
    return Figure(name, f"{a:.2f} ms", f"{b:.2f} ms", a / b, budget)
