"""Each record, from each state of a journal, while the world has changed: no traceback, no wrong byte.

Two homes are recorded, a session and a run, whose journals have every kind of record. A journal is cut
after each record, something changes meanwhile, and a command goes on. The plain run takes a part of the
combinations, the deep run a larger one.
"""

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from codingagent.checkpoints.checkpointer import git_for
from codingagent.errors import CodingAgentError
from codingagent.model import journal_entries as entries
from codingagent.storage.homes import Home
from tests.helpers import command_line, run_here
from tests.killing import tree

pytestmark = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("git"), reason="the recorded commands need a shell and git"
)

EDIT = '[EDIT_FILE path="{}"]\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'.format
RUN = "[RUN_COMMAND]\n{}\n[/RUN_COMMAND]\n".format
CREATE = '[CREATE_FILE path="{}"]\n{}\n[/CREATE_FILE]\n'.format

FIRST = {"a.txt": "one\ntwo\n", "gone.txt": "gone\n", "build/o": "o\n", "out/o": "o\n"}
# All that an operation writes; a file may hold nothing else but what the person wrote.
WRITTEN = {"", "new\n", "{}\n", "{1}\n", "gone\n", "o\n"}
WRITTEN |= {
    f"{by}{one}\n{two}\n" for by in ("", "the person's\n") for one in ("one", "1") for two in ("two", "2")
}

# No rule sees beforehand what it writes; the log tells how often it ran.
PROTECTED = (
    "python3 -c \"open('.envr' + 'c', 'w').write('{}' + chr(10)); open('../../ran', 'a').write('ran ')\""
)

ANSWERS = (
    EDIT("a.txt", "one", "1") + CREATE("new.txt", "new") + RUN(PROTECTED),
    RUN("rm -r build") + '[DELETE_FILE path="gone.txt"]\n[MOVE_FILE path="new.txt" to="moved.txt"]\n',
    CREATE(".vscode/tasks.json", "{1}") + EDIT("a.txt", "two", "2") + RUN("rm -r out"),
    "[MESSAGE]\nWhich one?\n[/MESSAGE]\n",
    '[READ_FILE path="a.txt"]\n[DONE]\nready\n[/DONE]\n',
)

OPERATIONS = (
    '{"protocolVersion": "1.0", "operations": ['
    '{"type": "createFile", "path": "new.txt", "content": "new\\n"},'
    '{"type": "shell", "command": "rm -r build"},'
    '{"type": "editFile", "path": "a.txt", "edits": [{"oldContent": "one", "newContent": "1"}]},'
    '{"type": "createFile", "path": ".vscode/tasks.json", "content": "{}\\n"}]}'
)


class Recorded:
    """A home that was recorded, its only journal, and how to lay it out again, cut."""

    def __init__(self, home: Path, journal: Path) -> None:
        self.home, self.kept = home, home.with_name(f"{home.name}-kept")
        self.name = journal.parent.name
        self.journal = journal
        shutil.copytree(home, self.kept, symlinks=True)
        self.lines = journal.read_bytes().splitlines(keepends=True)
        begun = b'{"kind":"operation_started"'
        commands = (line for line in self.lines if line.startswith(begun) and b"../ran" in line)
        self.first_command = next(commands, b"")

    def without_checkpoints(self) -> bytes:
        lines = self.journal.read_bytes().splitlines()
        return b"".join(line for line in lines if b'"kind":"checkpoint_taken"' not in line)

    def cut(self, count: int) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.kept, self.home, symlinks=True)
        kept = b"".join(self.lines[:count])
        self.journal.write_bytes(kept)
        for answer in self.home.glob("inbox/processed/*"):
            # Later answers have not come yet.
            if answer.name.encode() not in kept:
                answer.unlink()


def lay_out(home: Path) -> None:
    for name, text in FIRST.items():
        path = home / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def go(home: Path, *words: str) -> int:
    done = command_line(home, *words)
    assert done.returncode in (0, 3), done.stderr
    return done.returncode


@pytest.fixture(name="session", scope="module")
def _session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    home = tmp_path_factory.mktemp("session") / "home"
    lay_out(home)
    (home / "inbox").mkdir()
    (home / "inbox" / "earlier.txt").write_text("earlier", "utf-8")
    go(home, "new", "--no-wait", "--sandbox", "off", "--check", "true", "x")

    def drop(text: str) -> int:
        (home / "inbox" / "reply.txt").write_text(text, "utf-8")
        return go(home, "resume", "--once")

    assert drop(ANSWERS[0]) == 3
    go(home, "deny", "--reason", "no")
    go(home, "say", "more")
    go(home, "refresh")
    assert drop(ANSWERS[1]) == 3
    go(home, "approve", "--always")
    go(home, "undo")
    go(home, "undo", "--redo")
    go(home, "revoke")
    go(home, "resume", "--once", "--check", "true ", "--chats", "0")
    drop(next((home / "outbox").glob("*seq0003.txt")).read_text("utf-8"))
    assert drop(ANSWERS[2]) == 3
    go(home, "say", "meanwhile")
    assert go(home, "approve") == 3
    go(home, "approve")
    drop(ANSWERS[3])
    (session_id,) = Home.at(home, create=False).sessions.ids()
    go(home, "rename", session_id, "a name")
    go(home, "close", session_id)
    go(home, "undo")
    go(home, "say", session_id, "go on")
    go(home, "say", "--ask", "why?")
    drop("Because.\n" + CREATE("why.txt", "no"))
    drop(ANSWERS[4])
    _commit(home)
    return Recorded(home, home / "sessions" / session_id / "journal.jsonl")


def _commit(home: Path) -> None:
    """Commit in a repository that is gone again: only the record of it stays."""
    workspace = home / "workspace"
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    hook = workspace / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nfor name in $(git diff --cached --name-only); do chmod +x $name; done\n")
    hook.chmod(0o755)
    done = run_here("--home", str(home), "commit", "--whole", variables=names)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(workspace / ".git")


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    home = tmp_path_factory.mktemp("run") / "home"
    lay_out(home)
    message = home / "message.json"
    message.write_text(OPERATIONS, "utf-8")
    assert go(home, "run", str(message), "--sandbox", "off") == 3
    assert go(home, "approve") == 3
    kept = next((home / "sessions" / "runs").glob("run_*/message.json")).read_bytes()
    go(home, "deny")
    (run_id,) = Home.at(home, create=False).runs.ids()
    go(home, "undo", run_id)
    journal = home / "sessions" / "runs" / run_id / "journal.jsonl"
    journal.with_name("message.json").write_bytes(kept)
    return Recorded(home, journal)


def test_the_recorded_journals_have_every_kind_of_record(session: Recorded, run: Recorded) -> None:
    """Design, nothing is lost: what is tried below is all that a journal can hold."""
    kinds = {type(entries.decode_record(line)) for each in (session, run) for line in each.lines}
    # Candidates need the sandbox; test_candidates kills them.
    assert kinds == set(entries.Record.__args__) - {entries.CandidateBegan, entries.CandidateEnded}


# --- what changes meanwhile -------------------------------------------------------------------------


def _person_edits(home: Path) -> None:
    path = home / "workspace" / "a.txt"
    path.write_text(f"the person's\n{path.read_text('utf-8')}", "utf-8")


def _files_go(home: Path) -> None:
    for path in sorted((home / "workspace").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def _files_come_back(home: Path) -> None:
    lay_out(home)
    for name in (".envrc", ".vscode/tasks.json", "moved.txt", "new.txt"):
        (home / "workspace" / name).unlink(missing_ok=True)


def _answers_go(home: Path) -> None:
    for path in [*home.glob("inbox/processed/*.txt"), *home.glob("sessions/runs/*/message.json")]:
        path.unlink()


def _checkpoints_go(home: Path) -> None:
    for path in (home / "sessions").rglob("objects"):
        shutil.rmtree(path)


def _nothing(_: Path) -> None:
    pass


def _without_git(home: Path) -> Mapping[str, str]:
    folder = home.with_name("programs")
    folder.mkdir(exist_ok=True)
    for name in ("sh", "rm", "env"):
        if not (folder / name).exists():
            (folder / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(folder)}


_CHANGES: Mapping[str, Callable[[Path], object]] = {
    "nothing": _nothing,
    "an edited file": _person_edits,
    "no files": _files_go,
    "the first files": _files_come_back,
    "no answers": _answers_go,
    "no checkpoints": _checkpoints_go,
    "no git": _without_git,
}

_POLICIES = ((), ("--policy", "permissive"), ("--policy", "restrictive"))

_COMMANDS = (
    *(("resume", "{}", "--once", *policy) for policy in _POLICIES),
    *((word, "{}", *policy) for word in ("approve", "deny") for policy in _POLICIES[:2]),
    ("resume", "--once"),
    *(("undo", "{}"), ("undo", "{}", "--redo"), ("undo", "{}", "--force"), ("show", "{}")),
    *(("say", "{}", "words"), ("refresh", "{}"), ("diff", "{}"), ("log", "{}"), ("list",)),
)


def cases(recorded: Recorded, request: pytest.FixtureRequest) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield what to cut, change and run: a fifth of all combinations if deep, else one of 997."""
    is_deep = request.config.getoption("--deep")
    for count in range(1, len(recorded.lines) + 1):
        for change in _CHANGES:
            for words in _COMMANDS:
                chance = zlib.crc32(f"{count} {change} {words}".encode())
                if chance % (5 if is_deep else 997) == 0:
                    yield count, change, words


def run_one(recorded: Recorded, count: int, change: str, words: tuple[str, ...]) -> None:
    recorded.cut(count)
    home, name = recorded.home, recorded.name
    log = home.with_name("ran")
    log.unlink(missing_ok=True)
    case = f"cut after {count}: {recorded.lines[count - 1][:40]!r}, {change}, {words}"
    variables = _CHANGES[change](home)
    with pytest.MonkeyPatch.context() as set_:
        for key, value in (variables or {}).items() if isinstance(variables, dict) else ():
            set_.setenv(key, value)
        git_for.cache_clear()  # a process keeps what it found
        try:
            done = command_line(home, *(word.format(name) for word in words))
        except Exception as fault:
            raise AssertionError(case) from fault
        assert done.returncode in (0, 1, 2, 3), case
        assert "Traceback" not in done.stderr, case
        journals = set[bytes]()
        # A question that is gone lets the next operation ask; then it comes to rest.
        while (journal := recorded.without_checkpoints()) not in journals:
            journals.add(journal)
            assert len(journals) < 6, case
            command_line(home, "resume", name, "--once", *words[3:])
        # The journal still folds, and what it says is done is not done again.
        try:
            Home.at(home, create=False).load(name)
        except CodingAgentError as fault:
            raise AssertionError(case) from fault
        for path, (kind, data, _) in tree(home / "workspace").items():
            text = data.decode()
            assert kind != "file" or path == ".gitignore" or text in WRITTEN, (case, path, text)
        ran = log.read_text("utf-8") if log.exists() else ""
        assert ran.count("ran") <= (recorded.first_command not in recorded.lines[:count]), case


@pytest.mark.parametrize("what", ["session", "run"])
def test_no_state_and_no_change_ends_in_a_traceback(request: pytest.FixtureRequest, what: str) -> None:
    """Design, nothing is lost: a question is put again or is gone with a word, and nothing runs twice."""
    recorded = request.getfixturevalue(what)
    for case in cases(recorded, request):
        run_one(recorded, *case)
