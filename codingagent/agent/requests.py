"""Write a session's requests, with what the person adds to them.

The beginning of a session is here too, so that its first request needs no code that parses answers.
"""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.file_views import Views
from codingagent.errors import OperationError, UsageError
from codingagent.model import paths
from codingagent.model.effects import file_changes
from codingagent.model.events import (
    CommandRan,
    FileFetched,
    FileRequested,
    Refused,
    succeeded,
)
from codingagent.model.journal_entries import (
    CheckNamed,
    EarlierFile,
    GrantsRevoked,
    InboxFound,
    PersonSaid,
    RefreshAsked,
    RequestWritten,
    SessionReopened,
    ShownFile,
)
from codingagent.model.observations import InboxFile, Seen, digest_of
from codingagent.model.session_state import Phase, Session, no_request_waits
from codingagent.model.ui_events import Notice, OutboxReady, QuestionAsked, Remark, Waiting
from codingagent.prompt import render, tokens
from codingagent.prompt.file_list import Listing
from codingagent.storage.session_log import SessionLog


class OutboxLike(Protocol):
    """Where requests are written, and what is in the inbox."""

    inbox: Path

    def outbox_path(self, session_id: str, sequence: int) -> Path: ...
    def short_path(self, session_id: str, sequence: int) -> Path: ...
    def write_beside(self, path: Path, text: str) -> None: ...
    def put_in_place(self, path: Path) -> None: ...
    def look(self) -> list[InboxFile]: ...


class ReadableWorkspace(Protocol):
    """Read access to the workspace, for what a request shows."""

    root: Path

    def read(self, path: str, *, whole: bool = True) -> Seen: ...
    def listing(self, always: frozenset[str] = frozenset()) -> Listing: ...


class TextsLike(Protocol):
    """Texts of files as the chat knows them, by digest."""

    def has(self, digest: str) -> bool: ...
    def keep(self, texts: Mapping[str, str]) -> None: ...
    def prune(self, digests: Iterable[str]) -> None: ...


# What is read for a request is cut to fair shares later; more than this is of no use.
_VIEWS_PER_BUDGET = 4

_ATTACHED_BEFORE = "attached by the person before"

# How many of the files that one answer wrote are kept, to show what the person changes in them.
_TEXTS_LIMIT = 200


class Materials(Struct, frozen=True):
    """Everything that requests are made from."""

    workspace: ReadableWorkspace
    mailbox: OutboxLike
    budget: render.Budget
    environment: render.Environment
    sync: Callable[[], None]
    """Make everything that was written durable, in the workspace and in the home."""
    now: Callable[[], str]
    """UTC, ISO 8601 with Z."""
    show: Callable[[Notice], None]
    changed: Callable[[], tuple[str, ...] | None]
    """Return what changed in the workspace since the request before, a line each; None: unknown."""
    may_read: Callable[[str], bool]
    """Return whether the policy allows a file's text to go to the chat."""
    keep_document: Callable[[Session], None]
    """Write the file that shows the session to other programs, if it differs from the journal."""
    texts: TextsLike


class Requests:
    """The requests of one session."""

    def __init__(self, log: SessionLog, means: Materials) -> None:
        self.log = log
        self._means = means
        self._asked = 0

    @property
    def session(self) -> Session:
        """The session as its journal has it now."""
        return self.log.session

    def begin(self) -> None:
        """Record what is already in the inbox, to ignore it until it changes.

        Raises:
            WorkError: if the disk fails.
        """
        earlier = tuple(
            EarlierFile(letter.name, letter.sighting.size_bytes, letter.sighting.modified_ns)
            for letter in self._means.mailbox.look()
        )
        if earlier:
            self.log.record(InboxFound(earlier, self._means.now()))
            names = ", ".join(paths.shown(file.name) for file in earlier)
            self._means.show(
                Remark(
                    f"left alone, because it lay in the inbox before: {names}; to use one: codingagent"
                    f" resume {self.session.session_id} --accept FILE"
                )
            )

    def reopen(self) -> None:
        """Reopen a complete session: the next request has its last results."""
        self.log.record(SessionReopened(self._means.now()))

    def say(self, text: str, attached: tuple[str, ...] = (), errand: str = "") -> None:
        """Add the person's words and files to the request that is due or waits; `write` writes it.

        A complete session is reopened.

        Args:
            text: their words; may be empty if there are files.
            attached: paths as `attachable` returns them.
            errand: the name of the errand that brought them; a second one of that name does nothing.

        Raises:
            WorkError: if the disk fails.
        """
        if errand and any(said.errand == errand for said in self.session.said):
            return
        if self.session.is_complete:
            self.reopen()
        self.log.record(PersonSaid(text, attached, self._means.now(), errand))

    def refresh(self) -> None:
        """Have `write` rewrite the waiting request, from the workspace as it is now.

        Raises:
            UsageError: if none waits, or is due.
            WorkError: if the disk fails.
        """
        if self.session.phase is Phase.REQUEST_DUE:
            return
        if self.session.phase is not Phase.AWAITING_ANSWER:
            raise UsageError(no_request_waits(self.session))
        self.log.record(RefreshAsked(self._means.now()))

    def revoke(self, grants: tuple[str, ...]) -> None:
        """Revoke all or some of the person's "always" approvals.

        Raises:
            UsageError: if one of them was not granted, or is no longer.
            WorkError: if the disk fails.
        """
        if missing := [grant for grant in grants if grant not in self.session.granted]:
            raise UsageError(f"not granted in session {self.session.session_id}: {missing[0]}")
        self.log.record(GrantsRevoked(grants, self._means.now()))
        for grant in grants:
            self._means.show(Remark(f"no longer granted: {grant}"))

    def name_check(self, command: str) -> None:
        """Use another check from now on, or none if empty; `write` then tells the model.

        Raises:
            WorkError: if the disk fails.
        """
        if command != self.session.check:
            self.log.record(CheckNamed(command, self._means.now()))

    def announce(self, *, watched: bool) -> None:
        """Tell the person what to do now, and whether a process watches the inbox.

        A request whose file is gone is written again.

        Raises:
            WorkError: if the disk fails.
        """
        session = self.session
        path = self._means.mailbox.outbox_path(session.session_id, session.sequence)
        if session.is_awaiting_answer and not path.exists():
            self._means.show(
                Remark(f"request {session.sequence} was gone from {path}: written again")
            )
            self.refresh()
            self.write()
        self._means.show(waiting(self._means.mailbox, self.session, watched=watched))
        self.ask()

    def ask(self) -> None:
        """Show how the model's words are answered, once for each request, until they are."""
        session = self.session
        is_answered = any(said.sequence == session.sequence for said in session.said)
        if session.is_only_words and not (is_answered or self._asked == session.sequence):
            self._asked = session.sequence
            self._means.show(QuestionAsked(session.session_id))

    def write(self) -> None:
        """Write the request that is due, if any. Everything that it reports is durable before it appears.

        Raises:
            WorkError: if the disk fails.
        """
        if self.session.phase is Phase.REQUEST_DUE:
            self._write()
        self._means.keep_document(self.session)

    def _write(self) -> None:
        context, budget = self._context(), self._means.budget
        text = render.render(self.session, context, budget, self._dialect())
        mailbox, session_id, sequence = (
            self._means.mailbox,
            self.session.session_id,
            self.session.sequence,
        )
        path = mailbox.outbox_path(session_id, sequence)
        mailbox.write_beside(path, text)
        short = self._write_short(context)
        # Made durable together with everything that they report: nothing of it can be missing later.
        self._means.sync()
        if short is not None:
            mailbox.put_in_place(short[0])
        mailbox.put_in_place(path)
        self._record_written(text, context)
        size = tokens.estimate(text)
        ready = OutboxReady(
            session_id, sequence, str(path), len(text), size, budget=budget.characters
        )
        if short is not None:
            short_path, brief = short
            ready = replace(
                ready,
                short_path=str(short_path),
                short_characters=len(brief),
                short_tokens=tokens.estimate(brief),
            )
        self._means.show(ready)
        for reason in context.listing.unread:
            self._means.show(Remark(f"not read for the list of files: {reason}"))
        if len(text) > self._means.budget.characters:
            limit = self._means.budget.characters
            self._means.show(
                Remark(f"it is longer than context_chars ({limit}): the task itself is")
            )

    def _record_written(self, text: str, context: render.Context) -> None:
        """Record the request and the files that it makes known to the chat; keep their texts first."""
        whole = {
            view.path: (view.digest, view.text)
            for view in (*context.views, *context.offered)
            if render.shows_whole(text, view)
        }
        for event in self.session.results:
            if isinstance(event, FileFetched) and event.encoding == "utf-8":
                content = event.content
                # Events as JSON hold the text themselves, unless it was cut to fit.
                if json.dumps(content, ensure_ascii=False) in text:
                    plain = content.replace("\r\n", "\n")
                    whole[event.path] = (digest_of(content.encode()), plain)
        self._means.texts.keep({**self._texts_written(), **dict(whole.values())})
        shown = tuple(ShownFile(path, digest) for path, (digest, _) in whole.items())
        record = RequestWritten(self.session.sequence, self._means.now(), shown)
        self.log.record(record)
        self._means.texts.prune(self.session.known.values())

    def _texts_written(self) -> dict[str, str]:
        """Return the texts of files as the last answer wrote them, by digest."""
        session, found = self.session, dict[str, str]()
        limit = _VIEWS_PER_BUDGET * self._means.budget.characters
        written = [e.path for e in file_changes(session.results) if e.after != "nothing"]
        views = Views(self._means.workspace)
        for path in list(dict.fromkeys(written))[:_TEXTS_LIMIT]:
            digest = session.known.get(path)
            if digest and not self._means.texts.has(digest):
                with contextlib.suppress(OperationError):
                    view = views.view(path, None, None)
                    if view.digest == digest and len(view.text) <= limit:
                        found[digest] = view.text
        return found

    def _write_short(self, context: render.Context) -> tuple[Path, str] | None:
        """Write the short version for a chat that has seen the earlier requests; None for the first."""
        session = self.session
        if session.sequence == 1:
            return None
        changed = self._means.changed()
        text = render.render_short(session, context, self._means.budget, self._dialect(), changed)
        path = self._means.mailbox.short_path(session.session_id, session.sequence)
        self._means.mailbox.write_beside(path, text)
        return path, text

    def _dialect(self) -> render.Dialect:
        if self.session.protocol == "tags":
            return render.tag_dialect()
        from codingagent.protocols.json.json_guide import dialect

        return dialect()

    def _wanted_files(self) -> list[FileRequested]:
        """Return the files whose text the request holds; JSON events already hold what they fetched."""
        requests = [FileRequested(path, (path,)) for path in self.session.attached]
        for event in self.session.results:
            if isinstance(event, FileRequested):
                requests.append(event)
            elif isinstance(event, FileFetched) and self.session.protocol == "tags":
                requests.append(FileRequested(event.path, (event.path,)))
            elif (
                isinstance(event, Refused) and event.digest and self._means.may_read(event.subject)
            ):
                requests.append(FileRequested(event.subject, (event.subject,)))
        return requests

    def _context(self) -> render.Context:
        views: dict[tuple[str, int | None, int | None], render.FileView] = {}
        unread: list[str] = []
        requests = self._wanted_files()
        shown = Views(self._means.workspace)
        room = _VIEWS_PER_BUDGET * self._means.budget.characters
        for path, start, end in _wanted(requests):
            if room <= 0:
                unread.append(
                    f"{paths.shown(path)}: did not fit here; ask for fewer files at a time"
                )
                continue
            try:
                view = shown.view(path, start, end)
            except OperationError as fault:
                unread.append(f"{paths.shown(path)}: {fault.reason}")
                continue
            # Keep no more of a file than a whole request could hold.
            view = view.clipped(self._means.budget.characters)
            room -= len(view.text)
            views[path, start, end] = view
        listing = self._means.workspace.listing(self.session.touched)
        known = {path for path, _, _ in views}
        offered = tuple(self._offered(shown, listing, known))
        attached = tuple(self._attached_before(shown, known))
        seen = self._seen_before(listing, known | {view.path for view in attached})
        return render.Context(
            listing,
            tuple(views.values()),
            unread,
            self._means.environment,
            offered,
            attached,
            seen,
        )

    def _attached_before(self, shown: Views, known: set[str]) -> Iterator[render.FileView]:
        """Yield the attachments of earlier requests that still exist and are not requested anyway."""
        said = self.session.said
        for path in dict.fromkeys(path for each in said for path in each.attached):
            if path not in known:
                with contextlib.suppress(OperationError):  # gone since
                    yield replace(shown.view(path, None, None), reason=_ATTACHED_BEFORE)

    def _seen_before(self, listing: Listing, known: set[str]) -> tuple[str, ...]:
        """Return the other existing files that earlier turns showed or wrote."""
        session = self.session
        if session.sequence == 1:
            return ()
        there = {file.path for file in listing.files}
        # Events as JSON hold what they fetched.
        known = known.union(e.path for e in session.results if isinstance(e, FileFetched))
        # The latest file written comes first.
        paths = [*reversed([*session.known]), *sorted(session.touched)]
        return tuple(p for p in dict.fromkeys(paths) if p in there and p not in known)

    def _offered(
        self, shown: Views, listing: Listing, known: set[str]
    ) -> Iterator[render.FileView]:
        """Yield files that the outputs of failed commands name: the model would ask for them next."""
        session = self.session
        events = (*session.results, *filter(None, (session.checked,)))
        outputs = [e.output for e in events if isinstance(e, CommandRan) and not succeeded(e)]
        if not outputs:
            return
        # The model knows what this very answer wrote whole.
        written = {each.path for each in file_changes(session.results) if each.after == "whole"}
        from codingagent.prompt import tracebacks

        files = [file.path for file in listing.files]
        root = str(self._means.workspace.root)
        for named in tracebacks.named_in("\n".join(outputs), root, files):
            if named.path in known or named.path in written:
                continue
            try:
                # A command may print any path: this must not bypass the policy.
                if not self._means.may_read(named.path):
                    continue
                whole = shown.view(named.path, None, None)
                view = shown.view(named.path, *named.range_of(whole.total_lines))
            except OperationError:
                continue  # nobody asked for it: not text, or gone since
            yield replace(view, reason="named in an output above")


def waiting(
    mailbox: OutboxLike, session: Session, *, watched: bool, elsewhere: bool = False
) -> Waiting:
    """Return the notice of a waiting request: its file, where its answer goes, and who watches."""
    session_id, sequence = session.session_id, session.sequence
    path = mailbox.outbox_path(session_id, sequence)
    short = str(mailbox.short_path(session_id, sequence)) if sequence > 1 else ""
    inbox = str(mailbox.inbox)
    return Waiting(session_id, sequence, str(path), inbox, watched, short, elsewhere)


def _wanted(requests: Iterable[FileRequested]) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield each file and range once, and no range of a file that is requested whole."""
    wanted = dict.fromkeys(
        (path, event.start_line, event.end_line) for event in requests for path in event.paths
    )
    for path, start, end in wanted:
        if (start, end) == (None, None) or (path, None, None) not in wanted:
            yield path, start, end
