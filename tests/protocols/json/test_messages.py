"""Operations and events as JSON: specification 001 with its schema, and Design, operations and events."""

import json
import math
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from codingagent.model.operations import AT_ONCE, Kind
from codingagent.protocols.json.messages import (
    SIZE_LIMIT_BYTES,
    MessageError,
    OperationValidationError,
    Validated,
    items_of,
    parse_operation,
    read_answer,
    read_operations_message,
    validate_approval,
    validate_event,
    validate_events_message,
    validate_operation,
    validate_operations_message,
)
from codingagent.protocols.json.wire import (
    TYPES,
    ApprovalDetails,
    ApprovalRequiredEvent,
    CreateFileOperation,
    EditFileOperation,
    ErrorEvent,
    EventsMessage,
    FileEdit,
    MessageEvent,
    MessageOperation,
    OperationsMessage,
    ReadFileOperation,
    ShellEvent,
    ShellOperation,
    schema_of,
    to_json,
    to_wire,
)
from codingagent.protocols.tags.reply import Problem, Step
from tests import golden
from tests.rows import each_row

DATA = Path(__file__).parent
SPECIFIED = json.loads((DATA / "specification_001.schema.json").read_text("utf-8"))
EXAMPLES = json.loads((DATA / "examples.json").read_text("utf-8"))

OPERATIONS_SCHEMA = schema_of(OperationsMessage)
EVENTS_SCHEMA = schema_of(EventsMessage)

NOON = "2025-01-15T12:00:00Z"
MEGABYTE = 2**20

VALIDATORS: dict[str, Callable[[object], Validated[Any]]] = {
    "operation": validate_operation,
    "operations message": validate_operations_message,
    "event": validate_event,
    "events message": validate_events_message,
    "approval": validate_approval,
}


def message(*operations: object) -> dict[str, Any]:
    return {"protocolVersion": "1.0", "operations": list(operations)}


def fault(validated: Validated[Any]) -> str:
    assert not validated.success
    assert validated.data is None
    line = str(validated.error)
    assert line == f"{validated.error.where} {validated.error.reason}"
    assert len(line.splitlines()) == 1
    assert len(line) < 400
    return line


def refusal(source: object) -> str:
    with pytest.raises(MessageError) as caught:
        read_operations_message(source)
    assert str(caught.value) == f"{caught.value.where} {caught.value.reason}"
    return str(caught.value)


def whole(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return an example with what the document left out of it for shortness."""
    match kind:
        case "event":
            path = {"path": "a.ts"} if value["type"] == "createFile" else {}
            return {"timestamp": NOON, **path, **value}
        case "events message":
            events = [whole("event", event) for event in value["events"]]
            rest = {"protocolVersion": "1.0", "runId": "run_1", "status": "completed"}
            return {**rest, **value, "events": events}
        case "operations message":
            return {"protocolVersion": "1.0", "operations": [], **value}
        case _:
            return value


# --- the three documents ---------------------------------------------------------------------------


@each_row("case", EXAMPLES, ids=[f"{e['document']}-{n}-{e['kind']}" for n, e in enumerate(EXAMPLES)])
def test_every_example_of_the_documents_is_valid(case: dict[str, Any]) -> None:
    """An example that is whole is valid; one that is an excerpt is, once what it lacks is added."""
    kind, example = case["kind"], case["example"]
    complete = whole(kind, example)
    validated = VALIDATORS[kind](complete)
    assert validated.success, validated.error
    if complete != example:
        assert fault(VALIDATORS[kind](example)).endswith(" is missing")


def test_what_an_example_says_is_what_is_read() -> None:
    """Reading gives the values of the wire, under Python's names; absent is None."""
    assert parse_operation(
        {"type": "shell", "id": "s", "command": "ls", "timeout": 60000, "env": {"A": "b"}}
    ) == ShellOperation(id="s", command="ls", timeout=60000, env={"A": "b"})
    edit = {"oldContent": "a", "newContent": "b"}
    assert parse_operation({"type": "editFile", "path": "a", "edits": [edit]}) == EditFileOperation(
        path="a", edits=(FileEdit(old_content="a", new_content="b"),)
    )
    assert parse_operation({"type": "readFile", "path": "a"}) == ReadFileOperation(path="a")


# --- agreement with specification 001's own schema -------------------------------------------------

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_PATHS = st.lists(
    st.sampled_from(["a", "b.py", ".", "..", "/", "\0", "é", "😀", " ", "\n", "\\", "C:", "a" * 250]),
    max_size=4,
).map("".join)
_KEYS = st.sampled_from(["x", "content", "path", "old_content", "ID", "", "timeout", "command"])


def from_schema(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that a schema accepts, as far as the keywords of the two schemas go.

    Paths among them may break the rules that the text has beyond the schema.
    """
    if "$ref" in schema:
        place = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            place = place[name]
        return st.deferred(lambda: from_schema(place, root))
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return st.one_of([from_schema(each, root) for each in schema[choice]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object":
            return _objects(schema, root)
        case "array":
            return st.lists(from_schema(schema["items"], root), max_size=4)
        case "string":
            return _texts(schema)
        case "integer":
            low, high = schema.get("minimum", -(2**70)), schema.get("maximum", 2**70)
            numbers = st.integers(low, high) | st.sampled_from([low, high])
            return numbers | st.integers(max(low, -(2**50)), min(high, 2**50)).map(float)
        case "number":
            return st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return _JSON


def _objects(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    known = schema.get("properties", {})
    fields = {name: from_schema(inner, root) for name, inner in known.items()}
    required = {name: fields.pop(name) for name in schema.get("required", [])}
    others = schema.get("additionalProperties", True)
    values = _JSON if others is True else from_schema(others, root)
    unknown = st.dictionaries((_KEYS | st.text()).filter(lambda k: k not in known), values, max_size=2)
    named = st.fixed_dictionaries(required, optional=fields)
    return st.tuples(unknown, named).map(lambda both: {**both[0], **both[1]})


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "2}T[0-9]" in schema.get("pattern", ""):
        return st.sampled_from([NOON, "2025-01-15T12:00:00.123456+05:30"])
    limit = schema.get("maxLength")
    if limit is None:
        return st.text(max_size=20)
    full = st.sampled_from(["a" * limit, "😀" * limit])
    # Of the limited texts only paths are so short.
    return st.text(max_size=20) | full | (_PATHS.map(lambda p: p[:limit]) if limit == 255 else full)


def _places(value: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*way, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*way, index))


@st.composite
def damaged(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """Return a value with one to three places of it taken out, replaced or made longer."""
    value = json.loads(json.dumps(draw(values)))
    for _ in range(draw(st.integers(1, 3))):
        way = draw(st.sampled_from(list(_places(value))))
        if not way:
            continue
        *outer, last = way
        place = value
        for step in outer:
            place = place[step]
        old = place[last]
        longer = [old + "a", old + "😀", f"{old}..", f"/{old}"] if isinstance(old, str) else []
        numbers = [999, 1000, 1000.5, 3_600_000, 3_600_001, 1e300, "1000", True, 1, 0, "true"]
        replaced = _JSON | st.sampled_from([None, [], {}, "", "1.0", 1.0, *longer, *numbers])
        if draw(st.integers(0, 3)) == 0:
            del place[last]
        else:
            place[last] = draw(replaced)
    return value


_SPECIFIED = jsonschema.Draft7Validator(SPECIFIED)
_SPECIFIED_OPERATION = jsonschema.Draft7Validator(
    {"$ref": "#/definitions/Operation", "definitions": SPECIFIED["definitions"]}
)
_OURS = jsonschema.Draft202012Validator(OPERATIONS_SCHEMA)
_OUR_EVENTS = jsonschema.Draft202012Validator(EVENTS_SCHEMA)

_MESSAGES = from_schema(SPECIFIED, SPECIFIED)
_EVENTS_MESSAGES = from_schema(EVENTS_SCHEMA, EVENTS_SCHEMA)


def is_valid_path(path: str) -> bool:
    """Specification 001, path validation, in its own order."""
    return not path.startswith("/") and ".." not in path and "\0" not in path and len(path) <= 255


def keeps_the_path_rules(operation: dict[str, Any]) -> bool:
    names = {"message": (), "shell": ("cwd",)}.get(operation["type"], ("path",))
    return all(is_valid_path(operation[name]) for name in names if name in operation)


def check_agreement(value: Any) -> None:
    """Checks that all ways to validate say of a message what 001's schema and path rules say."""
    specified = _SPECIFIED.is_valid(value)
    kept = specified and all(map(keeps_the_path_rules, value["operations"]))
    validated = validate_operations_message(value)
    assert validated.success == kept, validated.error
    assert _OURS.is_valid(value) == kept
    if specified and not kept:
        assert fault(validated).partition(" ")[0].rpartition(".")[2] in {"path", "cwd"}
    for source in (value, json.dumps(value), json.dumps(value, ensure_ascii=False).encode()):
        try:
            items = read_operations_message(source)
        except MessageError:
            assert not kept
            continue
        good = [_SPECIFIED_OPERATION.is_valid(o) and keeps_the_path_rules(o) for o in value["operations"]]
        assert [not isinstance(item, Problem) for item in items] == good


@given(_MESSAGES)
def test_what_the_schema_accepts_is_accepted(value: Any) -> None:
    """Every message that 001's schema accepts is accepted, unless a path breaks the text's rules."""
    assert _SPECIFIED.is_valid(value)
    check_agreement(value)


@given(damaged(_MESSAGES))
def test_what_the_schema_rejects_is_rejected(value: Any) -> None:
    """Every message that 001's schema rejects is rejected, and no other but for its paths."""
    check_agreement(value)


@given(_JSON | st.fixed_dictionaries({}, optional={"protocolVersion": _JSON, "operations": _JSON}))
def test_any_json_is_judged_as_the_schema_judges_it(value: Any) -> None:
    """No value of JSON makes the two disagree, or raises anything but a MessageError."""
    check_agreement(value)


@given(_EVENTS_MESSAGES | damaged(_EVENTS_MESSAGES))
def test_events_are_validated_as_the_printed_schema_says(value: Any) -> None:
    """`schema events` prints what validate_events_message accepts."""
    validated = validate_events_message(value)
    assert validated.success == _OUR_EVENTS.is_valid(value), validated.error
    if not validated.success:
        assert fault(validated)


@given(_MESSAGES, _EVENTS_MESSAGES)
def test_what_was_read_is_written_the_same(operations: Any, events: Any) -> None:
    """What is valid can be written, and read again as the same; absent fields are left out."""
    for value, validate in ((operations, validate_operations_message), (events, validate_events_message)):
        validated = validate(value)
        if validated.success:
            assert validate(to_wire(validated.data)) == validated
            assert json.loads(to_json(validated.data)) == to_wire(validated.data)


@pytest.mark.parametrize("schema", [OPERATIONS_SCHEMA, EVENTS_SCHEMA])
def test_the_schemas_are_draft_2020_12(schema: dict[str, Any]) -> None:
    """`schema operations` and `schema events` print JSON Schema, with no word of another language."""
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "discriminator" not in json.dumps(schema)
    assert '"default": null' not in json.dumps(schema)


# --- the table -------------------------------------------------------------------------------------


def show(case: tuple[str, Any]) -> str:
    """Return what a value is read as, or the fault that is told of it."""
    kind, value = case
    try:
        match kind:
            case "read":
                return f"{len(read_operations_message(value))} operations"
            case "answer":
                sources = [value] if isinstance(value, str | bytes) else [value, json.dumps(value)]
                first, *others = map(read_answer, sources)
                assert others in ([], [first])
                return repr(first)
            case "core":
                (item,) = items_of(read_operations_message(message(value)))
                if isinstance(item, Step):
                    return repr(item.operation)
                # What is wrong with base64, each Python says in other words.
                return f"{item.kind}, {item.subject!r}: {item.reason.partition(' base64: ')[0]}"
            case _:
                validated = VALIDATORS[kind](value)
                return to_json(validated.data) if validated.success else fault(validated)
    except MessageError as error:
        return str(error)


TABLES: dict[str, golden.Show] = {"messages.txt": show}


@each_row(("case", "outcome"), golden.cases(__file__, "messages.txt"))
def test_what_a_value_is_read_as(case: tuple[str, Any], outcome: str) -> None:
    """Specification 001, validation rules and graceful degradation, and Design, operations and events."""
    assert show(case) == outcome


# --- rules and their words -------------------------------------------------------------------------

_TYPES = f"must be one of {', '.join(map(repr, dict.fromkeys(TYPES.values())))}"


@each_row(
    ("operation", "line"),
    [
        (ErrorEvent(timestamp=NOON, category="system", message=""), f"type {_TYPES}"),
        ({"type": "message", "content": "a" * 100_001}, "content must have at most 100000 characters"),
        ({"type": "shell", "command": "a" * 4097}, "command must have at most 4096 characters"),
        ({"type": "shell", "command": "a", "timeout": math.nan}, "timeout must be a valid integer"),
        (
            {"type": "shell", "command": "a", "timeout": 10**5000},
            "timeout must be less than or equal to 3600000",
        ),
        (
            {"type": "shell", "command": "a", "env": dict.fromkeys(map(str, range(2000)), 1)},
            "env.0 must be a valid string",
        ),
    ],
)
def test_a_fault_says_where_and_what_is_allowed(operation: object, line: str) -> None:
    """Specification 001, validation rules. Nothing is turned from one type into another."""
    assert fault(validate_operation(operation)) == line
    with pytest.raises(OperationValidationError) as caught:
        parse_operation(operation)
    assert str(caught.value) == line
    assert f"{caught.value.where} {caught.value.reason}" == line
    in_message = fault(validate_operations_message(message({"type": "readFile", "path": "a"}, operation)))
    assert in_message.startswith("operations[1]")
    assert in_message.endswith(line.removeprefix("operation "))


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "message", "content": "😀" * 100_000},
        {"type": "shell", "command": "a" * 4096, "timeout": 1000, "env": {}, "cwd": ""},
    ],
)
def test_validation_applies_the_rules_of_001_and_no_others(operation: dict[str, Any]) -> None:
    """Design, operations and events: what else can't be done fails when executed."""
    validated = validate_operation(operation)
    assert validated.success
    assert validated.error is None
    assert parse_operation(operation) == validated.data
    # A value of ours is valid as it is.
    assert parse_operation(validated.data) is validated.data


def test_a_number_without_fraction_is_a_whole_number() -> None:
    """JSON Schema: 1000.0 is an integer; it is read as one."""
    read = parse_operation({"type": "shell", "command": "a", "timeout": 1e3})
    assert isinstance(read, ShellOperation)
    assert (read.timeout, type(read.timeout)) == (1000, int)


@each_row(
    ("content", "encoding", "fits"),
    [
        ("a" * (10 * MEGABYTE), "utf-8", True),
        ("a" * (10 * MEGABYTE + 1), "utf-8", False),
        ("é" * (5 * MEGABYTE), "utf-8", True),
        ("é" * (5 * MEGABYTE) + "a", "utf-8", False),
        ("AAAA" * (10 * MEGABYTE // 3) + "AA==", "base64", True),
        ("AAAA" * (10 * MEGABYTE // 3) + "AAA=", "base64", False),
        (("A" * 76 + "\r\n") * (10 * MEGABYTE // 57), "base64", True),
    ],
)
def test_a_file_is_limited_in_bytes(content: str, encoding: str, fits: bool) -> None:
    """Specification 001, validation rules: "Max 10MB for files": the bytes of the file, 10 times 2^20."""
    operation = {"type": "createFile", "path": "a", "content": content, "encoding": encoding}
    for obj in (operation, dict(reversed(operation.items()))):
        assert validate_operation(obj).success == fits


def test_values_are_frozen() -> None:
    """A value of the wire does not change once it was read, and a wrong one can't be made."""
    operation = MessageOperation(content="a")
    with pytest.raises(ValidationError):
        operation.content = "b"
    with pytest.raises(ValidationError):
        ShellOperation(command="a", timeout=1)
    assert CreateFileOperation(path="a", content="").encoding == "utf-8"


# --- events and approvals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"type": "editFile", "timestamp": NOON, "path": "a", "success": True, "editsApplied": math.nan},
            "editsApplied must be a valid integer",
        )
    ],
)
def test_a_faulty_event_says_where_and_what_is_allowed(event: object, line: str) -> None:
    """Specification 001, event types."""
    assert fault(validate_event(event)) == line
    envelope = {"protocolVersion": "1.0", "runId": "r", "status": "completed", "events": [event]}
    in_message = fault(validate_events_message(envelope))
    assert in_message.startswith("events[0]")
    assert in_message.endswith(line.removeprefix("event "))


@each_row("category", ["validation", "policy", "execution", "timeout", "system"])
def test_an_error_event_has_one_of_five_categories(category: Any) -> None:
    """Specification 001, error handling. Its details are kept as they are, null among them."""
    event = ErrorEvent(timestamp=NOON, category=category, message="m", details={"a": [None]})
    assert to_json(event) == (
        f'{{"type":"error","timestamp":"{NOON}","category":"{category}","message":"m",'
        '"details":{"a":[null]}}'
    )
    assert validate_event(to_wire(event)).data == event


def test_absent_fields_are_left_out_and_null_ids_are_read_as_absent() -> None:
    """Design: absent optional fields are left out, never null. An example of 001 has a null operationId."""
    event = MessageEvent(timestamp=NOON, success=True)
    assert to_wire(event) == {"type": "message", "timestamp": NOON, "success": True}
    assert validate_event({**to_wire(event), "operationId": None}).data == event


def test_an_events_message_is_written_under_the_names_of_the_wire() -> None:
    """Specification 001, message format and event types."""
    made = EventsMessage(
        protocol_version="1.0",
        run_id="run_1",
        status="awaiting_approval",
        events=(
            ShellEvent(
                operation_id="s",
                timestamp=NOON,
                command="a",
                success=False,
                exit_code=124,
                duration_ms=30000,
                timed_out=True,
            ),
            ApprovalRequiredEvent(
                timestamp=NOON,
                operation_id="op-2",
                operation_type="shell",
                reason="r",
                details=ApprovalDetails(command="rm -rf a"),
            ),
        ),
    )
    assert to_wire(made) == {
        "protocolVersion": "1.0",
        "runId": "run_1",
        "status": "awaiting_approval",
        "events": [
            {
                "type": "shell",
                "operationId": "s",
                "timestamp": NOON,
                "command": "a",
                "success": False,
                "exitCode": 124,
                "durationMs": 30000,
                "timedOut": True,
            },
            {
                "type": "approvalRequired",
                "timestamp": NOON,
                "operationId": "op-2",
                "operationType": "shell",
                "reason": "r",
                "details": {"command": "rm -rf a"},
            },
        ],
    }


def test_faults_without_end_are_not_gathered() -> None:
    """Of millions of faulty variables one is told: to gather them all would cost gigabytes."""
    many = {f"{n}": 1 for n in range(200_000)}
    tracemalloc.start()
    try:
        told = fault(validate_operation({"type": "shell", "command": "a", "env": many}))
        assert (told, tracemalloc.get_traced_memory()[1] < 1_000_000) == (
            "env.0 must be a valid string",
            True,
        )
    finally:
        tracemalloc.stop()
    for good in ({f"{n}": "a" for n in range(5000)}, {}):
        assert validate_operation({"type": "shell", "command": "a", "env": good}).success


def test_an_absent_field_is_none_in_code_and_never_null_in_json() -> None:
    """Design: absent optional fields are left out, never null."""
    made = ShellEvent(timestamp=NOON, command="a", success=True)
    assert made.stdout is None
    assert to_wire(made) == {"type": "shell", "timestamp": NOON, "command": "a", "success": True}
    assert not validate_event({**to_wire(made), "stdout": None}).success
    assert refusal("null") == "message must be an object"


# --- reading ---------------------------------------------------------------------------------------

_GOOD = '{"type":"shell","command":"ls"}'
_LS = ShellOperation(command="ls")


@each_row(
    ("bad", "where", "reason"),
    [
        ("5", "", "must be an object"),
        ('{"type":"fly"}', ".type", f"{_TYPES}"),
        (
            '{"type":"shell","command":"\\ud800"}',
            ".command",
            "must be a valid string, unable to parse raw data as a unicode string",
        ),
        ('{"type":"shell","command":"a","timeout":NaN}', ".timeout", "must be a valid integer"),
        ('{"type":"shell","command":"a","timeout":-Infinity}', ".timeout", "must be a valid integer"),
        (f'{{"type":"shell","command":"a","timeout":{"9" * 5000}}}', ".timeout", "must be a valid integer"),
    ],
)
def test_a_malformed_operation_does_not_spoil_the_rest(bad: str, where: str, reason: str) -> None:
    """Specification 001, graceful degradation: skip the operation, continue."""
    text = f'{{"protocolVersion":"1.0","operations":[{_GOOD},{bad},{_GOOD}]}}'
    value = json.loads(text, parse_int=lambda digits: math.inf if len(digits) > 4300 else int(digits))
    where = f"operations[1]{where}"
    malformed = Problem(Kind.MALFORMED, f"{where} {reason}", 2, id="op-2", subject=where)
    for source in (text, text.encode(), f"\ufeff{text}", f"\ufeff{text}".encode(), value):
        assert read_operations_message(source) == (_LS, malformed, _LS)


@each_row(
    "unknown", ["NaN", "1e999", "9" * 5000, '"\\udc00"', "[" * 150 + "]" * 150, '{"a":1,"a":2}', "null"]
)
def test_unknown_fields_are_ignored_whatever_they_hold(unknown: str) -> None:
    """Design: unknown fields are ignored, in a message and in an operation."""
    operation = f'{{"x":{unknown},"type":"shell","command":"ls"}}'
    text = f'{{"y":{unknown},"protocolVersion":"1.0","operations":[{operation}]}}'
    assert read_operations_message(text) == (_LS,)
    assert read_operations_message(text.encode()) == (_LS,)


def test_of_a_field_named_twice_the_last_counts() -> None:
    """JSON leaves it open; every common reader takes the last, and so do all of ours."""
    twice = '{"type":"message","type":"shell","command":5,"command":"ls"}'
    for other in ("", ",5", ',"\\ud800"'):
        text = f'{{"protocolVersion":"1.0","operations":[{twice}{other}]}}'
        assert read_operations_message(text)[0] == _LS


@pytest.mark.parametrize(
    ("source", "line"),
    [("[" * 100_000, "message is nested too deep to be read; a message needs five levels")],
)
def test_only_what_is_no_operations_message_is_refused_whole(source: object, line: str) -> None:
    """Design: only a message that is not an operations message at all is refused whole."""
    assert refusal(source) == line


def test_a_message_over_the_size_limit_is_not_read() -> None:
    """What is too large is refused before anything looks at it."""
    text = json.dumps(message()).ljust(SIZE_LIMIT_BYTES)
    assert read_operations_message(text) == ()
    said = f"has {SIZE_LIMIT_BYTES + 1} bytes; at most {SIZE_LIMIT_BYTES} are read: send less at once"
    for source in (f"{text} ", f"{text} ".encode()):
        assert refusal(source) == f"message {said}"


@pytest.mark.parametrize("one", ["5", '{"type":"shell","command":"true"}', '{"type":"shell"}'])
def test_a_message_of_too_many_operations_is_refused_whole(one: str) -> None:
    """Safety: what would take minutes to answer one by one is answered in one line, well-formed or not."""
    head = '{"protocolVersion":"1.0","operations":['
    text = f"{head}{','.join([one] * (AT_ONCE + 1))}]}}"
    said = "operations hold 10,001; at most 10,000 are executed at once: send several messages"
    assert refusal(text) == said
    assert refusal(json.loads(text)) == said
    whole = f"{head}{','.join([one] * AT_ONCE)}]}}"
    assert len(read_operations_message(whole)) == AT_ONCE


def test_ids_are_given_by_place_and_kept_as_they_are() -> None:
    """Design: without an id, op-1, op-2, by place. 001 asks for no unique ids: two may be the same."""
    named = {"type": "message", "content": "a", "id": "x"}
    bare = {"type": "message", "content": "a"}
    odd = [{"id": "own"}, {"id": 5}, {"id": "\ud800"}, 7]
    received = read_operations_message(message(named, bare, named, *odd))
    assert tuple(item.id for item in items_of(received)) == ("x", "op-2", "x", "own", "op-5", "op-6", "op-7")


def test_a_message_made_in_python_is_read_as_it_is() -> None:
    """Operations may be values of ours or dicts, in a list or a tuple."""
    made = OperationsMessage(protocol_version="1.0", operations=(_LS,))
    assert validate_operations_message(made).data is made
    mixed = {"protocolVersion": "1.0", "operations": (_LS, {"type": "shell", "command": "ls"})}
    assert read_operations_message(mixed) == (_LS, _LS)


@pytest.mark.parametrize("bad", ["", ",7"])
def test_thousands_of_operations_are_read(bad: str) -> None:
    """A message may be long; that one operation of it is malformed does not change that."""
    text = f'{{"protocolVersion":"1.0","operations":[{",".join([_GOOD] * 9_999)}{bad}]}}'
    received = read_operations_message(text)
    assert received[:9_999] == (_LS,) * 9_999
    assert len(received) == 9_999 + bool(bad)


@given(
    st.text(st.characters())
    | st.binary()
    | st.lists(
        st.sampled_from(
            [
                '{"protocolVersion":"1.0","operations":[',
                "[",
                "]",
                "{",
                "}",
                ",",
                ":",
                '"',
                _GOOD,
                "NaN",
                "\\ud800",
                '"type":',
                "1e999",
                "\ufeff",
                "\ud800",
                "null",
            ]
        )
    ).map("".join)
)
def test_reading_raises_nothing_but_its_own_error(source: str | bytes) -> None:
    """Whatever comes is a message, or one line that says why not."""
    try:
        read_operations_message(source)
    except MessageError as error:
        assert len(str(error).splitlines()) == 1
