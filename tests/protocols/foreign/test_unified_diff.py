"""Diffs and patches as answers have them: what their headers make, and that each advice can be followed."""

import shlex
from pathlib import Path

import pytest

from codingagent.editing import apply
from codingagent.errors import OperationError
from codingagent.model.operations import CreateFile, DeleteFile, Diff, EditFile, MoveFile, RunCommand
from codingagent.protocols.foreign.parser import read
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Problem
from tests.protocols.foreign.doing import do
from tests.rows import each_row

OLD = "old one\nold two\n"
ADDED = "@@ -0,0 +1,2 @@\n+a\n+b\n"
GONE = "@@ -1,2 +0,0 @@\n-old one\n-old two\n"
EDIT = "@@ -1,2 +1,2 @@\n-old one\n+new\n old two\n"
GIT = "diff --git a/n.py b/n.py\n"
NEW = "--- /dev/null\n+++ b/n.py\n"
BOTH = "--- a/n.py\n+++ b/n.py\n"
IS_NEW = "new file mode 100644\n"
IS_GONE = "deleted file mode 100644\n"


def fenced(text: str, language: str = "diff") -> str:
    return f"```{language}\n{text}```\n"


def done(text: str, before: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What files an answer makes of others, and what it is told to send instead."""
    own = reply.read(text)
    files, failures = dict(before), list[str]()
    for item in read(text, set(before)).items if own.is_bare else own.items:
        if isinstance(item, Problem):
            failures.append(item.reason)
            continue
        match item.operation:
            case CreateFile(path=path, content=content):
                files[path] = str(content)
            case DeleteFile(path=path):
                del files[path]
            case RunCommand(command=command):
                files[shlex.split(command)[-1]] = command
            case MoveFile(path=path, to=to):
                files[to] = files.pop(path)
            case EditFile(path=path, change=change):
                assert isinstance(change, Diff | tuple)
                try:
                    files[path] = apply.apply(change, files[path]).text
                except OperationError as fault:
                    failures.append(fault.reason)
            case _:
                failures.append(f"{item.kind} is of no diff")
    return files, tuple(failures)


# --- headers ---------------------------------------------------------------------------------------


@each_row(
    "diff",
    [
        GIT + BOTH + IS_NEW + ADDED,
        IS_NEW + GIT + NEW + ADDED,
        "Index: n.py\n=====\n" + GIT + IS_NEW + NEW + ADDED,
        GIT + IS_NEW + NEW + "+a\n+b\n",
    ],
)
@each_row("is_fenced", [True, False])
def test_a_new_file_has_its_text_in_whichever_order_its_header_is_written(
    diff: str, *, is_fenced: bool
) -> None:
    text = fenced(diff) if is_fenced else f"Here:\n\n{diff}"
    assert done(text, {}) == ({"n.py": "a\nb\n"}, ())


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        (NEW + GIT + IS_NEW + ADDED, "it makes a new file and has none of its lines; send them"),
        (GIT + IS_NEW + NEW + ADDED + GIT + IS_NEW, "it makes a new file and has none of its lines"),
        (BOTH + GIT + "index 1..2 100644\n" + BOTH + EDIT, "it has no hunks; send them"),
    ],
)
def test_a_header_that_is_written_twice_is_said_and_changes_nothing(diff: str, said: str) -> None:
    files, (failure,) = done(fenced(diff), {} if IS_NEW in diff else {"n.py": OLD})
    assert files == {"n.py": "a\nb\n" if IS_NEW in diff else "new\nold two\n"}
    assert said in failure


@pytest.mark.parametrize(
    "diff", [GIT + IS_GONE, GIT + IS_GONE + "Binary files a/n.py and /dev/null differ\n"]
)
def test_a_deleted_file_is_deleted_once(diff: str) -> None:
    assert done(fenced(diff), {"n.py": OLD}) == ({}, ())


@pytest.mark.parametrize(
    "diff",
    [
        (
            "Index: n.py\nIDEA additional info:\nSubsystem: com.intellij.openapi.diff\n<+>UTF-8\n=====\n"
            f"{GIT}--- a/n.py\t(revision 7)\n+++ b/n.py\t(date 1767225600000)\n{EDIT}"
        ),
        (
            "Index: n.py\n=====\nRCS file: /cvs/n.py,v\nretrieving revision 1.1\ndiff -u -r1.1 n.py\n"
            f"--- n.py\t1 Jan 2026 00:00:00 -0000\t1.1\n+++ n.py\t2 Jan 2026 00:00:00 -0000\n{EDIT}"
        ),
        (
            "==== //depot/main/n.py#1 - /home/u/ws/n.py ====\n"
            f"--- //depot/main/n.py\t2026-01-01 00:00:00\n+++ /home/u/ws/n.py\t2026-01-01 00:00:00\n{EDIT}"
        ),
        (
            "diff /home/u/p (working copy)\ncommit - 3f1c2ab\npath + /home/u/p\nblob - 3f1c2ab\nfile + n.py\n"
            f"--- n.py\n+++ n.py\n{EDIT}"
        ),
        "Index: n.py\n=====\n" + GIT + "--- a/n.py\t(revision 1)\n+++ b/n.py\t(working copy)\n" + EDIT,
        GIT + "old mode 100644\nnew mode 100755\n" + BOTH + EDIT,
    ],
)
def test_an_edit_is_one_edit_in_whichever_form_its_header_is(diff: str) -> None:
    assert done(fenced(diff), {"n.py": OLD}) == ({"n.py": "new\nold two\n"}, ())
    assert len(read(fenced(diff), {"n.py"}).items) == 1


@each_row(("old", "new"), [("i", "w"), ("c", "i"), ("old", "new"), ("x-1.0", "x-1.1")])
def test_the_folders_before_and_after_may_have_any_names(old: str, new: str) -> None:
    """git's `diff.mnemonicPrefix`, and `diff -r` of two folders."""
    headers = f"--- {old}/n.py\n+++ {new}/n.py\n"
    assert done(fenced(headers + EDIT), {"n.py": OLD}) == ({"n.py": "new\nold two\n"}, ())
    assert done(fenced(f"diff --git {old}/n.py {new}/n.py\n{headers}{EDIT}"), {"n.py": OLD})[1] == ()


def test_two_empty_files_of_one_name_are_two_files() -> None:
    diff = "".join(
        f"diff --git a/{folder}/__init__.py b/{folder}/__init__.py\n{IS_NEW}index 0000000..e69de29\n"
        for folder in ("p", "q")
    )
    assert done(fenced(diff), {}) == ({"p/__init__.py": "", "q/__init__.py": ""}, ())


@pytest.mark.parametrize("mode", ["new file mode 100755", "old mode 100644\nnew mode 100755"])
def test_a_mode_beside_text_is_said_not_to_be_set(mode: str) -> None:
    is_new = mode.startswith("new")
    diff = GIT + mode + "\n" + (NEW + ADDED if is_new else BOTH + EDIT)
    (item,) = read(fenced(diff), set() if is_new else {"n.py"}).items
    assert not isinstance(item, Problem)
    assert "[RUN_COMMAND]chmod 755 n.py[/RUN_COMMAND]" in item.notes[0]


@each_row("between", ["", "\n", "\n\n\n"])
@each_row("header", ["@@ -1,2 +1,2 @@", "@@", "@@ -1,7 +1,9 @@"])
@each_row("is_fenced", [True, False])
def test_blank_lines_may_part_two_differences(between: str, header: str, *, is_fenced: bool) -> None:
    one, other = (
        f"--- a/{name}\n+++ b/{name}\n{header}\n-old one\n+new\n old two\n" for name in ("m", "n.py")
    )
    text = one + between + other
    if not is_fenced and (len(between) > 1 or "7" in header):
        return  # nothing tells where it ends
    files, failures = done(fenced(text) if is_fenced else text, {"m": OLD, "n.py": OLD})
    assert (files, failures) == ({"m": "new\nold two\n", "n.py": "new\nold two\n"}, ())


@pytest.mark.parametrize("header", ["@@ -1,5 +1,5 @@", "@@", "@@ -1,9 +1,2 @@"])
def test_markers_of_an_edit_may_be_lines_of_a_difference(header: str, tmp_path: Path) -> None:
    old = "<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE\n"
    lines = " <<<<<<< SEARCH\n-a\n+b\n =======\n c\n >>>>>>> REPLACE\n"
    diff = f"--- a/n.md\n+++ b/n.md\n{header}\n{lines}"
    patch = f"*** Begin Patch\n*** Update File: n.md\n@@\n{lines}*** End Patch\n"
    for text in (fenced(diff), f"Here:\n\n{diff}", fenced(patch), patch):
        assert done(text, {"n.md": old}) == ({"n.md": old.replace("a", "b", 1)}, ())
    new = "--- /dev/null\n+++ b/t.py\n@@ -0,0 +1,3 @@\n+TEXT = '''\n+<<<<<<< SEARCH\n+'''\n"
    assert do(fenced(new), {}, tmp_path).files == {"t.py": b"TEXT = '''\n<<<<<<< SEARCH\n'''\n"}


def test_a_difference_done_before_changes_nothing(tmp_path: Path) -> None:
    diff = GIT + BOTH + EDIT + "--- /dev/null\n+++ b/new.py\n" + ADDED
    after = {"n.py": b"new\nold two\n", "new.py": b"a\nb\n"}
    came = do(fenced(diff), after, tmp_path)
    assert (came.files, came.failures) == (after, ())
    notes = [note for event in came.events for note in getattr(event, "notes", ())]
    assert sum("already" in note for note in notes) == 2


def test_a_new_file_that_exists_is_replaced_only_where_that_is_said(tmp_path: Path) -> None:
    refused = do(fenced("--- /dev/null\n+++ b/n.py\n" + ADDED), {"n.py": OLD}, tmp_path / "refused")
    assert "set overwrite to true" in refused.failures[0]
    answer = '[CREATE_FILE path="n.py" overwrite="true"]\na\nb\n[/CREATE_FILE]\n'
    assert do(answer, {"n.py": OLD}, tmp_path / "taken").files == {"n.py": b"a\nb\n"}


def test_the_second_difference_of_a_file_counts_as_it_was_or_as_it_is(tmp_path: Path) -> None:
    """The first has put three lines above a place that fits three times."""
    text = "top\nx = 1\n\nx = 1\n\nx = 1\n"
    first = fenced("--- a/a\n+++ b/a\n@@ -1 +1,4 @@\n-top\n+one\n+two\n+three\n+four\n")
    for number, line in ((6, 8), (9, 8), (2, 4)):
        second = fenced(f"--- a/a\n+++ b/a\n@@ -{number} +{number} @@\n-x = 1\n+x = 2\n")
        (root := tmp_path / str(number)).mkdir()
        lines = ["one", "two", "three", "four", *text.split("\n")[1:]]
        lines[line] = "x = 2"
        came = do(first + second, {"a": text}, root)
        assert came.files == {"a": "\n".join(lines).encode()}, came.failures
    # Two lines only: by one way to count it is the second, by the other the third.
    second = fenced("--- a/a\n+++ b/a\n@@ -4 +4 @@\n-x = 1\n+x = 2\n")
    (root := tmp_path / "both").mkdir()
    came = do(first.replace("+four\n", "").replace("1,4", "1,3") + second, {"a": text}, root)
    assert "matches 3 places" in came.failures[0]


def test_the_lines_over_a_hunk_of_a_patch_say_which_of_several_it_is() -> None:
    text = "class A:\n  def f():\n    x = 1\nclass B:\n  def g():\n    x = 1\n  def f():\n    x = 1\n"
    for over, line in ((("class B", "  def f"), 7), (("class A",), 2), (("  def g():",), 5)):
        anchors = "".join(f"@@ {each}\n" for each in over)
        lines = text.split("\n")
        lines[line] = "    x = 2"
        patch = f"*** Begin Patch\n*** Update File: n.py\n{anchors}-    x = 1\n+    x = 2\n"
        files, failures = done(f"{patch}*** End Patch\n", {"n.py": text})
        assert (files, failures) == ({"n.py": "\n".join(lines)}, ())


def test_a_new_file_without_indentation_may_have_wrong_counts_in_a_fence(tmp_path: Path) -> None:
    """Nothing is said of indentation that came in a code block."""
    lines = "".join(f"+int {name}(void) {{\n+return 1;\n+}}\n" for name in "abcdef")
    diff = f"--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,9 @@\n{lines}"
    (bare := tmp_path / "bare").mkdir()
    assert "no line is indented" in do(diff, {}, bare).failures[0]
    (shown := tmp_path / "shown").mkdir()
    came = do(fenced(diff), {}, shown)
    assert (came.failures, came.files) == ((), {"n.c": lines.replace("+", "").encode()})


# --- each advice can be followed -------------------------------------------------------------------

TWICE = "def a():\n    return 1\ndef b():\n    return 1\n"
FILE = "f\n"
REFUSALS: dict[str, tuple[str, str, str]] = {
    # what it is: the answer, part of the refusal, the answer that follows its advice
    "its end is not certain": (
        f"{BOTH}@@ -1,9 +1,9 @@\n-old one\n+new\n\n old two\n",
        "put it in a fence (```diff)",
        fenced(f"{BOTH}@@ -1,9 +1,9 @@\n-old one\n+new\n old two\n"),
    ),
    "it may be cut off": (
        f"{BOTH}@@ -1,8 +1,8 @@\n-old one\n+new\n",
        "send it again, in a fence",
        fenced(f"{BOTH}@@ -1,8 +1,8 @@\n-old one\n+new\n"),
    ),
    "no name": (fenced(EDIT), "write --- a/path and +++ b/path above it", fenced(BOTH + EDIT)),
    "two names": (
        f"Change `n.py` and `twice.py`:\n\n{fenced(EDIT)}",
        "write --- a/path and +++ b/path",
        fenced(BOTH + EDIT),
    ),
    "binary": (
        fenced("diff --git a/n.bin b/n.bin\nBinary files a/n.bin and b/n.bin differ\n"),
        '[CREATE_FILE] and encoding="base64"',
        '[CREATE_FILE path="n.bin" encoding="base64"]\nAAEC\n[/CREATE_FILE]\n',
    ),
    "a mode": (
        fenced(GIT + "old mode 100644\nnew mode 100755\n"),
        "[RUN_COMMAND]chmod 755 n.py[/RUN_COMMAND]",
        "[RUN_COMMAND]chmod 755 n.py[/RUN_COMMAND]\n",
    ),
    "a link": (
        fenced("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+n.py\n"),
        "only a command can change; send [RUN_COMMAND]",
        "[RUN_COMMAND]ln -sfn n.py l[/RUN_COMMAND]\n",
    ),
    "a link goes": (
        fenced("diff --git a/n.py b/n.py\ndeleted file mode 120000\n" + GONE),
        "only a command can change; send [RUN_COMMAND]",
        "[RUN_COMMAND]rm n.py[/RUN_COMMAND]\n",
    ),
    "a submodule": (
        fenced("diff --git a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s\n" + EDIT + BOTH + EDIT),
        "leave it out",
        fenced(BOTH + EDIT),
    ),
    "deleted, with lines that stay": (
        fenced("--- a/n.py\n+++ /dev/null\n@@ -1,2 +1 @@\n-old one\n old two\n"),
        "begin each of its lines with -",
        fenced("--- a/n.py\n+++ /dev/null\n@@ -1,2 +1 @@\n-old one\n-old two\n"),
    ),
    "deleted, with lines that stay: the other way": (
        fenced("--- a/n.py\n+++ /dev/null\n@@ -1,2 +1 @@\n-old one\n old two\n"),
        "send the changes without the header of a deleted file",
        fenced(BOTH + "@@ -1,2 +1 @@\n-old one\n old two\n"),
    ),
    "new and deleted": (
        fenced(GIT + IS_NEW + IS_GONE + GONE),
        "write one header",
        fenced(GIT + IS_GONE + GONE),
    ),
    "new without its lines": (
        fenced("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..abc1234\n"),
        "send them",
        fenced("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..abc1234\n" + ADDED),
    ),
    "a new name and changes": (
        fenced("diff --git a/n.py b/m.py\nsimilarity index 90%\nrename from n.py\nrename to m.py\n"),
        '[MOVE_FILE path="n.py" to="m.py"], then [EDIT_FILE path="m.py"] with the changes',
        (
            '[MOVE_FILE path="n.py" to="m.py"]\n[EDIT_FILE path="m.py"]\n<<<<<<< SEARCH\nold one\n'
            "=======\nnew\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
        ),
    ),
    "no hunks": (fenced(BOTH), "send them", fenced(BOTH + EDIT)),
    "a copy": (
        fenced("diff --git a/n.py b/m.py\ncopy from n.py\ncopy to m.py\n"),
        "a copy; send it whole",
        f"m.py\n{fenced(OLD, 'python')}",
    ),
    "a folder called b": (
        fenced("--- /dev/null\n+++ b/new.py\n" + ADDED),
        "write the line diff --git above it",
        fenced("diff --git a/new.py b/new.py\n--- /dev/null\n+++ b/new.py\n" + ADDED),
    ),
    "both sides exist": (
        fenced("--- a/x.py\n+++ b/x.py\n" + EDIT),
        "write one path above it",
        fenced("--- b/x.py\n+++ b/x.py\n" + EDIT),
    ),
    "nothing changes": (
        fenced(f"{BOTH}@@ -1,2 +1,2 @@\n old one\n old two\n"),
        "begin the lines that go with - and those that come with +",
        fenced(BOTH + EDIT),
    ),
    "no old line": (
        fenced(f"{BOTH}@@ -1,0 +2 @@\n+new\n"),
        "add the lines around it",
        fenced(f"{BOTH}@@ -1,2 +1,3 @@\n old one\n+new\n old two\n"),
    ),
    "for an empty file": (
        fenced(f"{BOTH}@@ -0,0 +1 @@\n+new\n"),
        "add the lines around it",
        fenced(f"{BOTH}@@ -1,2 +1,3 @@\n+new\n old one\n old two\n"),
    ),
    "only blank lines": (
        fenced("--- a/blank\n+++ b/blank\n@@ -7,2 +7,3 @@\n \n+new\n \n"),
        "give it more lines of context, or the right line number in its @@ line",
        fenced("--- a/blank\n+++ b/blank\n@@ -2,2 +2,3 @@\n \n+new\n \n"),
    ),
    "a new file in two hunks": (
        fenced(f"{NEW}{ADDED}@@ -0,0 +4 @@\n+c\n".replace("n.py", "x.py")),
        "send it whole",
        "x.py\n```python\na\nb\nc\n```\n",
    ),
    "a new file with other lines": (
        fenced("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+a\n b\n"),
        "begin each of its lines with +",
        fenced("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
    ),
    "text was left out": (
        fenced(f"{BOTH}@@\n-old one\n+new\n+# ... rest unchanged ...\n old two\n"),
        "write that text",
        fenced(f"{BOTH}@@\n-old one\n+new\n+rest\n old two\n"),
    ),
    "not found": (
        fenced(f"{BOTH}@@\n-old 1\n+new\n old two\n"),
        "copy its context and its lines with - exactly as the file has them",
        fenced(f"{BOTH}@@\n-old one\n+new\n old two\n"),
    ),
    "one of two not found": (
        fenced(f"{BOTH}@@\n-old one\n+new\n@@\n-old 2\n+new\n"),
        "none of the 2 was applied: send all of them again",
        fenced(f"{BOTH}@@\n-old one\n+new\n@@\n-old two\n+new\n"),
    ),
    "several places": (
        fenced("--- a/twice.py\n+++ b/twice.py\n@@\n-    return 1\n+    return 2\n"),
        "give it more lines of context",
        fenced("--- a/twice.py\n+++ b/twice.py\n@@\n def b():\n-    return 1\n+    return 2\n"),
    ),
    "several places: the other way": (
        fenced("--- a/twice.py\n+++ b/twice.py\n@@\n-    return 1\n+    return 2\n"),
        "or the right line number in its @@ line",
        fenced("--- a/twice.py\n+++ b/twice.py\n@@ -4 +4 @@\n-    return 1\n+    return 2\n"),
    ),
    "several places in a patch": (
        "*** Begin Patch\n*** Update File: twice.py\n@@\n-    return 1\n+    return 2\n*** End Patch\n",
        "give it more lines of context",
        (
            "*** Begin Patch\n*** Update File: twice.py\n@@\n def b():\n-    return 1\n"
            "+    return 2\n*** End Patch\n"
        ),
    ),
    "the same lines twice": (
        fenced(f"{BOTH}@@\n-old one\n-old two\n+new\n@@\n-old two\n+two\n"),
        "send them as one hunk",
        fenced(f"{BOTH}@@\n-old one\n-old two\n+new\n+two\n"),
    ),
    "not at the end": (
        fenced(f"{BOTH}@@ -1 +1,2 @@\n old one\n+new\n"),
        "add the lines that follow below",
        fenced(f"{BOTH}@@ -1,2 +1,3 @@\n old one\n+new\n old two\n"),
    ),
    "not at the top": (
        fenced(f"{BOTH}@@ -1 +1,2 @@\n+new\n old two\n"),
        "add the lines that follow above",
        fenced(f"{BOTH}@@ -1,2 +1,3 @@\n old one\n+new\n old two\n"),
    ),
    "tabs": (
        fenced("--- a/go.go\n+++ b/go.go\n@@\n func b() {\n+    x()\n }\n"),
        "write it with tabs",
        fenced("--- a/go.go\n+++ b/go.go\n@@\n func b() {\n+\tx()\n }\n"),
    ),
    "an empty file": (
        fenced("--- a/empty\n+++ b/empty\n@@ -1 +1 @@\n-x\n+y\n"),
        "send it whole",
        f"empty\n{fenced(FILE, 'text')}",
    ),
    "a patch without its end": (
        "*** Begin Patch\n*** Delete File: n.py\n",
        "send it again, whole",
        "*** Begin Patch\n*** Delete File: n.py\n*** End Patch\n",
    ),
    "a patch without marks": (
        "*** Begin Patch\n*** Add File: x.py\n+a\nb\n*** End Patch\n",
        "begin each of its lines with +",
        "*** Begin Patch\n*** Add File: x.py\n+a\n+b\n*** End Patch\n",
    ),
    "a patch without hunks": (
        "*** Begin Patch\n*** Update File: n.py\n*** End Patch\n",
        "send them",
        "*** Begin Patch\n*** Update File: n.py\n@@\n-old one\n+new\n*** End Patch\n",
    ),
    "a patch without sections": (
        fenced("*** Begin Patch\n*** End Patch\n"),
        "send them",
        fenced("*** Begin Patch\n*** Delete File: n.py\n*** End Patch\n"),
    ),
    "a name that fits two": (
        "*** Begin Patch\n*** Delete File: x.py\n*** End Patch\n",
        "write the path from the workspace root",
        "*** Begin Patch\n*** Delete File: a/x.py\n*** End Patch\n",
    ),
}
FILES = {
    "n.py": OLD,
    "twice.py": TWICE,
    "n.bin": "\0",
    "blank": "a\n\n\nb\n",
    "go.go": "func a() {\n\ty()\n}\n\nfunc b() {\n}\n",
    "empty": "",
}
FOLDERS = {"a/x.py": OLD, "b/x.py": OLD}


@each_row("name", REFUSALS)
def test_the_advice_of_a_refusal_leads_to_an_answer_that_is_taken(name: str) -> None:
    answer, advice, followed = REFUSALS[name]
    is_of_folders = name in {"a folder called b", "both sides exist", "a name that fits two"}
    before = FILES | (FOLDERS if is_of_folders else {})
    refused, failures = done(answer, before)
    assert any(advice in failure for failure in failures), failures
    taken, failures = done(followed, before)
    assert failures == ()
    assert taken != refused or name == "a submodule"


def test_a_renaming_without_changes_is_done() -> None:
    """Design, other formats: git's rename from and to, alone, say all that a move needs."""
    names = "diff --git a/n.py b/m.py\nsimilarity index 100%\nrename from n.py\nrename to m.py\n"
    assert done(fenced(names), {"n.py": "x\n"}) == ({"m.py": "x\n"}, ())


# --- one change, or none -----------------------------------------------------------------------------

MOVE = "diff --git a/n.py b/m.py\nsimilarity index 60%\nrename from n.py\nrename to m.py\nindex 1..2 100644\n"
MOVED = MOVE + "--- a/n.py\n+++ b/m.py\n"
TO_LINK = (
    GIT
    + IS_GONE
    + "index 1..0\n--- a/n.py\n+++ /dev/null\n"
    + GONE
    + GIT
    + "new file mode 120000\nindex 0..1\n"
    "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+m.py\n\\ No newline at end of file\n"
)
EPOCH = "--- old/n.py\t2026-11-29 03:09:44.1 +0000\n+++ new/n.py\t1970-01-01 01:00:00.000000000 +0100\n"
CONTEXT = "*** a/n.py\n--- b/m.py\n***************\n*** 1,2 ****\n! old one\n--- 1,2 ----\n! new\n"


@each_row(
    ("diff", "after", "said"),
    [
        (MOVED + EDIT, {"m.py": "new\nold two\n"}, ""),
        (MOVED + EDIT.replace("one", "zero"), {"n.py": OLD}, "was not moved to 'm.py', because its changes"),
        (MOVE, {"n.py": OLD}, '[EDIT_FILE path="m.py"] with the changes'),
        (MOVE.replace("index 1..2 100644\n", "") + CONTEXT, {"n.py": OLD}, "it is a context diff"),
        (TO_LINK, {"n.py": OLD}, "a symbolic link, which only a command can change"),
        (GIT + IS_GONE + BOTH + GONE, {}, ""),
        (GIT + IS_GONE + BOTH + GONE.replace("two", "2"), {"n.py": OLD}, "has other lines than the diff"),
        (EPOCH + GONE, {}, ""),
        (EPOCH + EDIT, {"n.py": "new\nold two\n"}, ""),
        ("--- n.py\t(revision 7)\n+++ n.py\t(nonexistent)\n" + GONE, {}, ""),
        ("diff --git a/x.py b/x.py\n" + IS_GONE, {"n.py": OLD}, ""),
        ("diff --git a/gone/n.py b/n.py\nrename from gone/n.py\nrename to n.py\n", {"n.py": OLD}, ""),
        (
            BOTH + EDIT + "Only in new: made.py\n",
            {"n.py": "new\nold two\n"},
            "'Only in new: made.py' shows no",
        ),
        (
            "* commit 3f1c2ab\n| diff --git a/n.py b/n.py\n| -old one\n",
            {"n.py": OLD},
            "it is no unified diff",
        ),
        (
            "diff --cc n.py\n" + BOTH + "@@@ -1,2 -1,2 +1,2 @@@\n- old one\n++new\n  old two\n",
            {"n.py": OLD},
            "no",
        ),
        (BOTH + EDIT + "Binary files x and y differ\n", {"n.py": "new\nold two\n"}, "shows no lines of that"),
        (BOTH + EDIT + "\nIt is done:\n- first\n- then\n", {"n.py": OLD}, "not found"),
        (BOTH + EDIT + "\nIt is done.\n", {"n.py": "new\nold two\n"}, ""),
    ],
)
def test_a_diff_is_done_as_a_whole_or_asked_for_again(
    diff: str, after: dict[str, str], said: str, tmp_path: Path
) -> None:
    (root := tmp_path / str(hash(diff))).mkdir()
    came = do(fenced(diff), {"n.py": OLD}, root)
    assert came.files == {path: text.encode() for path, text in after.items()}
    assert bool(came.failures) is bool(said), came.failures
    assert any(said in failure for failure in came.failures) or not said, came.failures


@each_row(
    ("text", "kind"),
    [
        ("3c3\n< c\n---\n> C\n", "a normal diff"),
        ("0a1,2\n> a\n> b\n", "a normal diff"),
        ("3c\nC\n.\n", "an ed script"),
        ("2,3d\n", "an ed script"),
        ("d3 1\na3 1\nC\n", "an ed script"),
        ("a\n[-c-]{+C+}\nd\n", "a word diff"),
        ("a\nb {+new+} c\n", "a word diff"),
        ('[\n  {"op": "replace", "path": "/port", "value": 2}\n]\n', "a JSON Patch"),
        ('[{"path": "/a", "op": "remove"}]\n', "a JSON Patch"),
        ("a\t\t\t\t\t\t\t      |\tA\n", "a side-by-side diff"),
        ("x = re.compile('[-a-]+')\ny[-1]\n{+1: 2}\n", ""),
        ('[{"op": "sum", "path": "x"}]\n', ""),
        ("3 c\n1. a\n2d\n", ""),
    ],
)
def test_no_other_kind_of_difference_becomes_the_file(text: str, kind: str) -> None:
    files, failures = done(f"n.py\n{fenced(text, '')}", {"n.py": OLD})
    assert bool(failures) is bool(kind)
    assert files == {"n.py": OLD if kind else text}


PAIR = "def f():\n    x = 1\n    return x\n\n\ndef g():\n    x = 2\n    return x\n"


@each_row(
    ("hunk", "text", "after", "said"),
    [
        ("@@ -2,2 +2,2 @@\n-    x = 1\n+    x = 2\n     return x\n", PAIR, PAIR.replace("1", "2"), ""),
        # As in `g`, where it is done; it may be meant for `f`.
        ("@@ -7,2 +7,2 @@\n-    x = 1\n+    x = 2\n     return x\n", PAIR, PAIR, "may be done already"),
        (
            "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n",
            "a\nb",
            "a\nb",
            "",
        ),
        ("@@ -2,2 +2,3 @@\n b\n c\n+d\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n", ""),
        ("@@ -1,2 +1,3 @@\n+a\n b\n c\n", "a\nb\nc\n", "a\nb\nc\n", ""),
        ("@@ -1 +0,0 @@\n-a\n", "a", None, "may be done already"),
        ("@@ -0,0 +1 @@\n+a\n", "a", None, "may be done already"),
        ("@@ -2 +1,0 @@\n-a\n\\ No newline at end of file\n", "a\n", None, "may be done already"),
        ("@@ -2 +1,0 @@\n-a\n", "a\n", None, "may be done already"),
        ("@@ -3 +2,0 @@\n-a\n", "a\nb\na\nc\n", "a\nb\nc\n", ""),
        ("@@ -1 +1 @@\n-a\n+b\n", "a", "b", ""),
        ("@@ -1 +1 @@\n--- w\n+++ v\n@@ -3 +2,0 @@\n-c\n", "-- w\nb\nc\n", "++ v\nb\n", ""),
        ("@@ -9,3 +9,3 @@\n the top\n-b\n+beta\n the end\n", "the top\nbeta\nthe end\n" * 2, None, ""),
    ],
)
def test_a_hunk_that_is_done_is_not_done_again(
    hunk: str, text: str, after: str | None, said: str, tmp_path: Path
) -> None:
    (root := tmp_path / str(hash(hunk))).mkdir()
    came = do(fenced("--- a/n.txt\n+++ b/n.txt\n" + hunk), {"n.txt": text}, root)
    assert came.files == {"n.txt": (text if after is None else after).encode()}
    assert bool(came.failures) is bool(said), came.failures
    assert any(said in failure for failure in came.failures) or not said, came.failures


@each_row(
    ("header", "path"),
    [
        (
            "diff --git i/src/new.py w/src/new.py\nnew file mode 100644\n--- /dev/null\n+++ w/src/new.py\n",
            "src/new.py",
        ),
        ("diff --git x/y/src/new.py z/w/src/new.py\n--- /dev/null\n+++ z/w/src/new.py\n", "src/new.py"),
        ("diff --git src/new.py src/new.py\n--- /dev/null\n+++ src/new.py\n", "src/new.py"),
        ("--- n.orig/n.py\n+++ n/n.py\n" + EDIT + "--- /dev/null\n+++ n/src/new.py\n", "src/new.py"),
        ("--- a/n.py\n+++ b/n.py\n" + EDIT + "--- /dev/null\n+++ b/src/new.py\n", "src/new.py"),
        ("--- n.py\n+++ n.py\n" + EDIT + "--- /dev/null\n+++ other/src/new.py\n", "other/src/new.py"),
        ("--- /dev/null\n+++ other/src/new.py\n", ""),
    ],
)
def test_what_the_other_files_of_a_patch_prove_holds_for_a_new_one(header: str, path: str) -> None:
    files, failures = done(fenced(header + ADDED), {"n.py": OLD, "src/old.py": OLD})
    assert {*files} - {"n.py", "src/old.py"} == ({path} if path else set())
    assert bool(failures) is not bool(path)


def test_context_beyond_what_a_header_counts_says_which_place_is_meant() -> None:
    text = "x = 1\na\nx = 1\nb\n"
    files, failures = done(fenced("--- a/n\n+++ b/n\n@@ -9 +9 @@\n-x = 1\n+x = 2\n b\n"), {"n": text})
    assert (files, failures) == ({"n": "x = 1\na\nx = 2\nb\n"}, ())
