"""Collect a command's output within bounds, and its guard's report, whatever the command does to them."""

import ast
import contextlib
import math
import selectors
import socket
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from io import RawIOBase
from typing import TypeAlias

from msgspec.structs import replace

from codingagent.model.observations import Outcome

# The output limit of one command: beyond it, something runs away (`yes`) and takes a core with it.
FLOOD_LIMIT_BYTES = 256 * 2**20
# Kept at each end of the output; much more than a result shows, so that its cut can find line ends.
_KEPT_BYTES = 64 * 1024
CHUNK_BYTES = 64 * 1024
# Kept of each of two streams, and the marker of a cut (specification 004, ExecResult).
STREAM_LIMIT_BYTES = 2**20
TRUNCATED = "\n... [output truncated]"
# How long to keep reading after the command and its tree have ended while the pipe is still open: a
# process outside the tree was given it and may keep it forever.
DRAIN_S = 0.2
# How often to ask whether the command has printed too much, or is to be ended.
_LOOK_UP_S = 0.5
# The guard ends a command at its limit and reports at once; a later report means it was prevented.
_OVERDUE_AFTER_S = 1.0
_KILLED = -9
# Each UTF-8 character has exactly one byte that is not one of these.
_CONTINUATION = bytes(range(0x80, 0xC0))
# No word is longer, and no secret that a cut could leave a part of.
_WORD_CHARACTERS = 8_000


Show: TypeAlias = Callable[[str], None]
"""Shows a part of a command's output as it arrives."""


def decoded(data: bytes) -> str:
    """Return output as text, each line UTF-8 or the console's own: one command may write both."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        lines = data.splitlines(keepends=True)
        if len(lines) > 1:
            return "".join(map(decoded, lines))
        return data.decode("oem" if sys.platform == "win32" else "utf-8", "replace")


def without_half(text: str) -> str:
    """Return a text without its last word, which a cut may have halved: half of a secret is not found."""
    last = text[-_WORD_CHARACTERS:]
    return text[: len(text) - len(last) + max(map(last.rfind, " \n\t")) + 1]


class HeadAndTail:
    """The head and tail of a byte stream of any length; `cut` marks where bytes are missing."""

    def __init__(self, head_bytes: int, tail_bytes: int, cut: str) -> None:
        self._head_bytes, self._tail_bytes, self._cut = head_bytes, tail_bytes, cut
        self.total = 0
        self._characters = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._characters += len(chunk.translate(None, _CONTINUATION))
        room = self._head_bytes - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: len(self._tail) - self._tail_bytes]

    def text(self) -> tuple[str, int]:
        """Return the kept text and how many characters are missing from it."""
        tail = self._tail[max(len(self._tail) - self._tail_bytes, 0) :]
        if self.total == len(self._head) + len(tail):
            return decoded(bytes(self._head + tail)), 0
        # Drop partial characters at the cut.
        head = decoded(_whole(bytes(self._head)))
        end = decoded(bytes(tail.lstrip(_CONTINUATION)))
        if self._tail_bytes:
            head, end = without_half(head), without_half(end[::-1])[::-1]
        return f"{head}{self._cut}{end}", max(self._characters - len(head) - len(end), 1)


def _whole(head: bytes) -> bytes:
    """Return bytes without a character in UTF-8 that their end cuts."""
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(head)
    return head[: len(head) - len(decoder.getstate()[0])]


class Output:
    """What a command prints to one stream, or to two that are also kept apart."""

    def __init__(self, streams: int, show: Show) -> None:
        self._show = show
        self._begun = [b""] * streams
        """Of each stream the beginning of a character."""
        self._together = HeadAndTail(_KEPT_BYTES, _KEPT_BYTES, "\n")
        apart = streams if streams > 1 else 0
        self._apart = [HeadAndTail(STREAM_LIMIT_BYTES, 0, TRUNCATED) for _ in range(apart)]

    @property
    def is_flood(self) -> bool:
        return self._together.total > FLOOD_LIMIT_BYTES

    def add(self, stream: int, chunk: bytes) -> None:
        self._together.add(chunk)
        if self._apart:
            self._apart[stream].add(chunk)
        data = self._begun[stream] + chunk
        whole = _whole(data)
        self._begun[stream] = data[len(whole) :]
        self._show(decoded(whole))

    def outcome(self, exit_code: int, duration_s: float) -> Outcome:
        text, dropped = self._together.text()
        outcome = Outcome(exit_code, text, duration_s, dropped_characters=dropped)
        if not self._apart:
            return outcome
        stdout, stderr = (stream.text()[0] for stream in self._apart)
        return replace(outcome, stdout=stdout, stderr=stderr)


class Reading:
    """Read a command's output and report until both are complete, or the report `is_overdue`."""

    def __init__(
        self,
        control: socket.socket,
        pipes: Sequence[RawIOBase],
        show: Show,
        is_flooded: Callable[[], bool] | None,
    ) -> None:
        self.is_overdue = False
        self._control = control
        self._output = Output(len(pipes), show)
        self._is_flooded = is_flooded
        self._was_flooded = False
        self._report = b""
        self._give_up_at = math.inf
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        for stream, pipe in enumerate(pipes):
            self._selector.register(pipe, selectors.EVENT_READ, stream)

    def hurry(self) -> None:
        """End the command early; for another thread than the one that waits."""
        self._give_up_at = min(self._give_up_at, time.monotonic() + _OVERDUE_AFTER_S)
        self._end()

    def outcome(self, timeout_s: float | None) -> Outcome:
        started = time.monotonic()
        if timeout_s is not None:
            self._give_up_at = min(self._give_up_at, started + timeout_s + _OVERDUE_AFTER_S)
        try:
            self._read()
        except BaseException:  # interrupted
            self._end()
            self._control.settimeout(_OVERDUE_AFTER_S)
            try:
                while self._control.recv(4096):
                    pass
            except OSError:
                self.is_overdue = True
            raise
        finally:
            self._selector.close()
        took = time.monotonic() - started
        ended = self._output.outcome(_KILLED, took)
        if self.is_overdue:
            note = "the command stopped the process that watched over it; both were ended"
            return replace(ended, ended_by="time_limit", notes=(note,))
        if not self._report:
            note = "the command ended the process that watched over it; what it left was ended"
            return replace(ended, notes=(note,))
        report = ast.literal_eval(self._report.decode())
        failure = report.get("failure")
        if not failure and not report["has_begun"] and report["ended_by"] == "itself":
            failure = ended.output.strip() or "the sandbox did not start"
        if failure:
            return Outcome(-1, "", took, failure=failure)
        alive = report["alive"]
        return replace(
            ended,
            exit_code=report["code"],
            duration_s=report["took_s"],
            ended_by="output_limit" if self._was_flooded else report["ended_by"],
            stopped_processes=report["stopped"],
            notes=(f"{alive} processes could not be ended",) if alive else (),
        )

    def _read(self) -> None:
        while self._selector.get_map():
            left = max(self._give_up_at - time.monotonic(), 0)
            ready = self._selector.select(min(left, _LOOK_UP_S))
            for key, _ in ready:
                if key.fileobj is self._control:
                    self._read_report()
                elif chunk := key.fileobj.read(CHUNK_BYTES):  # type: ignore[union-attr]
                    self._output.add(key.data, chunk)
                else:
                    self._selector.unregister(key.fileobj)
            is_flooded = self._output.is_flood or (self._is_flooded and self._is_flooded())
            if is_flooded and not self._was_flooded:
                self._was_flooded = True
                self._end()
            waits = self._control in self._selector.get_map()
            # What is there already is read to its end, however slow the screen is.
            if time.monotonic() >= self._give_up_at and (waits or is_flooded or not ready):
                self.is_overdue = waits
                return

    def _read_report(self) -> None:
        try:
            chunk = self._control.recv(4096)
        except ConnectionResetError:
            chunk = b""  # it ended before it read its input
        self._report += chunk
        if not chunk or self._report.endswith(b"\n"):
            self._selector.unregister(self._control)
            self._give_up_at = time.monotonic() + DRAIN_S

    def _end(self) -> None:
        with contextlib.suppress(OSError):  # it has just ended by itself
            self._control.shutdown(socket.SHUT_WR)
