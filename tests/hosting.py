"""A host written from specification 004 alone, and the real server process that it drives."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from tests.helpers import HANG_S, REPOSITORY, wait_until
from tests.warm import start_command

# --- the host: nothing of ours in it ---------------------------------------------------------------


class RawHost:
    """One connection: a line of JSON there, a line of JSON back."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes], *owned: Any) -> None:
        self.reader = reader
        self.writer = writer
        self._owned = (writer, reader, *owned)
        self._id = 0

    @classmethod
    def over(cls, connection: socket.socket) -> "RawHost":
        connection.settimeout(HANG_S)
        return cls(connection.makefile("rb"), connection.makefile("wb"), connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for each in self._owned:
            with contextlib.suppress(OSError):
                each.close()

    def send(self, line: bytes) -> None:
        self.writer.write(line + b"\n")
        self.writer.flush()

    def receive(self) -> Any:
        line = self.reader.readline()
        assert line.endswith(b"\n"), "the server has hung up"
        return json.loads(line)

    def ask(self, line: bytes) -> Any:
        self.send(line)
        return self.receive()

    def call(self, method: str, **params: object) -> Any:
        """Return a result, or an error object."""
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        response = self.ask(json.dumps(request).encode())
        assert response["jsonrpc"] == "2.0"
        assert response["id"] == self._id
        [found] = response.keys() - {"jsonrpc", "id"}
        return response[found]


# --- the server: the command itself ----------------------------------------------------------------


@dataclass
class Served:
    """A server process; its log is in a file."""

    process: "subprocess.Popen[bytes]"
    log_file: Path
    socket_path: Path

    def log(self) -> list[str]:
        return self.log_file.read_text("utf-8").splitlines()

    @property
    def port(self) -> int:
        """Return where it listens on TCP."""
        found = re.search(r" on tcp 127\.0\.0\.1:([0-9]+);", self.log_file.read_text("utf-8"))
        assert found
        return int(found[1])

    def connect(self) -> RawHost:
        """Return a connection, whatever the server listens on."""
        if self.process.stdin is not None:
            assert self.process.stdout is not None
            return RawHost(self.process.stdout, self.process.stdin)
        return RawHost.over(self.connection())

    def connection(self) -> socket.socket:
        if self.socket_path.exists():
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(self.socket_path))
            return connection
        return socket.create_connection(("127.0.0.1", self.port))

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop; return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(HANG_S)

    def resident_kib(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") // 1024

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))


@contextlib.contextmanager
def served(folder: Path, *options: str, kind: str = "unix", argv: tuple[str, ...] = ()) -> Iterator[Served]:
    """Runs `codingagent serve` beside the test, its root `folder`/root unless the options say else.

    Args:
        folder: where its home, its log and its socket lie.
        options: of `serve`.
        kind: unix, tcp or stdio.
        argv: what runs it elsewhere, with a home of its own.
    """
    root = folder / "root"
    root.mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    socket_path, log = folder / "s", folder / "log"
    chosen = () if "--root" in options else ("--root", str(root))
    where = {
        "unix": ("--socket", str(socket_path)),
        "tcp": ("--tcp", "127.0.0.1:0", *(() if "--token-file" in options else ("--no-token",))),
        "stdio": ("--stdio",),
    }[kind]
    piped = subprocess.PIPE if kind == "stdio" else None
    here = ("--home", str(folder / "home"))
    words = [*(argv or here), "serve", *where, *chosen, *options]
    begin: Callable[..., Any] = start_command
    if argv:
        begin = lambda *given, **options: subprocess.Popen(given, **options)  # noqa: E731
    with (
        log.open("wb") as errors,
        begin(
            *words,
            cwd=REPOSITORY,
            stdin=piped or subprocess.DEVNULL,
            stdout=piped or subprocess.DEVNULL,
            stderr=errors,
        ) as process,
    ):
        found = Served(process, log, socket_path)
        try:
            wait_until(
                lambda: any(x.startswith("serving ") for x in found.log()) or process.poll() is not None
            )
            assert process.poll() is None, log.read_text("utf-8")
            yield found
            if process.stdin is not None:
                process.stdin.close()
                assert process.wait(HANG_S) == 0
            elif process.poll() is None:
                assert found.end() == 0
        finally:
            process.kill()
