"""Render the request to the model: four sections as in specification 003, within a budget.

The task, the guide and the environment are always whole. The listing may take a quarter of what is left,
the results half of the rest, the requested contents all that then remains. What does not fit is cut there,
and the cut says how to ask for the rest.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import plain_text, results
from codingagent.model.check_outcome import brief, compared, failure_before, left_of
from codingagent.model.events import CommandRan, Denied, Event, Refused, file_changes, succeeded
from codingagent.model.operations import Kind
from codingagent.model.session_state import Said, Session
from codingagent.model.settings import Settings
from codingagent.prompt import file_contents, file_list, guide
from codingagent.prompt.file_contents import FileView
from codingagent.prompt.file_list import Listing

CONTINUE = (
    "Continue working on the task based on the results above. If the task is complete, send [DONE]"
    " with a summary."
)
_DO_IT = (
    "Until now the user only asked questions, and nothing was changed. Now do what they want, with the"
    " operations in PROTOCOL."
)
_ANSWER_IT = (
    "The files you asked for are above, as far as they fit. READ_FILE what is still missing, or answer the"
    " question:"
)
# Beyond this, changed files are not read one by one; nor are failures.
_CHANGES_SHOWN = 100
_FAILED_NAMED = 20
# Of the task in HEADER: PROMPT of the first request has all of it, later ones have a long one.
_FIRST, _LATER = 80, 200
# Of the last turn; the others are counted.
RESULTS_SHOWN = 200
# Of each command's output, where all of it does not fit.
_OUTPUT_CHARACTERS = 4_000
# A message or the end of the task need not be repeated, and an answer is not a block.
_NEVER_AGAIN = frozenset({Kind.DONE, Kind.ANSWER, Kind.MESSAGE, Kind.CHECK})
# The share of a request for what was said before the last two requests; of what the model said the newest
# parts, each of so many characters, and all; and of what was done the last turns.
_EARLIER_SHARE = 4
_REPLIES, _REPLY_CHARACTERS, _REPLIES_CHARACTERS = 8, 3_000, 6_000
_TURNS, _TURN_CHARACTERS = 20, 200


class Material(Struct, frozen=True):
    """The content of CONTEXT, besides the results; `choose` adds files, in at most so many characters."""

    listing: Listing
    views: Sequence[FileView]
    unread: Sequence[str]
    """Requested paths that could not be read after all, each with its reason."""
    environment: Mapping[str, str]
    """Facts about the machine by name, so that a model does not have to guess; the check is its command."""
    offered: Sequence[FileView] = ()
    """Files that the outputs of failed commands name, if there is room."""
    attached: Sequence[FileView] = ()
    """Attachments of earlier requests, as they are now: for a chat that has not seen those requests."""
    seen: Sequence[str] = ()
    """Other files that earlier requests showed, or earlier answers wrote."""
    conventions: Sequence[FileView] = ()
    choose: Callable[[int], str] = lambda _: ""
    choose_new: Callable[[int], str] = lambda _: ""
    """The same of the short request: files for what the person wants anew."""
    likely: Sequence[str] = ()
    """Files that the list names before others, the likeliest first."""
    changed: Sequence[FileView] = ()
    """The changed lines of files that the chat has: for the short request."""

    @property
    def files(self) -> tuple[FileView, ...]:
        """All files that are shown, but for those that `choose` adds."""
        return (*self.views, *self.offered, *self.attached, *self.conventions)


class Dialect(Struct, frozen=True):
    """The parts of a request that depend on the protocol."""

    guide: str
    results: Callable[[Session, int, bool], str]
    """The outcomes of the last turn in so many characters; True: the chat has seen the requests before."""
    go_on: str
    reminder: Callable[[Session], str]
    done: str
    name: Callable[[Kind], str] = str
    task: str = ""
    """Where `results` has the task; empty: PROMPT has it."""


def tag_dialect(*, is_kept: bool = False) -> Dialect:
    """Return the dialect of tags; `is_kept`: the chat itself keeps the guide."""
    text, reminder = (
        f"Guide {guide.mark()[:4]} of codingagent, which you keep." if is_kept else guide.protocol_text(),
        partial(_reminder, is_kept=is_kept),
    )
    return Dialect(text, _results, CONTINUE, reminder, "[DONE]")


def question_dialect() -> Dialect:
    return Dialect(guide.question_text(), _results, _ANSWER_IT, _reminder, "")


def _reminder(session: Session, *, is_kept: bool = False) -> str:
    asks = session.is_asking
    return guide.reminder(session.session_id, session.sequence, is_asking=asks, is_kept=is_kept)


def render(session: Session, context: Material, settings: Settings, dialect: Dialect | None = None) -> str:
    """Return the whole request, ready to paste; it ends with "\\n"."""
    dialect = dialect or tag_dialect()
    head = f"{_header(session)}\n=== PROTOCOL ===\n{dialect.guide}\n\n=== CONTEXT ===\n"
    environment = "" if session.is_asking else _environment(context.environment)
    prompt = _prompt(session, context, dialect, settings.context_chars // _EARLIER_SHARE)
    tail = f"{environment}\n=== PROMPT ===\n{prompt}"
    room = max(settings.context_chars - len(head) - len(tail), 0)
    likely = (*session.touched, *context.likely, *session.shown_in_part, *session.known)
    listed = file_list.lines(context.listing, dict.fromkeys(likely), settings.list_entries, room // 4)
    files = "\n".join(("## Workspace Files", *listed, "", ""))
    files += file_contents.conventions(context.conventions, room // 4)
    room -= len(files)
    outcome = dialect.results(session, room // 2, False)
    room -= len(outcome)
    contents = _contents(context, room, is_whole=True)
    return head + files + outcome + contents + context.choose(room - len(contents)) + tail


def render_short(
    session: Session, context: Material, settings: Settings, dialect: Dialect, changed: Sequence[str] | None
) -> str:
    """Return what a chat still needs if it has seen the requests before this one.

    Without the listing, and the environment that it has seen. `changed` is what changed in the workspace
    since the last request, a line each; None: unknown.
    """
    # A question has a guide of its own, and so has what is done after questions.
    has_none = session.lacks_guide == session.sequence - 1 > 0
    is_known = session.is_asking != session.is_taught and not has_none
    taught = dialect.guide
    if session.is_asking and session.is_taught:
        taught = (
            "As in the earlier requests in this chat, but this is a question: answer it in words, or send"
            " READ_FILE only. No other operation is executed."
        )
    elif is_known and session.is_answered:
        taught = "As in the earlier requests with operations: these are executed again."
    elif is_known:
        taught = "As in the earlier requests in this chat."
    head = f"{_header(session)}\n=== PROTOCOL ===\n{taught}\n\n=== CONTEXT ===\n"
    news = ""
    if changed is not None or context.changed:
        changed, shown = changed or (), [*file_contents.unclipped(context.changed)]
        lines = [f"  {line}" for line in changed[:_CHANGES_SHOWN]] or ["  (none)"] * (not shown)
        if (more := len(changed) - _CHANGES_SHOWN) > 0:
            lines.append(f"  … {more} more")
        news = "\n".join(("## Changed Files", *lines, *shown, "", ""))
    if not (session.is_asking or is_known):
        news += f"{_environment(context.environment)}\n"
    tail = f"=== PROMPT ===\n{_prompt(session, context, dialect, is_short=True)}"
    room = max(settings.context_chars - len(head) - len(news) - len(tail), 0)
    outcome = dialect.results(session, room // 2, True)
    room -= len(outcome)
    contents = _contents(context, room)
    return head + news + outcome + contents + context.choose_new(room - len(contents)) + tail


def _next(session: Session, dialect: Dialect, *, is_short: bool) -> str:
    """Say what comes next: the rest of a block, what failed, what to run again; else the task."""
    steps, names = "", dict[str, None]()
    failed = _owed(session.results)
    for each in failed.values():
        if not _is_cut(each, session):
            names[f"  {dialect.name(each.kind)}: {results.without_end_tags(each.fact)}\n"] = None
            continue
        told = each.reason.removeprefix(results.CUT_OFF)
        lines = each.detail.replace("\n", "\n    ")
        steps = f"Your last answer was cut off inside{told}. The lines, indented by 4 spaces:\n    {lines}\n"
        if not is_short:
            steps += "If this chat has not seen that answer, send the whole block.\n"
    if is_short and 0 < len(names) <= _FAILED_NAMED:
        what = "After it, send again what else failed"
        if not steps:
            what = "These operations of your last answer failed. Send only these again"
        steps += f"{what}, corrected as the results above say:\n{''.join(names)}"
        first = next((i for i, each in failed.items() if each.kind is not Kind.READ_FILE), math.inf)
        commands = dict.fromkeys(
            f"  {plain_text.one_line(event.command)}\n"
            for index, event in enumerate(session.results)
            if index > first
            and isinstance(event, CommandRan)
            and not (succeeded(event) or event.command == session.check)
        )
        if commands:
            steps += f"Then run again what failed after them:\n{''.join(commands)}"
    return f"{steps}Then go on with the task." if steps else dialect.go_on


def _is_cut(event: Refused, session: Session) -> bool:
    """Return whether PROMPT says how to go on with a block in which the last answer was cut off."""
    is_cut = event.detail != "" and event.fact.startswith(results.CUT_OFF)
    return is_cut and event.kind not in _NEVER_AGAIN and not session.is_asking


def _owed(events: Sequence[Event]) -> dict[int, Refused]:
    """Return what was refused and must be sent again, by position, unless a later block made up for it."""
    found: dict[int, Refused] = {}
    made: set[str] = set()
    for index in reversed(range(len(events))):
        match events[index]:
            case Refused() as event if event.kind not in _NEVER_AGAIN and event.subject not in made:
                found[index] = event
            case event:
                made |= {each.path for each in file_changes((event,)) if each.after != "part"}
    return dict(reversed(found.items()))


def _header(session: Session) -> str:
    return (
        "=== HEADER ===\n"
        f"Session: {session.session_id}\n"
        f"Sequence: {session.sequence}\n"
        f"Task: {plain_text.one_line(session.wish, _FIRST if session.sequence == 1 else _LATER)}\n"
    )


def _prompt(
    session: Session, context: Material, dialect: Dialect, room: int = 0, *, is_short: bool = False
) -> str:
    """Return the task; words from before the last request take at most `room` characters."""
    parts, last = [dialect.task or session.task], list[str]()
    began = "The user first asked" if session.terms.wants == "words" else "The whole task"
    if session.sequence > 1 and session.is_asking:
        if all(said.sequence != session.sequence for said in session.said):
            last = [f"{dialect.go_on}\n{session.question}"]
        is_told = is_short or (last and session.question == session.task)
        parts = [] if is_told else [f"{began}:\n{session.task}"]
    elif session.sequence > 1:
        parts = [_next(session, dialect, is_short=is_short) if session.is_taught else _DO_IT]
        # HEADER names it; a chat that saw the earlier requests has read it.
        has_more = plain_text.one_line(session.task, _LATER) != session.task and not dialect.task
        if has_more and not is_short:
            parts.append(f"{began}:\n{session.task}")
    # Of the last one CONTEXT has the results.
    if room and (earlier := session.turns[-_TURNS - 1 : -1]):
        done = (f"  answer {number} {plain_text.one_line(did, _TURN_CHARACTERS)}" for number, did in earlier)
        parts.append("\n".join(("What was done before the results above:", *done)))
    parts += [*_words(session, room), *last]
    if room and (names := file_contents.names_of(context.seen, min(room, 3_000))):
        parts.append(
            f"Earlier requests and answers showed or wrote {names}. If this chat has not seen them,"
            f" {dialect.name(Kind.READ_FILE)} those that you need."
        )
    has_check = session.checked is not None or context.environment.get("Check")
    if session.is_failing and has_check and not session.is_asking:
        is_shown = not (session.is_unchecked or isinstance(session.checked, Denied | None))
        found = compared(session)
        where = f"fails (see {Kind.CHECK} above)" if is_shown else "failed when it was run last"
        what = "fix first what did not fail before any change" if found.old else "fix that first"
        if found.old and not found.new:
            what = "each test that it names failed before any change, too: fix only what the task asks for"
        if found.is_same:
            what = "all of it failed before any change, too: fix it only if the task asks for it"
        still = "accepted all the same" if found.counts_not else "not accepted while it fails"
        parts.append(f"The user's check {where}: {what}; {dialect.done} is {still}.")
    return "\n\n".join((*parts, dialect.reminder(session)))


def _words(session: Session, room: int) -> list[str]:
    """Return the person's words: those of now and perhaps missed ones; all others in `room` characters."""
    new = [said for said in session.said if said.sequence == session.sequence]
    # The last answer may be to a request without these words, unless it answered the question in them.
    last = session.sequence - 1
    late = [said for said in session.said if said.is_late and said.sequence == last]
    missed = [] if session.worded == last else late
    earlier = [said for said in session.said if said not in (*new, *missed)]
    if session.is_asking and not new:  # the prompt has the question
        earlier = [said for said in earlier if said.text != session.question]
    parts = []
    if room and (text := plain_text.clip_middle(_before(session, earlier, room), room)):
        parts.append(text)
    if text := _told(missed):
        unseen = "The user said before your last answer, which might not have seen it"
        parts.append(f"{unseen}:\n{text}")
    text = _told(new)
    if any(said.text for said in new):
        parts.append(f"The user says:\n{text}")
    elif text:
        names = file_contents.named(session.attached)
        parts.append(f"The user attaches {names}: see Requested File Contents.")
    elif session.is_answered:
        parts.append("The user has read your answer, and has no more words: go on with the task.")
    elif session.is_only_words:
        parts.append("The user has no reply to your message. Use your judgement and continue.")
    return parts


def _before(session: Session, saids: Iterable[Said], room: int) -> str:
    """Return what the person and the model said before, in its order, for a chat that has not seen it."""
    # Words come with a request, and before its answer.
    rows = [((said.sequence, 0), "Earlier the user said:", _told((said,))) for said in saids]
    answered = "Earlier you answered (quoted for reference; nothing in it is an order):"
    left = min(room // 2, _REPLIES_CHARACTERS)
    for number, text in reversed(session.replies[-_REPLIES:]):
        clipped = plain_text.clip_middle(results.without_end_tags(text), _REPLY_CHARACTERS)
        left -= len(clipped)
        if left >= 0:
            quoted = "\n".join(f"> {line}" for line in clipped.split("\n"))
            rows.append(((number, 1), answered, quoted))
    groups = groupby(sorted(rows, key=itemgetter(0)), itemgetter(1))
    return "\n\n".join(f"{who}\n" + "\n\n".join(row[2] for row in of) for who, of in groups)


def _told(saids: Iterable[Said]) -> str:
    """Return what was said: each time the words, and the files that came with them."""
    parts = []
    for each in saids:
        files = f"(attached: {file_contents.named(each.attached)})" if each.attached else ""
        parts.append("\n".join(filter(None, (each.text, files))))
    return "\n\n".join(filter(None, parts))


def _environment(facts: Mapping[str, str]) -> str:
    said = dict(facts)
    if check := facts.get("Check"):
        said["Check"] = (
            "after each answer that changes a file, this program itself runs"
            f" `{plain_text.one_line(check)}`. What it runs needs no command of yours"
        )
    lines = "".join(f"  {name}: {fact}\n" for name, fact in said.items() if fact)
    return f"## Environment\n{lines}"


def _results(session: Session, room: int, _is_short: bool) -> str:
    check = check_lines(session)
    if session.sequence == 1 and not check:
        return ""
    room -= sum(map(len, check))
    same = [each for each in session.results if each.notes == (results.THERE_ALREADY,)]
    told = [_told_once(event, session) for event in session.results if event not in same]
    for limit in (None, _OUTPUT_CHARACTERS) if len(told) <= RESULTS_SHOWN else ():
        lines = [results.lines_of(event, limit) for event in told]
        if sum(map(len, lines)) <= room:
            break
    else:
        lines = _shorter(told, room)
    if same:
        names = plain_text.some([f"'{each.path}'" for each in file_changes(same)], 3)
        lines.append(f"[OK] {Kind.CREATE_FILE}: already exactly so: {names}")
    notes = [f"Note: {results.without_end_tags(note)}" for note in session.all_notes]
    body = "\n".join([*lines, *check, *notes]) or "(nothing was executed)"
    return f"## Previous Command Results\n{body}\n\n"


def check_lines(session: Session) -> list[str]:
    """Return the outcome of the person's check in the last turn, or before any; it is told in brief."""
    event, old = session.checked, compared(session).old
    if isinstance(event, Denied):
        return [f"{Kind.CHECK} was not run: {event.reason}"]
    told = f"failed before any change, too: {plain_text.some(old, _FAILED_NAMED)}" if old else ""
    if event is None:
        event, told = failure_before(session), "this was before any change: fix what the task asks for"
    if event is None:
        return []
    event = replace(event, notes=(*event.notes, *[told] * bool(told)))
    if isinstance(event, CommandRan):
        event = replace(event, output=brief(event, old))
    return [results.lines_of(event, is_check=True)]


def _told_once(event: Event, session: Session) -> Event:
    if isinstance(event, Refused) and _is_cut(event, session):
        return replace(event, advice="; PROMPT says how to go on", detail="")
    check = session.checked
    if (
        isinstance(event, CommandRan)
        and isinstance(check, CommandRan)
        and (left := left_of(event, check, compared(session).old)) != event.output
    ):
        notes = [note for note in event.notes if note not in check.notes]
        return replace(event, output=left, notes=(*notes, f"see {Kind.CHECK} below"))
    return event


def _shorter(told: Sequence[Event], room: int) -> list[str]:
    """Return failures whole while there is room, then one line each, then counts."""
    kept: dict[int, str] = {}
    for wanted in (False, True):
        for index, event in enumerate(told):
            if succeeded(event) is not wanted or len(kept) == RESULTS_SHOWN:
                continue
            full = results.lines_of(event, _OUTPUT_CHARACTERS)
            for text in (full, full.partition("\n")[0]):
                if len(text) < room:
                    kept[index] = text
                    room -= len(text) + 1
                    break
    missing = [event for index, event in enumerate(told) if index not in kept]
    lines = [kept[index] for index in sorted(kept)]
    if missing:
        failed = sum(not succeeded(event) for event in missing)
        lines.append(
            f"… {len(missing)} more results did not fit here"
            f" ({len(missing) - failed} OK, {failed} FAILED); send fewer operations in one answer"
        )
    return lines


def _contents(context: Material, room: int, *, is_whole: bool = False) -> str:
    """Return the section of file contents; a whole request includes attachments of earlier ones."""
    attached = context.attached if is_whole else ()
    if not (context.views or context.unread or context.offered or attached):
        return ""
    heading = "## Requested File Contents\n"
    unread = "".join(f"({reason})\n" for reason in context.unread)
    room -= len(heading) + len(unread) + file_contents.FRAME_CHARACTERS
    views = list(file_contents.fitting(context.views, room))
    if len(views) < len(context.views):
        left_out = len(context.views) - len(views)
        unread += f"({left_out} more files did not fit here: ask for fewer at a time)\n"
    text = file_contents.shares(views, room)
    room -= len(text)
    before = file_contents.attached(attached, room // 2)
    room = (room - len(before)) // 3  # nobody asked for what follows
    offered = file_contents.shares(list(file_contents.fitting(context.offered, room)), room)
    return f"{heading}{text}{unread}{before}{offered}\n"
