"""Files that other programs hold for a moment (Windows): each place that renames or reads tries again."""

import os
from pathlib import Path

import pytest

from codingagent.workspace import dirfd
from tests import warm

# The first tries of a rename, a removal or an opening fail as Windows has them fail.
_HELD = """
import sys
left = {names}
events = {{"os.rename", "os.remove"}}
def hook(event, arguments):
    if event in events and any(n in str(arguments[0]) for n in list(left)):
        name = next(n for n in left if n in str(arguments[0]))
        left[name] -= 1
        if left[name] == 0:
            del left[name]
        fault = PermissionError(13, "Access is denied")
        fault.winerror = {code}
        raise fault
sys.addaudithook(hook)
"""


def held(names: dict[str, int], program: str, *words: str, code: int = 32) -> str:
    """Run a program in which files with these names are held so often; return what it printed."""
    line = _HELD.format(names=names, code=code) + program
    done = warm.run(line, *words, capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}"


PLACES = {
    "atomic_write": """
from pathlib import Path
from codingagent.storage import atomic_write
atomic_write.write_whole(Path(sys.argv[1]) / "held", "x")
""",
    "journal": """
from pathlib import Path
from codingagent.storage.journal import Sessions
left["journal.jsonl"] = 1
events.add("open")
Sessions(Path(sys.argv[1])).open("a1b2c3d4").close()
""",
    "delete": """
from pathlib import Path
from codingagent.cli.commands.housekeeping import _remove
(Path(sys.argv[1]) / "held").touch()
_remove(Path(sys.argv[1]) / "held")
""",
    "lock": """
from pathlib import Path
from codingagent.storage.lock import HomeLock
left[".lock"] = 1
events.add("open")
with HomeLock(Path(sys.argv[1]) / ".lock").held():
    pass
""",
    "index": """
from pathlib import Path
from codingagent.workspace.git_files import Git, _Directory
root = Path(sys.argv[1])
(root / "index").touch()
left["index"] = 1
_Directory(Git("git", print), root, root, "").make(None)
""",
    "demo": """
from pathlib import Path
from types import SimpleNamespace
from codingagent.cli.commands.begin import _save_next
reply = Path(sys.argv[1]) / "a.txt"
reply.touch()
left[".part"] = 1
(inbox := reply.with_name("inbox")).mkdir()
_save_next(iter([reply]), inbox, "a1b2c3d4", SimpleNamespace(remark=print), 0)
""",
    "session file": """
from pathlib import Path
from codingagent.storage.journal import Runs, Sessions
folder = Path(sys.argv[1])
(folder / "a1b2c3d4.json").write_text('{"sessionId": "a1b2c3d4"}')
Runs(folder).keep_message("held", b"x")
left |= {"a1b2c3d4.json": 1, "held": 1}
events.add("open")
assert Sessions(folder).set_damaged_document_aside("a1b2c3d4") is None
Runs(folder).message("held")
""",
    "workspace": """
from pathlib import Path
from codingagent.workspace.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
workspace.write("held", b"x", None)
workspace.delete("held")
""",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("code", [5, 32, 33])
@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_is_held_for_a_moment_is_waited_for(tmp_path: Path, place: str, code: int) -> None:
    names = {"held": 1, ".ca-": 1}
    said = held(names, f"{PLACES[place]}\nprint(left)", str(tmp_path), code=code)
    assert "Error" not in said, said


@pytest.mark.parametrize("fault", [FileNotFoundError, *[PermissionError] * (os.name != "nt")])
def test_another_fault_is_raised_at_once(fault: type[OSError]) -> None:
    calls: list[int] = []

    def refuse() -> None:
        calls.append(1)
        raise fault(13, "Permission denied")

    with pytest.raises(fault):
        dirfd.retried(refuse)
    assert len(calls) == 1
