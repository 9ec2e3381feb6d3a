"""Read an answer that is an operations message instead of tag blocks (design, operations and events)."""

import re

from msgspec.structs import replace

from codingagent.model.operations import Finish, Kind, ShowMessage
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.json.convert import items_of
from codingagent.protocols.json.messages import MessageError, read_operations_message, value_of
from codingagent.protocols.tags.reply import Header, Problem, Reply, Step

_FENCE = lazy_pattern(r"^[ \t]*(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_DONE = "DONE:"

_WRITE = (
    r"; in strings write \n for a line end, \" for a quote and \\ for a backslash, and put no comma after a"
    " last item"
)

# What a message has, and an object that is something else has not.
_TELLING = ('"operations"', '"protocolVersion"')


def read(text: str) -> Reply | None:
    """Read an answer that is an operations message, bare or in one code fence; None if it is none.

    Never raises: a message that can't be read is a problem among the items.
    """
    bodies = [body for body in _bodies(text) if any(word in body for word in _TELLING)]
    if not bodies:
        return None
    many = f"The reply holds {len(bodies)} JSON messages, so nothing was executed: send all in one"
    if len(bodies) > 1:
        return Reply((Problem(Kind.ANSWER, many, 1),), None, has_outbox=False, notes=())
    try:
        items = items_of(read_operations_message(bodies[0]))
    except MessageError as fault:
        how = _WRITE if "is not JSON" in str(fault) else ""
        reason = f"The JSON message was not executed: {fault}{how}. Send it again, whole"
        return Reply((Problem(Kind.ANSWER, reason, 1),), None, has_outbox=False, notes=())
    done = tuple(map(_finished, items[-1:]))
    return Reply((*items[:-1], *done), _header(bodies[0]), has_outbox=False, notes=())


def _bodies(text: str) -> list[str]:
    """Return the parts that may be a message: the whole text, or the content of each code fence."""
    text = text.strip().removeprefix("\ufeff").strip()
    if text.startswith("{"):
        return [text]
    bodies: list[str] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and fence[0].strip() == fence[1]:
            body = text[opened.end() : fence.start()].strip()
            if body.startswith("{"):
                bodies.append(body)
            opened = None
    if opened is not None and (rest := text[opened.end() :].strip()).startswith("{"):
        # Never closed: if it was cut short, reading it says where.
        bodies.append(rest)
    return bodies


def _finished(item: Step | Problem) -> Step | Problem:
    """Return the end of the session for a last message that says `DONE:`."""
    if isinstance(item, Step) and isinstance(item.operation, ShowMessage):
        text = item.operation.text.strip()
        if text.startswith(_DONE):
            return replace(item, operation=Finish(text.removeprefix(_DONE).strip()))
    return item


def _header(body: str) -> Header | None:
    """Return the request that the message names, in the two fields that the guide asks for."""
    value = value_of(body)
    if not isinstance(value, dict) or not {"session", "sequence"} & value.keys():
        return None
    session, sequence = value.get("session"), value.get("sequence")
    # Not isinstance: to Python, true is a number.
    number = sequence if type(sequence) is int and 0 <= sequence < 10**9 else None
    return Header(session if isinstance(session, str) else None, number)
