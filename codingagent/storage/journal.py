"""Append-only journal of each session (JSON Lines), and the other files of `sessions/`.

`sessions/{id}/journal.jsonl` is authoritative; `sessions/{id}.json` is what specification 003 defines
for other programs, and can be rebuilt from it. What the disk refuses raises WorkError.
"""

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from codingagent.errors import UsageError, WorkError, disk_errors, system_reason
from codingagent.model import events, journal_entries, patterns, session_fold
from codingagent.model.journal_entries import Record
from codingagent.model.results import result_of
from codingagent.model.session_state import Session
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import retried, sync

Tell: TypeAlias = Callable[[Record, Session], object]

# How lines begin of operations that began, half of a journal, and of those that did well on a file.
_BEGUN = b'{"kind":"operation_started",'
_DULL = patterns.lazy_pattern(rb'\{"kind":"operation_ended","index":\d+,"event":\{"kind":"f(?:ile|older)_')
# What msgspec says of a name that this version does not know: no damage makes one in whole JSON.
_NEWER = patterns.lazy_pattern(r"Invalid (enum )?value '")


def document(session: Session) -> dict[str, object]:
    """Return the session as the content of `sessions/{id}.json` (specification 003, session state)."""
    requested = [path for e in session.results if isinstance(e, events.FileRequested) for path in e.paths]
    results = ((event, *result_of(event)) for event in session.results)
    named = {"name": session.name} if session.name else {}
    return {
        "sessionId": session.session_id,
        **named,
        "task": session.task,
        "sequenceNumber": session.sequence,
        "isComplete": session.is_complete,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "lastResults": [
            {
                "commandType": event.kind,
                "summary": words,
                "success": events.succeeded(event),
                "output": "\n".join((output, *event.notes)).strip("\n"),
            }
            for event, words, output in results
        ],
        "readFileRequests": list(dict.fromkeys(requested)),
        "workspace": session.workspace,
    }


class Sessions:
    """The folder `sessions/`; `what` and `form` are words for messages."""

    what, form = "session", "8 hexadecimal digits"
    is_id = staticmethod(journal_entries.is_session_id)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ids(self, newest: int | None = None) -> list[str]:
        """Return the ids of all sessions that have a journal, or of the newest, by its time; none is read."""
        found: list[tuple[int, str]] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for name in filter(self.is_id, [entry.name for entry in entries]):
                with contextlib.suppress(OSError):
                    about = os.stat(f"{self.folder}/{name}/journal.jsonl")
                    # An empty journal is from a session that a kill stopped before it began.
                    if about.st_size > 0 or stat.S_ISDIR(about.st_mode):
                        found.append((about.st_mtime_ns, name))
        return [name for _, name in sorted(found, reverse=True)[:newest]]

    def journal_path(self, session_id: str) -> Path:
        """Return the path of a session's journal; UsageError if there is no such session, or id."""
        if not (path := self._path(session_id)).exists():
            where = f"in {self.folder}; `codingagent list` shows all"
            raise UsageError(f"no {self.what} {session_id} {where}")
        return path

    def records(self, session_id: str) -> Iterator[Record]:
        """Yield all records of a session, oldest first; skip a truncated last line. Damage is a WorkError."""
        path = self.journal_path(session_id)
        return _records(path, _lines(path))

    def read_on(self, session_id: str, start: int) -> tuple[list[Record], int]:
        """Return the records from an offset of the journal on, and the offset after them."""
        return _read_on(self.journal_path(session_id), start)

    def load(self, session_id: str) -> Session:
        """Return a session's state, folded from its records; WorkError if the journal is damaged."""
        with _folding(self._path(session_id)):
            session = session_fold.replay(self.records(session_id))
        if session is None:
            raise _empty(self._path(session_id))
        return session

    def outcomes(self, session_id: str, most: int | None = None) -> tuple[list[tuple[Record, Session]], int]:
        """Return the records of a session with the state after each, for who looks back.

        They tell of no operation that only began. Where more than `most` lines follow, those that did well on
        a file are left out, too; returns how many. The states know their number, and no files.
        """
        path = self.journal_path(session_id)
        lines = [*_lines(path)]
        early = 0 if most is None else len(lines) - most
        found: list[tuple[Record, Session]] = []
        nothing: dict[str, Any] = {"known": {}, "known_before": {}, "held": {}, "held_before": {}}
        left_out, session = 0, None
        with _folding(path):
            for number, line in enumerate(lines, start=1):
                if line.startswith(_BEGUN):
                    continue
                session = session_fold.advance(session, record := _record(path, number, line))
                if number <= early and _DULL.match(line):
                    left_out += 1
                else:
                    found.append((record, replace(session, **nothing, touched=frozenset())))
        if not found:
            raise _empty(path)
        return found, left_out

    def write_document(self, session: Session) -> None:
        atomic_write.write_json(self._document(session.session_id), document(session))

    def mend_document(self, session: Session) -> None:
        """Rewrite the session file if a kill, not damage, left it out of step with the journal."""
        path = self._document(session.session_id)
        found, wanted = _read_document(path, session.session_id), document(session)
        if (found is not None or not path.exists()) and found != wanted:
            atomic_write.write_json(path, wanted)

    def set_damaged_document_aside(self, session_id: str) -> Path | None:
        """Rename a damaged session file so that it is never overwritten; return its new name."""
        path = self._document(session_id)
        if not path.exists() or _read_document(path, session_id) is not None:
            return None
        aside = atomic_write.free_name(path.parent, f"{path.name}.damaged-{{}}")
        retried(lambda: path.rename(aside))
        return aside

    def open(self, session_id: str) -> "Journal":
        """Open a session's journal for appending; create it for a new session."""
        path = self._path(session_id)
        with disk_errors(f"{path} can't be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            return Journal(path)

    def begin(self, session_id: str, record: Record) -> None:
        """Create a session's journal with its first record, or create nothing."""
        journal = self.open(session_id)
        try:
            with contextlib.closing(journal):
                journal.append(record)
        except WorkError:
            path = self._path(session_id)
            with contextlib.suppress(OSError):
                path.unlink()
                path.parent.rmdir()
            raise

    def _document(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.json"

    def _path(self, session_id: str) -> Path:
        if self.is_id(session_id):
            return self.folder / session_id / "journal.jsonl"
        fault = f"'{session_id}' is not a {self.what} id ({self.form})"
        if journal_entries.is_run_id(session_id):
            fault = f"{session_id} is a run, but this command needs a session"
        raise UsageError(f"{fault}; `codingagent list{' --runs' * (self.what == 'run')}` shows them")


class Runs(Sessions):
    """The folder of runs. Until all of one is done, its message lies beside its journal."""

    what, form = "run", "run_ and 12 hexadecimal digits"
    is_id = staticmethod(journal_entries.is_run_id)

    def keep_message(self, run_id: str, data: bytes) -> None:
        path = self._message(run_id)
        with disk_errors(f"{path} can't be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write_whole(path, data)

    def message(self, run_id: str) -> bytes:
        path = self._message(run_id)
        with disk_errors(f"{path} can't be read"):
            return retried(path.read_bytes)

    def has_message(self, run_id: str) -> bool:
        return self._message(run_id).exists()

    def drop_message(self, run_id: str) -> None:
        with contextlib.suppress(OSError):
            self._message(run_id).unlink()

    def has_document(self, run_id: str) -> bool:
        """Return whether a run ever had to wait."""
        return self._document(run_id).exists()

    def show(self, run_id: str, document: object) -> None:
        """Write the document that shows a run to other programs."""
        atomic_write.write_json(self._document(run_id), document)

    def _message(self, run_id: str) -> Path:
        return self.folder / run_id / journal_entries.MESSAGE_NAME


class Journal:
    """One session's journal, open for appending. `append` returns after the system has the record."""

    def __init__(self, path: Path) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._handle = retried(lambda: os.open(path, flags, 0o600))
        self._end = sum(map(len, _lines(path)))
        # No one was told of a record that a kill truncated.
        os.ftruncate(self._handle, self._end)

    def append(self, record: Record) -> None:
        """Append one record; WorkError if it can't be written whole: the journal is then unchanged."""
        if self._handle < 0:
            raise WorkError(f"{self._path} is closed; open the session again to continue it")
        line = journal_entries.encode_record(record)
        try:
            os.lseek(self._handle, self._end, os.SEEK_SET)
            written = 0
            while written < len(line):
                written += os.write(self._handle, memoryview(line)[written:])
        except OSError as fault:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise WorkError(f"{self._path} can't be written: {system_reason(fault)}") from fault
        self._end += len(line)

    def has_grown(self) -> bool:
        """Return whether another process has appended records, or the file is gone."""
        try:
            return os.stat(self._path).st_size != self._end
        except OSError:
            return True

    def read_on(self) -> list[Record]:
        """Return the records that another process has appended; later ones are appended after them."""
        if not self._path.exists():
            raise WorkError(f"{self._path.parent} is gone: the session was deleted")
        found, self._end = _read_on(self._path, self._end)
        return found

    def sync(self) -> None:
        """Make all records durable: called before a command starts, because its start must never be lost."""
        sync(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1  # another file may have the number by now


class SessionLog:
    """A session's journal, if it is kept, and the state folded from all its records."""

    def __init__(
        self, journal: Journal | None, session: Session, tell: Tell = lambda _record, _session: None
    ) -> None:
        self._journal = journal
        self.session = session
        self._tell = tell

    def record(self, record: Record) -> None:
        """Append a record, update the state, and tell; if it can't be written, the state is unchanged."""
        # Fold first: a record that can't follow must not be written, or the journal is damaged for good.
        after = session_fold.fold(self.session, record)
        if self._journal is not None:
            self._journal.append(record)
        self.session = after
        self._tell(record, after)

    def has_grown(self) -> bool:
        return self._journal is not None and self._journal.has_grown()

    def catch_up(self) -> list[tuple[Record, Session]]:
        """Take in the records of another process; return each with the state after it."""
        found: list[tuple[Record, Session]] = []
        for record in () if self._journal is None else self._journal.read_on():
            self.session = session_fold.fold(self.session, record)
            found.append((record, self.session))
        return found

    def sync(self) -> None:
        if self._journal is not None:
            self._journal.sync()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()


class UnkeptLog(SessionLog):
    """A log for single operations that belong to no session: it keeps nothing, and has no state."""

    def __init__(self) -> None:
        self._journal = None

    def record(self, record: Record) -> None:
        """Keep nothing."""


class ShownTexts:
    """File texts as the chat last saw them, by digest in a folder, so that changes can be shown as a diff.

    Nothing depends on them: if one is missing, the request shows the whole file instead of a diff.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, digest: str) -> bool:
        return (self._folder / digest).exists()

    def read(self, digest: str) -> str | None:
        try:
            return (self._folder / digest).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None

    def keep(self, digest: str, text: str) -> None:
        """Store a text by its digest; ignore disk errors."""
        with contextlib.suppress(OSError, WorkError):
            if not self.has(digest):
                self._folder.mkdir(parents=True, exist_ok=True)
                atomic_write.write_whole(self._folder / digest, text, is_synced=False)

    def prune(self, digests: Iterable[str]) -> None:
        """Remove all texts but these."""
        wanted = frozenset(digests)
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name not in wanted:
                    os.unlink(entry.path)


def _read_on(path: Path, start: int) -> tuple[list[Record], int]:
    lines = [*_lines(path, start)]
    return [*_records(path, lines)], start + sum(map(len, lines))


def _records(path: Path, lines: Iterable[bytes]) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        yield _record(path, number, line)


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        return journal_entries.decode_record(line)
    except ValueError as fault:
        what = f"is damaged at line {number}; put back a copy"
        if _NEWER.search(str(fault)):
            what = (
                f"was written by a newer codingagent (line {number} is of a kind that this one does"
                " not know): update codingagent"
            )
        away = f"move {path.parent} away to continue without this session"
        raise WorkError(f"{path} {what}, or {away}") from fault


def _empty(path: Path) -> WorkError:
    return WorkError(f"{path} is empty: the session never began; start a new one")


@contextlib.contextmanager
def _folding(path: Path) -> Iterator[None]:
    """Say which journal it is whose records can't follow one another."""
    try:
        yield
    except ValueError as fault:
        raise WorkError(f"{path} is damaged: it has {fault}") from fault


def _lines(path: Path, start: int = 0) -> Iterator[bytes]:
    if path.exists() and not path.is_file():
        # Opening a pipe would block forever.
        raise WorkError(f"{path} is not a file; put back a copy, or move {path.parent} away")
    with disk_errors(f"{path} can't be read"), retried(lambda: path.open("rb")) as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _read_document(path: Path, session_id: str) -> dict[str, object] | None:
    try:
        found = json.loads(retried(path.read_bytes)) if path.is_file() else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("sessionId") == session_id else None
