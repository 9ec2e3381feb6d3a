"""JSON-RPC client: one connection to a server, a method for each call, an exception for each failure."""

import contextlib
import errno
import json
import shlex
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Self, TypeVar, assert_never

from msgspec import Struct, ValidationError, convert

from codingagent.errors import CodingAgentError, UsageError, WorkError
from codingagent.model.plain_text import visible
from codingagent.rpc.endpoints import Command, Endpoint, Listenable, Tcp, UnixSocket, Vsock
from codingagent.rpc.framing import TOKEN_TAKEN, LineBuffer, TooLong, token_line
from codingagent.rpc.protocol import Code

# 004's host: a booting guest answers after some seconds.
_RETRY_EVERY_S = 0.1
_CONNECT_PATIENCE_S = 10.0
_CALL_PATIENCE_S = 30.0

# A file of 10 MB whose every byte takes six characters of JSON.
_ANSWER_LIMIT_BYTES = 64 * 2**20

_CHUNK_BYTES = 64 * 1024

# Not there yet: the file, the listener or the guest.
_NOT_YET = (
    *(FileNotFoundError, ConnectionRefusedError, ConnectionResetError, TimeoutError),
    BlockingIOError,
)

# Zero would mean no waiting at all, which is another error.
_SHORTEST_S = 0.001

_REPLY_LIMIT_BYTES = 256

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
        super().__init__(f"{visible(message, 1000)} (code {code})")
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
        self._lines = LineBuffer(_ANSWER_LIMIT_BYTES)
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

        Raises:
            ConnectError: if nothing listens there.
            UsageError: if nothing can: no such host, or no vsock here.
        """
        deadline = time.monotonic() + patience_s
        if isinstance(endpoint, Command):
            return cls._over_command(endpoint, timeout_s)
        while True:
            try:
                connection = _dial(endpoint, max(deadline - time.monotonic(), _RETRY_EVERY_S))
            except OSError as fault:
                why = fault.strerror or str(fault)
                if not _may_come(fault):
                    raise ConnectError(f"{endpoint} can't be reached: {why}") from fault
                if time.monotonic() + _RETRY_EVERY_S > deadline:
                    said = f"no server answered at {endpoint} within {patience_s:g} s: {why}"
                    raise ConnectError(said) from fault
            else:
                return cls(connection, timeout_s=timeout_s)
            time.sleep(_RETRY_EVERY_S)

    @classmethod
    def _over_command(cls, endpoint: Command, timeout_s: float | None) -> Self:
        from codingagent.process.runner import Transport

        try:
            argv = shlex.split(endpoint.line)
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
        """Call a method, with params by name or by position, and return its result.

        Raises:
            RpcError: see the package's list of exceptions.
        """
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
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            try:
                answer = self._exchange(line, deadline)
            except TimeoutError:
                # Its answer may still come, and would be taken for that of the next call.
                self._close("a call took too long")
                raise CallTimeoutError(f"{method} gave no answer within {timeout_s:g} s") from None
            except OSError as fault:
                self._close(fault.strerror or str(fault))
                raise ClosedError(f"the connection ended: {self._closed_because}") from fault
            except BaseException as fault:
                self._close(str(fault) or type(fault).__name__)
                raise
        return _result(answer)

    def ping(self) -> None:
        """Check that the server answers."""
        _field(self.call("ping", {}), "pong", bool)

    def exec(
        self, cmd: str, *, limit_s: float | None = None, timeout_s: Patience = ...
    ) -> ExecResult:
        """Run a shell command.

        The server ends it after `limit_s` (exit code 124), or after its own limit.
        """
        return self._run("exec", {"cmd": cmd}, limit_s, timeout_s)

    def exec_code(
        self, lang: str, code: str, *, limit_s: float | None = None, timeout_s: Patience = ...
    ) -> ExecResult:
        """Run a program in a language (python, node, bash, sh); arguments as for `exec`."""
        return self._run("exec_code", {"lang": lang, "code": code}, limit_s, timeout_s)

    def read_file(self, path: str) -> str:
        """Return a file's text."""
        return _field(self.call("read_file", {"path": path}), "content", str)

    def write_file(self, path: str, content: str) -> None:
        """Write a whole file."""
        _field(self.call("write_file", {"path": path, "content": content}), "success", bool)

    def list_dir(self, path: str) -> tuple[FileEntry, ...]:
        """Return the contents of a folder."""
        return _field(self.call("list_dir", {"path": path}), "entries", tuple[FileEntry, ...])

    def _run(
        self, method: str, params: dict[str, object], limit_s: float | None, timeout_s: Patience
    ) -> ExecResult:
        if limit_s is not None:
            params["timeout"] = limit_s
        result = self.call(method, params, timeout_s=timeout_s)
        return ExecResult(
            _field(result, "exit_code", int),
            _field(result, "stdout", str),
            _field(result, "stderr", str),
        )

    # --- the wire ----------------------------------------------------------------------------------

    def _exchange(self, line: bytes, deadline: float | None) -> dict[str, Any]:
        self._connection.settimeout(_left(deadline))
        self._connection.sendall(line)
        while True:
            self._connection.settimeout(_left(deadline))
            piece = self._connection.recv(_CHUNK_BYTES)
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            lines = self._lines.receive(piece)
            if lines:
                return self._response(lines)

    def _response(self, lines: Sequence[bytes | TooLong]) -> dict[str, Any]:
        if len(lines) > 1:
            raise AnswerError("the server sent more than the answer")
        [line] = lines
        if isinstance(line, TooLong):
            raise AnswerError(f"the answer is longer than {_ANSWER_LIMIT_BYTES // 2**20} MiB")
        try:
            response = json.loads(line)
        except (ValueError, RecursionError) as fault:
            shown = visible(line[:400].decode("utf-8", "replace"), 100)
            raise AnswerError(f"the answer is not JSON: {shown}") from fault
        if not isinstance(response, dict) or ("result" in response) == _has_error(response):
            raise AnswerError("the answer is not a JSON-RPC 2.0 response")
        # An error about an unreadable line has no id; with one call at a time it must be for this one.
        if response.get("id") != self._count and not (
            response.get("id") is None and _has_error(response)
        ):
            raise AnswerError("the answer belongs to another call")
        return response

    def _close(self, why: str) -> None:
        """Close the connection, once; the caller holds the lock."""
        if self._closed_because:
            return
        self._connection.close()
        self._closed_because = self._hang_up() or why


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _has_error(response: Mapping[str, Any]) -> bool:
    # Some servers write a null error beside the result.
    return response.get("error") is not None


def _result(response: Mapping[str, Any]) -> Any:
    if not _has_error(response):
        return response["result"]
    error = response["error"]
    code, message = _field(error, "code", int), _field(error, "message", str)
    raise ERRORS.get(code, RemoteError)(code, message, error.get("data"))


def _field(value: Any, name: str, kind: type[T]) -> T:
    try:
        return convert(value[name], kind)
    except (KeyError, TypeError, ValidationError) as fault:
        raise AnswerError(f'the answer has no "{name}" as it should be') from fault


# --- connecting ------------------------------------------------------------------------------------


def _may_come(fault: OSError) -> bool:
    """Return whether a retry may succeed: a server may be starting, a guest booting."""
    return isinstance(fault, _NOT_YET) or fault.errno == errno.ENODEV


def _dial(endpoint: Listenable, timeout_s: float) -> socket.socket:
    """Connect to an endpoint; an OSError means that nothing listens there, a UsageError that nothing can."""
    deadline = time.monotonic() + timeout_s
    with contextlib.ExitStack() as stack:
        match endpoint:
            case UnixSocket():
                connection = stack.enter_context(socket.socket(socket.AF_UNIX))
                connection.settimeout(timeout_s)
                connection.connect(endpoint.path)
                if endpoint.guest_port is not None:
                    _shake_hands(connection, endpoint.guest_port, deadline)
            case Tcp():
                address = (endpoint.host, endpoint.port)
                try:
                    connection = stack.enter_context(socket.create_connection(address, timeout_s))
                except socket.gaierror as fault:
                    unknown = f"host {endpoint.host!r} is unknown: {fault.strerror}"
                    raise UsageError(unknown) from fault
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if endpoint.token is not None:
                    _present(connection, endpoint.token, deadline)
            case Vsock():
                if not hasattr(socket, "AF_VSOCK"):
                    raise UsageError("this system has no vsock; use a socket file or TCP")
                connection = stack.enter_context(socket.socket(socket.AF_VSOCK))
                connection.settimeout(timeout_s)
                connection.connect((endpoint.cid, endpoint.port))
            case _:
                assert_never(endpoint)
        stack.pop_all()
        return connection


def _shake_hands(connection: socket.socket, port: int, deadline: float) -> None:
    """Ask a hypervisor for a port of its guest."""
    said = _ask(connection, b"CONNECT %d\n" % port, deadline)
    if not said.endswith(b"\n"):
        raise ConnectionResetError(f"the guest does not listen on port {port}")
    if not said.startswith(b"OK "):
        raise ConnectionAbortedError(
            f"the handshake failed: {visible(said.decode(errors='replace'))}"
        )


def _present(connection: socket.socket, token: str, deadline: float) -> None:
    if _ask(connection, token_line(token), deadline) != TOKEN_TAKEN:
        raise PermissionError(errno.EACCES, "the server rejected the token")


def _ask(connection: socket.socket, line: bytes, deadline: float) -> bytes:
    """Send a line and return the line that answers it; without a line end if there was none."""
    connection.sendall(line)
    said = b""
    while not said.endswith(b"\n"):
        connection.settimeout(max(deadline - time.monotonic(), _SHORTEST_S))
        # One byte at a time: the bytes after the line belong to the next reader.
        byte = connection.recv(1)
        if not byte or len(said) > _REPLY_LIMIT_BYTES:
            break
        said += byte
    return said
