"""Write a session's requests, with what the person adds to them.

The beginning of a session is here too, so that its first request needs no code that parses answers.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codingagent.agent.context import Context
from codingagent.agent.egress import egress_of
from codingagent.agent.file_views import DATA, Views, in_brief
from codingagent.errors import OperationError, UsageError
from codingagent.model import journal_entries as entries
from codingagent.model import paths
from codingagent.model.events import (
    CommandRan,
    FileFetched,
    FileRequested,
    Refused,
    file_changes,
    succeeded,
)
from codingagent.model.observations import digest_of
from codingagent.model.patterns import sections
from codingagent.model.plain_text import estimated
from codingagent.model.plain_text import size as size_of
from codingagent.model.session_state import Phase, Session, no_request_waits
from codingagent.model.ui_events import Waiting
from codingagent.policy.rules import advice
from codingagent.process import memory
from codingagent.prompt import file_contents, render, tokens
from codingagent.prompt.file_list import Listing, shown_path
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.journal import ShownTexts
from codingagent.storage.lock import is_held
from codingagent.workspace.programs import as_found

if TYPE_CHECKING:
    from codingagent.agent.guess import Guess
    from codingagent.workspace.git_files import Belonging

# Many chats take no longer message, or forget its beginning.
_MUCH_TOKENS = 32_000
_MUCH = "Request {}, {}, is too long for many chats: attach it instead of pasting, or lower context_chars"
# What is read for a request is cut to fair shares later; more than this is of no use.
_VIEWS_PER_BUDGET = 4
# Programs that a model would otherwise spend a round trip to find out about.
_PROGRAMS = sections(__file__)["programs"].split()
_ATTACHED_BEFORE = "attached by the user before"
# How many of the files that one answer wrote are kept, to show what the person changes in them.
_TEXTS_LIMIT = 200


class Requests:
    """The requests of one session. What writes raises WorkError if the disk fails."""

    def __init__(self, context: Context, home: Home) -> None:
        self.context = context
        self.log = context.log
        self._home = home
        self._hide = context.secrecy.hide
        self.written = 0
        """Number of requests written by this process, or found to be written by another one."""
        self.choice: tuple[str, ...] = ()
        """The files that were chosen for the first request and the globs left out, as the person saw them."""

    @property
    def session(self) -> Session:
        return self.log.session

    def begin(self) -> None:
        """Record what is already in the inbox, to ignore it until it changes."""
        earlier = tuple(
            entries.EarlierFile(file.name, file.sighting.size_bytes, file.sighting.modified_ns)
            for file in self._home.mailbox.look()
        )
        if earlier:
            self.log.record(entries.InboxFound(earlier, now()))

    def reopen(self) -> None:
        """Reopen a complete session: the next request has its last results."""
        self.log.record(entries.SessionReopened(now()))

    def say(
        self,
        text: str,
        attached: Mapping[str, bool] | None = None,
        wants: entries.Wants | None = None,
    ) -> None:
        """Add the person's words and files to the request that is due or waits; `write` writes it.

        A file is True if it was named by itself. `wants` changes what the request asks for. A complete
        session is reopened.
        """
        if self.session.is_complete:
            self.reopen()
        if self.session.is_asking and wants == "edits":
            self.context.remark(self.context.sandbox.remark)
        files = attached or {}
        brief = tuple(path for path in files if path.endswith(DATA) and not files[path])
        self.log.record(entries.PersonSaid(text, tuple(files), now(), wants, brief))

    def refresh(self, leave_out: tuple[str, ...] | None = None) -> None:
        """Have `write` rewrite the waiting request, from the files as they are now; UsageError if none waits.

        Files that fit the globs `leave_out` are not chosen from now on; None: as before.
        """
        if self.session.phase is Phase.REQUEST_DUE and leave_out is None:
            return
        if self.session.phase is not Phase.AWAITING_ANSWER:
            raise UsageError(no_request_waits(self.session))
        self.log.record(entries.RefreshAsked(now(), leave_out=leave_out))

    def unsay(self) -> None:
        """Withdraw the person's last words, or files, of the request that waits; `write` rewrites it."""
        if self.session.phase is not Phase.AWAITING_ANSWER:
            raise UsageError(no_request_waits(self.session))
        if not self.session.said or self.session.said[-1].sequence != self.session.sequence:
            raise UsageError("there is nothing to withdraw: this request has no words of yours")
        self.log.record(entries.RefreshAsked(now(), unsays=True))

    def revoke(self, grants: tuple[str, ...]) -> None:
        """Revoke all or some of the person's "always" approvals; UsageError if one is no longer granted."""
        if missing := [grant for grant in grants if grant not in self.session.granted]:
            raise UsageError(f"not granted in session {self.session.session_id}: {missing[0]}")
        self.log.record(entries.GrantsRevoked(grants, now()))

    def name_check(self, command: str) -> None:
        """Use another check from now on, or none if empty; `write` then tells the model."""
        if command != self.session.check:
            self.log.record(entries.CheckNamed(command, now()))

    def announce(self, *, watched: bool) -> None:
        """Tell what to do now, and whether the inbox is watched; write a request that is gone."""
        session = self.session
        path = self._home.mailbox.outbox_path(session.session_id, session.sequence)
        if session.is_awaiting_answer and not path.exists():
            self.context.remark(
                f"request {session.sequence} was missing from {path}: written again"
            )
            self.refresh()
            self.write()
        mailbox, session = self._home.mailbox, self.session
        session_id, sequence = session.session_id, session.sequence
        short = str(mailbox.short_path(session_id, sequence)) if sequence > 1 else ""
        elsewhere = not watched and is_held(self._home.waiting_path(session_id))
        where = (str(path), str(mailbox.inbox), watched, short, elsewhere)
        told = (session.awaits_words, session.is_answered)
        self.context.show(Waiting(session_id, sequence, *where, *told))

    def write(self, listed: "Belonging | None" = None) -> None:
        """Write the request that is due, if any. Everything that it reports is durable before it appears.

        `listed` is what belongs to the workspace now; None: unknown.
        """
        if self.session.phase is Phase.REQUEST_DUE:
            self._write(listed)
        self._home.sessions.mend_document(self.session)

    def _write(self, listed: "Belonging | None") -> None:
        self.context.secrecy.look_again()
        context, settings = self._material(listed), self.context.settings
        budget = render.Budget(settings.context_chars, settings.list_entries)
        guess = self._guess(context)
        news = self._guess(context, is_anew=True) if self.session.new_wish else None
        guesses = [each for each in (news, guess) if each is not None]
        context = replace(
            context,
            choose=partial(_shown, guesses),
            choose_new=partial(_shown, guesses[: news is not None]),
            likely=guesses[0].likely if guesses else (),
        )
        dialect, secrecy = self._dialect(), self.context.secrecy
        hidden = secrecy.session(self.session)
        text = secrecy.seal(render.render(hidden, context, budget, dialect), dialect.guide)
        mailbox, sequence = self._home.mailbox, self.session.sequence
        session_id, remark = self.session.session_id, self.context.remark
        path = mailbox.outbox_path(session_id, sequence)
        mailbox.write_beside(path, text)
        short = self._write_short(hidden, context, budget)
        # Names that nobody could put back must not leave.
        secrecy.save()
        # Made durable together with everything that they report: nothing of it can be missing later.
        self.context.sync()
        if short is not None:
            atomic_write.put_in_place(short[0])
        atomic_write.put_in_place(path)
        # What was shown before is only in the whole request, which the chat need not see.
        first = guess if sequence == 1 else news
        before, self.choice = self.choice, () if first is None else first.numbered
        is_told = self.choice == before
        if not before and self.session.requested == sequence:  # another process told of it
            is_told = {*self.session.known, *self.session.parts}.issuperset(self.choice)
        for line in () if first is None or is_told else first.told():
            remark(line)
        self._record_written(text, context, first, "" if short is None else short[1])
        if told := secrecy.told(text):
            remark(told)
        for reason in context.listing.unread:
            remark(f"left out of the file list: {reason}")
        for view in context.conventions if sequence == 1 and not self.session.is_rewritten else ():
            told = f"{shown_path(view.path)} goes along as the repository's conventions"
            remark(f"{told} (--no-conventions leaves it out)")
        for view in context.views:
            if view.beside_bytes:
                remark(f"also attach: {self._place_of(view.path)}, {size_of(view.beside_bytes)}")
            if view.about and view.path in self.session.attached:
                lines = f"only the first and last of its {view.total_lines:,} lines go"
                remark(f"{shown_path(view.path)}: {lines}; attach it by its own name for all")
        for part in file_contents.cuts(text if short is None else short[1], context.files):
            remark(f"Only part of {part}")
        advice = ""
        if sequence == 1 and settings.chat != "custom":
            from codingagent.model.chats import chats

            advice = chats()[settings.chat].advice(len(text))
        elif (size := tokens.estimate(text)) > _MUCH_TOKENS and sequence == 1:
            advice = _MUCH.format(sequence, estimated(size))
        if advice:
            remark(advice)
        if len(text) > (limit := budget.characters):
            remark(
                f"Longer than context_chars ({limit:,}): the task alone exceeds it; shorten it, or raise that"
            )

    def _guess(self, context: render.Material, *, is_anew: bool = False) -> "Guess | None":
        """Return what chooses files for the request; None where there is nothing to choose from.

        Of a later request these are files that the chat has met; if `is_anew`, those that it does not know.
        """
        session = self.session
        already = {view.path for view in context.files}
        listing, is_first = context.listing, is_anew or session.sequence == 1
        if session.sequence > 1:
            # A search of all files each turn would cost more than it finds.
            met = {*session.known, *session.parts, *session.touched}
            met = {p for p, digest in session.known_before.items() if digest} if is_anew else met
            files = {p: n for p, n in listing.files.items() if (p in met) is not is_anew}
            listing = replace(listing, files=files)
        if not session.context or listing.files.keys() <= already:
            return None
        # Imported late: an empty folder needs none of it.
        from codingagent.agent.guess import Guess, Wanted

        check = self.context.settings.check if is_first else ""
        left_out, touched = session.leave_out, session.touched
        wish = session.new_wish or (session.question if session.is_asking else session.wish)
        how = (left_out, touched, already, check, session.is_asking, is_anew)
        wanted = Wanted(wish, session.context, *how)
        log = self.context.workspace.history() if is_first else []
        workspace, policy, hide = self.context.workspace, self.context.policy, self._hide
        return Guess(workspace, policy, listing, wanted, log, hide)

    def _record_written(
        self, text: str, context: render.Material, guess: "Guess | None", short: str
    ) -> None:
        """Record the request and the files that it makes known to the chat; keep their texts first."""
        chosen = () if guess is None else guess.whole
        # A later short request holds none.
        conventions = context.conventions if self.session.sequence == 1 else ()
        whole = {
            view.path: (view.digest, view.text)
            for view in (*context.views, *context.offered, *conventions, *chosen)
            if file_contents.shows_whole(text, view)
        }
        fetched = [event for event in self.session.results if isinstance(event, FileFetched)]
        for event in fetched:
            content = self.context.secrecy.content(event)
            # Events as JSON hold the text themselves, unless it was cut to fit.
            if event.encoding == "utf-8" and json.dumps(content, ensure_ascii=False) in text:
                digest = digest_of(event.content.encode())
                whole[event.path] = (digest, content.replace("\r\n", "\n"))
        texts = self.context.texts
        assert texts is not None, "a session has a chat"
        texts.keep({**self._texts_written(texts), **dict(whole.values())})
        shown = tuple(entries.ShownFile(path, digest) for path, (digest, _) in whole.items())
        parts = () if guess is None else guess.parts
        egress = egress_of(self.context.secrecy, (text, short), context.files, guess, whole)
        record = entries.RequestWritten(self.session.sequence, now(), shown, parts, egress)
        self.log.record(record)
        self.written += 1
        texts.prune(self.session.known.values())

    def _texts_written(self, texts: ShownTexts) -> dict[str, str]:
        """Return the texts of files as the last answer wrote them, by digest."""
        session, found = self.session, dict[str, str]()
        limit = _VIEWS_PER_BUDGET * self.context.settings.context_chars
        written = [e.path for e in file_changes(session.results) if not e.removes]
        views = Views(self.context.workspace, self._hide)
        for path in list(dict.fromkeys(written))[:_TEXTS_LIMIT]:
            digest = session.known.get(path)
            if digest and not texts.has(digest):
                with contextlib.suppress(OperationError):
                    view = views.view(path, None, None)
                    if view.digest == digest and not view.beside_bytes and len(view.text) <= limit:
                        found[digest] = view.text
        return found

    def _write_short(
        self, session: Session, context: render.Material, budget: render.Budget
    ) -> tuple[Path, str] | None:
        """Write the short version for a chat that has seen the earlier requests; None for the first."""
        if session.sequence == 1:
            return None
        changed = self.context.checkpointer.changed_since_request()
        text = render.render_short(session, context, budget, self._dialect(), changed)
        guide = self._dialect().guide
        guide = guide if guide in text else "=== PROTOCOL ==="
        text = self.context.secrecy.seal(text, guide)
        path = self._home.mailbox.short_path(session.session_id, session.sequence)
        self._home.mailbox.write_beside(path, text)
        return path, text

    def _environment(self) -> render.Environment:
        settings, sandbox = self.context.settings, self.context.sandbox
        return render.Environment(
            f"{platform.system()} ({platform.machine()})",
            "cmd.exe" if os.name == "nt" else "/bin/sh",
            tuple(filter(None, map(as_found, _PROGRAMS))),
            settings.command_timeout,
            sandbox.description,
            sandbox.network,
            memory.in_words(memory.limit_bytes(settings.command_memory)),
            self._hide(settings.check),
            advice(self.context.policy),
        )

    def _dialect(self) -> render.Dialect:
        if self.session.is_asking:
            return render.question_dialect()
        if self.session.protocol == "tags":
            return render.tag_dialect()
        from codingagent.protocols.json.guide import dialect

        return dialect()

    def _wanted(self) -> Iterator[tuple[str, int | None, int | None]]:
        """Yield each file and range asked for once, and no range of a file that is wanted whole."""
        session = self.session
        wanted: dict[tuple[str, int | None, int | None], None]
        wanted = {(path, None, None): None for path in session.attached}
        for event in session.results:
            match event:
                case FileRequested(paths=named, start_line=start, end_line=end):
                    wanted |= dict.fromkeys((path, start, end) for path in named)
                # JSON events hold what they fetched.
                case FileFetched() if session.protocol == "tags":
                    wanted[event.path, None, None] = None
                case Refused() if event.digest and self.context.may_read(event.subject):
                    wanted[event.subject, None, None] = None
        for path, start, end in wanted:
            if (start, end) == (None, None) or (path, None, None) not in wanted:
                yield path, start, end

    def _material(self, listed: "Belonging | None") -> render.Material:
        listing = self.context.workspace.listing(self.session.touched, listed)
        # Before anything is shown: their values may be in any other file, too.
        secret = (*listing.files, *listing.ignored.names)
        self.context.secrecy.read_files(self.context.workspace, secret)
        views: dict[tuple[str, int | None, int | None], file_contents.FileView] = {}
        unread: list[str] = []
        shown = Views(self.context.workspace, self._hide)
        room = _VIEWS_PER_BUDGET * self.context.settings.context_chars
        events = self.session.results
        named = {e.asked for e in events if isinstance(e, FileRequested)} | self._named()
        for path, start, end in self._wanted():
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
            if path not in named and (start, end) == (None, None):
                view = in_brief(view)
            # Keep no more of a file than a whole request could hold.
            view = view.clipped(self.context.settings.context_chars)
            room -= len(view.text)
            if not view.is_whole and (start, end) != (None, None):
                from codingagent.context.show import in_frame

                text = shown.view(path, None, None).text
                view = in_frame(view, text, imported=all(path != other for other, *_ in views))
            views[path, start, end] = view
        known = {path for path, _, _ in views}
        offered = tuple(self._offered(shown, listing, known))
        attached = tuple(self._attached_before(shown, known))
        seen = self._seen_before(listing, known | {view.path for view in attached})
        conventions = self._conventions(listing, known | {view.path for view in attached})
        return render.Material(
            listing,
            tuple(views.values()),
            unread,
            self._environment(),
            offered,
            attached,
            seen,
            conventions,
        )

    def _place_of(self, path: str) -> str:
        """Return a file of the workspace as the person finds it from where they are."""
        root = self.context.workspace.root
        return paths.shown(path if root == Path.cwd() else str(root / path))

    def _conventions(self, listing: Listing, known: set[str]) -> tuple[file_contents.FileView, ...]:
        """Return what the repository says about itself, unless it is shown anyway."""
        if not (self.session.conventions and listing.files):
            return ()
        from codingagent.agent.attachments import conventions

        workspace, policy = self.context.workspace, self.context.policy
        found = conventions(workspace, policy, listing.files, known, self._hide)
        return tuple(view for view in found if view.path not in known)

    def _named(self) -> set[str]:
        """Return the files that the person attached by their own names."""
        said = self.session.said
        return {path for each in said for path in each.attached if path not in each.brief}

    def _attached_before(self, shown: Views, known: set[str]) -> Iterator[file_contents.FileView]:
        """Yield the attachments of earlier requests that still exist and are not requested anyway."""
        said, named = self.session.said, self._named()
        for path in dict.fromkeys(path for each in said for path in each.attached):
            if path not in known:
                with contextlib.suppress(OperationError):  # gone since
                    view = shown.view(path, None, None)
                    view = view if path in named else in_brief(view)
                    yield replace(view, reason=_ATTACHED_BEFORE)

    def _seen_before(self, listing: Listing, known: set[str]) -> tuple[str, ...]:
        """Return the other existing files that earlier turns showed or wrote."""
        session = self.session
        if session.sequence == 1:
            return ()
        # Events as JSON hold what they fetched.
        known = known.union(e.path for e in session.results if isinstance(e, FileFetched))
        # The latest file written comes first.
        paths = [*reversed([*session.known]), *sorted(session.touched)]
        return tuple(p for p in dict.fromkeys(paths) if p in listing.files and p not in known)

    def _offered(
        self, shown: Views, listing: Listing, known: set[str]
    ) -> Iterator[file_contents.FileView]:
        """Yield files that the outputs of failed commands name: the model would ask for them next."""
        session = self.session
        events = (*session.results, *filter(None, (session.checked,)))
        outputs = [e.output for e in events if isinstance(e, CommandRan) and not succeeded(e)]
        if not outputs:
            return
        # The model knows what this very answer wrote whole.
        written = {each.path for each in file_changes(session.results) if each.after == "whole"}
        from codingagent.context.show import part_of
        from codingagent.prompt import tracebacks

        root = str(self.context.workspace.root)
        for named in tracebacks.named_in("\n".join(outputs), root, listing.files):
            if named.path in known or named.path in written:
                continue
            try:
                # A command may print any path: this must not bypass the policy.
                if not self.context.may_read(named.path):
                    continue
                whole = shown.view(named.path, None, None)
            except OperationError:
                continue  # nobody asked for it: not text, or gone since
            # A chat that has seen all of it, as it is, need not see it again.
            if session.known.get(named.path) != whole.digest:
                yield replace(part_of(whole, named.lines), reason="named in an output above")


def _shown(guesses: "Sequence[Guess]", room: int) -> str:
    text = ""
    for guess in guesses:
        text += guess.show(room - len(text))
    return text
