"""JSON-RPC server: one event loop for all connections; slow calls run in a thread of their connection.

The loop calls a Protocol: streams would make a round trip half as long again.
"""

import asyncio
import contextlib
import ctypes
import hmac
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from codingagent.model.paths import shown
from codingagent.model.patterns import lazy_pattern
from codingagent.rpc import endpoints, protocol
from codingagent.rpc.endpoints import Listener, StandardStreams

# Input read ahead while the peer does not read its answers, or a call runs.
BACKLOG_BYTES = 4 * 2**20
# Connections that have not shown the token, of which the owner's is one for a moment, and the longest line
# that each may send.
_STRANGERS, _HEAD_BYTES = 64, 256
# How often it is checked whether the client of a running call is gone.
_LOOK_EVERY_S = 0.05
# The server ends this soon, whatever the methods do: the end of the process ends them.
_STOP_PATIENCE_S = 1.5
# One write to a pipe of at most 4096 bytes is atomic (Linux); that lines were lost goes before.
_LOG_BYTES, _LOG_EVERY_S = 4000, 0.05
_SHOWN_CHARACTERS = 2000
# Firecracker's hypervisor sends the first to a guest before the host's first byte. A port of this machine is
# open to all its users, so there the first line must present the server's token.
_GREETING = lazy_pattern(rb"(?:CONNECT ([0-9]{1,10})|TOKEN ([\x21-\x7e]{1,200}))\r?")
# Takes a line of the log; with values it is a format (`%`).
Log = Callable[..., object]
# Returns the methods that one connection can call. Their `cancel()` ends the current call, if any, and
# returns at once; it is called often, from another thread.
OpenMethods = Callable[[], contextlib.AbstractContextManager[Any]]


class Server:
    """Serve connections until stopped.

    `open_methods` is entered and left in the thread of a connection's calls. `shows_bodies` logs the messages
    too, clipped. The first line must present the token, if any.
    """

    def __init__(
        self,
        table: Mapping[str, protocol.Method],
        open_methods: OpenMethods,
        log: Log,
        *,
        shows_bodies: bool = False,
        token: str | None = None,
    ) -> None:
        self.table, self.open_methods, self.log = table, open_methods, log
        self.shows_bodies, self.token = shows_bodies, token
        self.connections: dict[Connection, None] = {}
        self.count = 0
        self._wake: Callable[[], object] = int
        self._is_stopped = self._is_interrupted = False

    def serve(self, place: Listener | StandardStreams, ready: Callable[[], object] = int) -> None:
        """Accept connections, or serve standard input and output to its end, until `stop` is called.

        In the main thread SIGTERM, SIGHUP and Ctrl-C (KeyboardInterrupt) stop it, from before `ready` on.
        """

        def note(number: int, _: object) -> None:
            self._is_interrupted |= number == signal.SIGINT
            self.stop()

        before = {}
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                number = getattr(signal, name, None)
                # nohup has it ignored; keep that.
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, note)
        try:
            asyncio.run(self._serve(place, ready))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._is_interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Make `serve` return; safe in any thread."""
        self._is_stopped = True
        with contextlib.suppress(RuntimeError):  # it has ended
            self._wake()

    async def _serve(self, place: Listener | StandardStreams, ready: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, of: self.log("%s: %s", of["message"], of.get("exception")))
        # glibc keeps memory for the pieces that the loop receives, and gives back that of long answers. By
        # itself it maps and unmaps 256 KB for each piece, or keeps megabytes for each thread that there was.
        with contextlib.suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).mallopt(-3, 2**20)  # M_MMAP_THRESHOLD
        stopping = asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(stopping.set)
        if self._is_stopped:
            return
        ready()
        accepting = None
        if isinstance(place, Listener):
            accepting = await loop.create_server(
                # One a turn: as often as this Python logs, before 3.13.2, that no handle is free.
                lambda: Connection(self, place.endpoint),
                sock=place.socket,
                backlog=1,
            )
            place.socket.listen(endpoints.WAITING)
        else:
            theirs = place.connect(self.stop)
            await loop.connect_accepted_socket(lambda: Connection(self, None), theirs)
        await stopping.wait()
        if accepting is not None:
            accepting.close()
        for connection in tuple(self.connections):
            connection.stop()
        deadline = loop.time() + _STOP_PATIENCE_S
        while self.connections and loop.time() < deadline:  # noqa: ASYNC110  # once, and briefly
            await asyncio.sleep(0.01)
        if count := len(self.connections):
            self.log(f"{count} connections did not end in {_STOP_PATIENCE_S} s")


class Connection(asyncio.Protocol):
    """One client: its lines are answered in order, what is quick in the event loop, the rest in a thread.

    Requests are read ahead, up to a bound, while a call runs or an answer can't be written: a peer may send
    everything before it reads anything. Beyond the bound only that peer waits.
    """

    def __init__(self, server: Server, endpoint: object) -> None:
        self._server = server
        server.count += 1
        self._prefix = f"{server.count} "
        self._is_socket = endpoint is not None
        # On TCP a killed peer looks the same as one that has sent everything; on a vsock, too.
        self._ends_with_input = self._is_socket and not isinstance(endpoint, endpoints.UnixSocket)
        self.is_stranger = server.token is not None
        self._is_first_line = True
        self._ahead = bytearray()
        self._scanned = 0  # so much of it holds no line end
        self._is_dropping = False  # a line beyond the limit
        self._input_ended = False
        self._can_write = asyncio.Event()  # the peer reads its answers
        self._can_write.set()
        self._call: asyncio.Task[None] | None = None
        self._thread: _Thread | None = None
        self._methods: Any = None
        self._closing = contextlib.ExitStack()
        self._is_over = self._is_lost = False

    def _log(self, line: str, *values: object) -> None:
        self._server.log(self._prefix + line, *values)

    def stop(self) -> None:
        """End the connection and its call; it is called again until that has ended."""
        self._is_over = True
        self._can_write.set()
        if not self._is_lost:  # a transport that has ended has no loop to abort in
            self._transport.abort()
        if self._call is not None and self._methods is not None:
            try:
                self._methods.cancel()
            except Exception as fault:  # noqa: BLE001  # it is called again
                self._log(_bug(fault))

    # --- the event loop calls these ----------------------------------------------------------------
    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        connections = self._server.connections
        connections[self] = None
        self._log("opened (%d open)", len(connections))
        if self._is_socket and endpoints.is_from_another_user(transport.get_extra_info("socket")):
            self._log("refused: it came from another user")
            self.stop()
        strangers = [each for each in connections if each.is_stranger]
        for each in strangers[:-_STRANGERS]:
            each.stop()

    def data_received(self, data: bytes) -> None:
        self._ahead += data
        self._go_on()

    def eof_received(self) -> bool:
        self._input_ended = True
        self._go_on()
        return True

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._log(f"the client is gone: {shown(str(exc))}")
        self._is_over = self._is_lost = True
        self._can_write.set()
        if self._call is None:
            self._forget()

    def _forget(self) -> None:
        """Close what belongs to the connection, which has ended, as its call has."""
        if self._thread is None:
            del self._server.connections[self]
            self._log("closed (%d open)", len(self._server.connections))
        else:
            closed = self._thread.do(self._closing.close)
            self._thread.end()
            self._thread = None
            closed.add_done_callback(self._closed)

    def _closed(self, closed: "asyncio.Future[None]") -> None:
        if fault := closed.exception():
            self._log(_bug(fault))
        self._forget()

    # --- lines and answers -------------------------------------------------------------------------
    def _go_on(self) -> None:
        """Answer the lines that are there, up to a slow one, which a task answers."""
        out = bytearray()
        while self._call is None and self._can_write.is_set() and not self._is_over:
            line = self._line()
            if line is None:
                break
            if self._is_first_line and (answer := self._greeted(line)):
                out += answer
                continue
            message = self._read(line)
            if not all(each.is_quick for each in message.requests):
                self._call = asyncio.get_running_loop().create_task(self._answer(message))
            elif answers := [a for each in message.requests if (a := self._quick(each))]:
                out += b"[%b]\n" % b",".join(answers) if message.is_batch else answers[0] + b"\n"
        if out:
            self._transport.write(bytes(out))
        if self._call is not None or not self._can_write.is_set():
            if len(self._ahead) > BACKLOG_BYTES:
                self._transport.pause_reading()
        elif self._input_ended:
            self._transport.close()
        else:
            self._transport.resume_reading()

    def _line(self) -> bytearray | None:
        """Return the next line that is not blank; of one beyond the limit, a byte more than the limit."""
        while self._ahead:
            limit = _HEAD_BYTES if self.is_stranger else protocol.LINE_LIMIT_BYTES
            end = self._ahead.find(b"\n", self._scanned)
            size = end if end >= 0 else len(self._ahead)
            if end < 0 and size <= limit and not self._input_ended:
                self._scanned = size
                return None
            line = self._ahead[: min(size, limit + 1)]
            del self._ahead[: size + 1]
            self._scanned = 0
            was_dropping, self._is_dropping = self._is_dropping, end < 0
            if line and not was_dropping and not line.isspace():
                return line
        return None

    def _greeted(self, line: bytearray) -> bytes:
        """Return the answer to a first line that is no request, if it is none."""
        said = _GREETING.fullmatch(line)
        token = bytes((said and said[2]) or b"")
        if not self.is_stranger and not token:
            self._is_first_line = said is None
            return b"OK %b\n" % said[1] if said else b""
        needed = self._server.token
        if needed is None or hmac.compare_digest(token, needed.encode()):
            self.is_stranger = False
            return b"OK\n"
        self._hang_up()
        why = "the token is wrong" if token else "send the line TOKEN and the token first"
        no = protocol.refused(protocol.Code.INVALID_REQUEST, f"this server needs its token: {why}")
        return self._quick(no) + b"\n"

    def _read(self, line: bytearray) -> protocol.Message:
        is_too_long = len(line) > protocol.LINE_LIMIT_BYTES
        if self._server.shows_bodies and not is_too_long:
            self._log("< %s", _shown(line))
        message = protocol.read(line, self._server.table)
        # Another protocol's bytes, such as a browser's TLS hello, may hold a request in a later line.
        is_ours = any(r.name for r in message.requests) or (is_too_long and line[0] in b"{[")
        if self._is_first_line and self._is_socket and not is_ours:
            self._hang_up()
        self._is_first_line = False
        return message

    def _hang_up(self) -> None:
        """Read no further; the connection ends when its answers are written."""
        self._ahead.clear()
        self._transport.pause_reading()
        self._input_ended = True

    def _quick(self, request: protocol.Request) -> bytes:
        started = perf_counter()
        return self._said(request, request.answer(int), started)

    def _said(self, request: protocol.Request, answer: protocol.Response, started: float) -> bytes:
        """Log an answer and return its data."""
        data, code, bug = answer
        if bug is not None:
            self._log(_bug(bug))
        took_ms = (perf_counter() - started) * 1e3
        self._log("%s %.3f ms%s", request.name or "-", took_ms, f" error {code}" if code else "")
        if self._server.shows_bodies and data:
            self._log("> %s", _shown(data))
        return data

    # --- slow calls --------------------------------------------------------------------------------
    async def _answer(self, message: protocol.Message) -> None:
        """Answer a message with slow calls; a batch as it comes, whose answers together have no bound."""
        mark = b"["
        for request in message.requests:
            if not self._is_over and (data := await self._slow(request)):
                await self._write(mark + data if message.is_batch else data + b"\n")
                mark = b","
        if message.is_batch and mark == b",":
            await self._write(b"]\n")
        self._call = None
        if self._is_lost:
            self._forget()
        else:
            self._go_on()

    async def _slow(self, request: protocol.Request) -> bytes:
        started = perf_counter()
        self._thread = self._thread or _Thread()
        answer = self._thread.do(request.answer, self._opened)
        while not answer.done():
            await asyncio.wait([answer], timeout=_LOOK_EVERY_S)
            # Again and again: the call may not have begun the first time.
            if not answer.done() and (self._is_over or self._is_gone()):
                self.stop()
        return self._said(request, answer.result(), started)

    def _opened(self) -> Any:
        """Return the methods, which the thread opens and closes."""
        if self._methods is None:
            self._methods = self._closing.enter_context(self._server.open_methods())
        return self._methods

    def _is_gone(self) -> bool:
        handle = self._transport.get_extra_info("socket").fileno()
        is_over = self._ends_with_input and (self._input_ended or _polled(handle, "POLLRDHUP"))
        try:  # It sends nothing, and fails once the client is gone: macOS's poll does not tell.
            return is_over or (sys.platform != "win32" and os.write(handle, b"") != 0)
        except OSError as fault:
            return not isinstance(fault, BlockingIOError)

    async def _write(self, data: bytes) -> None:
        await self._can_write.wait()
        if not self._is_over:
            self._transport.write(data)


class _Thread:
    """A thread that does one call after another: a command ends with the thread that started it."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[..., Any], Any] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def do(self, call: Callable[..., Any], *values: object) -> "asyncio.Future[Any]":
        future: Future[Any] = Future()
        self._calls.put((future, call, values))
        return asyncio.wrap_future(future)

    def end(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        for future, call, values in iter(self._calls.get, None):
            future.set_running_or_notify_cancel()
            try:
                future.set_result(call(*values))
            except BaseException as fault:  # noqa: BLE001  # whoever waits gets it
                future.set_exception(fault)
            del future, call, values  # an answer may be large


def _polled(handle: int, event: str) -> bool:
    """Return whether an event is there; on Windows it is never known."""
    if sys.platform == "win32":
        return False
    else:  # noqa: RET505  # the type checker follows it
        poll = select.poll()
        poll.register(handle, getattr(select, event, 0))
        return bool(poll.poll(0))


def _bug(fault: BaseException) -> str:
    trace = traceback.extract_tb(fault.__traceback__)
    where = " < ".join(f"{each.name}:{each.lineno}" for each in reversed(trace[-4:]))
    return f"internal error: {shown(f'{type(fault).__name__}: {fault}', 500)} in {where}"


def _shown(data: bytes | bytearray) -> str:
    # A character has at most four bytes: what is cut off here would not be shown.
    text = data[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace")
    return f"{shown(text, _SHOWN_CHARACTERS)} ({len(data)} bytes)"


class HandleLog:
    """Write lines to a handle, such as standard error, without blocking; say where it lost some.

    A system call for each line would cost a quarter of a ping, so lines are collected for a moment.
    """

    def __init__(self, handle: int) -> None:
        self._handle, self._held, self._lost = handle, b"", b""
        self._writing = threading.Thread()

    def __call__(self, line: str, *values: object) -> None:
        data = (line % values if values else line).encode("utf-8", "backslashreplace")
        if len(self._held) + len(data) >= _LOG_BYTES:
            self.flush()
        if not self._held:
            asyncio.get_running_loop().call_later(_LOG_EVERY_S, self.flush)
        self._held += data[: _LOG_BYTES - 1] + b"\n"

    def flush(self) -> None:
        """Write what was collected; in a thread on Windows, where nothing tells that a write would wait."""
        data, self._held = self._lost + self._held, b""
        self._lost = b"log lines were lost\n" if data else b""
        if sys.platform == "win32" and data and not self._writing.is_alive():
            self._writing = threading.Thread(target=self._write, args=(data,), daemon=True)
            self._writing.start()
            self._writing.join(_LOG_EVERY_S)
        elif data and _polled(self._handle, "POLLOUT"):
            self._write(data)

    def _write(self, data: bytes) -> None:
        self._lost = b""
        with contextlib.suppress(OSError):
            os.write(self._handle, data)
