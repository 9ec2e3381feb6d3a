"""This wire's operations in the core's words, and its events back: specification 001, design section 7."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model import events as core
from codingagent.model import operations, results
from codingagent.model.approval import Question
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import Kind
from codingagent.protocols.json.messages import (
    MessageError,
    approval_event,
    event_of,
    items_of,
    read_answer,
    read_operations_message,
    validate_event,
)
from codingagent.protocols.json.wire import TYPES, EventsMessage, schema_of, to_wire
from codingagent.protocols.tags.reply import Problem, Step
from tests import golden
from tests.rows import each_row

NOON = "2025-01-15T12:00:00Z"
_SCHEMA = jsonschema.Draft202012Validator(schema_of(EventsMessage))


def items(*values: object) -> tuple[Step | Problem, ...]:
    return items_of(read_operations_message({"protocolVersion": "1.0", "operations": list(values)}))


def operation(value: dict[str, Any]) -> operations.Operation:
    (item,) = items(value)
    assert isinstance(item, Step), item
    assert TYPES[item.kind] == value["type"]
    return item.operation


def checked(event: Any) -> dict[str, Any]:
    """Return an event as it goes out, which both validators accept."""
    said: dict[str, Any] = json.loads(json.dumps(to_wire(event)))
    validated = validate_event(said)
    assert validated.success, validated.error
    message = {"protocolVersion": "1.0", "runId": "r", "status": "completed", "events": [said]}
    _SCHEMA.validate(message)
    assert None not in said.values(), "an absent field is left out, never null"
    return said


def wire(event: core.Event, name: str = "") -> dict[str, Any]:
    said = checked(event_of(OperationEnded(0, event, NOON, name)))
    assert said.pop("timestamp") == NOON
    assert said.pop("operationId") == (name or "op-1")
    return said


# --- operations ------------------------------------------------------------------------------------


def test_base64_may_have_line_ends_and_blanks() -> None:
    """What encoders print is broken into lines (RFC 2045)."""
    value = {"type": "createFile", "path": "a", "encoding": "base64", "content": " AP\r\n8K\t\n"}
    made = operation(value)
    assert isinstance(made, operations.CreateFile)
    assert made.content == b"\x00\xff\n"


# --- events ----------------------------------------------------------------------------------------


def read_event(source: str) -> core.Event:
    event: core.Event = eval(source, {**vars(core), "Kind": Kind})
    return event


def show(event: core.Event) -> str:
    """Return what the model is told of an event, and what a program is."""
    said = wire(event)
    assert wire(event, "mine") == said
    lines = results.lines_of(event).replace("\n", " ⏎ ")
    return f"{lines} · {json.dumps(said, ensure_ascii=False)}"


READ = read_event
TABLES: dict[str, golden.Show] = {"events.txt": show}


@each_row(("event", "told"), golden.cases(__file__, "events.txt", READ))
def test_what_is_told_of_an_event(event: core.Event, told: str) -> None:
    """Specification 003, previous command results, and 001, event types; 000: a time limit is 124."""
    assert show(event) == told


def asked(kind: Kind, subject: str, *rules: str) -> ApprovalAsked:
    question = Question(kind, subject, rules, ("why", "and why"), "shown", "digest")
    return ApprovalAsked(4, question, NOON, "")


@pytest.mark.parametrize(("kind", "field"), [(Kind.RUN_COMMAND, "command"), (Kind.CREATE_FILE, "path")])
def test_what_waits_is_told_with_its_details(kind: Kind, field: str) -> None:
    """Specification 001, approvalRequired: the operation, why, and command or path with the policy."""
    said = checked(approval_event(asked(kind, "it", "rule 1", "rule 2")))
    type_ = "shell" if field == "command" else "createFile"
    because = "why; and why; it is run as: shown" if type_ == "shell" else "why; and why"
    assert said == {
        "type": "approvalRequired",
        "timestamp": NOON,
        "operationId": "op-5",
        "operationType": type_,
        "reason": because,
        "details": {field: "it", "policy": "rule 1, rule 2"},
    }


_HALVES = st.text(st.characters(), max_size=8) | st.just("a\udc80\ud800b")
_KINDS = st.sampled_from(Kind)
_EVENTS: st.SearchStrategy[core.Event] = st.one_of(
    st.builds(core.FileCreated, _HALVES, st.integers(0), st.booleans()),
    st.builds(core.FileEdited, _HALVES, st.just(()), st.text(), st.integers(0)),
    st.builds(core.FileDeleted, _HALVES),
    st.builds(core.FileRequested, _HALVES, st.just(())),
    st.builds(core.FileFetched, _HALVES, st.text(), st.sampled_from(["utf-8", "base64"]), st.integers(0)),
    st.builds(
        core.CommandRan,
        _HALVES,
        st.integers(-64, 255),
        st.text(),
        st.floats(0, 1e6),
        st.sampled_from(["itself", "time_limit", "output_limit", "process_limit", "memory_limit", "agent"]),
        stdout=st.none() | st.text(),
        stderr=st.none() | st.text(),
    ),
    st.builds(core.Interrupted, _KINDS, _HALVES, notes=st.just(("note",))),
    st.builds(core.MessageShown, st.text()),
    st.builds(core.Finished, st.text()),
    st.builds(core.Refused, _KINDS, _HALVES, _HALVES, _HALVES),
    st.builds(core.Denied, _KINDS, _HALVES, st.just(("rule",)), _HALVES, _HALVES),
)


@given(_EVENTS)
def test_whatever_happened_can_be_said(event: core.Event) -> None:
    """Every event produced is valid, also where a name on the disk is no text."""
    said = wire(event)
    assert said.get("success", False) == core.succeeded(event)
    if said.get("success"):
        assert "error" not in said


@given(_KINDS, _HALVES, _HALVES)
def test_whatever_waits_can_be_said(kind: Kind, subject: str, reason: str) -> None:
    """The question too."""
    question = Question(kind, subject, (subject,), (reason,), "", "")
    checked(approval_event(ApprovalAsked(0, question, NOON)))


# --- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "fault"), [("[" * 100_000, "message is nested too deep")])
def test_what_is_no_answer_approves_nothing(answer: object, fault: str) -> None:
    """An answer that is not clear is none."""
    with pytest.raises(MessageError) as caught:
        read_answer(answer)
    assert str(caught.value).startswith(fault)
