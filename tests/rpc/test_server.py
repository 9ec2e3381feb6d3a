"""The RPC server's connections: real sockets, real threads, and clients that do as they like."""

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from codingagent.errors import UsageError, WorkError
from codingagent.rpc.endpoints import Listenable, Tcp, UnixSocket, Vsock, listen, tcp_from
from codingagent.rpc.protocol import LINE_LIMIT_BYTES
from codingagent.rpc.server import BACKLOG_BYTES, HandleLog
from tests import warm
from tests.helpers import HANG_S, REPOSITORY, cpu_below, descriptors, line_from, python, wait_until
from tests.rows import each_row
from tests.serving import (
    World,
    all_of,
    ask,
    beside,
    connected,
    mode_of,
    request,
    resident_kib,
    responses,
    server_at,
    threads,
)

PING = request("ping")
PONG = {"jsonrpc": "2.0", "id": 1, "result": {"pong": True}}


def closed(world: World) -> int:
    """Return how many connections are over, and all that belongs to them."""
    return sum("closed (" in line for line in world.log)


def pass_time(seconds: float) -> None:
    """Lets time go by in which nothing happens, which is what is tested."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until)


@pytest.fixture(name="world")
def _world() -> World:
    return World()


@pytest.fixture(name="unix")
def _unix(tmp_path: Path, world: World) -> Iterator[Listenable]:
    with server_at(UnixSocket(str(tmp_path / "s")), world) as endpoint:
        yield endpoint


@pytest.fixture(name="tcp")
def _tcp(world: World) -> Iterator[Listenable]:
    with server_at(Tcp("127.0.0.1", 0), world) as endpoint:
        yield endpoint


@pytest.fixture(name="either", params=["unix", "tcp"])
def _either(request: pytest.FixtureRequest) -> Listenable:
    endpoint: Listenable = request.getfixturevalue(request.param)
    return endpoint


# --- requests --------------------------------------------------------------------------------------


def test_requests_of_a_connection_are_answered_in_order(either: Listenable) -> None:
    with connected(either) as connection:
        connection.sendall(
            request("pause", 1, number=0.1) + request("ping", 2) + request("echo", 3, text="é")
        )
        connection.shutdown(socket.SHUT_WR) if isinstance(either, UnixSocket) else None
        answers = responses(connection)
        assert [next(answers)["id"] for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("cut", ["whole", "byte by byte"])
def test_a_conversation_is_the_same_however_it_is_cut(either: Listenable, cut: str) -> None:
    data = b"\r\n\n" + PING.replace(b"\n", b"\r\n") + b"garbage\n[]\n" + PING
    with connected(either) as connection:
        for i in range(len(data)) if cut == "byte by byte" else ():
            connection.sendall(data[i : i + 1])
        if cut == "whole":
            connection.sendall(data)
        answers = responses(connection)
        assert next(answers) == PONG
        assert [next(answers)["error"]["code"] for _ in range(2)] == [-32700, -32600]
        assert next(answers) == PONG


def test_a_batch_is_one_line(unix: Listenable) -> None:
    batch = b"[%s,%s,%s]\n" % (PING.strip(), b'{"jsonrpc":"2.0","method":"ping"}', b"1")
    with connected(unix) as connection:
        assert [each["id"] for each in ask(connection, batch)] == [1, None]


def test_a_batch_of_long_answers_is_one_line(unix: Listenable) -> None:
    """They leave as they come: together they have no bound."""
    sizes = [10, 100_000, 0, 70_000, 10, 2_000_000]
    batch = b",".join(request("big", i, number=size).strip() for i, size in enumerate(sizes))
    with connected(unix) as connection:
        answer = ask(connection, b"[" + batch + b"]\n")
    assert [len(each["result"]) for each in answer] == sizes


def test_notifications_get_no_answer(unix: Listenable) -> None:
    note = b'{"jsonrpc":"2.0","method":"count"}\n'
    with connected(unix) as connection:
        connection.sendall(note + b"[" + note.strip() + b"]\n")
        assert ask(connection, request("count"))["result"] == 3


def test_our_own_fault_costs_one_answer(unix: Listenable, world: World) -> None:
    with connected(unix) as connection:
        assert ask(connection, request("stumble"))["error"]["code"] == -32603
        assert ask(connection, PING) == PONG
    [line] = [line for line in world.log if "internal error" in line]
    assert "KeyError: 'ours\\x1b[2J'" in line
    assert "stumble:" in line


def test_methods_that_can_not_be_had_are_said(unix: Listenable, world: World) -> None:
    world.fault = WorkError("the root is gone")
    with connected(unix) as connection:
        error = ask(connection, request("count"))["error"]
        assert error == {"code": -32603, "message": "the root is gone"}
        world.fault = None
        assert ask(connection, request("count"))["result"] == 1


# --- lines -----------------------------------------------------------------------------------------


def test_a_line_beyond_the_limit_is_refused_and_the_next_is_read(either: Listenable) -> None:
    with connected(either) as connection:
        assert ask(connection, PING) == PONG
        answer = ask(connection, b'"' + b"x" * LINE_LIMIT_BYTES)
        assert answer["error"] == {
            "code": -32600,
            "message": f"invalid request: a line holds at most {LINE_LIMIT_BYTES} bytes",
        }
        assert ask(connection, b"x" * 1000 + b"\n" + PING) == PONG


def test_a_line_up_to_the_limit_is_read(unix: Listenable) -> None:
    with connected(unix) as connection:
        assert ask(connection, PING.strip().ljust(LINE_LIMIT_BYTES) + b"\n") == PONG


@pytest.mark.parametrize("last", [PING.strip(), PING, b"\n" + PING.strip() + b"\n\n"])
def test_a_half_closed_socket_gets_its_answers(unix: Listenable, last: bytes) -> None:
    """Also a last line that was not ended."""
    with connected(unix) as connection:
        connection.sendall(request("pause", 0, number=0.15) + last)
        connection.shutdown(socket.SHUT_WR)
        assert [answer["id"] for answer in responses(connection)] == [0, 1]


def test_a_half_line_at_the_end_is_answered(unix: Listenable) -> None:
    with connected(unix) as connection:
        connection.sendall(PING[:20])
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(all_of(connection))["error"]["code"] == -32700


def test_a_handshake_is_the_first_line_only(either: Listenable) -> None:
    with connected(either) as connection:
        connection.sendall(b"CONNECT 52\n" + PING + b"CONNECT 52\n")
        with connection.makefile("rb") as lines:
            assert lines.readline() == b"OK 52\n"
            assert json.loads(lines.readline()) == PONG
            assert json.loads(lines.readline())["error"]["code"] == -32700


@pytest.mark.one_in(3)
@pytest.mark.parametrize("token", [None, "correct-horse-battery"])
@pytest.mark.parametrize(
    "first",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.6\r",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r",
        b"\x00",
        b"5",
        b'"POST /"',
        b"[1,2]",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"count"}',
        b"CONNECT example.org:443",
        b"[" * 300,
        b"x" * (LINE_LIMIT_BYTES + 1),
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_first_line_that_is_not_ours_ends_the_connection(
    tmp_path: Path, world: World, first: bytes, token: str | None
) -> None:
    """A browser's TLS hello, or another protocol's greeting, may hold a request in a later line."""
    for end in (Tcp("127.0.0.1", 0), UnixSocket(str(tmp_path / "s"))):
        with (
            server_at(end, world, token=token) as endpoint,
            connected(endpoint) as connection,
            contextlib.suppress(ConnectionError),
        ):
            shown = b"" if token is None else b"TOKEN " + token.encode() + b"\n"
            connection.sendall(shown + first + b"\n" + request("count"))
            answers = all_of(connection).removeprefix(b"OK\n")
            assert re.fullmatch(rb".*-32[67]00.*\n", answers)
    wait_until(lambda: closed(world) == 2)
    assert world.counted == 0


# --- flow ------------------------------------------------------------------------------------------


def test_many_requests_may_be_sent_before_an_answer_is_read(either: Listenable) -> None:
    with connected(either) as connection:
        text = "x" * 2_000
        connection.sendall(b"".join(request("echo", i, text=text) for i in range(1_000)))
        answers = responses(connection)
        assert [next(answers)["id"] for _ in range(1_000)] == list(range(1_000))


def test_a_client_that_reads_nothing_waits_alone_and_in_bounded_memory(
    unix: Listenable, world: World
) -> None:
    before = resident_kib()
    with connected(unix) as mute, connected(unix) as other:
        mute.setblocking(False)
        sent = 0
        data = request("count", "x" * 1000) * 100
        stuck_at = time.monotonic() + 0.3
        while time.monotonic() < stuck_at and sent < 8 * BACKLOG_BYTES:
            with contextlib.suppress(BlockingIOError):
                sent += mute.send(data)
                stuck_at = time.monotonic() + 0.3
        wait_until(lambda: world.counted > 0)
        counted = world.counted
        assert ask(other, PING) == PONG
        assert sent < 4 * BACKLOG_BYTES
        assert resident_kib() - before < 8 * BACKLOG_BYTES / 1024
        # It is only late: all of it is answered once it reads.
        mute.settimeout(HANG_S)
        with mute.makefile("rb") as lines:
            assert [json.loads(lines.readline())["result"] for _ in range(counted)]


def test_what_waited_is_forgotten_once_it_is_answered(unix: Listenable) -> None:
    """Else a connection could read on for a while only."""
    line = request("echo", text="x" * 1000)
    count = BACKLOG_BYTES // len(line) // 2
    with connected(unix) as connection:
        for _ in range(4):
            connection.sendall(line * count)
            with connection.makefile("rb") as lines:
                assert all(b"xxx" in lines.readline() for _ in range(count))


def test_a_long_answer_is_whole(either: Listenable) -> None:
    with connected(either) as connection:
        assert len(ask(connection, request("big", number=10_000_000))["result"]) == 10_000_000


def test_one_slow_method_holds_up_no_other_connection(either: Listenable, world: World) -> None:
    with connected(either) as slow, connected(either) as quick:
        slow.sendall(request("wait"))
        wait_until(lambda: world.waiting == 1)
        assert ask(quick, PING) == PONG
    wait_until(lambda: world.waiting == 0)


def test_without_handles_the_server_waits_and_goes_on(tmp_path: Path, world: World) -> None:
    """The connection that can't be taken is taken when another has ended; nothing spins."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with server_at(UnixSocket(str(tmp_path / "s")), world) as endpoint, connected(endpoint) as first:
        assert ask(first, PING) == PONG
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        highest = max(int(name) for name in descriptors())
        spare = [os.dup(0) for _ in range(highest - len(descriptors()) + 1)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    spare.append(os.dup(0))
            with cpu_below(2):
                for each in waiting:
                    assert isinstance(endpoint, UnixSocket)
                    each.connect(endpoint.path)
                wait_until(lambda: any("out of system" in line for line in world.log))
                assert ask(first, PING) == PONG
                pass_time(0.5)
            # It tries again once a second.
            assert len([line for line in world.log if "out of system" in line]) < 5
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for handle in spare:
                os.close(handle)
        for each in waiting:
            each.settimeout(HANG_S)
            assert ask(each, PING) == PONG
            each.close()


# --- clients that go -------------------------------------------------------------------------------


@pytest.mark.parametrize("after_s", [0, 0.2])
def test_a_client_that_hangs_up_ends_its_method(either: Listenable, world: World, after_s: float) -> None:
    """At once, or when it has been waited for a while."""
    with connected(either) as connection:
        connection.sendall(request("wait") + request("count"))
        wait_until(lambda: world.waiting == 1)
        pass_time(after_s)
    wait_until(lambda: world.waiting == 0 and closed(world) == 1)
    assert world.cancels > 0
    assert world.counted == 0


def test_a_client_that_hangs_up_ends_all_that_it_has_sent(either: Listenable, world: World) -> None:
    """Many short methods are as long as one."""
    with connected(either) as connection:
        note = b'{"jsonrpc":"2.0","method":"pause","params":[0.01]}\n'
        connection.sendall(request("ping") + note * 1000)
        assert connection.recv(1)
    wait_until(lambda: closed(world) == 1)


def test_a_client_that_is_killed_ends_its_method(either: Listenable, world: World) -> None:
    program = (
        "import socket, sys\n"
        "kind, where, line = sys.argv[1:]\n"
        "if kind == 'unix': s = socket.socket(socket.AF_UNIX); s.connect(where)\n"
        "else: s = socket.create_connection(('127.0.0.1', int(where)))\n"
        "s.sendall(line.encode() + b'\\n'); print('sent', flush=True); s.recv(1)\n"
    )
    where = either.path if isinstance(either, UnixSocket) else str(either.port)
    kind = "unix" if isinstance(either, UnixSocket) else "tcp"
    with python(program, kind, where, request("wait").decode().strip()) as process:
        assert line_from(process) == "sent"
        wait_until(lambda: world.waiting == 1)
        process.kill()
        wait_until(lambda: world.waiting == 0)
    wait_until(lambda: closed(world) == 1)


def test_a_client_that_left_is_noticed_without_poll(
    unix: Listenable, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From macOS 15.4 on, poll does not report the end of a Unix socket."""
    monkeypatch.delattr("select.poll")
    with connected(unix) as connection:
        connection.sendall(request("wait"))
        wait_until(lambda: world.waiting == 1)
    wait_until(lambda: world.waiting == 0)


def test_the_end_of_tcp_input_ends_its_method(tcp: Listenable, world: World) -> None:
    """A peer that was killed looks just so."""
    with connected(tcp) as connection:
        connection.sendall(request("wait"))
        wait_until(lambda: world.waiting == 1)
        connection.shutdown(socket.SHUT_WR)
        wait_until(lambda: world.waiting == 0)


def test_a_half_closed_socket_does_not_end_its_method(unix: Listenable, world: World) -> None:
    with connected(unix) as connection:
        connection.sendall(request("pause", number=0.3))
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(all_of(connection))["result"] == 0.3
    assert world.cancels == 0


def test_a_client_that_goes_while_it_is_written_to_ends(unix: Listenable, world: World) -> None:
    with connected(unix) as connection:
        connection.sendall(request("big", number=5_000_000))
        assert connection.recv(1)
    wait_until(lambda: closed(world) == 1)


def test_a_cancel_that_fails_does_not_end_the_watch(unix: Listenable, world: World) -> None:
    world.cancel_fails = True
    for _ in range(2):
        with connected(unix) as connection:
            connection.sendall(request("wait"))
            wait_until(lambda: world.waiting == 1)
        wait_until(lambda: world.waiting == 0)


def test_nothing_is_left_of_a_connection(either: Listenable, world: World) -> None:
    with connected(either) as connection:
        ask(connection, PING)
    wait_until(lambda: closed(world) == 1)
    handles, running = len(descriptors()), threads()
    for i in range(50):
        with connected(either) as connection:
            ask(connection, PING)
        wait_until(lambda: closed(world) == i + 2)  # noqa: B023  # it is over within this turn
    wait_until(lambda: len(descriptors()) <= handles and threads() <= running)


# --- standard input and output ---------------------------------------------------------------------


@contextlib.contextmanager
def over_pipes() -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes], IO[bytes]]]:
    """Serves two pipes in a process; gives it, and the client's ends."""
    with warm.start(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdout, process.stdin
            assert process.wait(HANG_S) == 0
        finally:
            process.kill()


def test_the_end_of_input_is_answered_and_ends_the_server() -> None:
    with over_pipes() as (_, answers, requests):
        requests.write(request("pause", 1, number=0.1) + request("ping", 2).strip())
        requests.close()
        assert [json.loads(line)["id"] for line in answers] == [1, 2]


def test_many_requests_may_come_over_a_pipe_before_an_answer_is_read() -> None:
    with over_pipes() as (_, answers, requests):
        data = b"".join(request("echo", i, text="x" * 2_000) for i in range(1_000))
        while data:
            data = data[requests.write(data[: 2**16]) :]
        requests.write(request("big", "big", number=3_000_000))
        requests.close()
        found = [json.loads(line) for line in answers.read().splitlines()]
        assert [answer["id"] for answer in found[:-1]] == list(range(1_000))
        assert len(found[-1]["result"]) == 3_000_000


def test_a_pipe_that_nobody_reads_ends_its_method() -> None:
    with over_pipes() as (_, answers, requests):
        requests.write(request("ping") + request("wait"))
        assert answers.read(1)
        answers.close()


@pytest.mark.parametrize("line", [b"", request("wait"), request("big", number=3_000_000)])
def test_a_server_of_pipes_can_be_stopped(line: bytes) -> None:
    with over_pipes() as (process, answers, requests):
        requests.write(PING + line)
        assert answers.read(1)
        process.send_signal(signal.SIGTERM)


def test_requests_and_answers_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(PING * 3)
    with (tmp_path / "in").open("rb") as requests, (tmp_path / "out").open("wb") as answers:
        warm.run(PROGRAM, stdin=requests, stdout=answers, timeout=HANG_S)
    assert (tmp_path / "out").read_bytes().count(b"pong") == 3


def test_servers_that_start_at_once_leave_the_umask_as_it_is(tmp_path: Path) -> None:
    """It is the whole process's: folders that others make meanwhile would be closed to all."""
    before = os.umask(0o022)
    seen: set[int] = set()

    def look() -> None:
        while not done.is_set():
            (folder := tmp_path / str(len(seen))).mkdir(exist_ok=True)
            seen.add(mode_of(folder))
            folder.rmdir()

    done = threading.Event()
    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(200):
            listen(UnixSocket(str(tmp_path / f"s{number}"))).close()
    finally:
        done.set()
        looking.join()
        assert os.umask(before) == 0o022
    assert seen == {0o755}


# --- the socket file -------------------------------------------------------------------------------


def test_a_socket_is_for_its_owner_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "s"
    before = os.umask(0)
    try:
        listener = listen(UnixSocket(str(path)))
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert stat.S_ISSOCK(path.lstat().st_mode)
    assert mode_of(path) == 0o600
    listener.close()
    assert not path.exists()


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listen(UnixSocket(str(path))).close()
    assert not path.exists()


def test_a_live_socket_is_refused_and_stays(unix: UnixSocket) -> None:
    with pytest.raises(UsageError, match=r"another server listens on .*s; stop it, or name another"):
        listen(unix)
    with connected(unix) as connection:
        assert ask(connection, PING) == PONG


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    file, folder, link = tmp_path / "f", tmp_path / "d", tmp_path / "l"
    file.write_text("mine")
    folder.mkdir()
    link.symlink_to(tmp_path / "s")
    for path, kind in ((file, "not a socket"), (folder, "not a socket"), (link, "a link")):
        with pytest.raises(UsageError, match=f"already exists and is {kind}; name another path"):
            listen(UnixSocket(str(path)))
    assert file.read_text() == "mine"
    assert not (tmp_path / "s").exists()


def test_only_our_own_socket_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listener = listen(UnixSocket(str(path)))
    path.unlink()
    path.write_text("another's")
    listener.close()
    assert path.read_text() == "another's"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 200, "too long for a socket: .* at most 107"),
        ("no/s", "no can't hold a socket: No such file or directory"),
        ("nul\0", "is not a path for a socket"),
    ],
)
def test_a_path_that_can_be_no_socket_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        listen(UnixSocket(f"{tmp_path}/{name}"))


def test_two_servers_that_start_at_once_do_not_both_listen(tmp_path: Path) -> None:
    """Each could take the other's new socket for a stale one."""
    path = tmp_path / "s"
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        made = []

        def start() -> None:
            with contextlib.suppress(UsageError):
                made.append(listen(UnixSocket(str(path))))  # noqa: B023  # over within this turn

        with beside(start), beside(start):
            pass
        assert len(made) == 1
        made[0].close()


# --- ports -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost"])
def test_a_port_of_this_machine_is_chosen_and_said(host: str) -> None:
    listener = listen(Tcp(host, 0))
    assert isinstance(listener.endpoint, Tcp)
    assert listener.endpoint.port > 0
    listener.close()


@each_row("host", ["0.0.0.0", "", "192.0.2.1", "::", "example.org", "::ffff:127.0.0.1", "8.8.8.8"])
def test_a_port_that_others_reach_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match=r"is not a loopback address: .* ssh -L 80:127.0.0.1:80"):
        listen(Tcp(host, 80))


def test_a_port_that_is_taken_is_said(tcp: Listenable) -> None:
    with pytest.raises(UsageError, match="can't be listened on: another program listens there"):
        listen(tcp)


@each_row(
    ("words", "endpoint"),
    [
        ("127.0.0.1:80", Tcp("127.0.0.1", 80)),
        ("[::1]:0", Tcp("::1", 0)),
        ("localhost:65535", Tcp("localhost", 65535)),
        (":80", Tcp("", 80)),
    ],
)
def test_host_and_port_are_read(words: str, endpoint: Tcp) -> None:
    assert tcp_from(words) == endpoint


@each_row("words", ["80", "x:", "x:65536", "::1:80", "x:-1", "x:80:80", "[::1]80"])
def test_what_is_no_host_and_port_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match=r"is not HOST:PORT; write 127.0.0.1:8000"):
        tcp_from(words)


def test_vsock_listens_or_says_why_not() -> None:
    """Few kernels outside of a virtual machine have it."""
    try:
        listener = listen(Vsock(50_123))
    except UsageError as fault:
        assert "vsock" in str(fault)
    else:
        listener.close()


# --- the log ---------------------------------------------------------------------------------------


def test_a_log_that_nobody_reads_holds_up_nothing() -> None:
    ours, theirs = os.pipe()
    log = HandleLog(theirs)

    async def fill() -> None:
        for _ in range(2000):
            log("x" * 100)
        written = os.read(ours, 2**20)
        log("after")
        log.flush()
        assert written.count(b"\n") < 2000
        said = os.read(ours, 2**20).decode()
        assert said.startswith("log lines were lost\n")
        assert said.endswith("x\nafter\n")
        os.close(ours)
        for line in ("nobody is there", "nor is this"):
            log(line)
            log.flush()
        os.close(theirs)
        log("nor is the handle")
        log.flush()

    asyncio.run(fill())


def test_a_log_that_nobody_reads_holds_up_nothing_on_windows() -> None:
    """Nothing tells there whether a write would wait."""
    program = (
        "import asyncio, os, sys; from codingagent.rpc.server import HandleLog\n"
        "async def fill():\n"
        "    for _ in range(2000): log('x' * 100)\n"
        "ours, theirs = os.pipe(); log = HandleLog(theirs); sys.platform = 'win32'\n"
        "asyncio.run(fill()); log.flush(); print(os.read(ours, 2**20).count(b'x' * 100) > 600)\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.stdout == "True\n", done.stderr


# --- the end ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
from codingagent.rpc.endpoints import StandardStreams
from codingagent.rpc.server import HandleLog, Server
from tests.serving import TABLE, World
world = World()
log = HandleLog(2)
streams = StandardStreams()
print("not an answer", flush=True)
Server(TABLE, world.open_methods, log).serve(streams)
log.flush()
print(f"{world.opened} {world.closed} {world.cancels > 0}", file=sys.stderr)
"""


def test_standard_output_has_answers_only() -> None:
    """What is printed by accident goes to standard error."""
    asked = PING + request("echo", 2, text="x").strip()
    done = warm.run(PROGRAM, input=asked, capture_output=True, timeout=HANG_S)
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    assert b"not an answer\n" in done.stderr
    assert done.stderr.endswith(b"0 0 False\n")


POLLED = """
import os, socket
from codingagent.rpc.endpoints import StandardStreams
ours, theirs = socket.socketpair()
theirs.sendall(b"an answer")
streams = StandardStreams()
os.close(streams._output)
invalid = streams._is_unread(ours)
read, streams._output = os.pipe()
quiet = streams._is_unread(ours)
os.close(read)
os.write(2, f"{invalid} {quiet} {streams._is_unread(ours)}".encode())
"""


def test_output_that_poll_calls_invalid_may_still_be_read() -> None:
    """macOS says POLLNVAL of a terminal, Linux of a closed handle only: no answer would be written there."""
    done = subprocess.run([sys.executable, "-c", POLLED], cwd=REPOSITORY, capture_output=True, check=False)
    assert done.stderr == b"False False True"


def test_a_stopped_server_ends_what_runs(tmp_path: Path, world: World) -> None:
    with server_at(UnixSocket(str(tmp_path / "s")), world) as endpoint:
        connection = connected(endpoint)
        connection.sendall(request("wait") + request("count"))
        wait_until(lambda: world.waiting == 1)
    connection.close()
    assert (world.waiting, world.counted) == (0, 0)
    assert world.cancels > 0


ON_WINDOWS = """
import asyncio, os, select, signal, sys
import tests.helpers

def missing(*_):
    raise NotImplementedError

for module, name in ((select, "poll"), (signal, "SIGHUP"), (os, "geteuid")):
    delattr(module, name)
# As the Proactor loop, which is the default there.
for name in ("add_signal_handler", "add_reader", "add_writer", "sock_recv_into"):
    setattr(asyncio.SelectorEventLoop, name, missing)
sys.platform = "win32"
from codingagent.rpc.endpoints import StandardStreams, Tcp, listen
from codingagent.rpc.server import HandleLog, Server
from tests.serving import TABLE, World
world = World()
server = Server(TABLE, world.open_methods, HandleLog(2))
if sys.argv[1] == "stdio":
    server.serve(StandardStreams())
else:
    listener = listen(Tcp("127.0.0.1", 0))
    try:
        server.serve(listener, lambda: print(listener.endpoint.port, flush=True))
    except KeyboardInterrupt:
        print(world.opened, world.closed, world.cancels > 0, flush=True)
"""


def test_with_what_windows_has_a_port_is_served() -> None:
    """An imitation: neither poll nor signals in the loop; the end of input tells that a client is gone."""
    with python(ON_WINDOWS, "tcp") as process:
        endpoint = Tcp("127.0.0.1", int(line_from(process)))
        with connected(endpoint) as gone, connected(endpoint) as other:
            gone.sendall(request("ping") + request("wait"))
            assert gone.recv(1)
            gone.close()
            assert ask(other, request("pause", number=0.1))["result"] == 0.1
            assert len(ask(other, request("big", number=3_000_000))["result"]) == 3_000_000
            process.send_signal(signal.SIGINT)
            assert line_from(process) == "2 2 True"


def test_with_what_windows_has_pipes_are_served() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, "stdio"],
        cwd=Path(__file__).parents[2],
        input=PING + request("big", 2, number=100_000) + request("echo", 3, text="x").strip(),
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert done.returncode == 0
