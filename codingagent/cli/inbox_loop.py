"""The loops of `new` and `resume`: hand each answer to the conversation, from the inbox or from a command."""

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codingagent.errors import WorkError
from codingagent.model import documents, journal_entries, notices, observations, paths, plain_text, settings
from codingagent.model.observations import Extras, Hint, InboxFile, Outcome
from codingagent.model.session_state import Session
from codingagent.storage.homes import Home
from codingagent.storage.lock import HomeLock
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES, Mailbox, is_bare
from codingagent.workspace.programs import own_path, persons_path, quoted_path

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.cli.plain_output import Screen
    from codingagent.cli.shared_session import SharedSession

# Network drives, WSL and containers send no events, so the folder is polled too.
LOOK_EVERY_S = 1.0
# A browser creates the file first, and fills it when the last byte has come.
_EMPTY_S, _HELD_S = 3.0, 10.0
# Programs that save an answer in steps pause meanwhile.
_REST_S = 3.0
# A shell's exit code.
_NOT_FOUND = 127
# Wait for a possible event, up to a time limit; return hints by file name.
Patience = Callable[[float], Mapping[str, Hint]]
# Wait where the person can type, until something was entered, or is due; return False at once if nobody can.
Line = Callable[[Callable[[], bool]], bool]


class Inbox(Struct):
    """The files in the inbox, and which of them are complete."""

    _mailbox: Mailbox
    left_alone: set[journal_entries.EarlierFile] = set()
    """Ignored until they change: files from before the session, and those for another one."""
    given: int = 0
    """Number of answers returned by `next`."""
    rests: bool = False
    """The oldest file is left some time for its end."""
    hints: dict[str, Hint] = {}
    """The system's, by name; each holds until the file is seen to change again."""
    _others: dict[str, InboxFile] = {}
    _named: set[journal_entries.EarlierFile] = set()
    _begun: set[str] = set()
    _looks: dict[str, InboxFile] = {}

    def next(
        self, lacks_end: Callable[[str], bool], say: Callable[[str], None]
    ) -> tuple[list[InboxFile], bool]:
        """Return the oldest answer if complete, single downloads with it, and whether there is any file.

        `say` gets, once, that one without its end waits a while.
        """
        files = [file for file in self.files() if file.size_bytes]  # empty files wait, and delay no others
        self.rests, self._looks = False, observations.first_looks(self._looks, files)
        if not files:
            return [], False
        file, *others = files
        whole = [file, *(each for each in others if is_bare(each.name) and is_bare(file.name))]
        has_time = file.at_s - self._looks[file.name].at_s < _REST_S
        is_whole = all(
            observations.is_finished(self._looks[each.name], each, self.hints.get(each.name, Hint.NOTHING))
            for each in whole
        )
        self.rests = is_whole and has_time and lacks_end(file.name)
        if self.rests and file.name not in self._begun:
            self._begun.add(file.name)
            say(f"{paths.shown(file.name)} has no [END] yet: {_REST_S:g} s are left for the rest of it")
        if self.rests or not is_whole:
            return [], True
        self.hints.pop(file.name, None)
        self.given += 1
        return whole, True

    def complaints(self, *, is_last_look: bool = False) -> list[str]:
        """Return what to do about files that can't be taken, once each; those that may still grow wait."""
        others = self._mailbox.look_at_others()
        self._others = observations.first_looks(self._others, others)
        found: list[str] = []
        for file in others:
            patience_s = _HELD_S if file.is_held else observations.SETTLED_AFTER_S
            patience_s = patience_s if file.size_bytes else _EMPTY_S
            is_settled = is_last_look or file.at_s - self._others[file.name].at_s >= patience_s
            if is_settled and file.earlier not in self.left_alone | self._named:
                self._named.add(file.earlier)
                found.append(_advice(file))
        return found

    def files(self) -> list[InboxFile]:
        """Return the files that `next` may return, now or later."""
        files = [file for file in self._mailbox.look() if not file.is_held]
        return [file for file in files if file.earlier not in self.left_alone]


def _advice(file: InboxFile) -> str:
    """Return why a file in the inbox can't be taken, and how to fix it."""
    name = paths.shown(file.name)
    if not file.size_bytes:
        return f"{name} in the inbox is empty: save the answer again"
    if (kind := documents.kind_by_name(name)) is not None:
        return f"{name} in the inbox is {kind[0]}, not plain text: {kind[1]}"
    if file.is_held:
        is_zip = name.lower().endswith(".zip")
        how = "not a whole zip: save it again" if is_zip else "still open in another program: close it there"
        return f"{name} in the inbox is {how}"
    return f"{name} in the inbox has no extension: rename it to {name}.txt"


def follow(  # noqa: PLR0913, PLR0917  # what a loop that waits may be given
    work: "SharedSession",
    inbox: Inbox,
    patience: Patience,
    glance: "Callable[[Conversation], None]" = lambda _: None,
    attend: "Callable[[Conversation], object]" = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    line: Line | None = None,
) -> None:
    """Take answers until the session is complete, and on a terminal until the person leaves.

    Before each wait, and at the end, `attend` does what the `line` says, and `glance` may bring answers.
    """
    announced, is_prepared = -1, True
    complaints: list[str] = []

    def is_due() -> bool:
        inbox.hints.update(patience(0))
        glance(work.conversation)
        complaints.extend(inbox.complaints())
        has_any = any(file.size_bytes for file in inbox.files())
        return bool(complaints) or work.conversation.check.has_ended or has_any

    while True:
        if work.conversation.session.is_complete:
            attend(work.conversation)
            session = work.conversation.session
            # What is to be done next may be typed, unless another terminal closed it.
            if session.is_complete and (session.is_closed or not (line and work.wait(partial(line, bool)))):
                return
            continue
        files, any_left = inbox.next(work.conversation.lacks_end, say)
        if files:
            try:
                _take(work, inbox, files)
            except KeyboardInterrupt:
                if line is None or work.conversation.session.unfinished is None:
                    raise
                say("stopped; Ctrl-C again leaves")
                work.go_on()
            continue
        # Answers that came together are tried together.
        if not any_left and work.doing(work.conversation.finish_trials):
            continue
        if work.conversation.check.has_ended:
            # To an answer that is on its way it comes too late.
            work.conversation.tell_check(is_told=not any_left)
        attend(work.conversation)
        requests = work.conversation.requests
        if announced != requests.written:
            requests.announce(watched=True)
            announced, is_prepared = requests.written, False
        for complaint in (*complaints, *inbox.complaints()):
            say(complaint)
        complaints.clear()
        glance(work.conversation)
        if not any_left:
            if not (work.conversation.check.begin() or is_prepared):
                work.conversation.context.checkpointer.prepare()
            is_prepared = True
        can_type = line if not any_left else None
        if not (can_type and work.wait(partial(can_type, is_due))):
            longest_s = observations.SETTLED_AFTER_S if any_left else LOOK_EVERY_S
            inbox.hints.update(work.wait(partial(patience, longest_s)))


def _take(work: "SharedSession", inbox: Inbox, files: list[InboxFile]) -> None:
    work.conversation.check.run_ahead()
    if work.doing(lambda: work.conversation.take(*(each.name for each in files))) is False:
        inbox.left_alone.add(files[0].earlier)  # it is for another session


def take_present(work: "SharedSession", inbox: Inbox, say: Callable[[str], None]) -> bool:
    """Take the answers that are there, each as a turn; return whether a file still grows."""
    waited, limit_s = 0.0, 2 * observations.SETTLED_AFTER_S
    while not work.conversation.session.is_complete:
        files, any_left = inbox.next(work.conversation.lacks_end, say)
        if files:
            _take(work, inbox, files)
            waited = 0.0
        elif not any_left and work.doing(work.conversation.finish_trials):
            continue
        elif any_left and waited < (limit_s := max(limit_s, _REST_S * 2 * inbox.rests)):
            if not waited:
                # Time that must pass anyway.
                work.conversation.context.checkpointer.prepare()
            time.sleep(observations.SETTLED_AFTER_S / 6)
            waited += observations.SETTLED_AFTER_S / 6
        else:
            return any_left
    return False


def follow_command(
    work: "SharedSession", inbox: Inbox, home: Home, command: str, limits: tuple[float, int], screen: "Screen"
) -> None:
    """Have a shell command answer request after request, until the session is complete.

    The limits are the seconds for each answer, and the number of turns that it may answer.
    Its answers are saved in the inbox and taken like those of the person; its other output is shown.
    """
    from codingagent.agent import factory

    timeout_s, max_turns = limits
    taken = 0
    own = home.sessions.folder / work.conversation.session.session_id / "replying"
    # Two commands would write into one file, and each answer would be paid for twice.
    with HomeLock(own).held(), contextlib.closing(factory.reply_runner()) as runner:

        def show(text: str) -> None:
            screen.show(notices.OutputCame(plain_text.without_controls(text)))

        def run(line: str, extras: Extras) -> Outcome:
            return runner.run(line, str(Path.cwd()), timeout_s, show, extras)

        while True:
            # An answer from before a kill may be for this very request: take it first.
            take_present(work, inbox, screen.remark)
            session = work.conversation.session
            if session.is_complete:
                return
            if taken >= max_turns:
                raise _end(session, f"stopped after {taken} turns (--max-turns); the task is not done")
            screen.flush()
            screen.remark(f"request {session.sequence} goes to: {command}")
            screen.busy("waiting for that command", timeout_s)
            session_id, sequence = session.session_id, session.sequence
            part = home.mailbox.part_path(session_id, sequence, "reply")
            try:
                digest = work.wait(partial(_answer_of, home, session, command, run))
                after = work.conversation.session
                if after.sequence != sequence or after.is_complete:
                    kept = _kept(home, session_id, part, "answered too late")
                    screen.remark(f"request {sequence} waits no more{kept}")
                    continue
                name = home.mailbox.put_in(part, session_id, sequence, "replied")
            finally:
                with contextlib.suppress(OSError):
                    part.unlink()
            work.conversation.check.run_ahead()
            work.doing(partial(work.conversation.take, name))
            after = work.conversation.session
            if after.sequence == sequence and not after.is_complete:
                is_same = digest == session.last_digest
                what = "the same answer twice" if is_same else "no answer to it"
                raise _end(session, f"request {sequence}: the command gave {what}")
            taken += 1


def _answer_of(home: Home, session: Session, command: str, run: Callable[[str, Extras], Outcome]) -> str:
    """Run the command on one request, until its answer is whole in its file; return its digest."""
    session_id, sequence = session.session_id, session.sequence
    request = home.mailbox.outbox_path(session_id, sequence)
    short = home.mailbox.short_path(session_id, sequence)
    part = home.mailbox.part_path(session_id, sequence, "reply")
    variables = {
        settings.SESSION_VARIABLE: session_id,
        settings.SEQUENCE_VARIABLE: str(sequence),
        settings.SHORT_VARIABLE: str(short) if short.exists() else "",
    }

    def is_flooded() -> bool:
        with contextlib.suppress(OSError):
            return part.stat().st_size > REPLY_LIMIT_BYTES
        return False

    extras = Extras(variables, is_flooded=is_flooded)
    files = (shlex.quote(str(path)) for path in (request, part))
    line = "exec <{} >{}\n{}".format(*files, command)
    if os.name == "nt":
        line = f'({command}) <"{request}" >"{part}"'
    outcome = run(line, extras)
    if fault := _fault(outcome):
        kept = _kept(home, session_id, part, fault)
        raise _end(session, f"the --reply-with command {fault}{kept}")
    size_bytes = part.stat().st_size if part.exists() else 0
    if not 0 < size_bytes <= REPLY_LIMIT_BYTES:
        what = f"more than {REPLY_LIMIT_BYTES // 2**20} MiB" if size_bytes else "nothing"
        raise _end(session, f"the --reply-with command printed {what}")
    return observations.digest_of(part.read_bytes())


def _kept(home: Home, session_id: str, part: Path, fault: str) -> str:
    """Keep what a command printed before it failed; return in words where, empty if nothing."""
    with contextlib.suppress(OSError, WorkError):
        if 0 < part.stat().st_size <= REPLY_LIMIT_BYTES:
            name = home.mailbox.set_aside(part.name, f"the --reply-with command {fault}")
            path = quoted_path(home.mailbox.rejected / name)
            return f"; what it had printed is kept: codingagent resume {session_id} --accept {path}"
    return ""


def _fault(outcome: Outcome) -> str:
    """Return why a command gave no answer; empty if it may have given one."""
    said = plain_text.without_controls(outcome.output).strip().split("\n")[-1]
    because = f": {plain_text.one_line(said)}" if said else ""
    if outcome.failure:
        return f"could not be started: {outcome.failure}"
    if outcome.ended_by == "time_limit":
        return f"did not end within {outcome.limit} (--reply-timeout){because}"
    if outcome.ended_by != "itself":
        return f"was ended after {outcome.limit}{because}"
    if outcome.exit_code == _NOT_FOUND and own_path() != persons_path():
        because += " (programs in the workspace are not looked for: an answer could have written them)"
    return f"failed (exit code {outcome.exit_code}){because}" if outcome.exit_code else ""


def _end(session: Session, reason: str) -> WorkError:
    return WorkError(
        f"{reason}; nothing is lost: `codingagent resume {session.session_id}` continues, with or without"
        " --reply-with"
    )
