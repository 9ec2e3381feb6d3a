"""What it costs to validate operations messages: against reading the JSON alone, and a JSON Schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
from pydantic_core import from_json

from codingagent.protocols.json.messages import read_operations_message, validate_operations_message
from tests.benchmarks.measuring import Figure, ratio

SCHEMA = Path(__file__).parent.parent / "protocols" / "json" / "specification_001.schema.json"


def operations(count: int) -> list[dict[str, Any]]:
    """Return operations of all six types in turn, no two alike, with a few lines of code in each file."""
    made: list[dict[str, Any]] = []
    for n in range(count):
        code = "".join(f"def step_{n}_{k}(value):\n    return value + {k}\n\n" for k in range(8))
        old, new = f"console.log(trips[{n}]);", f"console.log(JSON.stringify(trips[{n}], null, 2));"
        match n % 6:
            case 0:
                made.append({"type": "message", "content": f"I'm going to write step {n} of the schedule."})
            case 1:
                made.append({"type": "createFile", "path": f"src/steps/step_{n}.py", "content": code})
            case 2:
                made.append({"type": "readFile", "id": f"read-{n}", "path": f"config/{n}.json"})
            case 3:
                edits = [{"oldContent": old, "newContent": new}]
                made.append({"type": "editFile", "path": f"src/app_{n}.ts", "edits": edits})
            case 4:
                made.append({"type": "deleteFile", "path": f"temp/scratch-{n}.txt"})
            case _:
                command = f"python3 src/steps/step_{n}.py"
                made.append({"type": "shell", "id": f"run-{n}", "command": command, "timeout": 60000})
    return made


def validation() -> Iterator[Figure]:
    """Design, speed: a message of 1,000 operations."""
    text = json.dumps({"protocolVersion": "1.0", "operations": operations(1000)}).encode()
    assert len(read_operations_message(text)) == 1000
    yield ratio(
        "1,000 operations read and validated, against the JSON read alone",
        lambda: read_operations_message(text),
        lambda: from_json(text),
        3.3,
        101,
    )
    message = from_json(text)
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))
    assert validator.is_valid(message)
    yield ratio(
        "1,000 operations validated, against jsonschema (1/30)",
        lambda: validate_operations_message(message),
        lambda: validator.is_valid(message),
        1 / 30,
        5,
    )


ALL = (validation,)
