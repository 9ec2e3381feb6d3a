"""What the output of a failed command says of the sandbox: failures.txt has the words of real tools."""

import os
from pathlib import Path

import pytest

from codingagent.process import diagnosis
from codingagent.process.bubblewrap import Bubblewrap
from tests import golden
from tests.helpers import cpu_below
from tests.rows import each_row

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sandboxes that need this are POSIX")


HERE = Path("/workspace")
SANDBOX = Bubblewrap("bwrap", HERE, (), HERE / "tmp", Path("/home/alice"))


def told(output: str, variables: dict[str, str] | None = None) -> list[str]:
    return list(diagnosis.causes(SANDBOX, "check", output, variables or {}, {}))


def causes(case: tuple[str, str]) -> str:
    return " | ".join(told(case[1])) or "(nothing)"


TABLES = {"failures.txt": causes}


@each_row(("case", "expected"), golden.cases(__file__, "failures.txt"))
def test_signs_of_the_sandbox_are_read(case: tuple[str, str], expected: str) -> None:
    assert causes(case) == expected


LONG = {
    "package.json": '"dependencies"' + " " * 60_000,
    "Cargo.toml": "[dependencies]\n" + "a" * 60_000,
    "pubspec.yaml": "dependencies:" + "\n" * 60_000,
    "mix.exs": "{:" * 30_000,
    "composer.json": '"' + "a-" * 30_000,
    "pyproject.toml": "[tool.poetry]\n" + "[dependencies" * 5_000,
}


@pytest.mark.parametrize("file", LONG)
def test_no_project_file_takes_long_to_look_through(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(LONG[file], "ascii")
    with cpu_below(1):
        assert [name for name, _ in diagnosis.lacking(SANDBOX, tmp_path, "")] == [file]


@pytest.mark.parametrize("text", ["x" * 20_000, "a." * 10_000, "not found " * 2_000, "lookup x" * 2_500])
def test_no_output_takes_long_to_look_through(text: str) -> None:
    told("compiled")
    with cpu_below(3):
        told(text)
