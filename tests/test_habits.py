"""Three people's habits, start to end, by the installed command and by what README tells of it.

The chat is played by a program that knows nothing but the request's text.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.helpers import HANG_S, wait_until

COMMAND = Path(sys.executable).with_name("codingagent")

# What a model would do: read what is listed, mend what it sees, look at the results, end. The first
# mending is wrong, so that what follows hangs on what the requests say of it.
CHAT = r"""
import re, sys

request = sys.stdin.read()
protocol, _, context = request.partition("=== CONTEXT ===")
session = re.search(r"^Session: (\w+)$", request, re.M)[1]
sequence = re.search(r"^Sequence: (\d+)$", request, re.M)[1]
context, _, prompt = context.partition("=== PROMPT ===")
results = context.partition("## Previous Command Results")[2].partition("\n## ")[0]
shown = dict(re.findall(r"^--- (\S+)[^\n]* ---\n(.*?)^--- end \1 ---$", context, re.M | re.S))
assert "[EDIT_FILE path=" in protocol, "the guide tells how"

def edit(line, better):
    print(f'[EDIT_FILE path="src/calc.py"]\n<<<<<<< SEARCH\n{line}\n=======')
    print(f"{better}\n>>>>>>> REPLACE\n[/EDIT_FILE]")

def test():
    print("[RUN_COMMAND]\npython3 -m unittest -q\n[/RUN_COMMAND]")

print(f'Let me see.\n\n[REPLY session="{session}" sequence="{sequence}"]')
source = shown.get("src/calc.py", "")
returns = re.search(r"^ +return .*$", source, re.M)
if re.search(r"\[OK\] (CHECK|RUN_COMMAND): ", results) and "[FAILED]" not in results:
    print("[DONE]\nThe tests pass" + (", also on 3.9" if "Python 3.9" in prompt else "") + ".\n[/DONE]")
elif returns is None:
    assert "src/calc.py" in context, "it is listed"
    print('[READ_FILE path="src/calc.py"]')
elif "b - a" in source:
    edit(returns[0], "    return a + b")
    test()
else:
    edit(returns[0], "    return b - a")
    test()
print("[END]")
"""

SOURCE = "def add(a, b):\n    return a - b\n"
TEST = """import unittest

from src.calc import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""


def lay(folder: Path) -> None:
    """Lays the code that is to be mended in a folder."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "__init__.py").touch()
    (folder / "src" / "calc.py").write_text(SOURCE)
    (folder / "test_calc.py").write_text(TEST)


def is_mended(folder: Path) -> bool:
    return (folder / "src" / "calc.py").read_text() == SOURCE.replace("a - b", "a + b")


@pytest.fixture(name="variables")
def _variables(tmp_path: Path) -> dict[str, str]:
    """A person's own environment, with a folder of the person's; of ours nothing is set."""
    kept = {name: value for name, value in os.environ.items() if "CODINGAGENT" not in name}
    (tmp_path / "person").mkdir()
    who = {"HOME": str(tmp_path / "person"), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": "A Person", f"GIT_{role}_EMAIL": "person@example.org"}
    return kept | who


@pytest.fixture(name="chat")
def _chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.py"
    path.write_text(CHAT)
    return path


def ask(chat: Path, request: str) -> str:
    """Return the chat's answer to a request."""
    return subprocess.run(
        [sys.executable, chat], input=request, capture_output=True, text=True, check=True
    ).stdout


def run(
    folder: Path, variables: dict[str, str], *words: str | Path, status: int = 0
) -> "subprocess.CompletedProcess[str]":
    """Types a command line in a folder."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_answers_saved_by_hand_while_new_waits(tmp_path: Path, variables: dict[str, str], chat: Path) -> None:
    """A folder of one's own: code in workspace/, `new` waits, each answer is saved into inbox/."""
    folder = tmp_path / "own"
    lay(folder / "workspace")
    answers = 0
    with (
        subprocess.Popen(
            [COMMAND, "new", "Mend", "add"],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
        contextlib.ExitStack() as at_the_end,
    ):
        at_the_end.callback(process.kill)  # it would wait for ever for the answer that failed
        assert process.stdout is not None
        for request, inbox in turns_told(process.stdout):
            answers += 1
            if answers > 8:
                process.kill()
            text = ask(chat, Path(request).read_text("utf-8"))
            # As an editor saves: the first half, and the rest a little later.
            with (Path(inbox) / f"Answer no. {answers}.txt").open("w") as file:
                file.write(text[: len(text) // 2])
                file.flush()
                file.write(text[len(text) // 2 :])
        assert process.wait(HANG_S) == 0
    assert answers == 3  # the first request shows the file that the task needs
    assert is_mended(folder / "workspace")
    assert "complete" in run(folder, variables, COMMAND, "list").stdout
    diff = run(folder, variables, COMMAND, "diff").stdout
    assert "-    return a - b" in diff
    assert "+    return a + b" in diff
    run(folder, variables, COMMAND, "undo", "--turns", "2")
    assert (folder / "workspace" / "src" / "calc.py").read_text() == SOURCE


def turns_told(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the file to send and the folder to save in, each time that a person is told what to send."""
    request = inbox = ""
    for line in lines:
        if found := re.search(r"Request \d+: (/\S+_seq\d+\.txt) ", line):
            # This chat remembers nothing: it needs the whole request each time.
            request = found[1].replace("/outbox/short/", "/outbox/")
        elif found := re.search(r"save the answer as a \.txt file in (/\S+)$", line):
            inbox = found[1]  # which is told once
        else:
            continue
        if inbox:
            yield request, inbox


@pytest.mark.deep
def test_inside_a_repository_from_a_subfolder(tmp_path: Path, variables: dict[str, str], chat: Path) -> None:
    """`new --here`; the home is found from below, git never sees it, and the person commits."""
    folder = tmp_path / "project"
    lay(folder)

    def git(*words: str) -> str:
        return run(folder, variables, "git", *words).stdout

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "begin")
    new = run(folder, variables, COMMAND, "new", "--here", "--no-wait", "Mend add")
    assert git("status", "--porcelain", "--ignored=no") == ""
    below = folder / "src"
    home = folder / ".codingagent"
    session_id = re.findall(r"resume ([0-9a-f]{8})", new.stdout)[0]

    def typed(*words: str) -> str:
        return run(below, variables, COMMAND, *words).stdout

    assert session_id in typed("list")
    typed("say", "Python 3.9 must still work")
    sequence = 0
    said = ""
    while "Done: " not in said:
        sequence += 1
        request = home / "outbox" / f"{session_id}_seq{sequence:04d}.txt"
        answer = ask(chat, request.read_text("utf-8"))
        (home / "inbox" / "answer.txt").write_text(answer)
        said = typed("resume", "--once")
        assert sequence < 8, request.read_text("utf-8")
        # What the answer changed, and nothing of ours.
        assert git("status", "--porcelain") in ("", " M src/calc.py\n")
    assert "complete" in typed("list")
    assert is_mended(folder)
    assert "src/calc.py" in typed("show")
    assert "+    return a + b" in typed("diff", session_id)
    assert "Python 3.9 must still work" in typed("log")
    git("add", "-A")
    git("commit", "-qm", "mend add")
    assert git("show", "--stat", "--format=", "--name-only").split() == ["src/calc.py"]
    assert git("status", "--porcelain") == ""


@pytest.mark.deep
def test_driven_by_a_command_line_model(tmp_path: Path, variables: dict[str, str], chat: Path) -> None:
    """`new --here --check … --reply-with …` goes on by itself to DONE, which the check has to allow."""
    folder = tmp_path / "project"
    lay(folder)
    variables = {**variables, "MODEL_KEY": "only for the model"}
    line = f'test -n "$MODEL_KEY" && {shlex.quote(sys.executable)} {shlex.quote(str(chat))}'
    done = run(
        folder,
        variables,
        *(COMMAND, "new", "--here", "--context", "0", "Mend add"),
        *("--check", "python3 -m unittest -q", "--reply-with", line),
    )
    assert is_mended(folder)
    assert done.stdout.count("FAILED check: python3 -m unittest -q") == 1
    assert done.stdout.count("ok     check: ") == 1
    assert done.stderr == ""
    (first,) = (folder / ".codingagent" / "outbox").glob("*_seq0001.txt")
    assert "`python3 -m unittest -q`; [DONE] is accepted only when that succeeds" in (
        first.read_text("utf-8")
    )
    requests = sorted((folder / ".codingagent" / "outbox").glob("*.txt"))
    # The failed check names the test; it is in the request without being asked for.
    assert any("named in an output above" in path.read_text("utf-8") for path in requests)
    wait_until(lambda: "complete" in run(folder, variables, COMMAND, "list").stdout)


@pytest.mark.deep
def test_files_that_the_person_names_spare_a_turn(
    tmp_path: Path, variables: dict[str, str], chat: Path
) -> None:
    """`--attach` from a subfolder: the model need not ask, and mends in its first answer."""
    folder = tmp_path / "project"
    lay(folder)
    words = ("new", "--here", "--no-wait", "--attach", "src/*.py", "Mend add")
    run(folder, variables, COMMAND, *words)
    (request,) = (folder / ".codingagent" / "outbox").glob("*.txt")
    assert "[EDIT_FILE" in ask(chat, request.read_text("utf-8"))
    run(folder / "src", variables, COMMAND, "say", "--attach", "../test_calc.py", "and mind this")
    text = request.read_text("utf-8")
    assert "--- src/calc.py ---" in text
    assert "--- test_calc.py ---" in text
    assert "and mind this" in text
    done = run(folder, variables, COMMAND, "new", "--here", "x", "--attach", "nix", status=2)
    assert done.stderr.count("\n") == 1
