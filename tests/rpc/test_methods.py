"""The methods of a host's protocol, each for real: files, links, processes, policies, sandboxes."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codingagent.errors import UsageError
from codingagent.model.observations import PLAIN, Extras, Outcome
from codingagent.model.settings import Settings
from codingagent.process.bubblewrap import Bubblewrap, Unconfined
from codingagent.process.output import STREAM_LIMIT_BYTES
from codingagent.process.runner import Runner
from codingagent.rpc.endpoints import Listenable, UnixSocket, listen
from codingagent.rpc.methods import TABLE, Host, RemoteMethods, host_of
from codingagent.rpc.protocol import read
from codingagent.rpc.server import Server
from tests.helpers import (
    HANG_S,
    REPOSITORY,
    children,
    descriptors,
    new_marker,
    none_left,
    processes_with,
    wait_until,
)
from tests.rows import each_row
from tests.sandboxes import needs_bwrap
from tests.serving import ask, beside, connected, request

OPEN = Settings(sandbox="off", policy="permissive", secrets="off")

# What is refused of paths, as an answer: the code alone, the words are checked where they matter.
OUTSIDE, FAILED = -32602, -32603


class Asked:
    """Calls methods as a connection does, and gives a result, or an error as its code."""

    def __init__(self, methods: RemoteMethods) -> None:
        self.methods = methods
        self.words = ""

    def __call__(self, method: str, *by_position: object, **by_name: object) -> Any:
        params: object = list(by_position) if by_position else by_name
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        [asked] = read(line.encode(), TABLE).requests
        answer = json.loads(asked.answer(lambda: self.methods).data)
        if "result" in answer:
            return answer["result"]
        self.words = answer["error"]["message"]
        return answer["error"]["code"]

    def exec(self, cmd: str, **params: object) -> tuple[int, str, str]:
        result = self("exec", cmd=cmd, **params)
        assert list(result) == ["exit_code", "stdout", "stderr"]
        return result["exit_code"], result["stdout"], result["stderr"]

    def names(self, path: str) -> list[str]:
        return [entry["name"] for entry in self("list_dir", path=path)["entries"]]


@contextlib.contextmanager
def serving(root: Path, settings: Settings = OPEN, timeout_s: float | None = None) -> Iterator[Host]:
    with host_of(root.parent / "home", root, settings, timeout_s) as host:
        yield host


@contextlib.contextmanager
def asking(root: Path, settings: Settings = OPEN, timeout_s: float | None = None) -> Iterator[Asked]:
    with serving(root, settings, timeout_s) as host, host.open_methods() as methods:
        yield Asked(methods)


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture(name="asked")
def _asked(root: Path) -> Iterator[Asked]:
    with asking(root) as asked:
        yield asked


# --- exec ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cmd", "result"),
    [
        ("echo out; echo err >&2", (0, "out\n", "err\n")),
        ("exit 7", (7, "", "")),
        ("cat", (0, "", "")),
        (r"printf '\377a\303'", (0, "\ufffda\ufffd", "")),
        ("printf 'a\\r\\n\\033[1m'", (0, "a\r\n\x1b[1m", "")),
        ("kill -TERM $$", (128 + signal.SIGTERM, "", "")),
        ("kill -KILL $$", (128 + signal.SIGKILL, "", "")),
        ("echo $TERM $PAGER", (0, "dumb cat\n", "")),
    ],
)
@pytest.mark.one_in(3)
def test_what_a_command_gives(asked: Asked, cmd: str, result: tuple[int, str, str]) -> None:
    assert asked.exec(cmd) == result


def test_a_command_runs_in_the_root(asked: Asked, root: Path) -> None:
    assert asked.exec("pwd -P") == (0, f"{root.resolve()}\n", "")


@pytest.mark.parametrize(
    ("cmd", "words"),
    [
        ("", "The command is empty; give a shell command"),
        (" \n\t", "The command is empty; give a shell command"),
        ("echo a\0b", "The command has a NUL character; write it without"),
        ("true #" + "x" * 200_000, "refused by policy: The command is too long to be judged"),
        ("x;" * 7_500_000, "refused by policy: The command is too long to be judged"),
    ],
    ids=["empty", "blanks", "NUL", "200 KB", "15 MB"],
)
def test_what_can_not_start(asked: Asked, cmd: str, words: str) -> None:
    assert asked.exec(cmd) == (-1, "", words)


def test_a_stream_is_cut_on_a_character_boundary(asked: Asked) -> None:
    """004, ExecResult: 1 MB of each, and then the words that say so."""
    size = STREAM_LIMIT_BYTES
    code, out, err = asked.exec(
        f"printf x; yes é | tr -d '\\n' | head -c 2000000; head -c {size} /dev/zero | tr '\\0' e >&2"
    )
    assert code == 0
    assert out == "x" + "é" * ((size - 1) // 2) + "\n... [output truncated]"
    assert err == "e" * size


def test_the_time_limit_is_the_calls_or_the_servers(asked: Asked, root: Path) -> None:
    marker = new_marker()
    with none_left(marker):
        # A busy machine needs a while until the first word.
        ended = (124, "a\n", "\n... [ended: 4 s]")
        assert asked.exec(f"echo a; sleep {marker}", timeout=4) == ended
        with asking(root, timeout_s=1) as limited:
            assert limited.exec(f"sleep {marker}") == (124, "", "\n... [ended: 1 s]")
            assert limited.exec("sleep 1.2; echo b", timeout=HANG_S) == (0, "b\n", "")
            assert limited("exec_code", "sh", f"echo a; sleep {marker}")["exit_code"] == 124


class Noting(Runner):
    """Notes the limit that a command is given, and runs nothing."""

    limits: list[float | None]

    def run(
        self,
        command: str,  # noqa: ARG002
        folder: int | str,  # noqa: ARG002
        timeout_s: float | None,
        show: Callable[[str], None],  # noqa: ARG002
        extras: Extras = PLAIN,  # noqa: ARG002
    ) -> Outcome:
        self.limits.append(timeout_s)
        return Outcome(0, "", 0.0, stdout="", stderr="")


@pytest.mark.parametrize(
    ("timeout", "limit_s"), [(None, None), (5, 5), (0.25, 0.25), (1e9, None), (1e300, None)]
)
def test_no_limit_unless_one_is_named(root: Path, timeout: object, limit_s: float | None) -> None:
    """What no timer can count is none, too."""
    with serving(root) as host:
        runner = Noting(Unconfined(), {})
        runner.limits = []
        assert Asked(RemoteMethods(host, runner)).exec("true", timeout=timeout) == (0, "", "")
    assert runner.limits == [limit_s]


def test_a_limit_of_years_is_no_fault(asked: Asked, root: Path) -> None:
    assert asked.exec("echo a", timeout=1e12) == (0, "a\n", "")
    with asking(root, timeout_s=1e300) as patient:
        assert patient.exec("echo a") == (0, "a\n", "")


@each_row("timeout", ["5", True, -1, 0, -1e300, [1], {}, 10**400])
def test_a_timeout_that_is_none(asked: Asked, timeout: object) -> None:
    assert asked("exec", cmd="true", timeout=timeout) == -32602
    assert asked("exec_code", lang="sh", code="true", timeout=timeout) == -32602
    assert "timeout" in asked.words


@each_row(
    ("method", "params"),
    [
        ("exec", {}),
        ("exec", {"cmd": None}),
        ("exec", {"cmd": ["ls"]}),
        ("exec", {"cmd": "ls", "cwd": "/"}),
        ("exec", {"command": "ls"}),
        ("exec_code", {"lang": "sh"}),
        ("exec_code", {"lang": 1, "code": ""}),
        ("read_file", {}),
        ("read_file", {"path": 1}),
        ("write_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": None}),
        ("write_file", {"path": "a", "content": b"a".hex(), "mode": 1}),
        ("list_dir", {"path": True}),
        ("ping", {"path": "a"}),
    ],
)
def test_params_that_do_not_fit(asked: Asked, root: Path, method: str, params: object) -> None:
    assert asked(method, **dict(params)) == -32602  # type: ignore[call-overload]  # a table
    assert asked.words.startswith("invalid params: ")
    assert not list(root.iterdir())


def test_params_go_by_position_too(asked: Asked) -> None:
    assert asked("ping") == {"pong": True}
    assert asked("exec", "echo a", 5)["stdout"] == "a\n"
    assert asked("exec_code", "sh", "echo b")["stdout"] == "b\n"
    assert asked("write_file", "a", "text") == {"success": True}
    assert asked("read_file", "a") == {"content": "text"}
    assert asked("list_dir", ".") == {"entries": [{"name": "a", "is_dir": False, "size": 4}]}


@pytest.mark.parametrize("how", ["sleep {} &", "setsid sleep {} >/dev/null 2>&1 </dev/null &"])
def test_what_a_command_leaves_behind_is_ended(asked: Asked, how: str) -> None:
    marker = new_marker()
    with none_left(marker):
        assert asked.exec(how.format(marker) + " echo a") == (0, "a\n", "")


@pytest.mark.parametrize("victim", ["$PPID", "$$"])
def test_a_command_that_ends_its_guard_costs_only_itself(asked: Asked, victim: str) -> None:
    marker = new_marker()
    with none_left(marker):
        assert asked.exec(f"kill -9 {victim}; sleep {marker}")[0] == 137
        assert asked.exec("echo a") == (0, "a\n", "")


@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_a_command_that_is_cancelled_is_ended_with_all_below_it(root: Path, sandbox: str) -> None:
    """It is what happens when a client goes away."""
    if sandbox == "require":
        needs_bwrap()
    marker = new_marker()
    with none_left(marker), asking(root, replace(OPEN, sandbox=sandbox)) as asked:
        results: list[tuple[int, str, str]] = []

        def cancel() -> None:
            wait_until(lambda: len(processes_with(f"sleep\0{marker}")) >= 2)
            asked.methods.cancel()

        with beside(cancel):
            results.append(asked.exec(f"sleep {marker} & echo a; sleep {marker}"))
        [(code, out, err)] = results
        assert (code, out) == (137, "a\n")
        assert err == "\n... [ended: cancelled]"
        asked.methods.cancel()
        assert asked.exec("echo b") == (0, "b\n", "")


def test_commands_in_the_sandbox_have_the_root_alone(root: Path, tmp_path: Path) -> None:
    needs_bwrap()
    secret = tmp_path / "secret"
    secret.write_text("x")
    with asking(root, replace(OPEN, sandbox="require")) as asked:
        assert asked.exec("echo a > f; cat f; id -u >&2")[:2] == (0, "a\n")
        assert asked.exec(f"cat {secret}")[0] == 1
        assert asked("read_file", path="f") == {"content": "a\n"}


def test_each_connection_has_its_own_tmp_that_is_emptied_after(root: Path) -> None:
    """Design, sandbox: what one leaves in /tmp is no message to another."""
    needs_bwrap()
    with serving(root, replace(OPEN, sandbox="require")) as host:
        with host.open_methods() as first, host.open_methods() as second:
            asked, other = Asked(first), Asked(second)
            assert asked.exec("echo left >/tmp/left; mkdir -p /tmp/deep/er; cat /var/tmp/left")[0] == 0
            assert asked.exec("cat /tmp/left") == (0, "left\n", "")
            assert other.exec("cat /tmp/left")[0] == 1
        with host.open_methods() as third:
            assert Asked(third).exec("cat /tmp/left")[0] == 1
        assert isinstance(host.sandbox, Bubblewrap)
        own = host.sandbox.temporary
        assert list(own.iterdir()) == []
    assert not own.parent.exists()


def test_a_home_in_the_root_is_out_of_reach(root: Path) -> None:
    """Design, the workspace: to listing, to files and to sandboxed commands."""
    needs_bwrap()
    home = root / ".codingagent"
    (home / "sessions").mkdir(parents=True)
    (home / "sessions" / "a.json").write_text("{}")
    settings = replace(OPEN, sandbox="require")
    with host_of(home, root, settings, None) as host, host.open_methods() as methods:
        asked = Asked(methods)
        assert asked.names(".") == []
        assert asked("read_file", path=".codingagent/sessions/a.json") == FAILED
        assert "belongs to codingagent itself" in asked.words
        assert asked("write_file", path=".codingagent/sessions/b.json", content="") == FAILED
        assert asked("list_dir", path=".codingagent") == FAILED
        assert asked.exec("cat .codingagent/sessions/a.json")[0] != 0
    assert not (home / "sessions" / "b.json").exists()


# --- exec_code -------------------------------------------------------------------------------------

_PRINTS = {"python3": "print('a b', 6 * 7)", "node": "console.log('a b', 6 * 7)"}
_LANGUAGES = {
    **dict.fromkeys(("python", "python3"), "python3"),
    **dict.fromkeys(("node", "javascript", "js"), "node"),
    "bash": "bash",
    "sh": "sh",
}


@pytest.mark.parametrize("lang", _LANGUAGES)
@pytest.mark.one_in(2)
def test_each_language_of_the_table(asked: Asked, lang: str) -> None:
    """004, language mapping."""
    program = _LANGUAGES[lang]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    code = _PRINTS.get(program, "echo 'a b' $((6 * 7))")
    assert asked("exec_code", lang=lang, code=code) == {"exit_code": 0, "stdout": "a b 42\n", "stderr": ""}


@pytest.mark.parametrize("lang", _LANGUAGES)
def test_an_interpreter_that_is_missing_is_said(root: Path, tmp_path: Path, lang: str) -> None:
    with serving(root) as host:
        variables = {**host.variables, "PATH": str(tmp_path / "none")}
        poor = replace(host, variables=variables)
        with poor.open_methods() as methods:
            assert Asked(methods)("exec_code", lang=lang, code="1") == {
                "exit_code": -1,
                "stdout": "",
                "stderr": f"{_LANGUAGES[lang]} is not installed here",
            }


@each_row("lang", ["cobol", "Python", "", "python2", "py\0thon"])
def test_an_unsupported_language(asked: Asked, lang: str) -> None:
    assert asked("exec_code", lang=lang, code="1") == {
        "exit_code": -1,
        "stdout": "",
        "stderr": f"unsupported language: {lang}",
    }


@pytest.mark.parametrize("text", ["'", "a\nb", '$HOME `id` \\ "', "é\u2028\t", "it's; exit 3"])
@pytest.mark.one_in(4)
def test_a_program_reaches_its_interpreter_as_it_is(asked: Asked, text: str) -> None:
    code = f"import sys; sys.stdout.buffer.write({text!r}.encode())"
    assert asked("exec_code", lang="python", code=code)["stdout"] == text
    lines = f"cat <<'END OF TEXT'\n{text}\nEND OF TEXT"
    assert asked("exec_code", lang="sh", code=lines)["stdout"] == f"{text}\n"


def test_a_program_ends_as_a_command_does(asked: Asked) -> None:
    assert asked("exec_code", lang="sh", code="exit 9")["exit_code"] == 9
    killed = asked("exec_code", lang="python", code="import os; os.kill(os.getpid(), 15)")
    assert killed["exit_code"] == 143
    assert asked("exec_code", lang="python", code="a\0b")["exit_code"] == -1
    assert asked("exec_code", lang="python", code="1 +")["exit_code"] == 1


# --- files -----------------------------------------------------------------------------------------


@pytest.fixture(name="laid")
def _laid(root: Path) -> Path:
    """Lays out a root with links in and out, and what is no regular file."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_bytes("aé\r\n".encode())
    (root / "latin").write_bytes(b"a\xff\0c")
    (root / "in").symlink_to("sub/a.txt")
    (root / "in-absolute").symlink_to(root / "sub" / "a.txt")
    (root / "folder").symlink_to("sub")
    (root / "out").symlink_to(outside / "secret")
    (root / "out-folder").symlink_to("../outside")
    (root / "device").symlink_to("/dev/zero")
    (root / "nowhere").symlink_to("missing")
    (root / "round").symlink_to("round")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(root / "socket"))
    return root


@pytest.mark.parametrize(
    "path",
    [
        "sub/a.txt",
        "./sub//a.txt",
        "sub/../sub/a.txt",
        "in",
        "in-absolute",
        "folder/a.txt",
        "{root}/sub/a.txt",
        "{root}/folder/a.txt",
        "/{root}//sub/./a.txt",
        "{root}/../root/sub/a.txt",
    ],
)
def test_paths_that_lead_to_a_file(asked: Asked, laid: Path, path: str) -> None:
    named = path.format(root=laid)
    assert asked("read_file", path=named) == {"content": "aé\r\n"}
    assert asked("write_file", path=named, content="new") == {"success": True}
    assert (laid / "sub" / "a.txt").read_text() == "new"
    assert (laid / "in").is_symlink()


@each_row(
    ("path", "code", "words"),
    [
        ("latin", FAILED, "File 'latin' is no text in a known encoding; ask for it"),
        ("sub", FAILED, "'sub' is a folder, not a file"),
        ("fifo", FAILED, "'fifo' is not a regular file; only those can be used"),
        ("socket", FAILED, "'socket' is not a regular file; only those can be used"),
        ("missing", FAILED, "File 'missing' not found"),
        ("no/such/file", FAILED, "File 'no/such/file' not found"),
        ("sub/a.txt/b", FAILED, "'sub/a.txt/b': 'a.txt' is a file, not a folder"),
        ("nowhere", FAILED, "File 'nowhere' not found"),
        ("round", FAILED, "'round' has too many links in it"),
        ("device", OUTSIDE, "REJECTED: Path is outside workspace: 'device' is a link"),
        ("out", OUTSIDE, "REJECTED: Path is outside workspace: 'out' is a link that leads out"),
        ("out-folder/secret", OUTSIDE, "REJECTED: Path is outside workspace"),
        ("../outside/secret", OUTSIDE, "invalid params: REJECTED: Path is outside workspace"),
        ("/etc/hostname", OUTSIDE, "invalid params: REJECTED: Path is outside workspace"),
        ("{root}/../outside/secret", OUTSIDE, "invalid params: REJECTED: Path is outside"),
        ("{root}-and-more/a", OUTSIDE, "invalid params: REJECTED: Path is outside workspace"),
        ("/", OUTSIDE, "invalid params: REJECTED: Path is outside workspace"),
        ("{root}", OUTSIDE, "invalid params: '.' names a folder, not a file"),
        ("{root}/", OUTSIDE, "invalid params: '.' names a folder, not a file"),
        ("{root}/sub/a.txt/", OUTSIDE, "invalid params: 'sub/a.txt/' names a folder, not a file"),
        ("", OUTSIDE, "invalid params: REJECTED: Path is empty; name a file"),
        ("a\0b", OUTSIDE, "invalid params: REJECTED: Path 'a\\x00b' has a character"),
        ("a" * 5000, OUTSIDE, "invalid params: REJECTED: Path is longer than 4096 bytes"),
    ],
)
def test_what_can_not_be_read(asked: Asked, laid: Path, path: str, code: int, words: str) -> None:
    """None of it is opened: reading a FIFO or a device would never end."""
    assert asked("read_file", path=path.format(root=laid)) == code
    assert asked.words.startswith(words)


ON_WINDOWS = r"""
import ast, ntpath, os, sys
from pathlib import PureWindowsPath
from types import SimpleNamespace
from codingagent.model import paths
from codingagent.rpc.methods import RemoteMethods
from codingagent.rpc.protocol import MethodError
os.path, os.sep = ntpath, chr(92)
class Root(PureWindowsPath):
    def absolute(self): return self
for named, path in ast.literal_eval(sys.argv[1]):
    here = SimpleNamespace(root=Root(named), workspace=SimpleNamespace(root=Root(r"\\server\share\proj")))
    try:
        print(RemoteMethods._path(SimpleNamespace(_host=here), path, paths.folder_path))
    except MethodError as fault:
        print(fault)
"""


def test_absolute_paths_of_windows() -> None:
    """An imitation: a client there joins with backslashes, and may write the drive in the other case."""
    proj = "C:\\Proj"
    inside = [
        *((proj, path) for path in (r"C:\Proj\a\b", "C:/Proj/a/b", r"c:\proj\a\b", "/C:/Proj/a/b")),
        *((proj, path) for path in (r"a\b", r"C:\Proj\.\c\..\a\b", r"\\server\share\proj\a\b")),
        ("C:\\", "C:\\a\\b"),
    ]
    outside = [r"D:\Proj\a", r"C:\Project\a", "C:a", r"\Proj\a", r"C:\Proj\..\a", r"..\a", r"\\?\C:\a"]
    words = [*inside, (proj, "C:\\Proj"), *((proj, path) for path in outside)]
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, repr(words)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[: len(inside) + 1] == ["a/b"] * len(inside) + ["."], done.stderr
    refused = "invalid params: REJECTED: Path is outside workspace"
    assert [line[: len(refused)] for line in lines[len(inside) + 1 :]] == [refused] * len(outside)


def test_a_large_file_is_text_or_too_large(asked: Asked, root: Path) -> None:
    (root / "large").write_bytes(b"x" * 5_000_000)
    with (root / "sparse").open("wb") as file:
        file.truncate(2**36)
    assert len(asked("read_file", path="large")["content"]) == 5_000_000
    assert asked("read_file", path="sparse") == FAILED
    assert asked.words.startswith("File 'sparse' is larger than 32 MiB")


def test_a_file_is_written_whole_and_its_folders_made(asked: Asked, root: Path) -> None:
    text = "é\r\n\u2028x\0"
    assert asked("write_file", path="a/b/c.txt", content=text) == {"success": True}
    assert (root / "a/b/c.txt").read_bytes() == text.encode()
    (root / "a/b/c.txt").chmod(0o750)
    assert asked("write_file", path=f"{root}/a/b/c.txt", content="") == {"success": True}
    assert (root / "a/b/c.txt").read_bytes() == b""
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in (root / "a/b").iterdir()] == ["c.txt"]


@each_row(
    ("path", "code"),
    [
        ("out", OUTSIDE),
        ("out-folder/new", OUTSIDE),
        ("out-folder/deep/new", OUTSIDE),
        ("device", OUTSIDE),
        ("../new", OUTSIDE),
        ("/etc/new", OUTSIDE),
        ("fifo", FAILED),
        ("socket", FAILED),
        ("sub", FAILED),
        ("in/new", FAILED),
        ("round", FAILED),
        (".git/config", FAILED),
        ("sub/.git/hooks/x", FAILED),
        (".GIT/config", FAILED),
        (".codingagent/sessions/x", FAILED),
    ],
)
def test_what_can_not_be_written(asked: Asked, laid: Path, path: str, code: int) -> None:
    def all_there() -> dict[str, bytes]:
        files = (p for p in laid.parent.rglob("*") if not p.is_symlink() and p.is_file())
        return {str(p): p.read_bytes() for p in files} | dict.fromkeys(map(str, laid.parent.rglob("*")), b"")

    before = all_there()
    assert asked("write_file", path=path, content="new") == code
    assert all_there() == before


def test_a_folder_is_listed_by_name(asked: Asked, laid: Path) -> None:
    """004, FileEntry; a link that leads out is shown, what it leads to is not told."""
    (laid / "\udcff").write_bytes(b"abc")
    (laid / ".hidden").write_bytes(b"ab")
    entries = asked("list_dir", path=".")["entries"]
    assert [(each["name"], each["is_dir"], each["size"]) for each in entries] == [
        (".hidden", False, 2),
        ("device", False, 0),
        ("fifo", False, 0),
        ("folder", True, 0),
        ("in", False, 5),
        ("in-absolute", False, 5),
        ("latin", False, 4),
        ("nowhere", False, 0),
        ("out", False, 0),
        ("out-folder", False, 0),
        ("round", False, 0),
        ("socket", False, 0),
        ("sub", True, 0),
        ("?", False, 3),
    ]
    for name in (str(laid), f"{laid}/", "./", "sub/..", f"/{laid}/."):
        assert asked("list_dir", path=name)["entries"] == entries
    below = [{"name": "a.txt", "is_dir": False, "size": 5}]
    for name in ("sub", "sub/", "folder", f"{laid}/folder/"):
        assert asked("list_dir", path=name)["entries"] == below


@each_row(
    ("path", "code"),
    [
        ("out-folder", OUTSIDE),
        ("..", OUTSIDE),
        ("/", OUTSIDE),
        ("/etc", OUTSIDE),
        ("", OUTSIDE),
        ("missing", FAILED),
        ("latin", FAILED),
        ("fifo", FAILED),
        ("nowhere", FAILED),
    ],
)
@pytest.mark.usefixtures("laid")
def test_what_can_not_be_listed(asked: Asked, path: str, code: int) -> None:
    assert asked("list_dir", path=path) == code


def test_a_root_that_was_reached_by_a_link_has_both_names(root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("x")
    (tmp_path / "link").symlink_to(root)
    with asking(tmp_path / "link") as asked:
        for name in ("a", f"{tmp_path}/link/a", f"{root}/a"):
            assert asked("read_file", path=name) == {"content": "x"}
        assert asked.names(f"{tmp_path}/link") == asked.names(str(root)) == ["a"]
        assert asked("read_file", path=f"{tmp_path}/other/a") == OUTSIDE


def test_a_root_that_was_named_from_here(root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("x")
    with contextlib.chdir(tmp_path), asking(Path("root")) as asked:
        assert asked("read_file", path=f"{root}/a") == {"content": "x"}
    with contextlib.chdir(root), asking(Path("../root")) as asked:
        assert asked("read_file", path=f"{root}/a") == {"content": "x"}


# --- a root that goes ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "replaced", "moved"])
def test_a_root_that_disappears(root: Path, tmp_path: Path, how: str) -> None:
    """What would be done in another folder, or in none, is said instead, and the server lives."""
    (root / "a").write_text("x")
    with asking(root) as asked:
        assert asked.exec("true")[0] == 0
        if how == "removed":
            shutil.rmtree(root)
        else:
            root.rename(tmp_path / "moved")
        if how == "replaced":
            root.mkdir()
            (root / "a").write_text("y")
        for method, params in (
            ("exec", {"cmd": "touch b"}),
            ("exec_code", {"lang": "sh", "code": "touch b"}),
            ("read_file", {"path": "a"}),
            ("write_file", {"path": "b", "content": ""}),
            ("list_dir", {"path": "."}),
        ):
            assert asked(method, **params) == FAILED
            moved = f"the workspace {root} was moved or replaced; put back what belongs there"
            assert asked.words.startswith(moved)
        assert asked("ping") == {"pong": True}
        assert not list(tmp_path.rglob("b"))
        if how == "moved":
            (tmp_path / "moved").rename(root)
            assert asked("read_file", path="a") == {"content": "x"}


def test_a_root_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("missing", "file"):
        with pytest.raises(UsageError), serving(tmp_path / name):
            pass


def test_the_whole_machine_can_not_be_sandboxed() -> None:
    with (
        pytest.raises(UsageError, match="no sandbox can confine commands when the whole machine is served"),
        serving(Path("/"), Settings(sandbox="require")),
    ):
        pass


# --- policy ----------------------------------------------------------------------------------------


def policy_file(folder: Path, text: str) -> Settings:
    path = folder / "policy.toml"
    path.write_text(text)
    return Settings(sandbox="off", policy=str(path))


@pytest.mark.parametrize(
    ("policy", "cmd", "words"),
    [
        ("standard", "rm -rf x", "refused by policy: it needs approval, which nobody can give here"),
        ("standard", "git push", "refused by policy: it needs approval, which nobody can give here"),
        ("standard", "sudo true", "refused by policy: Command 'sudo' is blocked"),
        ("permissive", "sudo true", "refused by policy: Command 'sudo' is blocked"),
        ("restrictive", "true", "refused by policy: Commands are turned off"),
    ],
)
def test_what_a_policy_refuses_did_not_start(root: Path, policy: str, cmd: str, words: str) -> None:
    """Nobody can be asked: what needs a yes is refused, with the reason."""
    (root / "x").touch()
    with asking(root, Settings(sandbox="off", policy=policy)) as asked:
        code, out, err = asked.exec(cmd)
        assert (code, out) == (-1, "")
        assert err.startswith(words)
        assert asked("exec_code", lang="bash", code=cmd)["stderr"].startswith(words)
    assert (root / "x").exists()


def test_a_read_only_policy_holds_for_files(root: Path) -> None:
    (root / "a").write_text("x")
    with asking(root, Settings(sandbox="off", policy="restrictive")) as asked:
        assert asked("read_file", path="a") == {"content": "x"}
        assert asked.names(".") == ["a"]
        assert asked("write_file", path="b", content="") == FAILED
        assert asked.words.startswith("refused by policy: ")
    assert not (root / "b").exists()


def test_a_policy_of_ones_own(root: Path, tmp_path: Path) -> None:
    text = (
        '[filesystem]\nblocked_paths = ["secret*"]\nmax_file_size = 3\n'
        '[shell]\ntimeout = 2\nallowed_commands = ["echo", "sleep", "python3"]\n'
    )
    (root / "secret.txt").write_text("x")
    (root / "link").symlink_to("secret.txt")
    with asking(root, policy_file(tmp_path, text)) as asked:
        assert asked("read_file", path="secret.txt") == FAILED
        assert asked("read_file", path="link") == FAILED
        assert asked("write_file", path="secret.txt", content="") == FAILED
        assert asked("write_file", path="a", content="1234") == FAILED
        assert asked("write_file", path="a", content="123") == {"success": True}
        assert asked.exec("ls")[0] == -1
        assert asked.exec("echo a") == (0, "a\n", "")
        assert asked.exec("sleep 60", timeout=50)[0] == 124
        assert asked("exec_code", lang="python", code="print(1)")["stdout"] == "1\n"
        assert asked("exec_code", lang="sh", code="echo 1")["exit_code"] == -1
    assert (root / "secret.txt").read_text() == "x"


def test_what_the_configuration_of_a_repository_names_is_protected(root: Path) -> None:
    """Safety: git of the person would run it, whatever its name."""
    subprocess.run(("git", "init", "-q"), cwd=root, check=True)
    subprocess.run(("git", "config", "core.hooksPath", "tools/hooks"), cwd=root, check=True)
    with asking(root, Settings(sandbox="off")) as asked:
        assert asked("write_file", path="tools/hooks/pre-commit", content="x") == FAILED
        assert "needs approval" in asked.words
        assert asked("write_file", path="tools/other", content="x") == {"success": True}
    assert not (root / "tools" / "hooks").exists()


def test_a_policy_in_the_root_is_refused(root: Path) -> None:
    (root / "policy.toml").touch()
    with pytest.raises(UsageError), serving(root, Settings(policy=str(root / "policy.toml"))):
        pass


# --- over connections ------------------------------------------------------------------------------


@contextlib.contextmanager
def listening(root: Path, settings: Settings = OPEN) -> Iterator[Listenable]:
    """Serves a root over a Unix socket in a thread of the test."""
    listener = listen(UnixSocket(str(root.parent / "s")))
    with serving(root, settings) as host:
        server = Server(TABLE, host.open_methods, lambda *_: None)

        def work() -> None:
            server.serve(listener)

        try:
            with beside(work):
                try:
                    yield listener.endpoint
                finally:
                    server.stop()
        finally:
            listener.close()


def test_slow_commands_of_two_connections_run_side_by_side(root: Path) -> None:
    """Each waits for the other: one after the other they would wait for ever."""
    for name in ("one", "two"):
        os.mkfifo(root / name)
    with listening(root) as endpoint, connected(endpoint) as a, connected(endpoint) as b:
        a.sendall(request("exec", cmd="echo a > one; cat two"))
        b.sendall(request("exec", cmd="cat one; echo b > two"))
        assert json.loads(a.makefile("rb").readline())["result"]["stdout"] == "b\n"
        assert json.loads(b.makefile("rb").readline())["result"]["stdout"] == "a\n"


def test_a_connection_that_ends_disturbs_no_other_ones_command(root: Path) -> None:
    """Each has a supervisor of its own, whose parent is the thread that started it."""
    os.mkfifo(root / "go")
    before = children(os.getpid())
    with listening(root) as endpoint:
        with connected(endpoint) as slow:
            slow.sendall(request("exec", cmd="cat go"))
            wait_until(lambda: len(children(os.getpid()) - before) == 1)
            with connected(endpoint) as quick:
                assert ask(quick, request("exec", cmd="echo a"))["result"]["stdout"] == "a\n"
            wait_until(lambda: len(children(os.getpid()) - before) == 1)
            (root / "go").write_text("b")
            assert json.loads(slow.makefile("rb").readline())["result"]["stdout"] == "b"
        wait_until(lambda: children(os.getpid()) == before)


@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_a_client_that_goes_away_ends_its_command(root: Path, sandbox: str) -> None:
    if sandbox == "require":
        needs_bwrap()
    marker = new_marker()
    settings = replace(OPEN, sandbox=sandbox)
    with none_left(marker), listening(root, settings) as endpoint:
        with connected(endpoint) as connection:
            connection.sendall(request("exec", cmd=f"sleep {marker}"))
            wait_until(lambda: bool(processes_with(f"sleep\0{marker}")))
        wait_until(lambda: not processes_with(marker))


def test_nothing_of_a_connection_is_left(root: Path) -> None:
    # Of the tests before, too, a thread may still be there: it is no one's of ours.
    others = threading.active_count()
    with listening(root) as endpoint:

        def once() -> None:
            with connected(endpoint) as connection:
                ask(connection, request("exec", cmd="true"))
                ask(connection, request("read_file", path="missing"))
                ask(connection, request("list_dir", path="."))
                ask(connection, request("write_file", path="a/b", content="x"))

        once()
        wait_until(lambda: threading.active_count() <= others + 1)
        threads, handles, below = threading.active_count(), descriptors(), children(os.getpid())
        for _ in range(10):
            once()
        wait_until(
            lambda: (
                (threading.active_count(), descriptors(), children(os.getpid())) == (threads, handles, below)
            )
        )
