"""A host that knows specification 004 and nothing else, against the command `codingagent serve`."""

import json
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import HANG_S, REPOSITORY, new_marker, none_left, processes_with, wait_until
from tests.hosting import Served, served
from tests.rows import each_row
from tests.sandboxes import BWRAP, needs_bwrap

# Without the machine's own limits: what a server promises must not hang on a sandbox.
PLAIN = ("--sandbox", "off")


def ran(stdout: str = "", stderr: str = "", exit_code: int = 0) -> dict[str, object]:
    return {"exit_code": exit_code, "stdout": stdout, "stderr": stderr}


def failed(code: int, message: str) -> dict[str, object]:
    return {"code": code, "message": message}


def entry(name: str, size: int = 0, *, is_dir: bool = False) -> dict[str, object]:
    return {"name": name, "is_dir": is_dir, "size": size}


# Method, params, and the whole result or error: one conversation, from the first line to the last.
CONVERSATION: list[tuple[str, dict[str, object], object]] = [
    ("ping", {}, {"pong": True}),
    ("list_dir", {"path": "."}, {"entries": []}),
    ("write_file", {"path": "src/a.py", "content": "print('ä')\n"}, {"success": True}),
    ("write_file", {"path": "b.txt", "content": ""}, {"success": True}),
    ("read_file", {"path": "src/a.py"}, {"content": "print('ä')\n"}),
    ("list_dir", {"path": "."}, {"entries": [entry("b.txt"), entry("src", is_dir=True)]}),
    ("list_dir", {"path": "src"}, {"entries": [entry("a.py", 12)]}),
    ("exec", {"cmd": "python3 src/a.py"}, ran("ä\n")),
    ("exec", {"cmd": "cat b.txt missing"}, ran("", "cat: missing: No such file or directory\n", 1)),
    ("exec", {"cmd": "kill $$"}, ran(exit_code=143)),
    ("exec", {"cmd": "sleep 60", "timeout": 0.1}, ran("", "\n... [ended: 0.1 s]", 124)),
    ("exec_code", {"lang": "python", "code": "print(6 * 7)"}, ran("42\n")),
    ("exec_code", {"lang": "sh", "code": "echo $((6 * 7)); exit 3"}, ran("42\n", exit_code=3)),
    ("exec_code", {"lang": "cobol", "code": "x"}, ran("", "unsupported language: cobol", -1)),
    ("read_file", {"path": "missing"}, failed(-32603, "File 'missing' not found")),
    ("read_file", {"path": "src"}, failed(-32603, "'src' is a folder, not a file")),
    ("list_dir", {"path": "b.txt"}, failed(-32603, "'b.txt' is not a folder")),
    (
        "read_file",
        {"path": "../b"},
        failed(-32602, "invalid params: REJECTED: Path is outside workspace: '../b'"),
    ),
    (
        "exec",
        {},
        failed(-32602, "invalid params: Object missing required field `cmd`; exec takes cmd, timeout?"),
    ),
    ("reboot", {}, failed(-32601, "method not found: reboot")),
    ("ping", {}, {"pong": True}),
]


@pytest.mark.parametrize("kind", ["unix", pytest.param("tcp", marks=pytest.mark.deep), "stdio"])
def test_a_host_drives_every_method(tmp_path: Path, kind: str) -> None:
    with served(tmp_path, *PLAIN, kind=kind) as server, server.connect() as host:
        for method, params, answer in CONVERSATION:
            assert host.call(method, **params) == answer, (method, params)
        # Ids as they came, and a batch.
        for id_ in (0, -1, 2**63, 1.5, "a\nb", None):
            line = json.dumps({"jsonrpc": "2.0", "id": id_, "method": "ping"}).encode()
            assert host.ask(line) == {"jsonrpc": "2.0", "id": id_, "result": {"pong": True}}
        host.send(b'{"jsonrpc":"2.0","method":"write_file","params":["note","x"]}')
        batch = (
            b'[{"jsonrpc":"2.0","id":1,"method":"read_file","params":["note"]},'
            b'{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":2,"method":"unknown"},7]'
        )
        answers = host.ask(batch)
        assert [(each["id"], "result" in each) for each in answers] == [(1, True), (2, False), (None, False)]
    assert server.process.returncode == 0


# --- the examples of 004 ---------------------------------------------------------------------------

# As they stand there: request and response. What depends on the machine is None.
EXAMPLES: list[tuple[bytes, dict[str, Any]]] = [
    (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}',
        {"jsonrpc": "2.0", "id": 1, "result": {"pong": True}},
    ),
    (
        b'{"jsonrpc":"2.0","id":2,"method":"exec","params":{"cmd":"echo hello && ls -la"}}',
        {"jsonrpc": "2.0", "id": 2, "result": {"exit_code": 0, "stdout": None, "stderr": ""}},
    ),
    (
        (
            b'{"jsonrpc":"2.0","id":3,"method":"exec_code","params":'
            b'{"lang":"python","code":"print(\'Hello from Python!\')"}}'
        ),
        {
            "jsonrpc": "2.0",
            "id": 3,
            "result": {"exit_code": 0, "stdout": "Hello from Python!\n", "stderr": ""},
        },
    ),
    (
        b'{"jsonrpc":"2.0","id":4,"method":"read_file","params":{"path":"/etc/hostname"}}',
        {"jsonrpc": "2.0", "id": 4, "result": {"content": "microvm\n"}},
    ),
    (
        (
            b'{"jsonrpc":"2.0","id":5,"method":"write_file","params":{"path":"/tmp/test.txt",'
            b'"content":"Hello, World!"}}'
        ),
        {"jsonrpc": "2.0", "id": 5, "result": {"success": True}},
    ),
    (
        b'{"jsonrpc":"2.0","id":6,"method":"list_dir","params":{"path":"/tmp"}}',
        {
            "jsonrpc": "2.0",
            "id": 6,
            "result": {
                # There in another order; ours is by name.
                "entries": [
                    {"name": "scripts", "is_dir": True, "size": 0},
                    {"name": "test.txt", "is_dir": False, "size": 13},
                ]
            },
        },
    ),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"unknown","params":{}}',
        {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "method not found: unknown"}},
    ),
]


@pytest.fixture(name="machine")
def _machine() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield a folder with the /etc, /tmp and /run of a small machine, and what starts a server in it.

    It is made of the system's own programs, read-only; /run is where the test sees its socket.
    """
    needs_bwrap()
    with tempfile.TemporaryDirectory(prefix="codingagent-test-", dir="/var/tmp") as name:
        folder = Path(name)
        for each in ("etc", "tmp/scripts", "run"):
            (folder / each).mkdir(parents=True)
        (folder / "etc" / "hostname").write_text("microvm\n")
        links = [p for p in map(Path, ("/bin", "/lib", "/lib64", "/sbin")) if p.is_symlink()]
        binds = [p for p in map(Path, ("/usr", "/bin", "/lib", "/lib64", "/sbin")) if p.is_dir()]
        yield (
            folder,
            (
                *(BWRAP, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net"),
                *("--uid", "0", "--gid", "0"),
                *(w for p in binds if p not in links for w in ("--ro-bind", str(p), str(p))),
                *(w for p in links for w in ("--symlink", str(p.readlink()), str(p))),
                *("--ro-bind", sys.base_prefix, sys.base_prefix),
                *("--ro-bind", str(REPOSITORY / "codingagent"), "/opt/ours/codingagent"),
                *("--ro-bind", sysconfig.get_path("purelib"), "/opt/packages"),
                *(w for p in ("etc", "tmp", "run") for w in ("--bind", f"{folder}/{p}", f"/{p}")),
                *("--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--clearenv"),
                *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/root"),
                *("--setenv", "PYTHONPATH", "/opt/ours:/opt/packages"),
                *(str(_base_python()), "-m", "codingagent"),
            ),
        )


def _base_python() -> Path:
    """Return the Python that the environment was made from: its own may be a copy, and lie anywhere."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")


def test_the_examples_of_004_with_the_whole_machine_as_root(
    machine: tuple[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    folder, argv = machine
    with served(tmp_path, "--root", "/", kind="stdio", argv=argv) as server, server.connect() as host:
        for line, expected in EXAMPLES:
            answer = host.ask(line)
            if expected.get("result", {}).get("stdout", "") is None:
                listed = answer["result"].pop("stdout")
                assert re.match(r"hello\ntotal [0-9]+\nd[rwx-]{9} +[0-9]+ ", listed)
                assert re.search(r" etc\n", listed)
                del expected["result"]["stdout"]
            assert answer == expected
        assert (folder / "tmp" / "test.txt").read_text() == "Hello, World!"
        # Paths are the machine's, absolute or from its root; what has no end is not opened.
        assert host.call("read_file", path="etc/hostname") == {"content": "microvm\n"}
        assert host.call("read_file", path="//etc/../etc/hostname") == {"content": "microvm\n"}
        assert host.call("read_file", path="/dev/zero")["code"] == -32603
        assert host.call("read_file", path="/dev/stdin")["code"] == -32603
        assert host.call("list_dir", path="")["code"] == -32602
        names = [each["name"] for each in host.call("list_dir", path="/")["entries"]]
        assert {"etc", "tmp", "usr"} <= set(names)
        assert host.call("exec", cmd="rm -rf /tmp/scripts; pwd") == ran("/\n")
        assert host.call("exec", cmd="sudo true")["exit_code"] == -1
        process = host.call("read_file", path="/proc/self/status")["content"]
        assert process.startswith("Name:")
    assert any(line.startswith("policy permissive:") for line in server.log())
    assert any(line.endswith("commands run unconfined") for line in server.log())
    assert [path.name for path in (folder / "tmp").iterdir()] == ["test.txt"]


# --- bad input, at the real server -----------------------------------------------------------------


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all that follows: whatever the test before did to it, it serves."""
    with served(tmp_path_factory.mktemp("served"), *PLAIN) as server:
        yield server


BAD = [
    (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700),
    (b'{"jsonrpc": "2.0", "method": 1, "params": "bar"}', -32600),
    (b"[]", -32600),
    (b"1", -32600),
    (b"null", -32600),
    (b'"x"', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":5}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000\\n\\u001b[2J"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":5}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["a",1,2]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":"true","x":1}}', -32602),
    (b"[" * 10_000 + b"]" * 10_000, -32700),
    (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, -32700),
    (b"[" * 200_000, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":' + b"[" * 10_000, -32700),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32700),
    (b"9" * 10_000, -32700),
    (b"\xff\xfe\x00", -32700),
    (b"\x00", -32700),
    (b"x" * (2**24 + 1), -32600),
    (b"\x1b]0;x\x07", -32700),
]


@each_row(("line", "code"), BAD, ids=[repr(line[:40])[2:-1] for line, _ in BAD])
def test_bad_input_costs_one_answer(server: Served, line: bytes, code: int) -> None:
    with server.connect() as host:
        assert host.call("ping") == {"pong": True}
        assert host.ask(line)["error"]["code"] == code
        assert host.call("ping") == {"pong": True}
    assert all(text.isprintable() for text in server.log())


def test_a_thousand_clients_at_once(server: Served) -> None:
    with ExitStack() as stack:
        hosts = [stack.enter_context(server.connect()) for _ in range(400)]
        waiting = [stack.enter_context(server.connection()) for _ in range(600)]
        for host in hosts:
            host.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert all(host.receive()["result"] == {"pong": True} for host in hosts)
        for connection in waiting:
            connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            # No more of them than handles are to be had: the others wait until some have gone.
            hosts.pop().close() if hosts else None
        for connection in waiting:
            connection.settimeout(HANG_S)
            assert b"pong" in connection.recv(100)
    wait_until(lambda: server.threads() <= 3)


def test_a_client_that_reads_nothing_costs_itself_alone(server: Served) -> None:
    """Commands of a mebibyte of output each, a thousand of them asked for."""
    line = b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["head -c 2000000 /dev/zero"]}\n'
    with server.connection() as greedy, server.connect() as other:
        before = server.resident_kib()
        greedy.setblocking(False)
        greedy.sendall(line * 1000)
        for _ in range(20):
            assert other.call("exec", cmd="echo a") == ran("a\n")
        assert server.resident_kib() - before < 64 * 1024
    wait_until(lambda: server.threads() <= 3)


def test_special_files_are_not_opened(server: Served) -> None:
    root = server.log_file.parent / "root"
    os.mkfifo(root / "fifo")
    (root / "null").symlink_to("/dev/null")
    with server.connect() as host:
        for path, code in (("fifo", -32603), ("null", -32602), ("/dev/zero", -32602)):
            assert host.call("read_file", path=path)["code"] == code
            assert host.call("write_file", path=path, content="x")["code"] == code


@pytest.mark.parametrize("size", [17_000, 200_000, 15_000_000])
def test_a_huge_command_is_refused_and_not_judged_for_long(server: Served, size: int) -> None:
    with server.connect() as host:
        result = host.call("exec", cmd="a;" * (size // 2))
        assert result["exit_code"] == -1
        assert "too long" in result["stderr"]


@pytest.mark.parametrize(("kind", "by"), [("tcp", "a client that goes"), ("unix", "a killed server")])
def test_no_command_is_left(tmp_path: Path, kind: str, by: str) -> None:
    marker = new_marker()
    with none_left(marker), served(tmp_path, *PLAIN, kind=kind) as server:
        host = server.connect()
        host.send(
            b'{"jsonrpc":"2.0","id":1,"method":"exec","params":["setsid sleep %b & sleep %b"]}'
            % (marker.encode(), marker.encode())
        )
        wait_until(lambda: len(processes_with(f"sleep\0{marker}")) >= 2)
        if by == "a killed server":
            server.process.kill()
            server.process.wait()
        else:
            host.close()
        wait_until(lambda: not processes_with(marker))
        host.close()
