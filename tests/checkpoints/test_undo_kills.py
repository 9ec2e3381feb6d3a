"""Kills at any instant of an undo: what was begun is finished, and the workspace is as it was.

The plain run has one round for each way to run commands, the deep run all. A failure names its seed.
"""

import os
import random
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from codingagent.model.journal_entries import UndoBegan, UndoEnded
from codingagent.storage.journal import Sessions
from tests.helpers import live_session
from tests.killing import (
    TIERS,
    Tree,
    command_line_here,
    everything,
    has_lines,
    kill_when,
    lines_of,
    no_halves,
    settings_for,
    tree,
)

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="kills are for POSIX systems"),
    pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git"),
]

ROUNDS = 12

FILES = 60

with_and_without_a_sandbox = pytest.mark.parametrize("tier", TIERS)

# What operations can't do: permissions, links, and files of no turn's own, changed in great number.
CHANGER = f"""
for i in $(seq {FILES}); do
  case $((i % 6)) in
    0) rm many/$i.txt;;
    1) echo new >many/$i.txt;;
    2) chmod 600 many/$i.txt;;
    3) rm many/$i.txt; ln -s ../{{name}} many/$i.txt;;
    4) mkdir -p made/$i; printf 'made\\\\000' >made/$i/new; chmod 755 made/$i/new;;
    5) rm many/$i.txt; mkdir many/$i.txt; echo x >many/$i.txt/in;;
  esac
done
ln -sfn elsewhere link; rm -r folder; echo a file now >folder
""".strip()


def lay_out(workspace: Path) -> None:
    """Lays files of all kinds there."""
    for folder in ("many", "folder/deep"):
        (workspace / folder).mkdir(parents=True)
    for number in range(1, FILES + 1):
        path = workspace / "many" / f"{number}.txt"
        path.write_bytes(b"old %d\r\n\xff" % number)
        path.chmod((0o644, 0o755, 0o640)[number % 3])
    for name in ("edited.txt", "gone.txt", "folder/deep/below.txt"):
        (workspace / name).write_text("one\ntwo\nend\n", "utf-8")
    (workspace / "gone.txt").chmod(0o751)
    (workspace / "link").symlink_to("edited.txt")
    (workspace / "gone-link").symlink_to("nowhere")


def reply(name: str) -> str:
    changer = CHANGER.replace("{name}", name) if name == "first" else f"echo {name} >many/1.txt"
    return (
        f'[CREATE_FILE path="{name}/made.txt"]\n{name}\n[/CREATE_FILE]\n'
        '[EDIT_FILE path="edited.txt"]\n<<<<<<< SEARCH\nend\n=======\n'
        f"{name}\nend\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
        f"[RUN_COMMAND]\n{changer}\n[/RUN_COMMAND]\n"
        + '[DELETE_FILE path="gone.txt"]\n[DELETE_FILE path="gone-link"]\n'
        * (name == "first")
    )


def begun(sessions: Sessions, session_id: str) -> tuple[int, int]:
    """Return how many undos the record has the beginning of, and of how many the end."""
    records = list(sessions.records(session_id))
    return (
        sum(isinstance(record, UndoBegan) for record in records),
        sum(isinstance(record, UndoEnded) for record in records),
    )


def at_rest(home: Path, session_id: str, sequence: int) -> None:
    """Nothing is left half done, the sequence is as it was, and a resume finds nothing to do."""
    no_halves(home)
    names = [f"{session_id}_seq{number:04d}.txt" for number in range(1, sequence + 1)]
    assert sorted(path.name for path in (home / "outbox").glob("*.txt")) == names
    before = everything(home)
    assert command_line_here(home, "resume", "--once")[0] == 0
    assert everything(home) == before


@pytest.mark.one_in(12)
@with_and_without_a_sandbox
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_an_undo_that_is_killed_is_finished(tmp_path: Path, seed: int, tier: str) -> None:
    """Design, undo: restores byte for byte, modes and links included, and can itself be undone."""
    chance = random.Random(f"{seed} {tier}")
    home = tmp_path / "home"
    settings = replace(settings_for(tier), policy="permissive")
    with live_session(home, settings=settings) as live:
        workspace, session_id, sessions = live.workspace, live.session_id, live.home.sessions
        lay_out(workspace)
        stages = [tree(workspace)]
        for name in ("first", "second"):
            live.answer(reply(name))
            stages.append(tree(workspace))
        sequence = live.conversation.session.sequence
    turns = chance.choice([1, 2])
    before, after = stages[-1 - turns], stages[-1]
    steps = [(("undo", "--turns", str(turns)), after, before), (("undo", "--redo"), before, after)]
    journal = sessions.journal_path(session_id)
    for done, (arguments, old, new) in enumerate(steps):
        killed = kill_somewhere(home, arguments, journal, workspace, (old, new), chance)
        if begun(sessions, session_id) == (done, done):
            # Killed before it had begun: nothing was changed, and it can be asked for again.
            assert (killed, tree(workspace)) == (True, old)
            status, _, fault = command_line_here(home, *arguments)
            assert status == 0, fault
        else:
            status, _, fault = command_line_here(home, "resume", "--once")
            assert status == 0, fault
        assert begun(sessions, session_id) == (done + 1, done + 1)
        assert difference(tree(workspace), new) == {}
        at_rest(home, session_id, sequence)
    text = (home / "outbox" / f"{session_id}_seq{sequence:04d}.txt").read_text("utf-8")
    assert "the person" not in text.partition("## Previous")[2].partition("## ")[0]


def difference(first: Tree, second: Tree) -> dict[str, object]:
    """Return where two trees differ; a failure then shows no more than that."""
    names = first.keys() | second.keys()
    return {n: (first.get(n), second.get(n)) for n in names if first.get(n) != second.get(n)}


def kill_somewhere(
    home: Path,
    arguments: tuple[str, ...],
    journal: Path,
    workspace: Path,
    stages: tuple[Tree, Tree],
    chance: random.Random,
) -> bool:
    """Kills an undo at its beginning, in the midst of the files, or at its end."""
    old, new = stages
    lines = lines_of(journal)
    differing = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    share = chance.random()

    def has_come_so_far() -> bool:
        try:
            now = tree(workspace)
        except OSError:  # what is looked at goes away meanwhile
            return False
        return sum(now.get(path) == new.get(path) for path in differing) > share * len(differing)

    where = chance.choice(["begun", "files", "files", "files", "ended"])
    conditions = {
        "begun": has_lines(journal, lines + 1),
        "files": has_come_so_far,
        "ended": has_lines(journal, lines + 2),
    }
    linger_s = chance.choice([0, chance.uniform(0, 0.005), chance.uniform(0, 0.05)])
    return kill_when(home, arguments, conditions[where], linger_s)


def test_an_undo_after_a_killed_one_finishes_that_first(tmp_path: Path) -> None:
    """Design, undo: what was begun is finished by whatever command comes next."""
    home = tmp_path / "home"
    with live_session(home, settings=replace(settings_for("none"), policy="permissive")) as live:
        lay_out(live.workspace)
        before = tree(live.workspace)
        live.answer(reply("first"))
    journal = live.home.sessions.journal_path(live.session_id)
    assert kill_when(home, ("undo",), has_lines(journal, lines_of(journal) + 1))
    status, _, fault = command_line_here(home, "undo")
    assert difference(tree(live.workspace), before) == {}
    # It takes nothing more back: the person meant the one that was killed.
    assert (status, fault) == (0, "")
    assert begun(live.home.sessions, live.session_id) == (1, 1)
    command_line_here(home, "resume", "--once")
    at_rest(home, live.session_id, 2)
