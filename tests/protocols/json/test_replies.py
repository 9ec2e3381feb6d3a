"""Answers that are messages, and requests in words of JSON: design, operations and events."""

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.model.events import (
    CommandRan,
    Denied,
    Event,
    FileCreated,
    FileFetched,
    FileRequested,
    MessageShown,
    Refused,
)
from codingagent.model.operations import FetchFile, Finish, Kind, ShowMessage
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.prompt import render as outbox
from codingagent.protocols.json import guide as json_guide
from codingagent.protocols.json.messages import read_reply, validate_event, validate_operations_message
from codingagent.protocols.json.wire import Operation
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Header, Problem, Reply, Step
from tests.builders import CREATED_AT, SESSION_ID, context_of, session_of, turn
from tests.rows import each_row

READ = {"type": "readFile", "path": "a.py"}


def message(*operations: object, **more: object) -> str:
    return json.dumps({"protocolVersion": "1.0", **more, "operations": list(operations)}, indent=1)


def read(text: str) -> Reply:
    found = read_reply(text)
    assert found is not None
    return found


def problem(text: str) -> Problem:
    (item,) = read(text).items
    assert isinstance(item, Problem)
    assert item.kind == "REPLY"
    return item


def said(text: str) -> object:
    """Return the operation of an answer that has one."""
    (item,) = read(text).items
    assert isinstance(item, Step)
    return item.operation


# --- answers ---------------------------------------------------------------------------------------

WHOLE = message(READ)
MANGLES = {
    "bare": WHOLE,
    "on one line": json.dumps(json.loads(WHOLE)),
    "blanks around": f"\n\n  {WHOLE}\n \n",
    "byte-order mark": f"\ufeff{WHOLE}",
    "mark and blanks": f"\ufeff\n{WHOLE}\n",
    "crlf": WHOLE.replace("\n", "\r\n"),
    "fenced": f"```json\n{WHOLE}\n```",
    "fenced without a name": f"```\n{WHOLE}\n```\n",
    "fenced with tildes": f"~~~json\n{WHOLE}\n~~~\n",
    "fenced with four": f"````json\n{WHOLE}\n````\n",
    "fenced, indented": f"  ```json\n{WHOLE}\n  ```\n",
    "fenced, crlf": f"```json\r\n{WHOLE}\r\n```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
    "fenced, mark": f"\ufeff```json\n{WHOLE}\n```",
    "prose around": f"Sure, I read it:\n\n```json\n{WHOLE}\n```\n\nThat's it {{really}}.\n",
    "another fence before": f"Like `x`:\n```python\nprint('{{}}')\n```\n```json\n{WHOLE}\n```\n",
    "JSON that is no message beside": f'```json\n{{"a": 1}}\n```\n```json\n{WHOLE}\n```\n',
    "unclosed fence": f"```json\n{WHOLE}\n",
    "longer closing": f"```json\n{WHOLE}\n`````\n",
}


@each_row("text", MANGLES.values(), ids=MANGLES)
def test_a_message_is_found_bare_or_in_a_fence(text: str) -> None:
    """Design: a reply that is an operations message, bare or in one code fence, is executed."""
    assert said(text) == FetchFile("a.py", "utf-8")


@each_row(
    "text",
    [
        "",
        "I have no idea.",
        "{not JSON at all}",
        '{"a": 1}',
        '```json\n{"path": "a.py"}\n```',
        "[1, 2]",
        '"operations"',
        "the `operations` are {}",
        f"Here it is: {WHOLE}",
        f"```json\n[{WHOLE}]\n```",
    ],
)
def test_what_is_no_message_is_none(text: str) -> None:
    """An answer in prose, or JSON that is something else, is not taken for a message."""
    assert read_reply(text) is None


def test_two_messages_are_not_executed() -> None:
    """In one code fence: of two, one may be an example or a second thought."""
    fence = f"```json\n{WHOLE}\n```\n"
    assert "holds 2 JSON messages, so nothing was executed" in problem(fence + fence).reason


@each_row(
    ("text", "reason"),
    [
        (WHOLE[:-5], "is not JSON"),
        (f"```json\n{WHOLE[:40]}", "is not JSON"),
        (f"{WHOLE}\nThat's all.", "is not JSON"),
        (WHOLE.replace('"1.0"', '"2.0"'), "protocolVersion must be"),
        (WHOLE.replace('"protocolVersion"', '"version"'), "protocolVersion is missing"),
        ('{"protocolVersion": "1.0"}', "operations is missing"),
        ('{"protocolVersion": "1.0", "operations": {}}', "operations must be"),
        ('{"operations":' + "[" * 100_000, "is nested too deep"),
    ],
)
def test_a_message_that_cant_be_read_says_why_and_asks_again(text: str, reason: str) -> None:
    """A cut answer costs one round trip, with the place where it was cut."""
    found = problem(text).reason
    assert found.startswith("The JSON message was not executed: ")
    assert reason in found
    assert found.endswith("Send it again, whole")


def test_one_bad_operation_does_not_spoil_the_others() -> None:
    """Specification 001: a malformed operation is skipped, the others go on, in order."""
    found = read(message(READ, {"type": "no"}, READ))
    kinds = [type(item).__name__ for item in found.items]
    assert kinds == ["Step", "Problem", "Step"]
    assert [item.id for item in found.items] == ["op-1", "op-2", "op-3"]
    assert not found.has_outbox
    assert found.notes == ()


def test_an_empty_message_is_a_turn_without_operations() -> None:
    """001's schema accepts it."""
    assert read(message()).items == ()


@pytest.mark.parametrize("content", ["DONE: all is well", "DONE:all is well", " DONE: all is well\n"])
def test_a_lone_message_that_says_done_ends_the_session(content: str) -> None:
    """Design: a reply whose only operation is a `message` that begins `DONE:` ends the session."""
    assert said(message({"type": "message", "content": content})) == Finish("all is well")


@each_row(
    "written",
    [
        '"content": "a\nb\n"',
        '"content": "a", ',
        r'"content": "re.match(\d+\.\w)"',
        '"content": "print("hi")"',
        '"content": "abc',
    ],
)
def test_almost_json_is_asked_for_again_in_words(written: str) -> None:
    """Design, no wrong bytes: nothing is executed; the place is named, and what to write."""
    text = message({"type": "createFile", "path": "a.py", "content": "-"})
    found = problem(text.replace('"content": "-"', written)).reason
    assert re.search(r"is not JSON: .*\(line \d+, column \d+\); in strings write ", found)
    assert found.endswith("Send it again, whole")


@each_row("content", ["done: x", "Is it DONE: yes", "DONE", "DONE : x", ""])
def test_other_messages_end_nothing(content: str) -> None:
    """It begins with exactly that."""
    assert said(message({"type": "message", "content": content})) == ShowMessage(content)


def test_done_ends_only_as_the_last_operation() -> None:
    """Design, after DONE: it stands last."""
    done = {"type": "message", "content": "DONE: x"}
    for operations in ((READ, done), (done, READ), (done, done), (done, {"type": "no"})):
        items = read(message(*operations)).items
        ends = [isinstance(item, Step) and isinstance(item.operation, Finish) for item in items]
        assert ends == [False, operations[-1] is done]


def test_a_file_that_begins_with_done_ends_nothing() -> None:
    """Only a message does."""
    make = {"type": "createFile", "path": "a", "content": "DONE: x"}
    assert not isinstance(said(message(make)), Finish)


@each_row(
    ("more", "header"),
    [
        ({}, None),
        ({"other": 1}, None),
        ({"session": "a1b2c3d4", "sequence": 2}, Header("a1b2c3d4", 2)),
        ({"session": "a1b2c3d4"}, Header("a1b2c3d4", None)),
        ({"sequence": 0}, Header(None, 0)),
        ({"session": 7, "sequence": "2"}, Header(None, None)),
        ({"session": None, "sequence": None}, Header(None, None)),
        ({"sequence": -1}, Header(None, None)),
        ({"sequence": 2.5}, Header(None, None)),
        ({"sequence": 10**9}, Header(None, None)),
    ],
)
def test_the_message_says_which_request_it_answers(more: dict[str, object], header: Header | None) -> None:
    """The guide asks for `session` and `sequence`; unknown fields are ignored (001 is additive)."""
    assert read(message(READ, **more)).header == header


def test_true_is_no_sequence() -> None:
    """JSON's true is no number, though Python's is."""
    assert read(message(READ, sequence=True)).header == Header(None, None)


@each_row("text", ["", "No.", "Shall I?", "See `a.py`.", 'a.py and "b".'])
def test_what_to_write_instead_is_a_message(text: str) -> None:
    """No message at all: the model is shown one example."""
    found = reply.items_of_words(text, is_json=True)[-1]
    assert isinstance(found, Problem)
    assert "The answer has no operations message" in found.reason
    assert validate_operations_message(json.loads(found.detail)).success


@given(st.text() | st.text(st.sampled_from('{}[]"`~\n ,:aoperations1.0')))
def test_reading_raises_nothing(text: str) -> None:
    """Reading never raises, nor does it on what looks like a message."""
    for source in (text, f'{{"operations"{text}', f'```\n{{"operations": [{text}'):
        found = read_reply(source)
        assert found is None or all(isinstance(item, Step | Problem) for item in found.items)


# --- the guide -------------------------------------------------------------------------------------


def _json_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"type"')]


def test_each_example_in_the_guide_is_valid() -> None:
    """Every example in PROTOCOL is parsed by a test."""
    (fence,) = re.findall(r"```json\n(.*?)\n```", json_guide.GUIDE, re.DOTALL)
    validated = validate_operations_message(json.loads(fence))
    assert validated.success, validated.error
    assert read(f"```json\n{fence}\n```").header == Header("a1b2c3d4", 2)
    examples = _json_lines(json_guide.GUIDE)
    assert [example["type"] for example in examples] != []
    for example in examples:
        one = validate_operations_message({"protocolVersion": "1.0", "operations": [example]})
        assert one.success, one.error


def test_the_guide_names_every_operation_and_field() -> None:
    """PROTOCOL is the operation definitions in words: what is not in it no model can use."""
    guide = json_guide.GUIDE
    forms = get_args(Operation)
    named = re.findall(r"^### (\w+)$", guide, re.MULTILINE)
    assert sorted(named) == sorted(form.model_fields["type"].default for form in forms)
    for form in forms:
        for name in form.model_fields.keys() - {"id"}:
            assert name in guide, (form, name)
    for name in ("oldContent", "newContent", "base64", "DONE:", "session", "sequence"):
        assert name in guide


def test_the_guide_is_the_same_text_in_every_request() -> None:
    """Design, the outbox: PROTOCOL is the same text in every outbox of one protocol version."""
    for session in (session_of(), after(MessageShown("x"))):
        assert f"=== PROTOCOL ===\n{json_guide.GUIDE}\n" in render(session)


# --- the request -----------------------------------------------------------------------------------


def render(session: Session, characters: int = 200_000) -> str:
    budget = Settings(context_chars=characters, list_entries=2_000)
    return outbox.render(session, context_of(), budget, json_guide.dialect())


def render_short(session: Session) -> str:
    budget = Settings(context_chars=200_000, list_entries=100)
    return outbox.render_short(session, context_of(), budget, json_guide.dialect(), None)


def after(*events: Event, notes: tuple[str, ...] = ()) -> Session:
    return session_of(*turn(*events, notes=notes))


def told(request: str) -> tuple[dict[str, Any], str]:
    """Return the events message of a request, all of it valid, and what is noted below it."""
    _, _, rest = request.partition("## Previous Command Results\n")
    found, end = json.JSONDecoder().raw_decode(rest)
    assert isinstance(found, dict)
    for event in found["events"]:
        validated = validate_event(event)
        assert validated.success, validated.error
    return found, rest[end:].partition("\n\n")[0].strip()


def test_the_task_is_in_a_request_once_and_in_a_short_one_only_named() -> None:
    """The events have it, so PROMPT leads there; a chat that has seen the requests has read it."""
    task = "Create a calculator\nthat adds and subtracts"
    for session in (session_of(task=task), replace(after(), task=task)):
        text = render(session)
        assert text.count("that adds and subtracts") == 1
    assert "it is the first event above" in render(session_of(task=task))
    short = render_short(replace(after(), task=task))
    assert "that adds and subtracts" not in short
    assert "Task: Create a calculator" in short


def test_a_command_is_not_echoed() -> None:
    """The model wrote it: its beginning tells which one it was."""
    command = f"python3 - <<'E'\n{'print(1)' * 500}\nE"
    found, _ = told(render(after(CommandRan(command, 0, "", 1.0, stdout="1", stderr=""))))
    assert found["events"][-1]["command"] == "python3 - <<'E' … (+2 lines)"


def test_the_task_is_the_first_event() -> None:
    """Design: the events message in CONTEXT, the task being its first userMessage."""
    found, notes = told(render(session_of()))
    assert found == {
        "protocolVersion": "1.0",
        "runId": f"{SESSION_ID}-1",
        "status": "completed",
        "events": [{"type": "userMessage", "timestamp": CREATED_AT, "content": "Create a calculator"}],
    }
    assert notes == ""


def test_a_task_that_is_no_text_can_be_said() -> None:
    """A task from the command line may hold bytes that are no UTF-8."""
    session = session_of(task="a\udcff")
    found, _ = told(
        outbox.render(
            replace(session, task="a\udcff"),
            context_of(),
            Settings(context_chars=200_000, list_entries=9),
            json_guide.dialect(),
        )
    )
    assert found["events"][0]["content"] == "a?"


def test_what_came_of_the_turn_are_its_events() -> None:
    """Specification 001: one event each, in order; notes of the answer stand below."""
    events = (
        FileCreated("a", 1, replaced=False),
        Refused(Kind.MESSAGE, "no"),
        FileFetched("b", "é", "utf-8", 2),
    )
    found, notes = told(render(after(*events, notes=("read from UTF-16",))))
    kinds = [event["type"] for event in found["events"]]
    assert kinds == ["userMessage", "createFile", "error", "readFile"]
    assert [event.get("operationId") for event in found["events"][1:]] == ["op-1", "op-2", "op-3"]
    assert notes == "Note: read from UTF-16"


def test_the_request_says_how_to_go_on_in_this_protocol() -> None:
    """The prompt asks for JSON with the two values of HEADER, and names no tag block."""
    request = render(after(MessageShown("x")))
    prompt = request.partition("=== PROMPT ===\n")[2]
    assert f'"session": "{SESSION_ID}", "sequence": 2' in prompt
    assert "begins with DONE:" in prompt
    assert "[" not in prompt


_HUGE = "".join(f'line {number} "quoted" \\ é\n' for number in range(20_000))


@each_row("characters", [20_000, 60_000, 200_000])
@each_row(
    "event",
    [
        FileFetched("a", _HUGE, "utf-8", len(_HUGE)),
        FileFetched("a", "\x01" * 400_000, "utf-8", 400_000),
        CommandRan("x", 0, "", 1, stdout=_HUGE, stderr=_HUGE),
        Refused(Kind.CREATE_FILE, "no", _HUGE, "a"),
    ],
    ids=["file", "controls", "command", "detail"],
)
def test_what_does_not_fit_is_cut_and_said(event: Event, characters: int) -> None:
    """Design, the outbox: the budget holds for the whole; what does not fit is cut, with how to ask."""
    request = render(after(event, MessageShown("x")), characters)
    assert len(request) <= characters
    found, notes = told(request)
    assert len(found["events"]) == 3
    assert "characters left out …" in json.dumps(found, ensure_ascii=False)
    assert "was cut to fit here" in notes
    assert "sed -n" in notes


def test_a_cut_takes_no_more_than_it_must() -> None:
    """What hurts least: at least a quarter of the room for results is used."""
    request = render(after(FileFetched("a", "x" * 500_000, "utf-8", 500_000)), 100_000)
    assert len(request) > 25_000


def test_what_fits_is_whole() -> None:
    """Nothing is cut without need."""
    content = "".join(f"{number}\n" for number in range(10_000))
    found, notes = told(render(after(FileFetched("a", content, "utf-8", len(content)))))
    assert found["events"][1]["content"] == content
    assert notes == ""


@pytest.mark.parametrize("room", [30_000, 2_000_000])
def test_too_many_events_are_left_out_and_counted(room: int) -> None:
    """The first ones stay, and the last; how many are missing is said."""
    events = tuple(FileCreated(f"file-{n}", 1, replaced=False) for n in range(2_000))
    request = render(after(*events), room)
    assert len(request) <= min(room, 60_000)
    found, notes = told(request)
    paths = [event.get("path") for event in found["events"][1:]]
    assert (paths[0], paths[-1]) == ("file-0", "file-1999")
    missing = 2_000 - len(paths)
    assert f"{missing} events did not fit here; send fewer operations in one answer" in notes


_LONG = st.sampled_from(["", "x", "é\n", '"\\', "\x00"]).flatmap(
    lambda text: st.integers(0, 3_000).map(lambda times: text * times)
)
_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(FileFetched, st.just("a"), _LONG, st.just("utf-8"), st.integers(0)),
    st.builds(CommandRan, _LONG, st.just(0), st.just(""), st.just(1.0), stdout=_LONG, stderr=_LONG),
    st.builds(Refused, st.just("createFile"), _LONG, _LONG, st.just("a")),
    st.builds(Denied, st.just("shell"), _LONG, st.just(()), st.just("no"), st.just("do not")),
    st.builds(FileRequested, st.just("a"), st.just(("a",))),
    st.builds(MessageShown, _LONG),
)

# The head of the events message, the notes and the task, with what each of the last few events says.
SMALLEST_ROOM = 4_000


@given(st.lists(_EVENTS, max_size=30), st.integers(SMALLEST_ROOM, 60_000))
def test_any_events_fit_any_room(events: list[Event], room: int) -> None:
    """The events part is valid JSON within its room, whatever happened; the task and the last stay."""
    session = after(*events)
    text = json_guide.dialect().results(session, room, False)
    found, _ = told(text)
    assert len(text) <= room + 1_000, "the head and the notes"
    assert found["events"][0]["type"] == "userMessage"
    if events:
        assert found["events"][-1]["operationId"] == f"op-{len(events)}"
