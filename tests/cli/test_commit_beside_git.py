"""`commit` beside the person's git: whatever both did, HEAD, index and disk agree on the session's files."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
from hypothesis import strategies as st

from tests.cli.test_commit import Repository, _person, pytestmark  # noqa: F401
from tests.helpers import fewer_examples, run_here

# What is done to a file that is there, and one that is not; the shell takes {n} as a number that is new.
SESSION = (
    "mv {there} {new}",
    "mv {there} {new} && sed -i '1i session {n}' {new}",
    "sed -i '1i session {n}' {there}",
    "rm {there}",
    "seq -f 'session {n} %g' 9 >{new}",
)
PERSON = (
    "git mv {tracked} {new}",
    "git mv {tracked} a",
    "git add -A",
    "git add {there}",
    "git add -N .",
    "git rm -q --cached {tracked}",
    "git restore --staged {tracked}",
    "git restore {tracked}",
    "git checkout -q HEAD -- b",
    "git stash -q",
    "git stash pop -q || git reset -q --hard",
    "git commit -qm mine",
    "sed -i '$a person {n}' {there}",
    "mv {there} {new}",
    "rm {there}",
    "seq -f 'person {n} %g' 9 >{new}",
)
STEPS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(SESSION), st.sampled_from(PERSON), st.just("commit"), st.just("undo")),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=5,
)


class Beside(Repository):
    """A repository of three files in which a session and a person work in turn.

    Each line of a file says who wrote it: what became of it can be looked for.
    """

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        for name in ("cart.py", "gone.txt"):
            (top / name).unlink()
        for name in ("a", "b", "d/e"):
            self.write(name, "".join(f"{name} line {number}\n" for number in range(14)))
        self.first()
        self.begin()
        self.touched: set[str] = set()

    def do(self, step: str, which: int, number: int) -> None:
        there, tracked = sorted(self.disk), sorted(self.tree("ls-files", "-s"))
        name = {"n": number, "new": f"n{number}"}
        for kind, names in (("there", there), ("tracked", tracked)):
            name[kind] = names[which % len(names)] if names else "none"
        before, command = self.disk, step.format(**name)
        if step in PERSON:
            subprocess.run(command, shell=True, cwd=self.top, capture_output=True, check=False)
            return
        if step in SESSION:
            self.turn(f"[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n", "--yes")
        else:
            run_here(step, *["--no-edit"] * (step == "commit"), folder=self.root)
        now = self.disk
        self.touched |= {path for path in {*before, *now} if before.get(path) != now.get(path)}

    @property
    def disk(self) -> dict[str, str]:
        found = (Path(folder, each) for folder, _, files in os.walk(self.top) for each in files)
        own = (each for each in found if not {".git", ".codingagent"} & {*each.parts})
        return {str(each.relative_to(self.top)): each.read_text("utf-8") for each in own}

    def tree(self, *listing: str) -> dict[str, str]:
        listed = (line.partition("\t") for line in self.git(*listing).splitlines())
        blobs = {path: next(word for word in about.split() if len(word) == 40) for about, _, path in listed}
        return {path: self.git("cat-file", "blob", blob) for path, blob in blobs.items()}

    @property
    def state(self) -> tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str]]:
        """HEAD, the index and the disk."""
        return self.tree("ls-tree", "-r", "HEAD"), self.tree("ls-files", "-s"), self.disk


def lines(texts: Mapping[str, str], whose: str = "") -> set[str]:
    every = (line for text in texts.values() for line in text.splitlines())
    return {line for line in every if line.startswith(whose)}


def own(tree: Mapping[str, str], path: str) -> set[str]:
    return lines({path: tree.get(path, "")}, "session")


def check_commit(found: Beside, *options: str) -> bool:
    """Commit; return whether it was done. It is as the disk; nothing of the person's is in it, or lost."""
    head, index, disk = found.state
    status = found.status
    done = run_here("commit", "--no-edit", "--json", *options, folder=found.root)
    new_head, new_index, new_disk = found.state
    assert new_disk == disk
    if done.returncode:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert (new_head, found.status) == (head, status)
        return False
    left = " ".join(json.loads(done.stdout.splitlines()[-1])["left"])
    committed = {path for path in {*head, *new_head} if head.get(path) != new_head.get(path)}
    assert not lines(head) & lines(disk) - lines(new_head)
    assert lines(index, "person") <= lines(new_index)
    if not options:
        assert not lines(new_head, "person") - lines(head)
        assert committed <= found.touched
    for path in {*index, *new_index} - committed - found.touched:
        assert index.get(path) == new_index.get(path), path
    for path in committed:
        assert (path in new_head) == (path in disk) == (path in new_index), path
        assert own(new_head, path) == own(disk, path), path
        assert own(new_head, path) <= own(new_index, path), path
        assert not options or new_head.get(path) == disk.get(path), path
    for path in disk.keys() & found.touched:
        assert own(disk, path) <= own(new_head, path) or path in left, path
    return True


@hypothesis.given(STEPS)
@fewer_examples(3)
def test_head_index_and_disk_agree_whatever_both_did(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        found = Beside(Path(folder) / "r")
        for number, (step, which) in enumerate(steps):
            found.do(step, which, number)
        if not check_commit(found):
            check_commit(found, "--whole")
