"""codingagent: a coding agent that works through any web chat, by copy and paste.

Programs find here what reads, checks and executes its JSON (operations and events, version 1.0).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codingagent.agent.space import Space
    from codingagent.protocols.json.messages import (
        MessageError,
        OperationValidationError,
        parse_operation,
        validate_event,
        validate_events_message,
        validate_operation,
        validate_operations_message,
    )

__version__ = "0.1.0"
PROTOCOL_VERSION = "1.0"

# What a program uses is imported when it is first asked for: pydantic costs 0.3 s at every start.
_LATE = {
    "MessageError": "codingagent.protocols.json.messages",
    "OperationValidationError": "codingagent.protocols.json.messages",
    "Space": "codingagent.agent.space",
    "parse_operation": "codingagent.protocols.json.messages",
    "validate_event": "codingagent.protocols.json.messages",
    "validate_events_message": "codingagent.protocols.json.messages",
    "validate_operation": "codingagent.protocols.json.messages",
    "validate_operations_message": "codingagent.protocols.json.messages",
}

__all__ = [
    "PROTOCOL_VERSION",
    "MessageError",
    "OperationValidationError",
    "Space",
    "parse_operation",
    "validate_event",
    "validate_events_message",
    "validate_operation",
    "validate_operations_message",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module 'codingagent' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)
