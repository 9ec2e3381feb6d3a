"""What `--help` says, of everything, and what completion offers."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.faces import cli

NAMES = [name for group in cli.COMMANDS.values() for name in group]
ENTRIES = {name: entry for group in cli.COMMANDS.values() for name, entry in group.items()}

# A terminal of 24 lines scrolls a little; a page that must be searched is no help.
_SCREEN_LINES = 40


def test_each_command_is_where_the_table_says() -> None:
    """A command that is missing from the table can't be reached, and one that is not there fails."""
    defined = {
        info.name: module
        for module in {entry.module for entry in ENTRIES.values()}
        for info in importlib.import_module(
            f"codingagent.faces.commands.{module}"
        ).app.registered_commands
    }
    assert defined == {name: entry.module for name, entry in ENTRIES.items()}


@pytest.mark.parametrize("name", NAMES)
def test_each_help_is_one_screen_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer sees all of it at once, and what to type."""
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.run([name, "--help"]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert len(lines) <= _SCREEN_LINES
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("  Example: ")
    assert f"codingagent {name}" in lines[-1]


def test_the_first_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What the program can do stands on one screen."""
    assert cli.run(["--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"\n  {name} " in page for name in NAMES)
    assert len(page.splitlines()) <= _SCREEN_LINES + 5


def test_naming_a_command_imports_no_other() -> None:
    """Start-up is counted in imports."""
    script = (
        "import sys; from codingagent.faces import cli; cli.run(['list', '--help']);"
        "print([n for n in sys.modules if n.startswith('codingagent.faces.commands.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1]
    assert "commands.looking" in loaded
    assert "commands.loop" not in loaded
    assert "commands.programs" not in loaded


def complete(home: Path, *words: str) -> list[str]:
    """Gives what bash would be offered for the last word."""
    variables = {
        **os.environ,
        "_CODINGAGENT_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("codingagent", *words)),
        "COMP_CWORD": str(len(words)),
    }
    script = Path(sys.executable).with_name("codingagent")
    done = subprocess.run(
        [script], capture_output=True, text=True, check=False, env=variables, cwd=home
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    """Completion by the shell knows what the command line knows."""
    assert complete(tmp_path, "re") == ["resume", "refresh"]
    assert complete(tmp_path, "new", "--no-w") == ["--no-wait"]
    assert complete(tmp_path, "new", "--protocol", "j") == ["json"]
