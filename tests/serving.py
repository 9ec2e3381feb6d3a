"""What the tests of the RPC server and of its client share: a server beside the test, and its methods."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codingagent.rpc.endpoints import Listenable, Tcp, UnixSocket, listen
from codingagent.rpc.protocol import Code, MethodError, method
from codingagent.rpc.server import Server
from tests.helpers import HANG_S


class Doubles:
    """Methods that echo, wait until they are cancelled, and fail; they count what happens to them."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._world.cancels += 1
        self._cancelled.set()
        if self._world.cancel_fails:
            raise KeyError("ours")

    def wait(self) -> str:
        self._world.waiting += 1
        try:
            ended = self._cancelled.wait(10 * HANG_S)
        finally:
            self._world.waiting -= 1
        return "cancelled" if ended else "not cancelled"

    def pause(self, number: float) -> float:
        self._cancelled.wait(number)
        return number

    def count(self) -> int:
        self._world.counted += 1
        return self._world.counted

    def deny(self, text: str) -> None:
        raise MethodError(Code.INVALID_PARAMS, text)

    def stumble(self) -> None:
        raise KeyError("ours\x1b[2J")


def _ping(_: object) -> dict[str, bool]:
    return {"pong": True}


def _echo(_: object, text: str) -> str:
    return text


def _big(_: object, number: float) -> str:
    return "x" * int(number)


TABLE = {
    "ping": method(_ping, is_quick=True),
    "echo": method(_echo, is_quick=True),
    "big": method(_big),
    "wait": method(Doubles.wait),
    "pause": method(Doubles.pause),
    "deny": method(Doubles.deny),
    "stumble": method(Doubles.stumble),
    "count": method(Doubles.count),
}


@dataclass
class World:
    """What happened to the methods of all connections."""

    opened: int = 0
    closed: int = 0
    waiting: int = 0
    cancels: int = 0
    counted: int = 0
    cancel_fails: bool = False
    fault: Exception | None = None
    log: list[str] = field(default_factory=list)

    def note(self, line: str, /, *values: object) -> None:
        """Take a line of the server's log."""
        self.log.append(line % values if values else line)

    @contextlib.contextmanager
    def open_methods(self) -> Iterator[Doubles]:
        if self.fault is not None:
            raise self.fault
        self.opened += 1
        try:
            yield Doubles(self)
        finally:
            self.closed += 1


@contextlib.contextmanager
def beside(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """Does work in a thread while the block runs, and fails if it does not end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield thread
    thread.join(HANG_S)
    assert not thread.is_alive()


@contextlib.contextmanager
def server_at(endpoint: Listenable, world: World, *, token: str | None = None) -> Iterator[Listenable]:
    """Runs a server beside the test; gives where it listens. Told to stop, it must end."""
    listener = listen(endpoint)
    server = Server(TABLE, world.open_methods, world.note, token=token)

    def work() -> None:
        server.serve(listener)

    try:
        with beside(work):
            try:
                yield listener.endpoint
            finally:
                server.stop()
    finally:
        listener.close()
    assert world.opened == world.closed


def connected(endpoint: Listenable) -> socket.socket:
    """Return a bare connection to a server."""
    connection: socket.socket
    if isinstance(endpoint, Tcp):
        connection = socket.create_connection((endpoint.host, endpoint.port))
    else:
        assert isinstance(endpoint, UnixSocket)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(endpoint.path)
    connection.settimeout(HANG_S)
    return connection


def request(method: str, id_: object = 1, **params: object) -> bytes:
    document = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    return json.dumps(document).encode() + b"\n"


def responses(connection: socket.socket) -> Iterator[Any]:
    """Yield each answer as it comes, until the server hangs up."""
    with connection.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)


def ask(connection: socket.socket, line: bytes) -> Any:
    """Sends a line and gives its answer."""
    connection.sendall(line)
    received = b""
    while not received.endswith(b"\n"):
        piece = connection.recv(2**16)
        assert piece, "the server has hung up"
        received += piece
    return json.loads(received)


def all_of(connection: socket.socket) -> bytes:
    """Return what comes until the server hangs up."""
    pieces = []
    while piece := connection.recv(2**16):
        pieces.append(piece)
    return b"".join(pieces)


def mode_of(path: Path) -> int:
    return path.lstat().st_mode & 0o7777


def threads() -> int:
    return threading.active_count()


def resident_kib() -> int:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
