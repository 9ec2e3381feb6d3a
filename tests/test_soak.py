"""A server among clients that come, go, are killed, and send what they like: nothing of it is left.

A few rounds of each kind of client; in the deep run very many.
"""

import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import HANG_S, children, descriptors, new_marker, none_left, processes_with, wait_until
from tests.hosting import Served, served

# What a server may have grown by between two looks at it, both of them idle.
_GROWTH_KIB = 5 * 1024

# A client of its own process: it asks for what does not end, says so, and waits to be killed.
_VICTIM = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\\n")
print("asked", flush=True)
while s.recv(65536): pass
"""

_BAD = [
    b"garbage\n",
    b"[" * 10_000 + b"\n",
    b"\xff\x00\n" * 50,
    b'{"jsonrpc":"2.0","id":1,"method":"exec","params":[1]}\n' * 20,
    b"[]\n[1,2,3]\n{}\n",
    b"x" * 3_000_000,
    b"GET / HTTP/1.1\r\n\r\n",
    b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["exit 1"]',
    b"CONNECT 5000\n",
]


def asked(method: str, **params: object) -> bytes:
    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(document).encode()


class Clients:
    """Kinds of clients, each a loop of its own; `faults` is what they saw."""

    def __init__(self, server: Served, marker: str) -> None:
        self._server = server
        self._marker = marker
        self.faults: list[str] = []

    def play(self, rounds: int) -> None:
        """Have each of them at it so often, and wait for their end."""
        kinds: dict[str, Callable[[int], None]] = {
            "works": self._work,
            "errs": self._err,
            "leaves": self._leave,
            "is killed": self._be_killed,
            "reads nothing": self._read_nothing,
        }

        def repeat(name: str, once: Callable[[int], None]) -> None:
            try:
                for number in range(rounds):
                    if not self.faults:
                        once(number)
            except Exception as fault:  # noqa: BLE001  # told by the test, whatever it is
                self.faults.append(f"{name}: {type(fault).__name__}: {fault}")

        threads = [threading.Thread(target=repeat, args=kind) for kind in kinds.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, number: int) -> None:
        with self._server.connect() as host:
            name, text = f"f{number % 7}", f"text {number}\n" * (number % 3000)
            assert host.call("ping") == {"pong": True}
            assert host.call("write_file", path=name, content=text) == {"success": True}
            assert host.call("read_file", path=name) == {"content": text}
            ran = host.call("exec", cmd=f"cat {name}; echo {number} >&2; exit 3")
            assert ran == {"exit_code": 3, "stdout": text, "stderr": f"{number}\n"}
            assert name in {each["name"] for each in host.call("list_dir", path=".")["entries"]}
            host.call("exec_code", lang="sh", code=f"sleep {self._marker} & echo a")

    def _err(self, number: int) -> None:
        with self._server.connection() as connection:
            connection.settimeout(HANG_S)
            with contextlib.suppress(ConnectionError):  # HTTP is hung up on
                connection.sendall(_BAD[number % len(_BAD)])
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    assert b"internal error" not in piece

    def _leave(self, number: int) -> None:
        with self._server.connection() as connection:
            connection.sendall(asked("exec", cmd=f"sleep {self._marker}; true") + b"\n")
            if number % 2:
                threading.Event().wait(random.random() / 10)

    def _be_killed(self, _: int) -> None:
        line = asked("exec", cmd=f"setsid sleep {self._marker} & yes | head -c 3000000; sleep 60")
        words = [sys.executable, "-I", "-S", "-c", _VICTIM, str(self._server.socket_path), line.decode()]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as victim:
            assert victim.stdout is not None
            assert victim.stdout.readline() == b"asked\n"
            threading.Event().wait(random.random() / 10)
            victim.send_signal(signal.SIGKILL)

    def _read_nothing(self, _: int) -> None:
        with self._server.connection() as connection:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.sendall((asked("exec", cmd="yes | head -c 1500000") + b"\n") * 100)
            threading.Event().wait(0.2)


def settled(server: Served) -> tuple[int, int, int]:
    """Waits until no connection is left; gives descriptors, threads and resident KiB."""
    pid = server.process.pid
    wait_until(lambda: server.threads() == 1 and children(pid) == set())
    return len(descriptors(pid)), server.threads(), server.resident_kib()


@pytest.mark.deep
@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=pytest.mark.deep)])
def test_nothing_is_left_of_a_crowd(tmp_path: Path, rounds: int) -> None:
    marker = new_marker()
    with none_left(marker), served(tmp_path, "--sandbox", "off") as server:
        clients = Clients(server, marker)
        clients.play(rounds)
        handles, threads, memory = settled(server)
        clients.play(2 * rounds)
        assert clients.faults == []
        after = settled(server)
        assert after[:2] == (handles, threads)
        assert after[2] - memory < _GROWTH_KIB
        assert not processes_with(marker)
        with server.connect() as host:
            assert host.call("ping") == {"pong": True}
    assert not [line for line in server.log() if "internal error" in line]
