"""Byte streams for one connection, a socket or two pipes: bytes, readiness, and whether the peer is gone."""

import contextlib
import os
import select
import socket
from typing import Protocol

_CHUNK_BYTES = 64 * 1024

# A ready pipe takes this much without blocking (POSIX has 512, Linux a page).
_PIPE_BYTES = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512


class Stream(Protocol):
    """One connection's bytes, read and written by one thread; all but `close` may raise OSError."""

    def read(self) -> bytes:
        """Wait for bytes; empty at the end of input."""
        ...

    def write_some(self, data: bytes | memoryview) -> int:
        """Write what can be written at once, or raise BlockingIOError; return the number of bytes."""
        ...

    def wait(self, *, reading: bool) -> bool:
        """Wait until it is writable or, with `reading`, readable; return whether it is readable."""
        ...

    def is_gone(self) -> bool:
        """Return whether the peer can no longer get an answer; for any thread."""
        ...

    def stop(self) -> None:
        """Make `read` and `wait` raise; for any thread."""
        ...

    def close(self) -> None: ...


class SocketStream:
    """A connected socket, which the stream owns.

    With `ends_with_input` the end of input means that the peer is gone: on TCP a killed peer looks the same
    as one that has sent everything.
    """

    def __init__(self, connection: socket.socket, *, ends_with_input: bool) -> None:
        self._socket = connection
        self._gone = select.POLLHUP | select.POLLERR
        if ends_with_input:
            self._gone |= getattr(select, "POLLRDHUP", 0)
        # Bound once: a ping costs little more than these.
        self._receive = connection.recv
        self._send = connection.send

    def read(self) -> bytes:
        return self._receive(_CHUNK_BYTES)

    def write_some(self, data: bytes | memoryview) -> int:
        return self._send(data, socket.MSG_DONTWAIT)

    def wait(self, *, reading: bool) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT | (select.POLLIN if reading else 0))
        [(_, event)] = poll.poll()
        return bool(event & select.POLLIN)

    def is_gone(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, self._gone)
        return bool(poll.poll(0))

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class HandleStream:
    """Two handles: pipes, files, a terminal. The peer is gone when nothing reads the output.

    The stream owns them; they must differ. They stay in blocking mode, because other processes may share the
    files that they refer to.
    """

    def __init__(self, input_handle: int, output_handle: int) -> None:
        self._input = input_handle
        self._output = output_handle
        self._stopped, self._stop = socket.socketpair()
        self._writable = select.poll()
        self._writable.register(output_handle, select.POLLOUT)
        self._readable = select.poll()
        self._readable.register(input_handle, select.POLLIN)
        self._readable.register(self._stopped, select.POLLIN)

    def read(self) -> bytes:
        self._check_stop(self._readable.poll())
        return os.read(self._input, _CHUNK_BYTES)

    def write_some(self, data: bytes | memoryview) -> int:
        if not self._writable.poll(0):
            raise BlockingIOError
        return os.write(self._output, data[:_PIPE_BYTES])

    def wait(self, *, reading: bool) -> bool:
        poll = select.poll()
        poll.register(self._stopped, select.POLLIN)
        poll.register(self._output, select.POLLOUT)
        if reading:
            poll.register(self._input, select.POLLIN)
        events = poll.poll()
        self._check_stop(events)
        return any(handle == self._input for handle, _ in events)

    def is_gone(self) -> bool:
        poll = select.poll()
        poll.register(self._output, 0)
        return bool(poll.poll(0))

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._stop.send(b".")

    def close(self) -> None:
        os.close(self._input)
        os.close(self._output)
        self._stopped.close()
        self._stop.close()

    def _check_stop(self, events: list[tuple[int, int]]) -> None:
        if any(handle == self._stopped.fileno() for handle, _ in events):
            raise ConnectionAbortedError("the server ends")


def take_stdio() -> HandleStream:
    """Take standard input and output for a connection.

    The null device and standard error replace them: anything else that is printed, by this program or by a
    command, is not an answer.
    """
    stream = HandleStream(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return stream
