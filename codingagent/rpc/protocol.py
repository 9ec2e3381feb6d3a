"""JSON-RPC 2.0 without a transport: check the requests of a line, encode each answer."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

from msgspec import Struct, ValidationError, convert, defstruct
from msgspec.json import decode
from msgspec.structs import astuple, fields

from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import in_json, visible, without_halves

# 004 sets no limit. A file operation carries at most 10 MB, which JSON makes longer.
LINE_LIMIT_BYTES = 2**24

# A host drives one guest; a larger batch is a program gone wrong, and its answers have no bound.
BATCH_LIMIT = 1000

# Requests nest four deep. Without this limit the parser's own would be the C stack, which not every version
# of Python guards.
DEPTH_LIMIT = 200

# Whole strings, or one that never ends; possessive, so that hostile text causes no backtracking.
_STRINGS = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_DEPTHS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))

# Some line readers (Node's readline, Python's splitlines) take these for line ends; JSON does not.
_LINE_ENDS = {
    character.encode(): b"\\u%04x" % ord(character) for character in ("\u2028", "\u2029", "\x85")
}


class Code(IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603


class MethodError(Exception):
    """A method can't do what was asked; the message tells the caller why, in one line."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Method(NamedTuple):
    """A function, the type of its params, and whether it needs nothing but them."""

    run: Callable[..., object]
    params: type[Struct]
    is_quick: bool = False


def method(run: Callable[..., object], *, is_quick: bool = False) -> Method:
    """Return a function as a method: it takes the connection's methods, then the params of its signature."""
    _, *params = inspect.signature(run, eval_str=True).parameters.values()
    declared = [
        (p.name, p.annotation) if p.default is p.empty else (p.name, p.annotation, p.default)
        for p in params
    ]
    return Method(run, defstruct("Params", declared, forbid_unknown_fields=True), is_quick)


class Request(NamedTuple):
    """One request, checked as far as possible before it runs.

    `name` is safe to show, and empty if there is none; `id_json` is None for a notification.
    """

    name: str
    id_json: bytes | None
    call: Callable[[object], object] | MethodError
    is_quick: bool = True

    def answer(self, methods: object) -> tuple[bytes, int]:
        """Run the method; return the response, empty for a notification, and the code of its error or 0.

        Raises:
            Exception: whatever the method raises except MethodError.
        """
        if isinstance(self.call, MethodError):
            return self.failed(self.call)
        try:
            result = self.call(methods)
        except MethodError as fault:
            return self.failed(fault)
        return self._response(b"result", result), 0

    def failed(self, fault: MethodError) -> tuple[bytes, int]:
        """Return the response that reports a failure."""
        error = {"code": int(fault.code), "message": without_halves(str(fault))}
        return self._response(b"error", error), fault.code

    def _response(self, kind: bytes, value: object) -> bytes:
        if self.id_json is None:
            return b""
        return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (self.id_json, kind, _to_json(value))


class Message(NamedTuple):
    """The requests of one line; those of a batch are answered in one array, in order."""

    requests: Sequence[Request]
    is_batch: bool = False


def read(line: bytes | bytearray | None, methods: Mapping[str, Method]) -> Message:
    """Return the requests in a line; each error in it becomes a request that only has an answer.

    None is a line beyond the limit.
    """
    code, why = Code.INVALID_REQUEST, f"a line holds at most {LINE_LIMIT_BYTES} bytes"
    if line is not None:
        try:
            document = _parsed(line)
        except (ValueError, RecursionError) as fault:
            code, why = Code.PARSE_ERROR, visible(str(fault))
        else:
            if type(document) is not list:
                return Message((_request(document, methods),))
            if 0 < len(document) <= BATCH_LIMIT:
                return Message([_request(each, methods) for each in document], is_batch=True)
            why = f"a batch holds 1 to {BATCH_LIMIT} requests, not {len(document)}"
    return Message((refused(code, why),))


def refused(code: Code, why: str, id_json: bytes | None = None, name: str = "") -> Request:
    """Return what only has an answer.

    Without an id it is no request, and so no notification: the specification says null then.
    """
    kind = code.name.lower().replace("_", " ")
    return Request(name, id_json or b"null", MethodError(code, f"{kind}: {why}"))


def _request(document: Any, methods: Mapping[str, Method]) -> Request:
    if type(document) is not dict:
        return refused(Code.INVALID_REQUEST, "it must be an object")
    id_json = None
    if "id" in document:
        if type(document["id"]) not in {int, str, float, type(None)}:
            return refused(Code.INVALID_REQUEST, '"id" must be a string, a number or null')
        id_json = _to_json(document["id"])
    name, given = document.get("method"), document.get("params")
    if document.get("jsonrpc") != "2.0":
        return refused(Code.INVALID_REQUEST, '"jsonrpc" must be "2.0"', id_json)
    if type(name) is not str:
        return refused(Code.INVALID_REQUEST, '"method" must be a string', id_json)
    # Many libraries write null for no params.
    if type(given) not in {dict, list, type(None)}:
        why = '"params" must be an object or an array'
        return refused(Code.INVALID_REQUEST, why, id_json, visible(name))
    found = methods.get(name)
    if found is None:
        shown = visible(name)
        return Request(
            shown, id_json, MethodError(Code.METHOD_NOT_FOUND, f"method not found: {shown}")
        )
    try:
        params = _params(given or {}, found.params)
    except ValidationError as wrong:
        takes = [f"{p.name}{'' if p.required else '?'}" for p in fields(found.params)]
        said = f"{visible(str(wrong))}; {name} takes {', '.join(takes) or 'none'}"
        return Request(name, id_json, MethodError(Code.INVALID_PARAMS, f"invalid params: {said}"))
    return Request(
        name, id_json, lambda connected: found.run(connected, *astuple(params)), found.is_quick
    )


def _params(given: dict[str, Any] | list[Any], kind: type[Struct]) -> Struct:
    if isinstance(given, list):
        names = kind.__struct_fields__
        if len(given) > len(names):
            raise ValidationError(f"{len(given)} given by position")
        given = dict(zip(names, given, strict=False))
    return convert(given, kind)


def _parsed(line: bytes | bytearray) -> Any:
    # Three checks, the cheap ones first.
    if len(line) > DEPTH_LIMIT and line.count(b"[") + line.count(b"{") > DEPTH_LIMIT:
        brackets = _STRINGS.sub(b"", line).translate(_DEPTHS, _NO_BRACKETS)
        if max(accumulate(memoryview(brackets).cast("b")), default=0) > DEPTH_LIMIT:
            raise ValueError(f"nested more than {DEPTH_LIMIT} deep")
    return decode(line)


def _to_json(value: object) -> bytes:
    """Encode JSON on one line for any reader."""
    data = in_json(value)
    if not data.isascii():
        for character, escape in _LINE_ENDS.items():
            data = data.replace(character, escape)
    return data
