"""Where hunks of a diff go in a file: one place that is certain, or what to send instead."""

import pytest

from codingagent.editing import apply
from codingagent.errors import OperationError
from codingagent.model.operations import Diff, DiffHunk
from tests.helpers import cpu_below
from tests.rows import each_row


def hunk(lines: str, at: int | None = None, section: str = "", **said: object) -> DiffHunk:
    """A hunk from its lines, each with its mark before it; with a number it is counted, too."""
    marked = tuple((line[:1] or " ", line[1:]) for line in lines.split("\n"))
    known = {"is_counted": at is not None, "is_verbatim": True, "new_start": at, **said}
    return DiffHunk(marked, at, sections=(section,) if section else (), **known)  # type: ignore[arg-type]


def after(text: str, *hunks: DiffHunk) -> str:
    return apply.apply(Diff(hunks), text).text


def refusal(text: str, *hunks: DiffHunk) -> str:
    with pytest.raises(OperationError) as fault:
        apply.apply(Diff(hunks), text)
    return fault.value.reason


# --- which of several places -----------------------------------------------------------------------

X = "-    x = 1\n+    x = 2"


# --- the ends of the file --------------------------------------------------------------------------


@each_row("end", ["\n", "\r\n"])
@each_row("is_ended", [True, False])
def test_lines_that_are_only_added_get_the_line_end_of_their_file(end: str, *, is_ended: bool) -> None:
    text = end.join("abc") + (end if is_ended else "")
    last = end if is_ended else ""
    assert after(text, hunk(" c\n+x")) == end.join("abcx") + last
    assert after(text, hunk("+x\n a")) == end.join("xabc") + last
    assert after(text, hunk(" a\n+x\n b")) == end.join("axbc") + last
    assert after(text, hunk("-a\n-b\n-c")) == ""


# --- work ------------------------------------------------------------------------------------------


def test_hunks_that_fit_everywhere_are_refused_before_all_places_are_compared() -> None:
    text = "    x = 1\n" * 7000
    assert "matches too many places" in refusal(text, *[hunk(X)] * 1000)


def test_a_hunk_of_all_lines_is_compared_once() -> None:
    """Each new line was searched for among all old ones: 8 seconds for a megabyte."""
    lines = "\n".join(f"-value_{n} = {n}\n+value_{n} = {n}{n}" for n in range(12_000))
    text = "".join(f"value_{n} = {n}\n" for n in range(12_000))
    with cpu_below(30):
        assert after(text, hunk(lines, 1)).endswith("value_11999 = 1199911999\n")


# --- characters that a chat makes ------------------------------------------------------------------


def test_many_hunks_are_judged_without_the_whole_file_for_each() -> None:
    """The look at the whole file is costly; behind the first ones each hunk is judged by itself."""
    lines = [f"line_{n}();" for n in range(400)]
    said = {n: f"x = “{n}”;" if n == 398 else f"// “{n}”" for n in range(0, 400, 2)}
    hunks = tuple(hunk(f" line_{n}();\n+{added}\n line_{n + 1}();", n + 1) for n, added in said.items())
    with pytest.raises(OperationError) as fault:
        apply.apply(Diff(hunks), "".join(f"{line}\n" for line in lines), path="a.js")
    assert "looks damaged" in fault.value.reason
