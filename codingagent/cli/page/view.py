"""What a view of the page shows: read from the journal, by the renderer that all screens share."""

import contextlib
import html
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.commit import PersonsRepository
from codingagent.agent.secrecy import Secrecy, secrecy_of, vault_file_of
from codingagent.agent.uncommitted import work_since_commit
from codingagent.checkpoints.history import HistoryStep, steps
from codingagent.cli import layout
from codingagent.cli.layout import Line, Look
from codingagent.cli.page.workers import Worker
from codingagent.cli.plain_output import diff_style
from codingagent.cli.record_words import asked_in, laid_out, lines_of
from codingagent.errors import CodingAgentError, WorkError
from codingagent.model import events, paths, patterns, plain_text, session_fold
from codingagent.model import journal_entries as entries
from codingagent.model.approval import Question
from codingagent.model.session_state import Phase, Session
from codingagent.prompt import file_list, tokens
from codingagent.storage import homes, lock
from codingagent.storage.homes import Home

# The browser wraps lines itself.
LOOK = Look(1_000_000, has_marks=True)

# Records that say nothing to who looks at the page, or that another part of it shows.
_LEFT_OUT = (
    *(entries.SessionStarted, entries.InboxFound, entries.RequestWritten, entries.AnswerTaken),
    *(entries.OperationStarted, entries.CheckpointTaken, entries.UndoBegan, entries.ApprovalAsked),
    *(entries.SessionRenamed, entries.CandidateBegan, entries.CandidateEnded),
)
_STATES = patterns.table(patterns.sections(__file__)["states"])
_SECTION = patterns.lazy_pattern(
    r"^(?:=== (HEADER|PROTOCOL|CONTEXT|PROMPT) ===|## (Workspace Files|Changed Files|Previous Command Results"
    r"|Requested File Contents|Conventions|Chosen Files|Environment))$",
    re.MULTILINE,
)
_FRAME = patterns.lazy_pattern(r"^--- (.+?)(?: \(.*\))? ---\n(?s:.*?)^--- end \1 ---\n", re.MULTILINE)
_TASK_CHARACTERS = 80
# Of lists and quotes in one another.
_NESTED = 100
# Of a message, or of what an operation tells; the text of the answer has all of it.
_RECORD_LINES = 2_000
# What a view shows of a session's state; thousands of results are in it, too.
_HIDDEN = ("name", "task", "unfinished", "asked", "said")


class Turn(Struct):
    """A turn of the timeline; number 0 is what came before the first answer."""

    number: int
    at: str
    lines: list[Line]
    html: list[str] = []
    """The first lines, as they were shown before."""
    changed: tuple[str, ...] = ()
    undoes: int = 0
    """How many turns an undo of this one and all later ones undoes; 0: it can't be undone."""
    is_undone: bool = False

    def told(self, line: Callable[[Line], str]) -> str:
        """Return the lines as HTML; `line` makes it of those that are new."""
        self.html += map(line, self.lines[len(self.html) :])
        return "".join(self.html)


class RequestView(Struct):
    """A request that waits to be sent."""

    number: int
    at: str
    about: str
    is_short: bool
    """There is a short one, for a chat that has seen the earlier ones."""
    pieces: list[tuple[str, int]]
    """What the one that is sent holds: the name of each piece, and its tokens."""
    parts: list[tuple[str, str, int, bool]]
    """Its files: the path of each, the same without secrets, its tokens, and whether it may be left out."""
    left_out: list[tuple[str, str]]
    beside: list[tuple[str, str, str]]
    """Files of the workspace to attach: the path of each, the same without secrets, and its size."""


def rows(home: Home, say: Callable[[str], object]) -> list[dict[str, str]]:
    """Return all sessions of a home that are not closed, the latest first, as the list tells them."""
    now = layout.local_now()
    found = []
    for each in homes.all_sessions(home, say):
        if each.is_closed:
            continue
        try:
            hide = secrecy_of(home.sessions.folder, each).hide
        except WorkError as fault:
            say(f"{each.session_id} is not shown: {fault}")
            continue
        task = hide(plain_text.one_line(each.name or each.task, _TASK_CHARACTERS))
        when = layout.ago(each.updated_at, now)
        state = _STATES[each.phase.name]
        found.append({"session_id": each.session_id, "task": task, "state": state, "when": when})
    return found


class Story:
    """What the journal of a session told so far; a view reads on from there."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.session: Session | None = None
        self.records: list[entries.Record] = []
        self.turns: list[Turn] = []
        self._end, self._stamp = 0, list[int]()

    def read_on(self, home: Home, session_id: str) -> Session:
        """Take in what is new of a session, and return its state."""
        with self.lock:
            path = home.sessions.journal_path(session_id)
            about, before = path.stat(), self.session
            vault = [path.with_name(name) for name in ("vault.json", "secrets.json")]
            stamp = [about.st_ino, *(each.exists() and each.stat().st_mtime_ns for each in vault)]
            # What became a secret since is hidden in all that was told before.
            if stamp != self._stamp or about.st_size < self._end:
                self.records, self.turns, self._end, before = [], [Turn(0, "", [])], 0, None
            records, end = home.sessions.read_on(session_id, self._end)
            session = before
            secrecy = secrecy_of(home.sessions.folder, session) if session else None
            for record, session in session_fold.states(records, before):
                self.records.append(record)
                if isinstance(record, entries.AnswerTaken):
                    self.turns.append(Turn(record.sequence, record.at, []))
                if isinstance(record, _LEFT_OUT):
                    continue
                secrecy = secrecy or secrecy_of(home.sessions.folder, session)
                shown = lines_of(*secrecy.record(record, session), home.mailbox, LOOK)
                told = [*laid_out(shown, LOOK)]
                self.turns[-1].lines += told[:_RECORD_LINES]
                self.turns[-1].lines += [[(each, "dim")] for each in _left_out(told)]
                if isinstance(record, entries.TurnEnded):
                    self.turns[-1].changed = secrecy.hide_all(record.changed)
            assert session is not None, "a session that is listed began"
            self.session, self._end, self._stamp = session, end, stamp
            return session


class SessionView:
    """All that the page shows of one session, as it is now; `story` is what earlier views have read."""

    def __init__(self, home: Home, session_id: str, worker: Worker, story: Story | None = None) -> None:
        with (story := story or Story()).lock:
            self.session = story.read_on(home, session_id)
            records, turns = [*story.records], [*map(replace, story.turns)]
        found = steps(records)
        self.turns = _marked(turns, found, {number for number, _ in self.session.late})
        secrecy = secrecy_of(home.sessions.folder, self.session)
        words = events.MessageShown | events.Finished
        said = tuple(each for each in self.session.results if isinstance(each, words))
        few = {name: getattr(self.session, name) for name in _HIDDEN}
        self.hidden = replace(self.session, **secrecy.hide_all({**few, "results": said}))
        self.id, self.worker = session_id, worker
        self.state = "closed" if self.session.is_closed else _STATES[self.session.phase.name]
        self.title = plain_text.one_line(self.hidden.name or self.hidden.task, _TASK_CHARACTERS)
        self.is_at_work = self.session.phase in (Phase.EXECUTING, Phase.REQUEST_DUE)
        self.is_waited_for = lock.is_held(home.waiting_path(session_id))
        """A process waits for the answer, here or in a terminal."""
        self.all_changed = [*dict.fromkeys(p for t in self.turns if not t.is_undone for p in t.changed)]
        made = [each for each in records if isinstance(each, entries.CommitMade)][-1:]
        self.commits = [replace(each, files=secrecy.hide_all(each.files)) for each in made]
        can_commit = self.session.is_complete and (self.all_changed or made)
        work = work_since_commit(records, bool, secrecy.hide) if can_commit else None
        self.message = work.message if work and work.steps else ""
        """The last commit, if there is one, and the message of one that can be made; empty: none can."""
        self.runs = None
        """What a commit runs; None where there is no repository."""
        with contextlib.suppress(CodingAgentError):  # the commit says it
            if self.message:
                self.runs = PersonsRepository(Path(self.session.workspace)).runs(self.all_changed)
        undone = (found[n] for step in found if step.undo is None for n in step.undoes)
        self.can_redo = self.session.undos > 0 and any(step.sequence for step in undone)
        self.question = self._question(secrecy)
        # One that is written anew stays: what was opened, ticked or typed beside it is not lost.
        is_there = self.session.phase in (Phase.AWAITING_ANSWER, Phase.REQUEST_DUE)
        self.request = self._request(home, records, secrecy) if is_there else None
        waits = self.session.trials if self.request else []
        self.candidates = [(number, secrecy.hide_all(ended) if ended else None) for number, ended in waits]
        held = vault_file_of(home.sessions.folder, self.session).load().by_name.values()
        self.secrets = sorted(held, key=lambda each: each.name)
        told = (e.text for e in self.hidden.results if isinstance(e, events.MessageShown))
        is_asked = self.session.is_only_words and self.session.awaits_words
        asked = [line for text in told for line in text.split("\n")] if is_asked else []
        self.asks = "\n".join(asked[:_RECORD_LINES] + _left_out(asked))
        self.words = [e.text for e in self.hidden.said if e.text and e.sequence == self.session.sequence]
        summary = [each.summary for each in self.hidden.results if isinstance(each, events.Finished)]
        self.summary = summary[-1] if summary and self.session.is_complete else ""

    def _question(self, secrecy: Secrecy) -> "tuple[str, list[Line], list[Line], Question] | None":
        """Return what waits for approval: what identifies it, why it is asked, its text, and itself."""
        if self.session.asked is None or not self.session.is_awaiting_approval:
            return None
        asked = secrecy.asked(self.session.asked)
        question = asked.question
        told = laid_out(lines_of(asked, self.hidden, None, LOOK), LOOK)
        is_above = (question.shown or question.subject) == question.subject
        lines: list[Line] = [[(line, diff_style(line))] for line in asked_in(question) if not is_above]
        shown = laid_out(((line, 0) for line in lines), LOOK)
        return f"{asked.index} {asked.at}", [*told], [*shown], question

    def _request(self, home: Home, records: Sequence[entries.Record], secrecy: Secrecy) -> RequestView | None:
        session = self.session
        mailbox, name = home.mailbox, (session.session_id, session.sequence)
        short = mailbox.short_path(*name)
        is_short = session.sequence > 1 and short.exists()
        written = next((e for e in reversed(records) if isinstance(e, entries.RequestWritten)), None)
        if not written or written.sequence != session.sequence:
            return None
        try:
            sent = (short if is_short else mailbox.outbox_path(*name)).read_text("utf-8")
        except OSError:
            return None  # `resume` writes it again
        about = f"{len(sent):,} characters, {plain_text.estimated(tokens.estimate(sent))}"
        found: dict[str, int] = {}  # the tokens of each section
        marks = [*_SECTION.finditer(sent)]
        for mark, end in itertools.zip_longest(marks, [each.start() for each in marks[1:]]):
            title = mark[2] or {"PROTOCOL": "Guide"}.get(mark[1], mark[1].capitalize())
            found[title] = found.get(title, 0) + tokens.estimate(sent[mark.start() : end])
        pieces = [(title, count) for title, count in found.items() if title != "Context"]
        lines = written.egress.files if written.egress else ()
        shown = *(e.path for e in lines), *(e.path for e in written.shown), *(e.path for e in written.held)
        names = {file_list.shown_path(secrecy.hide(path)): path for path in shown}
        parts = []
        for frame in _FRAME.finditer(sent):
            if (path := names.get(frame[1])) and path not in session.leave_out:  # it is due without that
                section = ["", *(mark[2] for mark in marks if mark.start() < frame.start())][-1]
                can_go = section == "Chosen Files" or path in session.attached
                parts.append((path, secrecy.hide(path), tokens.estimate(frame[0]), can_go))
        left_out = [(glob, secrecy.hide(glob)) for glob in session.leave_out]
        beside = [(path, secrecy.hide(path), file_list.human_size(n)) for path, n in written.beside.items()]
        return RequestView(session.sequence, written.at, about, is_short, pieces, parts, left_out, beside)


def beside_in(records: Iterable[entries.Record]) -> dict[str, int]:
    """Return the files to attach beside the latest request, and their sizes, as they were recorded."""
    written = [each.beside for each in records if isinstance(each, entries.RequestWritten)]
    return written[-1] if written else {}


def _left_out(lines: Sized) -> list[str]:
    rest = len(lines) - _RECORD_LINES
    return [f"({rest:,} more lines: the text of the answer has all)"] * (rest > 0)


def _marked(turns: list[Turn], found: Iterable[HistoryStep], late: set[int]) -> list[Turn]:
    """Mark which turns are undone, and how many an undo of each undoes; `late` have no checkpoints yet."""
    # The check before the first answer changed nothing.
    parts = [step for step in found if step.sequence and step.before != step.after]
    changed = {turn.number: {*turn.changed} for turn in turns}
    # A turn of which some files are undone, or could not be, can still be undone.
    can_undo = {
        step.sequence
        for step in parts
        if step.undo is None
        or step.undo.failed
        or (step.undo.files and changed.get(step.sequence, set()).difference(step.undo.files))
    }
    can_undo |= late
    undone = {step.sequence for step in parts} - can_undo
    changing = [turn for turn in turns if turn.changed and turn.number in can_undo]
    for number, turn in enumerate(reversed(changing), start=1):
        turn.undoes = number
    for turn in turns:
        turn.is_undone = turn.number in undone
    return turns


def when(at: str) -> str:
    """Return a moment in the person's own time."""
    return layout.clock(at, layout.local_now()) if at else ""


@cache
def _markdown() -> MarkdownIt:
    """Return what lays out a model's words: all signs stay, and they bring no tags, pictures or links."""
    signs = ["image", "link", "autolink", "reference", "entity", "escape", "emphasis"]
    found = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTED}).enable("table").disable(signs)
    found.add_render_rule("fence", _fence)
    return found


def _fence(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """Return a code block with all that stands beside its fence."""
    info, code = (html.escape(text) for text in (tokens[at].info.strip(), tokens[at].content))
    return f'<p class="dim">{info}</p>' * bool(info) + f"<pre><code>{code}</code></pre>\n"


def markdown(text: str) -> str:
    shown = plain_text.on_screen(text)
    if any(each.level >= _NESTED - 1 for each in _markdown().parse(shown)):
        return f"<pre>{html.escape(shown)}</pre>"  # what is deeper would be left out
    return str(_markdown().render(shown))


# --- diffs: by files and lines, with what changed in a line marked --------------------------------
_HUNK = patterns.lazy_pattern(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = patterns.lazy_pattern(r"\w+|\s+|[^\w\s]")
_SHOWN_LINES = 3_000
_NOT_HERE = "not all of it is shown here: `codingagent diff` shows more"


class DiffRow(Struct):
    """A line of a diff: its sign (`+`, `-`, a space, or `@` for a gap), its numbers, and its pieces."""

    sign: str
    old: int | None
    new: int | None
    pieces: list[tuple[str, str]]
    """Each with the classes of its style."""


class DiffView(Struct):
    path: str
    rows: list[DiffRow]
    about: str = ""
    """What is said of a file without lines to show."""

    @property
    def pairs(self) -> Iterator[tuple[DiffRow | None, DiffRow | None]]:
        """The rows side by side: each with the one that took its place."""
        removed: list[DiffRow] = []
        added: list[DiffRow] = []
        for row in (*self.rows, None):
            if row is not None and row.sign in "+-":
                (added if row.sign == "+" else removed).append(row)
                continue
            yield from itertools.zip_longest(removed, added)
            removed, added = [], []
            if row is not None:
                yield row, row


def files_of(text: str, named: Iterable[str] = ()) -> list[DiffView]:
    """Return the files of a unified diff, as git writes it, and those `named` of which it has nothing."""
    found: list[DiffView] = []
    old = new = shown = 0
    for line in text.split("\n"):
        if line.startswith("diff --git ") or (not found and line.startswith("--- ")):
            # Both of git's names are the same.
            pair = line.removeprefix("diff --git ")
            name = paths.unquoted(pair[: len(pair) // 2]).removeprefix("a/")
            found.append(DiffView(line[4:] if line[0] == "-" else name, []))
            old = new = 0
        elif not found:
            continue
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            if found[-1].rows:
                found[-1].rows.append(DiffRow("@", None, None, []))
        elif not new and not old:
            if line.startswith(("new file", "deleted file", "Binary files", "similarity")):
                found[-1].about = line.partition(" mode ")[0]
        elif line[:1] in ("+", "-", " "):
            if (shown := shown + 1) > _SHOWN_LINES:
                found[-1].about = _NOT_HERE
                continue
            sign, pieces = line[0], [(plain_text.on_screen(line[1:]).expandtabs(4), "")]
            at = (old if sign != "+" else None), (new if sign != "-" else None)
            found[-1].rows.append(DiffRow(sign, *at, pieces))
            old, new = old + (sign != "+"), new + (sign != "-")
        elif line[:1] in ("\\", "…"):
            found[-1].rows.append(DiffRow("@", None, None, [(plain_text.on_screen(line), "")]))
    known = {each.path for each in found}
    found += (DiffView(path, [], _NOT_HERE) for path in named if path not in known)
    for each in found:
        for before, after in [*each.pairs]:
            if before is not None and after is not None and before is not after:
                _mark(before, after)
    return found


def _mark(old: DiffRow, new: DiffRow) -> None:
    """Mark the words between those with which both lines begin and end, unless that is most of them."""
    sides = [_WORD.findall(row.pieces[0][0]) for row in (old, new)]
    shared = os.path.commonprefix  # of lists of words
    first = len(shared(sides))
    last = len(shared([words[first:][::-1] for words in sides]))
    if 4 * (first + last) < sum(map(len, sides)):
        return
    for row, words in zip((old, new), sides, strict=True):
        end = len(words) - last
        parts = (words[:first], ""), (words[first:end], "word"), (words[end:], "")
        row.pieces = [("".join(part), style) for part, style in parts if part]
