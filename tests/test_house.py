"""The house of the design: imports run one way, and importing does nothing."""

import ast
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

# File, an import that must not stand there, and the contract that forbids it.
VIOLATIONS = [
    ("model/paths.py", "import os", "pure rooms"),
    ("model/plain_text.py", "import time", "pure rooms"),
    ("rpc/protocol.py", "import socket", "pure rooms"),
    ("context/rank.py", "import time", "pure rooms"),
    ("context/choose.py", "from codingagent.workspace import walk", "what is below"),
    ("editing/apply.py", "from codingagent.storage import atomic_write", "what is below"),
    ("policy/rules.py", "from codingagent.prompt import tokens", "what is below"),
    ("workspace/walk.py", "from codingagent.protocols.tags import reply", "what is below"),
    ("storage/lock.py", "from codingagent.process import runner", "what is below"),
    ("storage/homes.py", "from codingagent.agent import executor", "what is below"),
    ("agent/factory.py", "from codingagent.cli import inbox_loop", "what is below"),
    ("agent/factory.py", "from codingagent.rpc import client", "what is below"),
    ("cli/stdio.py", "from codingagent.cli import output", "no circles"),
    ("process/runner.py", "from codingagent.process import bubblewrap", "does not know its siblings"),
    ("storage/mailbox.py", "import subprocess", "start processes"),
    ("agent/executor.py", "import watchdog", "only watch"),
    ("cli/inbox_loop.py", "import rich", "only the terminal"),
    ("cli/inbox_loop.py", "import typer", "only main"),
    ("rpc/client.py", "from codingagent.agent import executor", "a host's client"),
]


def test_each_violation_breaks_its_contract(tmp_path: Path) -> None:
    """A contract that nothing can break would hold nothing. That they hold is part of the command."""
    shutil.copytree(
        ROOT / "codingagent", tmp_path / "codingagent", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, line, _ in VIOLATIONS:
        with (tmp_path / "codingagent" / file).open("a", encoding="utf-8") as open_file:
            open_file.write(f"\n{line}\n")
    done = subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    # Each broken contract has a section of its own: its name, underlined, and what breaks it.
    broken = done.stdout.partition("Broken contracts")[2]
    names = [*re.finditer(r"^(.+)\n-{3,}$", broken, re.MULTILINE)]
    ends = [name.start() for name in names[1:]] + [len(broken)]
    sections = {name[1]: broken[name.end() : end] for name, end in zip(names, ends, strict=True)}
    for file, line, contract in VIOLATIONS:
        [said] = [text for name, text in sections.items() if contract in name]
        module = f"codingagent.{file.removesuffix('.py').replace('/', '.')}"
        imported = line.removeprefix("from ").removeprefix("import ").replace(" import ", ".")
        short = f"- .{module.rpartition('.')[2]} -> .{imported.rpartition('.')[2]} ("  # of a circle
        assert f"{module} -> {imported} (l." in said or short in said, said


def modules() -> list[str]:
    """Return the names of all modules of the package."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources()]
    return [name.removesuffix(".__init__") for name in names]


def test_importing_does_nothing(tmp_path: Path) -> None:
    """Design, the house: importing a module does nothing but define names."""
    program = "import importlib\n" + "".join(f"importlib.import_module({m!r})\n" for m in modules())
    program += (
        "import threading, signal\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_light_commands_import_nothing_heavy(tmp_path: Path) -> None:
    """Design, speed: import late. --version needs little, no session needs pydantic or a help page."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "to_choose.py").write_text("x = 1\n")
    program = (
        "import sys\n"
        "from codingagent.cli import main as cli\n"
        "cli.run(['--version'])\n"
        "heavy = {'rich', 'pydantic', 'watchdog', 'asyncio', 'codingagent.agent'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "heavy = {'rich', 'pydantic', 'watchdog', 'asyncio', 'importlib.resources', 'tomllib'}\n"
        "acting = {f'codingagent.agent.{name}' for name in ('executor', 'batch', 'conversation')}\n"
        "acting |= {f'codingagent.{name}' for name in ('protocols.tags.decoder', 'checkpoints.store')}\n"
        "assert cli.run(['--home', sys.argv[1], 'new', '--no-wait', 'x']) == 0\n"
        "assert not (heavy | acting) & set(sys.modules)\n"
        "for words in (['list'], ['show'], ['resume', '--once']):\n"
        "    assert cli.run(['--home', sys.argv[1], *words]) == 0\n"
        "    assert not heavy & set(sys.modules), words\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_values_are_structs() -> None:
    """Design, speed: two hundred dataclasses cost a quarter of a start, structs next to nothing."""
    using = [
        path
        for path in sorted((ROOT / "codingagent").glob("**/*.py"))
        if re.search(r"^@dataclass\b", path.read_text("utf-8"), re.MULTILINE) and "demo" not in path.parts
    ]
    assert using == []


# What would make a test fail because a machine is slow, or busy: a clock, or settings of its own.
_LIMITS = re.compile(
    r"(?:monotonic|perf_counter|time)\(\) - \w+ <|(?:duration_s|Ms\"\]) <"
    r"|(?:max_examples|deadline)="
    r"|\btimeout=\d+,$|(?:process|thread)\.(?:wait|join)\((?:timeout=)?\d+\)"
)


def test_no_test_has_a_limit_in_seconds() -> None:
    """What must be bounded is counted, or CPU beside a loop; HANG_S is how long one waits for a hang."""
    files = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not {"transcripts", "replies", "benchmarks"} & set(path.parts)
    ]
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if path.name not in ("conftest.py", "helpers.py", "test_house.py") and _LIMITS.search(line)
    ]
    assert found == []


def sources() -> list[Path]:
    package = ROOT / "codingagent"
    return [path for path in sorted(package.rglob("*.py")) if package / "demo" not in path.parents]


def test_the_page_for_contributors_names_what_is_there() -> None:
    """Who looks for a module where the page says finds it: each `room/name` is a module or a folder."""
    page = (ROOT / "codingagent" / "docs" / "contributing.md").read_text("utf-8")
    rooms = {path.name for path in (ROOT / "codingagent").iterdir() if path.is_dir()}
    named = [name for name in re.findall(r"`([a-z_/]+)`", page) if name.partition("/")[0] in rooms]
    assert len(named) > 20
    found = [ROOT / "codingagent" / name for name in named]
    assert [str(path) for path in found if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


def test_a_long_module_says_why() -> None:
    """Beyond 500 lines a reader is told, in the docstring, why it is one module."""
    found = {path: path.read_text("utf-8") for path in sources()}
    long = {path.name for path, text in found.items() if text.count("\n") > 500}
    told = {path.name for path, text in found.items() if "\n\nOver 500 lines: " in text}
    assert long == told


def test_a_command_function_is_short() -> None:
    """A command reads as its steps: at most 40 lines, its options and docstring included."""
    functions = [
        (node.end_lineno - node.lineno + 1, path.name, node.name)
        for path in sources()
        if path.parent.name == "commands"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    ]
    assert len(functions) > 50
    assert [each for each in functions if each[0] > 40] == []


def test_no_class_name_stands_for_two_things() -> None:
    """A name that one searches for leads to one class."""
    places: dict[str, set[Path]] = defaultdict(set)  # a module may make one of two, for each system
    for path in sources():
        for name in re.findall(r"^ *class (\w+)", path.read_text("utf-8"), re.MULTILINE):
            places[name].add(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
