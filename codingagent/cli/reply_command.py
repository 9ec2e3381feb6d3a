"""`--reply-with`: run a command in place of the chat; it reads a request and prints the answer."""

import contextlib
import os
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from codingagent.agent import factory
from codingagent.cli.inbox_loop import Inbox, take_present
from codingagent.cli.plain_output import Screen
from codingagent.cli.shared_session import SharedSession
from codingagent.errors import WorkError
from codingagent.model import plain_text
from codingagent.model.observations import Extras, Outcome, digest_of
from codingagent.model.session_state import Session
from codingagent.model.settings import SEQUENCE_VARIABLE, SESSION_VARIABLE, SHORT_VARIABLE
from codingagent.model.ui_events import OutputCame
from codingagent.storage.homes import Home
from codingagent.storage.lock import HomeLock
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES
from codingagent.workspace.programs import own_path, persons_path, quoted_path

# A shell's exit code.
_NOT_FOUND = 127


class ReplyCommand(Struct, frozen=True):
    """The person's shell command, its time limit, and how many turns it may answer."""

    line: str
    timeout_s: float
    max_turns: int


def follow(
    work: SharedSession, inbox: Inbox, home: Home, command: ReplyCommand, screen: Screen
) -> None:
    """Have a command answer request after request, until the session is complete.

    Its answers are saved in the inbox and taken like those of the person; its other output is shown.
    """
    taken = 0
    own = home.sessions.folder / work.conversation.session.session_id / "replying"
    # Two commands would write into one file, and each answer would be paid for twice.
    with HomeLock(own).held(), contextlib.closing(factory.reply_runner()) as runner:

        def run(line: str, extras: Extras) -> Outcome:
            return runner.run(
                line,
                str(Path.cwd()),
                command.timeout_s,
                lambda text: screen.show(OutputCame(plain_text.without_controls(text))),
                extras,
            )

        while True:
            # An answer from before a kill may be for this very request: take it first.
            take_present(work, inbox)
            session = work.conversation.session
            if session.is_complete:
                return
            if taken >= command.max_turns:
                raise _end(
                    session, f"stopped after {taken} turns (--max-turns); the task is not done"
                )
            screen.settle()
            screen.remark(f"request {session.sequence} goes to: {command.line}")
            screen.busy("waiting for that command", command.timeout_s)
            session_id, sequence = session.session_id, session.sequence
            part = home.mailbox.part_path(session_id, sequence, "reply")
            try:
                digest = work.wait(partial(_answer, home, session, command, run))
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


def _answer(
    home: Home, session: Session, command: ReplyCommand, run: Callable[[str, Extras], Outcome]
) -> str:
    """Run the command on one request, until its answer is whole in its file; return its digest."""
    session_id, sequence = session.session_id, session.sequence
    request = home.mailbox.outbox_path(session_id, sequence)
    short = home.mailbox.short_path(session_id, sequence)
    part = home.mailbox.part_path(session_id, sequence, "reply")
    variables = {
        SESSION_VARIABLE: session_id,
        SEQUENCE_VARIABLE: str(sequence),
        SHORT_VARIABLE: str(short) if short.exists() else "",
    }

    def is_flooded() -> bool:
        with contextlib.suppress(OSError):
            return part.stat().st_size > REPLY_LIMIT_BYTES
        return False

    extras = Extras(variables, is_flooded=is_flooded)
    files = (shlex.quote(str(path)) for path in (request, part))
    line = "exec <{} >{}\n{}".format(*files, command.line)
    if os.name == "nt":
        line = f'({command.line}) <"{request}" >"{part}"'
    outcome = run(line, extras)
    if fault := _fault(outcome):
        kept = _kept(home, session_id, part, fault)
        raise _end(session, f"the --reply-with command {fault}{kept}")
    size_bytes = part.stat().st_size if part.exists() else 0
    if not 0 < size_bytes <= REPLY_LIMIT_BYTES:
        what = f"more than {REPLY_LIMIT_BYTES // 2**20} MiB" if size_bytes else "nothing"
        raise _end(session, f"the --reply-with command printed {what}")
    return digest_of(part.read_bytes())


def _kept(home: Home, session_id: str, part: Path, fault: str) -> str:
    """Keep what a command printed before it failed; return in words where, empty if nothing."""
    try:
        if not 0 < part.stat().st_size <= REPLY_LIMIT_BYTES:
            return ""
        name = home.mailbox.set_aside(part.name, f"the --reply-with command {fault}")
    except (OSError, WorkError):
        return ""
    path = quoted_path(home.mailbox.rejected / name)
    return f"; what it had printed is kept: codingagent resume {session_id} --accept {path}"


def _fault(outcome: Outcome) -> str:
    """Return why a command gave no answer; empty if it may have given one."""
    said = plain_text.without_controls(outcome.output).strip().split("\n")[-1]
    because = f": {plain_text.one_line(said)}" if said else ""
    if outcome.failure:
        return f"could not be started: {outcome.failure}"
    if outcome.ended_by == "time_limit":
        return f"did not end within {outcome.limit} (--reply-timeout){because}"
    if outcome.ended_by == "output_limit":
        return f"printed more than {outcome.limit}"
    if outcome.ended_by != "itself":
        return f"was ended after {outcome.limit}{because}"
    if outcome.exit_code == _NOT_FOUND and own_path() != persons_path():
        because += (
            " (programs in the workspace are not looked for: an answer could have written them)"
        )
    return f"failed (exit code {outcome.exit_code}){because}" if outcome.exit_code else ""


def _end(session: Session, reason: str) -> WorkError:
    return WorkError(
        f"{reason}; nothing is lost: `codingagent resume {session.session_id}` continues, with or without"
        " --reply-with"
    )
