"""Render a JSON request: the guide, and the events as its context."""

from collections.abc import Sequence

from codingagent.model import plain_text
from codingagent.model.results import without_end_tags
from codingagent.model.session_state import Session
from codingagent.prompt.render import RESULTS_SHOWN, Dialect, check_lines
from codingagent.protocols.json import type_of
from codingagent.protocols.json.messages import event_of
from codingagent.protocols.json.wire import (
    Event,
    EventsMessage,
    ShellEvent,
    UserMessageEvent,
    to_json,
)

GUIDE = r"""
You are a coding agent. You work on the files of one folder, the workspace, on a person's computer, by
operations as JSON. A program executes them in order, and its events come back in the next request. The
person only carries your answer to the program, by hand: get as far as you can in each answer, and
don't ask them to edit or run anything.

## The shape of an answer

One JSON object in one code block, and nothing else. `session` and `sequence` are the two values from
HEADER; `operations` is a list of as many operations as you need.

```json
{"protocolVersion":"1.0","session":"a1b2c3d4","sequence":2,"operations":[
  {"type":"editFile","path":"shop/cart.py","edits":[
    {"oldContent":"return self.net + self.discount","newContent":"return self.net - self.discount"}]},
  {"type":"shell","command":"python3 -m unittest discover -s tests","timeout":60000},
  {"type":"message","content":"DONE: total() takes discounts off now; the tests pass."}
]}
```

## Operations

### createFile
Creates a file; missing folders are made. It fails if the file exists, unless `overwrite` is true.
`encoding` may be `base64`, for binary files.
{"type":"createFile","path":"src/greet.py","content":"def greet():\n    return 1\n","overwrite":false}

### editFile
Changes part of a file. Each edit replaces the first occurrence of `oldContent`, which is exact to
the letter, by `newContent`; they apply in order, all of them or none.

### readFile
Asks for a file: its `content` comes in the event.
{"type":"readFile","path":"src/main.py","encoding":"utf-8"}

### deleteFile
Deletes one file, never a folder.
{"type":"deleteFile","path":"src/old.py"}

### shell
Runs a shell command in the workspace, or in `cwd` within it. Nothing can be typed into it; what it
leaves running is ended. Don't pipe it into tail or head, which hides a failure. `timeout` is in
milliseconds, from 1000 to 3600000; `env` is an object of environment variables. You get exitCode,
stdout and stderr.

### message
Shows a text to the person: what you do and why, or a question. One that begins with `DONE:` and is
the last operation ends the task, if everything in the same answer succeeds.
{"type":"message","content":"Shall dates be local or UTC?"}

## Rules

1. It must be valid JSON: in a string, a line end is \n, a quote \", a backslash \\.
2. Never write "..." or "rest unchanged" for lines of a file: what you write is what the file will hold.
3. Don't guess what a file says. If its text is not in this request, readFile it first, and ask in one
   answer for all that you need.
4. New or short files: createFile, whole. Changes in longer files: editFile. Take enough into
   `oldContent` that it occurs once.
5. Operations run in the order written; a failed one does not stop the next. Put the shell operation
   that verifies your changes after them, in the same answer: the tests that they concern, not all,
   on these files, no installed copy (Python: PYTHONPATH=src or .).
6. End with DONE: in the same answer. It counts if everything before it succeeded, each command with exit
   code 0; else the task stays open, and the next request says why.
7. Leave DONE: out only if you must see events first. Unclear? Send one message with your question.
8. Events come only from the program: never write them yourself.
9. When an event has "success": false or is a policyDenied or an error, it says why. Send that operation
   again, mended; what succeeded is done.
10. Paths are relative to the workspace root, with / and without `..`. The folder .git can't be written;
   the person commits.
""".strip()

CONTINUE = (
    "Continue working on the task based on the events above. If the task is complete, send one message"
    " operation that begins with DONE: and a summary."
)

TASK = "Do the task: it is the first event above, the userMessage."

_CUT = (
    "what says that characters were left out was cut to fit here: read a long file in parts, with"
    " shell and sed -n '1,200p' FILE"
)

# What events may hold in length; the rest of them is short.
_LONG = ("content", "stdout", "stderr", "error", "command")
_SHORTEST = 200
_COMMAND_SHOWN = 120


def dialect() -> Dialect:
    """Return the parts of a request that differ from those of one in tags."""
    return Dialect(GUIDE, _results, CONTINUE, _reminder, "DONE:", type_of, TASK)


def _reminder(session: Session) -> str:
    return (
        'Answer with one JSON object as PROTOCOL says, with "protocolVersion": "1.0",'
        f' "session": "{session.session_id}", "sequence": {session.sequence} and "operations".'
        " Put the message with DONE: after your last changes and the shell operations that verify them:"
        " it counts if all of them succeed.\n"
    )


def _results(session: Session, room: int, is_short: bool) -> str:
    """Return the events of the last turn and notes; the first is the task, unless the chat has read it."""
    task = UserMessageEvent(
        timestamp=session.created_at, content=plain_text.without_halves(session.task)
    )
    events: list[Event] = [] if is_short else [task]
    events += map(_without_echo, map(event_of, session.ends))
    known = len(events)
    notes = list(session.all_notes)
    check = "".join(f"{line}\n" for line in check_lines(session))
    room -= len(check)
    # The first ones stay, and the last.
    del events[RESULTS_SHOWN // 2 : -RESULTS_SHOWN // 2]
    while (found := _fitting(events, room)) is None:
        # Even cut short they are too many.
        middle = len(events) // 2
        del events[max(middle, 1) : max(middle, 1) + max(len(events) // 4, 1)]
    lines, is_cut = found
    if is_cut:
        notes.append(_CUT)
    if left_out := known - len(events):
        notes.append(f"{left_out} events did not fit here; send fewer operations in one answer")
    name = f"{session.session_id}-{session.sequence}"
    empty = EventsMessage(protocol_version="1.0", run_id=name, status="completed", events=())
    head = to_json(empty).removesuffix("]}")
    said = "".join(f"Note: {without_end_tags(note)}\n" for note in notes)
    return f"## Previous Command Results\n{head}\n" + ",\n".join(lines) + f"\n]}}\n{check}{said}\n"


def _without_echo(event: Event) -> Event:
    """Return a command's event with the beginning of the command alone: the model wrote the rest."""
    if not isinstance(event, ShellEvent):
        return event
    return event.model_copy(update={"command": plain_text.one_line(event.command, _COMMAND_SHOWN)})


def _fitting(events: Sequence[Event], room: int) -> tuple[list[str], bool] | None:
    """Return the events as JSON, a line each, and whether texts were cut, as little as need be.

    None: they do not fit, however short.
    """
    sizes = [len(getattr(event, name, None) or "") for event in events for name in _LONG]
    # Far too much is not even written out whole.
    limit = max(sizes, default=0) if sum(sizes) <= 4 * room else max(room // 2, _SHORTEST)
    while True:
        lines = [to_json(_cut(event, limit)) for event in events]
        if sum(map(len, lines)) <= room or (limit <= _SHORTEST and len(events) < 2):
            return lines, limit < max(sizes, default=0)
        if limit <= _SHORTEST:
            return None
        limit = max(min(limit, 2 * room) // 2, _SHORTEST)


def _cut(event: Event, limit: int) -> Event:
    long = {name: text for name in _LONG if len(text := getattr(event, name, None) or "") > limit}
    cut = {name: plain_text.clip_middle(text, limit) for name, text in long.items()}
    return event.model_copy(update=cut)
