"""JSON-RPC 2.0 without a transport: check the requests of a line, encode each answer."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, defstruct
from msgspec.json import Decoder, decode
from msgspec.structs import astuple, fields

from codingagent.errors import CodingAgentError
from codingagent.model.paths import shown
from codingagent.model.plain_text import in_json, without_halves

# 004 sets no limit. A file operation carries at most 10 MB, which JSON makes longer.
LINE_LIMIT_BYTES = 2**24
# A host drives one guest; a larger batch is a program gone wrong, and its answers have no bound.
BATCH_LIMIT = 1000
# Some line readers (Node's readline, Python's splitlines) take these for line ends; JSON does not.
_LINE_ENDS = {c.encode(): b"\\u%04x" % ord(c) for c in ("\u2028", "\u2029", "\x85")}


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
    """A function, its params by name and by position, and whether it needs nothing but them."""

    run: Callable[..., object]
    by_name: type[Struct]
    by_position: type[Struct]
    is_quick: bool = False


def method(run: Callable[..., object], *, is_quick: bool = False) -> Method:
    """Return a function as a method: it takes the connection's methods, then the params of its signature."""
    _, *params = inspect.signature(run, eval_str=True).parameters.values()
    declared = [
        (p.name, p.annotation) if p.default is p.empty else (p.name, p.annotation, p.default) for p in params
    ]
    by_name, by_position = (
        defstruct("Params", declared, forbid_unknown_fields=True, array_like=array_like)
        for array_like in (False, True)
    )
    return Method(run, by_name, by_position, is_quick)


class Response(NamedTuple):
    """A response, empty for a notification; the code of its error or 0; a fault of ours."""

    data: bytes
    code: int = 0
    bug: Exception | None = None


class Request(NamedTuple):
    """One request, checked as far as possible before it runs.

    `name` is safe to show, and empty if there is none; `id_json` is None for a notification. `call` takes
    the connection's methods.
    """

    name: str
    id_json: bytes | None
    call: Callable[[Any], object]
    is_quick: bool = True

    def answer(self, methods: Callable[[], object]) -> Response:
        """Run the method; a fault of ours costs this answer alone."""
        try:
            return Response(self._response(b"result", self.call(methods())))
        except MethodError as fault:
            return self._failed(fault.code, str(fault))
        except CodingAgentError as fault:
            return self._failed(Code.INTERNAL_ERROR, str(fault))
        except Exception as fault:  # noqa: BLE001  # the server logs it
            why = "internal error: see the server's log"
            return self._failed(Code.INTERNAL_ERROR, why)._replace(bug=fault)

    def _failed(self, code: Code, why: str) -> Response:
        error = {"code": int(code), "message": without_halves(why)}
        return Response(self._response(b"error", error), code)

    def _response(self, kind: bytes, value: object) -> bytes:
        if self.id_json is None:
            return b""
        return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (self.id_json, kind, _to_json(value))


class Message(NamedTuple):
    """The requests of one line; those of a batch are answered in one array, in order."""

    requests: Sequence[Request]
    is_batch: bool = False


class _Call(Struct):
    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | float | UnsetType | None = UNSET
    params: Raw = Raw(b"{}")


_CALL = Decoder(_Call)


def read(line: bytes | bytearray, methods: Mapping[str, Method]) -> Message:
    """Return the requests in a line; each error in it becomes a request that only has an answer."""
    try:
        if len(line) > LINE_LIMIT_BYTES:
            why = f"a line holds at most {LINE_LIMIT_BYTES} bytes"
        elif not line.lstrip(b" \t\r").startswith(b"["):
            return Message((_request(line, methods),))
        elif 0 < len(each := decode(line, type=list[Raw])) <= BATCH_LIMIT:
            return Message([_request(one, methods) for one in each], is_batch=True)
        else:
            why = f"a batch holds 1 to {BATCH_LIMIT} requests, not {len(each)}"
    except (ValueError, RecursionError) as fault:
        # Each version of the library has other words for this.
        why = "not UTF-8" if "utf-8" in str(fault).lower() else str(fault)
        return Message((refused(Code.PARSE_ERROR, why),))
    return Message((refused(Code.INVALID_REQUEST, why),))


def refused(code: Code, why: str, id_json: bytes | None = b"null", name: str = "") -> Request:
    """Return what only has an answer; without an id it is no request, and JSON-RPC 2.0 says null then."""

    def fail(_: object) -> None:
        raise MethodError(code, f"{code.name.lower().replace('_', ' ')}: {shown(why)}")

    return Request(name, id_json, fail)


def _request(data: bytes | bytearray | Raw, methods: Mapping[str, Method]) -> Request:
    """Return a request; ValueError or RecursionError if it is not JSON."""
    try:
        call = _CALL.decode(data)
    except ValidationError as wrong:
        document = decode(data)
        own = document.get("id") if isinstance(document, dict) else None
        id_json = _to_json(own) if type(own) in {int, str, float} else b"null"
        return refused(Code.INVALID_REQUEST, str(wrong), id_json)
    name, given = shown(call.method), bytes(call.params)
    own_id = None if call.id is UNSET else _to_json(call.id)
    if given[:1] not in {b"{", b"[", b"n"}:
        why = "`params` must be an object or an array"
        return refused(Code.INVALID_REQUEST, why, own_id or b"null", name)
    found = methods.get(call.method)
    if found is None:
        return refused(Code.METHOD_NOT_FOUND, call.method, own_id, name)
    try:
        # Many libraries write null for no params.
        kind = found.by_position if given.startswith(b"[") else found.by_name
        params = astuple(decode(b"{}" if given == b"null" else given, type=kind))
    except ValidationError as wrong:
        takes = [f"{p.name}{'' if p.required else '?'}" for p in fields(found.by_name)]
        why = f"{wrong}; {name} takes {', '.join(takes) or 'none'}"
        return refused(Code.INVALID_PARAMS, why, own_id, name)
    return Request(name, own_id, lambda methods: found.run(methods, *params), found.is_quick)


def _to_json(value: Any) -> bytes:
    """Encode JSON on one line for any reader."""
    data = in_json(value)
    if not data.isascii():
        for character, escape in _LINE_ENDS.items():
            data = data.replace(character, escape)
    return data
