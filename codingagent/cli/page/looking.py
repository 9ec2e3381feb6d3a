"""What the page reads of a workspace, a request or a checkpoint when the person asks to see it."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codingagent.agent.check import proposal
from codingagent.agent.secrecy import secrecy_of
from codingagent.checkpoints import undo
from codingagent.checkpoints.checkpointer import git_for
from codingagent.cli.page.diffs import DiffView, files_of
from codingagent.cli.page.workers import run
from codingagent.cli.tables import changed_in
from codingagent.errors import OperationError, UsageError
from codingagent.model import chats, paths
from codingagent.model.encoding import typed_text
from codingagent.model.events import FolderEntry
from codingagent.model.journal_entries import AnswerTaken
from codingagent.model.plain_text import on_screen, without_controls
from codingagent.model.settings import Settings
from codingagent.prompt import guide, tokens
from codingagent.storage.homes import Home, own_folders
from codingagent.workspace.workspace import Workspace

# A longer file is not shown beside its other version.
_SHOWN_BYTES = 400_000
_BESIDE_BYTES = 64 * 2**20
_CHARACTERS_PER_TOKEN = 4


class Desk:
    """The home whose sessions the page shows, and where a new session works.

    Args:
        home: the folder; it may not exist yet.
        workspace: of the next session.
        begin: the words of the command line before `new` and after it.
        settings: in force there.
    """

    def __init__(
        self, home: Path, workspace: Path, begin: tuple[list[str], list[str]], settings: Settings
    ) -> None:
        self.root, self.workspace, self.settings = home, workspace, settings
        self._begin = begin
        self.words = [f"--home={home}"]

    def home(self) -> Home | None:
        """Return the home; None if no session has begun in it yet."""
        return (
            Home.at(self.root, create=False, is_passing=True)
            if (self.root / "sessions").is_dir()
            else None
        )

    def begin(self, name: str) -> list[str]:
        before, after = self._begin
        # From the first session on there is a home.
        return [*before, name, *after] if self.home() is None else [*self.words, name]


@contextlib.contextmanager
def _workspace(home: Desk | Home, root: Any) -> Iterator[Workspace]:
    hidden = own_folders(home.root, root)
    with contextlib.closing(Workspace(root, hidden, git=partial(git_for, root))) as found:
        yield found


def proposed_check(place: Desk) -> str:
    """Return the command that runs the workspace's tests, as its files say; empty: none does."""
    if not place.workspace.is_dir():
        return ""
    with _workspace(place, place.workspace) as workspace:
        return proposal(workspace)


def entries(place: Desk, folder: str) -> tuple[FolderEntry, ...]:
    """Return a folder's entries, folders first; a refusal is a UsageError."""
    if not place.workspace.is_dir():
        return ()
    with _workspace(place, place.workspace) as workspace:
        try:
            found = workspace.entries(paths.folder_path(folder) if folder else ".")
        except OperationError as fault:
            raise UsageError(fault.reason) from fault
    shown = (each for each in found if each.name != ".git")
    return tuple(sorted(shown, key=lambda each: (not each.is_folder, each.name)))


def find(place: Desk, name: str, data: bytes) -> str:
    """Return the path in the workspace of a file of this name and these bytes; UsageError if none is."""
    with _workspace(place, place.workspace) as workspace:
        for path in workspace.listing().files:
            if path.rpartition("/")[2] == name:
                with contextlib.suppress(OperationError):
                    if workspace.read(path).data == data:
                        return path
    raise UsageError(f"{name} is not in {place.workspace}: copy it there first")


@cache
def guide_tokens() -> int:
    """Return how many tokens of a request explain how to answer."""
    return tokens.estimate(guide.protocol_text())


def limit(settings: Settings) -> tuple[str, int]:
    """Return the name of the person's chat, and how many characters a request for it may have."""
    chat = chats.chats().get(settings.chat)
    return ("the chat" if chat is None else chat.title), settings.context_chars


def bar(pieces: Sequence[tuple[str, int]], limit: tuple[str, int]) -> dict[str, object]:
    """Return a picture of what a request holds, against what the chat takes.

    Widths are in hundredths: of the limit, or of the whole where that is larger.
    """
    title, characters = limit
    most = characters // _CHARACTERS_PER_TOKEN
    total = sum(count for _, count in pieces)
    shown = [(name, count, round(100 * count / max(total, most, 1), 1)) for name, count in pieces]
    return {"pieces": shown, "total": total, "most": most, "title": title}


def chat_links(settings: Settings) -> list[tuple[str, str]]:
    """Return the addresses of the person's chats, each with the name of its host."""
    found = ((urlsplit(each).hostname or "", each) for each in settings.chat_pages)
    return [(host, each) for host, each in found if host and each.startswith("https://")]


def _number(query: Mapping[str, str], otherwise: int) -> int:
    text = query.get("turn", "")
    return int(text) if text.isdecimal() else otherwise


def request_text(home: Home, session_id: str, query: Mapping[str, str]) -> str:
    """Return a request, whole or short, or the answer to it: of the turn that the query names."""
    session, mailbox = home.sessions.load(session_id), home.mailbox
    turn = _number(query, session.sequence)
    if "answer" in query:
        taken = (each for each in home.records(session_id) if isinstance(each, AnswerTaken))
        name = next((each.name for each in taken if each.sequence == turn), "")
        data = mailbox.read_taken(name) if name else None
        if data is None:
            raise UsageError(f"the answer of turn {turn} is not there any more")
        return on_screen(
            secrecy_of(home.sessions.folder, session).hide(typed_text(data, "replace"))
        )
    short, whole = mailbox.short_path(session_id, turn), mailbox.outbox_path(session_id, turn)
    path = whole if "whole" in query or not short.exists() else short
    try:
        text = path.read_text("utf-8")
    except OSError as fault:
        raise UsageError(f"request {turn} is not there any more") from fault
    return on_screen(text) if "show" in query else text  # what is copied stays as it is


def turn(home: Home, session_id: str, number: int) -> list[DiffView]:
    """Return what a turn changed, by files, without the secrets in it."""
    session = home.sessions.load(session_id)
    with undo.history_of(home, session) as (checkpoints, steps):
        _, before, after, touched = changed_in(checkpoints, steps, number)
        text = checkpoints.diff(before, after, sorted(touched)) if touched else ""
    hide = secrecy_of(home.sessions.folder, session).hide_diffs
    return files_of(hide(without_controls(text)))


def file(home: Home, session_id: str, query: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the text of a file before a turn and after it, each under its heading."""
    session, path = home.sessions.load(session_id), query.get("path", "")
    with undo.history_of(home, session) as (checkpoints, steps):
        _, before, after, _ = changed_in(checkpoints, steps, _number(query, 0))
        change = next((c for c in checkpoints.changes(before, after) if c.path == path), None)
        if change is None:
            raise UsageError(f"this turn did not change {path}")
        blobs = [state.blob for state in (change.old, change.new) if state is not None]
        contents = checkpoints.contents(blobs)
    hide = secrecy_of(home.sessions.folder, session).hide
    sides = []
    for heading, state in (("before", change.old), ("after", change.new)):
        data = b"" if state is None else contents[state.blob]
        text = data[:_SHOWN_BYTES].decode("utf-8", "replace")
        text = "(there was no such file)" if state is None else hide(text, path)
        cut = "\n… the rest is not shown" * (len(data) > _SHOWN_BYTES)
        sides.append((heading, text + cut))
    return sides


def beside(home: Home, session_id: str, path: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a file of the workspace that goes beside a request."""
    session = home.sessions.load(session_id)
    with _workspace(home, Path(session.workspace)) as workspace:
        try:
            data = workspace.read(paths.workspace_path(path)).data
        except OperationError as fault:
            raise UsageError(fault.reason) from fault
    if len(data) > _BESIDE_BYTES:
        raise UsageError(f"{path} can't be sent from here: attach it from its folder")
    return path.rpartition("/")[2], data


async def tried(place: Desk, check: str) -> tuple[str, str]:
    """Run a check once, as it is run after changes; return what to say, and why it failed, if it did."""
    if not check.strip():
        return "", "type a command first"
    timeout = place.settings.check_timeout * 1000
    operation = {"type": "shell", "command": check, "timeout": timeout}
    message = {"protocolVersion": "1.0", "type": "operations", "operations": [operation]}
    words = [*place.words, "run", "-", f"--workspace={place.workspace}", "--yes"]
    done = await run(words, json.dumps(message).encode())
    events = [event for each in done.objects for event in _events_in(each)]
    if done.fault or not events:
        return "", done.fault or "it could not be run"
    event = events[-1]
    if event.get("type") != "shell":
        return "", str(event.get("message") or event.get("reason") or "it could not be run")
    code, output = event.get("exitCode"), str(event.get("stdout") or event.get("output") or "")
    if code == 0:
        return "It passes now.", ""
    last = [line for line in output.split("\n") if line.strip()][-4:]
    return f"It fails now, before any change (exit code {code}): " + " / ".join(last), ""


def _events_in(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = message.get("events")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
