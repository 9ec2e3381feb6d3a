"""Hide a session's secrets from its chat and its screens; keep them readable by its owner only.

The process at work on a session writes `vault.json`, the command `secrets` writes `secrets.json`: neither
overwrites what the other wrote. What the disk refuses raises WorkError.
"""

import base64
import contextlib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from secrets import token_bytes
from typing import TypeVar

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from codingagent.errors import CodingAgentError, OperationError, WorkError, disk_errors
from codingagent.model import encoding, events, notices, operations, patterns, plain_text
from codingagent.model import journal_entries as entries
from codingagent.model.paths import is_glob, shown, unquoted
from codingagent.model.session_state import Session
from codingagent.secrets import texts, vault
from codingagent.secrets.files import Copies
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import retried
from codingagent.workspace.workspace import Workspace

_Any = TypeVar("_Any")
# Of those found at once; the others are counted.
_NAMED = 5
# Of secret files that nobody asked for.
_FILES_READ = 500
_BYTES_READ = 1_000_000
_WORDS_READ = 50
# The path in git's diff: of a deleted file that before.
_CHANGED = patterns.lazy_pattern(r"^(?:\+\+\+ (?!/dev)|--- (?=.*\n\+\+\+ /dev/null))(.*?)\t?$", re.MULTILINE)
_HEADINGS = patterns.lazy_pattern(r"^(=== [A-Z]+ ===|## [A-Z][a-z]+(?: [A-Z][a-z]+){0,2})$", re.MULTILINE)
_PROMPT = "\n=== PROMPT ===\n"
_MEANING = patterns.sections(__file__)["what names mean"][4:]


class _KeptVault(Struct):
    key: bytes
    values: list[vault.HiddenValue] = []
    lines: list[str] = []
    copies: list[str] = []


class VaultFile:
    """The vault in the folder of a session; all runs of a home have one, in their folder."""

    def __init__(self, folder: Path) -> None:
        self._vault = folder / "vault.json"
        self._wishes = folder / "secrets.json"

    def load(self) -> vault.Vault:
        """Return the vault; a new one if there is none."""
        kept = self._read(self._vault, _KeptVault) or _KeptVault(token_bytes(32))
        found = vault.Vault(kept.key, kept.values, Copies(kept.lines, kept.copies))
        found.obey(self.wishes())
        return found

    def save(self, held: vault.Vault) -> None:
        if held.is_changed:
            copies = map(sorted, (held.copies.lines, held.copies.paths))
            kept = _KeptVault(held.key, [*held.by_name.values()], *copies)
            atomic_write.write_whole(self._vault, json.encode(kept))
            held.is_changed = False

    def wishes(self) -> vault.Wishes:
        return self._read(self._wishes, vault.Wishes) or vault.Wishes()

    def keep_wishes(self, wishes: vault.Wishes) -> None:
        atomic_write.write_whole(self._wishes, json.encode(wishes))

    @staticmethod
    def _read(path: Path, kind: type[_Any]) -> _Any | None:
        if not path.exists():
            return None
        try:
            with disk_errors(f"{path} can't be read"):
                return json.decode(retried(path.read_bytes) if path.is_file() else b"", type=kind)
        except DecodeError as fault:
            how = "move it away to go on; names in earlier requests then mean nothing"
            raise WorkError(f"{path} is damaged: {how}") from fault


def vault_file_of(sessions: Path, session: Session) -> VaultFile:
    """Return the vault of a session or run; `sessions` is the folder of the home's sessions."""
    return VaultFile(sessions / ("runs" if session.is_run else session.session_id))


class Secrecy:
    """What a session hides, if anything; `mode` is the setting. Without a file nothing is kept."""

    def __init__(self, mode: str = "off", file: VaultFile | None = None) -> None:
        self.mode = mode
        self.is_off = mode == "off"
        self._file = None if self.is_off else file
        self._files: dict[str, None] = {}
        self._read: dict[str, object] = {}
        self._told = 0
        """How many secrets the person was told that a request hides."""
        key = b"" if self.is_off else token_bytes(32)
        self.vault = vault.Vault(key) if self._file is None else self._file.load()
        self.hide, self.hide_diff = self.vault.hide, self.vault.hide_diff
        self.quote, self.counts = self.vault.hide_quote, self.vault.counts

    # --- what leaves -------------------------------------------------------------------------------
    def hide_all(self, value: _Any) -> _Any:
        """Return a value with names for the secrets in all of its texts."""
        hidden: _Any = value if self.is_off else texts.mapped(value, self.hide)
        return hidden

    def hide_error(self, _kind: object, fault: BaseException | None, _trace: object) -> None:
        """Hide secrets in the error that ends a `with`: it may quote a file or a command."""
        if isinstance(fault, CodingAgentError):
            fault.args = self.hide_all(fault.args)

    def seal(self, request: str, guide: str) -> str:
        """Hide the secrets left in a request, save in our own words; return what names mean."""
        before, kept, after = request.partition(guide)
        text = f"{self._hide_body(before)}{kept}{self._hide_body(after)}"
        names = self.vault.names_in(text)
        context, heading, prompt = text.rpartition(_PROMPT)
        if not (names and heading):
            return text
        return f"{context}{_MEANING.format(min(names))}{heading}{prompt}"

    def _hide_body(self, text: str) -> str:
        """Return a part of a request without its secrets; no value of a file takes its headings away."""
        parts = _HEADINGS.split(text)
        return "".join(part if at % 2 else self.hide(part) for at, part in enumerate(parts))

    def hide_diffs(self, text: str) -> str:
        """Return a diff of several files, as git writes it, with names for their secrets."""
        parts = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)
        paths = (unquoted(next(iter(_CHANGED.findall(part)), ""))[2:] for part in parts)
        return "".join(map(self.hide_diff, parts, paths))

    def notice(self, notice: notices.Notice) -> notices.Notice:
        """Return a notice as a screen may show it."""
        if isinstance(notice, notices.FileChanged) and not self.is_off:
            # Imported late: a first request changes no file.
            from codingagent.editing.diff import BYTES_LIMIT

            old, new = notice.old, notice.new
            if len(old or b"") + len(new) <= BYTES_LIMIT:  # of others only their sizes are shown
                old = None if old is None else _in_bytes(old, notice.path, self.quote)
                new = _in_bytes(new, notice.path, self.quote)
            return notices.FileChanged(self.hide(notice.path), old, new)
        return self.hide_all(notice)

    def record(self, record: entries.Record, session: Session) -> tuple[entries.Record, Session]:
        """Return a record, and the session after it, as a screen may show them."""
        match record:
            case entries.OperationStarted():  # what it is about to do is told once it is done
                record = replace(record, changes=(), event=None)
            case entries.OperationEnded(event=events.FileFetched() as event):
                record = replace(record, event=self.event(event))
            case entries.TurnEnded() if session.is_complete:  # told with what failed, and its end
                loud = [not events.succeeded(e) or isinstance(e, events.Finished) for e in session.results]
                pairs = zip(session.results, loud, strict=True)
                told = (self.event(each) if is_loud else each for each, is_loud in pairs)
                session = replace(session, results=tuple(told))
            case entries.ApprovalAsked():
                return self.asked(record), session
            case _:
                pass
        return self.hide_all(record), session

    def asked(self, record: entries.ApprovalAsked) -> entries.ApprovalAsked:
        """Return a question as a screen may show it: what a command has just written can be read."""
        hidden = self.hide_all(record)
        question, shown = record.question, hidden.question.shown
        if question.kind is operations.Kind.FILES_CHANGED:
            files = {unquoted(name)[2:] for name in _CHANGED.findall(question.shown)}
            old = "\n".join(re.findall(r"^[- ](.*)", question.shown, re.MULTILINE))
            for held in self.vault.by_name.values():
                if held.places and files.issuperset(held.places) and held.value not in old:
                    shown = shown.replace(held.name, held.value)
        return replace(hidden, question=replace(hidden.question, shown=shown))

    def hide_bytes(self, data: bytes, path: str) -> bytes:
        """Return a file's bytes with names for its secrets, if it is text."""
        return _in_bytes(data, path, self.hide)

    def session(self, session: Session) -> Session:
        """Return a session as a request may tell it."""
        if self.is_off:
            return session
        # Those of the answer, each once: the results are these events.
        ends = tuple(replace(end, event=self.event(end.event)) for end in session.ends)
        fields = ("task", "said", "replies", "turns", "checked", "notes")
        told = {field: self.hide_all(getattr(session, field)) for field in fields}
        return replace(session, results=tuple(end.event for end in ends), ends=ends, **told)

    def event(self, event: events.Event) -> events.Event:
        if isinstance(event, events.FileFetched):
            return replace(event, content=self.content(event))
        return self.hide_all(event)

    def content(self, event: events.FileFetched) -> str:
        if event.encoding == "utf-8":
            return self.hide(event.content, event.path)
        data = base64.b64decode(event.content)
        if encoding.decode_file(data, neighbours=tuple) is not None:
            data = self.hide_bytes(data, event.path)
        else:
            data = texts.mapped(data, self.hide)
            for codec in ("utf-16-le", "utf-16-be"):  # without a mark
                wide = data[: len(data) // 2 * 2]
                text = self.hide(wide.decode(codec, "surrogatepass"))
                data = text.encode(codec, "surrogatepass") + data[len(wide) :]
        return base64.b64encode(data).decode()

    # --- the record and the person -----------------------------------------------------------------
    def save(self) -> None:
        if self._file is not None:
            self._file.save(self.vault)

    def look_again(self) -> None:
        if self._file is not None:
            self.vault.obey(self._file.wishes())

    def may_ask(self, path: str, text: str | None = None) -> bool:
        """Return whether a file's values are hidden because of its name, and the person was not asked."""
        # A yes for a glob would be for more than this file.
        if is_glob(path) or not (self.vault.hides and self.vault.is_secret_file(path, text)):
            return False
        return not (self.vault.wishes.allows(path) or path in self.vault.wishes.kept)

    def decide(self, path: str, *, is_allowed: bool) -> None:
        """Do and keep what the person says about a secret file."""
        wishes = self.vault.wishes if self._file is None else self._file.wishes()
        kept = {"allow": (*wishes.allow, path)} if is_allowed else {"kept": (*wishes.kept, path)}
        wishes = replace(wishes, **kept)
        self.vault.obey(wishes)
        if self._file is not None:
            self._file.keep_wishes(wishes)

    def read_files(self, workspace: Workspace, paths: Iterable[str], named: Iterable[str] = ()) -> None:
        """Learn the values in secret files: a command may print a value that no answer asked to read.

        `paths` are more names that may be such files; unreadable ones are skipped. `named` are words that may
        name any file: a part of it may be printed, in which nothing is found.
        """
        if self.is_off:
            return
        self._files.update(dict.fromkeys(filter(self.vault.is_secret_file, paths)))
        words = itertools.islice(dict.fromkeys(named), _WORDS_READ)
        for path in itertools.chain(list(self._files)[:_FILES_READ], words):
            with contextlib.suppress(OperationError):
                seen = workspace.read(path)
                if self._read.get(path) != seen.state:
                    _in_bytes(seen.data[:_BYTES_READ], path, self.vault.know)
                    self._read[path] = seen.state

    def told(self, request: str) -> str:
        """Return what is new about secrets since the last request; empty: nothing."""
        found, self.vault.news = self.vault.news, []
        total = -1 if self.is_off else sum(self.counts(request).values())
        is_known, self._told = total == self._told, total
        if self.is_off:
            how = "secrets are not looked for (--secrets off): read the request before you send it"
            return "" if is_known else how
        if not found and (is_known or not total):
            return ""
        names: list[str] = []
        for held in found:
            path, line = next(iter(held.places.items()), ("", 0))
            where = f" ({shown(path)}{f':{line}' if line else ''})" if path else ""
            names.append(f"{held.name}{where}")
        news = f"Hidden: {plain_text.some(names, _NAMED)}. " if names else ""
        what = f"{total} {plain_text.plural(total, 'secret')}" if total else "None"
        return f"{news}{what} in this request; all of the session: codingagent secrets"


def _in_bytes(data: bytes, path: str, hide: vault.Hides) -> bytes:
    found = encoding.decode_file(data, neighbours=tuple)
    return data if found is None else found.encode(hide(found.text, path))


def secrecy_of(sessions: Path, session: Session) -> Secrecy:
    """Return what to hide when a session is shown; of older sessions all that is found."""
    return Secrecy(session.terms.secrets or "redact", vault_file_of(sessions, session))


NO_SECRECY = Secrecy()
"""Of single operations, which a program asks for."""


class HiddenStream:
    """Hide secrets in an output as it comes: whole lines at a time, a private key all at once."""

    # A line or a key that is longer is not for reading.
    _LIMIT = 100_000

    def __init__(self, secrecy: Secrecy) -> None:
        self._secrecy = secrecy
        self._held = ""
        self._skips = False

    def add(self, text: str) -> str:
        """Return what may be shown now; half of a secret could not be found, so no half of a line is."""
        if not self._secrecy.vault.hides:
            return text
        if self._skips:
            _, newline, text = text.partition("\n")
            self._skips = not newline
        self._held += text
        end = self._held.rfind("\n") + 1
        opening = self._held.rfind("-----BEGIN ", 0, end)
        is_open = opening >= 0 and self._held.find("-----END ", opening, end) < 0
        if is_open and len(self._held) <= self._LIMIT:
            end = self._held.rfind("\n", 0, opening) + 1
        ready, self._held = self._held[:end], self._held[end:]
        if len(self._held) > self._LIMIT:
            self._held, self._skips = "", True
            ready += "… (a long line is not shown)\n"
        return self._secrecy.hide(ready)

    def rest(self) -> str:
        ready, self._held = self._held, ""
        return self._secrecy.hide(ready)
