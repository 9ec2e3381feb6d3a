"""JSON-RPC client: one connection to a server, a method for each call, an exception for each failure."""

import contextlib
import errno
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Self, TypeVar

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert
from msgspec.json import decode

from codingagent.errors import CodingAgentError, UsageError, WorkError
from codingagent.model.paths import shown
from codingagent.rpc.endpoints import Command, Endpoint, Listenable, Tcp, UnixSocket, Vsock
from codingagent.rpc.protocol import Code

# 004's host: a booting guest answers after some seconds.
_RETRY_EVERY_S = 0.1
_CONNECT_PATIENCE_S = 10.0
_CALL_PATIENCE_S = 30.0
# On Windows Ctrl-C counts between two waits.
_LOOK_S = 0.2
# A file of 10 MB whose every byte takes six characters of JSON.
_ANSWER_LIMIT_BYTES = 64 * 2**20

# Not there yet: the file, the listener or the guest.
_NOT_YET = (FileNotFoundError, ConnectionRefusedError, ConnectionResetError, TimeoutError, BlockingIOError)
T = TypeVar("T")
Patience = float | EllipsisType | None
"""How long a call waits, in seconds; None: without limit; ...: as the client does by default."""


class RpcError(CodingAgentError):
    """A call or the connection failed."""


class ConnectError(RpcError):
    """Nothing listens at the endpoint."""


class ClosedError(RpcError):
    """The connection ended before the answer came, or was closed."""


class CallTimeoutError(RpcError):
    """No answer came in time."""


class AnswerError(RpcError):
    """The bytes received are not an answer to the call."""


class RemoteError(RpcError):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{shown(message, 1000)} (code {code})")
        self.code = code
        self.message = message
        self.data = data


class ParseError(RemoteError):
    """The server received invalid JSON."""


class InvalidRequestError(RemoteError):
    """The server received JSON that is not a request, or too long a line."""


class MethodNotFoundError(RemoteError):
    """The server has no such method."""


class InvalidParamsError(RemoteError):
    """The parameters do not fit the method."""


class InternalError(RemoteError):
    """The method failed; the message says why."""


ERRORS: Mapping[int, type[RemoteError]] = {
    Code.PARSE_ERROR: ParseError,
    Code.INVALID_REQUEST: InvalidRequestError,
    Code.METHOD_NOT_FOUND: MethodNotFoundError,
    Code.INVALID_PARAMS: InvalidParamsError,
    Code.INTERNAL_ERROR: InternalError,
}


class ExecResult(Struct, frozen=True):
    """The result of a command; exit code -1: it could not start, and `stderr` says why."""

    exit_code: int
    stdout: str
    stderr: str


class FileEntry(Struct, frozen=True):
    """One name in a folder; the size is in bytes, 0 for folders."""

    name: str
    is_dir: bool
    size: int


class _Error(Struct):
    code: int
    message: str
    data: Any = None


class _Response(Struct):
    """A response; some servers write a null error beside the result."""

    id: Any
    result: Any = UNSET
    error: _Error | UnsetType | None = None


class Client:
    """A connection to a server; one call at a time, from any thread. Close it, or use it in `with`.

    A call waits `timeout_s` for its answer by default; None: without limit. `hang_up` closes the other end
    and returns why it ended, or an empty text.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        timeout_s: float | None = _CALL_PATIENCE_S,
        hang_up: Callable[[], str] = str,
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._hang_up = hang_up
        self._lock = threading.Lock()
        self._count = 0
        self._closed_because = ""

    @classmethod
    def connect(
        cls,
        endpoint: Endpoint,
        *,
        patience_s: float = _CONNECT_PATIENCE_S,
        timeout_s: float | None = _CALL_PATIENCE_S,
    ) -> Self:
        """Connect to a server, which may still be starting: retry for `patience_s`, ten times a second.

        ConnectError if nothing listens there; UsageError if nothing can: no such host, no vsock here.
        """
        if isinstance(endpoint, Command):
            return cls._over_command(endpoint, timeout_s)
        deadline = time.monotonic() + patience_s
        while True:
            left_s = max(deadline - time.monotonic(), _RETRY_EVERY_S)
            try:
                return cls(_dial(endpoint, left_s), timeout_s=timeout_s)
            except OSError as fault:
                why = fault.strerror or str(fault)
                # A server may be starting, a guest booting.
                if not isinstance(fault, _NOT_YET) and fault.errno != errno.ENODEV:
                    raise ConnectError(f"{endpoint} can't be reached: {why}") from fault
                if time.monotonic() + _RETRY_EVERY_S > deadline:
                    said = f"no server answered at {endpoint} within {patience_s:g} s: {why}"
                    raise ConnectError(said) from fault
            time.sleep(_RETRY_EVERY_S)

    @classmethod
    def _over_command(cls, endpoint: Command, timeout_s: float | None) -> Self:
        from codingagent.process.runner import Transport
        from codingagent.workspace.programs import split

        try:
            argv = split(endpoint.line)
        except ValueError as fault:
            raise UsageError(f"{endpoint.line!r} is not a command line: {fault}") from fault
        if not argv:
            raise UsageError("the command is empty")
        try:
            transport = Transport(argv)
        except WorkError as fault:
            raise ConnectError(str(fault)) from fault
        return cls(
            transport.connection,
            timeout_s=timeout_s,
            hang_up=lambda: f"{argv[0]} ended with exit code {transport.close()}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a call that waits in another thread raises ClosedError."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._close("it was closed")

    # --- methods -----------------------------------------------------------------------------------
    def call(
        self,
        method: str,
        params: Mapping[str, object] | Sequence[object] | None = None,
        *,
        timeout_s: Patience = ...,
    ) -> Any:
        """Call a method, with params by name or by position, and return its result."""
        if isinstance(timeout_s, EllipsisType):
            timeout_s = self._timeout_s
        with self._lock:
            if self._closed_because:
                raise ClosedError(f"the connection has ended: {self._closed_because}")
            self._count += 1
            request: dict[str, object] = {"jsonrpc": "2.0", "id": self._count, "method": method}
            if params is not None:
                request["params"] = params
            line = json.dumps(request, allow_nan=False).encode() + b"\n"
            try:
                response = self._response(_ask(self._connection, line, timeout_s))
            except TimeoutError:
                # Its answer may still come, and would be taken for that of the next call.
                self._close("a call took too long")
                raise CallTimeoutError(f"{method} gave no answer within {timeout_s:g} s") from None
            except BaseException as fault:
                why = getattr(fault, "strerror", "") or str(fault) or type(fault).__name__
                self._close(why)
                if isinstance(fault, OSError):
                    raise ClosedError(f"the connection ended: {self._closed_because}") from fault
                raise
        if error := response.error:
            raise ERRORS.get(error.code, RemoteError)(error.code, error.message, error.data)
        return response.result

    def ping(self) -> None:
        self.call("ping", {})

    def exec(self, cmd: str, *, limit_s: float | None = None, timeout_s: Patience = ...) -> ExecResult:
        """Run a shell command, for `limit_s` (exit code 124) or the server's own limit at most."""
        return self._run("exec", {"cmd": cmd}, limit_s, timeout_s)

    def exec_code(
        self, lang: str, code: str, *, limit_s: float | None = None, timeout_s: Patience = ...
    ) -> ExecResult:
        """Run a program in a language (python, node, bash, sh); arguments as for `exec`."""
        return self._run("exec_code", {"lang": lang, "code": code}, limit_s, timeout_s)

    def read_file(self, path: str) -> str:
        return _typed(self.call("read_file", {"path": path}), str, "content")

    def write_file(self, path: str, content: str) -> None:
        self.call("write_file", {"path": path, "content": content})

    def list_dir(self, path: str) -> tuple[FileEntry, ...]:
        found = self.call("list_dir", {"path": path})
        return _typed(found, tuple[FileEntry, ...], "entries")

    def _run(
        self, method: str, params: dict[str, object], limit_s: float | None, timeout_s: Patience
    ) -> ExecResult:
        if limit_s is not None:
            params["timeout"] = limit_s
        return _typed(self.call(method, params, timeout_s=timeout_s), ExecResult)

    # --- the wire ----------------------------------------------------------------------------------
    def _response(self, line: bytes) -> _Response:
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the server closed the connection")
        try:
            response = decode(line, type=_Response)
        except (ValueError, RecursionError) as fault:
            said = shown(line[:400].decode("utf-8", "replace"), 100)
            why = f"the answer is not a JSON-RPC 2.0 response: {said} ({shown(str(fault))})"
            raise AnswerError(why) from fault
        if (response.result is UNSET) == (not response.error):
            raise AnswerError("the answer is not a JSON-RPC 2.0 response: a result, or an error")
        # An error about an unreadable line has no id; with one call at a time it must be for this one.
        if response.id != self._count and (response.id is not None or not response.error):
            raise AnswerError("the answer belongs to another call")
        return response

    def _close(self, why: str) -> None:
        """Close the connection, once; the caller holds the lock."""
        if not self._closed_because:
            self._connection.close()
            self._closed_because = self._hang_up() or why


def _typed(result: Any, kind: type[T], name: str = "") -> T:
    try:
        return convert(result[name] if name else result, kind)
    except (KeyError, TypeError, ValidationError) as fault:
        raise AnswerError(f"the answer is not as it should be: {shown(str(fault))}") from fault


def _ask(connection: socket.socket, line: bytes, timeout_s: float | None) -> bytes:
    """Send a line and return the one that answers it, without its end if the server closed.

    OSError if the connection failed or the time is over; AnswerError for more than one line.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    connection.settimeout(timeout_s)
    connection.sendall(line)
    said = bytearray()
    while not said.endswith(b"\n"):
        left_s = _LOOK_S if deadline is None else deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(min(left_s, _LOOK_S))
        try:
            piece = connection.recv(2**16)
        except TimeoutError:
            continue
        if not piece:
            break
        said += piece
        if b"\n" in piece[:-1]:
            raise AnswerError("the server sent more than the answer")
        if len(said) > _ANSWER_LIMIT_BYTES:
            raise AnswerError(f"the answer is longer than {_ANSWER_LIMIT_BYTES // 2**20} MiB")
    return bytes(said)


def _dial(endpoint: Listenable, timeout_s: float) -> socket.socket:
    """Connect to an endpoint; an OSError means that nothing listens there, a UsageError that nothing can."""
    with contextlib.ExitStack() as stack:
        if isinstance(endpoint, Tcp):
            address = (endpoint.host, endpoint.port)
            try:
                connection = stack.enter_context(socket.create_connection(address, timeout_s))
            except socket.gaierror as fault:
                unknown = f"host {endpoint.host!r} is unknown: {fault.strerror}"
                raise UsageError(unknown) from fault
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.token is not None:
                line = b"TOKEN %s\n" % endpoint.token.encode("ascii", "replace")
                if _ask(connection, line, timeout_s) != b"OK\n":
                    raise PermissionError(errno.EACCES, "the server rejected the token")
        else:
            name, kind, at = "AF_UNIX", "socket files", getattr(endpoint, "path", "")
            if isinstance(endpoint, Vsock):
                name, kind, at = "AF_VSOCK", "vsock", (endpoint.cid, endpoint.port)
            if (family := getattr(socket, name, None)) is None:
                raise UsageError(f"this system has no {kind}; use TCP")
            connection = stack.enter_context(socket.socket(family))
            connection.settimeout(timeout_s)
            connection.connect(at)
            if isinstance(endpoint, UnixSocket) and endpoint.guest_port is not None:
                # A hypervisor is asked for a port of its guest.
                line = b"CONNECT %d\n" % endpoint.guest_port
                said = _ask(connection, line, timeout_s)
                if not said.endswith(b"\n"):
                    why = f"the guest does not listen on port {endpoint.guest_port}"
                    raise ConnectionResetError(why)
                if not said.startswith(b"OK "):
                    why = f"the handshake failed: {shown(said.decode(errors='replace'))}"
                    raise ConnectionAbortedError(why)
        stack.pop_all()
        return connection
