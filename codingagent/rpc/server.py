"""JSON-RPC server: one event loop for all connections; slow calls run in a thread of their connection."""

import asyncio
import contextlib
import hmac
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from codingagent.errors import CodingAgentError
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import visible
from codingagent.rpc.endpoints import UnixSocket
from codingagent.rpc.listeners import Listener, StandardStreams, is_from_another_user
from codingagent.rpc.protocol import (
    LINE_LIMIT_BYTES,
    Code,
    Message,
    Method,
    MethodError,
    Request,
    read,
    refused,
)

# Input read ahead while the peer does not read its answers, or a call runs.
BACKLOG_BYTES = 4 * 2**20

# Connections that have not shown the token, of which the owner's is one for a moment, and the longest line
# that each may send.
_STRANGERS, _HEAD_BYTES = 64, 256

# Answers are written in pieces of at most this size: what has to wait is copied.
_PIECE_BYTES = 2**18

# How often it is checked whether the client of a running call is gone.
_LOOK_EVERY_S = 0.05

# The server ends this soon, whatever the methods do: the end of the process ends them.
_STOP_PATIENCE_S = 1.5

# Out of handles or memory: retrying is useless until another connection has ended.
_EXHAUSTED_PAUSE_S = 0.1

# One write to a pipe of at most 4096 bytes is atomic (Linux); the number of lost lines goes before.
_LOG_BYTES, _LOG_EVERY_S = 4000, 0.05
_SHOWN_CHARACTERS = 2000

# Firecracker's hypervisor sends the first to a guest before the host's first byte. A port of this machine is
# open to all its users, so there the first line must present the server's token.
_GREETING = lazy_pattern(rb"(?:CONNECT ([0-9]{1,10})|TOKEN ([\x21-\x7e]{1,200}))\r?")

# Takes a line of the log, in any thread; with values it is a format (`%`).
Log = Callable[..., object]

# Returns the methods that one connection can call. Their `cancel()` ends the current call, if any, and
# returns at once; it is called often, from another thread.
OpenMethods = Callable[[], AbstractContextManager[Any]]


class Server:
    """Serve connections until stopped.

    `open_methods` is entered and left in the thread of a connection's calls. `shows_bodies` logs the messages
    too, clipped. The first line must present the token, if any.
    """

    def __init__(
        self,
        table: Mapping[str, Method],
        open_methods: OpenMethods,
        log: Log,
        *,
        shows_bodies: bool = False,
        token: str | None = None,
    ) -> None:
        self.table, self.open_methods, self.log = table, open_methods, log
        self.shows_bodies, self.token = shows_bodies, token
        self.connections: dict[Connection, None] = {}
        self._count = 0
        self._stop: Callable[[], object] = int
        self._is_stopped = self._is_interrupted = False

    def serve(self, place: Listener | StandardStreams, ready: Callable[[], object] = int) -> None:
        """Accept connections, or serve standard input and output to its end, until `stop` is called.

        In the main thread SIGTERM, SIGHUP and Ctrl-C stop it, from before `ready` is called; Ctrl-C raises
        KeyboardInterrupt at the end.
        """
        asyncio.run(self._serve(place, ready))
        if self._is_interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Make `serve` return; safe in any thread."""
        self._is_stopped = True
        with contextlib.suppress(RuntimeError):  # it has ended
            self._stop()

    async def _serve(self, place: Listener | StandardStreams, ready: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopping.set)
        if self._is_stopped:
            return
        if threading.current_thread() is threading.main_thread():
            self._stop_at_signals(loop)
        if isinstance(place, Listener):
            taking = loop.create_task(self._accept(place))
        else:
            taking = loop.create_task(self._take(place.connect(self.stop), None))
        ready()
        await stopping.wait()
        taking.cancel()
        for connection in tuple(self.connections):
            connection.stop()
        deadline = loop.time() + _STOP_PATIENCE_S
        while self.connections and loop.time() < deadline:  # noqa: ASYNC110  # once, and briefly
            await asyncio.sleep(0.01)
        if count := len(self.connections):
            self.log(f"{count} connections did not end in {_STOP_PATIENCE_S} s")

    def _stop_at_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        def note(number: int, _: object = None) -> None:
            self._is_interrupted |= number == signal.SIGINT
            self.stop()

        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            number = getattr(signal, name, None)
            # nohup has it ignored; keep that.
            if number is None or signal.getsignal(number) is signal.SIG_IGN:
                continue
            if sys.platform == "win32":
                signal.signal(number, note)
            else:
                loop.add_signal_handler(number, note, number)

    async def _accept(self, listener: Listener) -> None:
        was_exhausted = False
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listener.socket)
                was_exhausted = False
                if is_from_another_user(connection):
                    self.log("a connection was refused: it came from another user")
                    connection.close()
                else:
                    await self._take(connection, listener)
            except ConnectionError:
                continue  # it is already gone
            except OSError as fault:
                if not was_exhausted:
                    self.log(f"no further connection can be taken now: {fault}")
                was_exhausted = True
                await asyncio.sleep(_EXHAUSTED_PAUSE_S)

    async def _take(self, connection: socket.socket, listener: Listener | None) -> None:
        self._count += 1
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self, self._count, listener), connection
        )


class Connection(asyncio.Protocol):
    """One client: its lines are answered in order, what is quick in the event loop, the rest in a thread.

    Requests are read ahead, up to a bound, while a call runs or an answer can't be written: a peer may send
    everything before it reads anything. Beyond the bound only that peer waits.
    """

    def __init__(self, server: Server, number: int, listener: Listener | None) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._prefix = f"{number} "
        self._is_socket = listener is not None
        # On TCP a killed peer looks the same as one that has sent everything; on a vsock, too.
        self._ends_with_input = listener is not None and not isinstance(
            listener.endpoint, UnixSocket
        )
        self.is_stranger = server.token is not None
        self._is_first_line = True
        self._ahead = bytearray()
        self._scanned = 0  # so much of it holds no line end
        self._is_dropping = False  # a line beyond the limit
        self._input_ended = False
        self._is_full = False  # the peer does not read its answers
        self._is_busy = False  # the thread answers a message
        self._is_over = False
        self._calls: SimpleQueue[Message | None] | None = None
        self._methods: Any = None
        self._is_written = threading.Event()

    def _log(self, line: str, *values: object) -> None:
        self._server.log(self._prefix + line, *values)

    def stop(self) -> None:
        """End the connection and its call."""
        self._is_over = True
        self._is_written.set()
        self._transport.abort()
        if self._is_busy and self._methods is not None:
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
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._is_written.set()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._log(f"the client is gone: {visible(str(exc))}")
        self._is_over = True
        self._is_written.set()
        if self._calls is None:
            self._forget()
        else:
            self._calls.put(None)

    def _forget(self) -> None:
        self._is_busy = False
        del self._server.connections[self]
        self._log("closed (%d open)", len(self._server.connections))

    # --- lines and answers -------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Answer the lines that are there, up to a slow one, which the thread answers."""
        out = bytearray()
        message = None
        while not (self._is_busy or self._is_full or self._is_over):
            message = self._next(out)
            if message is None:
                break
            if not all(each.is_quick for each in message.requests):
                self._is_busy = True
            elif answers := [a for each in message.requests if (a := self._answered(each, None))]:
                out += b"[%b]\n" % b",".join(answers) if message.is_batch else answers[0] + b"\n"
            if len(out) > _PIECE_BYTES:
                self._transport.write(bytes(out))
                out.clear()
        if out:
            self._transport.write(bytes(out))
        if message is not None and self._is_busy:
            self._hand_over(message)
        if self._is_busy or self._is_full:
            if len(self._ahead) > BACKLOG_BYTES:
                self._transport.pause_reading()
        elif self._input_ended:
            self._transport.close()
        else:
            self._transport.resume_reading()

    def _next(self, out: bytearray) -> Message | None:
        """Return the next line's message, if there is one; answer greetings."""
        while self._ahead:
            limit = _HEAD_BYTES if self.is_stranger else LINE_LIMIT_BYTES
            end = self._ahead.find(b"\n", self._scanned)
            is_too_long = (end if end >= 0 else len(self._ahead)) > limit
            if end < 0 and not is_too_long and not self._input_ended:
                self._scanned = len(self._ahead)
                return None
            line = self._ahead[: 1 if is_too_long else end if end >= 0 else None]
            del self._ahead[: end + 1 if end >= 0 else None]
            self._scanned = 0
            was_dropping, self._is_dropping = self._is_dropping, end < 0
            if was_dropping or line.isspace() or not line:
                continue
            if self._is_first_line and (answer := self._greeted(line)):
                out += answer
                continue
            return self._read(line, is_too_long=is_too_long)
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
        no = refused(Code.INVALID_REQUEST, f"this server needs its token: {why}")
        return self._answered(no, None) + b"\n"

    def _read(self, line: bytearray, *, is_too_long: bool) -> Message:
        if self._server.shows_bodies and not is_too_long:
            self._log("< %s", _shown(line))
        message = read(None if is_too_long else line, self._server.table)
        # Another protocol's bytes, such as a browser's TLS hello, may hold a request in a later line.
        is_ours = any(r.name for r in message.requests) or (
            is_too_long and bytes(line) in {b"{", b"["}
        )
        if self._is_first_line and self._is_socket and not is_ours:
            self._hang_up()
        self._is_first_line = False
        return message

    def _hang_up(self) -> None:
        """Read no further; the connection ends when its answers are written."""
        self._ahead.clear()
        self._transport.pause_reading()
        self._input_ended = True

    def _answered(self, request: Request, methods: Any) -> bytes:
        """Return a request's response, and log it; a bug of ours costs one answer."""
        started = perf_counter()
        try:
            data, code = request.answer(methods)
        except Exception as fault:  # noqa: BLE001  # the only place
            self._log(_bug(fault))
            why = "internal error: see the server's log"
            data, code = request.failed(MethodError(Code.INTERNAL_ERROR, why))
        took_ms = (perf_counter() - started) * 1e3
        self._log("%s %.3f ms%s", request.name or "-", took_ms, f" error {code}" if code else "")
        if self._server.shows_bodies and data:
            self._log("> %s", _shown(data))
        return data

    # --- slow calls --------------------------------------------------------------------------------

    def _hand_over(self, message: Message) -> None:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=self._run_calls, args=(self._calls,), daemon=True).start()
        self._calls.put(message)
        self._timer = self._loop.call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """End a call whose client is gone, again and again: it may not have begun the first time."""
        if self._is_over or self._is_gone():
            self.stop()
        if self._is_busy:
            self._timer = self._loop.call_later(_LOOK_EVERY_S, self._look)

    def _is_gone(self) -> bool:
        names = ["POLLHUP", "POLLERR", *(["POLLRDHUP"] if self._ends_with_input else [])]
        return (self._ends_with_input and self._input_ended) or _polled(
            self._transport.get_extra_info("socket").fileno(), *names
        )

    def _finish(self) -> None:
        self._timer.cancel()
        self._is_busy = False
        self._go_on()

    def _write(self, data: "memoryview[int]") -> None:
        if not self._is_over:
            self._transport.write(data)
        if not self._is_full:
            self._is_written.set()

    def _run_calls(self, calls: "SimpleQueue[Message | None]") -> None:
        """Answer messages, in a thread: a command ends with the thread that started it."""
        try:
            with contextlib.ExitStack() as stack:
                for message in iter(calls.get, None):
                    self._answer(message, stack)
                    self._post(self._finish)
        except Exception as fault:  # noqa: BLE001  # what is left to close must not end the server
            self._log(_bug(fault))
        finally:
            self._post(self._forget)

    def _answer(self, message: Message, stack: contextlib.ExitStack) -> None:
        mark = b"["
        for request in message.requests:
            if self._is_over:
                return
            try:
                if self._methods is None:
                    self._methods = stack.enter_context(self._server.open_methods())
            except CodingAgentError as fault:
                data, _ = request.failed(MethodError(Code.INTERNAL_ERROR, str(fault)))
            else:
                data = self._answered(request, self._methods)
            if data and message.is_batch:
                self._send(mark, data)
                mark = b","
            elif data:
                self._send(data, b"\n")
        if mark == b",":
            self._send(b"]\n")

    def _send(self, *parts: bytes) -> None:
        if sum(map(len, parts)) <= _PIECE_BYTES:
            parts = (b"".join(parts),)
        for part in parts:
            for start in range(0, len(part), _PIECE_BYTES):
                self._is_written.clear()
                if self._is_over:
                    return
                self._post(self._write, memoryview(part)[start : start + _PIECE_BYTES])
                self._is_written.wait()

    def _post(self, action: Callable[..., object], *values: object) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(action, *values)


def _polled(handle: int, *events: str) -> bool:
    """Return whether one of the events is there; on Windows it is never known."""
    if sys.platform == "win32":
        return False
    else:  # noqa: RET505  # the type checker follows it
        poll = select.poll()
        poll.register(handle, sum(getattr(select, event, 0) for event in events))
        return bool(poll.poll(0))


def _bug(fault: Exception) -> str:
    trace = traceback.extract_tb(fault.__traceback__)
    where = " < ".join(f"{each.name}:{each.lineno}" for each in reversed(trace[-4:]))
    return f"internal error: {visible(f'{type(fault).__name__}: {fault}', 500)} in {where}"


def _shown(data: bytes | bytearray) -> str:
    # A character has at most four bytes: what is cut off here would not be shown.
    text = data[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace")
    return f"{visible(text, _SHOWN_CHARACTERS)} ({len(data)} bytes)"


class HandleLog:
    """Write lines to a handle, such as standard error, without blocking; count the lines it can't take.

    A system call for each line would cost a quarter of a ping, so lines are collected for a moment.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lock = threading.RLock()
        self._held = b""
        self._count = self._lost = 0
        self._is_due = False

    def __call__(self, line: str, *values: object) -> None:
        data = (line % values if values else line).encode("utf-8", "backslashreplace")
        with self._lock:
            if len(self._held) + len(data) >= _LOG_BYTES:
                self.flush()
            self._held += data[: _LOG_BYTES - 1] + b"\n"
            self._count += 1
            if not self._is_due:
                try:
                    asyncio.get_running_loop().call_later(_LOG_EVERY_S, self.flush)
                    self._is_due = True
                except RuntimeError:  # another thread, or none serves
                    self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        with self._lock, contextlib.suppress(OSError):
            self._is_due = False
            data = b"%d log lines were lost\n" % self._lost if self._lost else b""
            data, self._held = data + self._held, b""
            self._lost, self._count = self._lost + self._count, 0
            if sys.platform == "win32" or _polled(self._handle, "POLLOUT"):
                os.write(self._handle, data)
                self._lost = 0
