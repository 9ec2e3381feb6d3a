"""What holds for all texts: reading never raises, and what is applied is what was meant."""

import difflib
import re
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.protocols.foreign.parser import read
from codingagent.protocols.tags.reply import Problem
from tests.protocols.foreign.doing import do

PIECES = [
    "```python\n",
    "```\n",
    "````markdown\n",
    "````\n",
    "```diff\n",
    "~~~\n",
    "   ```\n",
    "```a.py\n",
    "### a.py\n",
    "**src/b.py**\n",
    "`c.js` and `d.js`\n",
    "File: x/y.py\n",
    "# a.py\n",
    "a.py\n",
    "<<<<<<< SEARCH\n",
    "<<<<<<< HEAD\n",
    "=======\n",
    ">>>>>>> REPLACE\n",
    ">>>>>>> x\n",
    "||||||| y\n",
    "--- a/a.py\n",
    "+++ b/a.py\n",
    "@@ -1,2 +1,2 @@\n",
    "@@\n",
    "@@ ... @@\n",
    " x\n",
    "-x\n",
    "+y\n",
    "\n",
    "diff --git a/a.py b/a.py\n",
    "rename from a.py\n",
    "rename to b.py\n",
    "new file mode 100644\n",
    "deleted file mode 100644\n",
    "--- /dev/null\n",
    "+++ /dev/null\n",
    "\\ No newline at end of file\n",
    "*** Begin Patch\n",
    "*** Add File: n.py\n",
    "*** Update File: a.py\n",
    "*** Delete File: a.py\n",
    "*** Move to: z.py\n",
    "*** End of File\n",
    "*** End Patch\n",
    "x\n",
    "y\n",
    "...\n",
    "prose, as it is:\n",
    "Index: a.py\n",
    "--- ../../x\n",
    "+++ ../../x\n",
    "\r\n",
    "\0",
    "\ud800",
    "$ ls\n",
    "old mode 100644\n",
    "``````diff\n",
    "&lt;&lt;&lt;&lt;&lt; SEARCH\n",
    "\\<\\<\\<\\<\\< SEARCH\n",
    "------- SEARCH\n",
    "+++++++ REPLACE\n",
    "<<<<<<<\n",
    ">>>>>>>\n",
    '<file path="a.py">\n',
    '<delete_file path="a.py"/>\n',
    "</file>\n",
    "<files>\n",
    "<![CDATA[\n",
    "]]>\n",
    "### Deleted file: `a.py`\n",
    "### Renamed file: `a.py` to `c.py`\n",
    "src\\b.py\n",
    "[FILE: a.py]\n",
    "**a.py**\nHere is the complete file:\n",
]
FILES = {"a.py", "src/b.py", "lib/b.py", "x/y.py"}


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=200))
def test_reading_never_raises(text: str) -> None:
    found = read(text, FILES)
    for item in found.items:
        assert not isinstance(item, Problem) or "\n" not in item.reason
        assert 1 <= item.line <= text.count("\n") + 1


LINES = st.lists(st.sampled_from("abcdefgh") | st.text("xyz +-@\\<=>`", max_size=6), max_size=14)


def text_of(lines: list[str], *, ended: bool) -> str:
    return "\n".join(lines) + ("\n" if ended and lines else "")


def difference(old: str, new: str, context: int, *, damage: str = "") -> str:
    """Return what git would say of two texts, its hunk headers damaged or not."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    told = []
    for line in difflib.unified_diff(before, after, "a/f.txt", "b/f.txt", n=context):
        if line.startswith("@@") and line.endswith("@@\n"):
            told.append({"": line, "bare": "@@\n", "dots": "@@ ... @@\n"}.get(damage, "") or _wrong(line))
        elif line.endswith("\n"):
            told.append(line)
        else:
            told.append(f"{line}\n\\ No newline at end of file\n")
    return "".join(told)


def _wrong(header: str) -> str:
    return re.sub(r"\d+", lambda number: str(int(number[0]) * 3 + 7), header)


def done_in_folder(reply: str, before: dict[str, bytes | str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        done = do(reply, before, Path(folder))
    return done.files, done.failures


@given(
    LINES,
    LINES,
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
    st.sampled_from(["", "bare", "dots", "wrong"]),
)
@example(["", "a"], [""], False, True, 0, "")
@example(["a"], ["a", "a"], False, False, 0, "")
def test_a_difference_gives_the_second_text_or_nothing(
    old_lines: list[str], new_lines: list[str], old_ended: bool, new_ended: bool, context: int, damage: str
) -> None:
    """However its headers are damaged: places are found by text, and what is not certain is refused."""
    old, new = text_of(old_lines, ended=old_ended), text_of(new_lines, ended=new_ended)
    told = difference(old, new, context, damage=damage)
    if not told:
        return
    with tempfile.TemporaryDirectory() as folder:
        done = do(f"```diff\n{told}```\n", {"f.txt": old}, Path(folder))
    # A line that is added beside its like, without context, may be there already; then that is said.
    is_said_to_be_there = context == 0 and any(
        "is already applied at line" in note for event in done.events for note in getattr(event, "notes", ())
    )
    expected = {old} if done.failures else {old, new} if is_said_to_be_there else {new}
    assert done.files["f.txt"].decode() in expected, (told, done.failures)


UNIQUE = st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=14).map(
    lambda numbers: [f"    line {number}()" if number % 3 else f"line {number}" for number in numbers]
)


@given(
    UNIQUE,
    UNIQUE,
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from(["", "bare", "dots", "wrong"]),
)
def test_a_difference_with_context_and_unique_lines_is_always_applied(
    old_lines: list[str], new_lines: list[str], old_ended: bool, new_ended: bool, context: int, damage: str
) -> None:
    old, new = text_of(old_lines, ended=old_ended), text_of(new_lines, ended=new_ended)
    told = difference(old, new, context, damage=damage)
    if not told:
        return
    for reply in (f"```diff\n{told}```\n", f"Here:\n\n{told}\nThat is all.\n"):
        files, failures = done_in_folder(reply, {"f.txt": old})
        assert (files, failures) == ({"f.txt": new.encode()}, ()), told


@given(UNIQUE, st.data(), st.sampled_from(["search", "bare search", "head", "patch"]))
def test_an_edit_gives_the_text_that_was_meant(lines: list[str], data: st.DataObject, form: str) -> None:
    """SEARCH/REPLACE in its forms, and `*** Begin Patch`."""
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    made = data.draw(st.lists(st.sampled_from(["new", "    new()", "", "other"]), max_size=3))
    old, rest = lines[start:end], [*lines[:start], *made, *lines[end:]]
    block = "\n".join(["<<<<<<< SEARCH", *old, "=======", *made, ">>>>>>> REPLACE", ""])
    patch = "\n".join([
        "*** Begin Patch", "*** Update File: f.txt", "@@",
        *(f"-{line}" for line in old), *(f"+{line}" for line in made), "*** End Patch", "",
    ])  # fmt: skip
    reply = {
        "search": f"**f.txt**\n```\n{block}```\n",
        "bare search": f"f.txt\n{block}",
        "head": f"```py f.txt\n{block}```\n".replace(" SEARCH", " HEAD").replace(" REPLACE", " updated"),
        "patch": patch,
    }[form]
    files, failures = done_in_folder(reply, {"f.txt": text_of(lines, ended=True)})
    assert (files, failures) == ({"f.txt": text_of(rest, ended=True).encode()}, ()), reply


@given(
    # Of seven lines, three may be words with one or three blank lines after each: that is damage.
    st.lists(st.text("ab #`~\t", max_size=5), max_size=6),
    st.sampled_from(["### f.txt", "**`f.txt`**", "File: f.txt"]),
)
@example(["`", "", "`", "", ""], "### f.txt")
def test_a_whole_file_has_the_bytes_of_its_fence(lines: list[str], heading: str) -> None:
    """In a fence longer than any in it, a text comes through to the letter."""
    text = text_of(lines, ended=True)
    files, failures = done_in_folder(f"{heading}\n\n``````text\n{text}``````\nok\n", {})
    assert (files, failures) == ({"f.txt": text.encode()}, ())
