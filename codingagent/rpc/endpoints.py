"""Where a server listens and a client connects, and a port's token; a UsageError says why it can't be."""

import contextlib
import errno
import os
import re
import secrets
import select
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from codingagent.errors import UsageError, disk_errors
from codingagent.model.patterns import lazy_pattern

_HOST_AND_PORT = lazy_pattern(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):([0-9]{1,5})", re.ASCII)
# <linux/vm_sockets.h>: the machine that runs the guest.
HOST_CID = 2
# sockaddr_un has 108 bytes on Linux, the last of them NUL.
_PATH_LIMIT_BYTES = 107
# Clients that may wait for accept, which is quick; the system has its own limit.
WAITING = 1024


class UnixSocket(Struct, frozen=True):
    path: str
    guest_port: int | None = None
    """A client begins with `CONNECT <port>`: for a hypervisor that maps a vsock to a file (Firecracker)."""

    def __str__(self) -> str:
        return f"socket {self.path}"


class Tcp(Struct, frozen=True):
    """A port of this machine; 0 lets the system choose. A client names the token that the server expects."""

    host: str
    port: int
    token: str | None = None

    def __str__(self) -> str:
        return f"tcp {f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    __repr__ = __str__  # without the token


class Vsock(Struct, frozen=True):
    """A port between a virtual machine and its host; a server accepts calls to any `cid` of its own."""

    port: int
    cid: int = HOST_CID

    def __str__(self) -> str:
        return f"vsock port {self.port}"


class Command(Struct, frozen=True):
    """A program whose standard input and output are the connection: `ssh HOST codingagent serve --stdio`."""

    line: str

    def __str__(self) -> str:
        return f"command {self.line!r}"


Listenable = UnixSocket | Tcp | Vsock
Endpoint = Listenable | Command


def tcp_from(words: str) -> Tcp:
    """Parse `HOST:PORT`; an IPv6 address is in brackets. UsageError if the text has another form."""
    found = _HOST_AND_PORT.fullmatch(words)
    if found is None or int(found[3]) > 0xFFFF:
        raise UsageError(f"{words!r} is not HOST:PORT; write 127.0.0.1:8000, or [::1]:8000")
    return Tcp(found[1] or found[2], int(found[3]))


# --- the token: every user of this machine can reach a port; only its owner has the token ----------

_TOKEN = lazy_pattern(r"[\x21-\x7e]{16,200}")


def token_for_server(file: Path | None) -> tuple[str, str]:
    """Return a server's token, from a file that is made if missing, or new; and what to say about it."""
    new = secrets.token_hex(16)  # 128 bits can't be guessed through a socket
    if file is None:
        return new, f"token {new}"
    with (
        disk_errors(f"{file} can't be written", UsageError),
        contextlib.suppress(FileExistsError),
        open(file, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as made,
    ):
        made.write(f"{new}\n")
    return read_token(file), f"the token is in {file}"


def read_token(file: Path) -> str:
    """Return the token in a file; UsageError if it holds none, or others may read it."""
    with disk_errors(f"{file} can't be read", UsageError):
        mode = file.stat().st_mode
        # A named pipe would block, and a device may have no end.
        text = file.read_text("ascii", "replace").strip() if stat.S_ISREG(mode) else ""
    if text and os.name != "nt" and mode & 0o077:
        raise UsageError(f"others can read {file}; make it yours alone: chmod 600 {file}")
    if not _TOKEN.fullmatch(text):
        raise UsageError(
            f"{file} does not hold a token: 16 to 200 letters, digits or signs on one line;"
            " remove it, and `serve` creates a new one"
        )
    return text


# --- listening -------------------------------------------------------------------------------------
class Listener:
    """A listening socket, which it owns, and its file, which goes with it."""

    def __init__(self, listening: socket.socket, endpoint: Listenable) -> None:
        self.socket = listening
        self.endpoint = endpoint
        # Absolute, so that it is found at the end even if the working directory has changed.
        self._file = os.path.abspath(endpoint.path) if isinstance(endpoint, UnixSocket) else ""
        self._state = os.lstat(self._file) if self._file else None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._state and os.path.samestat(os.lstat(self._file), self._state):
                os.unlink(self._file)
        self.socket.close()


def is_from_another_user(connection: socket.socket) -> bool:
    """Return whether another user connected to a file, where the system identifies the peer.

    The file's mode already keeps others out, unless someone has changed it. Root may do anything anyway.
    """
    if sys.platform == "linux" and connection.family == socket.AF_UNIX:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", peer)[1] not in {0, os.geteuid()}
    return False


def listen(endpoint: Listenable) -> Listener:
    """Open a listening socket; UsageError if the endpoint can't or must not be used here."""
    if isinstance(endpoint, UnixSocket):
        if sys.platform == "win32":
            raise UsageError("socket files are for Linux and macOS; use --tcp 127.0.0.1:PORT")
        else:  # noqa: RET506  # the type checker follows it
            return _listen_on_file(endpoint)
    if isinstance(endpoint, Tcp):
        host = _loopback(endpoint)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Of another protocol, or of none, asyncio holds small pieces of an answer back, for 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform != "win32":
            # Otherwise a server that was just stopped blocks its own port for a minute.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(listening, (host, endpoint.port), endpoint)
        return Listener(listening, Tcp(host, listening.getsockname()[1]))
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            listening = socket.socket(socket.AF_VSOCK)
            _bind(listening, (socket.VMADDR_CID_ANY, endpoint.port), endpoint)
            return Listener(listening, endpoint)
    raise UsageError(
        "this system has no vsock: it is for a Linux guest of a virtual machine"
        " (module vmw_vsock_virtio_transport); use a socket file or TCP"
    )


if sys.platform != "win32":
    import fcntl

    def _listen_on_file(endpoint: UnixSocket) -> Listener:
        path = endpoint.path
        if not path or "\0" in path:
            raise UsageError(f"{path!r} is not a path for a socket")
        if (size := len(os.fsencode(path))) > _PATH_LIMIT_BYTES:
            said = f"{path} is too long for a socket: {size} bytes, at most {_PATH_LIMIT_BYTES}"
            raise UsageError(f"{said}; name it from another folder")
        folder = os.path.dirname(os.path.abspath(path))
        with disk_errors(f"{folder} can't hold a socket", UsageError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, handle)
            # Another starting server would take the new socket for a stale one.
            fcntl.flock(handle, fcntl.LOCK_EX)
            with disk_errors(f"{path} can't be listened on", UsageError):
                _make_way(path)
            listening = socket.socket(socket.AF_UNIX)
            _bind(listening, path, endpoint)
            return Listener(listening, endpoint)

    def _make_way(path: str) -> None:
        """Remove a socket that nothing listens on; refuse to replace anything else."""
        with contextlib.suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if not stat.S_ISSOCK(mode):
                kind = "a link" if stat.S_ISLNK(mode) else "not a socket"
                raise UsageError(f"{path} already exists and is {kind}; name another path")
            with socket.socket(socket.AF_UNIX) as trial:
                trial.setblocking(False)
                try:
                    trial.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
                    return
                except BlockingIOError:
                    pass  # its queue of clients is full
            raise UsageError(f"another server listens on {path}; stop it, or name another path")


def _loopback(endpoint: Tcp) -> str:
    """Return the address of a name of this machine; no other name is looked up."""
    import ipaddress

    host = endpoint.host
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
        # Since Python 3.13 ::ffff:127.0.0.1 counts as loopback; which socket reaches it differs by system.
        if address.is_loopback and not getattr(address, "ipv4_mapped", None):
            return str(address)
    raise UsageError(
        f"{host!r} is not a loopback address: anyone who reaches the port can run commands."
        " Listen on 127.0.0.1, and connect from elsewhere through a tunnel:"
        f" ssh -L {endpoint.port}:127.0.0.1:{endpoint.port} HOST"
    )


def _bind(listening: socket.socket, address: str | tuple[object, int], endpoint: Listenable) -> None:
    try:
        listening.bind(address)
        if isinstance(address, str):
            os.chmod(address, 0o600)  # nobody can connect before it listens
        listening.listen(WAITING)
        listening.setblocking(False)
    except (OSError, OverflowError) as fault:
        listening.close()
        why = getattr(fault, "strerror", None) or str(fault)
        if isinstance(fault, OSError) and fault.errno == errno.EADDRINUSE:
            why = "another program listens there"
        raise UsageError(f"{endpoint} can't be listened on: {why}") from fault


class StandardStreams:
    """Standard input and output, which two threads carry to and from a socket.

    They may be files or pipes that other processes share, so they stay in blocking mode. The null device
    and standard error replace them: anything else that is printed, by this program or by a command, is not
    an answer.
    """

    def __init__(self) -> None:
        self._input, self._output = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)

    def connect(self, ended: Callable[[], object]) -> socket.socket:
        """Return the server's end; `ended` is called after the last answer is written."""
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)

        def take() -> None:
            with contextlib.suppress(OSError):
                while piece := os.read(self._input, 2**16):
                    ours.sendall(piece)
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_WR)

        def give() -> None:
            with contextlib.suppress(OSError):
                while not self._is_unread(ours) and (piece := ours.recv(2**16)):
                    while piece:
                        piece = piece[os.write(self._output, piece) :]
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            ended()

        for work in (take, give):
            threading.Thread(target=work, daemon=True).start()
        return theirs

    def _is_unread(self, ours: socket.socket) -> bool:
        """Wait for an answer; return whether nothing reads the output any more."""
        if sys.platform == "win32":
            return False
        else:  # noqa: RET505  # the type checker follows it
            poll = select.poll()
            poll.register(ours, select.POLLIN)
            poll.register(self._output, select.POLLHUP)  # macOS reports none unasked
            gone = select.POLLHUP | select.POLLERR  # of a terminal macOS says POLLNVAL
            return any(of == self._output and event & gone for of, event in poll.poll())
