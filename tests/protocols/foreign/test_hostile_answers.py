"""Time stays in proportion to the text, whatever the text."""

import pytest

from codingagent.protocols.foreign.parser import read
from tests.helpers import grows_with

PATTERNS = {
    "openings": "<<<<<<<",
    "search lines": "<<<<<<< SEARCH\n",
    "search lengths": "<<<<<<< SEARCH\n<<<<<<<< SEARCH\n<<<<< SEARCH\n",
    "closings": ">>>>>>> REPLACE\n",
    "blocks": "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
    "blocks of one file": "a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
    "ticks": "```",
    "fences": "```\n",
    "labelled fences": "```python\n",
    "longer and shorter fences": "````\n```\n`````py\n",
    "fences in fences": "### a.md\n```md\n```sh\n```\n",
    "fenced searches": "```\n<<<<<<< SEARCH\n",
    "search among fences": "```py\n<<<<<<< SEARCH\n=======\n",
    "whole files": "### b.py\n```py\nx\n```\n",
    "headings": "### `a.py`\n",
    "words": "a.py b.py ",
    "added": "+",
    "added lines": "+\n",
    "git": "diff --git",
    "git lines": "diff --git a/x b/x\n",
    "hunk headers": "@@ -1,99999999 +1,99999999 @@\n",
    "one count": "--- a\n+++ b\n@@ -1,99999999 +1,99999999 @@\n+x\n",
    "headers": "--- a\n+++ b\n",
    "blank lines in a difference": "--- a\n+++ b\n\n\n\n",
    "patches": "*** Begin Patch\n",
    "sections": "*** Update File: a.py\n@@\n",
    "dots": "...\n",
    "comments": "// ... existing code ...\n",
    "blanks": " ",
    "markers with blanks": "<<<<<<< SEARCH" + " " * 250 + "x\n",
    "stars": "**a**",
    "links": "[a](b)\n[",
    "elements": '<file path="a.py">\n',
    "element closings": "</file>\n",
    "elements in a fence": '```xml\n<file path="b.py">\nx\n</file>\n```\n',
    "deletions": "### Deleted file: `a.py`\n",
    "renamings": "### Renamed file: `a.py` to `b.py`\n",
    "joined fences": "``````py\n",
    "encoded searches": "&lt;&lt;&lt;&lt;&lt; SEARCH\n",
    "escaped searches": "\\<\\<\\<\\<\\< SEARCH\n",
    "merges": "<<<<<<<\na\n=======\nb\n>>>>>>>\n",
    "backslashes": "### x\\y.py\n```py\nx\n```\n",
    "headings with text": "### b.py\n\ntext\n\n```py\nx\n```\n",
    "unnamed": "```py\nx\n```\n",
    "block lines": "\0\n```\n",
    "labelled fences and block lines": "```py\n```py\n\0\n",
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("opening", ["", "### a.py\n```py\n"], ids=["bare", "in a file"])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_time_grows_with_the_text(pattern: str, opening: str) -> None:
    """Four times the text takes about four times as long; a square would take sixteen."""
    grows_with(4_000, lambda size: read(opening + pattern * (size // len(pattern)), {"a.py"}))


def test_openings_without_a_close_do_not_each_look_to_the_end() -> None:
    pattern = PATTERNS["search among fences"]
    grows_with(20_000, lambda size: read(pattern * (size // len(pattern)), set()))
