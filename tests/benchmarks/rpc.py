"""What a call over a connection costs: against a bare echo, other libraries, and the runner alone."""

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from codingagent.model.observations import Extras
from codingagent.process.bubblewrap import Unconfined
from codingagent.process.runner import Runner, environment
from tests.benchmarks.measuring import Figure, interleaved

CONTENT_BYTES = 10_000_000
ROUND_TRIPS = 400
ROUNDS = 41

_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\n'

# The peers, each behind the same loop: a thread a connection, a line in, a line out.
_PEER = """
import json, socket, sys, threading
kind, path = sys.argv[1:]
if kind == "echo":
    answer = lambda line: line
elif kind == "python-lsp-jsonrpc":
    from pylsp_jsonrpc.dispatchers import MethodDispatcher
    from pylsp_jsonrpc.endpoint import Endpoint
    class Methods(MethodDispatcher):
        def m_ping(self): return {"pong": True}
    def opened():
        said = []
        endpoint = Endpoint(Methods(), lambda message: said.append(json.dumps(message).encode()))
        def answer(line):
            endpoint.consume(json.loads(line))
            return said.pop()
        return answer
    answer = None
else:
    from jsonrpcserver import Success, dispatch, method
    @method
    def ping(): return Success({"pong": True})
    answer = lambda line: dispatch(line).encode()
def serve(connection):
    reply = answer or opened()
    held = b""
    while piece := connection.recv(65536):
        *lines, held = (held + piece).split(b"\\n")
        for line in lines:
            connection.sendall(reply(line) + b"\\n")
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen()
print("ready", flush=True)
while True:
    connection, _ = listening.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""

_MODULES = {"python-lsp-jsonrpc": "pylsp_jsonrpc", "jsonrpcserver": "jsonrpcserver"}


@contextlib.contextmanager
def _process(words: list[str], ready: Callable[[], bool], **more: Any) -> Iterator[int]:
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **more) as process:
        try:
            while not ready():
                assert process.poll() is None
                time.sleep(0.01)
            yield process.pid
        finally:
            process.terminate()


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[tuple[Path, int]]:
    """Runs `codingagent serve`; gives its socket and its pid."""
    path = folder / "s"
    (folder / "root").mkdir()
    words = [sys.executable, "-m", "codingagent", "--home", str(folder), "serve", "--sandbox"]
    words += ["off", "--root", str(folder / "root"), "--socket", str(path)]
    with _process(words, path.exists, stderr=subprocess.DEVNULL) as pid:
        yield path, pid


@contextlib.contextmanager
def _peer(kind: str, folder: Path) -> Iterator[Path]:
    path = folder / kind
    words = [sys.executable, "-c", _PEER, kind, str(path)]
    with _process(words, path.exists, stdout=subprocess.DEVNULL):
        yield path


class _Line:
    """One connection."""

    def __init__(self, path: Path) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 5
        while True:
            try:
                self._connection.connect(str(path))
                break
            except ConnectionRefusedError:  # bound, and not listening yet
                assert time.monotonic() < deadline
                time.sleep(0.01)

    def ask(self, line: bytes) -> bytes:
        self.send(line)
        return self.receive()

    def send(self, line: bytes) -> None:
        self._connection.sendall(line)

    def receive(self) -> bytes:
        answer = self._connection.recv(2**20)
        if answer.endswith(b"\n"):
            return answer
        pieces = [answer]
        while not pieces[-1].endswith(b"\n"):
            pieces.append(self._connection.recv(2**20))
        return b"".join(pieces)

    def ping(self, count: int) -> None:
        for _ in range(count):
            self.ask(_PING)

    def close(self) -> None:
        self._connection.close()


def _a_second(milliseconds: float) -> str:
    return f"{ROUND_TRIPS / milliseconds * 1000:,.0f} a second"


def pings() -> Iterator[Figure]:
    """Design, speed: round trips a second, one connection over a Unix socket."""
    budgets = {"echo": 2.0, "python-lsp-jsonrpc": 1 / 1.2, "jsonrpcserver": 1 / 5}
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as (path, _):
        ours = _Line(path)
        for kind, budget in budgets.items():
            if kind in _MODULES and importlib.util.find_spec(_MODULES[kind]) is None:
                sys.stderr.write(f"{kind} is not installed: pip install -e '.[benchmarks]'\n")
                continue
            with _peer(kind, Path(name)) as peer, contextlib.closing(_Line(peer)) as theirs:
                a, b = interleaved(
                    lambda: ours.ping(ROUND_TRIPS),
                    lambda theirs=theirs: theirs.ping(ROUND_TRIPS),  # type: ignore[misc]
                    ROUNDS,
                )
            what = f"{ROUND_TRIPS} pings against {'a bare echo in Python' if kind == 'echo' else kind}"
            yield Figure(what, _a_second(a), _a_second(b), a / b, budget)
        ours.close()


def connections() -> Iterator[Figure]:
    """Design, speed: many connections cost no more than one."""
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as (path, _):
        lines = [_Line(path) for _ in range(8)]

        def eight() -> None:
            # One thread for all of them: it is the server's that are counted.
            for _ in range(ROUND_TRIPS // 8):
                for line in lines:
                    line.send(_PING)
                for line in lines:
                    line.receive()

        a, b = interleaved(eight, lambda: lines[0].ping(ROUND_TRIPS), ROUNDS)
        yield Figure("8 connections against 1", _a_second(a), _a_second(b), a / b, 1 / 0.9)
        for line in lines:
            line.close()


def executing() -> Iterator[Figure]:
    """Design, speed: what the connection adds to a command."""
    request = b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["true"]}\n'
    with (
        tempfile.TemporaryDirectory() as name,
        _served(Path(name)) as (path, _),
        contextlib.closing(_Line(path)) as line,
        contextlib.closing(Runner(Unconfined(), environment(os.environ))) as runner,
    ):
        a, b = interleaved(
            lambda: line.ask(request),
            # As exec has it: its streams apart.
            lambda: runner.run("true", name, None, lambda _: None, Extras({}, parts_streams=True)),
            200,
        )
        yield Figure("exec of `true` against the runner", f"{a:.2f} ms", f"{b:.2f} ms", a / b, 1.3)


def memory() -> Iterator[Figure]:
    """Design, speed: a file of 10 MB, and memory after 10,000 requests."""
    with tempfile.TemporaryDirectory() as name, _served(Path(name)) as (path, pid):
        content = ("0123456789abcde\n" * (CONTENT_BYTES // 16)).ljust(CONTENT_BYTES, "x")
        (Path(name) / "root" / "large").write_text(content)
        request = b'{"jsonrpc":"2.0","id":1,"method":"read_file","params":["large"]}\n'
        line = _Line(path)
        line.ping(ROUND_TRIPS)
        grown = []
        for _ in range(3):
            Path(f"/proc/{pid}/clear_refs").write_text("5", "utf-8")
            before = _status(pid, "VmRSS")
            assert len(json.loads(line.ask(request))["result"]["content"]) == CONTENT_BYTES
            grown.append((_status(pid, "VmHWM") - before) * 1024)
        took = max(grown)
        yield Figure(
            "memory for a file of 10 MB read",
            f"{took / 2**20:.1f} MiB",
            f"{CONTENT_BYTES / 2**20:.1f} MiB",
            took / CONTENT_BYTES,
            4,
        )
        before = _status(pid, "VmRSS")
        line.ping(10_000)
        grew = (_status(pid, "VmRSS") - before) / 1024
        yield Figure("10,000 requests: memory grows by", f"{grew:.1f} MB", "", grew, 5, "MB")
        line.close()


def _status(pid: int, field: str) -> int:
    """Return a size in KiB that the kernel tells of a process."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(text.partition(f"{field}:")[2].split()[0])


ALL = (pings, connections, executing, memory)
