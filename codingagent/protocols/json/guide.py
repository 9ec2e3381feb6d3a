"""Render a JSON request: the guide, and the events as its context."""

from codingagent.model import patterns, plain_text, results, session_state
from codingagent.prompt.render import RESULTS_SHOWN, Dialect, check_lines
from codingagent.protocols.json import messages, wire
from codingagent.protocols.json.wire import Event, ShellEvent, to_json, type_of

GUIDE = patterns.text_at(__file__.removesuffix("py") + "txt").strip()

CONTINUE = (
    "Continue working on the task based on the events above. If the task is complete, send one message"
    " operation that begins with DONE: and a summary."
)
TASK = "Do the task: it is the first event above, the userMessage."
_CUT = (
    "a text that says that characters were left out was cut to fit here: read a long file in parts, with"
    " shell and sed -n '1,200p' FILE"
)
# What events may hold in length; the rest of them is short.
_LONG = ("content", "stdout", "stderr", "error")
_SHORTEST = 200
_COMMAND_SHOWN = 120


def dialect() -> Dialect:
    """Return the parts of a request that differ from those of one in tags."""
    return Dialect(GUIDE, _results, CONTINUE, _reminder, "DONE:", type_of, TASK)


def _reminder(session: session_state.Session) -> str:
    return (
        'Answer with one JSON object as PROTOCOL says, with "protocolVersion": "1.0",'
        f' "session": "{session.session_id}", "sequence": {session.sequence} and "operations".'
        " End with the message with DONE: unless you must see events first.\n"
    )


def _results(session: session_state.Session, room: int, is_short: bool) -> str:
    """Return the events of the last turn and notes; the first is the task, unless the chat has read it."""
    task = wire.UserMessageEvent(
        timestamp=session.created_at, content=plain_text.without_halves(session.task)
    )
    events: list[Event] = [*[task] * (not is_short), *map(messages.event_of, session.ends)]
    known = len(events)
    notes = list(session.all_notes)
    check = "".join(f"{line}\n" for line in check_lines(session))
    room -= len(check)
    # The first ones stay, and the last.
    del events[RESULTS_SHOWN // 2 : -RESULTS_SHOWN // 2]
    sizes = [len(getattr(event, name, None) or "") for event in events for name in _LONG]
    # Far too much is not even written out whole.
    limit = max(sizes, default=0) if sum(sizes) <= 4 * room else max(room // 2, _SHORTEST)
    while sum(map(len, lines := [to_json(_cut(event, limit)) for event in events])) > room:
        if limit > _SHORTEST:
            limit = max(min(limit, 2 * room) // 2, _SHORTEST)
        elif len(events) > 1:  # even cut short they are too many
            middle = len(events) // 2
            del events[middle : middle + max(len(events) // 4, 1)]
        else:
            break
    if limit < max(sizes, default=0):
        notes.append(_CUT)
    if left_out := known - len(events):
        notes.append(f"{left_out} events did not fit here; send fewer operations in one answer")
    name = f"{session.session_id}-{session.sequence}"
    empty = wire.EventsMessage(protocol_version="1.0", run_id=name, status="completed", events=())
    head = to_json(empty).removesuffix("]}")
    said = "".join(f"Note: {results.without_end_tags(note)}\n" for note in notes)
    return f"## Previous Command Results\n{head}\n" + ",\n".join(lines) + f"\n]}}\n{check}{said}\n"


def _cut(event: Event, limit: int) -> Event:
    long = {name: text for name in _LONG if len(text := getattr(event, name, None) or "") > limit}
    cut = {name: plain_text.clip_middle(text, limit) for name, text in long.items()}
    if isinstance(event, ShellEvent):  # the model wrote the rest of the command
        cut["command"] = plain_text.one_line(event.command, _COMMAND_SHOWN)
    return event.model_copy(update=cut)
