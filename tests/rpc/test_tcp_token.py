"""`serve --tcp` lets in who has its token, and a socket file its owner: a port knows no users."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.cli import main
from codingagent.rpc import Client, ConnectError, InvalidRequestError
from codingagent.rpc.endpoints import Tcp, UnixSocket
from tests.helpers import wait_until
from tests.hosting import served
from tests.rows import each_row
from tests.serving import World, connected, request, responses, server_at
from tests.warm import start_command

PLAIN = ("--sandbox", "off")
TOKEN = "correct-horse-battery"
PING = request("ping")


@each_row(
    ("lines", "said"),
    [
        ([b"TOKEN correct-horse-battery", PING], ["OK", "pong"]),
        ([b"TOKEN correct-horse-battery\r", b"CONNECT 5", PING], ["OK", "OK 5", "pong"]),
        ([PING, PING], ["send the line TOKEN and the token first"]),
        ([b"CONNECT 5", PING], ["send the line TOKEN and the token first"]),
        ([b"TOKEN correct-horse-batterx", PING], ["the token is wrong"]),
        ([b"TOKEN", PING], ["send the line TOKEN and the token first"]),
        ([b"TOKEN \xff\xfe", PING], ["send the line TOKEN and the token first"]),
        ([b"x" * 20_000_000, PING], ["send the line TOKEN and the token first"]),
    ],
    ids=["right", "then a handshake", "none", "a handshake", "wrong", "empty", "bytes", "endless"],
)
def test_a_connection_begins_with_the_token(lines: list[bytes], said: list[str]) -> None:
    """Design, JSON-RPC: a port is open to every user of the machine, so the first line has the token."""
    with server_at(Tcp("127.0.0.1", 0), World(), token=TOKEN) as endpoint, connected(endpoint) as connection:
        # A server that hangs up while we still send must not fail the test.
        try:
            connection.sendall(b"\n".join(line.strip(b"\n") for line in lines) + b"\n")
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            assert len(lines[0]) > 1_000_000
        try:
            answers = [line for line in _all_of(connection).split(b"\n") if line]
        except ConnectionResetError:
            return
    assert len(answers) == len(said)
    for answer, words in zip(answers, said, strict=True):
        assert words in answer.decode()
    assert not any(b"pong" in answer for answer in answers) or said[0] == "OK"


def _all_of(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_who_has_not_shown_the_token_gets_no_room_for_a_long_line() -> None:
    """Every user of the machine reaches the port: none may fill the server's memory with first lines."""
    with server_at(Tcp("127.0.0.1", 0), World(), token=TOKEN) as endpoint, connected(endpoint) as connection:
        connection.sendall(b"x" * 300)
        assert b"send the line TOKEN and the token first" in _all_of(connection)


def test_of_connections_without_the_token_the_oldest_make_way() -> None:
    """A user who opens connections and says nothing keeps nobody out, and who has the token stays in."""
    with server_at(Tcp("127.0.0.1", 0), World(), token=TOKEN) as endpoint, contextlib.ExitStack() as opened:
        owner = opened.enter_context(connected(endpoint))
        owner.sendall(f"TOKEN {TOKEN}\n".encode())
        assert owner.recv(3) == b"OK\n"
        silent = [opened.enter_context(connected(endpoint)) for _ in range(100)]
        assert [_all_of(each) for each in silent[:36]] == [b""] * 36
        last = silent[-1]
        last.sendall(f"TOKEN {TOKEN}\n".encode())
        assert last.recv(3) == b"OK\n"
        owner.sendall(PING)
        assert next(responses(owner))["result"] == {"pong": True}


def test_a_server_without_a_token_takes_any(tmp_path: Path) -> None:
    """A client that presents one need not know whether it is asked for."""
    with server_at(UnixSocket(str(tmp_path / "s")), World()) as endpoint, connected(endpoint) as connection:
        connection.sendall(b"TOKEN whatever-it-may-be\n" + PING)
        assert connection.recv(3) == b"OK\n"
        assert next(responses(connection))["result"] == {"pong": True}


def test_serve_makes_the_file_and_call_reads_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The token is in a file for its owner alone; with it `call` and a client get in, without it nobody."""
    file = tmp_path / "token"
    with served(tmp_path, *PLAIN, "--token-file", str(file), kind="tcp") as server:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert len(token) == 32
        # It says so after it has begun to listen.
        wait_until(lambda: f"the token is in {file}" in server.log())
        assert token not in "".join(server.log())
        there = ("--tcp", f"127.0.0.1:{server.port}")
        assert main.run(["call", "ping", *there, "--token-file", str(file)]) == 0
        assert json.loads(capfd.readouterr().out) == {"pong": True}
        assert main.run(["call", "ping", *there]) == 1
        assert "this server needs its token" in capfd.readouterr().err
        with Client.connect(Tcp("127.0.0.1", server.port, token)) as client:
            client.ping()
        with pytest.raises(ConnectError, match="rejected the token"):
            Client.connect(Tcp("127.0.0.1", server.port, "no-" + token))
        with Client.connect(Tcp("127.0.0.1", server.port)) as client, pytest.raises(InvalidRequestError):
            client.ping()
        assert token not in repr(Tcp("127.0.0.1", server.port, token))


def test_serve_prints_a_token_or_says_that_there_is_none(tmp_path: Path) -> None:
    """Without a file the token is in the first lines of the log; without a token that is said."""
    words = ["--home", str(tmp_path / "home"), "serve"]
    where = ["--tcp", "127.0.0.1:0", "--root", str(tmp_path), *PLAIN]
    with start_command(*words, *where, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        port = int(next(x for x in lines if " on tcp " in x).partition("127.0.0.1:")[2].split(";")[0])
        token = next(x for x in lines if x.startswith("token ")).split()[1]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f"TOKEN {token}\n".encode())
            assert connection.recv(3) == b"OK\n"
            connection.sendall(PING)
            assert next(responses(connection))["result"] == {"pong": True}
        process.terminate()
    with served(tmp_path, *PLAIN, kind="tcp") as server, server.connection() as connection:
        connection.sendall(PING)
        assert next(responses(connection))["result"] == {"pong": True}
        # Said before the first answer, though after the port.
        assert any("every user of this machine can run commands" in line for line in server.log())


@pytest.mark.skipif(
    not hasattr(socket, "SO_PEERCRED") or os.geteuid() != 0,
    reason="only root can come as another user, and only Linux tells who came",
)
def test_a_socket_refuses_other_users(tmp_path: Path) -> None:
    """The file's mode may be changed by somebody; who comes is looked at all the same."""
    with server_at(UnixSocket(str(tmp_path / "s")), World()) as endpoint:
        (tmp_path / "s").chmod(0o666)
        tmp_path.chmod(0o755)
        came = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _COMES, PING.decode()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert came.stdout == "refused\n", came.stderr
        with connected(endpoint) as connection:
            connection.sendall(PING)
            assert next(responses(connection))["result"] == {"pong": True}


_COMES = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect("s")
    try:
        connection.sendall(sys.argv[1].encode())
        print("served" if connection.recv(100) else "refused")
    except OSError:
        print("refused")
"""
