"""JSON-RPC 2.0: the specification's own examples, what is malformed, and what holds for any bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.rpc.protocol import BATCH_LIMIT, Code, Method, MethodError, method, read
from tests import golden
from tests.helpers import cpu_below
from tests.rows import each_row


def subtract(_: object, minuend: int, subtrahend: int) -> int:
    return minuend - subtrahend


def add(_: object, a: int, b: int, c: int) -> int:
    return a + b + c


def update(_: object, a: int, b: int, c: int, d: int, e: int) -> None:
    """Takes a notification."""


def hello(_: object, n: int) -> None:
    """Takes a notification."""


def fail(_: object, text: str) -> None:
    raise MethodError(Code.INTERNAL_ERROR, text)


def stumble(_: object) -> None:
    raise KeyError("ours")


def echo(_: object, text: str, number: float | None = None, other: str | None = None) -> list[object]:
    return [text, number, other]


METHODS = {
    "subtract": method(subtract),
    "sum": method(add),
    "update": method(update),
    "notify_hello": method(hello),
    "notify_sum": method(add),
    "get_data": method(lambda _: ["hello", 5]),
    "fail": method(fail),
    "stumble": method(stumble),
    "not_json": method(lambda _: object()),
    "echo": method(echo),
}


def answers(line: bytes | str, methods: dict[str, Method] | None = None) -> bytes:
    """Answers a line as a server's loop does; empty where nothing is answered."""
    data = line.encode() if isinstance(line, str) else line
    message = read(data, METHODS if methods is None else methods)
    found = [answer for request in message.requests if (answer := request.answer(int).data)]
    if not message.is_batch:
        return b"".join(found)
    return b"[" + b",".join(found) + b"]" if found else b""


def answer(line: bytes | str) -> Any:
    return json.loads(answers(line))


def error(line: bytes | str) -> tuple[int, str]:
    """Return code and message of the one error that answers a line."""
    response = answer(line)
    assert set(response) == {"jsonrpc", "id", "error"}
    assert set(response["error"]) == {"code", "message"}
    return response["error"]["code"], response["error"]["message"]


# --- the table -------------------------------------------------------------------------------------


def show(line: bytes | str) -> str:
    """Return what answers a line; nothing, if it is a notification."""
    return answers(line).decode() or "nothing"


TABLES: dict[str, golden.Show] = {"answers.txt": show}


@each_row(("line", "answer"), golden.cases(__file__, "answers.txt"))
def test_what_answers_a_line(line: bytes | str, answer: str) -> None:
    """JSON-RPC 2.0, sections 4 to 6, and each example of section 7."""
    assert show(line) == answer


def test_a_number_of_thousands_of_digits_is_no_request() -> None:
    assert error("1" * 5000) == (-32700, "parse error: Integer value out of range")


# --- ids -------------------------------------------------------------------------------------------


@each_row(
    "id_json",
    [
        *("0", "1", "-7", "1.5", "-0.25", "null", '"1"', '""', '"a b"', "1e300", str(2**64)),
        *('"é"', '"\\n"', "1" * 4000, '"\\u0000"'),
    ],
)
def test_an_id_is_echoed_as_it_came(id_json: str) -> None:
    """JSON-RPC 2.0, section 5: the same value as the id in the request."""
    data = answers(f'{{"jsonrpc":"2.0","id":{id_json},"method":"get_data"}}')
    echoed, sent = json.loads(data)["id"], json.loads(id_json)
    assert (type(echoed), echoed) == (type(sent), sent)
    data.decode()


# --- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["[",', b'["\\"[",[', b'{"a":"]","b":'])
@pytest.mark.one_in(2)
def test_deep_nesting_is_refused(opening: bytes) -> None:
    """Python's own limit is the C stack."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":'
    for depth in (10_000, 200_000):
        for line in (opening, call + opening, b"[" + call + opening):
            assert error(line + opening * depth)[0] == -32700


@each_row(
    "line",
    [
        b"[]" * 400 + b'"' + b'\\"' * 250_000,
        b'"' + b'\\"' * 500_000,
        b"[" * 1_000_000,
        b'["' * 500_000,
        b"1" * 1_000_000,
        b"[" + b"[]," * 250_000,
        b"[" + b"1," * 500_000 + b"1]",
    ],
    ids=["unended", "quotes", "brackets", "strings", "digits", "lists", "numbers"],
)
def test_a_hostile_line_costs_its_length(line: bytes) -> None:
    """Quadratic, each of these would take hours."""
    with cpu_below(60):
        assert error(line)[0] in (-32700, -32600)


# --- batches ---------------------------------------------------------------------------------------


def test_a_batch_has_a_limit() -> None:
    """Its answers would have none."""
    request = '{"jsonrpc":"2.0","id":1,"method":"get_data"}'
    assert len(answer(f"[{','.join([request] * BATCH_LIMIT)}]")) == BATCH_LIMIT
    assert error(f"[{','.join([request] * (BATCH_LIMIT + 1))}]") == (
        -32600,
        "invalid request: a batch holds 1 to 1000 requests, not 1001",
    )


# --- faults and answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stumble", "not_json"])
def test_our_own_fault_is_for_the_log(name: str) -> None:
    """Its answer says nothing of its inside."""
    [request] = read(b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % name.encode(), METHODS).requests
    found = request.answer(int)
    why = {"code": -32603, "message": "internal error: see the server's log"}
    assert json.loads(found.data)["error"] == why
    assert isinstance(found.bug, KeyError | TypeError)


@each_row("text", ["é\u2028\u2029\x85\n\r", "\ud83d\ude00", "😀", "\ud800"])
def test_any_text_is_one_line_of_utf_8(text: str) -> None:
    """Node's readline ends a line at U+2028; half a character is no UTF-8, and comes as `?`."""
    data = answers(
        '{"jsonrpc":"2.0","id":1,"method":"say"}', {"say": method(lambda _: {"text": text * 2000})}
    )
    assert len(data.decode().splitlines()) == 1
    whole = text.encode("utf-8", "replace").decode()
    assert json.loads(data)["result"]["text"] == whole * 2000


# --- properties ------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
IDS = st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
LIKE_REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "method": st.sampled_from(sorted(METHODS)) | JSON,
        "params": JSON,
        "id": IDS | JSON,
    },
)


def check_response(response: object) -> None:
    """Fails unless it is a response object of JSON-RPC 2.0."""
    assert isinstance(response, dict)
    assert response["jsonrpc"] == "2.0"
    assert response["id"] is None or type(response["id"]) in (str, int, float)
    if "error" in response:
        assert set(response) == {"jsonrpc", "id", "error"}
        assert type(response["error"]["code"]) is int
        assert type(response["error"]["message"]) is str
    else:
        assert set(response) == {"jsonrpc", "id", "result"}


def check_line(line: bytes) -> None:
    data = answers(line)
    assert b"\n" not in data
    if data:
        document = json.loads(data.decode("utf-8", "strict"))
        for response in document if isinstance(document, list) else [document]:
            check_response(response)


@given(st.binary())
def test_any_bytes_are_answered(line: bytes) -> None:
    """Never an exception, always a response."""
    check_line(line)


@given(JSON | LIKE_REQUESTS | st.lists(LIKE_REQUESTS | JSON))
def test_any_json_is_answered(document: object) -> None:
    check_line(json.dumps(document).encode())


@given(st.lists(IDS | st.just(...), min_size=1, max_size=20))
def test_a_batch_answers_its_requests_in_order(ids: list[object]) -> None:
    """Every request but the notifications, each with its own id."""
    batch = [
        {"jsonrpc": "2.0", "method": ("get_data", "unknown", "stumble")[i % 3]}
        | ({} if id_ is ... else {"id": id_})
        for i, id_ in enumerate(ids)
    ]
    data = answers(json.dumps(batch))
    echoed = [response["id"] for response in json.loads(data)] if data else []
    assert repr(echoed) == repr([id_ for id_ in ids if id_ is not ...])
