"""Lines out of a stream, however it is cut."""

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.rpc.framing import LINE_LIMIT_BYTES, LineBuffer, TooLong, handshake, is_http
from tests.helpers import cpu_below

LIMIT = 10

CASES: list[tuple[bytes, list[bytes | TooLong]]] = [
    (b"", []),
    (b"a\n", [b"a"]),
    (b"a\nb\n", [b"a", b"b"]),
    (b"a", [b"a"]),
    (b"a\nb", [b"a", b"b"]),
    (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
    (b"\n\r\n  \n\t\na\n\n", [b"a"]),
    (b"  ", []),
    (b"0123456789\n", [b"0123456789"]),
    (b"0123456789A\nb\n", [TooLong(b"0123456789A"), b"b"]),
    (b"0123456789ABCDEF" * 100 + b"\nb", [TooLong(b""), b"b"]),
    (b"0123456789ABCDEF" * 100, [TooLong(b"")]),
    (b"0123456789A\n" * 3, [TooLong(b"0123456789A")] * 3),
    (b"\xff\x00\n\xc3\xa9\n", [b"\xff\x00", b"\xc3\xa9"]),
]


def lines(pieces: Iterable[bytes], limit: int = LIMIT) -> list[bytes | TooLong]:
    """Return all lines of a stream; of one that is too long only that it was."""
    buffer = LineBuffer(limit)
    found = [line for piece in pieces for line in buffer.receive(piece)]
    last = buffer.end()
    return found if last is None else [*found, last]


def without_heads(found: list[bytes | TooLong]) -> list[bytes | TooLong]:
    return [TooLong(b"") if isinstance(line, TooLong) else line for line in found]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_a_stream_is_the_same_however_it_is_cut(
    data: bytes, expected: list[bytes | TooLong]
) -> None:
    """Whole, byte by byte, and with more behind it."""
    wanted = without_heads(expected)
    assert without_heads(lines([data])) == wanted
    assert without_heads(lines([data[i : i + 1] for i in range(len(data))])) == wanted
    ended = data if data.endswith(b"\n") or not data else data + b"\n"
    assert without_heads(lines([ended + b"more\n"])) == [*wanted, b"more"]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_any_cut_gives_the_same(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert without_heads(lines(pieces)) == without_heads(lines([data]))


def test_a_line_that_is_too_long_is_known_at_once_and_said_once() -> None:
    """Its end may never come."""
    buffer = LineBuffer(LIMIT)
    assert buffer.receive(b"0123456789") == []
    assert buffer.receive(b"A") == [TooLong(b"0123456789A")]
    assert buffer.receive(b"B" * 1000) == []
    assert buffer.receive(b"C\nd\n") == [b"d"]
    assert buffer.end() is None


def test_a_line_that_is_too_long_is_not_held() -> None:
    buffer = LineBuffer()
    piece = b"x" * 2**16
    tracemalloc.start()
    try:
        for _ in range(4 * LINE_LIMIT_BYTES // len(piece)):
            buffer.receive(piece)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now < 2**16
    assert peak < 2.5 * LINE_LIMIT_BYTES


@pytest.mark.parametrize("size", [1, 100, 2**16])
def test_a_long_line_costs_its_length(size: int) -> None:
    """In tiny pieces, too."""
    total = 2**20 if size == 1 else LINE_LIMIT_BYTES - size
    buffer = LineBuffer()
    with cpu_below(50):
        for _ in range(total // size):
            buffer.receive(b"x" * size)
        [line] = buffer.receive(b"\n")
    assert len(line) == total // size * size


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"CONNECT 52", b"OK 52\n"),
        (b"CONNECT 5252\r", b"OK 5252\n"),
        (b"CONNECT", None),
        (b"CONNECT 52 ", None),
        (b"CONNECT -1", None),
        (b"CONNECT 12345678901", None),
        (b"connect 52", None),
        (b"OK 52", None),
        (b'{"jsonrpc":"2.0"}', None),
    ],
)
def test_a_handshake_is_answered(line: bytes, answer: bytes | None) -> None:
    assert handshake(line) == answer


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\r",
        b"POST /",
        b"POST /rpc HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"GET http://127.0.0.1:8000/ HTTP/1.1",
        b"CONNECT 127.0.0.1:8000 HTTP/1.1",
        b"PRI * HTTP/2.0\r",
        b"PUT /" + b"x" * 300,
    ],
)
def test_a_web_client_is_known(line: bytes) -> None:
    """A web page may send to any port of this machine; its lines must not be requests."""
    assert is_http(line)


@pytest.mark.parametrize(
    "line", [b"CONNECT 52", b'{"method":"GET / HTTP/1.1"}', b"[1]", b"\xff\xfe", b"GET", b"hello /"]
)
def test_nothing_else_is_a_web_client(line: bytes) -> None:
    assert not is_http(line)
