"""Answers as real chat front ends gave them: right, or asked for again; never other bytes, never silence.

`arrivals.jsonl` holds answers of our own as they came out of front ends in browsers. `seen` names the front
end, the browser, the way of copying and the shape of the answer. `trees.json` has the files before.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from codingagent.protocols.tags import reply
from tests.helpers import cpu_below
from tests.reply_table import Came, execute, judge

HERE = Path(__file__).parent
TREES: dict[str, Any] = json.loads((HERE / "trees.json").read_text("utf-8"))
ARRIVALS = [json.loads(line) for line in (HERE / "arrivals.jsonl").read_text("utf-8").splitlines()]


def files_of(answer: str) -> dict[str, bytes]:
    return {name: text.encode() for name, text in TREES[answer]["before"].items()}


def test_an_arrival_is_right_or_asked_for_again(tmp_path: Path) -> None:
    came: list[tuple[int, str]] = []
    for number, row in enumerate(ARRIVALS):
        clean_root, root = tmp_path / f"clean{number}", tmp_path / str(number)
        clean_root.mkdir()
        root.mkdir()
        files = files_of(row["answer"])
        clean = execute(TREES[row["answer"]]["whole"], files, clean_root)
        found = judge(clean, files, execute(row["text"], files, root))
        came.append((number, found.value))
    wanted = [(number, row["came"]) for number, row in enumerate(ARRIVALS)]
    assert came == wanted
    assert {value for _, value in wanted} == {Came.RIGHT.value, Came.ASKED.value}


PREFIX = '[REPLY session="5e551011" sequence="2"]\n'
DONE = "[DONE]\nIt is done.\n[/DONE]\n[END]\n"
FLAT_YAML = "services:\nweb:\nimage: pg\nports:\n- 80:80\ndb:\nimage: pg\n"
CROWDED = "import os\nimport re\ndef a():\n    x = 1\n    y = re\n    return x, y\ndef b():\n    return os\n"


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        (f'[CREATE_FILE path="c.yaml"]\n{FLAT_YAML}[/CREATE_FILE]\n', "its indentation is gone"),
        (f'````\n[CREATE_FILE path="c.yaml"]\n{FLAT_YAML}[/CREATE_FILE]\n````\n', "its indentation is gone"),
        (f'[CREATE_FILE path="c.py"]\n{CROWDED}[/CREATE_FILE]\n', "its blank lines are gone"),
        ('[CREATE_FILE path="c.py"]\nclass A:\nx = 1\n[/CREATE_FILE]\n', "its indentation is gone"),
        (
            '[CREATE_FILE path="R.md"]\n# T\n\na\tb\nc\td\n[/CREATE_FILE]\n',
            "its table has tabs in place of its marks",
        ),
        (
            "[RUN_COMMAND]\ncat > a <<E\nfor f in x; do\ncase $f in\nx) ;;\nesac\ndone\nE\n[/RUN_COMMAND]\n",
            "its indentation is gone",
        ),
        (
            "[RUN_COMMAND]\ncat > a <<E\nfor f in x; do echo\n$f\ndone\nE\n[/RUN_COMMAND]\n",
            "its indentation is gone",
        ),
        (
            '[CREATE_FILE path="a.go"]\npackage a\n\n\nvar x = 1\n\n\nvar y = 2\n[/CREATE_FILE]\n',
            "its blank lines are doubled",
        ),
        ('[CREATE_FILE path="R.md"]\n# T\n- a\n- b\nWords.\n[/CREATE_FILE]\n', "its blank lines are gone"),
        (
            '````\n[CREATE_FILE path="R.md"]\n# T\n\n&gt; said\n[/CREATE_FILE]\n````\n',
            "its quote marks are HTML entities",
        ),
        ('[CREATE_FILE path="a.tex"]\nLet\n$\nx\n$\n[/CREATE_FILE]\n', "a $ stands alone where $$ belongs"),
        (
            '````\n[CREATE_FILE path="Makefile"]\na:\n\tfor d in *; do echo $d; done\n[/CREATE_FILE]\n````\n',
            "a $ stands alone where $$ belongs",
        ),
        ('[CREATE_FILE path="m.mk"] all: a b: \tc [/CREATE_FILE]\n', "its lines are joined into one"),
        (
            '[EDIT_FILE path="old.txt"]\n<<<<<<< SEARCH\nold\nnew\n[/EDIT_FILE]\n',
            "the markers of its edit are gone",
        ),
    ],
)
def test_what_one_body_shows_makes_the_others_doubtful(tmp_path: Path, blocks: str, why: str) -> None:
    beside = '[CREATE_FILE path="beside.txt"]\nwords\n[/CREATE_FILE]\n'
    text = f"{PREFIX}{beside}{blocks}{DONE}"
    done = execute(text, {"old.txt": b"old\n"}, tmp_path)
    assert done.files == {"old.txt": b"old\n"}
    assert done.acts == [("finished",)], "which the agent does not accept beside a problem"
    kinds = [problem.kind for problem in done.problems]
    assert kinds[0] == "CREATE_FILE"
    assert len(kinds) == 2
    assert all(why in problem.reason for problem in done.problems[:1])


@pytest.mark.parametrize(
    "body",
    [
        'path="c.yaml"]\na:\n  b: 1\nc:\n- 1\n- 2\nd:\n',
        'path="c.py"]\nimport os\n\n\ndef a():\n    return os\n\n\ndef b():\n    return 1\n',
        'path="c.py"]\nX = 1\nY = 2\nZ = 3\nA = 4\nB = 5\nC = 6\n',
        'path="R.md"]\n# T\n\n```make\na:\n\tb\n\tc\n```\n',
        'path="c.json"]\n{"a": [1, 2], "b": {"c": 1}}\n',
        'path="a.c"]\nint f() {\n  return 1;\n}\n',
        'path="R.md"]\n# T\n- a\n- b\n\nWords\n',
        'path="R.md"]\n# T\n## 1.0\n- a\n## 0.9\n- c\n',
        'path="Makefile"]\nd = x\na:\n\tfor f in $d; do echo $$f $(f); done\n',
        'path="a.tex"]\nLet $x$ cost \\$ 5.\n$$\nx\n$$\n',
        'path="a.md" unchecked="true"]\none\n\n\ntwo\n\n\nthree\n\n\nfour\n',
        'path="a.txt"]\none\n\n\ntwo\n\n\nthree\n\n\nfour\n',
        'path="a.rst"]\nOne\n===\n\n\nTwo\n===\n\n\nThree\n=====\n',
        'path="a.c"]\n#ifdef A\nint f(int a)\n{\n    a++;\nagain:\n    a++;\n    goto again;\n}\n#endif\n',
        'path="a.css"]\n' + ".a {\n  x: y;\n}\n.a:hover {\n  x: z;\n}\n" * 2,
        'path="a.py"]\nclass A:\n    """A."""\n\n    def f(self):\n        return 1\n\n\nx = 1\n\n\ny = 1\n',
    ],
)
def test_what_people_write_is_taken(tmp_path: Path, body: str) -> None:
    done = execute(f"{PREFIX}[CREATE_FILE {body}[/CREATE_FILE]\n{DONE}", {}, tmp_path)
    assert not done.problems
    assert [data.decode() for data in done.files.values()] == [body.partition("]\n")[2]]


@pytest.mark.parametrize(
    "body",
    [
        'path="a.tcl"]\nnamespace eval x {\n\ta {\n\n\t-b c\n\t}\n\td {\n\n\t-e f\n\t}\n}\n',
        'path="a.diff"]\n--- a\n+++ b\n@@ -1,4 +1,3 @@\n if (a) {\n-  b\n }\n if (c) {\n+  d\n }\n',
    ],
)
def test_in_a_code_block_all_indentation_is_gone_or_none(tmp_path: Path, body: str) -> None:
    done = execute(f"````\n{PREFIX}[CREATE_FILE {body}[/CREATE_FILE]\n{DONE}````\n", {}, tmp_path)
    assert [data.decode() for data in done.files.values()] == [body.partition("]\n")[2]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('1[CREATE_FILE path="a.txt"]\n2words\n3[/CREATE_FILE]', "was read as prose"),
        (
            '> 3 [EDIT_FILE path="a.txt"]<<<<<<< SEARCHa=======b>>>>>>> REPLACE[/EDIT_FILE]',
            "was read as prose",
        ),
        ("[RUN_COMMAND]mkdir -p bin confcat > a\nexit 0EOFls bin[/RUN_COMMAND]", "was read as prose"),
        (
            "python\nCopy code\n\nAnd this:\n\nCopy code\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]",
            "a code block of the chat is empty here",
        ),
        (
            "python\n复制代码\n\nE poi:\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]",
            "a code block of the chat is empty",
        ),
        ("go Kopieren\nUnd das:\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]", "a code block of the chat is empty"),
    ],
)
def test_a_block_that_was_not_found_stands_against_done(tmp_path: Path, line: str, said: str) -> None:
    done = execute(f"{PREFIX}{line}\n{DONE}", {"a.txt": b"a\n"}, tmp_path)
    assert done.files == {"a.txt": b"a\n"}
    assert done.problems[0].kind == "REPLY", "beside which the agent accepts no DONE"
    assert said in done.problems[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "python\nCopy code\nprint(1)\n\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]",
        "Copy code\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\nAnd:\nCopy\n\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]",
        "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\nCopy\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\nCopy\nThat is all.",
        "Download\nCopy code\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]",
    ],
)
def test_a_label_with_its_code_is_no_empty_box(tmp_path: Path, text: str) -> None:
    assert not execute(f"{PREFIX}{text}\n{DONE}", {}, tmp_path).problems


def test_two_versions_of_a_file_stand_against_done(tmp_path: Path) -> None:
    """The person may be meant to choose; one that does not parse was only corrected."""
    made = '[CREATE_FILE path="a.py"]\n{}\n[/CREATE_FILE]\n'
    two = f"{PREFIX}Option A\n{made.format('x = 1')}Option B\n{made.format('x = 2')}{DONE}"
    assert "of two versions of a.py the last" in execute(two, {}, new(tmp_path, "a")).problems[0].reason
    edit = '[EDIT_FILE path="b.py" start_line="1" end_line="1"]\nx = {}\n[/EDIT_FILE]\n'
    lines = execute(f"{PREFIX}{edit.format(1)}{edit.format(2)}{DONE}", {"b.py": b"x\n"}, new(tmp_path, "d"))
    assert "of two versions of b.py, lines 1-1, the last" in lines.problems[0].reason
    mended = f"{PREFIX}{made.format('x = (')}{made.format('x = 2')}{DONE}"
    assert not execute(mended, {}, new(tmp_path, "b")).problems
    between = f"{PREFIX}{made.format('x = 1')}[RUN_COMMAND]\npython a.py\n[/RUN_COMMAND]\n"
    assert not execute(f"{between}{made.format('x = 2')}{DONE}", {}, new(tmp_path, "c")).problems
    for number, second in enumerate(("**Option B:**", "## Alternative 2", "方案二")):
        text = f"{between}{second}\n{made.format('x = 2')}{DONE}"
        assert "of two versions" in execute(text, {}, new(tmp_path, f"e{number}")).problems[0].reason


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ('[CREATE_FILE path="a.txt"]onetwo[/CREATE_FILE]', "on one line with its tags"),
        (
            '[EDIT_FILE path="a.txt" start_line="1" end_line="2"]onetwo[/EDIT_FILE]',
            "on one line with its tags",
        ),
        (
            "[RUN_COMMAND]cat > a.sh <<'EOF' #!/bin/sh exit 0 EOF[/RUN_COMMAND]",
            "no line ends its here-document",
        ),
        ("[RUN_COMMAND]\ncat > a <<-END\nx\n    END\n[/RUN_COMMAND]", "no line ends its here-document"),
    ],
)
def test_joined_lines_are_asked_for_again(tmp_path: Path, block: str, said: str) -> None:
    done = execute(f"{PREFIX}{block}\n{DONE}", {"a.txt": b"one\ntwo\n"}, tmp_path)
    assert done.files == {"a.txt": b"one\ntwo\n"}
    assert said in done.problems[0].reason


@pytest.mark.parametrize(
    "command",
    [
        "cat > a <<-END\nx << 'y'\n\tEND",
        "cat <<A <<B\nx\nA\ny\nB",
        "echo $((1<<N)) 'cout << \"a\";' <<< WORD",
        "g++ -x c++ - <<'EOF'\ncout << \"a\" << END;\nEOF",
    ],
)
def test_a_command_with_its_here_documents_is_run(tmp_path: Path, command: str) -> None:
    done = execute(f"{PREFIX}[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n{DONE}", {}, tmp_path)
    assert done.acts == [("ran", command), ("finished",)]


@pytest.mark.parametrize("path", ["src/h.py (updated)", "a.md - new", "b.txt # see below"])
def test_a_path_with_a_remark_makes_no_file(tmp_path: Path, path: str) -> None:
    text = f'{PREFIX}[CREATE_FILE path="{path}"]\nx\n[/CREATE_FILE]\n{DONE}'
    done = execute(text, {}, new(tmp_path, "a"))
    assert not done.files
    assert "is a path with a remark" in done.problems[0].reason
    meant = execute(text.replace(f'{path}"', f'{path}" unchecked="true"'), {}, new(tmp_path, "b"))
    assert list(meant.files) == [path]


def new(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


@pytest.mark.parametrize(
    "mark",
    [
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel>final\n",
        "<channel|>",
        "assistantfinal",
        "<|END_THINKING|>",
        "...done thinking.\n\n",
        "…done thinking.\n\n",
        "<|end_of_thought|>\n",
    ],
)
def test_what_is_before_the_final_channel_is_a_draft(tmp_path: Path, mark: str) -> None:
    draft = "I try:\n[CREATE_FILE path='a.txt']\n1\n[/CREATE_FILE]\n[RUN_COMMAND]\nrm -r x\n[/RUN_COMMAND]\n"
    answer = f'{PREFIX}[CREATE_FILE path="b.txt"]\n2\n[/CREATE_FILE]\n{DONE}'
    done = execute(draft.replace("'", '"') + mark + answer, {}, tmp_path)
    assert done.files == {"b.txt": b"2\n"}
    assert done.acts == [("finished",)]
    assert any("with 2 blocks in it that were not executed" in note for note in done.notes)


def test_two_edits_put_no_fence_round_lines_unless_they_say_so(tmp_path: Path) -> None:
    """Of one that only opens nobody knows that the other closes it; it is not taken off."""
    edit = '[EDIT_FILE path="a.md"]\n<<<<<<< SEARCH\n{0}\n=======\n{1}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    edits = edit.format("make all", "```\nmake all") + edit.format("make test", "make test\n```")
    before = {"a.md": b"# T\n\nmake all\nmake test\n"}
    asked = execute(f"{PREFIX}{edits}{DONE}", before, new(tmp_path, "asked"))
    assert "a code fence that ends nowhere" in asked.problems[0].reason
    meant = edits.replace('"]', '" until="T"]').replace("[/EDIT_FILE]", "[/EDIT_FILE T]")
    done = execute(f"{PREFIX}{meant}{DONE}", before, new(tmp_path, "meant"))
    assert done.files == {"a.md": b"# T\n\n```\nmake all\nmake test\n```\n"}


def test_a_fence_of_its_own_is_part_of_a_text(tmp_path: Path) -> None:
    body = "# T\n\n```sh\nls\n```\n"
    done = execute(
        f'````\n{PREFIX}[CREATE_FILE path="a.md"]\n{body}[/CREATE_FILE]\n{DONE}````\n', {}, tmp_path
    )
    assert done.files == {"a.md": body.encode()}


@pytest.mark.parametrize(
    "body",
    [
        "</s>\n" * 50_000 + "x\n",
        "case " * 50_000 + "\nx\n",
        "> 1[CREATE_FILE path=\n" * 20_000,
        "{\n" * 50_000,
    ],
)
def test_no_body_takes_long_to_judge(body: str) -> None:
    with cpu_below(60):
        reply.read(f'{PREFIX}[CREATE_FILE path="a.sh"]\n{body}[/CREATE_FILE]\n{body}{DONE}')
