"""A check that can't start is told when it is named, before a model hears of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codingagent.policy.check_needs import Need, needs_of
from tests.helpers import command_line
from tests.sandboxes import needs_bwrap

CANT = "can't start: "


def program(name: str, folder: str = "") -> Need:
    return Need("program", name, folder)


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("pytest -q", [program("pytest")]),
        ("A=b pytest", [program("pytest")]),
        ("env A=b pytest", [program("env"), program("pytest")]),
        ("timeout 60 pytest | tail", [program("timeout"), program("pytest"), program("tail")]),
        ("cd x && cd y; ./z", [program("cd"), program("cd", "x"), program("./z", "x/y")]),
        ("(cd x && ./y); ./z", [program("cd")]),
        ("cd $X && ./y", [program("cd")]),
        ("'my tools/run' a", [program("my tools/run")]),
        ("sh -c 'ruff check && mypy'", [program("sh"), program("ruff"), program("mypy")]),
        ("python3 -m a.b -x", [program("python3"), Need("module", "a", "", ("python3",))]),
        ("python3 -I x.py", [program("python3"), Need("script", "x.py", "", ("python3", "-I"))]),
        ("python3 -W error -m x", [program("python3")]),
        ("PYTHONPATH=src python3 -m x", [program("python3")]),
        ("python3 -c 1", [program("python3")]),
        ("uv run pytest", [program("uv")]),
        ("PATH=x pytest", []),
        (". ./activate && pytest", [program(".")]),
        ("which uv || pip", [program("which")]),
        ("if a; then b; fi", [program("a")]),
        ("f() { g; }; f", [program("g")]),
        ("$X/bin/pytest", []),
        ("pytest 'unclosed", []),
        ("", []),
    ],
)
def test_what_a_line_needs(line: str, needs: list[Need]) -> None:
    """What only the shell would know ends the look: rather too little is said than what is not so."""
    assert list(needs_of(line)) == needs


@pytest.fixture(name="named")
def _named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what starts a session with a check, and gives what was said of that."""
    home = tmp_path / "home"
    workspace = home / "workspace"
    (workspace / "sub").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    script(tmp_path / "tools" / "bin" / "tool")
    script(tmp_path / "elsewhere" / "tool")
    script(workspace / "sub" / "run.sh")
    script(workspace / "lost.sh", "#!/nowhere/python -I\n")
    script(workspace / "envlost.sh", "#!/usr/bin/env nopython\n")
    script(workspace / "led.sh", f"#!{tmp_path / 'elsewhere' / 'tool'}\n")
    (workspace / "plain.sh").write_text("touch ran\n")

    def new(check: str, *options: str) -> str:
        done = command_line(home, "new", "--no-wait", "t", "--check", check, *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert not (workspace / "ran").exists(), "the check itself is not run"
        return "".join(line for line in done.stdout.splitlines() if CANT in line)

    return new


def script(path: Path, first: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}touch ran\n")
    path.chmod(0o755)


@pytest.fixture(name="sandbox", params=["require", "off"])
def _sandbox(request: pytest.FixtureRequest) -> str:
    if request.param == "require":
        needs_bwrap()
    return str(request.param)


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    "check",
    [
        "true",
        "tool -q",
        "cd sub && ./run.sh",
        "'sub/run.sh' | cat",
        "env A=b tool",
        "sh plain.sh",
        "python3 -m unittest -q",
        "test -e nothing && ls",
    ],
)
def test_nothing_is_said_of_a_check_that_can_start(
    named: Callable[..., str], sandbox: str, check: str
) -> None:
    """README: `--check` is tried once when it is named."""
    assert named(check, "--sandbox", sandbox) == ""


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("pyest -q", "there is no program `pyest` on your PATH"),
        ("env A=b pyest", "there is no program `pyest` on your PATH"),
        ("tool && pyest", "there is no program `pyest` on your PATH"),
        ("cd sub && ./no.sh", "there is no `./no.sh`"),
        ("cd sub && ./plain.sh", "there is no `./plain.sh`"),
        ("./plain.sh", "`./plain.sh` is not executable: make it so (chmod +x)"),
        ("./sub", "`./sub` is a folder, not a program"),
        ("./lost.sh", "`./lost.sh` needs `/nowhere/python`, and there is no `/nowhere/python`"),
        ("./envlost.sh", "`./envlost.sh` needs `nopython`, and there is no program `nopython`"),
        ("sh no.sh", "there is no `no.sh`"),
        ("python3 -m no_such_module", "`python3` has no module `no_such_module`"),
    ],
)
def test_a_check_that_can_not_start_is_told_at_once(
    named: Callable[..., str], sandbox: str, check: str, why: str
) -> None:
    """README: a program that does not exist there is told to the person, not to the model later."""
    said = named(check, "--sandbox", sandbox)
    assert f"the check `{check}` {CANT}{why}" in said
    assert "to name another: codingagent resume" in said


@pytest.mark.parametrize("check", ["{}/elsewhere/tool -q", "./led.sh"])
def test_what_the_sandbox_does_not_show_is_told(
    named: Callable[..., str], tmp_path: Path, check: str
) -> None:
    """README: or one where the sandbox can't see it. Without a sandbox it starts."""
    needs_bwrap()
    line = check.format(tmp_path)
    said = named(line, "--sandbox", "require")
    assert f"the sandbox does not show {tmp_path / 'elsewhere' / 'tool'}" in said
    assert "or use --sandbox off" in said
    assert named(line, "--sandbox", "off") == ""


def test_one_that_is_named_later_is_tried_then(named: Callable[..., str], tmp_path: Path) -> None:
    assert named("", "--sandbox", "off") == ""
    home = tmp_path / "home"
    for check, is_told in (("pyest", True), ("true", False)):
        done = command_line(home, "resume", "--once", "--check", check)
        assert (done.returncode, CANT in done.stdout) == (0, is_told)
    assert CANT not in command_line(home, "resume", "--once").stdout
