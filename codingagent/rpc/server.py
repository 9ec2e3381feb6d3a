"""JSON-RPC server: serve each connection in its own thread until stopped.

It stops within two seconds, whatever the methods do: a method that ignores its cancellation is left to
the end of the process.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Self

from codingagent.rpc.connection import CallMonitor, Connection, Log, OpenMethods
from codingagent.rpc.listeners import Listener
from codingagent.rpc.streams import Stream

# A thousand connections have a thousand stacks. Python's own calls use none of it; the deepest of its C
# code (JSON, regular expressions) stays below this.
_STACK_BYTES = 2**20

# Connections that have not shown the token: the owner's is one of them for a moment.
_STRANGERS = 64

# The share of the two seconds for cancelled methods, and for the log.
_PATIENCE_S, _LOG_PATIENCE_S = 1.5, 0.3

# Out of handles, memory or threads: retrying is useless until another connection has ended. Some systems
# also report here what happened to a connection before it was accepted.
_EXHAUSTED_PAUSE_S = 0.1

# The listening socket itself is unusable.
_BROKEN = {errno.EBADF, errno.EINVAL, errno.ENOTSOCK}

# One write to a pipe of at most this many bytes is atomic (Linux).
_ATOMIC_BYTES = 4096

# How long log lines are collected before the next write.
_LOG_EVERY_S = 0.05


class Server:
    """Serve connections. Leave the `with` block to close it.

    `open_methods` returns a connection's methods as a context, in its thread. The log is called from any
    thread and must not raise. `shows_bodies` logs the messages too, clipped.
    """

    def __init__(
        self,
        open_methods: OpenMethods,
        log: Log,
        *,
        shows_bodies: bool = False,
        token: str | None = None,
    ) -> None:
        self._open_methods = open_methods
        self._log = log
        self._shows_bodies = shows_bodies
        self._token = token
        self._stopped, self._stop = socket.socketpair()
        self._stop.setblocking(False)
        self._watch = CallMonitor()
        # Shared with the connections' threads.
        self._lock = threading.Lock()
        self._open: dict[Connection, threading.Thread] = {}
        self._count = 0

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_connections()
        self._watch.close()
        self._stop.close()
        self._stopped.close()

    def stop(self) -> None:
        """Make `serve` or `serve_one` return; safe in any thread and in a signal handler."""
        with contextlib.suppress(OSError):
            self._stop.send(b".")

    @property
    def stop_handle(self) -> int:
        """Return a handle that does not block; any byte written to it stops the server, too."""
        return self._stop.fileno()

    def serve(self, listener: Listener) -> None:
        """Accept connections until `stop` is called."""
        poll = select.poll()
        poll.register(self._stopped, select.POLLIN)
        poll.register(listener, select.POLLIN)
        was_exhausted = False
        stopped = self._stopped.fileno()
        while all(handle != stopped for handle, _ in poll.poll()):
            try:
                self._start(listener.accept())
            except (BlockingIOError, ConnectionError):
                continue  # it is already gone
            except PermissionError as fault:
                self._log(f"a connection was refused: {fault.strerror}")
            except (OSError, RuntimeError) as fault:
                if isinstance(fault, OSError) and fault.errno in _BROKEN:
                    raise
                if not was_exhausted:
                    self._log(f"no further connection can be taken now: {fault}")
                was_exhausted = True
                if self._wait_for_stop(_EXHAUSTED_PAUSE_S):
                    return
            else:
                was_exhausted = False

    def serve_one(self, stream: Stream) -> None:
        """Serve a single connection to its end, or until `stop` is called."""
        self._start(stream, stops_all=True)
        self._wait_for_stop(None)

    # --- within ------------------------------------------------------------------------------------

    def _wait_for_stop(self, timeout_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._stopped, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1e3))

    def _start(self, stream: Stream, *, stops_all: bool = False) -> None:
        self._count += 1
        number = self._count
        prefix = f"{number} "

        def log(line: str, /, *values: object) -> None:
            self._log(prefix + line, *values)

        connection = Connection(
            stream,
            self._open_methods,
            self._watch,
            log,
            shows_bodies=self._shows_bodies,
            token=self._token,
        )

        def run() -> None:
            try:
                connection.serve()
            finally:
                with self._lock:
                    self._open.pop(connection, None)
                    left = len(self._open)
                log(f"closed ({left} open)")
                if stops_all:
                    self.stop()

        thread = threading.Thread(target=run, name=f"rpc-{number}", daemon=True)
        with self._lock:
            self._open[connection] = thread
            count = len(self._open)
            strangers = [each for each in self._open if each.is_stranger]
        for each in strangers[:-_STRANGERS]:
            each.stop()
        log(f"opened ({count} open)")
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                del self._open[connection]
            stream.close()
            raise
        finally:
            threading.stack_size(before)

    def _end_connections(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        with self._lock:
            left = dict(self._open)
        for connection in left:
            connection.stop()
        for thread in left.values():
            thread.join(max(deadline - time.monotonic(), 0))
        count = sum(thread.is_alive() for thread in left.values())
        if count:
            self._log(f"{count} connections did not end in {_PATIENCE_S} s")


@contextlib.contextmanager
def stopped_by_signals(server: Server) -> Iterator[None]:
    """Stop a server on SIGTERM, SIGHUP or Ctrl-C within the block; main thread only.

    Raises:
        KeyboardInterrupt: after the block, if it was Ctrl-C.
    """
    seen: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        seen.append(number)
        server.stop()

    numbers = [signal.SIGTERM, signal.SIGINT]
    # nohup has it ignored; keep that.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    # Python runs a handler between two steps of its own: a signal just before the wait is seen after it.
    handle = os.dup(server.stop_handle)  # the server may be closed first
    wakes = signal.set_wakeup_fd(handle, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakes)
        os.close(handle)
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in seen:
        raise KeyboardInterrupt


class HandleLog:
    """Write lines to a handle, such as standard error, without blocking; count the lines it can't take.

    A thread writes, between `with` and its end: a system call beside each answer would make all connections
    wait for one another. The first line after a rest is written at once.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lines: deque[tuple[str, tuple[object, ...]]] = deque()
        self._lost = 0
        self._is_due = threading.Event()
        self._is_ending = threading.Event()
        self._writable = select.poll()
        self._writable.register(handle, select.POLLOUT)

    def __enter__(self) -> Self:
        self._is_ending.clear()
        self._thread = threading.Thread(target=self._run, name="rpc-log", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending.set()
        self._is_due.set()
        # Other programs may fill the same pipe, and nobody empty it.
        self._thread.join(_LOG_PATIENCE_S)

    def __call__(self, line: str, /, *values: object) -> None:
        self._lines.append((line, values))
        if not self._is_due.is_set():
            self._is_due.set()

    def _run(self) -> None:
        while not self._is_ending.is_set():
            self._is_due.wait()
            self._is_due.clear()
            self._drain()
            self._is_ending.wait(_LOG_EVERY_S)
        self._drain()

    def _drain(self) -> None:
        lines: list[bytes] = []
        size = 0
        while self._lines:
            text, values = self._lines.popleft()
            line = (text % values if values else text).encode("utf-8", "backslashreplace")
            line = line[: _ATOMIC_BYTES - 1] + b"\n"
            if size + len(line) > _ATOMIC_BYTES:
                self._write(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        if self._lost and self._is_written(b"%d log lines were lost\n" % self._lost):
            self._lost = 0
        if lines and not self._is_written(b"".join(lines)):
            self._lost += len(lines)

    def _is_written(self, data: bytes) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._writable.poll(0)) and os.write(self._handle, data) > 0
        return False
