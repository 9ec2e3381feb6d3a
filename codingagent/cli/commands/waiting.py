"""Wait for answers, and do what is entered meanwhile: words, an answer, or a command, by running it."""

import contextlib
import difflib
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codingagent.agent.answers import objection, refuse_request, save_answer
from codingagent.cli import inbox_loop, keyboard
from codingagent.cli.commands import amend, clipboard, common, options
from codingagent.cli.commands.clipboard import ClipboardPoller
from codingagent.cli.output import LeaveError, fail, suggestion
from codingagent.cli.plain_output import Screen
from codingagent.cli.shared_session import AT_WORK, SharedSession
from codingagent.errors import OperationError, UsageError, WorkError
from codingagent.model import events, journal_entries, operations, plain_text, session_state
from codingagent.model.patterns import lazy_pattern, sections, table, words
from codingagent.storage import homes
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.lock import HomeLock
from codingagent.storage.watch import Watch
from codingagent.workspace import programs

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.cli.waiting_line import LineEntry, WaitingLine

_TOLD = sections(__file__)
_COMMANDS = table(_TOLD["commands"])
# The words of each command line; S is the session.
_WORDS = table(_TOLD["command lines"])
_NEED_VALUES = ("/attach", "/leave", "/check", "/chats", "/take", "/new", "/ask", "/do", "/run")
# What people type all the same; by these names, too, a command of ours.
_ALIASES = {word: name for name, row in table(_TOLD["other names"]).items() for word in row.split()}
_ANSWERS, _PROGRAMS = words(_TOLD["answers"]), words(_TOLD["programs"])
# Lines of the choice, to leave out or to take back: "-2", "+3 -1".
_NUMBERS = lazy_pattern(r"[-+]\d{1,4}(?:\s+[-+]\d{1,4})*")
# How many answers are tried, and whether the only green one is taken by itself.
_TRIALS = lazy_pattern(r"(\d+)( --auto)?")
# What a terminal shows before a line that is copied from it.
_PROMPT = lazy_pattern(r"^(?:PS )?\S*[$>%#] +(?=\S)")
_SENTENCE = lazy_pattern(r"\w\.$|[?!,]$")
# The files that aider's settings have it read: one, a list in a line, or in lines of their own.
_AIDER = ".aider.conf.yml"
_READS = lazy_pattern(r"^read:(.*(?:\n[ \t]*- .*)*)", re.MULTILINE)
_NAMES = lazy_pattern(r"[^\s,\[\]\"'-][^\s,\[\]\"']*")
# What people say when a chat takes no more.
_FULL = lazy_pattern(
    r"^(?:the |this |my )?chat\b.{0,30}\b(refuse|full|too long|limit|forg[eo]t)", re.IGNORECASE
)
_ANEW = ("yes: copy the whole request for it", "no: these words are for the model")
_FOR_THE_MODEL = "this looks like a command or an answer: is it for the model?"
_SENT = ("yes: it goes out with the request", "no: forget it (commands here begin with /: see /help)")
# A long answer of a slow model takes minutes; a task with more turns needs a look.
_REPLY_S, _TURNS = 600, 20
# Enough of a paste to recognize it.
_SHOWN_CHARACTERS = 60


def follow(work: SharedSession, home: Home, screen: Screen, given: options.SessionOptions) -> None:
    """Wait for answers until the session is complete, and on a terminal until the person leaves."""
    inbox = common.inbox_of(work.conversation, home)
    screen.check()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(WorkError):  # another one waits, too
            stack.enter_context(HomeLock(home.waiting_path(work.conversation.session.session_id)).held())
        if given.reply_with is not None:
            limits = given.reply_timeout or _REPLY_S, given.max_turns or _TURNS
            inbox_loop.follow_command(work, inbox, home, given.reply_with, limits, screen)
            return
        journal = home.sessions.folder / work.conversation.session.session_id
        watch = Watch(home.mailbox.inbox, (journal,))
        if stack.enter_context(watch).fault:
            screen.remark(f"the inbox can't be watched ({watch.fault}); it is looked at each second")
        glance = _glance(home, work, screen, is_asked=given.clipboard)
        line = None
        if (keys := screen.keyboard()) is not None:
            line = Entered(home, work, screen, watch, stack.enter_context(keys), given)
            line.recall()

        def attend(conversation: "Conversation") -> None:
            if line is not None:
                line(conversation)
            if glance is not None and (done := glance.put(conversation)):
                screen.copied(conversation.session.sequence, *done)
                if line is not None:
                    line.copied = conversation.session.sequence

        look, entered = glance or (lambda _: None), None if line is None else line.wait
        inbox_loop.follow(work, inbox, watch.wait, look, attend, screen.remark, entered)


def _glance(home: Home, shared: SharedSession, screen: Screen, *, is_asked: bool) -> ClipboardPoller | None:
    """Return what uses the clipboard: if asked to, or by the setting where one can be used."""
    if is_asked:
        return ClipboardPoller(home, screen.remark)
    setting, requests = shared.work.context.settings.clipboard, shared.work.requests
    has_one = clipboard.is_the_terminals() or clipboard.program()
    if setting == "off" or screen.keyboard() is None or not has_one:
        return None
    if setting == "ask":
        is_new = requests.written and requests.session.sequence == 1
        asked = "Put each request on the clipboard by itself, and take the answer when you copy it?"
        ask = partial(screen.choose, asked, ("yes", "no"))
        chosen = shared.wait(ask) if is_new else None
        if chosen is None:
            return None
        from codingagent.cli import edit_settings

        setting = ("auto", "off")[chosen]
        try:
            edit_settings.set_value(homes.settings_path(), "clipboard", setting)
        except (UsageError, WorkError) as fault:
            screen.remark(f"your answer is not kept: {fault}")
    return ClipboardPoller(home, screen.remark, is_asked=False) if setting == "auto" else None


class Entered(Struct):
    """Wait at the line of the terminal, and do what is entered there."""

    _home: Home
    _shared: SharedSession
    _screen: Screen
    _watch: Watch
    _keys: keyboard.Keyboard
    _given: options.SessionOptions
    _line: "WaitingLine | None" = None
    _entry: "LineEntry | None" = None
    _proposed: str = ""
    """The command that accepts the check that is offered."""
    _seen: tuple[object, int] = (None, 0)
    """The open session, and the number of its request, when the line was read."""
    copied: int = 0
    """The number of the last request that was put on the clipboard here."""

    def recall(self) -> None:
        """Show again how a task that is done ended."""
        work = self._shared.work
        session = work.requests.session
        every = self._home.records(session.session_id) if session.is_complete else ()
        for record in [each for each in every if isinstance(each, journal_entries.TurnEnded)][-1:]:
            self._screen.record(*work.context.secrecy.record(record, session))

    def _propose(self) -> None:
        """Offer a check to who has named none, until the first answer."""
        context, named = self._shared.work.context, self._given.check
        session = context.log.session
        is_new = session.sequence == 1 and not session.is_asking
        if named is None and is_new and not context.settings.check:
            from codingagent.agent.check import proposal

            if own := proposal(context.workspace):
                self._proposed = f"/check {own}"
                how = f"type 1 to run `{own}` now and after changes"
                self._screen.remark(f"you named no check: {how}")
        with contextlib.suppress(OperationError):
            text = context.workspace.read(_AIDER).data.decode("utf-8", "replace") if is_new else ""
            if files := _NAMES.findall("".join(_READS.findall(text))):
                self._screen.remark(f"{_AIDER} reads more files: /attach {' '.join(files)} adds them")

    def wait(self, is_due: Callable[[], bool]) -> bool:
        """Wait until something is entered or due; return False at once if nobody can type here."""
        if not keyboard.is_ours(sys.stdin):
            return False
        if self._line is None:
            # Imported late: the request is out, and the person has something to read.
            from codingagent.cli.waiting_line import WaitingLine

            self._line = WaitingLine(_COMMANDS)
            self._propose()
        looked = 0.0

        def is_due_now() -> bool:
            nonlocal looked
            if not self._watch.has_heard and time.monotonic() - looked < inbox_loop.LOOK_EVERY_S:
                return False
            looked = time.monotonic()
            return self._shared.has_gone_on() or is_due()

        session = self._shared.work.requests.session
        self._seen, self._line.is_done = (self._shared.work, session.sequence), session.is_complete
        try:
            self._entry = self._line.read(is_due_now)
        except EOFError:
            self._leave()
        except KeyboardInterrupt:
            if not self._shared.work.requests.session.is_complete:
                raise
            self._leave()
        except UsageError as fault:
            fail(str(fault))
        finally:
            self._keys.mark_pastes()
        return True

    def __call__(self, conversation: "Conversation") -> None:
        """Do what was entered."""
        entry, self._entry = self._entry, None
        if entry is None:
            return
        if conversation.session.is_closed:
            text = plain_text.one_line(entry.text, _SHOWN_CHARACTERS)
            self._screen.remark(f"the session was closed before this was done: {text}")
            return
        at_work = AT_WORK.set(self._shared)
        try:
            if not entry.text:
                self._carry(conversation)
            elif entry.is_line:
                self._do(entry, conversation.session)
            else:
                self._judge(entry.text, conversation)
        except UsageError as fault:
            fail(str(fault))
        finally:
            AT_WORK.reset(at_work)

    def _carry(self, conversation: "Conversation") -> None:
        """Take the answer from the clipboard, if it has one; else put the request there."""
        session = conversation.session
        if not session.is_awaiting_answer:
            return
        try:
            has_text = clipboard.program() and not clipboard.is_the_terminals()  # a terminal's can't be had
            text = clipboard.read() if has_text else ""
        except WorkError as fault:
            raise UsageError(str(fault)) from fault
        # An earlier answer may be there still, or one of another session's.
        other = objection(text.encode("utf-8", "replace"), session)
        if text.strip() and not other and conversation.is_answer(text, is_handed=True):
            self._judge(text, conversation)
            return
        paths = self._home.mailbox.waiting_paths(session.session_id, session.sequence)
        is_request = any(path.read_text("utf-8").strip() == text.strip() for path in paths)
        if self.copied == session.sequence and text.strip() and not is_request:
            raise UsageError(
                f"the clipboard has no answer to request {session.sequence}: copy the chat's whole answer, or"
                " paste it here; /copy puts the request there again"
            )
        if self._run("/copy", "") == 0:
            self.copied = session.sequence

    def _do(self, entry: "LineEntry", session: session_state.Session) -> None:
        text = entry.text
        self._screen.remark(f"> {text}")
        if files := _files_in(text):
            for each in files:
                self._home.mailbox.bring_back(each)
            return
        command = _command_in(text, is_asked=session.is_only_words)
        if text.strip() == "1" and session.sequence == 1:
            command = self._proposed or command
        offers = self._screen.offers if session.is_complete else ()
        if text.strip() in map(str, range(1, len(offers) + 1)):
            command = offers[int(text) - 1]
        if command is None and _FULL.search(text) and self._choice("go on in a new chat?", _ANEW) == 0:
            self._command("/new-chat", "")
        elif command is None:
            self._say(text)
        elif command:
            asked, ways = f"this was pasted: run {command}?", ("yes", "no: forget it")
            if not entry.has_paste or self._choice(asked, ways) == 0:
                self._command(*command.partition(" ")[::2])
        elif self._choice(_FOR_THE_MODEL, _SENT) == 0:
            self._say(text)

    def _say(self, text: str, wants: journal_entries.Wants | None = None) -> None:
        session = self._shared.work.requests.session
        amend.say(self._home, session, text.strip(), None, self._screen, wants)

    def _judge(self, text: str, conversation: "Conversation") -> None:
        """Take a paste as the answer if it looks like one; else ask."""
        meaning: int | None = 1
        if self._seen[1] != (now := conversation.session.sequence):
            raise UsageError(f"meanwhile request {now} waits: nothing was done with what you pasted")
        refuse_request(self._home, conversation.session, text)
        is_answered = conversation.session.is_complete
        if is_answered or not conversation.is_answer(text, is_handed=True):
            lines = text.strip().count("\n") + 1
            size = f"{len(text):,} characters, {lines:,} {plain_text.plural(lines, 'line')}"
            shown = plain_text.one_line(text, _SHOWN_CHARACTERS)
            asked = f'what is this paste ({size}: "{shown}")? It does not look like an answer'
            meanings = "words for the model", "the chat's answer all the same", "neither: forget it"
            meaning = self._choice(asked, meanings)
        if meaning == 1 and is_answered:
            raise UsageError(f"request {now} is answered: type what is next first")
        if meaning == 0:
            self._say(text.encode("utf-8", "replace").decode())
        elif meaning == 1:
            data = text.encode("utf-8", "surrogateescape")
            save_answer(self._home, self._shared.conversation.session, data)

    def _choice(self, question: str, choices: Sequence[str]) -> int | None:
        return self._shared.wait(lambda: self._screen.choose(question, choices))

    def _command(self, name: str, rest: str) -> None:
        requests, name, rest = self._shared.work.requests, _whole(name), rest.strip()
        session, root = requests.session, f"--home={self._home.root}"
        again = (root, "resume", session.session_id, *self._given.arguments)
        if name in ("/undo", "/redo", "/unsay") and self._seen[0] is not self._shared.work:
            raise UsageError(f"{name} was typed before that: nothing was done; type it again")
        if name in _NEED_VALUES and rest in ("", "-"):  # "-" would read stdin
            raise UsageError(f"{name} needs a value: {name} {_COMMANDS[name]}")
        match name:
            case "/quit":
                self._leave()
            case "/help":
                width = max(map(len, _COMMANDS)) + 2
                self._screen.remark(" ".join(_TOLD["help"].split()))
                for each, does in _COMMANDS.items():
                    self._screen.remark(f"  {each:{width}}{' '.join(does.split())}")
            case "/ask" | "/do":
                self._say(rest, "words" if name == "/ask" else "edits")
            case "/leave":
                words = programs.split(rest)
                amend.choose(self._home, session, words, requests.choice or (), self._screen)
            case "/check":
                self._shared.name_check(rest)
            case "/chats":
                if (given := _TRIALS.fullmatch(rest)) is None:
                    raise UsageError(f"/chats {rest}: give a number, with or without --auto; 0: no trials")
                requests.name_chats(int(given[1]), takes_green=bool(given[2]))
            case "/new":
                words = [root, "new", *_kept(session), *self._given.arguments, "--", rest]
                raise LeaveError(*words, otherwise=again)
            case "/run":
                self._run_command(rest)
            case _ if name in _WORDS:
                if self._run(name, rest) == 0 and name == "/new-chat":
                    self._screen.remark("open a new chat and paste it there: it has what was done")
            case _:
                near = suggestion(name[1:], [each[1:] for each in _COMMANDS], "")
                how = near.replace("'", "'/", 1) or "/help lists them"
                raise UsageError(f"there is no {name}; {how}; if it is for the model, put a space before it")

    def _run_command(self, command: str) -> None:
        """Run a command of the person's as an answer's would be; offer its output to the chat."""
        from codingagent.agent import executor
        from codingagent.agent.context import OperationRequest, Plan

        context, operation = self._shared.work.context, operations.RunCommand(command)
        self._shared.conversation.check.wait(lambda: False)
        try:
            plan = executor.plan_command(context, OperationRequest(0, operation), operation)
            ran = plan.act() if isinstance(plan, Plan) else plan
        except OperationError as fault:
            raise UsageError(fault.fact) from fault
        except KeyboardInterrupt:
            self._screen.remark(f"{command} was stopped")
            return
        self._screen.record(journal_entries.OperationEnded(0, ran, now()), self._shared.work.requests.session)
        if isinstance(ran, events.CommandRan):
            sys.stdout.write(ran.output)
            told = f"`{command}` of mine, exit code {ran.exit_code}, printed:\n{ran.output}".rstrip()
            if self._choice("send this to the chat with the next request?", ("yes", "no")) == 0:
                self._say(told)

    def _run(self, name: str, rest: str) -> int:
        """Run the command that a line stands for; return its exit status."""
        from codingagent.cli import main

        requests = self._shared.work.requests
        words = _WORDS[name].replace("S", requests.session.session_id).split()
        try:
            status = main.run([f"--home={self._home.root}", *words, *programs.split(rest)])
        except ValueError as fault:
            raise UsageError(f"{name} {rest}: {str(fault).lower()}") from fault
        now = requests.session
        if now.is_complete and self._screen.offers:
            self._screen.offer(now)
        if status not in (0, 2) and not (now.is_awaiting_answer or now.is_complete):
            self._leave()
        return status

    def _leave(self) -> None:
        session = self._shared.work.requests.session
        lost = "nothing is lost: " * (not session.is_complete)
        self._screen.remark(f"{lost}`codingagent resume {session.session_id}` continues")
        raise LeaveError


def _whole(name: str) -> str:
    """Return the command that a name means: its own, or the only one that it begins."""
    name = _ALIASES.get(name[1:]) or _ALIASES.get(name, name)
    found = [each for each in _COMMANDS if each.startswith(name)]
    if name in found or not found:
        return name
    if len(found) > 1:
        raise UsageError(f"{name} may be {' or '.join(found)}")
    return found[0]


def _files_in(text: str) -> list[Path]:
    """Return the files that a line names, as a file manager drops them; a relative path is words."""
    found = list[Path]()
    with contextlib.suppress(ValueError):
        found += [Path(word).expanduser() for word in programs.split(text)]
    return found if all(each.is_absolute() and each.is_file() for each in found) else []


def _command_in(text: str, *, is_asked: bool) -> str | None:
    """Return the command that a line is; empty where only the person knows; None for words.

    A line that begins with a blank is words; so are yes and no if the model asked.
    """
    # A line may be copied with its marks; an input method of East Asia types wide letters.
    first, *others = _PROMPT.sub("", text.strip().strip("`")).split(None, 1) or [""]
    line = " ".join((unicodedata.normalize("NFKC", first), *others))
    # A single word may end as a sentence does.
    line = line if others else line.rstrip(".!") or line
    name, *rest = line.split() or [""]
    if text[0] == " ":
        return None
    own_name = re.split(r"[/\\]", name)[-1].removesuffix(".exe").lower()
    if own_name == "codingagent":
        verb, *own = (rest[2:] if rest[:1] == ["--home"] else rest) or ["?"]
        command = _ALIASES.get(verb, f"/{verb}")
        own = [word for word in own if not journal_entries.is_session_id(word)]
        is_run = command in _WORDS or (command in ("/help", "/quit") and not own)
        return " ".join((command, *own)) if is_run else ""
    if name[:1] == "/":
        return line
    if _NUMBERS.fullmatch(line) and not is_asked:
        return f"/leave {line}"
    said = line.lower()
    if said in _ALIASES or said in _ANSWERS:
        return _ALIASES.get(said, None if is_asked else "")
    is_ours = not rest or rest[0][0] == "-"
    known = [each[1:] for each in _COMMANDS] if is_ours else ["codingagent"]
    # One that is as like as this is probably misspelt; a longer line is a sentence.
    is_one = name in _PROGRAMS or difflib.get_close_matches(own_name, known, cutoff=0.75)
    return "" if is_one and len(rest) < 5 and not _SENTENCE.search(line) else None


def _kept(session: session_state.Session) -> Iterator[str]:
    """Yield the options of `new` that give another session what this one has."""
    terms = session.terms
    yield f"--workspace={session.workspace}"
    kept = ("policy", "sandbox", "context", "protocol", "guide")
    yield from (f"--{name}={getattr(terms, name)}" for name in kept)
    # Not what was left out by hand since: each task has its own choice.
    yield from (f"--leave-out={glob}" for glob in terms.leave_out)
    yield "--network" if terms.network else "--no-network"
    if not terms.conventions:
        yield "--no-conventions"
    if session.check:
        yield f"--check={session.check}"
