"""Play the whole loop on a small real task, in a temporary home. Only the answers are recorded.

Everything else is real: the files, the loop, the commands. Each answer is recorded as a chat gave it,
except for the session's id, which is new each time.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from codingagent.agent import context, factory
from codingagent.cli import inbox_loop
from codingagent.model.file_settled import Hint
from codingagent.model.settings import Settings
from codingagent.model.ui_events import Notice, Remark
from codingagent.storage import homes

# Placeholder for the session's id in the recorded answers.
_RECORDED_SESSION = "00000000"


def play(show: Callable[[Notice], None]) -> None:
    """Play the recorded session; save the answers in the inbox as a person would."""
    with (
        tempfile.TemporaryDirectory(prefix="codingagent-demo-") as folder,
        as_file(files("codingagent") / "demo") as recorded,
    ):
        home = homes.Home.at(Path(folder), create=True, is_passing=True)
        workspace = homes.workspace_of(home.root, Settings())
        shutil.copytree(recorded / "workspace", workspace, dirs_exist_ok=True)
        show(Remark("this is a demo: the answers are recorded, everything else is real"))
        show(Remark(f"it works in {folder}, which is deleted at the end"))
        task = (recorded / "task.txt").read_text("utf-8").strip()
        show(Remark(f"the task: {task}"))
        with home.locked():
            session = factory.start_session(home, workspace, task, Settings())
            watcher = context.Person(show)
            with factory.conversation_in(home, session, Settings(), watcher) as conversation:
                conversation.recover()
                person = _RecordedPerson(
                    recorded / "replies", home.mailbox.inbox, session.session_id, show
                )
                inbox_loop.follow(conversation, inbox_loop.Inbox(home.mailbox.look), person)
    show(
        Remark(
            'now try your own task, in the folder of your project: codingagent new --here "the task"'
        )
    )


class _RecordedPerson:
    """Save the next recorded answer in the inbox whenever the agent waits."""

    def __init__(
        self, replies: Path, inbox: Path, session_id: str, show: Callable[[Notice], None]
    ) -> None:
        self._replies = iter(sorted(replies.glob("*.txt")))
        self._inbox = inbox
        self._session_id = session_id
        self._show = show

    def wait(self, timeout_s: float) -> Mapping[str, Hint]:
        del timeout_s  # nothing to wait for
        reply = next(self._replies, None)
        assert reply is not None, "the recorded answers end with DONE"
        text = reply.read_text("utf-8").replace(_RECORDED_SESSION, self._session_id)
        if os.name == "nt":
            text = text.replace("python3 ", "python ")
        self._show(Remark(f"(saving the recorded answer {reply.stem} in the inbox)"))
        # Written under another name and renamed, as browsers do with downloads.
        part = self._inbox / f"{reply.stem}.part"
        part.write_text(text, "utf-8")
        part.rename(self._inbox / reply.name)
        return {reply.name: Hint.CLOSED}
