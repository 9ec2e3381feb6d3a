"""Split a byte stream into lines: pieces in, complete lines out.

Knows how long a line may be and what the first line of a connection may say; knows nothing of JSON.
"""

from typing import NamedTuple

from codingagent.model.patterns import lazy_pattern

# 004 sets no limit. A file operation carries at most 10 MB, which JSON makes longer.
LINE_LIMIT_BYTES = 2**24

HEAD_BYTES = 256
"""Of a first line no more is looked at; a token fits in."""

# Firecracker's hypervisor sends this to a guest before the host's first byte.
_HANDSHAKE = lazy_pattern(rb"CONNECT ([0-9]{1,10})\r?")

# A port of this machine is open to all its users, so the first line must present the server's token.
_TOKEN = lazy_pattern(rb"TOKEN ([\x21-\x7e]{1,200})\r?")

# How a browser's request begins. A web page may send one to any port of this machine, and the lines of
# its body would be requests. No JSON begins this way.
_HTTP = lazy_pattern(rb"(?:[A-Z]{3,20} +(?:/|\*|https?:|[^ ]+ +HTTP/)|PRI \* HTTP/)")


class TooLong(NamedTuple):
    """Takes the place of a line that was not kept; `head` is its beginning."""

    head: bytes


class LineBuffer:
    """Take a stream in pieces and return its lines, without line ends and without blank lines.

    A line beyond the limit is returned once, as TooLong, as soon as that is known; the rest of it is dropped
    as it arrives.
    """

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held = bytearray()
        self._is_dropping = False

    def receive(self, piece: bytes) -> list[bytes | TooLong]:
        """Return the lines that end in this piece."""
        if self._is_one_line(piece):
            return [piece[:-1]]
        *ends, rest = piece.split(b"\n")
        found: list[bytes | TooLong] = []
        for end in ends:
            self._add(end, found)
            if self._held:
                line = bytes(self._held)
                if not line.isspace():
                    found.append(line)
                self._held.clear()
            self._is_dropping = False
        self._add(rest, found)
        return found

    def _is_one_line(self, piece: bytes) -> bool:
        """Return whether this piece is exactly one line, as it is when a client awaits each answer."""
        last = len(piece) - 1
        return (
            0 < last <= self._limit_bytes
            and not self._held
            and not self._is_dropping
            and piece.find(b"\n") == last
            and not piece.isspace()
        )

    @property
    def held(self) -> bytes:
        """How the line begins that has not ended yet."""
        return bytes(self._held[: HEAD_BYTES + 1])

    def end(self) -> bytes | None:
        """Return the last line of a stream that ended without a line end, if any."""
        line = bytes(self._held)
        self._held.clear()
        return line if line and not line.isspace() else None

    def _add(self, part: bytes, found: list[bytes | TooLong]) -> None:
        if self._is_dropping:
            return
        if len(self._held) + len(part) <= self._limit_bytes:
            self._held += part
            return
        head = self._held[:HEAD_BYTES]
        found.append(TooLong(bytes(head + part[: HEAD_BYTES - len(head)])))
        self._held = bytearray()
        self._is_dropping = True


def handshake(first_line: bytes) -> bytes | None:
    """Return the answer to a first line that is a handshake, else None."""
    found = _HANDSHAKE.fullmatch(first_line)
    return b"OK %s\n" % found[1] if found else None


def token_line(token: str) -> bytes:
    """Return the first line by which a client presents a token."""
    return b"TOKEN %s\n" % token.encode("ascii", "replace")


TOKEN_TAKEN = b"OK\n"
"""The server's answer to the right token."""


def presented_token(first_line: bytes) -> bytes | None:
    found = _TOKEN.fullmatch(first_line)
    return found[1] if found else None


def is_http(first_line: bytes) -> bool:
    """Return whether a connection's first line, or its head, comes from a web client."""
    return _HTTP.match(first_line) is not None
