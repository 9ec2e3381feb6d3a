"""Connect to a server: a socket file, a TCP port, or a vsock of a guest or host."""

import errno
import socket
import time
from collections.abc import Callable
from typing import assert_never

from codingagent.errors import UsageError
from codingagent.model.plain_text import visible
from codingagent.rpc.endpoints import Listenable, Tcp, UnixSocket, Vsock
from codingagent.rpc.framing import TOKEN_TAKEN, token_line

# Not there yet: the file, the listener or the guest.
_NOT_YET = (
    *(FileNotFoundError, ConnectionRefusedError, ConnectionResetError, TimeoutError),
    BlockingIOError,
)

# Zero would mean no waiting at all, which is another error.
_SHORTEST_S = 0.001

_REPLY_LIMIT_BYTES = 256


def may_come(fault: OSError) -> bool:
    """Return whether a retry may succeed: a server may be starting, a guest booting."""
    return isinstance(fault, _NOT_YET) or fault.errno == errno.ENODEV


def dial(endpoint: Listenable, timeout_s: float) -> socket.socket:
    """Connect to an endpoint.

    Raises:
        OSError: if nothing listens there.
        UsageError: if nothing can: no such host, or no vsock here.
    """
    deadline = time.monotonic() + timeout_s
    match endpoint:
        case UnixSocket():
            connection = _opened(socket.AF_UNIX, endpoint.path, timeout_s)
            if endpoint.guest_port is not None:
                _greet(connection, lambda: _shake_hands(connection, endpoint.guest_port, deadline))
            return connection
        case Tcp():
            try:
                connection = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
            except socket.gaierror as fault:
                raise UsageError(f"host {endpoint.host!r} is unknown: {fault.strerror}") from fault
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.token is not None:
                _greet(connection, lambda: _present(connection, endpoint.token or "", deadline))
            return connection
        case Vsock():
            if not hasattr(socket, "AF_VSOCK"):
                raise UsageError("this system has no vsock; use a socket file or TCP")
            return _opened(socket.AF_VSOCK, (endpoint.cid, endpoint.port), timeout_s)
        case _:
            assert_never(endpoint)


def _opened(family: int, address: str | tuple[int, int], timeout_s: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _greet(connection: socket.socket, say: Callable[[], None]) -> None:
    try:
        say()
    except BaseException:
        connection.close()
        raise


def _shake_hands(connection: socket.socket, port: int | None, deadline: float) -> None:
    """Ask a hypervisor for a port of its guest."""
    said = _ask(connection, b"CONNECT %d\n" % (port or 0), deadline)
    if not said.endswith(b"\n"):
        raise ConnectionResetError(f"the guest does not listen on port {port}")
    if not said.startswith(b"OK "):
        raise ConnectionAbortedError(
            f"the handshake failed: {visible(said.decode(errors='replace'))}"
        )


def _present(connection: socket.socket, token: str, deadline: float) -> None:
    """Present a token to a server."""
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
