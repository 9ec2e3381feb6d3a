"""A check that can't start is told when it is named, before a model hears of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import command_line
from tests.sandboxes import needs_bwrap

CANT = "can't start: "


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
        "[[ -e nothing ]] && pyest",
        "cd sub && ./no.sh",
        "PATH=x pyest",
        "$X/pyest",
        "pyest() { true; }; pyest",
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
        ("A=b pyest", "there is no program `pyest` on your PATH"),
        ("./no.sh", "there is no program `./no.sh`"),
        ("./plain.sh", "`./plain.sh` is not executable: make it so (chmod +x)"),
    ],
)
def test_a_check_that_can_not_start_is_told_at_once(
    named: Callable[..., str], sandbox: str, check: str, why: str
) -> None:
    """README: a program that does not exist there is told to the person, not to the model later."""
    said = named(check, "--sandbox", sandbox)
    assert f"the check `{check}` {CANT}{why}" in said
    assert "to name another: codingagent " in said


def test_what_the_sandbox_does_not_show_is_told(named: Callable[..., str], tmp_path: Path) -> None:
    """README: or one where the sandbox can't see it. Without a sandbox it starts."""
    needs_bwrap()
    line = f"{tmp_path}/elsewhere/tool -q"
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
