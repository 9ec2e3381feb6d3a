"""JSON-RPC 2.0 without a transport: parse a line, check its requests, encode each answer.

A line becomes a Message. The caller answers its requests one after the other, so that the answers to a
batch can leave as they come, and handles failures: a method raises MethodError, and anything else is a
bug. This module knows neither connections nor the methods' meaning.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from itertools import accumulate
from math import isfinite
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import visible

# A host drives one guest; a larger batch is a program gone wrong, and its answers have no bound.
BATCH_LIMIT = 1000

# Requests nest four deep. Without this limit the parser's own would be the C stack, which is small in a
# thread and unguarded in some versions of Python.
DEPTH_LIMIT = 200

_SHORT_CHARACTERS = 4096

# Whole strings, or one that never ends; possessive, so that hostile text causes no backtracking.
_STRINGS = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_DEPTHS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))

# Some line readers (Node's readline, Python's splitlines) take these for line ends; JSON does not.
_LINE_ENDS = (("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\x85", "\\u0085"))


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


class ParamKind(Enum):
    """The type of a parameter; the value names it in words."""

    TEXT = "a string"
    NUMBER = "a number"


class Param(Struct, frozen=True):
    """One parameter of a method; an optional one may be left out, or be null."""

    name: str
    kind: ParamKind
    is_optional: bool = False

    def __str__(self) -> str:
        optional = ", optional" if self.is_optional else ""
        return f"{self.name} ({self.kind.value}{optional})"


class Method(Struct, frozen=True):
    """A function and its parameters, in order."""

    run: Callable[..., object]
    params: tuple[Param, ...] = ()


class Response(NamedTuple):
    """One response as JSON, without a line end; empty for a notification.

    `code` is that of its error, or of the error that a notification does not get; else 0.
    """

    data: bytes
    code: int = 0


class Request:
    """One request, checked as far as possible before it runs.

    `name` is safe to show, and empty if there is none. `id_json` is None for a notification. `method` is
    the function to run, or the error that prevents it.
    """

    __slots__ = ("_arguments", "_id_json", "_method", "name")

    def __init__(
        self,
        name: str,
        id_json: str | None,
        method: Callable[..., object] | MethodError,
        arguments: Sequence[object] = (),
    ) -> None:
        self.name = name
        self._id_json = id_json
        self._method = method
        self._arguments = arguments

    def answer(self) -> Response:
        """Run the method and return the response.

        Raises:
            Exception: whatever the method raises except MethodError, or a result that JSON can't hold.
        """
        method = self._method
        if isinstance(method, MethodError):
            return self._failed(method)
        try:
            result = method(*self._arguments)
        except MethodError as fault:
            return self._failed(fault)
        if self._id_json is None:
            return Response(b"")
        body = _to_json(result)
        if len(body) < _SHORT_CHARACTERS:
            return Response(_utf8(f'{{"jsonrpc":"2.0","id":{self._id_json},"result":{body}}}'))
        # A file's text is in memory in three forms here, so each is released as soon as possible.
        del result
        head = _utf8(f'{{"jsonrpc":"2.0","id":{self._id_json},"result":')
        parts = (head, _utf8(body), b"}")
        del body
        return Response(b"".join(parts))

    def broken(self) -> Response:
        """Return the response for a request whose `answer` raised."""
        return self._failed(
            MethodError(Code.INTERNAL_ERROR, "internal error: see the server's log")
        )

    def _failed(self, fault: MethodError) -> Response:
        if self._id_json is None:
            return Response(b"", fault.code)
        error = {"code": fault.code, "message": str(fault)}
        response = f'{{"jsonrpc":"2.0","id":{self._id_json},"error":{_to_json(error)}}}'
        return Response(_utf8(response), fault.code)


class Message(NamedTuple):
    """The requests of one line; those of a batch are answered in one array, in order."""

    requests: Sequence[Request]
    is_batch: bool = False


class Dispatcher:
    """Parse lines as requests to a table of methods."""

    def __init__(self, methods: Mapping[str, Method]) -> None:
        self._methods = methods

    def read(self, line: bytes) -> Message:
        """Return the requests in a line; each error in it becomes a request that only has an answer."""
        try:
            document = _parsed(line)
        except ValueError as fault:
            return Message((_refused(Code.PARSE_ERROR, f"parse error: {_reason(fault)}"),))
        if type(document) is not list:
            return Message((self._request(document),))
        if not document:
            return Message((_refused(Code.INVALID_REQUEST, "invalid request: the batch is empty"),))
        if len(document) > BATCH_LIMIT:
            said = f"a batch holds at most {BATCH_LIMIT} requests, not {len(document)}"
            return Message((_refused(Code.INVALID_REQUEST, f"invalid request: {said}"),))
        return Message([self._request(each) for each in document], is_batch=True)

    def _request(self, document: Any) -> Request:
        if type(document) is not dict:
            return _invalid("it must be an object")
        id_json = None
        if "id" in document:
            id_json = _id_json(document["id"])
            if id_json is None:
                return _invalid('"id" must be a string, a number or null')
        # From here on the id is known, and errors are answered with it.
        if document.get("jsonrpc") != "2.0":
            return _invalid('"jsonrpc" must be "2.0"', id_json)
        name = document.get("method")
        if type(name) is not str:
            return _invalid('"method" must be a string', id_json)
        given = document.get("params")
        # Many libraries write null for no params.
        if given is not None and type(given) is not dict and type(given) is not list:
            return _invalid('"params" must be an object or an array', id_json, visible(name))
        method = self._methods.get(name)
        if method is None:
            shown = visible(name)
            fault = MethodError(Code.METHOD_NOT_FOUND, f"method not found: {shown}")
            return Request(shown, id_json, fault)
        if not given and not method.params:
            return Request(name, id_json, method.run)
        try:
            arguments = _arguments(name, method.params, given)
        except MethodError as wrong:
            return Request(name, id_json, wrong)
        return Request(name, id_json, method.run, arguments)


def refusal(code: Code, message: str) -> bytes:
    """Return the error response, as JSON without a line end, to a line that could not be parsed."""
    return _refused(code, message).answer().data


def _refused(code: Code, message: str, id_json: str = "null", name: str = "") -> Request:
    return Request(name, id_json, MethodError(code, message))


def _invalid(why: str, id_json: str | None = None, name: str = "") -> Request:
    # Without an id it is not a request, and so not a notification: the specification says null then.
    return _refused(Code.INVALID_REQUEST, f"invalid request: {why}", id_json or "null", name)


# --- JSON in ---------------------------------------------------------------------------------------


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode

_BLANKS = " \t\r\n"


def _parsed(line: bytes) -> Any:
    """Parse JSON; the last of duplicate keys wins."""
    # Three checks, each more expensive than the one before.
    if (
        len(line) > DEPTH_LIMIT
        and line.count(b"[") + line.count(b"{") > DEPTH_LIMIT
        and _depth(line) > DEPTH_LIMIT
    ):
        raise ValueError(f"nested more than {DEPTH_LIMIT} deep")
    # The decoder's own way to skip blanks costs as much as the whole text of a ping.
    text = line.decode().strip(_BLANKS)
    document, end = _decode(text)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return document


def _depth(line: bytes) -> int:
    """Return how deep the brackets outside of strings are nested."""
    brackets = _STRINGS.sub(b"", line).translate(_DEPTHS, _NO_BRACKETS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


def _reason(fault: ValueError) -> str:
    if isinstance(fault, UnicodeDecodeError):
        return f"not UTF-8 at byte {fault.start}"
    if isinstance(fault, json.JSONDecodeError):
        return f"{fault.msg[:1].lower()}{fault.msg[1:]} at character {fault.pos}"
    # The rest of Python's message about too many digits is for its programmers.
    return str(fault).partition(" for integer")[0]


def _id_json(value: Any) -> str | None:
    kind = type(value)
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is str:
        return _to_json(value)
    # 1e999 is a number in JSON but infinite as a float: it can't be echoed.
    return repr(value) if kind is float and isfinite(value) else None


# --- params ----------------------------------------------------------------------------------------


def _arguments(
    name: str, params: tuple[Param, ...], given: dict[str, Any] | list[Any] | None
) -> list[object]:
    """Return a value for each declared parameter, in order."""
    if isinstance(given, list):
        if len(given) > len(params):
            raise _wrong(f"{len(given)} given by position; {_takes(name, params)}")
        given = {param.name: value for param, value in zip(params, given, strict=False)}
    elif given is None:
        given = {}
    values: list[object] = [_argument(param, given) for param in params]
    known = sum(param.name in given for param in params)
    if known < len(given):
        names = {param.name for param in params}
        unknown = next(each for each in given if each not in names)
        raise _wrong(f'"{visible(unknown, 60)}" is unknown; {_takes(name, params)}')
    return values


def _argument(param: Param, given: Mapping[str, Any]) -> str | float | None:
    value = given.get(param.name)
    match param.kind, value:
        case _, None if param.is_optional:
            return None
        case _, None if param.name not in given:
            raise _wrong(f'"{param.name}" is missing; it must be {param.kind.value}')
        case ParamKind.TEXT, str():
            # JSON allows lone surrogates, which UTF-8 can't hold.
            if not value.isascii() and (half := _SURROGATE.search(value)):
                said = f"has half a character (a lone surrogate) at {half.start()}"
                raise _wrong(f'"{param.name}" {said}')
            return value
        case ParamKind.NUMBER, int() | float() if type(value) is not bool:
            if abs(value) > _LARGEST:
                raise _wrong(f'"{param.name}" is too large')
            return float(value)
        case _:
            shown = _NAMES.get(type(value)) or _to_json(value)
            raise _wrong(f'"{param.name}" must be {param.kind.value}, not {shown}')


_SURROGATE = lazy_pattern("[\ud800-\udfff]")

# The largest double; JSON may hold a longer whole number, or 1e999.
_LARGEST = 1.7976931348623157e308

# How a wrong value is named; null, true and false name themselves.
_NAMES = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}


def _takes(name: str, params: tuple[Param, ...]) -> str:
    return f"{name} takes {', '.join(map(str, params)) or 'none'}"


def _wrong(why: str) -> MethodError:
    return MethodError(Code.INVALID_PARAMS, f"invalid params: {why}")


# --- JSON out --------------------------------------------------------------------------------------

_to_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def _utf8(text: str) -> bytes:
    """Encode JSON on one line for any reader; what UTF-8 can't hold is escaped."""
    if not text.isascii():
        for character, escape in _LINE_ENDS:
            text = text.replace(character, escape)
    # Lone surrogates occur in strings only, where this handler's escape is the same as JSON's.
    return text.encode("utf-8", "backslashreplace")
