"""The lines and scripts that codingagent writes for cmd.exe, run by it on Windows, else by wine's.

wine is not Windows: wine reads a batch file in the code page of the system, whatever `chcp` says, and
loses the exit code of a batch file that a script calls. So neither is tried here.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from codingagent.process import windows
from codingagent.process.bubblewrap import Unconfined
from codingagent.process.runner import Runner

WINE, SERVER = shutil.which("wine"), shutil.which("wineserver")
pytestmark = [
    pytest.mark.skipif(
        sys.platform == "darwin" or (sys.platform == "linux" and not (WINE and SERVER)),
        reason="there is no wine, whose cmd.exe would run them: apt-get install wine64",
    ),
    # Making a Windows to run them on takes 13 seconds.
    *([pytest.mark.deep] if sys.platform == "linux" else []),
]

# A command, what it prints, its exit code. `b` is a batch file that ends with 3.
CASES = {
    "words": ("echo hello", b"hello", 0),
    "quotes": ('type "a b.txt"', b"inner", 0),
    "quotes within": ('echo "a" b "c"', b'"a" b "c"', 0),
    "quotes at both ends": ('"%HERE%\\b.cmd" "1"', b'batch "1"', 3),
    "an escape": ("echo a^&b", b"a&b", 0),
    "operators": ('echo a& echo "&"& exit 5', b'a\n"&"', 5),
    "a pipe": ("type nothere 2>nul|| echo b| more", b"b", 0),
    "a batch file comes back": ("b 1&& echo no|| echo after", None, 3),
    "the console's code page": ("echo ü", "ü".encode("cp437"), 0),
    "lines": ("set X=1\necho %X%\n\nexit /b 7", b"1", 7),
    "a line with quotes": ('type "a b.txt"\nexit 4', b"inner", 4),
    "the code page of lines": ("chcp", b"Active code page: 65001", 0),
    "batch files": (
        "b 1\nb 2& b 3\nb 4|| b 5\necho end",
        b"batch 1\nbatch 2\nbatch 3\nbatch 4\nbatch 5\nend",
        None,
    ),
    "batch files in blocks": (
        "if exist b.cmd (\nb 1\n) else b 2\nif not exist b.cmd (b 3) else (b 4)\nfor %%i in (5) do b %%i",
        b"batch 1\nbatch 4\nbatch 5",
        None,
    ),
    # On one line a percent sign that names no variable stays: so it does in several.
    "percents": ("echo %h %s %x09%an%\necho 100%% %word% %E2%", b"%h %s %x09%an%\n100% w %E2%", 0),
    "percents of a batch file": ("b %h%s\nb %h", b"batch %h%s\nbatch %h", None),
    "variables": (
        'set "s=12"\nset /a n=5\necho %s% %S:~1% %n%%n%\nif "%NOT_SET%"=="" echo empty',
        b"12 2 55\nempty",
        0,
    ),
    "loops": ("for %i in (a b) do echo %i\nfor %%i in (c.d) do echo %%~ni%%i", b"a\nb\ncc.d", 0),
    "a part of it": ("call :part 7\nexit /b\n:part\necho %~1 %h %d0", b"7 %h %d0", 0),
}


class Ran(NamedTuple):
    output: bytes
    code: int


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Run all cases in one start of wine, each by the command line as CreateProcess gets it.

    wine would put backslashes before the quotes of an argument of its own. A variable's value that cmd
    puts in late (`!X!`) is a command line as it stands.
    """
    folder = tmp_path_factory.mktemp("a folder")
    (folder / "b.cmd").write_bytes(b"@echo off\r\necho batch %1\r\nexit /b 3\r\n")
    (folder / "a b.txt").write_bytes(b"inner\r\n")
    if sys.platform == "win32":
        return {name: _ran(command, folder) for name, (command, _, _) in CASES.items()}
    if shutil.disk_usage(folder).free < 2**30:
        pytest.skip("what wine lays on the disk, 700 MB, has no room there")
    here = "Z:" + str(folder).replace("/", "\\")
    variables = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    variables |= {"WINEPREFIX": str(folder / "prefix"), "WINEDEBUG": "-all", "HERE": here, "WORD": "w"}
    variables |= {"WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}
    driver = ["@echo off", "setlocal enabledelayedexpansion"]
    for number, (command, _, _) in enumerate(CASES.values()):
        if "\n" in command:
            script = windows.script(command, "b".__eq__, {"WORD"})
            (folder / f"run{number}.cmd").write_bytes(script)
        line = f'"{here}\\run{number}.cmd"' if "\n" in command else command
        variables[f"CASE{number}"] = windows.command_line(line)
        driver += [f"!CASE{number}! >out{number} 2>&1", f"echo !errorlevel!>code{number}"]
    (folder / "driver.cmd").write_text("\r\n".join([*driver, ""]))
    console, end = os.openpty()  # without one there is no code page
    assert WINE and SERVER
    try:
        words = [WINE, "cmd.exe", "/d", "/v:on", "/c", "driver.cmd"]
        subprocess.run(words, cwd=folder, env=variables, stdin=end, stdout=end, stderr=end, check=False)
    finally:
        subprocess.run([SERVER, "-k"], env=variables, check=False)
        shutil.rmtree(folder / "prefix", ignore_errors=True)
        os.close(end)
        os.close(console)
    return {
        name: Ran((folder / f"out{n}").read_bytes(), int((folder / f"code{n}").read_text()))
        for n, name in enumerate(CASES)
    }


def _ran(command: str, folder: Path) -> Ran:
    """Run a case as the agent does; the bytes are those of its console, or of a script in UTF-8."""
    variables = {**os.environ, "HERE": str(folder), "WORD": "w"}
    with contextlib.closing(Runner(Unconfined(), variables)) as runner:
        outcome = runner.run(command, str(folder), 60, lambda _: None)
    assert not outcome.failure
    return Ran(outcome.output.encode("cp437"), outcome.exit_code)


@pytest.mark.parametrize("name", CASES)
def test_a_command_is_run_as_it_was_written(ran: dict[str, Ran], name: str) -> None:
    _, output, code = CASES[name]
    lines = [line.rstrip() for line in ran[name].output.split(b"\n")]
    if output is not None:
        assert b"\n".join(lines).rstrip() == output
    if code is not None:
        assert ran[name].code == code
