"""The terminal that waits, on a real one: answers are pasted there, words and commands are typed."""

import contextlib
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import tty
from pathlib import Path

import pytest
from prompt_toolkit.keys import Keys

from codingagent.cli.waiting_line import LineKeys
from codingagent.model.events import MessageShown
from codingagent.model.journal_entries import (
    AnswerTaken,
    OperationEnded,
    PersonSaid,
    Record,
    SessionClosed,
    TurnEnded,
)
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.journal import SessionLog, Sessions
from tests.cli.terminals import on_terminal
from tests.cli.test_amend import MESSAGE, Terminal, locked, request, terminal, words
from tests.cli.test_cli import DONE, drop, run, session_of
from tests.helpers import HANG_S, REPOSITORY, wait_until
from tests.killing import command_line_here
from tests.rows import each_row

pytestmark = [
    pytest.mark.usefixtures("plain"),
    pytest.mark.skipif(sys.platform == "win32", reason="a pty is what is tested"),
]

PROMPT = "Paste the answer"
KEEP_TITLE, OLD_TITLE = "\x1b[22;2t", "\x1b[23;2t"
ASKED = "what is this paste"
MAKE = '[CREATE_FILE path="notes.txt"]\ngrüß\tdich \n[/CREATE_FILE]\n'
REMOVE = "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "clean up") == 0
    (home / "workspace" / "build").mkdir()
    return home


def paste(terminal: Terminal, text: str, *, marked: bool = True) -> None:
    """Paste a text as terminals do, whose line ends are CR; in two halves, if marks hold it together."""
    text = text.replace("\n", "\r")
    data = (f"\x1b[200~{text}\x1b[201~" if marked else text).encode()
    half = len(data) // 2 if marked else 0
    for piece in (data[:half], data[half:]):
        while piece:
            piece = piece[terminal.write(piece) :]  # noqa: PLW2901


def enter(terminal: Terminal, text: str) -> None:
    """Type a line; the Enter comes by itself, when the rest is on the screen."""
    before = terminal.said.count(text)
    terminal.types(text)
    terminal.says(text, before + 1)
    confirm(terminal)


def confirm(terminal: Terminal) -> None:
    """Press Enter later than a line end that belongs to a paste would come."""
    pause()
    terminal.types("\r")


def pause() -> None:
    """Wait as long as a person does between two keys: what comes at once is a paste."""
    at = time.monotonic() + 0.1
    wait_until(lambda: time.monotonic() > at)


def press(terminal: Terminal, key: str) -> None:
    """Type a key; wait until something came of it."""
    pause()
    before = len(terminal.said)
    terminal.types(key)
    wait_until(lambda: len(terminal.said) > before)


def answer(home: Path, sequence: int, text: str) -> str:
    return f'[REPLY session="{session_of(home)}" sequence="{sequence}"]\n{text}[END]\n'


def taken(home: Path) -> list[bytes]:
    folder = home / "inbox" / "processed"
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.exists() else []


@pytest.mark.with_git
def test_a_whole_session_in_one_terminal(home: Path) -> None:
    """Three turns by pasting, an approval, words, a look at the changes, undo and redo."""
    made = home / "workspace" / "notes.txt"
    answers = [answer(home, n, text) for n, text in enumerate((REMOVE, MAKE, DONE), start=1)]
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        paste(asked, answers[0])
        asked.says("Approve?")
        asked.types("\x1b[200~y\r\x1b[201~")
        asked.says("pasted text is ignored: type the answer")
        asked.says("Approve?", 2)
        asked.types("y\r")
        asked.says("Request 2")
        asked.says(PROMPT, 2)
        enter(asked, "keep the licence")
        asked.says("Request 2 was rewritten")
        assert "keep the licence" in request(home, 2)
        enter(asked, "/attach nothing.txt")
        asked.says("no file in the workspace matches")
        short = home / "outbox" / "short" / f"{session_of(home)}_seq0002.txt"
        paste(asked, short.read_text("utf-8"))
        asked.says("that is request 2 itself: copy the chat's answer, then paste again")
        paste(asked, answers[1])
        asked.says("Request 3")
        enter(asked, "/diff")
        asked.says("+grüß", 2)
        enter(asked, "/undo")
        asked.says("Undid turn 2")
        assert not made.exists()
        enter(asked, "/redo")
        asked.says("Request 3 was rewritten", 2)
        assert made.read_text("utf-8") == "grüß\tdich \n"
        paste(asked, answers[2])
        # The prompt stays: there is no repository to commit to.
        asked.says("1 look  2 undo turn 2  or type the next wish; /ask asks, /quit ends")
        enter(asked, "1")
        asked.says("+grüß", 3)
        asked.says("1 look  2 undo turn 2", 2)
        enter(asked, "and a test")
        asked.says("Request 4")
        assert "The user says:\nand a test\n" in request(home, 4)
        enter(asked, "/check true")
        asked.says("Request 4 was rewritten")
        paste(asked, answer(home, 4, DONE))
        asked.says("/quit ends", 3)
        asked.leaves()
        # What to do is told in full once; then the request and its file do.
        assert asked.said.count("Then paste the chat's whole answer here") == 1
        assert asked.said.count("send this one, ~") == 4
    assert taken(home)[:3] == [text.encode() for text in answers]


def test_without_words_the_session_that_waits_goes_on(home: Path) -> None:
    """Where none waits, or nobody looks, the commands are listed."""
    with terminal(home) as asked:
        asked.says(PROMPT)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    assert run(home, "close", session_of(home)) == 0
    with terminal(home) as asked:
        asked.says("Example: codingagent new --here")
        assert asked.process.wait(HANG_S) == 0


def test_what_is_pasted_is_neither_command_nor_answer_to_a_question(home: Path) -> None:
    """Marked or not, with control characters, half typed: the person is asked, or nothing happens."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        # Nothing of it reaches the terminal as a control sequence, or is left for the question.
        paste(asked, "first\x1b]0;title\x07\n\x1b[2Jy\n1\n")
        asked.says(f"{ASKED} (24 characters, 3 lines:")
        asked.says("Its number:")
        asked.types("1\r1\r")
        asked.says("pasted text is ignored")
        asked.says("Its number:", 2)
        asked.types("3\r")
        asked.says(PROMPT, 2)
        assert "\x1b]0;title" not in asked.said
        # A command with its Enter, as a terminal with marks sends it, and as one without, or a program.
        for count, marked in enumerate((True, False), start=1):
            paste(asked, "/quit\n", marked=marked)
            if marked:
                asked.says("/quit")
                confirm(asked)
            asked.says("this was pasted: run /quit?", count)
            asked.says("Its number:", 2 + count)
            asked.types("2\r")
            asked.says(PROMPT, 2 + count)
        paste(asked, "/help")
        asked.says("/help")
        confirm(asked)
        asked.says("run /help?")
        asked.says("Its number:", 5)
        asked.types("1\r")
        asked.says("show this list")
        paste(asked, "/attach")
        asked.says("/attach")
        press(asked, "\x15")
        # The end of a paste that never began.
        asked.types("\x1b[201~")
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("cuts", [(), (4,), (9, 30), (39,)])
def test_an_answer_without_marks_comes_in_pieces(home: Path, cuts: tuple[int, ...]) -> None:
    """Cut in its first line, or before its line end: what came first was taken for typed words."""
    text = answer(home, 1, DONE)
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        for start, end in zip((0, *cuts), cuts, strict=False):
            asked.types(text[start:end])
            asked.says(text[start:end])
        paste(asked, text[cuts[-1] if cuts else 0 :], marked=False)
        asked.says("Done: All is well.")
    assert taken(home) == [text.encode()]


def test_a_paste_is_not_cut_by_a_question(home: Path) -> None:
    """What is due meanwhile waits for the rest; otherwise the line would wait for it in vain."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        asked.types("\x1b[200~first\r")
        wait_until(lambda: not asked.has_unread())
        drop(home, answer(home, 1, REMOVE))
        for _ in range(3):  # takes longer than to see the file
            subprocess.run([sys.executable, "-m", "codingagent", "--version"], check=True)
        asked.types("second\x1b[201~")
        asked.says("what is this paste (12 characters, 2 lines")
        asked.says("Its number:")
        asked.types("3\r")
        asked.says("Approve?")


@pytest.mark.deep
def test_a_paste_that_never_ends_does_not_lock_the_person_out(home: Path) -> None:
    """After ten seconds without more of it, what is due comes first."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        asked.types("\x1b[200~first\r")
        drop(home, answer(home, 1, DONE))
        asked.says("Done: All is well.")


def test_another_session_has_what_this_one_has(home: Path) -> None:
    """`/new`, after a refused one: the options of the command line, also of an earlier command."""
    given = ("--context=0", "--leave-out=*.md", "--no-conventions", "--check=true", "--protocol=json")
    assert run(home, "new", "--no-wait", "--sandbox", "off", *given, "first") == 0
    sessions = Sessions(home / "sessions")
    (first,) = (each for each in sessions.ids() if sessions.load(each).task == "first")
    with terminal(home, "resume", first) as asked:
        is_ready = lambda: PROMPT in asked.said.rpartition("Request 1")[2]  # noqa: E731
        wait_until(is_ready)
        enter(asked, "/new -")
        asked.says("/new needs a value: /new TASK")
        enter(asked, '/attach "')
        asked.says('/attach ": no closing quotation')
        # What is left out by hand is this task's own choice.
        enter(asked, "/leave other.py")
        asked.says("Request 1 was rewritten")
        enter(asked, "/new second")
        asked.says("Request 1", 3)  # the first one, rewritten, and that of the second task
        asked.says("your check passes")
        wait_until(is_ready)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    found = {each.task: each for each in map(sessions.load, sessions.ids())}
    before, after = found["first"], found["second"]
    for name in ("context", "leave_out", "conventions", "check", "protocol", "sandbox"):
        assert getattr(after.terms, name) == getattr(before.terms, name), name
    assert (before.leave_out, after.leave_out) == (("*.md", "other.py"), ("*.md",))


@pytest.mark.with_git
def test_a_sign_of_life_counts_the_files(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While they are looked through; here it is git's history that takes long."""
    folder, asked_for, programs = tmp_path / "project", tmp_path / "asked-for", tmp_path / "bin"
    for each in (folder, programs):
        each.mkdir()
    for name in "abc":
        (folder / name).touch()
    git = shutil.which("git")
    assert git
    for line in ("init -q", "add .", "-c user.name=a -c user.email=a commit -qm first"):
        subprocess.run([git, *line.split()], cwd=folder, check=True)
    os.mkfifo(asked_for)
    (programs / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *log*) read x < {asked_for};; esac\nexec {git} "$@"\n', "utf-8"
    )
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    with terminal(home, "new", "--workspace", str(folder), "look at a") as asked:
        asked.says("looking through the workspace: 3 files, ")
        asked_for.write_text("go on\n", "utf-8")
        asked.says(PROMPT)


def test_a_check_that_is_refused_does_not_end_the_wait(home: Path) -> None:
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        enter(asked, "/check sudo make")
        asked.says("is blocked by the policy")
        asked.says(PROMPT, 2)
        paste(asked, answer(home, 1, MESSAGE))
        asked.says("The model asks: type your reply")
        asked.says(PROMPT, 3)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0


def test_keys_that_edit_enter_or_search_a_line(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the editor saved is a draft; an Enter in a search does not send what was searched for."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "edited $(cat "$1")" > "$1"\n', "utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        asked.types("draft")
        asked.says("draft")
        asked.types("\x18\x05")
        asked.says("edited draft")
        asked.types("\x12")
        asked.says("I-search backward:")
        press(asked, "e")
        press(asked, "\r")
        asked.types("\x1b#")
        asked.says("Request 1 was rewritten")
    assert words(home) == ["#edited draft"]


def test_a_paste_that_began_before_the_line_was_there_is_an_answer(home: Path) -> None:
    """Until then the terminal made an LF of each line end; after that it leaves them as CR."""
    text = answer(home, 1, DONE)
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        first, rest = text.split("\n", 1)
        mixed = f"{first}\n{rest}".replace(rest, rest.replace("\n", "\r"))
        asked.types(f"\x1b[200~{mixed}\x1b[201~")
        asked.says("Done: All is well.")
    assert taken(home) == [text.encode()]


def test_a_bell_and_the_title_tell_whose_turn_it_is(home: Path) -> None:
    """In fixed words; the old title comes back, and a setting ends it."""
    words = ["--home", str(home), "resume"]
    keys = [("?2004h", "\x04")]
    shown = on_terminal(words, 80, {}, keys).raw
    assert "\x1b[22;2t\x1b]2;codingagent: your turn\x1b\\\a" in shown
    assert shown.rstrip().endswith("\x1b[23;2t")
    (home / "codingagent.toml").write_text("notify = false\n", "utf-8")
    assert "\x1b]2;" not in on_terminal(words, 80, {}, keys).raw


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.deep)])
def test_megabytes_are_pasted(home: Path, megabytes: int) -> None:
    """Byte for byte; a terminal passes on a few kilobytes at a time."""
    lines = "a line of words, as models write\n" * (megabytes * 2**20 // 33)
    text = answer(home, 1, DONE + lines)
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        paste(asked, text)
        asked.says("Done: All is well.")
    assert taken(home) == [text.encode()]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("end", ["\x03", "\x04", "/quit", signal.SIGHUP, signal.SIGTERM])
def test_the_wait_ends_and_goes_on(home: Path, end: str | signal.Signals) -> None:
    """In the middle of a line; the session waits as before."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        if isinstance(end, signal.Signals):
            asked.process.send_signal(end)
        elif end == "/quit":
            enter(asked, end)
        else:
            asked.types("half a li" if end == "\x03" else "")
            asked.says("half a li" if end == "\x03" else "")
            asked.types(end)
        status = -end if isinstance(end, signal.Signals) else 130 if end == "\x03" else 0
        assert asked.process.wait(HANG_S) == status
        wait_until(lambda: OLD_TITLE in asked.raw)
        assert asked.raw.count(KEEP_TITLE) == asked.raw.count(OLD_TITLE) == 1
        assert asked.raw.count("\x1b[?25h") > asked.raw.count("\x1b[?25l")  # shown in the end
    assert run(home, "resume", "--once") == 0


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("/att", ["/attach"]), ("/attach un", ["usual.txt"]), ("/check un", []), ("un", [])],
)
def test_a_path_is_completed_behind_a_command_that_names_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, completed: list[str]
) -> None:
    """Tab knows the files that a GLOB may mean."""
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from codingagent.cli.waiting_line import LineCompleter

    monkeypatch.chdir(tmp_path)
    (tmp_path / "unusual.txt").write_text("", "utf-8")
    known = LineCompleter({"/attach": "", "/check": ""})
    found = known.get_completions(Document(typed), CompleteEvent(completion_requested=True))
    assert [each.text for each in found] == completed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_it_fits(home: Path, columns: int) -> None:
    """A hint that does not fit is left out, not wrapped."""
    shown = on_terminal(["--home", str(home), "resume"], columns, answers=[("?2004h", "\x04")])
    assert shown.status == 0
    assert (PROMPT in shown.text) == (columns > 20)
    lines = shown.text.partition("> ")[0].split("\n")
    assert all(len(line) <= columns for line in lines if "/" not in line)


def test_only_a_terminal_that_waits_imports_the_line(tmp_path: Path) -> None:
    """Every other command starts without it, and a pipe never needs it."""
    program = (
        "import sys; from codingagent.cli import main\n"
        "for words in (['new', '--no-wait', 'x'], ['list'], ['show'], ['copy'], ['resume', '--once']):\n"
        "    assert main.run(words) == 0\n"
        "assert not [n for n in sys.modules if n.startswith('prompt_toolkit')]\n"
    )
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@each_row(
    ("before", "then_s", "is_enter"),
    [
        ("/quit", 0.005, True),
        ("/quit", 0.2, True),
        ("a\rb", 0.005, False),
        ("[REPLY]", 0.005, False),
        ("\x1b[200~/quit\x1b[201~", 0.005, False),
        ("\x1b[200~/quit\x1b[201~", 0.2, True),
        ("q", 0.005, True),
        ("\x1b[A", 0.005, True),
    ],
)
def test_a_line_end_right_after_a_paste_is_no_enter(before: str, then_s: float, is_enter: bool) -> None:
    """It belongs to the paste, also where the terminal marks none; but a program's line keeps its own."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    now = [100.0]
    with os.fdopen(theirs, encoding="utf-8") as terminal:
        keys = LineKeys(terminal, lambda: now[0])
        os.write(ours, before.encode())
        keys.read_keys()
        now[0] += then_s
        os.write(ours, b"\r")
        found = keys.read_keys()
    os.close(ours)
    assert any(key.key == Keys.ControlM for key in found) is is_enter


def worked_on(home: Path, record: Record) -> None:
    """Add a record to the session of a home, as another process that has its lock."""
    found = Home.at(home, create=False)
    state = found.load(session_of(home))
    with contextlib.closing(SessionLog(found.sessions.open(state.session_id), state)) as log:
        log.record(record)


@pytest.mark.parametrize("words", ["/undo", "/unsay"])
def test_what_takes_back_is_not_done_on_what_came_after_it_was_typed(home: Path, words: str) -> None:
    """Design, command line: what is asked for names the turn it is about."""
    drop(home, MAKE)
    assert run(home, "resume", "--once") == 0
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        with locked(home):
            enter(asked, words)
            asked.says("is using")
            worked_on(home, PersonSaid("theirs", (), now()))
        asked.says(f"{words} was typed before that")
        asked.says(PROMPT, 2)
        assert (home / "workspace" / "notes.txt").exists()
        assert "theirs" in request(home, 2)
        enter(asked, words)
        asked.says("Request 2 was rewritten")


def test_a_question_at_the_line_keeps_nobody_waiting(home: Path) -> None:
    """Design, command line: the lock is held while a process works, not while it waits."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        enter(asked, "git status")
        asked.says("Its number:")
        worked = command_line_here(home, "say", "from elsewhere")
        assert worked[0] == 0
        asked.types("1\r")
        asked.says("you said: ")
        wait_until(lambda: "The user says:\nfrom elsewhere\n\ngit status\n" in request(home))


def test_what_was_entered_as_the_session_ended_is_told(home: Path) -> None:
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        with locked(home):
            enter(asked, "keep the licence")
            asked.says("is using")
            worked_on(home, SessionClosed(now()))
        asked.says("the session was closed before this was done: keep the licence")
        assert asked.process.wait(HANG_S) == 0


def test_an_answer_that_was_pasted_for_an_earlier_request_is_not_executed_on_the_next(home: Path) -> None:
    """It names no request: another terminal took one for the request that was here."""
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        with locked(home):
            paste(asked, MAKE)
            asked.says("is using")
            worked_on(home, AnswerTaken(1, "theirs.txt", "", now()))
            worked_on(home, OperationEnded(0, MessageShown("theirs"), now()))
            worked_on(home, TurnEnded(1, (), now()))
        asked.says("nothing was done with what you pasted")
        assert not (home / "workspace" / "notes.txt").exists()
