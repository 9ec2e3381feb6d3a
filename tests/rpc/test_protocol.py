"""JSON-RPC 2.0: the specification's own examples, what is malformed, and what holds for any bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.rpc.protocol import (
    BATCH_LIMIT,
    Code,
    Method,
    MethodError,
    method,
    read,
)
from tests.helpers import cpu_below


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


def echo(
    _: object, text: str, number: float | None = None, other: str | None = None
) -> list[object]:
    return [text, number, other]


METHODS = {
    "subtract": method(subtract),
    "sum": method(add),
    "update": method(update),
    "foobar": method(stumble),
    "notify_hello": method(hello),
    "notify_sum": method(add),
    "get_data": method(lambda _: ["hello", 5]),
    "fail": method(fail),
    "stumble": method(stumble),
    "not_json": method(lambda _: object()),
    "echo": method(echo),
}

# The section's `foobar` is unknown in one place and a notification in another: unknown serves both.
EXAMPLES_OF_SECTION_7 = {name: METHODS[name] for name in METHODS if name != "foobar"}


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


# --- the specification's section 7 -----------------------------------------------------------------


def result(value: object, id_: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "result": value, "id": id_}


def refused(code: int, id_: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "error": code, "id": id_}


SECTION_7: list[tuple[str, str, object]] = [
    (
        "positional parameters",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        result(19, 1),
    ),
    (
        "positional parameters, the other way round",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        result(-19, 2),
    ),
    (
        "named parameters",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        result(19, 3),
    ),
    (
        "named parameters in the other order",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        result(19, 4),
    ),
    ("a notification", '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    ("a notification without params", '{"jsonrpc": "2.0", "method": "foobar"}', None),
    (
        "a method that does not exist",
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        refused(-32601, "1"),
    ),
    (
        "invalid JSON",
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        refused(-32700),
    ),
    (
        "an invalid request object",
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        refused(-32600),
    ),
    (
        "a batch of invalid JSON",
        (
            '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
            ' {"jsonrpc": "2.0", "method"]'
        ),
        refused(-32700),
    ),
    ("an empty array", "[]", refused(-32600)),
    ("an invalid batch, not empty", "[1]", [refused(-32600)]),
    ("an invalid batch", "[1,2,3]", [refused(-32600), refused(-32600), refused(-32600)]),
    (
        "a batch",
        """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]""",
        [
            result(7, "1"),
            result(19, "2"),
            refused(-32600),
            refused(-32601, "5"),
            result(["hello", 5], "9"),
        ],
    ),
    (
        "a batch of notifications",
        """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
        ]""",
        None,
    ),
]


def coded(response: Any) -> Any:
    """Return a response with its error's code in the place of the error."""
    if isinstance(response, list):
        return [coded(each) for each in response]
    return {**response, "error": response["error"]["code"]} if "error" in response else response


@pytest.mark.parametrize(
    ("line", "expected"), [pytest.param(*row[1:], id=row[0]) for row in SECTION_7]
)
def test_an_example_of_the_specification(line: str, expected: object) -> None:
    """JSON-RPC 2.0, section 7, in full."""
    data = answers(line.replace("\n", " "), EXAMPLES_OF_SECTION_7)
    assert (coded(json.loads(data)) if data else None) == expected


# --- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("id_json", ["true", "false", "{}", "[]", "[1]"])
def test_an_id_of_another_kind_is_refused(id_json: str) -> None:
    """JSON-RPC 2.0, section 4; what can't be echoed is answered with null."""
    line = f'{{"jsonrpc":"2.0","id":{id_json},"method":"get_data"}}'
    assert error(line)[0] == -32600
    assert answer(line)["id"] is None


def test_a_null_id_is_no_notification() -> None:
    assert answer('{"jsonrpc":"2.0","id":null,"method":"get_data"}')["id"] is None


# --- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("1", -32600, "invalid request: Expected `object`, got `int`"),
        ("null", -32600, "invalid request: Expected `object`, got `null`"),
        ('"ping"', -32600, "invalid request: Expected `object`, got `str`"),
        ("{}", -32600, "invalid request: Object missing required field `jsonrpc`"),
        ('{"id":1,"method":"sum"}', -32600, "invalid request: Object missing"),
        ('{"jsonrpc":2.0,"id":1}', -32600, "invalid request: Expected `str`, got `float` - at"),
        ('{"jsonrpc":"1.0","id":1}', -32600, "invalid request: Invalid enum value '1.0' - at"),
        ('{"jsonrpc":"2.0","id":1}', -32600, "invalid request: Object missing required field"),
        (
            '{"jsonrpc":"2.0","id":1,"method":null}',
            -32600,
            "invalid request: Expected `str`, got `null` - at `$.method`",
        ),
        (
            '{"jsonrpc":"2.0","id":1,"method":"sum","params":"x"}',
            -32600,
            "invalid request: `params` must be an object or an array",
        ),
        (
            '{"jsonrpc":"2.0","id":1,"method":"sum","params":0}',
            -32600,
            "invalid request: `params` must be an object or an array",
        ),
        ('{"jsonrpc":"2.0","id":1,"method":"sum","params":[}', -32700, "parse error: "),
        ('{"jsonrpc":"1.0","id":1,"method":"sum"', -32700, "parse error: "),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["\xff"]}', -32700, "parse error: "),
        ('{"jsonrpc":"2.0","id":1,"method":"unknown"}', -32601, "method not found: unknown"),
        ('{"jsonrpc":"2.0","id":1,"method":""}', -32601, "method not found: "),
        (
            '{"jsonrpc":"2.0","id":1,"method":"\\u001b[2J\\n"}',
            -32601,
            "method not found: \\x1b[2J\\n",
        ),
        ("", -32700, "parse error: Input data was truncated"),
        ("{", -32700, "parse error: Input data was truncated"),
        ("[1] 2", -32700, "parse error: JSON is malformed: trailing characters (byte 5)"),
        (b"\xff\xfe", -32700, "parse error: JSON is malformed: invalid character (byte 0)"),
        (b'"\xed\xa0\x80"', -32700, "parse error: 'utf-8' codec can't decode byte 0xed"),
        ('"\\ud800"', -32700, "parse error: Input data was truncated"),
        (b"\x00\x01\x02", -32700, "parse error: JSON is malformed: invalid character (byte 0)"),
        ("NaN", -32700, "parse error: JSON is malformed: invalid character (byte 0)"),
        ("[Infinity]", -32700, "parse error: JSON is malformed: invalid character (byte 1)"),
        ("1" * 5000, -32700, "parse error: Integer value out of range"),
        ('{"id":1e999}', -32700, "parse error: Number out of range"),
    ],
)
def test_a_malformed_line_says_what_is_wrong(line: bytes | str, code: int, message: str) -> None:
    found, said = error(line)
    assert (found, said.startswith(message)) == (code, True), said


def test_null_params_are_no_params() -> None:
    """Many libraries write them."""
    assert answer('{"jsonrpc":"2.0","id":1,"method":"get_data","params":null}')["result"]


def test_an_invalid_request_keeps_an_id_that_can_be_read() -> None:
    assert answer('{"jsonrpc":"2.0","id":"x","method":7}')["id"] == "x"


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    line = '{"jsonrpc":"2.0","id":1,"id":2,"method":"sum","method":"get_data"}'
    assert answer(line) == result(["hello", 5], 2)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["[",', b'["\\"[",[', b'{"a":"]","b":'])
@pytest.mark.one_in(2)
def test_deep_nesting_is_refused(opening: bytes) -> None:
    """Python's own limit is the C stack."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":'
    for depth in (10_000, 200_000):
        for line in (opening, call + opening, b"[" + call + opening):
            assert error(line + opening * depth)[0] == -32700


@pytest.mark.parametrize(
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


def test_a_batch_within_a_batch_is_no_request() -> None:
    assert coded(answer("[[]]")) == [refused(-32600)]


def test_a_broken_method_costs_a_batch_only_its_own_answer() -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "stumble"},
        {"jsonrpc": "2.0", "method": "stumble"},
        {"jsonrpc": "2.0", "id": 2, "method": "get_data"},
    ]
    assert coded(answer(json.dumps(batch))) == [refused(-32603, 1), result(["hello", 5], 2)]


# --- params ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("{}", "Object missing required field `text`"),
        ("[]", "Expected `array` of at least length 1, got 0"),
        ('{"text":null}', "Expected `str`, got `null` - at `$.text`"),
        ('{"text":5}', "Expected `str`, got `int` - at `$.text`"),
        ('{"text":true}', "Expected `str`, got `bool` - at `$.text`"),
        ('{"text":["x"]}', "Expected `str`, got `array` - at `$.text`"),
        ('["x","y"]', "Expected `float | null`, got `str` - at `$[1]`"),
        ('["x",true]', "Expected `float | null`, got `bool` - at `$[1]`"),
        (f'["x",{"9" * 400}]', "Number out of range - at `$[1]`"),
        ('["x",1,0]', "Expected `str | null`, got `int` - at `$[2]`"),
        ('{"text":"x","cwd\\u001b":1}', "Object contains unknown field `cwd\\x1b`"),
        ('["x",1,"y",2]', "Expected `array` of at most length 3"),
    ],
)
def test_wrong_params_are_named_with_what_is_allowed(params: str, message: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"echo","params":{params}}}'
    takes = "echo takes text, number?, other?"
    assert error(line) == (-32602, f"invalid params: {message}; {takes}")


def test_a_method_without_params_takes_none() -> None:
    code, said = error('{"jsonrpc":"2.0","id":1,"method":"get_data","params":[1]}')
    assert code == -32602
    assert said.endswith("; get_data takes none")


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ('["x"]', ["x", None, None]),
        ('{"text":"x","other":"y"}', ["x", None, "y"]),
        ('["x",2,"y"]', ["x", 2.0, "y"]),
        ('["x",null,null]', ["x", None, None]),
        ('{"number":3,"text":""}', ["", 3.0, None]),
    ],
)
def test_what_is_left_out_or_null_is_none(params: str, values: list[object]) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"echo","params":{params}}}'
    assert answer(line)["result"] == values


# --- faults and answers ----------------------------------------------------------------------------


def test_a_method_says_why_it_failed() -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"fail","params":["a.txt is missing"]}'
    assert error(line) == (-32603, "a.txt is missing")


@pytest.mark.parametrize("name", ["stumble", "not_json"])
def test_our_own_fault_is_for_the_log(name: str) -> None:
    """Its answer says nothing of its inside."""
    [request] = read(b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % name.encode(), METHODS).requests
    found = request.answer(int)
    why = {"code": -32603, "message": "internal error: see the server's log"}
    assert json.loads(found.data)["error"] == why
    assert isinstance(found.bug, KeyError | TypeError)


@pytest.mark.parametrize("method", ["stumble", "fail", "unknown", "get_data", "echo"])
def test_a_notification_is_never_answered(method: str) -> None:
    """JSON-RPC 2.0, section 4.1: also when it fails."""
    assert answers(f'{{"jsonrpc":"2.0","method":"{method}"}}') == b""


@pytest.mark.parametrize("text", ["é\u2028\u2029\x85\n\r", "\ud83d\ude00", "😀", "\ud800"])
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
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
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
