"""Commands on Windows, as far as another system can tell: the line, the script, the folder, the output."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from codingagent.agent import factory
from codingagent.model.observations import PLAIN, Extras, Outcome
from codingagent.process import windows
from codingagent.process.output import Output, Reading, Show, decoded
from tests.helpers import REPOSITORY, new_marker, none_left
from tests.rows import each_row

linux = pytest.mark.skipif(sys.platform != "linux", reason="/bin/sh stands for cmd, and /proc is asked")

CMD = r"C:\Windows\System32\cmd.exe"


@each_row("command", ['python -c "print(1)"', 'git commit -m "a b"', "echo a", 'a "b" "c"'])
def test_a_command_is_the_command(command: str) -> None:
    """Design, commands: `/s` takes off the outer quotes, and what is between them stays as it is."""
    assert windows.command_line(command) == f'"{CMD}" /d /s /c "{command}"'


def test_several_lines_are_a_script_in_utf8_that_comes_back_from_batch_files() -> None:
    lines = 'npm install\n  "npm" test\nset X=ü\necho %X%\nif exist a (\nnpm run x\n)\n@npm ci'
    text = windows.script(lines, {"npm"}.__contains__, ()).decode()
    assert text.split("\r\n") == [
        "@echo off",
        r"C:\Windows\System32\chcp.com 65001 >nul",
        "call npm install",
        '  call "npm" test',
        "set X=ü",
        "echo %X%",
        "if exist a (",
        "call npm run x",
        ")",
        "@call npm ci",
        "",
    ]


@each_row(
    ("line", "written"),
    [
        ("npm ci && npm test || npm x & npm y", "N ci && N test || N x & N y"),
        ("if exist a.txt (npm ci) else (npm x)", "if exist a.txt (N ci) else (N x)"),
        ("if exist a.txt ( npm ci ) else npm x", "if exist a.txt ( N ci ) else N x"),
        ('if not "%X%"=="a b" npm ci', 'if not "%X%"=="a b" N ci'),
        ("if /i not %X% equ 1 npm ci", "if /i not %X% equ 1 N ci"),
        ("if errorlevel 1 npm ci", "if errorlevel 1 N ci"),
        ("for %%i in (a b) do npm %%i", "for %%i in (a b) do N %%i"),
        ("cd a && (npm ci && npm x)", "cd a && (N ci && N x)"),
        (") else npm ci", ") else N ci"),
        ('npm ci 2>&1 | find "npm & npm" && npm x', 'N ci 2>&1 | find "npm & npm" && N x'),
        ("echo npm ^& npm (npm) npm", "echo npm ^& npm (npm) npm"),
        ("echo if exist a npm", "echo if exist a npm"),
        ("call npm ci&npm x", "call npm ci&N x"),
        ("node a.js && echo npm", "node a.js && echo npm"),
        ('@"npm" ci', '@call "npm" ci'),
        ('npm version 1 -m "v%s" & echo %s', 'N version 1 -m "v%%%%s" & echo %%s'),
        ('git commit -m "npm', 'git commit -m "npm'),
    ],
)
def test_each_batch_file_of_a_script_is_called(line: str, written: str) -> None:
    """Also after an operator and inside of a block: a batch file by its name alone never comes back."""
    text = windows.script(line, {"npm"}.__contains__, {"X"}).decode()
    assert text.split("\r\n")[2] == written.replace("N ", "call npm ")


def test_a_name_is_found_as_cmd_finds_it(tmp_path: Path) -> None:
    for name in ("npm.cmd", "node.exe", "both.exe", "both.cmd", "tool.BAT"):
        (tmp_path / name).touch()
    variables = {"PATH": str(tmp_path), "PATHEXT": ".COM;.EXE;.BAT;.CMD;"}

    def found(name: str, folder: Path = Path("/nowhere")) -> bool:
        return windows.is_batch_file(name, variables, str(folder))

    assert found("npm")
    assert found("npm.cmd")
    assert not found("node")
    assert not found("both")
    assert found("both.cmd")
    assert not found("missing")
    assert windows.is_batch_file("npm", {}, str(tmp_path))
    assert found(str(tmp_path / "npm"))


def test_a_network_folder_is_refused_in_words() -> None:
    """cmd.exe would begin in C:\\Windows."""
    with contextlib.ExitStack() as stack, pytest.raises(OSError) as refused:
        windows.start(stack, "del *", r"\\server\share\x", {}, None, PLAIN)
    assert str(refused.value).startswith(r"cmd.exe does not work in a network folder (\\server\share\x)")


@pytest.mark.parametrize("data", [b"a\xc3\xa9", b"a\xe9"])
def test_output_is_utf8_or_the_code_page_of_the_console(data: bytes) -> None:
    assert decoded(data)[0] == "a"
    assert decoded("ü 中".encode()) == "ü 中"
    assert decoded(b"a\xe9\r\n" + "ü 中\n".encode()).endswith("\r\nü 中\n")


def test_a_character_that_comes_in_two_pieces_is_shown_as_one() -> None:
    shown: list[str] = []
    output = Output(2, shown.append)
    for stream, piece in ((0, b"a\xe4\xb8"), (1, b"\xc3"), (0, b"\xad"), (1, b"\xbcb"), (0, b"c")):
        output.add(stream, piece)
    assert shown == ["a", "", "中", "üb", "c"]
    assert output.outcome(0, 0).stdout == "a中c"


# --- reading, with a process group in place of a job object ---------------------------------------


class Group:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def end(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
            return 1
        return 0


def watched(command: str, timeout_s: float | None = None, extras: Extras = PLAIN) -> tuple[Outcome, str]:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if extras.parts_streams else subprocess.STDOUT,
        start_new_session=True,
    )
    shown: list[str] = []
    return read(process, timeout_s, shown.append, extras), "".join(shown)


def read(
    process: "subprocess.Popen[bytes]", timeout_s: float | None, show: Show, extras: Extras = PLAIN
) -> Outcome:
    control, theirs = socket.socketpair()
    with control:
        outputs = windows.guarded(Group(process), theirs, timeout_s)
        return Reading(control, outputs, show, extras.is_flooded).outcome(timeout_s)


@linux
def test_output_is_shown_as_it_comes_and_kept() -> None:
    outcome, shown = watched("echo a; echo b >&2; exit 3")
    assert (outcome.exit_code, outcome.output, outcome.ended_by) == (3, "a\nb\n", "itself")
    assert shown == "a\nb\n"
    outcome, _ = watched("echo a; echo b >&2", extras=Extras(parts_streams=True))
    assert (outcome.stdout, outcome.stderr) == ("a\n", "b\n")


@linux
def test_what_it_leaves_running_ends_with_it() -> None:
    """Design, commands: then the whole tree is ended, and a background child does not keep us."""
    marker = new_marker()
    with none_left(marker):
        outcome, _ = watched(f"X={marker} sleep 100 & echo started")
        assert (outcome.output, outcome.ended_by) == ("started\n", "itself")


@linux
def test_limits_end_it_whole() -> None:
    marker = new_marker()
    with none_left(marker):
        outcome, _ = watched(f"X={marker} sleep 100 & X={marker} sleep 100", timeout_s=0.1)
        assert outcome.ended_by == "time_limit"
        outcome, _ = watched(f"X={marker} sleep 100", extras=Extras(is_flooded=lambda: True))
        assert outcome.ended_by == "output_limit"


@linux
def test_limits_hold_while_the_screen_is_slower_than_the_command() -> None:
    """The pieces that wait to be shown never run out then."""
    process = subprocess.Popen(["yes"], stdout=subprocess.PIPE, start_new_session=True)

    def show(text: str) -> None:
        threading.Event().wait(0.002 if text else 0)

    assert read(process, 0.2, show).ended_by == "time_limit"


@linux
def test_what_a_command_printed_last_is_kept_however_slow_the_screen_is() -> None:
    line = "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo end"
    process = subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE, start_new_session=True)

    def show(text: str) -> None:
        threading.Event().wait(0.02 if text else 0)

    outcome = read(process, None, show)
    assert outcome.output.endswith("\nend\n")
    assert len(outcome.output) - len("\n") + outcome.dropped_characters == 2_000_005


@linux
def test_the_persons_own_command_is_not_looked_for_in_the_current_folder(tmp_path: Path) -> None:
    """There an answer may have written it; cmd.exe asks this variable (NeedCurrentDirectoryForExePath)."""
    with contextlib.closing(factory.reply_runner()) as runner:
        shown: list[str] = []
        line = "echo $NoDefaultCurrentDirectoryInExePath"
        assert runner.run(line, str(tmp_path), 10, shown.append).output == "1\n"


@linux
def test_an_interrupt_ends_it_whole() -> None:
    marker = new_marker()

    def interrupt() -> bool:
        raise KeyboardInterrupt

    with none_left(marker), pytest.raises(KeyboardInterrupt):
        watched(f"X={marker} sleep 100 & X={marker} sleep 100", extras=Extras(is_flooded=interrupt))


@linux
def test_a_connection_is_carried_to_a_program_and_back() -> None:
    """`call` speaks to a program over pipes there: it ends when we hang up, and its end is ours."""
    for line, sent in (("cat", b"x" * 2**20), ("head -c 3", b"abc")):
        ours, theirs = socket.socketpair()
        with ours, subprocess.Popen(line.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            windows.carry(theirs, process.stdin, process.stdout)
            threading.Thread(target=ours.sendall, args=(sent,), daemon=True).start()
            found = b""
            while len(found) < len(sent):
                found += ours.recv(2**16)
            assert found == sent
            if line == "cat":
                ours.shutdown(socket.SHUT_WR)
            assert process.wait() == 0
            assert ours.recv(1) == b""


def test_a_program_on_path_comes_before_one_of_its_name_in_the_folder(tmp_path: Path) -> None:
    """cmd.exe would look in the workspace first: a git.bat there is an answer's, or a clone's."""
    (tmp_path / "git.exe").touch()
    here = {"PATH": str(tmp_path)}
    name = "NoDefaultCurrentDirectoryInExePath"
    assert name in windows.searched("git status", here)
    assert name in windows.searched('"git.exe" log', here)
    assert name not in windows.searched("gradlew test", here)
    assert name not in windows.searched(r".\git status", here)
    assert windows.searched("", here) == here


@linux
def test_line_ends_around_a_command_are_no_lines() -> None:
    """cmd.exe ends at the first, and says that all went well."""
    program = (
        "from codingagent.model.observations import PLAIN; from codingagent.process import windows\n"
        "def started(line, *_): raise OSError(line)\n"
        "windows._started = started\n"
        "for command in ('dir', '\\ndir', '\\r\\ndir\\r\\n'):\n"
        "    try: windows.start(None, command, '.', {}, None, PLAIN)\n"
        "    except OSError as fault: print(fault)\n"
    )
    assert _printed_by(program) == 3 * f"{windows.command_line('dir')}\n"


@linux
def test_a_command_whose_client_left_is_ended() -> None:
    """Of `serve`: without a limit it would run on."""
    program = (
        "import subprocess, sys; from codingagent.process import bubblewrap, runner, windows\n"
        "from tests.process.test_windows import Group\n"
        "def started(*_):\n"
        "    words = ['/bin/sh', '-c', 'echo; exec sleep 100']\n"
        "    process = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)\n"
        "    return Group(process)\n"
        "windows._started, sys.platform = started, 'win32'\n"
        "one = runner.Runner(bubblewrap.Unconfined(''), {})\n"
        "print(one.run('x', '.', 20, lambda _: one.end_command()).ended_by)\n"
    )
    assert _printed_by(program) == "agent\n"


def _printed_by(program: str) -> str:
    """Run a program in a process of its own, whose modules it may change; return what it prints."""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout or done.stderr
