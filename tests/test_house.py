"""The house of the design: imports run one way, and importing does nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

# File, an import that must not stand there, and the contract that forbids it.
VIOLATIONS = [
    ("core/paths.py", "import os", "the core has no files"),
    ("core/plain.py", "import time", "the core has no files"),
    ("core/edits.py", "from codingagent.world import disk", "faces -> compose"),
    ("agent.py", "from codingagent.world import disk", "faces -> compose"),
    ("world/workspace.py", "from codingagent.world import runner", "do not know one another"),
    ("world/mailbox.py", "import subprocess", "start processes"),
    ("agent.py", "import watchdog", "only watch"),
    ("faces/drop.py", "import rich", "only console"),
    ("faces/drop.py", "import typer", "only cli"),
    ("compose.py", "from codingagent.faces import drop", "faces -> compose"),
    ("compose.py", "from codingagent import rpc", "faces -> compose"),
    ("rpc.py", "from codingagent import agent", "a host's client"),
    ("core/jsonrpc.py", "import socket", "the core has no files"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the import contracts on the package in a folder."""
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(name="house")
def _house(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "codingagent", tmp_path / "codingagent", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(house: Path) -> None:
    """Design, the house: imports run one way, without circles."""
    done = lint(house)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("file", "line", "contract"), VIOLATIONS)
def test_a_violation_breaks_its_contract(house: Path, file: str, line: str, contract: str) -> None:
    """A contract that nothing can break would hold nothing."""
    path = house / "codingagent" / file
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = lint(house)
    assert done.returncode != 0
    assert any(contract in said and "BROKEN" in said for said in done.stdout.splitlines()), (
        done.stdout
    )


def modules() -> list[str]:
    """Gives the names of all modules of the package."""
    package = ROOT / "codingagent"
    files = sorted(path for path in package.rglob("*.py") if package / "demo" not in path.parents)
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
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
        [sys.executable, "-B", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_light_commands_import_nothing_heavy(tmp_path: Path) -> None:
    """Design, speed: import late. --version needs little, a new session no pydantic and no watchdog."""
    program = (
        "import sys\n"
        "from codingagent.faces import cli\n"
        "cli.run(['--version'])\n"
        "heavy = {'rich', 'pydantic', 'watchdog', 'asyncio', 'codingagent.agent'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert cli.run(['--home', sys.argv[1], 'new', '--no-wait', 'x']) == 0\n"
        "heavy = {'rich', 'pydantic', 'watchdog', 'asyncio', 'pathspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
