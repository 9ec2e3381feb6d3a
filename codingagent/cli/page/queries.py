"""What the page reads: of a workspace, a request or a checkpoint, and the answer that is given to it."""

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from codingagent.agent import answers, downloads, tried, uncommitted
from codingagent.agent.check import proposal
from codingagent.agent.secrecy import secrecy_of
from codingagent.checkpoints import checkpointer, undo
from codingagent.cli.page.view import DiffView, beside_in, files_of
from codingagent.cli.page.workers import run
from codingagent.cli.record_words import outputs
from codingagent.errors import OperationError, UsageError
from codingagent.model import documents, encoding, journal_entries, paths, plain_text
from codingagent.model.events import FolderEntry
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.prompt import guide, tokens
from codingagent.protocols.foreign import parser
from codingagent.protocols.tags import reply, scanner, transcript
from codingagent.protocols.tags.reply import Step
from codingagent.storage import homes
from codingagent.storage.homes import Home, own_folders
from codingagent.workspace.workspace import Workspace

# A longer file is not shown beside its other version.
_SHOWN_BYTES = 400_000
_BESIDE_BYTES = 64 * 2**20


class PageState:
    """The home whose sessions the page shows, and where a new session works.

    Args:
        home: the folder; it may not exist yet.
        workspace: of the next session.
        is_here: the home is in the workspace, and this one is the current folder.
        settings: in force there.
    """

    def __init__(self, home: Path, workspace: Path, settings: Settings, *, is_here: bool = False) -> None:
        self.root, self.workspace, self.settings = home, workspace, settings
        self._is_here = is_here
        self._is_usual = workspace == homes.default_workspace(home).absolute()
        self.words = [f"--home={home}"]

    def home(self) -> Home | None:
        """Return the home; None if no session has begun in it yet."""
        is_there = (self.root / "sessions").is_dir()
        return Home.at(self.root, create=False, is_passing=True) if is_there else None

    def begin(self, name: str) -> list[str]:
        """Return the words of the command line that begin a session."""
        if self._is_here and self.home() is None:
            return [name, "--here"]
        named = [] if self._is_usual else [f"--workspace={self.workspace}"]
        return [*self.words, name, *named]

    @property
    def fault(self) -> str:
        """Why no session can begin; empty if one can."""
        if self._is_usual or self.workspace.is_dir():
            return ""
        return f"the folder {self.workspace} is gone: put it back, or start the page in another one"


@contextlib.contextmanager
def _workspace(home: PageState | Home, root: Path) -> Iterator[Workspace]:
    """Yield a workspace to read from; a refusal is a UsageError."""
    hidden = own_folders(home.root, root)
    with contextlib.closing(Workspace(root, hidden, git=partial(checkpointer.git_for, root))) as found:
        try:
            yield found
        except OperationError as fault:
            raise UsageError(fault.reason) from fault


def proposed_check(desk: PageState) -> str:
    """Return the command that runs the workspace's tests, as its files say; empty: none does."""
    if not desk.workspace.is_dir():
        return ""
    with _workspace(desk, desk.workspace) as workspace:
        return proposal(workspace)


def entries(desk: PageState, root: Path, folder: str) -> tuple[FolderEntry, ...]:
    """Return a folder's entries, folders first."""
    if not root.is_dir():
        return ()
    with _workspace(desk, root) as workspace:
        found = workspace.entries(paths.folder_path(folder) if folder else ".")
    shown = (each for each in found if each.name != ".git")
    return tuple(sorted(shown, key=lambda each: (not each.is_folder, each.name)))


def find(desk: PageState, name: str, data: bytes) -> str:
    """Return the path in the workspace of a file of this name and these bytes; UsageError if none is."""
    with _workspace(desk, desk.workspace) as workspace:
        for path in workspace.listing().files:
            if path.rpartition("/")[2] == name:
                with contextlib.suppress(OperationError):
                    if workspace.read(path).data == data:
                        return path
    raise UsageError(f"{name} is not in {desk.workspace}: copy it there first")


@cache
def guide_tokens(wants: str) -> int:
    """Return how many tokens of a request explain how to answer."""
    return tokens.estimate(guide.question_text() if wants == "words" else guide.protocol_text())


def chat_links(settings: Settings) -> list[tuple[str, str]]:
    """Return the addresses of the person's chats, each with the name of its host."""
    found = ((urlsplit(each).hostname or "", each) for each in settings.chat_pages)
    return [(host, each) for host, each in found if host and each.startswith("https://")]


def _number(query: Mapping[str, str], otherwise: int, name: str = "turn") -> int:
    text = query.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def request_text(home: Home, session_id: str, query: Mapping[str, str]) -> str:
    """Return a request, whole or short, its answer, or what its commands printed: of the turn named."""
    session = home.sessions.load(session_id)
    if number := _number(query, 0, "candidate"):
        own = tried.named(home, session, number)
        home, session = own.home, own.session or session
    mailbox = home.mailbox
    turn = _number(query, session.sequence)
    if "output" in query:
        records = map(secrecy_of(home.sessions.folder, session).hide_all, home.records(session_id))
        return outputs(records, turn)
    if "answer" in query:
        taken = (each for each in home.records(session_id) if isinstance(each, journal_entries.AnswerTaken))
        name = next((each.name for each in taken if each.sequence == turn), "")
        data = mailbox.read_taken(name) if name else None
        if data is None:
            raise UsageError(f"the answer of turn {turn} is not there any more")
        return plain_text.on_screen(
            secrecy_of(home.sessions.folder, session).hide(encoding.typed_text(data, "replace"))
        )
    short, whole = mailbox.short_path(session_id, turn), mailbox.outbox_path(session_id, turn)
    path = whole if "whole" in query or not short.exists() else short
    try:
        text = path.read_text("utf-8")
    except OSError as fault:
        raise UsageError(f"request {turn} is not there any more") from fault
    return plain_text.on_screen(text) if "show" in query else text  # what is copied stays as it is


def turn(home: Home, session_id: str, number: int, query: Mapping[str, str]) -> list[DiffView]:
    """Return what a turn changed, or for 0 all since the last commit, by files, without the secrets in it.

    If a query names two candidates, how they differ.
    """
    session = home.sessions.load(session_id)
    if new := _number(query, 0, "new"):
        return files_of(tried.difference(home, session, _number(query, 0, "old"), new))
    with undo.history_of(home, session) as (checkpoints, found):
        steps = found if number else uncommitted.work_since_commit(home.records(session_id), bool).steps
        _, before, after, touched = undo.changed_in(checkpoints, steps, number or None)
        text = checkpoints.diff(before, after, sorted(touched)) if touched else ""
    secrecy = secrecy_of(home.sessions.folder, session)
    return files_of(secrecy.hide_diffs(text), map(secrecy.hide, sorted(touched)))


def file(home: Home, session_id: str, query: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the text of a file before a turn and after it, each under its heading."""
    session, path = home.sessions.load(session_id), query.get("path", "")
    with undo.history_of(home, session) as (checkpoints, steps):
        _, before, after, _ = undo.changed_in(checkpoints, steps, _number(query, 0))
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
    if path not in beside_in(home.records(session_id)):
        raise UsageError(f"{paths.shown(path)} does not go beside this request")
    with _workspace(home, Path(session.workspace)) as workspace:
        data = workspace.read(paths.workspace_path(path)).data
    if len(data) > _BESIDE_BYTES or not documents.goes_beside(data):
        raise UsageError(f"{path} can't be sent from here: attach it from its folder")
    return path.rpartition("/")[2], data


async def check_tried(desk: PageState, check: str) -> dict[str, object]:
    """Run a check once, before any change, as it is run after changes; return what tried.html tells of it."""
    if not check.strip():
        return {"told": "type a command first"}
    operation = {"type": "shell", "command": check, "timeout": desk.settings.check_timeout * 1000}
    message = {"protocolVersion": "1.0", "type": "operations", "operations": [operation]}
    words = [*desk.words, "run", "-", f"--workspace={desk.workspace}", "--yes"]
    done = await run(words, json.dumps(message).encode())
    events = [event for each in done.objects for event in each.get("events", ())]
    event = events[-1] if events and not done.fault else {}
    if event.get("type") != "shell":
        said = done.fault or event.get("message") or event.get("reason")
        return {"told": said or "it could not be run"}
    code, took = event.get("exitCode"), f"{(event.get('durationMs') or 0) / 1000:.1f} s"
    output = "\n".join(filter(None, (event.get("stdout"), event.get("stderr"))))
    last = [line for line in output.split("\n") if line.strip()][-4:]
    told = f"It fails now, before any change (exit code {code}, {took}): " + " / ".join(last)
    is_green = code == 0
    return {"told": f"It passes now ({took})." if is_green else told, "output": output, "is_green": is_green}


def answer_in(desk: PageState, session: Session, body: bytes, names: list[str], sizes: list[str]) -> bytes:
    """Return the answer in what was pasted, or in dropped files, one after another; UsageError: none is."""
    ends = [*accumulate(map(int, sizes[:-1])), len(body)]
    parts = [body[start:end] for start, end in pairwise((0, *ends))]
    with _workspace(desk, Path(session.workspace)) as workspace:
        listing = partial(workspace.listing, session.touched)
        data = downloads.as_answer([*zip(names or [""], parts, strict=True)], lambda: listing().files)
        if documents.is_zip(data):
            downloads.opened(data, listing().files, Path(session.workspace).name)
    return data


def refuse_other(data: bytes, session: Session) -> None:
    """Refuse (UsageError) an answer to another session or request, and the last one again."""
    if reason := answers.objection(data, session):
        raise UsageError(f"{reason}: nothing was done")


def looks_like_answer(data: bytes, session: Session) -> bool:
    """Return whether a text says that it answers the session, or asks for something and names no other."""
    text = scanner.fold_line_ends(encoding.typed_text(data, "replace"))
    header = transcript.last_header(text)
    if header is not None:
        return header.session == session.session_id
    found = reply.read(text)
    has_steps = any(isinstance(item, Step) for item in found.items)
    return not found.has_outbox and (has_steps or bool(parser.read(text, ()).items))


@contextlib.contextmanager
def answer_file(data: bytes) -> Iterator[Path]:
    """Keep an answer in a file while a command reads it."""
    with tempfile.TemporaryDirectory(prefix="codingagent-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "answer.txt"
        path.write_bytes(data)
        yield path
