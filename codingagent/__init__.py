"""codingagent: a coding agent that works through any web chat, by copy and paste.

Programs find here what reads, checks and executes its JSON (operations and events, version 1.0).
"""

TYPE_CHECKING = False  # as in `typing`, which would cost each start of the process that runs commands

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


# What a program uses is imported when it is first asked for: pydantic costs 0.3 s at every start.
def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'codingagent' has no attribute '{name}'")
    from importlib import import_module

    room = "agent.space" if name == "Space" else "protocols.json.messages"
    return getattr(import_module(f"codingagent.{room}"), name)
