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
from codingagent.agent.file_views import DATA, Views, in_brief
from codingagent.errors import OperationError, UsageError
from codingagent.model import check_outcome, paths
from codingagent.model import journal_entries as entries
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
from codingagent.model.plain_text import estimated, in_request
from codingagent.model.plain_text import size as size_of
from codingagent.model.session_state import Phase, Session, no_request_waits
from codingagent.model.settings import chats
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
    from codingagent.agent.wanted_files import Guess
    from codingagent.workspace.git_files import Belonging

# Many chats take no longer message, or forget its beginning.
_MUCH_TOKENS = 32_000
# What is read for a request is cut to fair shares later; more than this is of no use.
_VIEWS_PER_BUDGET = 4
# Programs that a model would otherwise spend a round trip to find out about.
_PROGRAMS = sections(__file__)["programs"].split()
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
        earlier = tuple(file.earlier for file in self._home.mailbox.look())
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
            self.context.remark(f"request {session.sequence} was missing from {path}: written again")
            self.refresh()
            self.write()
        mailbox, session = self._home.mailbox, self.session
        session_id, sequence = session.session_id, session.sequence
        short = str(mailbox.short_path(session_id, sequence)) if sequence > 1 else ""
        elsewhere = not watched and is_held(self._home.waiting_path(session_id))
        where = (str(path), str(mailbox.inbox), watched, short, elsewhere)
        told = (session.awaits_words, session.is_answered)
        self.context.person.show(Waiting(session_id, sequence, *where, *told))

    def write(self, listed: "Belonging | None" = None) -> None:
        """Write the request that is due, if any. Everything that it reports is durable before it appears.

        `listed` is what belongs to the workspace now; None: unknown.
        """
        secrecy, session, mailbox = self.context.secrecy, self.session, self._home.mailbox
        if session.phase is not Phase.REQUEST_DUE:
            self._home.sessions.mend_document(session)
            return
        secrecy.look_again()
        material, settings = self._material(listed), self.context.settings
        guess = self._guess(material)
        news = self._guess(material, is_anew=True) if session.new_wish else None
        guesses = [each for each in (news, guess) if each is not None]
        material = replace(
            material,
            choose=partial(_shown, guesses, is_anew=True),
            choose_new=partial(_shown, guesses[: news is not None]),
            likely=guesses[0].likely if guesses else (),
        )
        dialect, hidden, brief = self._dialect(), secrecy.session(session), ""
        text = secrecy.seal(render.render(hidden, material, settings, dialect), dialect.guide)
        text = in_request(text)
        path = mailbox.outbox_path(session.session_id, session.sequence)
        mailbox.write_beside(path, text)
        short = mailbox.short_path(session.session_id, session.sequence)
        if session.sequence > 1:  # for a chat that has seen the earlier requests
            changed = self.context.checkpointer.changed_since_request()
            brief = render.render_short(hidden, material, settings, dialect, changed)
            guide = dialect.guide if dialect.guide in brief else "=== PROTOCOL ==="
            brief = in_request(secrecy.seal(brief, guide))
            mailbox.write_beside(short, brief)
        # Names that nobody could put back must not leave.
        secrecy.save()
        # Made durable together with everything that they report: nothing of it can be missing later.
        self.context.checkpointer.sync()
        if brief:
            atomic_write.put_in_place(short)
        atomic_write.put_in_place(path)
        # What was shown before is only in the whole request, which the chat need not see.
        first = guess if session.sequence == 1 else news
        before, self.choice = self.choice, () if first is None else first.numbered
        is_told = self.choice == before
        if not before and session.requested == session.sequence:  # another process told of it
            is_told = {*session.known, *session.shown_in_part}.issuperset(self.choice)
        for line in () if first is None or is_told else first.told():
            self.context.remark(line)
        self._record_written(text, brief, material, first)
        for line in self._told(text, brief, material):
            self.context.remark(line)
        self._home.sessions.mend_document(self.session)

    def _told(self, text: str, brief: str, material: render.Material) -> Iterator[str]:
        """Yield what the person should know of a request and its short version before they send it."""
        session, settings = self.session, self.context.settings
        if told := self.context.secrecy.told(text):
            yield told
        for reason in material.listing.unread:
            yield f"left out of the file list: {reason}"
        is_first = session.sequence == 1
        for view in material.conventions if is_first and not session.is_rewritten else ():
            told = f"{shown_path(view.path)} goes along as the repository's conventions"
            yield f"{told} (--no-conventions leaves it out)"
        for view in material.views:
            if view.beside_bytes:
                root = self.context.workspace.root
                place = view.path if root == Path.cwd() else str(root / view.path)
                yield f"also attach: {paths.shown(place)}, {size_of(view.beside_bytes)}"
            if view.about and view.path in session.attached:
                lines = f"only the first and last of its {view.total_lines:,} lines go"
                yield f"{shown_path(view.path)}: {lines}; attach it by its own name for all"
        for part in file_contents.cuts(brief or text, material.files):
            yield f"Only part of {part}"
        if is_first and settings.chat != "custom":
            if advice := chats()[settings.chat].advice(len(text)):
                yield advice
        elif is_first and (size := tokens.estimate(text)) > _MUCH_TOKENS:
            yield (
                f"Request 1, {estimated(size)}, is too long for many chats: attach it instead of pasting, or"
                " lower context_chars"
            )
        if len(text) > (limit := settings.context_chars):
            yield (
                f"Longer than context_chars ({limit:,}): the task alone exceeds it; shorten it, or raise that"
            )

    def _guess(self, material: render.Material, *, is_anew: bool = False) -> "Guess | None":
        """Return what chooses files for the request; None where there is nothing to choose from.

        Of a later request these are files that the chat has met; if `is_anew`, those that it does not know.
        """
        session = self.session
        already = {view.path for view in material.files}
        listing, is_first = material.listing, is_anew or session.sequence == 1
        if session.sequence > 1:
            # A search of all files each turn would cost more than it finds.
            met = {*session.known, *session.shown_in_part, *session.touched}
            met = {p for p, digest in session.known_before.items() if digest} if is_anew else met
            files = {p: n for p, n in listing.files.items() if (p in met) is not is_anew}
            listing = replace(listing, files=files)
        if not session.terms.context or listing.files.keys() <= already:
            return None
        # Imported late: an empty folder needs none of it.
        from codingagent.agent.wanted_files import Guess, Wanted

        check = self.context.settings.check if is_first else ""
        wish = session.new_wish or (session.question if session.is_asking else session.wish)
        failure = check_outcome.failure_before(session)
        if failure and check_outcome.is_about(wish, check_outcome.failures_in(failure).names):
            from codingagent.prompt import tracebacks

            root = str(self.context.workspace.root)
            named = tracebacks.named_in(failure.output, root, listing.files)
            check = " ".join((check, *(path for path, _ in named)))
        left_out, touched = session.leave_out, session.touched
        held = session.held_before if is_anew else {}
        assert self.context.texts is not None, "a session has a chat"
        kept = self.context.texts.read
        how = (left_out, touched, already, check, session.is_asking, is_anew, held, kept)
        wanted = Wanted(wish, session.terms.context, *how)
        log = self.context.workspace.history() if is_first else []
        workspace, policy, hide = self.context.workspace, self.context.policy, self._hide
        return Guess(workspace, policy, listing, wanted, log, hide)

    def _record_written(
        self, text: str, brief: str, material: render.Material, guess: "Guess | None"
    ) -> None:
        """Record the request and the files that it makes known to the chat; keep their texts first."""
        chosen = () if guess is None else guess.whole
        # A later short request holds none.
        conventions = material.conventions if self.session.sequence == 1 else ()
        whole = {
            view.path: (view.digest, view.text)
            for view in (*material.views, *material.offered, *conventions, *chosen)
            if file_contents.shows_whole(text, view)
        }
        fetched = [event for event in self.session.results if isinstance(event, FileFetched)]
        for event in fetched:
            content = self.context.secrecy.content(event)
            # Events as JSON hold the text themselves, unless it was cut to fit.
            told = in_request(json.dumps(content, ensure_ascii=False))
            if event.encoding == "utf-8" and told in text:
                digest = digest_of(event.content.encode())
                whole[event.path] = (digest, content.replace("\r\n", "\n"))
        texts = self.context.texts
        assert texts is not None, "a session has a chat"
        held = {} if guess is None else guess.held_texts
        texts.keep({**held, **self._texts_written(texts), **dict(whole.values())})
        lines = {path: (a, b) for path, a, b in file_contents.lines_shown(text, material.files)}
        for part in () if guess is None else guess.chosen:
            lines[part.file.path] = (min(part.shown), max(part.shown))
        lines |= {path: (1, 0) for path in whole if path not in lines}  # in events as JSON, some
        data, short = (each.encode("utf-8", "replace") for each in (text, brief))
        egress = entries.Egress(
            len(data),
            digest_of(data),
            tuple(entries.ShownLines(path, *span) for path, span in lines.items()),
            self.context.secrecy.counts(text),
            self.context.secrecy.mode,
            len(short),
            digest_of(short) if short else "",
            *(size for each in (text, brief) for size in (len(each), tokens.estimate(each))),
        )
        shown = tuple(entries.ShownFile(path, digest) for path, (digest, _) in whole.items())
        parts = () if guess is None else guess.parts
        beside = {each.path: each.beside_bytes for each in material.views if each.beside_bytes}
        held_parts = () if guess is None else tuple(guess.held)
        written = (self.session.sequence, now(), shown, parts, egress, beside, held_parts)
        self.log.record(entries.RequestWritten(*written))
        self.written += 1
        parts_held = (part.digest for part in self.session.held.values())
        texts.prune((*self.session.known.values(), *parts_held))

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
        if self.session.terms.protocol == "tags":
            return render.tag_dialect()
        from codingagent.protocols.json.guide import dialect

        return dialect()

    def _material(self, listed: "Belonging | None") -> render.Material:
        session, workspace = self.session, self.context.workspace
        listing = workspace.listing(session.touched, listed)
        # Before anything is shown: their values may be in any other file, too.
        secret = (*listing.files, *listing.ignored.names)
        self.context.secrecy.read_files(workspace, secret)
        shown = Views(workspace, self._hide)
        unread: list[str] = []
        views = self._requested(shown, unread)
        known = {view.path for view in views}
        offered = tuple(self._offered(shown, listing, known))
        attached: list[file_contents.FileView] = []  # before, and not requested anyway
        named = self._named()
        for path in dict.fromkeys(path for each in session.said for path in each.attached):
            if path not in known:
                with contextlib.suppress(OperationError):  # gone since
                    view = shown.view(path, None, None)
                    view = view if path in named else in_brief(view)
                    attached.append(replace(view, reason="attached by the user before"))
        known.update(view.path for view in attached)
        conventions: list[file_contents.FileView] = []
        if session.terms.conventions and listing.files:
            from codingagent.agent import wanted_files

            policy, hide = self.context.policy, self._hide
            found = wanted_files.conventions(workspace, policy, listing.files, known, hide)
            conventions = [view for view in found if view.path not in known]
        # Events as JSON hold what they fetched.
        known.update(each.path for each in session.results if isinstance(each, FileFetched))
        # The other files that earlier turns showed or wrote; the latest one written comes first.
        met = dict.fromkeys((*reversed([*session.known]), *sorted(session.touched)))
        seen = [path for path in met if path in listing.files and path not in known]
        return render.Material(
            listing,
            views,
            unread,
            self._environment(),
            offered,
            attached,
            seen if session.sequence > 1 else (),
            conventions,
        )

    def _requested(self, shown: Views, unread: list[str]) -> list[file_contents.FileView]:
        """Return each file and range asked for once, and no range of a file that is wanted whole.

        What can't be shown is added to `unread`, with the reason.
        """
        session = self.session
        wanted: dict[tuple[str, int | None, int | None], None]
        wanted = {(path, None, None): None for path in session.attached}
        named = self._named()
        for event in session.results:
            match event:
                case FileRequested(paths=files, start_line=start, end_line=end):
                    wanted |= dict.fromkeys((path, start, end) for path in files)
                    named.add(event.asked)
                # JSON events hold what they fetched.
                case FileFetched() if session.terms.protocol == "tags":
                    wanted[event.path, None, None] = None
                case Refused() if event.digest and self.context.may_read(event.subject):
                    wanted[event.subject, None, None] = None
        limit = self.context.settings.context_chars
        views: list[file_contents.FileView] = []
        room = _VIEWS_PER_BUDGET * limit
        for path, start, end in wanted:
            is_part = (start, end) != (None, None)
            if is_part and (path, None, None) in wanted:
                continue
            if room <= 0:
                fact = "did not fit here; ask for fewer files at a time"
                unread.append(f"{paths.shown(path)}: {fact}")
                continue
            try:
                view = shown.view(path, start, end)
            except OperationError as fault:
                unread.append(f"{paths.shown(path)}: {fault.reason}")
                continue
            if path not in named and not is_part:
                view = in_brief(view)
            # Keep no more of a file than a whole request could hold.
            view = view.clipped(limit)
            room -= len(view.text)
            if is_part and not view.is_whole:
                from codingagent.context.show import in_frame

                text = shown.view(path, None, None).text
                view = in_frame(view, text, imported=all(path != each.path for each in views))
            views.append(view)
        return views

    def _named(self) -> set[str]:
        """Return the files that the person attached by their own names."""
        said = self.session.said
        return {path for each in said for path in each.attached if path not in each.brief}

    def _offered(self, shown: Views, listing: Listing, known: set[str]) -> Iterator[file_contents.FileView]:
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
        for path, lines in tracebacks.named_in("\n".join(outputs), root, listing.files):
            if path in known or path in written:
                continue
            try:
                # A command may print any path: this must not bypass the policy.
                if not self.context.may_read(path):
                    continue
                whole = shown.view(path, None, None)
            except OperationError:
                continue  # nobody asked for it: not text, or gone since
            # A chat that has seen all of it, as it is, need not see it again.
            if session.known.get(path) != whole.digest:
                yield replace(part_of(whole, lines), reason="named in an output above")


def _shown(guesses: "Sequence[Guess]", room: int, *, is_anew: bool = False) -> str:
    text = ""
    for guess in guesses:
        text += guess.show(room - len(text), is_anew=is_anew)
    return text
