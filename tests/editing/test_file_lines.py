"""What is known of a file's lines while edits are put into them: Design, speed, look at each file once."""

import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from codingagent.editing import apply, file_kinds, nearest
from codingagent.editing.file_lines import FileLines
from codingagent.model.operations import LineRange, Replacement
from tests.helpers import cpu_below


def calls_in(work: Callable[[], object]) -> int:
    """Return how often some work calls any function, of C, too."""
    count = 0

    def look(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_after_any_edits_it_knows_what_it_would_if_it_read_the_lines_anew() -> None:
    """Where lines are, how often, and which begin in a text of several lines."""
    luck = random.Random(1)
    some = ("a", " a", "b ", "", '"""', "x = `", "key: |", "  deep")
    for name in ("a.py", "a.ts", "a.yml", "a.txt"):
        for _ in range(60):
            lines = FileLines(luck.choices(some, k=luck.randint(0, 12)))
            for _ in range(8):
                search = luck.choices(some, k=luck.randint(1, 3))
                bare = [*map(str.strip, search)]
                start = luck.randint(0, len(lines))
                anew = FileLines(lines)
                assert lines.places(search) == anew.places(search) == where(lines, search)
                assert lines.places(bare, is_bare=True) == where([*map(str.strip, lines)], bare)
                state, text = lines.state_before(start, name), file_kinds.lines_of_text(lines, name)
                behind = file_kinds.lines_of_text(lines[start:], name, state)
                assert behind == {at - start for at in text if at >= start}
                end = luck.randint(start, len(lines))
                lines.put(start, end, luck.choices(some, k=luck.randint(0, 3)))


def where(lines: list[str], search: list[str]) -> list[int]:
    return [at for at in range(len(lines)) if lines[at : at + len(search)] == search]


EDITS: dict[str, Callable[[str], tuple[str, str]]] = {
    "clean": lambda line: (line, f"{line}  # new"),
    "citation marks": lambda line: (line, f"{line}  # new 【12†source】"),
    "escapes": lambda line: (line.replace("_", r"\_"), line.replace("left", "lefts").replace("_", r"\_")),
    "other indentation": lambda line: (f"  {line}", f"  {line}  # new"),
    "blanks at ends": lambda line: (f"{line} ", f"{line}  # new"),
    "no-break spaces": lambda line: (line.replace(" ", "\u00a0"), line.replace(" ", "\u00a0") + "[0]"),
}


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.txt"])
@pytest.mark.parametrize("name", [*EDITS, "by number"])
def test_sixty_edits_look_at_each_line_of_a_file_a_few_times(name: str, path: str) -> None:
    """A thousand edits of 7,000 lines took half a minute: each looked at all of them, several times."""

    def work(count: int) -> int:
        lines = [f"    value_{n} = left[{n}] + right_{n}" if n % 9 else f"def f_{n}():" for n in range(count)]
        chosen = [n for n in range(0, 240, 4) if n % 9]
        if name == "by number":
            change: tuple[LineRange | Replacement, ...] = tuple(
                LineRange(n + 1, n + 1, f"{lines[n]}  # new\n") for n in chosen
            )
        else:
            change = tuple(Replacement(*EDITS[name](lines[n])) for n in chosen)
        text = "".join(f"{line}\n" for line in lines)
        return calls_in(lambda: apply.apply(change, text, path=path))

    assert work(2_400) - work(400) < 30 * 2_000


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.txt"])
def test_a_plain_edit_takes_few_steps(path: str) -> None:
    """Of thousands in one answer each passes all rules: those that can't apply must see so at once."""

    def work(count: int) -> int:
        text = "".join(f"value_{n} = {n}\n" for n in range(count))
        change = tuple(Replacement(f"value_{n} = {n}\n", f"value_{n} = {n + 1}\n") for n in range(count))
        return calls_in(lambda: apply.apply(change, text, path=path))

    work(1)
    assert work(300) - work(100) < 250 * 200


def test_comparing_lines_is_bounded() -> None:
    """Every other line changed, in 20,000: difflib takes a minute for it."""
    old = [f"line {n}" for n in range(20_000)]
    new = [line if n % 2 else f"{line}!" for n, line in enumerate(old)]
    with cpu_below(10):
        in_place, moved = ([*nearest.steps(old, each)] for each in (new, [*new, "more"]))
    assert len(in_place) > 19_000
    assert [step[0] for step in moved] == ["equal", "replace", "equal"]
    for made, steps in ((new, in_place), ([*new, "more"], moved)):
        assert made == [x for tag, a, b, c, d in steps for x in (old[a:b] if tag == "equal" else made[c:d])]
