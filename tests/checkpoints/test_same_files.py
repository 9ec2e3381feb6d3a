"""The request and the checkpoints never disagree about which files belong to the workspace."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.checkpoints.history import is_of_git
from codingagent.checkpoints.repository import real
from codingagent.checkpoints.store import Checkpoints
from codingagent.process.runner import run_tool
from codingagent.workspace.dirfd import Folder
from codingagent.workspace.git_files import Git
from tests.helpers import calls_of, fewer_examples
from tests.workspace.test_listing_like_git import GIT, Tree

pytestmark = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")

_NAMES = st.sampled_from(["a", "b", "in", "out", "a.o", "é.o", "#a", "x ", "[", "new\nline", "-", "A"])
_PATHS = st.lists(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)
_LINES = ["*.o", "/a", "out/", "!a.o", "b/**", "in/*", "!/in/b", "**/x\\ ", "[[]", "é*", "*\n!*/", "-"]
_RULES = st.lists(st.sampled_from(_LINES), max_size=4).map("\n".join)
_PLACES = ("top", "nested", "below", "none")


@pytest.fixture(name="tree", scope="module")
def _tree() -> Iterator[Tree]:
    with tempfile.TemporaryDirectory() as name:
        yield Tree(Path(os.path.realpath(name)))


def covered(tree: Tree, store: Path, root: Path, checkpoints: Checkpoints) -> set[str]:
    taken = checkpoints.take().id
    words = ("--git-dir", os.fspath(store), "ls-tree", "-r", "-z", "--name-only", taken, "files/")
    found = os.fsdecode(tree.git(*words, at=root)).split("\0")
    # What makes git run something is held, too, and asked about; no request lists it.
    names = {path.removeprefix("files/") for path in found if path}
    return {path for path in names if not is_of_git(real(path))}


def lay(root: Path, paths: list[str]) -> None:
    for path in paths:
        if not any((root / above).is_file() for above in Path(path).parents):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if not (root / path).exists():
                (root / path).write_text("x")


@fewer_examples(2)
@given(
    place=st.sampled_from(_PLACES),
    paths=_PATHS,
    later=_PATHS,
    rules=st.tuples(_RULES, _RULES, _RULES, _RULES),
    tracked=st.lists(st.integers(0, 7), max_size=3),
)
def test_the_request_and_the_checkpoint_name_the_same_files(
    tree: Tree,
    place: str,
    paths: list[str],
    later: list[str],
    rules: tuple[str, str, str, str],
    tracked: list[int],
) -> None:
    """At the first checkpoint the same; later, a file that was covered stays so if a rule names it now."""
    shutil.rmtree(tree.root)
    root = tree.root / "pkg" / "in" if place == "below" else tree.root
    root.mkdir(parents=True)
    assert GIT is not None
    for repository in {"top": [root], "nested": [root, root / "in"], "below": [tree.root]}.get(place, []):
        repository.mkdir(exist_ok=True)
        tree.git("init", "-q", at=repository)
        (repository / ".git" / "info" / "exclude").write_text(rules[0])
    lay(root, paths)
    top = tree.root / "pkg" if place == "below" else root
    for folder, text in ((top, rules[1]), (root, rules[2]), (root / "in", rules[3])):
        if folder.is_dir():
            (folder / ".gitignore").write_text(text)
    (tree.home / ".config" / "git").mkdir(parents=True, exist_ok=True)
    (tree.home / ".config" / "git" / "ignore").write_text("A\n")
    for number in tracked:
        if place in ("top", "below") and number < len(paths) and (root / paths[number]).is_file():
            tree.git("--literal-pathspecs", "add", "-f", "--", paths[number], at=root)
    git = Git(GIT, run_tool, tree.variables)
    with tempfile.TemporaryDirectory() as store:
        checkpoints = Checkpoints(Path(store) / "s", root, (), git)
        try:
            first = covered(tree, Path(store) / "s", root, checkpoints)
            assert set(tree.ours(root)) == first
            lay(root, later)
            (root / ".gitignore").write_text(rules[3])
            second = covered(tree, Path(store) / "s", root, checkpoints)
            listed = set(tree.ours(root))
            assert listed <= second
            assert second - listed <= first
        finally:
            checkpoints.close()


def test_a_deep_tree_costs_what_its_depth_does(tmp_path: Path) -> None:
    """A file in each of 200 nested folders: each is opened a few times, not once for every one below."""
    assert GIT is not None
    root = tmp_path / "root"
    deep = root
    for _ in range(200):
        deep /= "d"
    deep.mkdir(parents=True)
    for folder in (deep, *list(deep.parents)[:199]):
        (folder / "f").write_text("x")
    checkpoints = Checkpoints(tmp_path / "s", root.resolve(), (), Git(GIT, run_tool))
    try:
        assert calls_of(Folder.open, checkpoints.take) < 5 * 200
    finally:
        checkpoints.close()
