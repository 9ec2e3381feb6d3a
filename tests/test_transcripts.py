"""Whole sessions with replies as models sent them, having seen nothing but the requests.

A folder is a case: `task.txt`, `workspace/` as it was, `replies/N.txt` as they came but for the
session's id, and `after.patch` with what is then different or new.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from codingagent.model.session_state import Phase
from codingagent.model.settings import Settings
from codingagent.storage import homes
from tests.helpers import live_session

TRANSCRIPTS = Path(__file__).with_name("transcripts")
CASES = sorted(path for path in TRANSCRIPTS.iterdir() if path.is_dir())

RECORDED_SESSION = "00000000"


def source_files(folder: Path) -> dict[str, bytes]:
    """Return a folder's files; what Python and pytest leave there for themselves is passed over."""
    found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in found.items()
        if not any(part.startswith(".") or part == "__pycache__" for part in name.parts)
    }


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_recorded_session_gives_the_same_files_again(case: Path, tmp_path: Path) -> None:
    """Each reply is a turn, and the workspace ends as it did when the session was recorded."""
    home = homes.Home.at(tmp_path / "home", create=True)
    workspace = homes.workspace_of(home.root, Settings())
    shutil.copytree(case / "workspace", workspace, dirs_exist_ok=True)
    after = shutil.copytree(case / "workspace", tmp_path / "after")
    apply = ["git", "apply", "--whitespace=nowarn"]
    subprocess.run([*apply, case / "after.patch"], cwd=after, check=True)
    expected = source_files(after)
    replies = sorted((case / "replies").glob("*.txt"), key=lambda path: int(path.stem))
    with live_session(home.root, (case / "task.txt").read_text("utf-8")) as live:
        for reply in replies:
            if live.conversation.session.is_complete:
                # As the person did it: the model said DONE too early.
                live.conversation.requests.reopen()
                live.conversation.recover()
            assert live.conversation.session.phase is Phase.AWAITING_ANSWER
            live.drop(reply.read_text("utf-8").replace(RECORDED_SESSION, live.session_id))
            live.conversation.take("reply.txt")
        assert live.conversation.session.is_complete
        assert live.rejected() == []
    assert source_files(workspace) == expected
