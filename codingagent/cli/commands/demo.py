"""Play the whole loop on a small real task, in a temporary home; only the answers are recorded."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import typer

from codingagent.agent import factory
from codingagent.cli import inbox_loop, output, plain_output
from codingagent.cli.commands import common, options
from codingagent.errors import WorkError
from codingagent.model import observations, settings
from codingagent.storage import homes
from codingagent.workspace import dirfd, programs

# Placeholder for the session's id in the recorded answers.
_RECORDED_SESSION = "00000000"


app = typer.Typer()


@app.command(epilog="Example: codingagent demo", name="demo")
def _demo(json: options.Json = False) -> None:
    """Watch a small real task being solved, with recorded answers."""
    with (
        output.screen_for(json) as screen,
        tempfile.TemporaryDirectory(prefix="ca-demo-", ignore_cleanup_errors=True) as folder,
        as_file(files("codingagent") / "demo") as recorded,
    ):
        home = homes.Home.at(Path(folder), create=True, is_passing=True)
        workspace = homes.workspace_of(home.root, settings.Settings())
        shutil.copytree(recorded / "workspace", workspace, dirs_exist_ok=True)
        if sys.platform != "linux":
            # `python` is else the Store's or Apple's, which runs nothing.
            programs.put_first(str(Path(sys.executable).parent))
        screen.is_passing = True
        said = "The answers are recorded; the edits, commands and tests are real."
        screen.remark(f"A demo in {folder}, which is deleted at the end. {said}")
        task = (recorded / "task.txt").read_text("utf-8").strip()
        screen.remark(f"Task: {task}")
        with home.lock.held():
            session = factory.start_session(home, workspace, task, settings.Settings())
            with common.opened(home, session, screen, settings=settings.Settings()) as shared:
                shared.go_on()
                replies = iter(sorted((recorded / "replies").glob("*.txt")))
                save = partial(_save_next, replies, home.mailbox.inbox, session.session_id, screen)
                inbox_loop.follow(shared, inbox_loop.Inbox(home.mailbox.look), save)
        for line in (
            "Now your own, in the folder of your project:",
            '  codingagent new --here "the task" --check "pytest -q"',
            '  codingagent ask --here "a question about the code"',
            "  codingagent commit",
        ):
            screen.remark(line)


def _save_next(
    replies: Iterator[Path], inbox: Path, session_id: str, screen: plain_output.Screen, _: float
) -> Mapping[str, observations.Hint]:
    """Save the next recorded answer in the inbox: the agent waits."""
    reply = next(replies, None)
    if reply is None:
        raise WorkError(
            "the last recorded answer was not accepted: its tests can't run on this machine (see above);"
            " `codingagent doctor` shows what is missing"
        )
    text = reply.read_text("utf-8").replace(_RECORDED_SESSION, session_id)
    if os.name == "nt":
        text = text.replace("python3 ", "python ")
    screen.remark(f"(saving the recorded answer {reply.stem} in the inbox)")
    # Written under another name and renamed, as browsers do with downloads.
    part = inbox / f"{reply.stem}.part"
    part.write_text(text, "utf-8")
    dirfd.retried(lambda: part.rename(inbox / reply.name))
    return {reply.name: observations.Hint.CLOSED}
