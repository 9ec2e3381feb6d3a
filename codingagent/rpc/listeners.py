"""Listening sockets: a file for its owner alone, a port of this machine, a vsock port to its host.

If an endpoint can't be used, a UsageError tells the person how to fix it.
"""

import contextlib
import errno
import ipaddress
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from typing import assert_never

from codingagent.errors import UsageError, disk_errors
from codingagent.rpc.endpoints import Listenable, Tcp, UnixSocket, Vsock
from codingagent.rpc.streams import SocketStream

# Clients that may wait for accept, which is quick; the system has its own limit.
_WAITING = 1024

# sockaddr_un has 108 bytes on Linux, the last of them NUL.
_PATH_LIMIT_BYTES = 107

# Two servers that start at once check a stale socket one after the other, which is quick.
_FOLDER_PATIENCE_S = 2.0


class Listener:
    """A listening socket, which it owns; `forget` is called by `close`, to remove the file."""

    def __init__(
        self,
        listening: socket.socket,
        endpoint: Listenable,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket = listening
        self._socket.setblocking(False)
        self._forget = forget
        self.endpoint = endpoint

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> SocketStream:
        """Return the next connection.

        Raises:
            OSError: if there is none (BlockingIOError), resources ran out, or it belongs to another user
                (PermissionError).
        """
        connection, _ = self._socket.accept()
        if isinstance(self.endpoint, UnixSocket):
            _refuse_others(connection)
        connection.setblocking(True)
        if isinstance(self.endpoint, Tcp):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # On a vsock, too, a peer that has closed looks the same as one that has only finished.
        return SocketStream(connection, ends_with_input=not isinstance(self.endpoint, UnixSocket))

    def close(self) -> None:
        self._forget()
        self._socket.close()


def _refuse_others(connection: socket.socket) -> None:
    """Close a connection from another user, where the system identifies the peer.

    The file's mode already keeps others out, unless someone has changed it. Root may do anything anyway.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    if uid not in (0, os.geteuid()):
        connection.close()
        raise PermissionError(errno.EACCES, f"it came from user {uid}")


def listen(endpoint: Listenable) -> Listener:
    """Open a listening socket.

    Raises:
        UsageError: if the endpoint can't or must not be used here.
    """
    match endpoint:
        case UnixSocket():
            return _listen_on_file(endpoint)
        case Tcp():
            return _listen_on_port(endpoint)
        case Vsock():
            return _listen_on_vsock(endpoint)
        case _:
            assert_never(endpoint)


# --- a file ----------------------------------------------------------------------------------------


def _listen_on_file(endpoint: UnixSocket) -> Listener:
    path = endpoint.path
    size = len(os.fsencode(path))
    if not path or "\0" in path:
        raise UsageError(f"{path!r} is not a path for a socket")
    if size > _PATH_LIMIT_BYTES:
        raise UsageError(
            f"{path} is too long for a socket: {size} bytes, at most {_PATH_LIMIT_BYTES};"
            " name it from another folder"
        )
    # Absolute, so that it is found at the end even if the working directory has changed.
    whole = os.path.abspath(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with disk_errors(f"{path} can't be listened on", UsageError), contextlib.ExitStack() as stack:
        stack.callback(listening.close)
        with _locked(os.path.dirname(whole)):
            _make_way(path)
            _bind(listening, path, endpoint, mask=0o177)
            ours = os.lstat(whole)
        stack.pop_all()
    return Listener(listening, endpoint, lambda: _remove(whole, ours))


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock a folder against another starting server, which would take the new socket for a stale one."""
    import fcntl

    with disk_errors(f"{folder} can't hold a socket", UsageError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + _FOLDER_PATIENCE_S
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(f"{folder} is locked by another program") from None
                time.sleep(0.01)
            else:
                break
        yield
    finally:
        os.close(handle)


def _make_way(path: str) -> None:
    """Remove a socket that nothing listens on; refuse to replace anything else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "not a socket"
        raise UsageError(f"{path} already exists and is {kind}; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.setblocking(False)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass  # its queue of clients is full
        except OSError as fault:
            raise UsageError(f"{path} can't be checked: {fault.strerror or fault}") from fault
    raise UsageError(f"another server listens on {path}; stop it, or name another path")


def _remove(path: str, ours: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        if os.path.samestat(os.lstat(path), ours):
            os.unlink(path)


# --- ports -----------------------------------------------------------------------------------------


def _listen_on_port(endpoint: Tcp) -> Listener:
    family, address = _loopback(endpoint)
    listening = socket.socket(family, socket.SOCK_STREAM)
    # Otherwise a server that was just stopped blocks its own port for a minute.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _bind(listening, (address, endpoint.port), endpoint)
    return Listener(listening, Tcp(address, listening.getsockname()[1]))


def _loopback(endpoint: Tcp) -> tuple[socket.AddressFamily, str]:
    """Return the address of a name of this machine; no other name is looked up."""
    host = endpoint.host
    try:
        addresses = [ipaddress.ip_address(host)]
    except ValueError:
        addresses = [] if host.lower() != "localhost" else _addresses_of(host)
    # Since Python 3.13 ::ffff:127.0.0.1 counts as loopback; which socket would reach it differs by system.
    is_plain = all(a.is_loopback and not getattr(a, "ipv4_mapped", None) for a in addresses)
    if not (addresses and is_plain):
        raise UsageError(
            f"{host!r} is not a loopback address: anyone who reaches the port can run commands."
            " Listen on 127.0.0.1, and connect from elsewhere through a tunnel:"
            f" ssh -L {endpoint.port}:127.0.0.1:{endpoint.port} HOST"
        )
    first = min(addresses, key=lambda address: address.version)
    return (socket.AF_INET if first.version == 4 else socket.AF_INET6), str(first)


def _addresses_of(host: str) -> "list[ipaddress.IPv4Address | ipaddress.IPv6Address]":
    with disk_errors(f"host {host} is unknown", UsageError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(each[4][0]) for each in found]


def _listen_on_vsock(endpoint: Vsock) -> Listener:
    try:
        listening = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    except (AttributeError, OSError) as fault:
        raise UsageError(
            "this system has no vsock: it is for a Linux guest of a virtual machine"
            " (module vmw_vsock_virtio_transport); use a socket file or TCP"
        ) from fault
    _bind(listening, (socket.VMADDR_CID_ANY, endpoint.port), endpoint)
    return Listener(listening, endpoint)


def _bind(
    listening: socket.socket,
    address: str | tuple[object, int],
    endpoint: Listenable,
    mask: int | None = None,
) -> None:
    # The file has the right mode from the start. Nothing else creates files yet.
    before = None if mask is None else os.umask(mask)
    try:
        listening.bind(address)
        listening.listen(_WAITING)
    except (OSError, OverflowError) as fault:
        listening.close()
        why = fault.strerror if isinstance(fault, OSError) else None
        if isinstance(fault, OSError) and fault.errno == errno.EADDRINUSE:
            why = "another program listens there"
        raise UsageError(f"{endpoint} can't be listened on: {why or fault}") from fault
    finally:
        if before is not None:
            os.umask(before)
