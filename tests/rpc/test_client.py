"""The client for hosts, against our server and against servers that misbehave."""

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import codingagent.rpc
from codingagent.errors import CodingAgentError, UsageError
from codingagent.process.runner import Transport
from codingagent.rpc import (
    AnswerError,
    CallTimeoutError,
    Client,
    ClosedError,
    Command,
    ConnectError,
    ExecResult,
    FileEntry,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    ParseError,
    RemoteError,
    RpcError,
    Vsock,
)
from codingagent.rpc import client as client_module
from codingagent.rpc.endpoints import Listenable, Tcp, UnixSocket
from tests.helpers import HANG_S, REPOSITORY, children, wait_until
from tests.rows import each_row
from tests.rpc.test_server import PROGRAM
from tests.serving import World, beside, server_at

Serve = Callable[[socket.socket], None]


@pytest.fixture(name="world")
def _world() -> World:
    return World()


@pytest.fixture(name="either", params=["unix", "tcp"])
def _either(request: pytest.FixtureRequest, tmp_path: Path, world: World) -> Iterator[Listenable]:
    wanted = UnixSocket(str(tmp_path / "s")) if request.param == "unix" else Tcp("127.0.0.1", 0)
    with server_at(wanted, world) as endpoint:
        yield endpoint


@contextlib.contextmanager
def scripted(script: Serve) -> Iterator[Client]:
    """Yield a client of a server that does as the script says."""
    ours, theirs = socket.socketpair()

    def work() -> None:
        with theirs:
            script(theirs)

    with beside(work), Client(ours, timeout_s=HANG_S) as client:
        yield client


def replying(*replies: object) -> Serve:
    """Return a script that answers each line with the next of these: bytes as they are, else a result."""

    def serve(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        with lines:
            for reply in replies:
                call = json.loads(lines.readline())
                said = {"jsonrpc": "2.0", "id": call["id"], "result": reply}
                data = reply if isinstance(reply, bytes) else json.dumps(said).encode() + b"\n"
                connection.sendall(data)

    return serve


# --- calls -----------------------------------------------------------------------------------------


def test_calls_by_name_and_by_position(either: Listenable) -> None:
    with Client.connect(either) as client:
        client.ping()
        assert client.call("echo", {"text": "é\u2028\ud7ff"}) == "é\u2028\ud7ff"
        assert client.call("echo", ["x"]) == "x"
        assert client.call("ping") == {"pong": True}
        assert len(client.call("big", [5_000_000])) == 5_000_000


def test_a_client_serves_several_threads(either: Listenable) -> None:
    """One call at a time, and each its own answer."""
    with Client.connect(either) as client, contextlib.ExitStack() as stack:
        wrong: list[str] = []

        def work(mark: str) -> None:
            wrong.extend(
                text for i in range(50) if (text := client.call("echo", [f"{mark}{i}"])) != f"{mark}{i}"
            )

        for mark in "abcd":
            stack.enter_context(beside(partial(work, mark)))
    assert wrong == []


@pytest.mark.parametrize(
    ("method", "params", "kind", "code"),
    [
        ("unknown", [], MethodNotFoundError, -32601),
        ("echo", [1], InvalidParamsError, -32602),
        ("stumble", [], InternalError, -32603),
        ("echo", ["x" * 2**24], InvalidRequestError, -32600),
    ],
)
def test_an_error_of_the_server_is_typed_and_costs_one_call(
    either: Listenable, method: str, params: list[object], kind: type[RemoteError], code: int
) -> None:
    with Client.connect(either) as client:
        with pytest.raises(kind) as caught:
            client.call(method, params)
        assert caught.value.code == code
        client.ping()


@pytest.mark.parametrize(("code", "kind"), [(-32700, ParseError), (-32000, RemoteError)])
def test_other_errors_of_a_server(code: int, kind: type[RemoteError]) -> None:
    error = {"code": code, "message": "no\x1b[2J", "data": [1]}
    line = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode() + b"\n"
    with scripted(replying(line)) as client, pytest.raises(RemoteError) as caught:
        client.ping()
    fault = caught.value
    assert type(fault) is kind
    assert (fault.code, fault.message, fault.data) == (code, "no\x1b[2J", [1])
    assert str(fault) == f"no\\x1b[2J (code {code})"


def test_the_tree_of_errors_is_the_one_drawn() -> None:
    """One except clause catches all, and the command line says any of them in one line."""
    kinds = [each for each in vars(client_module).values() if isinstance(each, type)]
    errors = [each for each in kinds if issubclass(each, RpcError)]
    assert {each.exit_status for each in errors} == {1}
    assert codingagent.rpc.__doc__ is not None
    assert [each.__name__ for each in errors if each.__name__ not in codingagent.rpc.__doc__] == []
    assert all(getattr(codingagent.rpc, each.__name__) is each for each in errors)


# --- typed methods ---------------------------------------------------------------------------------


def test_results_are_typed() -> None:
    run = {"exit_code": 3, "stdout": "o", "stderr": "e"}
    entries = [{"name": "a", "is_dir": False, "size": 5}, {"name": "b", "is_dir": True, "size": 0}]
    replies = replying(run, run, {"content": "text"}, {"success": True}, {"entries": entries})
    with scripted(replies) as client:
        assert client.exec("true") == ExecResult(3, "o", "e")
        assert client.exec_code("sh", "true", limit_s=5, timeout_s=None) == ExecResult(3, "o", "e")
        assert client.read_file("a") == "text"
        client.write_file("a", "text")
        assert client.list_dir(".") == (FileEntry("a", False, 5), FileEntry("b", True, 0))


def test_methods_send_what_004_names() -> None:
    asked: list[object] = []

    def serve(connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            for line in lines:
                call = json.loads(line)
                asked.append((call["method"], call["params"]))
                result = {
                    "pong": True,
                    "exit_code": 0,
                    **dict.fromkeys(("stdout", "stderr", "content"), ""),
                    "success": True,
                    "entries": [],
                }
                said = {"jsonrpc": "2.0", "id": call["id"], "result": result}
                connection.sendall(json.dumps(said).encode() + b"\n")

    with scripted(serve) as client:
        client.ping()
        client.exec("ls")
        client.exec("ls", limit_s=2)
        client.exec_code("python", "1")
        client.read_file("/a")
        client.write_file("/a", "b")
        client.list_dir("/")
    assert asked == [
        ("ping", {}),
        ("exec", {"cmd": "ls"}),
        ("exec", {"cmd": "ls", "timeout": 2}),
        ("exec_code", {"lang": "python", "code": "1"}),
        ("read_file", {"path": "/a"}),
        ("write_file", {"path": "/a", "content": "b"}),
        ("list_dir", {"path": "/"}),
    ]


@each_row("result", [None, [], {}, {"exit_code": True, "stdout": "", "stderr": ""}, {"exit_code": "0"}])
def test_a_result_of_another_shape_is_said(result: object) -> None:
    with (
        scripted(replying(result)) as client,
        pytest.raises(AnswerError, match="the answer is not as it should be"),
    ):
        client.exec("x")


# --- servers that misbehave ------------------------------------------------------------------------


@each_row(
    ("reply", "message"),
    [
        (b"garbage\x1b\n", "not a JSON-RPC 2.0 response: garbage\\\\x1b"),
        (b"[" * 100_000 + b"\n", "not a JSON-RPC 2.0 response"),
        (b"[]\n", "not a JSON-RPC 2.0 response"),
        (b'{"id":1}\n', "not a JSON-RPC 2.0 response"),
        (b'{"id":1,"result":1,"error":{"code":1}}\n', "not a JSON-RPC 2.0 response"),
        (b'{"id":2,"result":1}\n', "the answer belongs to another call"),
        (b'{"id":null,"result":1}\n', "the answer belongs to another call"),
        (b'{"id":1,"result":1}\n{"id":2,"result":1}\n', "more than the answer"),
        (b'{"id":1,"error":7}\n', "not a JSON-RPC 2.0 response"),
    ],
)
def test_what_is_no_answer_is_said(reply: bytes, message: str) -> None:
    with scripted(replying(reply)) as client, pytest.raises(AnswerError, match=message):
        client.call("x")


def test_an_answer_without_end_is_not_held() -> None:
    def serve(connection: socket.socket) -> None:
        piece = b"x" * 2**20
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(piece)

    with scripted(serve) as client, pytest.raises(AnswerError, match="the answer is longer than 64 MiB"):
        client.call("x")


def test_a_null_error_beside_a_result_is_none() -> None:
    """Specification 004 shows `"data": null`, and libraries write as much of `error`."""
    with scripted(replying(b'{"id":1,"result":5,"error":null}\n')) as client:
        assert client.call("x") == 5


def test_a_server_that_hangs_up_is_said() -> None:
    with scripted(replying(b"")) as client:
        with pytest.raises(ClosedError, match="the connection ended: the server closed the connection"):
            client.call("x")
        with pytest.raises(ClosedError, match="the connection has ended: the server closed the connection"):
            client.call("x")


def test_after_a_time_out_the_connection_is_closed(either: Listenable, world: World) -> None:
    """The late answer would be taken for the next call's; and what runs is ended."""
    with Client.connect(either, timeout_s=0.1) as client:
        with pytest.raises(CallTimeoutError, match=r"wait gave no answer within 0\.1 s"):
            client.call("wait")
        with pytest.raises(ClosedError, match="the connection has ended: a call took too long"):
            client.ping()
    wait_until(lambda: world.waiting == 0)


def test_a_call_may_have_a_time_of_its_own(either: Listenable) -> None:
    with Client.connect(either, timeout_s=0.05) as client:
        assert client.call("pause", [0.2], timeout_s=None) == 0.2
        assert client.call("pause", [0.2], timeout_s=HANG_S) == 0.2


def test_a_time_limit_counts_from_the_call_not_from_the_last_byte() -> None:
    stop = threading.Event()

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not stop.wait(0.02):
                connection.sendall(b" ")

    with scripted(serve) as client:
        with pytest.raises(CallTimeoutError):
            client.call("x", timeout_s=0.2)
        stop.set()


def test_closing_ends_a_call_in_another_thread(either: Listenable, world: World) -> None:
    client = Client.connect(either)
    ended: list[type] = []

    def work() -> None:
        try:
            client.call("wait", timeout_s=None)
        except RpcError as fault:
            ended.append(type(fault))

    with beside(work):
        wait_until(lambda: world.waiting == 1)
        client.close()
    client.close()
    assert ended == [ClosedError]


# --- connecting ------------------------------------------------------------------------------------


def test_a_guest_that_still_boots_is_waited_for(tmp_path: Path) -> None:
    """Its hypervisor hangs up until somebody listens in it."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def work() -> None:
            for reply in (b"", b"", b"OK 1024\n"):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(reply)
                    if reply:
                        replying({"pong": True})(connection)

        with beside(work), Client.connect(UnixSocket(path, guest_port=52)) as client:
            client.ping()


def test_a_server_that_is_still_starting_is_waited_for(tmp_path: Path, world: World) -> None:
    endpoint = UnixSocket(str(tmp_path / "s"))
    made: list[Client] = []
    with beside(lambda: made.append(Client.connect(endpoint))), server_at(endpoint, world):
        wait_until(lambda: bool(made))
        with made[0] as client:
            client.ping()


def test_nobody_there_is_said_when_the_time_is_up(tmp_path: Path) -> None:
    endpoint = UnixSocket(str(tmp_path / "s"))
    with pytest.raises(ConnectError, match=r"no server answered at socket .*/s within 0\.2 s: No such file"):
        Client.connect(endpoint, patience_s=0.2)


def test_a_refusing_port_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectError, match=rf"no server answered at tcp 127\.0\.0\.1:{port} within 0\.1 s"):
        Client.connect(Tcp("127.0.0.1", port), patience_s=0.1)


def test_a_path_that_is_no_socket_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"can't be reached: .*too long"):
        Client.connect(UnixSocket(str(tmp_path / ("x" * 200))))


def test_a_guest_without_vsock_is_said() -> None:
    with pytest.raises((ConnectError, UsageError), match="vsock"):
        Client.connect(Vsock(50_123, cid=1), patience_s=0)


def test_a_guest_behind_a_hypervisors_socket(tmp_path: Path, world: World) -> None:
    """Firecracker: `CONNECT <port>`, and the answer before the first request."""
    with (
        server_at(UnixSocket(str(tmp_path / "s")), world),
        Client.connect(UnixSocket(str(tmp_path / "s"), guest_port=52)) as client,
    ):
        client.ping()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "no server answered at .*: the guest does not listen on port 52"),
        (b"NO\n", "the handshake failed: NO"),
    ],
)
def test_a_hypervisor_that_says_no(tmp_path: Path, reply: bytes, message: str) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def work() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(reply)

        with beside(work), pytest.raises(ConnectError, match=message):
            Client.connect(UnixSocket(path, guest_port=52), patience_s=0)


# --- a command as the connection -------------------------------------------------------------------


def test_a_command_carries_the_connection(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`ssh HOST codingagent serve --stdio`, or any other; what it says on standard error is shown."""
    (tmp_path / "server.py").write_text(
        f"import os; os.chdir({str(REPOSITORY)!r})\n"
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n{PROGRAM}"
    )
    before = children(os.getpid())
    with Client.connect(Command(f"{sys.executable} '{tmp_path}/server.py'"), timeout_s=HANG_S) as client:
        client.ping()
        assert len(client.call("big", [2_000_000])) == 2_000_000
        wait_until(lambda: "1 opened (1 open)" in capfd.readouterr().err)
    assert children(os.getpid()) <= before


def test_a_command_that_ends_is_said() -> None:
    with (
        Client.connect(Command("sh -c 'exit 7'")) as client,
        pytest.raises(ClosedError, match="the connection ended: sh ended with exit code 7"),
    ):
        client.ping()


def test_a_command_that_does_not_end_is_ended() -> None:
    transport = Transport(["sleep", "1000"])
    assert transport.close() == -15


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("no-such-program-here x", ConnectError, "'no-such-program-here' can't be started: No such"),
        ("", UsageError, "the command is empty"),
        ("'", UsageError, "is not a command line: No closing quotation"),
    ],
)
def test_a_command_that_can_not_be_started(line: str, kind: type[CodingAgentError], message: str) -> None:
    with pytest.raises(kind, match=message):
        Client.connect(Command(line))


class _Told(socket.socket):
    """A connection that tells how long each wait may take."""

    def settimeout(self, value: float | None, /) -> None:
        waits.append(value)
        super().settimeout(value)


waits: list[float | None] = []


def test_a_wait_is_short_so_that_it_can_be_interrupted() -> None:
    """Windows: Ctrl-C ended `call` only when the answer came, or its time was over."""
    ours, theirs = socket.socketpair()
    connection = _Told(ours.family, ours.type, fileno=ours.detach())
    with theirs, Client(connection, timeout_s=0.5) as client, pytest.raises(CallTimeoutError):
        client.ping()
    assert len(waits) > 1
    assert all(wait is not None and wait <= 0.2 for wait in waits[1:])
