"""Where a damaged search belongs: Design, replies as chats really give them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import apply, elisions
from codingagent.errors import OperationError
from codingagent.model.chat_damage import BodyEvidence, Channel
from codingagent.model.operations import Replacement
from tests.helpers import cpu_below
from tests.rows import each_row

PATH = "a.py"
CODE = 'def load_all(name):\n    path = ROOT["base"] + name\n    if a < b and c > d:\n        return path\n'


def applied(text: str, search: str, replace: str, way: Channel = frozenset()) -> apply.Edited:
    return apply.apply((Replacement(search, replace),), text, BodyEvidence(way), path=PATH)


def refused(text: str, search: str, replace: str, way: Channel = frozenset()) -> OperationError:
    with pytest.raises(OperationError) as caught:
        applied(text, search, replace, way)
    return caught.value


@each_row(
    ("text", "search", "replace"),
    [
        ("a_b = 1\nc = r'\\_'\n", r"a\_b = 1", r"a\_b = r'\_'"),
        ("a < b\nx = '&lt;'\n", "a &lt; b", "a &lt; '&lt;'"),
        ('a = "x"\nb = "“"\n', "a = “x”", "a = “y”"),
        ("a_b = 1\n", r"a\_b = 1", r"a\_b = '\.'"),
        ("a b\nc\u00a0d\n", "a\u00a0b", "a\u00a0c"),
    ],
)
def test_a_new_line_that_may_be_meant_changes_nothing(text: str, search: str, replace: str) -> None:
    """Where a repair on REPLACE is ambiguous it is refused, and the true lines are shown."""
    fault = refused(text, f"{search}\n", f"{replace}\n")
    assert "SEARCH was damaged by the chat" in fault.reason or "more than one way" in fault.reason
    assert fault.detail


def test_a_search_that_has_lost_its_indentation_is_asked_for_again() -> None:
    """The lines that it most likely means are shown with theirs."""
    bare = "if a < b and c > d:\nreturn path\n"
    fault = refused(CODE, bare, "if a < b and c > d:\nreturn path + x\n")
    assert "not found" in fault.reason
    assert "        return path" in fault.detail


@each_row(
    ("body", "path", "line"),
    [
        ("import os\n# ... existing code ...\n", "a.py", "# ... existing code ..."),
        ("a\n// rest of the file unchanged\n", "a.js", "// rest of the file unchanged"),
        ("a\n...\n", "a.txt", "..."),
        ("a\n    ...\n", "a.js", "..."),
        ("a\n<!-- ... -->\n", "a.html", "<!-- ... -->"),
        ("def f():\n    ...\n", "a.py", ""),
        ("keep\n", "a.txt", ""),
        ("# old ...\n", "a.txt", ""),
        ("print('...')\n", "a.py", ""),
        ("# ...but not twice\n", "a.py", ""),
    ],
)
def test_a_line_that_stands_for_others_is_found_in_a_whole_file(body: str, path: str, line: str) -> None:
    """A part never takes the place of a whole file; a line that stood there before is a line."""
    assert elisions.elision_in(body, "# old ...\n", path) == line
    assert not line or elisions.elision_in(body, f"x\n{line}\n", path) == ""


_LINES = st.lists(
    st.sampled_from(["a_b = 1", "  x < y", "\tz", 'print("x")', "", "}", "c[0]", "it’s", "\\_"]),
    min_size=1,
    max_size=6,
)


@given(_LINES, _LINES, _LINES)
def test_a_search_that_fits_is_never_mended(before: list[str], search: list[str], replace: list[str]) -> None:
    """A clean edit is never altered: REPLACE arrives letter by letter, or nothing changes."""
    text = "".join(f"{line}\n" for line in (*before, "<here>", *search, "<there>"))
    wanted = ["<here>", *search, "<there>"]
    new = ["<here>", *replace, "<there>"]
    joined = ["".join(f"{line}\n" for line in lines) for lines in (before, wanted, new)]
    try:
        edited = apply.apply((Replacement(joined[1], joined[2]),), text, path="a.txt")
    except OperationError:
        return
    assert edited.text == joined[0] + joined[2]


@pytest.mark.parametrize("line", ["a\\_b", "1 | x", "-x", "...", "“x”", "&lt;", "\tx"])
@pytest.mark.one_in(2)
def test_a_damaged_search_in_a_large_file_takes_no_time(line: str) -> None:
    """Design, purpose: the reply is not trusted, nor the file that an earlier one wrote."""
    with cpu_below(50):
        refused("x y\n" * 50_000, f"{line}\n" * 500, "z\n")
