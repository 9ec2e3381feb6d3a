"""What `--help` says, of everything, and what completion offers."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import codingagent
from codingagent.cli import main
from codingagent.cli.command_table import COMMANDS
from codingagent.cli.commands.help import TOPICS
from codingagent.storage.homes import NEWEST
from tests.cli.terminals import on_terminal
from tests.helpers import run_here
from tests.rows import each_row

NAMES = [name for group in COMMANDS.values() for name in group]
ENTRIES = {name: entry for group in COMMANDS.values() for name, entry in group.items()}

# A terminal of 24 lines scrolls a little; a page that must be searched is no help.
_SCREEN_LINES = 48


def test_each_command_is_where_the_table_says() -> None:
    """A command that is missing from the table can't be reached, and one that is not there fails."""
    defined = {
        info.name: module
        for module in {module for module, _ in ENTRIES.values()}
        for info in importlib.import_module(f"codingagent.cli.commands.{module}").app.registered_commands
    }
    assert defined == {name: module for name, (module, _) in ENTRIES.items()}


@each_row("name", NAMES)
def test_each_help_is_one_screen_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer sees all of it at once, and what to type."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main.run([name, "--help"]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert len(lines) <= _SCREEN_LINES
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("  Example: ")
    assert f"codingagent {name}" in lines[-1]


def test_the_first_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What the program can do stands on one screen."""
    assert main.run(["--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"\n  {name} " in page for name in NAMES)
    assert len(page.splitlines()) <= _SCREEN_LINES + 11


def test_help_on_list_says_how_many_it_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """The number is in the code, its words are in the list of options."""
    assert main.run(["list", "--help"]) == 0
    assert f"more than the latest {NEWEST}." in " ".join(capsys.readouterr().out.split())


def test_naming_a_command_imports_no_other() -> None:
    """Start-up is counted in imports."""
    script = (
        "import sys; from codingagent.cli import main; main.run(['list', '--help']);"
        "print([n for n in sys.modules if n.startswith('codingagent.cli.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "commands.inspect" in loaded
    assert "commands.session" not in loaded
    assert "commands.serve" not in loaded


@pytest.mark.parametrize("words", [["-h"], ["new", "-h"], ["help", "-h"]])
def test_help_and_version_have_short_names(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Many programs have them, so they are tried first."""
    assert main.run(words) == 0
    short = capsys.readouterr().out
    assert main.run([*words[:-1], "--help"]) == 0
    assert short == capsys.readouterr().out
    assert main.run(["-V"]) == 0
    assert capsys.readouterr().out == f"codingagent {codingagent.__version__}\n"


def test_help_alone_lists_every_topic(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what it is about, and where the options are explained."""
    assert main.run(["help"]) == 0
    page = capsys.readouterr().out
    for topic, about in TOPICS.items():
        assert re.search(rf"^  {topic} +{re.escape(about)}$", page, re.MULTILINE)
    assert "codingagent --help" in page
    assert max(map(len, page.splitlines())) <= 80


@each_row("topic", TOPICS)
def test_help_in_a_pipe_is_the_page_as_it_is_written(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But for the remarks to its writer."""
    assert main.run(["help", topic.upper()]) == 0
    out = capsys.readouterr().out
    written = (Path(codingagent.__file__).parent / "docs" / f"{topic}.md").read_text("utf-8")
    assert out == re.sub(r"^<!-- .*\n", "", written, flags=re.MULTILINE)
    assert "<!--" not in out
    assert "\x1b" not in out


@pytest.mark.one_in(6)
@pytest.mark.parametrize("topic", TOPICS)
def test_help_on_a_terminal_is_laid_out(topic: str) -> None:
    """Headings, lists and tables fit the width; nothing of the markup is left."""
    shown = on_terminal(["help", topic], variables={"PAGER": ""})
    assert shown.status == 0
    assert shown.has_colour
    assert max(map(len, shown.text.splitlines())) <= 80
    assert not re.search(r"^#+ |\|--|^```|<!--", shown.text, re.MULTILINE)
    outside_code = re.sub(r"\x1b\[36m.*?\x1b\[0m", "", shown.raw, flags=re.DOTALL)
    assert not re.search(r"\*\*\w", outside_code)
    assert topic.capitalize() in shown.text


def test_help_without_colour_has_none() -> None:
    """no-color.org."""
    shown = on_terminal(["help", "safety"], variables={"PAGER": "", "NO_COLOR": "1"})
    assert not shown.has_colour


@pytest.mark.parametrize("name", ["less", pytest.param("less.EXE", marks=pytest.mark.deep)])
def test_a_long_page_is_shown_in_the_pager(tmp_path: Path, name: str) -> None:
    """The person's own, with its arguments; not for a short page, and not where it is missing."""
    pager = tmp_path / "my pager" / name
    pager.parent.mkdir()
    pager.write_text('#!/bin/sh\necho "paged by $*"\ncat\n', "utf-8")
    pager.chmod(0o755)
    variables = {"PAGER": f"'{pager}' me"}
    long = on_terminal(["help", "options"], variables=variables)
    assert "paged by me -FRX\n" in long.text
    assert "Work on a task" in long.text
    assert "paged" not in on_terminal(["help", "changelog"], 160, variables).text
    for missing in ("no-such-pager -R", "less 'no-such-quote"):
        unpaged = on_terminal(["help", "options"], variables={"PAGER": missing})
        assert (unpaged.status, "no-such" in unpaged.text) == (0, False)
        assert "Work on a task" in unpaged.text


@each_row("name", [name for name in NAMES if name not in TOPICS])
def test_help_on_a_command_is_its_own_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anyone who types `help` before a command gets what `--help` after it shows."""
    assert main.run(["help", name]) == 0
    found = capsys.readouterr().out
    assert main.run([name, "--help"]) == 0
    assert found == capsys.readouterr().out


def test_help_on_nothing_known_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the exit status of wrong usage."""
    for word, hint in {
        "setings": "did you mean 'settings'?",
        "resum": "did you mean 'resume'?",
        "quantum": "`codingagent help` lists the topics",
    }.items():
        assert main.run(["help", word]) == 2
        said = f"codingagent: there is no help on '{word}'; {hint}\n"
        assert capsys.readouterr() == ("", said)


def test_a_shell_completes_topics_and_commands(tmp_path: Path) -> None:
    """After `help` either may follow."""
    assert complete(tmp_path, "help", "s", shell="zsh")[:2] == ["start", "safety"]
    assert complete(tmp_path, "help", "re") == ["repairs", "resume", "refresh", "revoke", "rename"]


# How each shell asks, what it was given so far being the last of the words.
def _of_bash(words: tuple[str, ...]) -> dict[str, str]:
    return {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}


def _of_zsh(words: tuple[str, ...]) -> dict[str, str]:
    return {"_TYPER_COMPLETE_ARGS": " ".join(words)}


def _of_fish(words: tuple[str, ...]) -> dict[str, str]:
    return {"_TYPER_COMPLETE_ARGS": " ".join(words), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


SHELLS = {"bash": _of_bash, "zsh": _of_zsh, "fish": _of_fish}


def complete(home: Path, *words: str, shell: str = "bash") -> list[str]:
    """Return what a shell would be offered for the last word."""
    asked = {"_CODINGAGENT_COMPLETE": f"complete_{shell}", **SHELLS[shell](("codingagent", *words))}
    done = run_here(folder=home, variables=asked)
    assert done.stderr == ""
    if shell == "zsh":
        return [re.sub(r":.*", "", each) for each in re.findall(r'"([^"]*)"', done.stdout)]
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    """Completion by the shell knows what the command line knows."""
    assert complete(tmp_path, "re") == ["resume", "refresh", "revoke", "rename"]
    assert complete(tmp_path, "new", "--no-w") == ["--no-wait"]
    assert complete(tmp_path, "new", "--protocol", "j") == ["json"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_the_values_of_options(tmp_path: Path, shell: str) -> None:
    """What can be said in one of few words need not be remembered."""
    values = {
        "--policy": ["restrictive", "standard", "permissive"],
        "--sandbox": ["auto", "require", "off"],
        "--protocol": ["tags", "json"],
        "--diff": ["never", "short", "full"],
    }
    for option, words in values.items():
        assert complete(tmp_path, "new", option, "", shell=shell) == words
    assert complete(tmp_path, "resume", "--diff", "s", shell=shell) == ["short"]


def _home_with(folder: Path, *names: str) -> Path:
    (folder / "inbox").mkdir(parents=True)
    for name in ("runs", *names):
        (folder / "sessions" / name).mkdir(parents=True)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_the_ids_of_sessions(tmp_path: Path, shell: str) -> None:
    """Of the home that the command would use, by the names there alone."""
    home = _home_with(tmp_path / "home", "0a1b2c3d", "0affffff", "11111111", "no-session")
    (home / "sessions" / "11111111.json").write_text("damaged", "utf-8")
    (home / "sessions" / "runs" / "run_0123456789ab").mkdir()
    both = ["0a1b2c3d", "0affffff"]
    for command in ("show", "log", "diff", "undo", "resume", "approve", "deny", "copy", "paste"):
        assert complete(home, command, "0a", shell=shell) == both
    assert complete(home, "show", "", shell=shell) == [*both, "11111111"]
    assert complete(home, "show", "run", shell=shell) == ["run_0123456789ab"]
    assert complete(tmp_path, "--home", str(home), "show", "0", shell=shell) == both
    here = _home_with(tmp_path / "project" / ".codingagent", "22222222").parent / "src"
    here.mkdir()
    assert complete(here, "show", "2", shell=shell) == ["22222222"]


def test_what_can_not_be_completed_is_met_with_silence(tmp_path: Path) -> None:
    """A word half typed is no place to complain; and nothing is made."""
    assert complete(tmp_path, "show", "") == []
    assert complete(tmp_path, "--home", str(tmp_path / "none"), "approve", "0") == []
    (tmp_path / "sessions").write_text("", "utf-8")
    assert complete(tmp_path, "show", "0") == []
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_the_shell_that_asks(tmp_path: Path, shell: str) -> None:
    """`--install-completion` writes what makes the shell ask; the commands are made late all the same."""
    script = Path(sys.executable).with_name("codingagent")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    # What is asked which shell it is looks at the name of the process that started it.
    found = shutil.which("bash")
    assert found is not None
    (bin_ / shell).symlink_to(found)
    done = subprocess.run(
        [bin_ / shell, "-c", f"'{script}' --install-completion; exit $?"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "SHELL": str(bin_ / shell)},
    )
    assert done.returncode == 0, done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != bin_]
    assert any(f"complete_{shell}" in path.read_text("utf-8") for path in written), written
    assert f"{shell} completion installed" in done.stdout
