"""What README and the help pages say and can be derived is derived: it may not drift from the code."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import typer

import codingagent
from codingagent.cli import command_table, main
from codingagent.cli.commands.help import TOPICS
from codingagent.model.commands import COMMANDS
from codingagent.model.settings import Source, resolve
from codingagent.policy import rules
from codingagent.protocols.json.wire import EVENTS, Operation
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests import derive_docs
from tests.hosting import served
from tests.recorded_session import picture, words
from tests.rows import each_row
from tests.sandboxes import needs_bwrap

ROOT = Path(__file__).resolve().parent.parent
PAGES = {path.stem: path.read_text("utf-8") for path in derive_docs.PAGES}
README = PAGES["README"]


@each_row("name", PAGES)
def test_the_generated_parts_are_current(name: str) -> None:
    """Design: the settings and the tag reference come from the definitions. derive_docs writes them."""
    assert derive_docs.derived(PAGES[name]) == PAGES[name], "run python -m tests.derive_docs"


def test_each_generated_part_is_on_one_page() -> None:
    """A part that no page has is written for nobody; one on two pages repeats itself."""
    begun = re.findall(r"^<!-- (\w+): written by", "".join(PAGES.values()), re.MULTILINE)
    assert sorted(begun) == sorted([*derive_docs.PARTS, *derive_docs.SCREENS])


def test_each_topic_has_its_page() -> None:
    """`codingagent help` lists what there is."""
    assert set(TOPICS) == set(PAGES) - {"README"}
    for name in TOPICS:
        assert PAGES[name].startswith(f"# {name.capitalize()}\n"), name


@cache
def _known_options() -> set[str]:
    group = typer.main.get_command(main.app)
    context = typer.Context(group)
    names = (name for entries in command_table.COMMANDS.values() for name in entries)
    commands = [group.get_command(context, name) for name in names]  # type: ignore[attr-defined]  # a group
    params = [param for command in (group, *commands) for param in command.params]
    return {each for param in params for each in (*param.opts, *param.secondary_opts)}


# Of other programs, and of the tests.
_FOREIGN_OPTIONS = {"--deep", "--quiet", "--hard", "--copy-paste", "--verbose", "--help", "--shared"}


@each_row("name", PAGES)
def test_what_a_page_tells_you_to_type_exists(name: str) -> None:
    """A command or an option that was renamed must not live on in the documentation."""
    quoted = re.findall(r"```(?:sh|text)\n(.*?)```|`([^`\n]+)`", PAGES[name], re.DOTALL)
    commands = {command for group in command_table.COMMANDS.values() for command in group}
    for text in (block or inline for block, inline in quoted):
        for line in re.findall(r"(?:^|bin/|\$ )codingagent +([a-z]+)", text, re.MULTILINE):
            assert line in commands, text
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        assert options <= _known_options() | _FOREIGN_OPTIONS, text
    for topic in re.findall(r"codingagent help ([a-z]+)", PAGES[name]):
        assert topic in TOPICS, topic


def test_each_link_within_the_repository_leads_somewhere() -> None:
    """A page that was renamed must not leave a dead link."""
    for path in derive_docs.PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), (path.name, target)


def test_the_licence_goes_with_every_package() -> None:
    """Its text is named in pyproject, and is a file of the package: no build can leave it out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license-files"] == ["codingagent/LICENSE"]
    text = (ROOT / "codingagent" / "LICENSE").read_text("utf-8")
    assert text.startswith(f"{project['license']} License\n")


def test_readme_is_read_in_one_go() -> None:
    """What is longer goes to a help page."""
    lines = README.splitlines()
    assert len(lines) <= 160
    assert any(line.startswith("codingagent new ") for line in lines[:40])  # the reader's own task


def test_the_picture_and_the_screens_show_the_session_of_today() -> None:
    """They are made by `python -m tests.derive_docs`, from a session on a terminal."""
    needs_bwrap()
    assert derive_docs.derived(PAGES["start"], derive_docs.SCREENS) == PAGES["start"]
    assert words(derive_docs.PICTURE.read_text("utf-8")) == words(picture())


def test_every_room_stands_in_the_layout() -> None:
    """A newcomer reads the house by this list."""
    layout = PAGES["contributing"].partition("## How the code is laid out")[2].partition("\n## ")[0]
    package = Path(codingagent.__file__).parent
    rooms = {path.name for path in package.iterdir() if path.suffix in ("", ".py")}
    missing = {room for room in rooms if room not in layout and not room.startswith("__")}
    # What the demonstration works on, and what is no code.
    assert missing <= {"demo", "docs", "LICENSE"}


def test_each_command_can_be_decoded() -> None:
    """A command that is only told of would be a fault when an answer uses it."""
    for command in COMMANDS:
        assert isinstance(reply.read(f"{command.example}\n").items[0], Step)


def test_the_two_command_lines_name_what_is_there() -> None:
    """README gives one line for the main job and one for all tests."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    words = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert ["python3", "tests/check.py"] in words
    assert (ROOT / "tests" / "check.py").is_file()
    [first] = [line for line in words if line[3:7] == ["python3", "-m", "venv", ".venv"]]
    assert first[0] == "echo"  # says what comes, and how long it takes
    assert first[-1] == "demo"
    assert "python3 tests/check.py" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="its programs are scripts of a shell")
def test_the_second_command_sees_nothing_that_was_set_up_by_hand(tmp_path: Path) -> None:
    """Each program but pip has a home folder of its own, which is empty, and no variable of the person's."""
    (tmp_path / "tests").mkdir()
    script = Path(shutil.copy(ROOT / "tests" / "check.py", tmp_path / "tests"))
    (tmp_path / "pyproject.toml").touch()
    programs = tmp_path / ".venv-test" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "ruff", "lint-imports", "pytest", "mypy"):
        told = f'{{ printf "%s\\n" "$*"; ls -A "$HOME"; env; }} >>{tmp_path}/{name}'
        (programs / name).write_text(f"#!/bin/sh\n{told}\n")
        (programs / name).chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = By Hand\n\temail = by@hand\n")
    names = ("GIT_AUTHOR_NAME", "XDG_CONFIG_HOME", "PYTHONPATH", "PYTEST_ADDOPTS", "PIP_INDEX_URL")
    own = {**dict.fromkeys(names, "by-hand"), "HOME": str(home), "PATH": os.environ["PATH"]}
    words = [sys.executable, "-E", str(script), "tests/model"]
    done = subprocess.run(words, env=own | {"CI": "1"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = {each: (tmp_path / each).read_text("utf-8") for each in ("ruff", "pytest", "mypy")}
    assert "tests/model\n" in said["pytest"]
    for each in said.values():
        assert not re.search(r"by.hand|\.gitconfig", each)
        assert f"HOME={home}\n" not in each
        assert "\nCI=1\n" in each
    pip = (tmp_path / "python").read_text("utf-8")
    assert "PIP_INDEX_URL=by-hand\n" in pip
    assert f"\nHOME={home}\n" in pip
    assert "PYTHONPATH" not in pip


def test_the_messages_in_the_docs_are_valid() -> None:
    """What a program is written after must be what is read and written."""
    blocks = re.findall(r"```json\n(.*?)```", PAGES["programs"], re.DOTALL)
    operations, events = map(json.loads, blocks)
    assert codingagent.validate_operations_message(operations).success
    assert codingagent.validate_events_message(events).success


def test_the_examples_of_settings_are_valid() -> None:
    """A file that is copied from the docs is obeyed."""
    settings, policy = re.findall(r"```toml\n(.*?)```", PAGES["settings"], re.DOTALL)
    assert resolve([Source("the docs", tomllib.loads(settings))]).settings.check
    assert rules.from_document(tomllib.loads(policy), "the docs").shell.allowed_commands
    named = set(re.findall(r"^\| `(\w+\.\w+)` \|", PAGES["settings"], re.MULTILINE))
    tables = {"filesystem": rules.FilesystemRules, "shell": rules.ShellRules, "network": rules.NetworkRules}
    assert named == {f"{table}.{name}" for table in tables for name in tables[table].__struct_fields__}


def test_every_operation_with_its_fields_stands_in_the_docs() -> None:
    """A program on another stack can be written from the docs alone."""
    page = PAGES["programs"]
    for each in get_args(Operation):
        type_ = each.model_fields["type"].default
        row = re.search(rf"^\| `{type_}` \|.*$", page, re.MULTILINE)
        assert row is not None, each
        for name in each.model_fields.keys() - {"type", "id"}:
            assert f"`{name}" in row[0], (each, name)
    for name in EVENTS:
        assert f"`{name}`" in page or name == "userMessage", name


def test_the_python_example_in_the_docs_works(tmp_path: Path) -> None:
    """Each example in the docs is run."""
    (tmp_path / "project" / "build").mkdir(parents=True)
    [example] = re.findall(r"```python\n(.*?)```", PAGES["programs"], re.DOTALL)
    with contextlib.chdir(tmp_path):
        exec(compile(example, "programs.md", "exec"), {})
    assert not (tmp_path / "project" / "build").exists()


def test_the_example_of_a_host_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the server beside it that the page tells of."""
    [example] = re.findall(r"```python\n(.*?)```", PAGES["hosts"], re.DOTALL)
    with served(tmp_path) as server:
        example = example.replace("agent.sock", str(server.socket_path))
        exec(compile(example, "hosts.md", "exec"), {})
    assert capsys.readouterr().out == "hello\n\n['hello.py']\n"
