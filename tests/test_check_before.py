"""The check before any change: once, before the first request, so that the chat knows what fails already."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.agent.check import proposal
from codingagent.model.journal_entries import CheckEnded
from codingagent.storage.homes import Home
from codingagent.workspace.workspace import Workspace
from tests.cli.test_amend import terminal
from tests.cli.test_waiting_line import enter
from tests.helpers import HANG_S, command_line, new_marker, none_left, wait_until
from tests.killing import has_lines, kill_when
from tests.sandboxes import needs_bwrap
from tests.test_check import DONE, RIGHT, WRONG, runs
from tests.warm import start_command

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the checks are lines of a shell"),
    pytest.mark.usefixtures("plain"),
]

LOGGED = "echo ran >> ../checks; "
OLD = '[CREATE_FILE path="b.py"]\nb = 1\n[/CREATE_FILE]\n' + DONE
NEW = '[CREATE_FILE path="test_c.py"]\ndef test_c(): assert 0\n[/CREATE_FILE]\n' + DONE
TESTS = "def test_old(): assert 0\ndef test_good(): pass\n"
PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider"
# What it prints, for what does not hang on how it is run.
LIKE_IT = "sh pytest"
PRINTS = """
test -e test_c.py && echo FAILED test_c.py::test_c
echo FAILED test_a.py::test_old
echo $(ls test_*.py | wc -l) failed in 1s
exit 1
"""
OPTIONS = ("--sandbox", "off", "--context", "0")


def new(root: Path, check: str, task: str = "task") -> Home:
    return begun(root, check, task)[0]


def begun(root: Path, check: str, task: str = "task", *words: str) -> tuple[Home, str]:
    """Begin a session, and return what the screen said, too."""
    how = words or OPTIONS
    done = command_line(root, "new", "--no-wait", *how, "--check", check, task)
    assert done.returncode == 0, done.stderr
    return Home.at(root, create=False), done.stdout


def drop(home: Home, text: str) -> None:
    (home.root / "inbox" / "reply.txt").write_text(text, "utf-8")


def once(home: Home) -> str:
    done = command_line(home.root, "resume", "--once")
    assert done.returncode == 0, done.stderr
    return done.stdout


def checked(home: Home) -> list[str]:
    """Return what came of each check, in order."""
    (session_id,) = home.sessions.ids()
    found = (each for each in home.records(session_id) if isinstance(each, CheckEnded))
    return [type(each.event).__name__ for each in found]


FAILS = "echo 'FAILED a.py::test_b - x'; echo 1 failed in 1s; exit 1"
TOLD = "[FAILED] CHECK: Ran"


def test_what_fails_is_known_to_the_first_request(tmp_path: Path) -> None:
    """It has the output, whoever asks anew; nothing runs it twice on the same files."""
    home, said = begun(tmp_path, f"{LOGGED} {FAILS}", "Mend it")
    first, _, _ = said.partition("Request 1: ")
    assert "your check: 1 test fails before any change: a.py::test_b" in first
    for _ in range(2):
        text = request(home, 1).partition("## Previous Command Results\n")[2]
        assert text.startswith("[FAILED] CHECK: Ran 'echo ran")
        assert "    FAILED a.py::test_b - x\n" in text
        assert "Note: this was before any change: fix what the task asks for\n" in text
        assert command_line(tmp_path, "refresh").returncode == 0
    once(home)
    assert runs(tmp_path) == 1


def test_files_that_its_failure_names_come_first_if_the_task_is_about_it(tmp_path: Path) -> None:
    """Nothing else says which file is meant."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    for number in range(9):
        (folder / f"m{number}.py").write_text("x = 1\n" * 300, "utf-8")
    (tmp_path / "printed").write_text("m7.py:2: x\n", "utf-8")
    words = ("--sandbox", "off", "--context", "500")
    for task, is_about in (("The tests fail, fix it", True), ("Add an option", False)):
        _, said = begun(tmp_path, "cat ../printed; exit 1", task, *words)
        assert ("1  m7.py" in said) == is_about


@pytest.mark.parametrize("how", ["no-wait", "pipe"])
def test_one_that_takes_longer_has_the_request_written_anew_if_it_fails(tmp_path: Path, how: str) -> None:
    """After the limit the request is there; what fails is in it once it is known, and the screen says so."""
    go_on = tmp_path / "go-on"
    check = f"{LOGGED} until test -e {go_on}; do sleep 0.05; done; {FAILS}"
    words = ("new", *OPTIONS, *["--no-wait"] * (how == "no-wait"), "--check", check, "task")
    variables = {**os.environ, "CODINGAGENT_CHECK_FIRST": "1"}
    with start_command("--home", str(tmp_path), *words, env=variables, stdout=subprocess.PIPE) as process:
        outbox = tmp_path / "outbox"
        wait_until(lambda: any(outbox.glob("*_seq0001.txt")))
        home = Home.at(tmp_path, create=False)
        assert TOLD not in request(home, 1)
        go_on.touch()
        assert process.stdout is not None
        said = b""
        for line in process.stdout:
            said += line
            if b"send this one" in line and how == "pipe":
                process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == (0 if how == "no-wait" else 130)
    assert TOLD in request(home, 1)
    assert b"request 1 has the failing tests now: paste this one" in said
    assert b"Request 1 was rewritten; send this one" in said
    assert (runs(tmp_path), checked(home)) == (1, ["CommandRan"])


def test_it_runs_again_once_settings_that_it_sees_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does what a note says sees at once whether it helped: while it waits, and when it goes on."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OWN_URL", "x")
    words = ("new", *OPTIONS, "--check", f"{LOGGED} : ${{OWN_URL:?}}", "task")
    with start_command("--home", str(tmp_path), *words, stdout=subprocess.PIPE) as process:
        outbox, said = tmp_path / "outbox", b""
        wait_until(lambda: any(outbox.glob("*_seq0001.txt")))
        home = Home.at(tmp_path, create=False)
        assert TOLD in request(home, 1)
        assert command_line(tmp_path, "config", "set", "notify", "false").returncode == 0
        (tmp_path / "config" / "codingagent" / "settings.toml").write_text('show = ["no"]\n', "utf-8")
        (tmp_path / "config" / "codingagent" / "settings.toml").write_text("", "utf-8")
        assert command_line(tmp_path, "config", "add", "pass_env", "OWN_URL").returncode == 0
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if b"send this one" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 130
    assert b"your settings changed: what commands see changes with them" in said
    assert b"your check passes, before any change" in said
    assert TOLD not in request(home, 1)
    assert runs(tmp_path) == 2
    assert command_line(tmp_path, "config", "add", "pass_env", "OTHER").returncode == 0
    drop(home, RIGHT)
    assert "your check passes" in once(home)
    assert runs(tmp_path) == 4


@pytest.mark.one_in(3)
@pytest.mark.parametrize("count", range(1, 9))
def test_a_kill_while_a_session_begins_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path, count: int
) -> None:
    """At each record: the next `resume` writes the first request, and the check was begun once at most."""
    journals = tmp_path / "sessions"
    words = ("new", "--no-wait", *OPTIONS, "--check", f"{LOGGED} {FAILS}", "task")

    def has_records() -> bool:
        lines = [path.read_bytes().count(b"\n") for path in journals.glob("*/journal.jsonl")]
        return max(lines, default=0) >= count

    kill_when(tmp_path, words, has_records)
    home = Home.at(tmp_path, create=False)
    once(home)
    (session_id,) = home.sessions.ids()
    assert home.sessions.load(session_id).is_awaiting_answer
    ran = checked(home)
    assert (TOLD in request(home, 1)) == (ran == ["CommandRan"])
    drop(home, RIGHT)
    once(home)
    assert runs(tmp_path) <= 2
    assert len(checked(home)) == 2


def test_a_key_goes_on_without_it_and_what_is_typed_is_kept(tmp_path: Path) -> None:
    """The request is written, the check goes on beside the line, and its failure comes into the request."""
    go_on = tmp_path / "go-on"
    check = f"{LOGGED} until test -e {go_on}; do sleep 0.05; done; {FAILS}"
    with terminal(tmp_path, "new", *OPTIONS, "--check", check, "task") as asked:
        asked.says("your check runs first; any key goes on without it")
        wait_until(lambda: runs(tmp_path) == 1)
        asked.types("half a w")
        asked.says("Paste the answer")
        asked.says("half a w")
        go_on.touch()
        asked.says("your check: 1 test fails before any change: a.py::test_b")
        asked.says("request 1 has the failing tests now: paste this one")
        asked.says("half a w", 2)
        asked.types("\x03")
        assert asked.process.wait(HANG_S) == 130
    home = Home.at(tmp_path, create=False)
    assert TOLD in request(home, 1)
    assert once(home).count("your check") == 0
    assert runs(tmp_path) == 1


def test_an_answer_that_comes_meanwhile_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is taken at once and whole; the check then runs after it, as ever."""
    monkeypatch.setenv("CODINGAGENT_CHECK_FIRST", "1")
    marker = new_marker()
    check = f"{LOGGED} test -e a.txt || exec sleep {marker}"
    with none_left(marker):
        words = ("--home", str(tmp_path), "new", *OPTIONS, "--check", check, "task")
        with start_command(*words) as process:
            wait_until(lambda: runs(tmp_path) == 1)
            home = Home.at(tmp_path, create=False)
            drop(home, RIGHT + DONE)
            assert process.wait(HANG_S) == 0
    assert checked(home) == ["Interrupted", "CommandRan"]
    assert (tmp_path / "workspace" / "a.txt").read_text("utf-8") == "right\n"


@pytest.mark.parametrize("end", ["", DONE])
def test_a_key_skips_it_where_only_prose_changed(tmp_path: Path, end: str) -> None:
    """The next request says so, DONE counts, and code that changes later is checked."""
    check = f"{LOGGED} test ! -e doc.md || test -e b.py || exec sleep {(marker := new_marker())}"
    prose = '[CREATE_FILE path="doc.md"]\nWords\n[/CREATE_FILE]\n'
    with none_left(marker), terminal(tmp_path, "new", *OPTIONS, "--check", check, "t") as asked:
        asked.says("Paste the answer")
        home = Home.at(tmp_path, create=False)
        drop(home, prose + end)
        asked.says("your check runs, though only prose changed; any key goes on without it")
        wait_until(lambda: runs(tmp_path) == 2)
        asked.types("x")
        asked.says("DENIED")
        asked.says("Done" if end else "Request 2")
        asked.types("\x15\x04")
        asked.process.wait(HANG_S)
    assert checked(home) == ["CommandRan", "Denied"]
    if not end:
        assert "\nCHECK was not run: the user skipped it, as only prose" in request(home, 2)
        drop(home, OLD)
        once(home)
        assert checked(home)[2:] == ["CommandRan"]


@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_one_that_was_stopped_is_not_run_again(tmp_path: Path, how: str) -> None:
    """No command that had started is started again; the answer is taken without it."""
    marker = new_marker()
    check = f"{LOGGED} test -e a.txt || exec sleep {marker}"
    words = ("new", *OPTIONS, "--check", check, "task")
    with none_left(marker):
        if how == "kill":
            assert kill_when(tmp_path, words, lambda: runs(tmp_path) == 1)
        else:
            with start_command("--home", str(tmp_path), *words) as process:
                wait_until(lambda: runs(tmp_path) == 1)
                process.send_signal(signal.SIGINT)
                assert process.wait(HANG_S) == 130
    home = Home.at(tmp_path, create=False)
    drop(home, RIGHT)
    once(home)
    assert runs(tmp_path) == 2
    assert checked(home) == ["Interrupted", "CommandRan"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("count", range(2, 12))
def test_a_kill_at_each_record_runs_neither_it_nor_the_answer_twice(tmp_path: Path, count: int) -> None:
    """Before the answer and after it the check is begun once at most, and all of the answer is done."""
    home = new(tmp_path, f"{LOGGED} test -e a.txt")
    (session_id,) = home.sessions.ids()
    journal = tmp_path / "sessions" / session_id / "journal.jsonl"
    drop(home, RIGHT + "[RUN_COMMAND]\necho once >> commands\n[/RUN_COMMAND]\n")
    kill_when(tmp_path, ("resume", "--once"), has_lines(journal, count))
    once(home)
    session = home.sessions.load(session_id)
    assert (session.sequence, session.is_awaiting_answer) == (2, True)
    assert (tmp_path / "workspace" / "a.txt").read_text("utf-8") == "right\n"
    assert len(checked(home)) == 2
    assert runs(tmp_path) <= 2
    log = tmp_path / "workspace" / "commands"
    assert not log.exists() or log.read_text("utf-8") == "once\n"


def test_it_can_be_left_to_the_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check_first = 0`: it runs before the answer is executed, and no other turn runs it first."""
    monkeypatch.setenv("CODINGAGENT_CHECK_FIRST", "0")
    home = new(tmp_path, f"{LOGGED} ls")
    assert runs(tmp_path) == 0
    drop(home, WRONG)
    said = once(home)
    before, _, after = said.partition("answer 1:")
    assert "your check passes, before any change" in before
    assert "check: " in after
    drop(home, RIGHT)
    assert "your check" not in once(home)
    assert runs(tmp_path) == 3


def test_a_command_that_answers_and_an_accepted_file_come_after_it_too(tmp_path: Path) -> None:
    """No way to the first answer leaves it out."""
    home = new(tmp_path / "a", LOGGED)
    answer = tmp_path / "answer.txt"
    answer.write_text(RIGHT + DONE, "utf-8")
    command_line(tmp_path / "a", "resume", "--reply-with", f"cat {answer}")
    assert checked(home) == ["CommandRan"] * 2
    home = new(tmp_path / "b", LOGGED)
    command_line(tmp_path / "b", "resume", "--once", "--accept", str(answer))
    assert checked(home) == ["CommandRan"] * 2


@pytest.mark.with_git
def test_what_it_changes_is_undone_with_the_first_turn(tmp_path: Path) -> None:
    """As what a check changes in a turn; the person's files are as they were."""
    file = tmp_path / "workspace" / "mine.txt"
    file.parent.mkdir()
    file.write_text("mine\n", "utf-8")
    home = new(tmp_path, "echo formatted > mine.txt")
    drop(home, WRONG)
    once(home)
    assert file.read_text("utf-8") == "formatted\n"
    assert command_line(tmp_path, "undo").returncode == 0
    assert file.read_text("utf-8") == "mine\n"
    assert not (tmp_path / "workspace" / "a.txt").exists()


@pytest.fixture(name="old")
def _old(tmp_path: Path) -> Path:
    """A workspace one of whose tests fails."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "test_a.py").write_text(TESTS, "utf-8")
    (tmp_path / "workspace" / "pytest").write_text(PRINTS, "utf-8")
    return tmp_path


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("task", "check", "text", "is_done"),
    [
        ("Add b.py", PYTEST, OLD, True),
        ("Add b.py", LIKE_IT, OLD, True),
        ("Add b.py", LIKE_IT, NEW, False),  # another one fails
        ("Add b.py, and make the tests pass", LIKE_IT, OLD, False),  # it is what the task is about
        ("Mend what test_old shows", LIKE_IT, OLD, False),
        ("See test_a.py", LIKE_IT, OLD, False),
        ("Add b.py", LIKE_IT, DONE, False),  # nothing was done
        ("Add b.py", f"{PYTEST} -x", OLD, False),  # what comes after the first is unknown
        ("Add b.py", f"{LIKE_IT} | grep failed; false", OLD, False),  # no names
        ("Add b.py", f"{LIKE_IT}; true && false", OLD, False),  # more than the tests may fail
    ],
)
def test_done_counts_where_nothing_fails_but_what_failed_before(
    old: Path, task: str, check: str, text: str, is_done: bool
) -> None:
    """Only where all failing tests are known by name, and the task does not ask for them."""
    home = new(old, check, task)
    drop(home, text)
    said = once(home)
    (session_id,) = home.sessions.ids()
    assert home.sessions.load(session_id).is_complete == is_done
    assert ("it fails only where it failed before any change, so DONE counts" in said) == is_done


def test_the_model_is_told_what_failed_before_and_never_to_mend_it(old: Path) -> None:
    """In the results and in PROMPT; what is new is still to be mended first."""
    home = new(old, LIKE_IT)
    drop(home, WRONG)
    once(home)
    text = " ".join(request(home, 2).split())
    assert "Note: failed before any change, too: test_a.py::test_old" in text
    assert "all of it failed before any change, too: fix it only if the task asks for it" in text
    assert "[DONE] is accepted all the same." in text
    drop(home, NEW.replace(DONE, ""))
    once(home)
    text = " ".join(request(home, 3).split())
    assert "Note: failed before any change, too: test_a.py::test_old" in text
    assert "(see CHECK above): fix first what did not fail before any change; [DONE] is not accepted" in text


def request(home: Home, sequence: int) -> str:
    (path,) = home.mailbox.outbox.glob(f"*_seq000{sequence}.txt")
    return path.read_text("utf-8")


def test_what_the_model_ran_itself_is_not_shown_twice(tmp_path: Path) -> None:
    """The check's output goes to the model once."""
    home = new(tmp_path, "echo said once; exit 3")
    drop(home, WRONG + "[RUN_COMMAND]\necho said once; exit 3\n[/RUN_COMMAND]\n")
    once(home)
    results = request(home, 2).partition("## Previous Command Results\n")[2]
    assert results.count("Output: said once") == 1
    assert "Note: see CHECK below" in results


def test_it_is_not_run_where_an_edit_failed(tmp_path: Path) -> None:
    """It would speak of half a change; one line says so, and DONE waits for it."""
    home = new(tmp_path, LOGGED)
    for end in ("", DONE):  # that DONE was not accepted says it, too
        drop(home, RIGHT + '[DELETE_FILE path="none"]\n' + end)
        said = once(home)
        assert runs(tmp_path) == 1  # before the answer
        assert ("note: the check was not run, because an edit failed" in said) == (not end)
    drop(home, DONE)
    once(home)
    assert runs(tmp_path) == 2
    (session_id,) = home.sessions.ids()
    assert home.sessions.load(session_id).is_complete


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("A=b pyest -q", "can't start: there is no program `pyest` on your PATH"),
        ("./no.sh", "can't start: there is no program `./no.sh`"),
        ("cd / && pyest", "can't start: there is no program `pyest` on your PATH"),
        ("touch x.sh; ./x.sh", "fails before any change: /bin/sh: 1: ./x.sh: Permission denied"),
        (f"{sys.executable} -c 'import nope'", f"No module named 'nope': here `{sys.executable}` is "),
    ],
)
def test_why_it_can_not_start_is_told(tmp_path: Path, check: str, said: str) -> None:
    """What a person must mend they learn, and not the model."""
    home, shown = begun(tmp_path, check)
    assert said in shown
    assert ("CHECK: Ran" in request(home, 1)) != ("can't start" in said)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needs_bwrap()
    home = tmp_path / "own"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.with_git
def test_what_the_sandbox_does_not_show_is_told(tmp_path: Path) -> None:
    needs_bwrap()
    tool = tmp_path / "elsewhere" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n", "utf-8")
    tool.chmod(0o755)
    _, shown = begun(tmp_path, "../elsewhere/tool -q", "t", "--sandbox", "require")
    assert "/elsewhere/tool is not visible in the sandbox" in shown


@pytest.mark.with_git
def test_what_a_projects_tools_will_lack_is_told_before_the_first_carry(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `new` the first two, by `doctor` each file; no longer once it is there, or with a network.

    The check runs anew then, before the first answer.
    """
    (own_home / "bin").mkdir()
    for name in ("node", "go", "cargo", "git"):
        (own_home / "bin" / name).write_text("#!/bin/sh\n", "ascii")
        (own_home / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(own_home / "bin"))
    folder = tmp_path / "one" / "workspace"
    folder.mkdir(parents=True)
    files = {
        "package.json": '{"devDependencies": {"a": "1"}}',
        "go.mod": "module a\nrequire b v1\n",
        "Cargo.toml": '[package]\nname = "a"\n[dependencies]\nb = { path = "../b" }\n',
        "mix.exs": "defmodule A do\nend\n",
        "pyproject.toml": "[tool.ruff]\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    fetch = "package.json: commands have no network, and its packages are not there: `npm install` first"
    lost = "mix.exs: there is no program `mix` on your PATH"
    home, shown = begun(tmp_path / "one", "test -d node_modules", "t", "--sandbox", "require")
    assert fetch in shown
    assert shown.count("its packages are not there") == 2
    assert lost not in shown
    (folder / "node_modules").mkdir()
    drop(home, RIGHT)
    assert "your check passes, before any change" in once(home)
    assert "its packages" not in begun(tmp_path / "one", "true", "t", "--network", "--sandbox", "require")[1]
    (own_home / "go" / "pkg").mkdir(parents=True)
    _, shown = begun(tmp_path / "one", "true", "t", "--sandbox", "require")
    assert lost in shown
    assert "its packages" not in shown
    said = command_line(tmp_path / "one", "doctor").stdout
    assert "toolchain: package.json: its tool is on your PATH, and its packages are there" in said
    assert f"toolchain: {lost}" in said
    assert "pyproject" not in said


LOOKUP = "python3 -c 'import socket; socket.getaddrinfo(\"a.invalid\", 1)'"
HIDDEN = "in the sandbox ~/data/models is hidden: codingagent config add show '~/data/models'"
# What fails, and what is told of it; nothing where the sandbox is not the cause.
CAUSES = [
    ("cat ~/data/models/one.txt", HIDDEN),
    ("cd ~/data && cat models/one.txt", "in the sandbox ~/data is hidden"),
    ("own-wrapper", HIDDEN),
    ("own-python", HIDDEN),
    ("own-wrapper --help | grep -q x", HIDDEN),
    ("own-python -c 'assert 1 > 2'", ""),
    ("own-python -c 'import other'", ""),
    ("echo ~/data/models; echo ok; echo 1 failed; exit 1", ""),
    ("touch /usr/x", "the sandbox lets commands write to the workspace (not its .git)"),
    ("cat ~/.ssh/id_rsa", ""),
    ("echo ~/... '~/.' $HOME// ~//etc/passwd; exit 1", ""),
    ("cat /mnt$HOME/data/models/one.txt", ""),
    ("cat ~/data/nothing.txt", ""),
    (LOOKUP, "the network is off in the sandbox"),
    ("echo \"KeyError: 'OWN_URL'\"; exit 1", "commands do not see your variable OWN_URL: codingagent"),
    ("sh -c ': \"${OWN_URL:?}\"'", "commands do not see your variable OWN_URL"),
    ("sh -c ': \"${OWN_TOKEN:?}\"'", "commands do not see your variable OWN_TOKEN: it looks like a secret"),
    ("sh -c ': \"${OWN_DSN:?}\"'", "commands do not see your variable OWN_DSN: it looks like a secret"),
    ("echo \"KeyError: 'OTHER_URL'\"; exit 1", ""),
    ("echo getaddrinfo EAI_AGAIN", ""),
]


@pytest.mark.with_git
@pytest.mark.parametrize(("line", "said"), CAUSES)
@pytest.mark.one_in(3)
def test_the_cause_in_the_sandbox_is_told_to_both(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    """To the person and to the model, with what helps; no longer once that was done."""
    for name in ("data/models/one.txt", ".ssh/id_rsa", "bin/own-wrapper"):
        (own_home / name).parent.mkdir(parents=True, exist_ok=True)
        (own_home / name).write_text("#!/bin/sh\nexec cat ${HOME}/data/models/one.txt\n", "ascii")
    (own_home / "data" / "models" / "weights.py").touch()
    (own_home / "bin" / "own-python").write_text(
        '#!/bin/sh\n[ "$*" ] || set -- -c "import weights"\n'
        'PYTHONPATH="$HOME/data/models" exec python3 "$@"\n',
        "ascii",
    )
    for name in ("own-wrapper", "own-python"):
        (own_home / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{own_home}/bin{os.pathsep}{os.environ['PATH']}")
    for name, value in (("URL", "x"), ("TOKEN", "x"), ("DSN", "postgres://me:aiR7ou2Nee9t@db/x")):
        monkeypatch.setenv(f"OWN_{name}", value)
    home, shown = begun(tmp_path / "one", line, "t", "--sandbox", "require")
    if not said:
        assert not re.search("is hidden|network is off|do not see|lets commands", shown)
        return
    assert f"note: {said}" in shown
    assert "pass_env" not in shown or "secret" not in said
    assert f"Note: {said}" in request(home, 1)
    monkeypatch.setenv("CODINGAGENT_SHOW", f"{own_home}/data")
    monkeypatch.setenv("CODINGAGENT_PASS_ENV", "OWN_URL,OWN_TOKEN,OWN_DSN")
    _, shown = begun(tmp_path / "two", line, "t", "--sandbox", "require")
    assert ("note:" in shown) == (line in (LOOKUP, "touch /usr/x"))


def test_one_is_proposed_and_run_only_when_it_is_accepted(tmp_path: Path) -> None:
    """A number accepts it, in the terminal that waits."""
    (tmp_path / "workspace").mkdir()
    makefile = tmp_path / "workspace" / "Makefile"
    makefile.write_text(f"test:\n\t@{LOGGED}exit 1\n", "utf-8")
    with terminal(tmp_path, "new", *OPTIONS, "task") as asked:
        asked.says("you named no check: type 1 to run `make test` now and after changes")
        asked.says("Paste the answer")
        assert runs(tmp_path) == 0
        enter(asked, "1")
        asked.says("your check fails before any change: ")
        assert runs(tmp_path) == 1


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("pyproject.toml", '[project.optional-dependencies]\ndev = ["pytest>=8"]\n', "pytest"),
        ("pyproject.toml", "[project]\n", ""),
        ("pytest.ini", "", "pytest"),
        ("package.json", '{"scripts": {"test": "jest"}}', "npm test"),
        ("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}', ""),
        ("Cargo.toml", "[package]\n", "cargo test"),
        ("go.mod", "module x\n", "go test ./..."),
        ("Makefile", "all:\n", ""),
        ("README", "pytest", ""),
        (".aider.conf.yml", 'model: x\ntest-cmd: "make -s check"  \n', "make -s check"),
        (".aider.conf.yml", "# test-cmd: no\ntest-cmd:\n", ""),
    ],
)
def test_a_file_says_how_the_tests_run(tmp_path: Path, name: str, text: str, command: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with contextlib.closing(Workspace(tmp_path)) as workspace:
        assert proposal(workspace) == command
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / ".venv" / "bin" / "pytest").touch()
        assert proposal(workspace) == (".venv/bin/pytest" if command == "pytest" else command)
