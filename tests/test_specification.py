"""Every example of the documents 000, 001 and 002, run for real, its events compared field by field.

`bun` is not on every machine: what it was to run is a line of sh with the same effect here. Apart from
that, only times, durations and names of runs may differ, and how a fault is worded.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codingagent import Space
from codingagent.agent.space import Run
from codingagent.protocols.json.wire import to_wire

EXAMPLES = json.loads((Path(__file__).parent / "protocols" / "json" / "examples.json").read_text("utf-8"))

# In place of bun: what to run, with the output that the documents show.
COMMANDS = {
    "bun run scripts/fetch-schedule.ts": "grep -c trips scripts/fetch-schedule.ts",
    "bun run a.ts": "cp a.ts output.txt",
    "bun run date-script.ts": "grep -q toISOString date-script.ts && echo 2025-01-15T10:30:02.123Z",
    "bun run reminder.ts": "grep -q getTrainSchedule reminder.ts && echo 'Reminder created'",
    "bun run app.ts": "cat app.ts",
    "bun run test.ts": 'test "$DEBUG" = true && test -e test.ts && echo "All tests passed!"',
    "bun test": "cat app.ts",
}

# What the documents take for granted.
FILES = {
    "config/settings.json": "{}",
    "config.json": '{"key": "value"}',
    "temp/scratch.txt": "x",
    "temp/cache.json": "{}",
    "temp.txt": "x",
    "rules.txt": (
        "Use the getTrainSchedule function from @company/sdk to get the train schedule."
        " Use createNote to create reminders."
    ),
    "src/app.ts": "const x = 1;\nconsole.log(x)\n",
    "src/test.ts": "",
    "data/a": "x",
}
SCHEDULE = "const trips = 1;\nconsole.log(trips);"

# Of one of these the documents show other values in the same place.
VARYING = {"timestamp", "durationMs", "runId"}

# What we say and an example leaves out.
ADDED = {"operationId", "timestamp", "stdout", "stderr", "size", "encoding", "exitCode", "error"}
ADDED |= {"bytesWritten", "editsApplied", "durationMs"}


def example(document: str, kind: str, number: int) -> Any:
    """Return the example of a kind in a document, counted from 0."""
    found = [e["example"] for e in EXAMPLES if (e["document"], e["kind"]) == (document, kind)]
    return found[number]


def without_bun(operation: Mapping[str, Any]) -> dict[str, Any]:
    if operation["type"] != "shell":
        return dict(operation)
    command = operation["command"]
    return {**operation, "command": COMMANDS.get(command, command)}


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for name, content in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return project


def run(project: Path, *given: Mapping[str, Any], policy: str | Path = "standard") -> Run:
    return Space(project, policy, sandbox="off").run(operations=list(map(without_bun, given)))


def events_of(done: Run) -> list[dict[str, Any]]:
    return [dict(to_wire(event)) for event in done.events]


def compare(shown: Mapping[str, Any], said: Mapping[str, Any], content: str = "") -> None:
    """Fails if an event is not what an example shows."""
    for name, value in shown.items():
        if name in VARYING:
            assert (name in said) or name == "timestamp", name
        elif name == "operationId" and value is None:
            assert re.fullmatch(r"op-[0-9]+", said[name])
        elif name == "command":
            assert said[name] == COMMANDS.get(value, value)
        elif name == "bytesWritten" and content:
            # The documents show 42 and 312 for contents of 38 and 313 bytes.
            assert said[name] == len(content.encode())
        elif name == "error":
            *_, first, second = value.lower().split()
            assert f"{first} {second}" in said[name], "in our words: which file, and what to do"
        elif name in {"reason", "suggestion"}:
            assert said[name]
        elif name == "details":
            assert {key: said[name][key] for key in value if key != "policy"} == {
                key: value[key] for key in value if key != "policy"
            }
            assert said[name]["policy"]
        else:
            assert said[name] == value, name
    assert set(said) - set(shown) <= ADDED, "nothing that the documents do not know"


# --- single operations -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_the_operations_of_001(project: Path, number: int) -> None:
    """Specification 001, operation types: each example does what its behaviour says."""
    operation = example("001", "operation", number)
    if operation["type"] in {"editFile", "shell"}:
        path = project / "scripts" / "fetch-schedule.ts"
        path.parent.mkdir()
        path.write_text(SCHEDULE)
    (event,) = events_of(run(project, operation))
    assert event["success"] is True, event
    assert (event["type"], event["operationId"]) == (operation["type"], operation["id"])
    match operation["type"]:
        case "createFile":
            assert (project / operation["path"]).read_text() == operation["content"]
        case "readFile":
            assert (event["content"], event["size"], event["encoding"]) == ("{}", 2, "utf-8")
        case "editFile":
            edit = operation["edits"][0]
            assert (project / operation["path"]).read_text() == SCHEDULE.replace(
                edit["oldContent"], edit["newContent"]
            )
        case "deleteFile":
            assert not (project / operation["path"]).exists()
        case "shell":
            assert (event["exitCode"], event["stdout"]) == (0, "2\n")
        case _:
            assert set(event) == {"type", "operationId", "timestamp", "success"}


# Operation and event by their places in 000 and 002.
PAIRS = [
    *(("000", 0, 0), ("000", 1, 1), ("000", 2, 3), ("000", 3, 4), ("000", 4, 5), ("000", 5, 6)),
    *(("002", 1, 0), ("002", 2, 1), ("002", 3, 2), ("002", 4, 3), ("002", 5, 4)),
]


@pytest.mark.parametrize(("document", "asked", "shown"), PAIRS)
def test_the_operations_of_000_and_002(project: Path, document: str, asked: int, shown: int) -> None:
    """000 and 002 show each operation with its event."""
    operation = example(document, "operation", asked)
    expected = example(document, "event", shown)
    (event,) = events_of(run(project, operation))
    compare(expected, event)
    if document == "000":
        assert event["operationId"] == operation["id"]


def test_a_message_of_002(project: Path) -> None:
    """002 shows no event for it; its event is an acknowledgment."""
    (event,) = events_of(run(project, example("002", "operation", 0)))
    assert (event["type"], event["success"], event["operationId"]) == ("message", True, "op-1")


def test_a_file_that_exists_is_not_overwritten(project: Path) -> None:
    """000, createFile, on failure."""
    operation = example("000", "operation", 1)
    first, second = events_of(run(project, operation, {**operation, "content": "other"}))
    compare(example("000", "event", 1), first)
    compare(example("000", "event", 2), second)
    assert "bytesWritten" not in second
    assert (project / operation["path"]).read_text() == operation["content"]


@pytest.mark.parametrize(("document", "number"), [("000", 7), ("002", 5)])
def test_a_command_that_takes_too_long(project: Path, document: str, number: int) -> None:
    """000 and 002, on timeout; the limit is the lowest there may be, so that the test is short."""
    shown = example(document, "event", number)
    (event,) = events_of(run(project, {"type": "shell", "command": "sleep 1000", "timeout": 1000}))
    compare(shown, event)
    assert event["durationMs"] >= 1000
    assert "error" not in event, "the command's doing, not the system's"


@pytest.mark.parametrize(("document", "number"), [("000", 8), ("002", 6)])
def test_what_needs_approval(project: Path, document: str, number: int) -> None:
    """000 and 002, approvalRequired: execution paused."""
    shown = example(document, "event", number)
    command = {"type": "shell", "id": "shell-1", "command": shown["details"]["command"]}
    done = run(project, command)
    (event,) = events_of(done)
    compare(shown, event)
    assert done.status == "awaiting_approval"
    assert (project / "data" / "a").exists()


def test_what_is_blocked(project: Path) -> None:
    """000, policyDenied: to the letter."""
    shown = example("000", "event", 9)
    (event,) = events_of(run(project, {"type": "shell", "command": "sudo id"}))
    compare(shown, event)
    assert event["reason"] == shown["reason"] == "Command 'sudo' is blocked"


def test_what_is_not_in_the_allowed_list(project: Path, tmp_path: Path) -> None:
    """002, policy denied: reason and suggestion to the letter."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[shell]\nallowed_commands = ["bun", "node", "npm", "npx"]\n')
    (event,) = events_of(run(project, {"type": "shell", "command": "python3 x"}, policy=policy))
    shown = example("002", "event", 7)
    compare(shown, event)
    assert (event["reason"], event["suggestion"]) == (shown["reason"], shown["suggestion"])


# --- messages --------------------------------------------------------------------------------------


def test_operations_are_executed_in_list_order(project: Path) -> None:
    """001, operation ordering: each completes before the next one starts."""
    message = example("001", "operations message", 1)
    created, ran, read = events_of(run(project, *message["operations"]))
    assert [e["type"] for e in (created, ran, read)] == ["createFile", "shell", "readFile"]
    assert read["content"] == "...", "what the command made of what was created before"


def test_one_failure_does_not_invalidate_the_batch(project: Path) -> None:
    """001, partial failure handling, with the events that it shows."""
    done = run(project, *example("001", "operations message", 2)["operations"])
    shown = example("001", "events message", 0)["events"]
    for expected, event in zip(shown, events_of(done), strict=True):
        compare(expected, event)
    assert done.status == "completed"


@pytest.mark.parametrize(("asked", "shown"), [(3, 3), (4, 5)], ids=["date", "trains"])
def test_the_first_two_examples_of_001(project: Path, asked: int, shown: int) -> None:
    """001, examples 1 and 2, from the operations message as it stands to the events message."""
    message = example("001", "operations message", asked)
    expected = example("001", "events message", shown)
    given = [without_bun(operation) for operation in message["operations"]]
    done = Space(project, sandbox="off").run(message={**message, "operations": given})
    said = to_wire(done.message())
    assert set(said) == set(expected)
    assert (said["protocolVersion"], said["status"]) == ("1.0", expected["status"])
    assert re.fullmatch(r"run_[0-9a-f]{12}", said["runId"])
    content = given[1]["content"]
    for each, event in zip(expected["events"], said["events"], strict=True):
        compare(each, event, content)


def test_what_example_2_was_told_is_what_reading_gives(project: Path) -> None:
    """001, example 2: the readFile event in the user's message."""
    shown = example("001", "events message", 4)["events"][1]
    (event,) = events_of(run(project, {"type": "readFile", "path": shown["path"]}))
    compare(shown, event)


def test_the_final_response_of_example_2(project: Path) -> None:
    """001, example 2: a message alone is a whole turn."""
    done = run(project, *example("001", "operations message", 5)["operations"])
    assert [event.type for event in done.events] == ["message"]
    assert done.status == "completed"


def test_example_3_of_001_from_the_question_to_its_end(project: Path) -> None:
    """001, example 3: paused, approved with the structured answer, resumed."""
    done = run(project, *example("001", "operations message", 6)["operations"])
    paused = example("001", "events message", 6)
    assert done.status == paused["status"] == "awaiting_approval"
    for each, event in zip(paused["events"], events_of(done), strict=True):
        compare(each, event)
    assert (project / "temp" / "scratch.txt").exists()
    known = len(done.session.ends)
    done.answer(example("001", "approval", 1))
    resumed = example("001", "events message", 7)
    said = to_wire(done.message(known))
    assert said["status"] == resumed["status"] == "completed"
    for each, event in zip(resumed["events"], said["events"], strict=True):
        compare(each, event)
    assert list((project / "temp").iterdir()) == []


@pytest.mark.parametrize("kind", ["userMessage", "structured"])
def test_the_approval_flow_of_001(project: Path, kind: str) -> None:
    """001, approval flow: pauses with the question as last; both ways to decide are understood."""
    create = {"type": "createFile", "path": "a.ts", "content": "x"}
    remove = {"type": "shell", "id": "shell-1", "command": "rm -rf temp/"}
    done = run(project, create, remove)
    paused = example("001", "events message", 1)
    assert done.status == paused["status"]
    for each, event in zip(paused["events"], events_of(done), strict=True):
        compare({"path": "a.ts", **each} if each["type"] == "createFile" else each, event)
    answer = example("001", "event", 0) if kind == "userMessage" else example("001", "approval", 0)
    done.answer(answer)
    assert done.status == "completed"
    assert done.events[-1].type == "shell"
    assert not (project / "temp").exists()


@pytest.mark.parametrize(("document", "number"), [("000", 0), ("002", 0)])
def test_the_messages_of_000_and_002(project: Path, document: str, number: int) -> None:
    """000, operations message; 002, batching operations."""
    given = example(document, "operations message", number)["operations"]
    done = run(project, *given)
    assert done.status == "completed"
    assert [event.type for event in done.events] == [operation["type"] for operation in given]
    assert all(event["success"] for event in events_of(done))


def test_a_message_without_operations(project: Path) -> None:
    """000, the shapes of the two messages."""
    done = Space(project, sandbox="off").run(message=example("000", "operations message", 1))
    said = to_wire(done.message())
    shown = example("000", "events message", 0)
    assert {**said, "runId": ""} == {**shown, "runId": ""}


def test_no_example_is_left_out() -> None:
    """As many of each kind as are run above; those that only a runtime or a person sends are validated."""
    counts: dict[tuple[str, str], int] = {}
    for each in EXAMPLES:
        key = (each["document"], each["kind"])
        counts[key] = counts.get(key, 0) + 1
    assert counts == {
        ("001", "operation"): 6,
        # The first is the one that shows the version, without operations.
        ("001", "operations message"): 7,
        # Two are what a person says at the beginning.
        ("001", "events message"): 8,
        ("001", "event"): 1,
        ("001", "approval"): 2,
        ("000", "operation"): 6,
        ("000", "operations message"): 2,
        ("000", "events message"): 1,
        # The last tells of Docker, which there is none of here.
        ("000", "event"): 11,
        ("002", "operation"): 6,
        ("002", "operations message"): 1,
        ("002", "event"): 8,
    }
