"""What is refused says what to send instead: an answer that does what it says is taken."""

from pathlib import Path

import pytest

from tests.protocols.foreign.doing import do

BEFORE = {
    "a.py": "a = 1\nb = 2\n",
    "src/u.py": "u = 1\n",
    "one/t.py": "t\n",
    "two/t.py": "t\n",
    "docs/a.md": "Title\n=======\n",
}


def edit(old: str, new: str, signs: int = 7) -> str:
    return f"{'<' * signs} SEARCH\n{old}{'=' * signs}\n{new}{'>' * signs} REPLACE\n"


def fenced(text: str, language: str = "python", marks: str = "```") -> str:
    return f"{marks}{language}\n{text}{marks}\n"


WHOLE = "a = 5\n"
A5 = {"a.py": WHOLE}
CREATE = '[CREATE_FILE path="{0}"]\n{1}[/CREATE_FILE]\n'
NESTED = "x = '''\n```sh\nls\n```\n'''\n"

# What was sent, what is said of it, what does as it says, and the files that are then as given here.
ADVICE: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "entities in code": (
        "```diff\n--- a/src/u.py\n+++ b/src/u.py\n@@ -1 +1,2 @@\n u = 1\n+v = u &lt; 2\n```\n",
        "again with the characters that the file should contain",
        "```diff\n--- a/src/u.py\n+++ b/src/u.py\n@@ -1 +1,2 @@\n u = 1\n+v = u < 2\n```\n",
        {"src/u.py": "u = 1\nv = u < 2\n"},
    ),
    "entities in code that are meant": (
        "```diff\n--- a/src/u.py\n+++ b/src/u.py\n@@ -1 +1,2 @@\n u = 1\n+v = u &lt; 2\n```\n",
        'send [EDIT_FILE] with SEARCH/REPLACE and until="TOKEN", closed with [/EDIT_FILE TOKEN]',
        '[EDIT_FILE path="src/u.py" until="HERE"]\n'
        + edit("u = 1\n", "u = 1\nv = u &lt; 2\n")
        + "[/EDIT_FILE HERE]\n",
        {"src/u.py": "u = 1\nv = u &lt; 2\n"},
    ),
    "no path": (
        fenced(edit("a = 1\n", "a = 5\n")),
        "no path is above it; write 'File:' and its path on the line above it",
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "two paths": (
        "Change `a.py` and `src/u.py`:\n" + fenced(edit("a = 1\n", "a = 5\n")),
        "a.py and src/u.py are above it; write one path above each block",
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")) + "\nsrc/u.py\n" + fenced(edit("u = 1\n", "u = 5\n")),
        {"a.py": "a = 5\nb = 2\n", "src/u.py": "u = 5\n"},
    ),
    "two paths of one file": (
        "### a.py\n" + fenced(WHOLE, "python src/u.py"),
        "line 2 says 'src/u.py' and line 1 says 'a.py'; write one path above each file",
        "### a.py\n" + fenced(WHOLE),
        A5,
    ),
    "a path above that is in the file in another way": (
        "### a.py\n" + fenced("# lib/a.py\n" + WHOLE),
        "line 3 says 'lib/a.py'; write one path above each file, or send [CREATE_FILE]",
        CREATE.format("a.py", "# lib/a.py\n" + WHOLE),
        {"a.py": "# lib/a.py\n" + WHOLE},
    ),
    "no end": (
        "### a.py\n```python\na = 5\n",
        "send what follows it again, each file in a longer fence (````) if it holds fences itself",
        "### a.py\n" + fenced(WHOLE, marks="````"),
        A5,
    ),
    "fences in a fence": (
        "### a.py\n" + fenced(NESTED),
        "send what follows it again, each file in a longer fence (````)",
        "### a.py\n" + fenced(NESTED, marks="````") + "\n### src/u.py\n" + fenced("u = 5\n"),
        {"a.py": NESTED, "src/u.py": "u = 5\n"},
    ),
    "a piece, sent whole": (
        "In `a.py` it is:\n" + fenced(WHOLE),
        "for one, write its path alone on the line above the fence",
        "a.py\n" + fenced(WHOLE),
        A5,
    ),
    "a piece, sent as an edit": (
        "In `a.py` it is:\n" + fenced("a = 5\n"),
        "for a piece of one send SEARCH/REPLACE",
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "no name": (
        fenced(WHOLE),
        "for a whole file write its path alone on the line above the fence",
        "a.py\n" + fenced(WHOLE),
        A5,
    ),
    "an element": (
        '<note path="a.py">\na = 5\n</note>\n',
        'send [CREATE_FILE], [EDIT_FILE], [DELETE_FILE] or [READ_FILE], each with path="a.py"',
        CREATE.format("a.py", WHOLE),
        A5,
    ),
    "a merge in a file, resolved": (
        "a.py\n" + fenced("<<<<<<< HEAD\na = 1\n=======\na = 5\n>>>>>>> x\nb = 2\n"),
        "send the file whole and resolved",
        "a.py\n" + fenced("a = 5\nb = 2\n"),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "a merge in a file, as an edit": (
        "a.py\n" + fenced("<<<<<<< HEAD\na = 1\n=======\na = 5\n>>>>>>> x\nb = 2\n"),
        "or only SEARCH/REPLACE",
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "a deletion in passing": (
        "a.py\n" + fenced(WHOLE) + "\n- Removed `src/u.py`\n",
        'send [DELETE_FILE path="src/u.py"]',
        '[DELETE_FILE path="src/u.py"]\n',
        {"src/u.py": ""},
    ),
    "a renaming": (
        "### Renamed file: `src/u.py` to `src/v.py`\n",
        '[MOVE_FILE path="src/u.py" to="src/v.py"]',
        '[MOVE_FILE path="src/u.py" to="src/v.py"]\n',
        {"src/u.py": "", "src/v.py": "u = 1\n"},
    ),
    "a shell block": (
        fenced("touch x\n", "sh"),
        "to run a command send [RUN_COMMAND]",
        "[RUN_COMMAND]\ntouch x\n[/RUN_COMMAND]\n",
        {"x": ""},
    ),
    "twice": (
        "a.py\n" + fenced(WHOLE) + "\na.py\n" + fenced("a = 6\n"),
        "so neither was used: send it once",
        "a.py\n" + fenced(WHOLE),
        A5,
    ),
    "an empty SEARCH, with lines": (
        "a.py\n" + fenced(edit("", "c = 3\n")),
        "give the lines to replace",
        "a.py\n" + fenced(edit("b = 2\n", "b = 2\nc = 3\n")),
        {"a.py": "a = 1\nb = 2\nc = 3\n"},
    ),
    "an empty SEARCH, whole": (
        "a.py\n" + fenced(edit("", WHOLE)),
        "or send the whole file under its path",
        "a.py\n" + fenced(WHOLE),
        A5,
    ),
    "one of two": (
        "t.py\n" + fenced(edit("t\n", "v\n")),
        "fits one/t.py and two/t.py: write the path from the workspace root",
        "one/t.py\n" + fenced(edit("t\n", "v\n")),
        {"one/t.py": "v\n"},
    ),
    "one of two, or new": (
        "t.py\n" + fenced("v\n"),
        "write the path from the workspace root, and 'New file:' before it if it is one",
        "New file: t.py\n" + fenced("v\n"),
        {"t.py": "v\n"},
    ),
    "old or new, the old": (
        "lib/t.py\n" + fenced("v\n"),
        "may be a new file, or x/lib/t.py: write the path from the workspace root",
        "x/lib/t.py\n" + fenced("v\n"),
        {"x/lib/t.py": "v\n"},
    ),
    "old or new, the new": (
        "lib/t.py\n" + fenced("v\n"),
        "and 'New file:' before it if it is one",
        "New file: lib/t.py\n" + fenced("v\n"),
        {"lib/t.py": "v\n", "x/lib/t.py": "t\n"},
    ),
    "another language": (
        "### a.py\n" + fenced(WHOLE, "json"),
        "if it is that file, send it with the fence of its language",
        "### a.py\n" + fenced(WHOLE),
        A5,
    ),
    "a difference, in its fence": (
        "### a.py\n" + fenced("-a = 1\n+a = 5\n b = 2\n"),
        "send that in a fence that says diff",
        "### a.py\n" + fenced("-a = 1\n+a = 5\n b = 2\n", "diff"),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "a difference, that is text": (
        "### docs/b.md\n" + fenced("- a\n+ b\n", "markdown"),
        'if the file has them, send [CREATE_FILE path="docs/b.md"]',
        CREATE.format("docs/b.md", "- a\n+ b\n"),
        {"docs/b.md": "- a\n+ b\n"},
    ),
    "only a path": (
        fenced("# src/n.py\n"),
        "send its text too",
        fenced("# src/n.py\nn = 1\n"),
        {"src/n.py": "n = 1\n"},
    ),
    "only a path, empty": (
        fenced("# src/n.py\n"),
        'or an empty [CREATE_FILE path="src/n.py"] if it has none',
        CREATE.format("src/n.py", ""),
        {"src/n.py": ""},
    ),
    "all left out": (
        "### a.py\n" + fenced("# ... existing code ...\n"),
        "send the file whole, or only an edit",
        "### a.py\n" + fenced(WHOLE),
        A5,
    ),
    "a part left out": (
        "### a.py\n" + fenced("a = 5\n# ... rest of the file unchanged\n"),
        "send the file whole, or only an edit",
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "a part of REPLACE left out": (
        "a.py\n" + fenced(edit("a = 1\nb = 2\n", "a = 5\n# ... rest unchanged\n")),
        "write all lines that belong there",
        "a.py\n" + fenced(edit("a = 1\nb = 2\n", "a = 5\nb = 2\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "no closing marker": (
        "a.py\n" + fenced("<<<<<<< SEARCH\na = 1\n=======\na = 5\n"),
        (
            "it has no closing marker; send <<<<<<< SEARCH, the old lines, =======, the new lines,"
            " >>>>>>> REPLACE again"
        ),
        "a.py\n" + fenced(edit("a = 1\n", "a = 5\n")),
        {"a.py": "a = 5\nb = 2\n"},
    ),
    "a marker in the text": (
        "docs/a.md\n" + fenced(edit("Title\n=======\n", "Other\n=======\n")),
        "make all three markers longer, of equal length",
        "docs/a.md\n" + fenced(edit("Title\n=======\n", "Other\n=======\n", signs=8)),
        {"docs/a.md": "Other\n=======\n"},
    ),
    "backslashes": (
        "new\\n.py\n" + fenced(WHOLE),
        "write / between names",
        "new/n.py\n" + fenced(WHOLE),
        {"new/n.py": WHOLE},
    ),
    "an absolute path": (
        "### /home/x/n.py\n" + fenced(WHOLE),
        "write a path relative to the workspace",
        "### n.py\n" + fenced(WHOLE),
        {"n.py": WHOLE},
    ),
    "no such lines": (
        "a.py\n" + fenced(edit("c = 3\n", "c = 4\n")),
        "copy its lines exactly as the file has them",
        "a.py\n" + fenced(edit("b = 2\n", "b = 4\n")),
        {"a.py": "a = 1\nb = 4\n"},
    ),
    "several places": (
        "r.py\n" + fenced(edit("r = 1\n", "r = 2\n")),
        "add surrounding lines until it matches one",
        "r.py\n" + fenced(edit("r = 1\ns = 2\n", "r = 2\ns = 2\n")),
        {"r.py": "r = 1\nq = 1\nr = 2\ns = 2\n"},
    ),
    "blanks for tabs": (
        "m.go\n" + edit("func m() {\n", "func m() {\n    n()\n"),
        "the file is indented with tabs and REPLACE with spaces; write it with tabs",
        "m.go\n" + edit("func m() {\n", "func m() {\n\tn()\n"),
        {"m.go": "func m() {\n\tn()\n\to()\n}\n"},
    ),
    "no indentation": (
        "### n.py\n" + fenced("def n():\nreturn 1\n"),
        "its indentation is gone (line 2: expected an indented block",
        "### n.py\n" + fenced("def n():\n    return 1\n"),
        {"n.py": "def n():\n    return 1\n"},
    ),
    "encoded, and meant": (
        "a.py\n" + fenced(edit("a = 1\n", "a = x &lt; y < z\n")),
        'if it is intended, send it with until="TOKEN" and close it with [/EDIT_FILE TOKEN]',
        '[EDIT_FILE path="a.py" until="T"]\n' + edit("a = 1\n", "a = x &lt; y\n") + "[/EDIT_FILE T]\n",
        {"a.py": "a = x &lt; y\nb = 2\n"},
    ),
}
OTHERS = {"x/lib/t.py": "t\n", "r.py": "r = 1\nq = 1\nr = 1\ns = 2\n", "m.go": "func m() {\n\to()\n}\n"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ADVICE)
def test_advice_that_is_followed_leads_to_an_answer_that_is_taken(name: str, tmp_path: Path) -> None:
    """Design, replies: advice must be possible to follow."""
    sent, advice, followed, after = ADVICE[name]
    before = BEFORE | (OTHERS if any(path in OTHERS for path in after) else {})
    refused = do(sent, before, tmp_path / "refused")
    assert any(advice in said for said in (*refused.failures, *refused.notes)), refused
    assert "in a code block" not in str(refused)
    done = do(followed, before, tmp_path / "done")
    assert done.failures == (), done
    there = {path: done.files.get(path, b"").decode() for path in after}
    assert there == after
