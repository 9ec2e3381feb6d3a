"""The record of each session: a line of JSON a record, only ever added to. `sessions/` and its files.

`sessions/{id}/journal.jsonl` is the truth; `sessions/{id}.json` is what specification 003 wants other
programs to see, and can be made again from it.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

from codingagent.errors import UsageError, WorkError
from codingagent.model.journal_entries import (
    MESSAGE_NAME,
    Record,
    decode_record,
    is_run_id,
    is_session_id,
)
from codingagent.model.session_state import Session, replay
from codingagent.storage import atomic_write
from codingagent.storage.session_file import document


class Sessions:
    """The folder `sessions/`, or the one in it that is for runs.

    Args:
        folder: where they lie.
        is_id: tells whether a name is that of one.
        what: what one is called.
    """

    def __init__(
        self, folder: Path, is_id: Callable[[str], bool] = is_session_id, what: str = "session"
    ) -> None:
        self.folder = folder
        self._is_id = is_id
        self._what = what

    def ids(self) -> list[str]:
        """Return the ids of all sessions that have a journal, in no order."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            return [e.name for e in entries if self._is_id(e.name) and _has_journal(e.path)]
        return []

    def journal_path(self, session_id: str) -> Path:
        """Return where a session's journal is.

        Raises:
            UsageError: if the text is no session id, or there is no such session.
        """
        path = self._path(session_id)
        if not path.exists():
            raise UsageError(
                f"no {self._what} {session_id} in {self.folder}; `codingagent list` names all"
            )
        return path

    def records(self, session_id: str) -> Iterator[Record]:
        """Yield all records of a session, oldest first. A last line that is cut short is passed over.

        Raises:
            UsageError: as `journal_path`.
            WorkError: if a line is no record.
        """
        path = self.journal_path(session_id)
        for number, line in enumerate(_lines(path), start=1):
            try:
                yield decode_record(line)
            except ValueError as fault:
                raise WorkError(
                    f"{path} is damaged at line {number}; put back a copy, or move"
                    f" {path.parent} away to go on without this session"
                ) from fault

    def load(self, session_id: str) -> Session:
        """Return a session's state, folded from its records.

        Raises:
            UsageError: as `journal_path`.
            WorkError: if the journal is damaged.
        """
        try:
            session = replay(self.records(session_id))
        except ValueError as fault:
            raise WorkError(f"{self._path(session_id)} is damaged: it has {fault}") from fault
        if session is None:
            raise WorkError(
                f"{self._path(session_id)} is empty: the session never began; start a new one"
            )
        return session

    def write_document(self, session: Session) -> None:
        """Write `sessions/{id}.json`.

        Raises:
            WorkError: if it can't be written.
        """
        atomic_write.write_json(self.folder / f"{session.session_id}.json", document(session))

    def mend_document(self, session: Session) -> None:
        """Write the session file again if a kill has left it saying otherwise than the journal.

        A damaged one is left for `set_damaged_document_aside`.

        Raises:
            WorkError: if it can't be written.
        """
        path = self.folder / f"{session.session_id}.json"
        found = _read_document(path, session.session_id)
        if (found is not None or not path.exists()) and found != document(session):
            self.write_document(session)

    def set_damaged_document_aside(self, session_id: str) -> Path | None:
        """Rename a session file that is not whole, so that it is never overwritten; return its new name."""
        path = self.folder / f"{session_id}.json"
        if not path.exists() or _read_document(path, session_id) is not None:
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside

    def open(self, session_id: str) -> "Journal":
        """Open a session's journal for adding to it; make it for a new session.

        Raises:
            WorkError: if it can't be opened.
        """
        path = self._path(session_id)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return Journal(path)
        except OSError as fault:
            raise WorkError(f"{path} can't be opened: {fault.strerror or fault}") from fault

    def begin(self, session_id: str, record: Record) -> None:
        """Make a session's journal with its first record, or nothing.

        Raises:
            WorkError: if it can't be written.
        """
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

    def _path(self, session_id: str) -> Path:
        if not self._is_id(session_id):
            raise UsageError(_not_an_id(session_id, self._what))
        return self.folder / session_id / "journal.jsonl"


def _not_an_id(text: str, what: str) -> str:
    if what == "run":
        return f"'{text}' is no id of a run; it has run_ and twelve digits from 0 to f"
    if is_run_id(text):
        return f"{text} is a run: it is one message, and this is for sessions; `codingagent list` names all"
    return f"'{text}' is no session id; it has eight digits from 0 to f"


class Messages:
    """The messages of runs, each beside its journal, and the documents that tell other programs of runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, run_id: str, data: bytes) -> None:
        """Keep the message of a run that is about to begin.

        Raises:
            WorkError: if it can't be written.
        """
        path = self._path(run_id)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise WorkError(f"{path} can't be written: {fault.strerror or fault}") from fault
        atomic_write.write_whole(path, data)

    def read(self, run_id: str) -> bytes:
        """Return the message of a run that is not done.

        Raises:
            WorkError: if it can't be read.
        """
        path = self._path(run_id)
        try:
            return path.read_bytes()
        except OSError as fault:
            raise WorkError(f"{path} can't be read: {fault.strerror or fault}") from fault

    def has(self, run_id: str) -> bool:
        """Tells whether the message of a run is still kept."""
        return self._path(run_id).exists()

    def drop(self, run_id: str) -> None:
        """Remove the message of a run that is done: nobody needs it any more."""
        with contextlib.suppress(OSError):
            self._path(run_id).unlink()

    def has_document(self, run_id: str) -> bool:
        """Tells whether a run had ever to wait."""
        return self._document(run_id).exists()

    def write_document(self, run_id: str, document: object) -> None:
        """Write `sessions/runs/{run_id}.json`.

        Raises:
            WorkError: if it can't be written.
        """
        atomic_write.write_json(self._document(run_id), document)

    def _path(self, run_id: str) -> Path:
        return self._folder / run_id / MESSAGE_NAME

    def _document(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"


class Journal:
    """One session's journal, open for adding. A record is with the system when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        self._end = _whole_length(path)
        # What a kill cut short was never answered for.
        os.ftruncate(self._handle, self._end)

    def append(self, record: Record) -> None:
        """Add one record.

        Raises:
            WorkError: if it can't be written whole; the journal is then as before.
        """
        if self._handle < 0:
            raise WorkError(f"{self._path} is closed; open the session again to go on with it")
        # A name that is not UTF-8 has half characters, which no JSON reader takes back.
        line = _as_json(record).encode("utf-8", "replace")
        try:
            os.lseek(self._handle, self._end, os.SEEK_SET)
            written = 0
            while written < len(line):
                written += os.write(self._handle, memoryview(line)[written:])
        except OSError as fault:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._end)
            raise WorkError(f"{self._path} can't be written: {fault.strerror or fault}") from fault
        self._end += len(line)

    def sync(self) -> None:
        """Make all records durable: before a command starts, whose start must never be forgotten."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Return back the file; what is added after that is refused."""
        if self._handle >= 0:
            os.close(self._handle)
            # The number may be another file's by now.
            self._handle = -1


def _as_json(record: Record) -> str:
    """Return a record as its line."""
    return _encode(_fields_of(record)) + "\n"


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _fields_of(value: object) -> object:
    """Return what a record holds as JSON has it; records are flat, and asdict copies all that they hold."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, tuple | list):
        return [_fields_of(each) for each in value]
    if isinstance(value, dict):
        return {name: _fields_of(each) for name, each in value.items()}
    kind = type(value)
    if kind not in _names:
        _names[kind] = tuple(each.name for each in fields(value))  # type: ignore[arg-type]  # a record or a part of one
    return {name: _fields_of(getattr(value, name)) for name in _names[kind]}


# Of each kind of record, its fields: looked up once, not for each of a hundred thousand.
_names: dict[type, tuple[str, ...]] = {}


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists() and not path.is_file():
        # A pipe would be waited for, for ever.
        raise WorkError(f"{path} is no file; put back a copy, or move {path.parent} away")
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
    except OSError as fault:
        raise WorkError(f"{path} can't be read: {fault.strerror or fault}") from fault


def _whole_length(path: Path) -> int:
    return sum(map(len, _lines(path)))


def _has_journal(folder: str) -> bool:
    path = os.path.join(folder, "journal.jsonl")
    # One without a record is what a kill left of a session that never began.
    return os.path.exists(path) and (os.path.isdir(path) or os.path.getsize(path) > 0)


def _read_document(path: Path, session_id: str) -> dict[str, object] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("sessionId") == session_id else None
