"""Write a session's requests, with what the person adds to them.

Over 500 lines: what a request shows, and what is recorded of it as known to the chat, change together.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codingagent.agent.context import DATA, Context, Views, in_brief
from codingagent.errors import OperationError, UsageError
from codingagent.model import check_outcome, notices, paths, patterns
from codingagent.model import journal_entries as entries
from codingagent.model.events import CommandRan, FileFetched, FileRequested, Refused, file_changes, succeeded
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import estimated, in_request
from codingagent.model.session_state import Phase, Said, Session, check_request_waits
from codingagent.model.settings import chats, pasted
from codingagent.policy.rules import advice
from codingagent.process import bubblewrap, memory
from codingagent.prompt import file_contents, file_list, render, tokens
from codingagent.prompt.file_contents import FileView
from codingagent.storage import atomic_write, homes, lock
from codingagent.storage.clock import now
from codingagent.workspace.programs import as_found

if TYPE_CHECKING:
    from codingagent.agent.wanted_files import RankedFiles
    from codingagent.context.held import Held
    from codingagent.workspace.git_files import GitListing

# Many chats take no longer message, or forget its beginning.
_MUCH_TOKENS = 32_000
# What is read for a request is cut to fair shares later; more than this is of no use.
_VIEWS_PER_BUDGET = 4
# Programs that a model would otherwise spend a round trip to find out about.
_PROGRAMS = patterns.sections(__file__)["programs"].split()
# Of what changed in files that the chat has; of more the names alone are told.
_CHANGED_CHARACTERS = 8_000
# So many of these files, the latest ones, are looked at.
_LOOKED_AT = 100


class Requests:
    """The requests of one session. What writes raises WorkError if the disk fails."""

    def __init__(self, context: Context, home: homes.Home) -> None:
        self.context = context
        self.log = context.log
        self._home = home
        self._hide = context.secrecy.hide
        self.written = 0
        """Number of requests written by this process, or found to be written by another one."""
        self._changed = set[str]()
        """Files of which the request that is due shows what changed."""
        self.choice: tuple[str, ...] | None = None

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
        self, text: str, files: Mapping[str, entries.Attached] = {}, wants: entries.Wants | None = None
    ) -> None:
        """Add the person's words and files to the request that is due or waits; reopen a complete session."""
        if self.session.is_complete:
            self.reopen()
        if self.session.is_asking and wants == "edits":
            self.context.remark(self.context.sandbox.remark)
        brief = tuple(path for path in files if path.endswith(DATA) and not files[path])
        parts = {path: of for path, of in files.items() if isinstance(of, tuple)}
        self.log.record(entries.PersonSaid(text, tuple(files), now(), wants, brief, parts))

    def refresh(self, leave_out: tuple[str, ...] | None = None) -> None:
        """Have `write` rewrite the waiting request, from the files as they are now; UsageError if none waits.

        Files that fit the globs `leave_out` are not chosen any more, nor attached by name; None: as it was.
        """
        if self.session.phase is Phase.REQUEST_DUE and leave_out is None:
            return
        check_request_waits(self.session)
        self.log.record(entries.RefreshAsked(now(), leave_out=leave_out))

    def unsay(self) -> None:
        """Withdraw the person's last words, or files, of the request that waits; `write` rewrites it."""
        check_request_waits(self.session)
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

    def name_chats(self, count: int, *, takes_green: bool) -> None:
        """Have so many answers to each request tried before one is taken; 0: the first is executed."""
        if count and self.context.sandbox.tier == "none":
            raise UsageError(bubblewrap.NO_TRIALS)
        self.log.record(entries.ChatsNamed(count, takes_green, now()))

    def announce(self, *, watched: bool) -> None:
        """Tell what to do now, and whether the inbox is watched; write a request that is gone."""
        session, mailbox = self.session, self._home.mailbox
        session_id, sequence = session.session_id, session.sequence
        if session.is_of_tools:
            self.context.remark(f"session {session_id} waits for calls of its client: nothing to paste")
            return
        path = mailbox.outbox_path(session_id, sequence)
        if session.is_awaiting_answer and not path.exists():
            self.context.remark(f"request {sequence} was missing from {path}: written again")
            self.refresh()
            self.write()
            session = self.session
        short = str(mailbox.short_path(session_id, sequence)) if sequence > 1 else ""
        elsewhere = not watched and lock.is_held(self._home.waiting_path(session_id))
        where = (str(path), str(mailbox.inbox), watched, short, elsewhere)
        told = (session.awaits_words, session.is_answered)
        self.context.person.show(notices.Waiting(session_id, sequence, *where, *told))

    def write(self) -> None:
        """Write the request that is due, if any; all that it reports is durable before it appears."""
        secrecy, session, mailbox = self.context.secrecy, self.session, self._home.mailbox
        checkpointer = self.context.checkpointer
        listed, checkpointer.listed = checkpointer.listed, None  # later it would be out of date
        if session.phase is not Phase.REQUEST_DUE:
            self._home.sessions.mend_document(session)
            return
        if session.is_of_tools:  # its client is told in the result of its call
            self.log.record(entries.RequestWritten(session.sequence, now()))
            return
        secrecy.look_again()
        (text, material, first), brief = self.draft(listed), ""
        path = mailbox.outbox_path(session.session_id, session.sequence)
        mailbox.write_beside(path, text)
        short = mailbox.short_path(session.session_id, session.sequence)
        if session.sequence > 1:  # for a chat that has seen the earlier requests
            dialect, hidden = self._dialect(), secrecy.session(session)
            changed = checkpointer.changed_since_request()
            brief = render.render_short(hidden, material, self.context.settings, dialect, changed)
            guide = dialect.guide if dialect.guide in brief else "=== PROTOCOL ==="
            brief = in_request(secrecy.seal(brief, guide))
            mailbox.write_beside(short, brief)
        # Names that nobody could put back must not leave.
        secrecy.save()
        # Made durable together with everything that they report: nothing of it can be missing later.
        checkpointer.sync()
        if brief:
            atomic_write.put_in_place(short)
        atomic_write.put_in_place(path)
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

    def draft(self, listed: "GitListing | None" = None) -> "tuple[str, render.Material, RankedFiles | None]":
        """Return the request that is due as `write` writes it, what it shows, and what chose files for it."""
        session, settings, secrecy = self.session, self.context.settings, self.context.secrecy
        material = self._material(listed)
        guess = self._guess(material)
        news = self._guess(material, is_anew=True) if session.new_wish else None
        guesses = [each for each in (news, guess) if each is not None]
        material = replace(
            material,
            choose=partial(_shown, guesses, is_anew=True),
            choose_new=partial(_shown, guesses[: news is not None]),
            likely=guesses[0].likely if guesses else (),
        )
        dialect, hidden = self._dialect(), secrecy.session(session)
        text = secrecy.seal(render.render(hidden, material, settings, dialect), dialect.guide)
        # What was shown before is only in the whole request, which the chat need not see.
        return in_request(text), material, guess if session.sequence == 1 else news

    def _told(self, text: str, brief: str, material: render.Material) -> Iterator[str]:
        """Yield what the person should know of a request and its short version before they send it."""
        session, settings = self.session, self.context.settings
        if told := self.context.secrecy.told(text):
            yield told
        for reason in material.listing.unread:
            yield f"left out of the file list: {reason}"
        is_first = session.sequence == 1
        for view in material.conventions if is_first and not session.is_rewritten else ():
            told = f"{file_list.shown_path(view.path)} goes along as the repository's conventions"
            yield f"{told} (--no-conventions leaves it out)"
        for view in material.views:
            if view.beside_bytes:
                root = self.context.workspace.root
                place = view.path if root == Path.cwd() else str(root / view.path)
                yield f"also attach: {paths.shown(place)}, {file_list.human_size(view.beside_bytes)}"
            if view.about and view.path in session.attached:
                lines = f"only the first and last of its {view.total_lines:,} lines go"
                yield f"{file_list.shown_path(view.path)}: {lines}; attach it by its own name for all"
        yield from file_contents.cuts(brief or text, material.files)
        if settings.chat != "custom":
            chat, size = chats()[settings.chat], len(brief or text)
            if (is_first or size > (pasted(settings.chat) or size)) and (advice := chat.advice(size)):
                yield advice
            if chat.files is not None and session.sequence == chat.files.value + 1:
                how = "if it refuses this one, /new-chat goes on in a new chat"
                yield f"{chat.title} takes {chat.files.value} files: {how}"
        elif is_first and (size := tokens.estimate(text)) > _MUCH_TOKENS:
            how = "attach it instead of pasting, or lower context_chars"
            yield f"Request 1, {estimated(size)}, is too long for many chats: {how}"
        if len(text) > (limit := settings.context_chars):
            yield f"Longer than context_chars ({limit:,}) by its task alone: shorten it, or raise that"

    def _guess(self, material: render.Material, *, is_anew: bool = False) -> "RankedFiles | None":
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
            already |= met if is_anew else set()
            files = {p: n for p, n in listing.files.items() if (p in met) is not is_anew}
            listing = replace(listing, files=files)
        if not session.terms.context or listing.files.keys() <= already:
            return None
        # Imported late: an empty folder needs none of it.
        from codingagent.agent.wanted_files import RankedFiles, Wanted

        check = self.context.settings.check if is_first else ""
        near = dict.fromkeys(sorted(session.touched), "of this session")
        wish = session.new_wish or (session.question if session.is_asking else session.wish)
        failure = check_outcome.failure_before(session)
        if failure and check_outcome.is_about(wish, check_outcome.failures_in(failure).names):
            from codingagent.prompt import tracebacks

            root = str(self.context.workspace.root)
            named = tracebacks.named_in(failure.output, root, listing.files)
            near |= dict.fromkeys((path for path, _ in named), "named in the check's output")
        is_taught = session.is_taught and session.sequence > 1
        how = (session.leave_out, near, already, check, session.is_asking, is_taught, is_anew)
        had = self._had if is_anew else lambda _: None
        wanted = Wanted(wish, session.terms.context, *how, had)
        log = self.context.workspace.history() if is_first else []
        workspace, policy, hide = self.context.workspace, self.context.policy, self._hide
        return RankedFiles(workspace, policy, listing, wanted, log, hide)

    def _record_written(
        self, text: str, brief: str, material: render.Material, guess: "RankedFiles | None"
    ) -> None:
        """Record the request and the files that it makes known to the chat; keep their texts first."""
        whole, held, texts = dict[str, str](), dict[str, entries.ShownPart](), self.context.texts
        assert texts is not None, "a session has a chat"
        for event in (each for each in self.session.results if isinstance(each, FileFetched)):
            content = self.context.secrecy.content(event)
            # Events as JSON hold the text themselves, unless it was cut to fit.
            told = in_request(json.dumps(content, ensure_ascii=False))
            if event.encoding == "utf-8" and told in text:
                whole[event.path] = digest_of(event.content.encode())
                texts.keep(whole[event.path], content.replace("\r\n", "\n"))
        for view in self._known_then(text, brief, material, guess):
            texts.keep(view.digest, view.text)
            # Line numbers still count by the text that was seen whole, where only changes of it are shown.
            if len(view.numbers) == view.total_lines and view.path not in self._changed:
                whole[view.path] = view.digest
            else:
                from codingagent.context.held import spans

                runs = tuple(spans(view.numbers))
                held[view.path] = entries.ShownPart(view.path, view.digest, runs)
        lines = {path: (a, b) for path, a, b in file_contents.lines_shown(text, material.files)}
        chosen = () if guess is None else guess.chosen
        for part in chosen:
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
            tuple(filter(self.context.workspace.stays, material.listing.files)),
            *(size for each in (text, brief) for size in (len(each), tokens.estimate(each))),
        )
        parts = tuple(part.file.path for part in chosen if not part.is_whole)
        beside = {each.path: each.beside_bytes for each in material.views if each.beside_bytes}
        shown = tuple(entries.ShownFile(*each) for each in whole.items())
        written = (self.session.sequence, now(), shown, parts, egress, beside, tuple(held.values()))
        self.log.record(entries.RequestWritten(*written))
        self.written += 1
        session = self.session  # before, too: this request may be rewritten
        kept = (*session.held.values(), *session.held_before.values())
        digests = (*session.known.values(), *session.known_before.values())
        texts.prune((*digests, *(part.digest for part in kept)))

    def _known_then(
        self, text: str, brief: str, material: render.Material, guess: "RankedFiles | None"
    ) -> Iterator[FileView]:
        """Yield what the chat has of files once it has this request: their whole text, and which lines."""
        # A later short request holds none.
        conventions = material.conventions if self.session.sequence == 1 else ()
        shown = [*material.changed, *(() if guess is None else guess.views)]
        for view in (*material.views, *material.offered, *conventions):
            is_part = bool(view.numbers) and in_request(view.text) in (brief or text)
            if file_contents.shows_whole(text, view) if view.is_whole else is_part:
                shown.append(view)
        lines: dict[str, set[int]] = {}
        views = Views(self.context.workspace, self._hide)
        for view in shown:
            with contextlib.suppress(OperationError):  # gone since
                whole = views.view(view.path, None, None)
                if whole.digest == view.digest:
                    had = self._had(whole)
                    of_file = lines.setdefault(view.path, set(had.lines if had else ()))
                    of_file.update(view.numbers)
                    yield replace(whole, lines=sorted(of_file))

    def _had(self, view: FileView) -> "Held | None":
        """Return what the chat had of a file before this request, by the numbers of now; None: unknown."""
        from codingagent.context.held import Held, held

        path, session, texts = view.path, self.session, self.context.texts
        part, digest = session.held_before.get(path), session.known_before.get(path)
        part, digest = (None, digest) if digest == view.digest else (part, "" if part else digest)
        was = digest or (part.digest if part else "")
        text = view.text if was == view.digest else texts.read(was) if texts and was else None
        if not was or text is None:
            return None
        runs = ((1, text.count("\n")),) if digest else part.lines if part else ()
        lines = {line for first, last in runs for line in range(first, last + 1)}
        found = held(text, view.text, lines, is_own=part is not None and part.own == view.digest)
        is_told = path in self._changed  # this request shows what changed
        return Held(found.lines | found.changed) if is_told else found

    def _changes(self, shown: Views, known: set[str]) -> Iterator[FileView]:
        """Yield what changed of files that the chat has: these lines, with three around them."""
        session, texts, room = self.session, self.context.texts, _CHANGED_CHARACTERS
        digests = {path: [digest] for path, digest in session.known_before.items()}
        for part in session.held_before.values():
            digests.setdefault(part.path, []).extend((part.digest, part.own))
        for path in [path for path in digests if path not in known][-_LOOKED_AT:]:
            with contextlib.suppress(OperationError):  # gone, or no text
                digest = digest_of(self.context.workspace.read(path).data)
                if digest in digests[path] and (texts is None or texts.has(digest)):
                    continue
                view = shown.view(path, None, None)
                if digest in digests[path] and texts is not None:  # as the last answer wrote it
                    texts.keep(digest, view.text)
                elif (had := self._had(view)) is not None and had.changed:
                    from codingagent.context.show import some_lines

                    told = some_lines(view, sorted(had.changed))
                    room -= len(told.text)
                    if room >= 0:
                        self._changed.add(path)
                        yield replace(told, reason="changed since; you have the rest")

    def _environment(self) -> dict[str, str]:
        settings, sandbox = self.context.settings, self.context.sandbox
        within = f"{settings.command_timeout} seconds, unless timeout is set"
        most = memory.in_words(memory.limit_bytes(settings.command_memory))
        largest = f"files of {memory.FILE_LIMIT_BYTES >> 30} GiB" * (os.name != "nt")
        return {
            "System": f"{platform.system()} ({platform.machine()})",
            "Shell": "cmd.exe" if os.name == "nt" else "/bin/sh",
            "Programs found": ", ".join(filter(None, map(as_found, _PROGRAMS))) or "none of the usual ones",
            "Limits per command": "; ".join(filter(None, (within, most, largest))),
            "Sandbox": sandbox.description,
            "Network": sandbox.network,
            "Check": self._hide(settings.check),
            "Approval": advice(self.context.policy),
        }

    def _dialect(self) -> render.Dialect:
        if self.session.is_asking:
            return render.question_dialect()
        if self.session.terms.protocol == "tags":
            is_kept = self.session.terms.guide == "installed" and not self.session.lacks_guide
            return render.tag_dialect(is_kept=is_kept)
        from codingagent.protocols.json.guide import dialect

        return dialect()

    def _material(self, listed: "GitListing | None") -> render.Material:
        session, workspace = self.session, self.context.workspace
        self._changed.clear()
        listing = workspace.listing(session.touched, listed)
        # Before anything is shown: their values may be in any other file, too.
        secret = (*listing.files, *listing.ignored.names)
        self.context.secrecy.read_files(workspace, secret)
        shown = Views(workspace, self._hide)
        unread: list[str] = []
        views = self._requested(shown, unread)
        known = {view.path for view in views}
        offered = tuple(self._offered(shown, listing, known))
        attached: list[FileView] = []  # before, and not requested anyway
        named = self._named()
        for path, start, end in self._attached(shown, session.said):
            if path not in known:
                with contextlib.suppress(OperationError):  # gone since
                    view = shown.view(path, start, end)
                    view = view if path in named else in_brief(view)
                    attached.append(replace(view, reason="attached by the user before"))
        known.update(view.path for view in attached)
        conventions: list[FileView] = []
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
        more = offered, attached, seen if session.sequence > 1 else (), conventions
        changed = [*self._changes(shown, known)]
        return render.Material(listing, views, unread, self._environment(), *more, changed=changed)

    def _requested(self, shown: Views, unread: list[str]) -> list[FileView]:
        """Return what is asked for, each file and range once; `unread` gets what can't be shown, and why."""
        session = self.session
        new = (said for said in session.said if said.sequence == session.sequence)
        wanted = dict.fromkeys(self._attached(shown, new, unread))
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
        views: list[FileView] = []
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

    @staticmethod
    def _attached(
        shown: Views, saids: Iterable[Said], unread: list[str] | None = None
    ) -> Iterator[tuple[str, int | None, int | None]]:
        """Yield each file that came with the person's words, and the first and last line of its parts."""
        for path, parts in ((path, said.parts.get(path, ())) for said in saids for path in said.attached):
            if not parts:
                yield path, None, None
                continue
            from codingagent.context.blocks import lines_meant
            from codingagent.context.held import spans

            try:
                text = shown.view(path, None, None).text
            except OperationError:  # gone since
                text = ""
            for part in parts:
                meant = lines_meant(path, text, part)
                if not meant and unread is not None:
                    unread.append(f"{paths.shown(path)}: there is no '{part}' in it any more")
                yield from ((path, *span) for span in spans(meant))

    def _named(self) -> set[str]:
        said = self.session.said
        return {path for each in said for path in each.attached if path not in each.brief}

    def _offered(self, shown: Views, listing: file_list.Listing, known: set[str]) -> Iterator[FileView]:
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
            # A chat that has these lines, as they are, need not see them again.
            part, had = part_of(whole, lines), self._had(whole)
            if had is None or not had.lines.issuperset(part.numbers):
                yield replace(part, reason="named in an output above")


def _shown(guesses: "Sequence[RankedFiles]", room: int, *, is_anew: bool = False) -> str:
    text = ""
    for guess in guesses:
        text += guess.show(room - len(text), is_anew=is_anew)
    return text
