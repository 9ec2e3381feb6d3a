"""One JSON-RPC connection: read lines and answer them in order until the peer is done or gone.

One thread reads, runs the method and writes, because handing a request to another thread costs more than
a ping. So nothing reads while a method runs: a Watch, one thread for all connections, monitors calls that
take longer than a moment and cancels the method when the peer is gone.

While an answer can't be written, input is still read, up to a bound: a peer may send everything before it
reads anything. Beyond the bound the peer reads nothing, and only that peer waits.
"""

import contextlib
import hmac
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Protocol, TypeVar

from codingagent.errors import CodingAgentError
from codingagent.model.plain_text import visible
from codingagent.rpc.framing import (
    HEAD_BYTES,
    LINE_LIMIT_BYTES,
    TOKEN_TAKEN,
    LineBuffer,
    TooLong,
    handshake,
    is_http,
    presented_token,
)
from codingagent.rpc.protocol import Code, Dispatcher, Method, Request, Response, refusal
from codingagent.rpc.streams import SocketStream, Stream

# Input buffered while the peer does not read its answers.
BACKLOG_BYTES = 4 * 2**20

# Answers to a batch are joined up to this size; longer ones are written without a copy.
_GATHERED_BYTES = 64 * 1024

# Calls that take longer are monitored: often enough to notice at once that a client is gone, rarely
# enough to cost nothing.
_LOOK_AFTER_S = 0.05

_SHOWN_CHARACTERS = 2000

T = TypeVar("T")


class Log(Protocol):
    """Take a line of the log; with values it is a format (`%`), which may be filled in later."""

    def __call__(self, line: str, /, *values: object) -> None: ...


class Methods(Protocol):
    """The methods that one connection can call."""

    @property
    def table(self) -> Mapping[str, Method]: ...

    def cancel(self) -> None:
        """End the current call, if any, and return at once; called often, from another thread."""
        ...


OpenMethods = Callable[[], AbstractContextManager[Methods]]


class CallMonitor:
    """Thread that monitors long calls of all connections; sleeps while there are none."""

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self._lock = Lock()
        self._is_busy = Event()
        self._is_ending = False
        self._pause = Event()
        self._thread = Thread(target=self._run, name="rpc-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._is_ending = True
        self._pause.set()
        self._is_busy.set()
        self._thread.join()

    def add(self, connection: "Connection") -> None:
        with self._lock:
            self._connections.add(connection)

    def remove(self, connection: "Connection") -> None:
        with self._lock:
            self._connections.discard(connection)

    def note_busy(self) -> None:
        """Announce that methods are about to run; almost free while the watch is awake."""
        if not self._is_busy.is_set():
            self._is_busy.set()

    def _run(self) -> None:
        while not self._is_ending:
            self._is_busy.wait()
            self._pause.wait(_LOOK_AFTER_S)
            # Cleared before the look, so that a call that starts after it wakes this thread again.
            self._is_busy.clear()
            with self._lock:
                connections = tuple(self._connections)
            looks = [connection.look() for connection in connections]
            if any(looks):
                self._is_busy.set()


class Connection:
    """Serve one stream, and close it at the end.

    `open_methods` is called once, in the thread of `serve`. `shows_bodies` logs the messages too,
    clipped. The first line must present the token, if there is one.
    """

    def __init__(
        self,
        stream: Stream,
        open_methods: OpenMethods,
        watch: CallMonitor,
        log: Log,
        *,
        shows_bodies: bool = False,
        token: str | None = None,
    ) -> None:
        self._stream = stream
        self._open_methods = open_methods
        self._watch = watch
        self._log = log
        self._shows_bodies = shows_bodies
        self._lines = LineBuffer()
        self._is_first_line = True
        self._token = token
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._input_ended = False
        # Shared with other threads, which hold the lock while they use it.
        self._lock = Lock()
        self._methods: Methods | None = None
        self._busy_since: float | None = None
        self._is_over = False

    def serve(self) -> None:
        """Answer requests until the input ends, the peer is gone, or `stop` is called."""
        try:
            attempt(self._serve, self._log)
        finally:
            with self._lock:
                self._stream.close()
                self._is_over = True

    @property
    def is_stranger(self) -> bool:
        """Whether it is open and has not shown the token that it must show."""
        return self._token is not None and not self._is_over

    def stop(self) -> None:
        """End the connection; called from another thread. The watch cancels the current method."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._stream.stop()

    def look(self) -> bool:
        """Cancel a long call if the peer is gone; return whether any call is running."""
        since = self._busy_since
        if since is None:
            return False
        if perf_counter() - since >= _LOOK_AFTER_S:
            with self._lock:
                # Repeated until it ends: the first cancel may come before the method has begun.
                if self._methods is not None and (self._is_over or self._stream.is_gone()):
                    self._is_over = True
                    attempt(self._methods.cancel, self._log)
        return True

    # --- the connection's own thread ---------------------------------------------------------------

    def _serve(self) -> None:
        try:
            with self._open_methods() as methods:
                with self._lock:
                    self._methods = methods
                self._watch.add(self)
                try:
                    self._converse(Dispatcher(methods.table))
                finally:
                    self._watch.remove(self)
                    with self._lock:
                        self._methods = None
        except CodingAgentError as fault:
            self._log(f"not served: {visible(str(fault))}")
            with contextlib.suppress(OSError):
                self._write(refusal(Code.INTERNAL_ERROR, str(fault)), b"\n")
        except OSError as fault:
            self._log(f"the client is gone: {visible(fault.strerror or str(fault))}")

    def _converse(self, dispatcher: Dispatcher) -> None:
        while piece := self._next_piece():
            self._be_busy()
            for line in self._lines.receive(piece):
                if self._is_over or not self._take(line, dispatcher):
                    return
            # Who has not shown the token yet gets no room for a long line.
            if self._token is not None and len(self._lines.held) > HEAD_BYTES:
                self._admit(None)
                return
            self._busy_since = None
        self._be_busy()
        last = self._lines.end()
        if last is not None and not self._is_over:
            self._take(last, dispatcher)

    def _be_busy(self) -> None:
        self._busy_since = perf_counter()
        self._watch.note_busy()

    def _next_piece(self) -> bytes:
        if self._backlog:
            piece = self._backlog.popleft()
            self._backlog_bytes -= len(piece)
            return piece
        return b"" if self._input_ended else self._stream.read()

    def _take(self, line: bytes | TooLong, dispatcher: Dispatcher) -> bool:
        """Answer a line; return False if the connection must end."""
        if is_first := self._is_first_line:
            head = line.head if isinstance(line, TooLong) else line
            if is_http(head):
                self._refuse(
                    Code.INVALID_REQUEST,
                    "this server speaks JSON-RPC, one message a line, not HTTP",
                )
                return False
            if (token := presented_token(head)) is not None or self._token is not None:
                return self._admit(token)
            self._is_first_line = False
            if (ok := handshake(head)) is not None:
                self._write(ok)
                return True
        if isinstance(line, TooLong):
            self._refuse(
                Code.INVALID_REQUEST,
                f"invalid request: a line holds at most {LINE_LIMIT_BYTES} bytes",
            )
            return not is_first or line.head.lstrip().startswith((b"{", b"["))
        if self._shows_bodies:
            self._log(f"< {_shown(line)}")
        message = dispatcher.read(line)
        if message.is_batch:
            self._answer_batch(message.requests)
        elif data := self._answer(message.requests[0]):
            self._write(data, b"\n")
        # Another protocol's bytes, such as a browser's TLS hello, may hold a request in a later line.
        is_ours = any(request.name for request in message.requests)
        return is_ours or not (is_first and isinstance(self._stream, SocketStream))

    def _admit(self, token: bytes | None) -> bool:
        """Answer the token that a peer presents; return False if the connection must end."""
        needed = self._token
        if needed is not None and not hmac.compare_digest(token or b"", needed.encode()):
            said = "the token is wrong" if token else "send the line TOKEN and the token first"
            self._refuse(Code.INVALID_REQUEST, f"this server needs its token: {said}")
            return False
        self._token = None
        self._write(TOKEN_TAKEN)
        return True

    def _answer_batch(self, requests: Sequence[Request]) -> None:
        gathered = bytearray()
        mark = b"["
        for request in requests:
            if self._is_over:
                return
            data = self._answer(request)
            if not data:
                continue
            gathered += mark
            mark = b","
            if len(gathered) + len(data) > _GATHERED_BYTES:
                self._write(bytes(gathered), data)
                gathered.clear()
            else:
                gathered += data
        if mark == b",":
            self._write(bytes(gathered), b"]\n")

    def _answer(self, request: Request) -> bytes:
        started = perf_counter()
        answer: Response = attempt(request.answer, self._log) or request.broken()
        took_ms = (perf_counter() - started) * 1e3
        code = f" error {answer.code}" if answer.code else ""
        self._log("%s %.3f ms%s", request.name or "-", took_ms, code)
        if self._shows_bodies and answer.data:
            self._log(f"> {_shown(answer.data)}")
        return answer.data

    def _refuse(self, code: Code, message: str) -> None:
        self._log(f"- error {int(code)}: {message}")
        self._write(refusal(code, message), b"\n")

    def _write(self, *parts: bytes) -> None:
        """Write parts joined, or one by one where a part is too long to copy."""
        if sum(map(len, parts)) <= _GATHERED_BYTES:
            parts = (b"".join(parts),)
        for part in parts:
            self._write_all(part)

    def _write_all(self, data: bytes) -> None:
        try:
            sent = self._stream.write_some(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            wants_input = not self._input_ended and self._backlog_bytes < BACKLOG_BYTES
            if self._stream.wait(reading=wants_input):
                self._read_on()
            try:
                rest = rest[self._stream.write_some(rest) :]
            except BlockingIOError:
                continue

    def _read_on(self) -> None:
        piece = self._stream.read()
        if piece:
            self._backlog.append(piece)
            self._backlog_bytes += len(piece)
        else:
            self._input_ended = True


def attempt(action: Callable[[], T], log: Log) -> T | None:
    """Run an action whose failure must not end the server; log a bug and return None."""
    try:
        return action()
    except Exception as fault:  # noqa: BLE001  # the only place: a bug costs one answer
        trace = traceback.extract_tb(fault.__traceback__)
        where = " < ".join(f"{each.name}:{each.lineno}" for each in reversed(trace[-4:]))
        log(f"internal error: {visible(f'{type(fault).__name__}: {fault}', 500)} in {where}")
        return None


def _shown(data: bytes) -> str:
    # A character has at most four bytes: what is cut off here would not be shown.
    text = data[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace")
    return f"{visible(text, _SHOWN_CHARACTERS)} ({len(data)} bytes)"
