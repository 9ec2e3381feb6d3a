"""Play the whole loop on a small real task, in a temporary home. Only the answers are recorded.

Everything else is real: the files, the loop, the commands. The answers are a chat's, with a new session id.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path

import typer
from msgspec import Struct

from codingagent.agent import factory
from codingagent.cli import inbox_loop
from codingagent.cli.commands.common import opened
from codingagent.cli.commands.options import Json
from codingagent.cli.output import screen_for
from codingagent.cli.plain_output import Screen
from codingagent.errors import WorkError
from codingagent.model.observations import Hint
from codingagent.model.settings import Settings
from codingagent.storage import homes
from codingagent.workspace import programs
from codingagent.workspace.sharing import retried

# Placeholder for the session's id in the recorded answers.
_RECORDED_SESSION = "00000000"


app = typer.Typer()


@app.command(epilog="Example: codingagent demo", name="demo")
def _demo(json: Json = False) -> None:
    """Watch a small real task being solved, with recorded answers."""
    with (
        screen_for(json) as screen,
        tempfile.TemporaryDirectory(prefix="ca-demo-", ignore_cleanup_errors=True) as folder,
        as_file(files("codingagent") / "demo") as recorded,
    ):
        home = homes.Home.at(Path(folder), create=True, is_passing=True)
        workspace = homes.workspace_of(home.root, Settings())
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
            session = factory.start_session(home, workspace, task, Settings())
            with opened(home, session, screen, settings=Settings()) as shared:
                shared.go_on()
                replies = iter(sorted((recorded / "replies").glob("*.txt")))
                person = _RecordedPerson(replies, home.mailbox.inbox, session.session_id, screen)
                inbox_loop.follow(shared, inbox_loop.Inbox(home.mailbox.look), person.wait)
        for line in (
            "Now your own, in the folder of your project:",
            '  codingagent new --here "the task" --check "pytest -q"',
            '  codingagent ask --here "a question about the code"',
            "  codingagent commit",
        ):
            screen.remark(line)


class _RecordedPerson(Struct, frozen=True):
    """Save the next recorded answer in the inbox whenever the agent waits."""

    replies: Iterator[Path]
    inbox: Path
    session_id: str
    screen: Screen

    def wait(self, timeout_s: float) -> Mapping[str, Hint]:
        del timeout_s  # nothing to wait for
        reply = next(self.replies, None)
        if reply is None:
            raise WorkError(
                "the last recorded answer was not accepted: its tests can't run on this machine (see above);"
                " `codingagent doctor` shows what is missing"
            )
        text = reply.read_text("utf-8").replace(_RECORDED_SESSION, self.session_id)
        if os.name == "nt":
            text = text.replace("python3 ", "python ")
        self.screen.remark(f"(saving the recorded answer {reply.stem} in the inbox)")
        # Written under another name and renamed, as browsers do with downloads.
        part = self.inbox / f"{reply.stem}.part"
        part.write_text(text, "utf-8")
        retried(lambda: part.rename(self.inbox / reply.name))
        return {reply.name: Hint.CLOSED}
