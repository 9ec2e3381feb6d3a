"""Which lines name a file, and which file that is."""

import pytest

from codingagent.protocols.foreign import parser
from codingagent.protocols.foreign.file_names import Files, name_in, name_in_comment, name_in_info
from codingagent.protocols.tags.reply import Problem, Step
from tests.rows import each_row

FILES = Files({"src/a.py", "my file.txt", "Makefile"})


@each_row(
    "line",
    [
        "src/a.py",
        "src/a.py:",
        "`src/a.py`",
        "**src/a.py**",
        "**`src/a.py`**",
        "**`src/a.py`:**",
        "### src/a.py",
        "### `src/a.py`",
        "### 2. `src/a.py`",
        "## File: src/a.py ##",
        "File: src/a.py",
        "**File:** `src/a.py`",
        "**File: `src/a.py`**",
        "Filename: `src/a.py`",
        "- `src/a.py`:",
        "3) src/a.py",
        "> src/a.py",
        "[src/a.py](src/a.py)",
        "#### Updated `src/a.py`",
        "### `src/a.py` (updated)",
        "Here is the complete `src/a.py`:",
        "Step 3: Update `src/a.py`",
    ],
)
def test_a_heading_is_a_path_and_words_that_say_nothing_else(line: str) -> None:
    name = name_in(line, 4, FILES)
    assert name is not None
    assert (name.texts, name.line, name.is_heading) == (("src/a.py",), 4, True)


@each_row(
    "line",
    [
        "In `src/a.py`, add this:",
        "You can call it from src/a.py like so:",
        "### src/a.py (excerpt)",
        "### src/a.py (lines 10-20)",
        "Before (`src/a.py`):",
        "The output of `python src/a.py` and `src/a.py`:",
        "Add to `src/a.py`:",
    ],
)
def test_a_sentence_names_a_file_and_is_no_heading(line: str) -> None:
    name = name_in(line, 0, FILES)
    assert name is not None
    assert (name.texts, name.is_heading) == (("src/a.py",), False)


@each_row(
    "line",
    [
        "",
        "Some prose.",
        "### Node.js",
        "### os.path",
        "### README",
        "e.g. this",
        "Version 1.2.3:",
        "https://example.com/a.py",
        "and/or",
        "`foo.bar()`",
        "x" * 400 + " src/a.py",
        "```",
        "...",
        "/",
    ],
)
def test_what_names_no_file(line: str) -> None:
    assert name_in(line, 0, FILES) is None


def test_a_file_with_blanks_in_its_name_is_known_by_the_listing() -> None:
    name = name_in("**my file.txt**", 0, FILES)
    assert name is not None
    assert name.texts == ("my file.txt",)


@each_row(
    ("info", "path"),
    [
        ("python src/b.py", "src/b.py"),
        ("src/b.py", "src/b.py"),
        ("python:src/b.py", "src/b.py"),
        ('py title="src/b.py"', "src/b.py"),
        ("js {file=src/b.js}", "src/b.js"),
        ("rust,src", None),
        ("python", None),
        ("python showLineNumbers", None),
        ("12:20:src/a.py", None),
        ("c++", None),
        ("objective-c", None),
        ("text", None),
        ("ts twoslash", None),
        ("json5", None),
    ],
)
def test_what_a_fence_line_names(info: str, path: str | None) -> None:
    name = name_in_info(info, 0, FILES)
    assert (None if name is None else name.texts[0]) == path


@each_row(
    ("line", "path"),
    [
        ("# src/b.py", "src/b.py"),
        ("// File: src/b.ts", "src/b.ts"),
        ("/* css/b.css */", "css/b.css"),
        ("<!-- b.html -->", "b.html"),
        ("-- q.sql", "q.sql"),
        ("; conf/b.ini", "conf/b.ini"),
        ("# see src/b.py", None),
        ("# A heading", None),
        ("#!/usr/bin/env.py", None),
        ("import a.py", None),
        ("#include <a.h>", None),
    ],
)
def test_what_a_comment_names(line: str, path: str | None) -> None:
    name = name_in_comment(line, 0, FILES)
    assert (None if name is None else name.texts[0]) == path


LABELS = [
    "And **{}**:",
    "**{}**",
    "Und `{}`:",
    "Y **`{}`**:",
    "最后 **{}**：",
    "وأخيرًا `{}`:",
    "\u200fוגם **{}**:",
    "2. Et `{}` :",
    "### Datei `{}`",
    "- Zuletzt **{}**:",
    "## 2) {}",
    "[{0}]({0}):",
]


@each_row("label", LABELS)
@each_row("info", ["python", "py", ""])
def test_a_label_in_any_language_names_a_new_file(label: str, info: str) -> None:
    """Words round a path in the line above: bold, code, heading, bullet, number, colon."""
    text = f"{label.format('tests/test_roman.py')}\n```{info}\nx = 1\n```\n"
    (item,) = parser.read(text, ()).items
    assert isinstance(item, Step)
    assert item.operation.path == "tests/test_roman.py"  # type: ignore[union-attr]


@pytest.mark.parametrize("label", ["Und `{}`:", "最后 **{}**：", "In **{}**:"])
def test_a_label_of_a_file_that_exists_is_refused_by_name(label: str) -> None:
    """It may be a piece of it: never passed over in silence, and never written over the file."""
    text = f"{label.format('a.py')}\n```python\nx = 1\n```\n"
    (item,) = parser.read(text, ("a.py",)).items
    assert isinstance(item, Problem)
    assert "line 1 names 'a.py'" in item.reason


@pytest.mark.parametrize("heading", ["### b.py", "**New file: b.py**\n\nAs in `c.py`:"])
def test_the_heading_of_a_new_file_with_text_below_it_is_refused_by_name(heading: str) -> None:
    found = parser.read(f"{heading}\n\nIt holds a number.\n\n```python\nx = 1\n```\n", ())
    assert not any(isinstance(item, Step) for item in found.items)
    assert "b.py" in f"{found.items}{found.notes}"


@pytest.mark.parametrize(
    "line", ["See `a.py` and **b.py**:", "Then call `run()` as `a.py` does it in its first lines, like this:"]
)
def test_what_is_no_label_names_no_new_file(line: str) -> None:
    found = parser.read(f"{line}\n```python\nx = 1\n```\n", ())
    assert not any(isinstance(item, Step) for item in found.items)
