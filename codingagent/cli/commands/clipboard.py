"""The clipboard, of the system or the terminal, and the commands copy and paste, which also take pipes."""

import base64
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.agent.answers import save_answer
from codingagent.agent.tried import named
from codingagent.cli import command_table, layout, task_input
from codingagent.cli.commands.common import home_of, settings_of, waiting_of
from codingagent.cli.commands.options import WaitingSessionName, option
from codingagent.cli.stdio import be_utf8, is_terminal
from codingagent.errors import UsageError, WorkError, disk_errors
from codingagent.model import session_state
from codingagent.model.settings import chats, pasted
from codingagent.process.runner import run_tool
from codingagent.prompt import guide, tokens
from codingagent.storage import homes, mailbox
from codingagent.workspace import programs

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation

app = typer.Typer()
# The words around the text of a part; a chat that takes less than this is useless.
_FRAME_CHARACTERS = 400
SMALLEST_CHARACTERS = 1_000
# xterm and others drop longer texts; tmux passes on about as much.
_TERMINAL_LIMIT_BYTES = 74_000
_PATIENCE_S = 5.0
_SET = "`tmux set -s set-clipboard external`, `tmux set -as terminal-features ',*:clipboard'`"
_REMEDY = "attach the file itself, or pipe an answer: `codingagent paste < FILE`"
if os.name == "nt":  # PowerShell has no `<`
    _REMEDY = "attach the file itself, or save an answer in the inbox as .txt"
NONE = "no program for it here"
INSTALL = f"on a desktop install xclip (on Wayland: wl-clipboard), or {_REMEDY}"


@app.command(epilog="Example: codingagent copy --split 8000", name="copy")
def _copy(
    context: typer.Context,
    session: WaitingSessionName = None,
    whole: Annotated[bool, option("whole")] = False,
    split: Annotated[int | None, option("split", min=SMALLEST_CHARACTERS)] = None,
    candidate: Annotated[int | None, option("whose", min=1)] = None,
) -> None:
    """Put the current request on the clipboard; in a pipe, print it. The short one, if there is one."""
    home = home_of(context)
    state = waiting_of(home, session)
    if candidate is not None:
        own = named(home, state, candidate)
        home, state = own.home, own.session or state
    session_state.check_request_waits(state)
    waiting = () if whole else home.mailbox.waiting_paths(state.session_id, state.sequence)
    path = (*waiting, home.mailbox.outbox_path(state.session_id, state.sequence))[0]
    with disk_errors(f"{path} can't be read"):
        text = path.read_text("utf-8")
    # Its parts, also in `outbox/parts/`, if it is longer than the person's chat takes.
    takes = pasted(settings_of(home, state, {}, executes=False).chat) if is_terminal(sys.stdout) else None
    limit = split or (takes if takes and len(text) > takes else None)
    pieces = (text,) if limit is None else in_parts(text, limit)
    names = [path] if limit is None else home.mailbox.write_parts(path.stem, pieces)
    if not is_terminal(sys.stdout):
        # The reader of the pipe has its own way to the clipboard.
        be_utf8(sys.stdout)
        sys.stdout.write(text if limit is None else "".join(f"{name}\n" for name in names))
        return
    for number, (name, piece) in enumerate(zip(names, pieces, strict=True), start=1):
        done, if_not = put(piece, home.root, Path(state.workspace))
        size = layout.size(len(piece), tokens.estimate(piece))
        for line in filter(None, (f"{name.name} {done} ({size}): paste it into the chat", if_not)):
            sys.stdout.write(layout.plain_lines(layout.hang([(line, "")], layout.look_of(sys.stdout), 2)))
        if number < len(pieces):
            sys.stdout.write("then press Enter for the next part\n")
            sys.stdout.flush()
            if not sys.stdin.readline():
                raise UsageError(f"only {number} of {len(pieces)} parts were copied")


@app.command(epilog="Example: codingagent paste --editor", name="paste")
def _paste(
    context: typer.Context,
    session: WaitingSessionName = None,
    editor: Annotated[bool, option("editor")] = False,
) -> None:
    """Save the chat's answer in the inbox: from a pipe, else from the clipboard."""
    home = home_of(context)
    state = waiting_of(home, session)
    if editor:
        data = task_input.edited("answer.txt")
    elif not is_terminal(sys.stdin):
        # As bytes: the inbox detects the encoding.
        data = sys.stdin.buffer.read(mailbox.REPLY_LIMIT_BYTES + 1)
    else:
        data = read().encode("utf-8", "replace")
    path, owner = save_answer(home, state, data, is_named=session is not None)
    way = command_table.runnable(f"`codingagent resume {owner}`")
    sys.stdout.write(f"saved as {path}; a waiting terminal applies it now, otherwise run {way}\n")


@app.command(epilog="Example: codingagent guide --for claude > guide.txt", name="guide")
def _guide(
    chat: Annotated[str, option("guide for", " ".join(chats()))] = "custom",
    copy: Annotated[bool, option("guide copy")] = False,
) -> None:
    """Print the guide for a chat to keep, and how to put it there; requests then only name it."""
    known, name = chats(), {"project": "chatgpt"}.get(chat, chat)
    if name not in known:
        raise UsageError(f"--for {chat}: name one of project, {', '.join(known)}")
    how, text = known[name].how or known["custom"].how, guide.kept_text()
    if copy:
        put(text, Path.cwd())
    else:
        be_utf8(sys.stdout)
        sys.stdout.write(text)
    then = "then: codingagent config set guide installed (or new --guide installed)"
    told = f"{then}: {len(text):,} characters"
    sys.stderr.write("\n".join(("", *how, told, "")))


def in_parts(text: str, limit: int) -> tuple[str, ...]:
    """Return a request in parts of at most `limit` characters, at line ends; all but the last ask to wait."""
    if len(text) <= limit:
        return (text,)
    room = limit - _FRAME_CHARACTERS
    pieces: list[str] = []
    at = 0
    while at < len(text):
        end = at + room
        # Cut at a line end in the last half, if any: code that is cut within a line misleads.
        end = text.rfind("\n", at + room // 2, end) + 1 or end if end < len(text) else len(text)
        pieces.append(text[at:end])
        at = end
    count, parts = len(pieces), list[str]()
    for number, piece in enumerate(pieces, start=1):
        then = ": this was all. Now answer the whole request, as its PROTOCOL says."
        if number < count:
            then = f'. Don\'t answer yet: reply only "OK" and wait for part {number + 1}.'
        ended = piece if piece.endswith("\n") else f"{piece}\n"
        closing = f"[end of part {number} of {count}{then}]\n"
        parts.append(f"[part {number} of {count} of one request]\n{ended}{closing}")
    return tuple(parts)


@contextlib.contextmanager
def _faults(what: str) -> Iterator[None]:
    """Turn errors of the clipboard's program into one of ours; refuse to work without a program."""
    import pyperclip  # type: ignore[import-untyped]  # its stubs are a separate package

    if not program():
        raise WorkError(f"there is no clipboard: {NONE}; {INSTALL}")
    before = os.environ.get("LC_ALL", "")
    # pbcopy and pbpaste take the locale's encoding, pyperclip gives UTF-8.
    if sys.platform == "darwin":
        os.environ["LC_ALL"] = "en_US.UTF-8"
    try:
        yield
    except (pyperclip.PyperclipException, OSError, ValueError) as fault:
        reasons = (line.strip() for line in str(fault).splitlines() if line.strip())
        reason = next(reasons, "no reason given")
        raise WorkError(f"{what}: {reason}; {_REMEDY}") from fault
    finally:
        if sys.platform == "darwin":
            os.environ["LC_ALL"] = before  # empty, it is as good as unset


def read() -> str:
    import pyperclip

    with _faults("the clipboard can't be read"):
        return str(_within_patience(pyperclip.paste))


def write(text: str) -> None:
    import pyperclip

    with _faults("the text can't be put on the clipboard"):
        _within_patience(lambda: pyperclip.copy(text))
        # Its program may fail and tell the screen alone: no such display, for example.
        is_lost = bool(text.strip()) and not str(_within_patience(pyperclip.paste)).strip()
    if is_lost:
        raise WorkError(f"{program()} did not put the text on the clipboard; {_REMEDY}")


def program() -> str:
    """Return the name of the program that reaches the clipboard here; empty if none does."""
    import pyperclip

    programs.distrusted()  # it takes its programs from our PATH
    copying, _ = pyperclip.determine_clipboard()
    made_by = str(getattr(copying, "__qualname__", "")).partition(".")[0]
    if not made_by:
        return ""  # pyperclip's placeholder for a missing one is not a function
    word = made_by.removeprefix("init_").removesuffix("_clipboard")
    return {"wl": "wl-clipboard", "osx_pbcopy": "pbcopy", "osx_pyobjc": "pyobjc"}.get(word, word)


def _within_patience(call: Callable[[], object]) -> object:
    """Return the result of a call, within a time limit: the program may wait for a missing desktop."""
    from concurrent.futures import Future

    found: Future[object] = Future()

    def run() -> None:
        try:
            found.set_result(call())
        except Exception as fault:  # noqa: BLE001  # raised again by the caller
            found.set_exception(fault)

    threading.Thread(target=run, daemon=True).start()
    try:
        return found.result(_PATIENCE_S)
    except TimeoutError:
        raise OSError(f"its program did not answer within {_PATIENCE_S:g} s") from None


def is_the_terminals() -> bool:
    """Return whether to use the terminal's clipboard: the person is on another machine, or none is here."""
    is_remote = os.environ.get("SSH_TTY") or os.environ.get("SSH_CONNECTION")
    return bool(is_remote or (os.environ.get("TMUX") and not program()))


def put(text: str, *outside: Path) -> tuple[str, str]:
    """Put a text on the clipboard; return what was done, and what to try if that does not help.

    Without a program for it, as in a container, the terminal is asked: it may have one.
    """
    is_none = not (is_the_terminals() or program())
    may_have_one = is_terminal(sys.stdout) and os.environ.get("TERM", "dumb") not in ("dumb", "linux")
    if not (is_the_terminals() or (is_none and may_have_one)):
        write(text)
        return "is on the clipboard", ""
    data = text.encode("utf-8", "replace")
    encoded = base64.b64encode(data)
    if len(encoded) > _TERMINAL_LIMIT_BYTES:
        raise WorkError(
            "the request is too long for a terminal's clipboard: use --split 50000, or fetch the file"
        )
    way = INSTALL if is_none else "attach the file"
    tmux = programs.find_program("tmux", *outside) if os.environ.get("TMUX") else None
    way = f"{_SET}, attach again; or {way}" if tmux else way
    # By default (`set-clipboard external`, 3.3) tmux does not pass on what programs send themselves.
    load = [tmux or "", "load-buffer", "-w", "-"]
    if tmux is None or run_tool(load, os.environ, data, _PATIENCE_S).returncode != 0:
        # OSC 52; many terminals refuse silently, and tmux before 3.2.
        sys.stdout.write(f"\x1b]52;c;{encoded.decode()}\x07")
        sys.stdout.flush()
    if_not = f"  if nothing arrives, your terminal does not let programs do this (OSC 52): {way}"
    return "was sent to your terminal's clipboard", if_not


class ClipboardPoller:
    """Put requests on the clipboard; poll it, and save what answers the waiting request in the inbox.

    If there is no clipboard, complain once and stop. Without `is_asked`, a remote person's clipboard, which
    can't be read, is skipped silently.
    """

    def __init__(self, home: homes.Home, complain: Callable[[str], None], *, is_asked: bool = True) -> None:
        self._home = home
        self._complain = complain
        self._seen: str | None = None
        self._is_mute = False
        self._is_blind = not is_asked and is_the_terminals()
        # By the setting, one that was there before this process stays: the clipboard may have its answer.
        self._put = -1 if is_asked else 0

    def put(self, conversation: "Conversation") -> tuple[str, str] | None:
        """Put a new request on the clipboard, the short one if there is one; return what was done."""
        session, written = conversation.session, conversation.requests.written
        if self._is_mute or self._put == written or not session.is_awaiting_answer:
            return None
        self._put = written
        paths = self._home.mailbox.waiting_paths(session.session_id, session.sequence)
        # After the answer to a question the person decides first what comes next.
        is_theirs = session.is_answered and session.awaits_words
        if is_theirs or not paths or (is_the_terminals() and not is_terminal(sys.stdout)):
            return None
        try:
            return put(paths[0].read_text("utf-8"), self._home.root, Path(session.workspace))
        except (OSError, WorkError) as fault:
            self._is_mute = True
            self._complain(f"requests are not put on the clipboard: {fault}")
            return None

    def __call__(self, conversation: "Conversation") -> None:
        if self._is_blind:
            return
        try:
            text = read()
        except WorkError as fault:
            # Windows keeps it back while the screen is locked, or another program has it open.
            self._is_blind = self._seen is None or os.name != "nt"
            if self._is_blind:
                self._complain(f"the clipboard is not watched: {fault}")
            return
        if text == self._seen:
            return
        self._seen = text
        if conversation.is_answer(text):
            session = conversation.session
            data = text.encode("utf-8", "replace")
            self._home.mailbox.drop(data, session.session_id, session.sequence)
