"""This wire's operations in the core's words, and its events back: specification 001, design section 7."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model import events as core
from codingagent.model import operations
from codingagent.model.approval import Question
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded
from codingagent.model.operations import Kind
from codingagent.model.results import NOT_RUN_AGAIN
from codingagent.protocols.json import TYPES
from codingagent.protocols.json.messages import (
    MessageError,
    approval_event,
    event_of,
    items_of,
    read_answer,
    read_operations_message,
    validate_event,
)
from codingagent.protocols.json.wire import EventsMessage, schema_of, to_wire
from codingagent.protocols.tags.reply import Problem, Step

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

_RAN = core.CommandRan("ls", 0, "both", 0.0126, stdout="out\n", stderr="err\n")
_SHELL = {
    "type": "shell",
    "command": "ls",
    "success": True,
    "exitCode": 0,
    "stdout": "out\n",
    "stderr": "err\n",
    "durationMs": 13,
}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (core.MessageShown("hi"), {"type": "message", "success": True}),
        (core.Finished("done"), {"type": "message", "success": True}),
        (
            core.FileCreated("a", 3, replaced=True),
            {"type": "createFile", "path": "a", "success": True, "bytesWritten": 3},
        ),
        (
            core.FileFetched("a", "é", "utf-8", 2),
            {
                "type": "readFile",
                "path": "a",
                "success": True,
                "content": "é",
                "encoding": "utf-8",
                "size": 2,
            },
        ),
        (
            core.FileRequested("*.py", ("a.py", "b.py")),
            {"type": "readFile", "path": "*.py", "success": True},
        ),
        (
            core.FileEdited("a", (), "excerpt", 2),
            {"type": "editFile", "path": "a", "success": True, "editsApplied": 2},
        ),
        (core.FileDeleted("a"), {"type": "deleteFile", "path": "a", "success": True}),
        (_RAN, _SHELL),
        (
            core.CommandRan("x", 0, "both\n", 1),
            {**_SHELL, "command": "x", "stdout": "both\n", "stderr": "", "durationMs": 1000},
        ),
        (
            core.Denied(Kind.RUN_COMMAND, "x", ("r",), "blocked", "leave it"),
            {
                "type": "policyDenied",
                "operationType": "shell",
                "reason": "blocked",
                "suggestion": "leave it",
            },
        ),
        (
            core.Denied(Kind.CREATE_FILE, "x", ("r",), "blocked"),
            {"type": "policyDenied", "operationType": "createFile", "reason": "blocked"},
        ),
        (
            core.Interrupted(Kind.RUN_COMMAND, "make"),
            {"type": "shell", "command": "make", "success": False, "error": NOT_RUN_AGAIN},
        ),
        (
            core.Interrupted(Kind.EDIT_FILE, "a", notes=("read it",)),
            {
                "type": "editFile",
                "path": "a",
                "success": False,
                "error": f"{NOT_RUN_AGAIN}; read it",
            },
        ),
    ],
)
def test_each_event_of_the_core_is_one_of_the_wire(event: core.Event, said: dict[str, Any]) -> None:
    """Specification 001, event types: one event of the operation's own type; absent fields left out."""
    assert wire(event) == said
    assert wire(event, "mine") == said


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (Kind.CREATE_FILE, "createFile"),
        (Kind.READ_FILE, "readFile"),
        (Kind.EDIT_FILE, "editFile"),
        (Kind.DELETE_FILE, "deleteFile"),
        (Kind.RUN_COMMAND, "shell"),
    ],
)
def test_what_was_refused_fails_under_its_own_type(kind: Kind, type_: str) -> None:
    """Whichever protocol asked: the failure has the operation's type, its subject and the reason."""
    field = "command" if type_ == "shell" else "path"
    failed = {"type": type_, field: "s", "success": False, "error": "no\nlines"}
    assert wire(core.Refused(kind, "no", "lines", "s")) == failed
    assert wire(core.Refused(kind, "no", "", "s")) == {**failed, "error": "no"}


@pytest.mark.parametrize(
    "kind", [Kind.MALFORMED, Kind.MESSAGE, Kind.DONE, Kind.ANSWER, Kind.MOVE_FILE]
)
def test_what_has_no_type_of_its_own_is_a_validation_error(kind: Kind) -> None:
    """Specification 001, error response: category validation is a malformed operation."""
    said = {"type": "error", "category": "validation", "message": "no"}
    assert wire(core.Refused(kind, "no")) == said


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (core.CommandRan("ls", 3, "", 0), {"exitCode": 3}),
        (core.CommandRan("ls", -9, "", 0), {"exitCode": 137}),
        (core.CommandRan("ls", -15, "", 0), {"exitCode": 143}),
        (
            core.CommandRan("ls", -9, "", 0, "time_limit", "1 s"),
            {"exitCode": 124, "timedOut": True},
        ),
        (core.CommandRan("ls", 0, "", 0, "time_limit", "1 s"), {"exitCode": 124, "timedOut": True}),
        (
            core.CommandRan("ls", -9, "", 0, "output_limit", "8 MiB"),
            {"exitCode": 137, "error": "ended after 8 MiB of output"},
        ),
        (
            core.CommandRan("ls", -9, "", 0, "process_limit", "1,000 processes"),
            {"exitCode": 137, "error": "ended, having started more than 1,000 processes at once"},
        ),
        (
            core.CommandRan("ls", -9, "", 0, "memory_limit", "512 MiB of memory"),
            {"exitCode": 137, "error": "ended, having taken more than 512 MiB of memory"},
        ),
        (
            core.CommandRan("ls", -9, "", 0, "agent"),
            {"exitCode": 137, "error": "ended: the program that asked for it is gone"},
        ),
    ],
)
def test_how_a_command_ended(event: core.CommandRan, changed: dict[str, Any]) -> None:
    """000, on timeout: exit code 124 and timedOut; a signal is 128 and its number, as shells say it."""
    said = {"type": "shell", "command": "ls", "success": False, "stdout": "", "stderr": ""}
    assert wire(event) == {**said, "durationMs": 0, **changed}


def asked(kind: Kind, subject: str, *rules: str) -> ApprovalAsked:
    question = Question(kind, subject, rules, ("why", "and why"), "shown", "digest")
    return ApprovalAsked(4, question, NOON, "")


@pytest.mark.parametrize(
    ("kind", "field"),
    [(Kind.RUN_COMMAND, "command"), (Kind.CREATE_FILE, "path")],
)
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
    st.builds(
        core.FileFetched, _HALVES, st.text(), st.sampled_from(["utf-8", "base64"]), st.integers(0)
    ),
    st.builds(
        core.CommandRan,
        _HALVES,
        st.integers(-64, 255),
        st.text(),
        st.floats(0, 1e6),
        st.sampled_from(
            ["itself", "time_limit", "output_limit", "process_limit", "memory_limit", "agent"]
        ),
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


@pytest.mark.parametrize(
    ("answer", "fault"),
    [("[" * 100_000, "message is nested too deep")],
)
def test_what_is_no_answer_approves_nothing(answer: object, fault: str) -> None:
    """An answer that is not clear is none."""
    with pytest.raises(MessageError) as caught:
        read_answer(answer)
    assert str(caught.value).startswith(fault)
