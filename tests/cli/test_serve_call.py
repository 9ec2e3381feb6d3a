"""`serve` and `call` as a person, a unit file or a script uses them."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from codingagent.cli import main
from codingagent.process.seccomp import filter_program
from tests import warm
from tests.helpers import REPOSITORY, command_line, new_marker, none_left, processes_with, wait_until
from tests.hosting import Served, served
from tests.rows import each_row
from tests.sandboxes import BWRAP, needs_bwrap
from tests.serving import mode_of
from tests.warm import start_command

PLAIN = ("--sandbox", "off")
ENDPOINT = "choose one endpoint: --stdio, --socket PATH, --tcp HOST:PORT or --vsock PORT"
SECONDS = "is not more than 0 and at most 2000000 seconds"


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), *PLAIN) as server:
        yield server


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs a command line in this process; gives its status and its streams."""
    status = main.run(list(arguments))
    streams = capfd.readouterr()
    return status, streams.out, streams.err


# --- what is refused -------------------------------------------------------------------------------


@each_row(
    ("words", "message"),
    [
        (["serve"], ENDPOINT),
        (["serve", "--stdio", "--socket", "s"], ENDPOINT),
        (["serve", "--tcp", "127.0.0.1:0", "--vsock", "5000"], ENDPOINT),
        (["call", "ping"], ENDPOINT),
        (["call", "ping", "--stdio", "--command", "x"], ENDPOINT),
        (["serve", "--tcp", "0.0.0.0:0"], "'0.0.0.0' is not a loopback address"),
        (["serve", "--tcp", "192.0.2.1:80"], "'192.0.2.1' is not a loopback address"),
        (["serve", "--tcp", "[::]:80"], "'::' is not a loopback address"),
        (["serve", "--tcp", "example.org:80"], "'example.org' is not a loopback address"),
        (["serve", "--tcp", "8000"], "'8000' is not HOST:PORT"),
        (["serve", "--tcp", "127.0.0.1:99999"], "'127.0.0.1:99999' is not HOST:PORT"),
        (["serve", "--socket", "s", "--no-token"], "a token is only for --tcp"),
        (["call", "ping", "--stdio", "--token-file", "file"], "a token is only for --tcp"),
        (["serve", "--tcp", "127.0.0.1:0", "--no-token", "--token-file", "t"], "can't be combined"),
        (["serve", "--tcp", "127.0.0.1:0", "--token-file", "file"], "others can read file"),
        (["serve", "--tcp", "127.0.0.1:0", "--token-file", "."], ". does not hold a token"),
        (["serve", "--tcp", "127.0.0.1:0", "--token-file", "no/t"], "no/t can't be written"),
        (["call", "ping", "--tcp", "127.0.0.1:1", "--token-file", "t"], "t can't be read"),
        (["serve", "--vsock", "4294967295"], "--vsock is 4294967295; it must be a whole number from 0"),
        (["serve", "--vsock", "-1"], "--vsock is -1; it must be"),
        (["serve", "--vsock", "x"], "--vsock is 'x'; it must be a whole number from 0 to"),
        (["serve", "--command", "x"], "there is no option --command"),
        (["serve", "--socket", "no/folder/s"], "no/folder can't hold a socket"),
        (["serve", "--socket", "x" * 200], "is too long for a socket"),
        (["serve", "--socket", "file"], "file already exists and is not a socket"),
        (["serve", "--socket", "s", "--root", "none"], "workspace none does not exist"),
        (["serve", "--socket", "s", "--root", "file"], "workspace file is not a folder"),
        (["serve", "--socket", "s", "--policy", "none"], "policy 'none' is neither a preset"),
        (["serve", "--socket", "s", "--sandbox", "none"], "sandbox is 'none'; it must be one of"),
        (
            ["serve", "--socket", "s", "--root", "/", "--sandbox", "require"],
            "no sandbox can confine commands when the whole machine is served: name another --root",
        ),
        (["serve", "--stdio", "--timeout", "0"], f"0 {SECONDS}"),
        (["serve", "--stdio", "--timeout", "nan"], f"nan {SECONDS}"),
        (["call", "ping", "--stdio", "--timeout", "1e12"], f"1e+12 {SECONDS}"),
        (["call", "ping", "--stdio", "--timeout", "-1"], f"-1 {SECONDS}"),
        (["call", "--stdio"], "METHOD is missing; for example: codingagent call"),
        (["call", "ping", "[", "--stdio"], "the params are not a JSON object or array: "),
        (["call", "ping", "", "--stdio"], "the params are not a JSON object or array: "),
        (["call", "ping", "[" * 100_000, "--stdio"], "the params are not a JSON object or array: "),
        (
            ["call", "ping", "[NaN]", "--stdio"],
            "the params are not a JSON object or array: JSON is malformed: invalid character (byte 1)",
        ),
        (["call", "ping", "5", "--stdio"], "the params are not a JSON object or array: "),
        (["call", "ping", "null", "--stdio"], "the params are not a JSON object or array: "),
        (["call", "ping", "--tcp", "x"], "'x' is not HOST:PORT"),
        (["call", "ping", "--command", "'"], '"\'" is not a command line'),
        (["call", "ping", "--command", " "], "the command is empty"),
        (["call", "ping", "--vsock", "1", "--cid", "-1"], "--cid is -1; it must be"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    (tmp_path / "file").write_text("mine")
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        status, out, err = said(capfd, "--home", ".", *words)
    finally:
        os.chdir(here)
    assert (status, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith("codingagent: ")
    assert message in line
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "s").exists()


def test_a_standard_stream_that_is_closed_is_said(tmp_path: Path) -> None:
    """Else what is opened next gets its number, and is read from."""
    line = f'exec "{sys.executable}" -m codingagent --home "{tmp_path}" serve --stdio <&-'
    done = subprocess.run(["/bin/sh", "-c", line], cwd=REPOSITORY, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        b"codingagent: --stdio needs both standard input and output: Bad file descriptor\n"
    )


# --- call ------------------------------------------------------------------------------------------


def test_call_prints_the_result(server: Served, capfd: pytest.CaptureFixture[str]) -> None:
    where = ("--socket", str(server.socket_path))
    assert said(capfd, "call", "ping", *where) == (0, '{"pong": true}\n', "")
    params = json.dumps({"cmd": "printf 'ä\\n'; exit 3"})
    status, out, err = said(capfd, "call", "exec", params, *where)
    assert (status, err) == (0, "")
    assert json.loads(out) == {"exit_code": 3, "stdout": "ä\n", "stderr": ""}
    assert "ä" in out
    assert said(capfd, "call", "write_file", '["a", "x"]', *where)[0] == 0
    assert said(capfd, "call", "read_file", '["a"]', *where) == (0, '{"content": "x"}\n', "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reboot"], "method not found: reboot (code -32601)"),
        (["read_file", '["../a"]'], "invalid params: REJECTED: Path is outside workspace: '../a'"),
        (["read_file", '["missing"]'], "File 'missing' not found (code -32603)"),
        (["exec", "{}"], "invalid params: Object missing required field `cmd`; exec takes cmd, timeout?"),
        (["exec", '["sleep 60"]', "--timeout", "0.1"], "exec gave no answer within 0.1 s"),
    ],
)
def test_call_ends_with_1_and_the_error_in_a_line(
    server: Served, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    status, out, err = said(capfd, "call", *words, "--socket", str(server.socket_path))
    assert (status, out) == (1, "")
    [line] = err.splitlines()
    assert line.startswith(f"codingagent: {message}")


def test_call_over_a_command(server: Served, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Any program that carries bytes is a transport: ssh, or this one."""
    carry = tmp_path / "carry.py"
    carry.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "def copy(a, b):\n    while d := os.read(a, 65536): os.write(b, d)\n"
        "threading.Thread(target=copy, args=(s.fileno(), 1), daemon=True).start()\n"
        "copy(0, s.fileno())\n"
    )
    command = f"{sys.executable} -S {carry} {server.socket_path}"
    assert said(capfd, "call", "ping", "--command", command) == (0, '{"pong": true}\n', "")
    status, _, err = said(capfd, "call", "ping", "--command", "no-such-program")
    assert (status, err) == (
        1,
        "codingagent: 'no-such-program' can't be started: No such file or directory\n",
    )
    status, _, err = said(capfd, "call", "ping", "--command", "false")
    assert (status, err) == (1, "codingagent: the connection ended: false ended with exit code 1\n")


def test_call_with_a_server_of_its_own(tmp_path: Path) -> None:
    done = command_line(tmp_path, "call", "exec", '{"cmd": "pwd -P"}', "--stdio")
    assert done.returncode == 0
    assert json.loads(done.stdout)["stdout"] == f"{tmp_path.resolve()}/workspace\n"


def test_call_believes_no_home_that_its_server_would_not(tmp_path: Path) -> None:
    """What somebody else laid into the current folder is obeyed only when it is named."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "codingagent.toml").write_text('sandbox = "off"\npolicy = "permissive"\n')
    done = warm.run_command(
        *("call", "ping", "--stdio"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "that codingagent did not make here" in done.stderr


# --- serve: where ----------------------------------------------------------------------------------


def test_a_socket_is_for_its_owner_and_goes_with_the_server(
    server: Served, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert mode_of(server.socket_path) == 0o600
    where = ("--socket", str(server.socket_path))
    status, _, err = said(capfd, "--home", str(tmp_path), "serve", *where)
    assert status == 2
    assert err == (
        f"codingagent: another server listens on {server.socket_path}; stop it, or name another path\n"
    )
    with server.connect() as host:
        assert host.call("ping") == {"pong": True}


def test_the_root_is_the_workspace_unless_named(tmp_path: Path) -> None:
    """It is made where it is missing; the log says what is served, and how it is held."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["pwd -P"]}'
    words = ("--home", str(tmp_path), "serve", "--stdio")
    done = warm.run_command(*words, input=line, capture_output=True)
    root = tmp_path.resolve() / "workspace"
    result = {"exit_code": 0, "stdout": f"{root}\n", "stderr": ""}
    assert json.loads(done.stdout)["result"] == result
    first, policy, *_ = done.stderr.decode().splitlines()
    assert first.startswith(f"serving {root} on standard input and output; commands run ")
    assert policy == "policy standard: files may be read and changed, commands may be run"


@pytest.mark.parametrize(("given", "policy"), [(None, "permissive"), ("restrictive", "restrictive")])
def test_a_whole_machine_is_permissive_unless_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, policy: str
) -> None:
    """And says so at start. Nothing but a ping is asked of this one."""
    if given is not None:
        monkeypatch.setenv("CODINGAGENT_POLICY", given)
    with served(tmp_path, "--root", "/") as server, server.connect() as host:
        assert host.call("ping") == {"pong": True}
    first, second, *_ = server.log()
    assert first == f"serving / on socket {server.socket_path}; commands run unconfined"
    assert second.startswith(f"policy {policy}: ")


def test_a_home_of_somebody_else_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "sessions" / "a1b2c3d4").mkdir(parents=True)
    done = warm.run_command(
        *("serve", "--stdio"), cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


# --- serve: how it ends ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)]
)
def test_a_signal_ends_it_and_its_commands(tmp_path: Path, number: int, status: int) -> None:
    marker = new_marker()
    with none_left(marker), served(tmp_path, *PLAIN) as server, server.connect() as host:
        host.send(
            b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["setsid sleep %b & sleep %b"]}'
            % (marker.encode(), marker.encode())
        )
        wait_until(lambda: len(processes_with(f"sleep\0{marker}")) >= 2)
        assert server.end(number) == status
        assert not processes_with(marker)
        assert not server.socket_path.exists()


def test_its_temporary_folder_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with served(tmp_path) as server, server.connect() as host:
        result = {"exit_code": 0, "stdout": "b\n", "stderr": ""}
        assert host.call("exec", cmd="echo a > /tmp/a; echo b") == result
    assert list(temporary.iterdir()) == []


# --- serve: the log --------------------------------------------------------------------------------


def test_the_log_has_a_line_for_each_event(tmp_path: Path) -> None:
    """And nothing of what was said: a file's text may be a secret."""
    with served(tmp_path, *PLAIN) as server:
        with server.connect() as host:
            host.call("write_file", path="a", content="a-secret")
            host.call("nope\x1b[2J")
            host.ask(b"a-secret")
        wait_until(lambda: server.log()[-1] == "1 closed (0 open)")
    lines = [line for line in server.log() if line[0].isdigit()]
    assert [line.split(" ms")[0].rsplit(" ", 1)[0] for line in lines[1:-1]] == [
        "1 write_file",
        "1 nope\\x1b[2J",
        "1 -",
    ]
    assert [line.partition(" error ")[2] for line in lines[1:-1]] == ["", "-32601", "-32700"]
    assert (lines[0], lines[-1]) == ("1 opened (1 open)", "1 closed (0 open)")
    assert "a-secret" not in "".join(server.log())


def test_v_shows_the_messages(tmp_path: Path) -> None:
    with served(tmp_path, *PLAIN, "-v") as server:
        with server.connect() as host:
            host.ask(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            host.call("write_file", path="a", content="x" * 100_000)
            host.ask(b"\x1b[2J")
        wait_until(lambda: server.log()[-1] == "1 closed (0 open)")
    log = server.log()
    assert '1 < {"jsonrpc":"2.0","id":1,"method":"ping"} (40 bytes)' in log
    assert '1 > {"jsonrpc":"2.0","id":1,"result":{"pong":true}} (47 bytes)' in log
    assert "1 < \\x1b[2J (4 bytes)" in log
    assert max(map(len, log)) < 3000


# --- vsock -----------------------------------------------------------------------------------------


def test_without_a_vsock_it_says_so(tmp_path: Path) -> None:
    """A filter of system calls makes this kernel one that has none."""
    needs_bwrap()
    program = filter_program(os.uname().machine)
    if program is None:
        pytest.skip("no filter is known for this machine")
    with tempfile.TemporaryFile() as rules:
        rules.write(program)
        rules.seek(0)
        words = [BWRAP, "--bind", "/", "/", "--dev", "/dev", "--seccomp", str(rules.fileno())]
        for command in (["serve", "--vsock", "5000"], ["call", "ping", "--vsock", "5000"]):
            rules.seek(0)
            done = subprocess.run(
                [*words, sys.executable, "-m", "codingagent", "--home", str(tmp_path), *command],
                cwd=REPOSITORY,
                pass_fds=[rules.fileno()],
                capture_output=True,
                text=True,
                check=False,
            )
            assert "vsock" in done.stderr
            assert len(done.stderr.splitlines()) == 1
            assert done.returncode == (2 if command[0] == "serve" else 1)


def _has_vsock_loopback() -> bool:
    """Return whether the kernel leads a call to its own number (vsock_loopback) back to itself."""
    if not hasattr(socket, "AF_VSOCK"):
        return False
    try:
        with (
            closing(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)) as listening,
            closing(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)) as calling,
        ):
            listening.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
            listening.listen()
            calling.settimeout(0.5)
            calling.connect((1, listening.getsockname()[1]))
    except OSError:
        return False
    return True


def test_over_a_vsock(tmp_path: Path) -> None:
    if not _has_vsock_loopback():
        pytest.skip("this kernel has no vsock that leads back to itself")
    where = ("--vsock", "52341")
    words = ["--home", str(tmp_path), "serve", *where]
    with start_command(*words, stderr=subprocess.DEVNULL) as process:
        try:
            done = command_line(tmp_path, "call", "ping", *where, "--cid", "1")
            assert (done.returncode, done.stdout) == (0, '{"pong": true}\n')
        finally:
            process.terminate()
