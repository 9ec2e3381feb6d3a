"""Who is asked, and what counts as an answer: a form that a client declined by itself is no person's no."""

import asyncio
import re
from pathlib import Path

import pytest
from mcp_types import ElicitResult

from tests.helpers import run_here
from tests.mcp.clients import ERAS, Tools, server_at, talk


def said(answer: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"answer": answer})


DECLINED, CLOSED = ElicitResult(action="decline"), ElicitResult(action="cancel")

# What the client answers, and what the model is told; "always" answers all later ones, too.
ANSWERS = [
    (said("yes"), "^Ran 'rm -r d' .*exit code 0"),
    (said("no"), "^FAILED DENIED 'rm -r d': the user said no"),
    (DECLINED, "^FAILED Nothing was done.\nNot answered: .*codingagent approve"),
    (CLOSED, "^FAILED Nothing was done.\nNot answered"),
    (said("rm"), "^FAILED Nothing was done.\nNot answered"),
    (said("always"), "^Ran 'rm -r d' .*exit code 0"),
]


async def remove(tools: Tools, folder: Path, wanted: str, free: str = "a") -> None:
    """Call what asks, and see what is told and done; what was not answered holds up nothing else."""
    (folder / "d").mkdir(exist_ok=True)
    told = await tools("run_command", command="rm -r d")
    assert re.search(wanted, told, re.DOTALL), told
    assert (folder / "d").exists() is ("FAILED" in told)
    if "Not answered" in told:
        assert "Created" in await tools("write_file", path=free, content="")
        log = run_here("log", folder=folder).stdout
        assert "nobody said no: nobody answered, and the client has gone on" in log


@pytest.mark.parametrize("era", ERAS)
def test_what_an_answer_means(tmp_path: Path, era: str) -> None:
    async def work(tools: Tools) -> None:
        for at, (_, wanted) in enumerate(ANSWERS):
            await remove(tools, tmp_path, wanted, f"{at}")

    asked = talk(server_at(tmp_path, "--wait", "0.1"), work, era, [given for given, _ in ANSWERS])
    assert len(asked) == len(ANSWERS)
    for text in asked:
        assert text.startswith("Run this?\nrm -r d\nWhy: ")
        assert '"always" covers: `rm -r`' in text


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_can_not_be_asked(tmp_path: Path, era: str) -> None:
    async def work(tools: Tools) -> None:
        await remove(tools, tmp_path, "^FAILED Nothing was done.\nNot answered")

    talk(server_at(tmp_path, "--wait", "0.1"), work, era)


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_waits_is_answered_in_a_terminal(tmp_path: Path, era: str) -> None:
    """The command that the model's client is told of works while the call waits, which then goes on."""

    async def work(tools: Tools) -> None:
        for word, wanted in (("approve", "exit code 0"), ("deny", "DENIED")):
            (tmp_path / "d").mkdir()
            call = asyncio.create_task(tools("run_command", command="rm -r d"))
            await tools.heard("waits for approval")
            done = await asyncio.to_thread(run_here, word, folder=tmp_path)
            assert not done.returncode, done.stderr
            assert wanted in await call
            assert "Created" in await tools("write_file", path=word, content="")
            assert (tmp_path / "d").exists() is (word == "deny")

    talk(server_at(tmp_path, "--wait", "600"), work, era, [DECLINED])


def test_a_call_made_again_waits_for_its_own_question(tmp_path: Path) -> None:
    """It is not done a second time, and a yes that came in between counts."""
    (tmp_path / "d").mkdir()

    async def work(tools: Tools) -> None:
        assert "Not answered" in await tools("run_command", command="rm -r d; echo x >>n")
        assert "Not answered" in await tools("run_command", command="rm -r d; echo x >>n")
        assert not run_here("approve", folder=tmp_path).returncode
        assert (tmp_path / "n").read_text() == "x\n"
        assert "exit code 0" in await tools("run_command", command="echo y >>n")

    talk(server_at(tmp_path, "--wait", "0"), work)
    assert (tmp_path / "n").read_text() == "x\ny\n"


def test_what_a_command_changed_of_protected_files_is_asked(tmp_path: Path) -> None:
    """It was done already: a no puts the files back."""
    program = "import os; os.mkdir('.vscode'); open('.vscode/tasks.json', 'w')"

    async def work(tools: Tools) -> None:
        told = await tools("run_command", command=f'python3 -c "{program}"')
        assert not (tmp_path / ".vscode" / "tasks.json").exists(), told

    asked = talk(server_at(tmp_path), work, ERAS[1], [said("no")])
    assert any(text.startswith("Keep these changes?") for text in asked), asked
