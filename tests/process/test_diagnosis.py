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


def told(output: str, variables: dict[str, str] | None = None) -> list[str]:
    here = Path("/workspace")
    sandbox = Bubblewrap("bwrap", here, (), here / "tmp", Path("/home/alice"))
    return list(diagnosis.causes(sandbox, "check", output, variables or {}, {}))


def causes(case: tuple[str, str]) -> str:
    return " | ".join(told(case[1])) or "(nothing)"


TABLES = {"failures.txt": causes}


@each_row(("case", "expected"), golden.cases(__file__, "failures.txt"))
def test_signs_of_the_sandbox_are_read(case: tuple[str, str], expected: str) -> None:
    assert causes(case) == expected


@pytest.mark.parametrize("text", ["x" * 20_000, "a." * 10_000, "not found " * 2_000, "lookup x" * 2_500])
def test_no_output_takes_long_to_look_through(text: str) -> None:
    told("compiled")
    with cpu_below(3):
        told(text)
