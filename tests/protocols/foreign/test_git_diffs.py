"""Whatever `git diff` writes of two trees makes the second of the first, or is refused file by file."""

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.foreign.doing import do

PATHS = ("a.txt", "src/a.txt", "src/b c.txt", "src/new.txt", "b/x.md", "é.txt")
LINES = st.lists(st.sampled_from(["x = 1", "", "    return x", "}", "y", "z", "-- w", "++ v"]), max_size=12)
TEXTS = st.builds(
    lambda lines, is_ended: "\n".join(lines) + "\n" * (is_ended and bool(lines)), LINES, st.booleans()
)
TREES = st.dictionaries(st.sampled_from(PATHS), TEXTS, max_size=4)
WORDS = (
    "-U0 -U1 -U2 -U5 --minimal -M -M30% -B --no-prefix --src-prefix=x/ --dst-prefix=y/w/ --full-index"
    " --patience -W -D --patch-with-stat -R --mnemonic"
)
OPTIONS = st.lists(st.sampled_from(WORDS.split()), max_size=3, unique=True)


def _git(folder: Path, *words: str) -> bytes:
    variables = os.environ | {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(("git", *words), cwd=folder, env=variables, check=True, capture_output=True).stdout


def _tree(repository: Path, files: dict[str, str]) -> str:
    for path in PATHS:
        target = repository / path
        target.unlink(missing_ok=True)
        if path in files:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(files[path].encode())
    _git(repository, "add", "-A")
    return _git(repository, "write-tree").decode().strip()


def _moved(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    gone, made = before.keys() - after.keys(), after.keys() - before.keys()
    return [(old, new) for old in gone for new in made]


@given(TREES, TREES, OPTIONS, st.booleans(), st.booleans())
def test_a_diff_of_git_makes_the_second_tree_or_is_refused(
    before: dict[str, str], after: dict[str, str], options: list[str], is_kept: bool, is_fenced: bool
) -> None:
    if is_kept and before:  # a file moves, with a change at its end
        path = min(before)
        after = {name: text for name, text in after.items() if name != path}
        after["src/new.txt"] = before[path] + "one more\n"
    with tempfile.TemporaryDirectory() as name:
        repository, workspace = Path(name) / "r", Path(name) / "w"
        repository.mkdir()
        workspace.mkdir()
        _git(repository, "init", "-q")
        config = ("-c", "diff.mnemonicPrefix=true") if "--mnemonic" in options else ()
        words = [each for each in options if each != "--mnemonic"]
        trees = _tree(repository, before), _tree(repository, after)
        told = _git(repository, *config, "diff", *words, *trees).decode()
        if "-R" in options:
            before, after = after, before
        answer = f"```diff\n{told}```\n" if is_fenced else f"Here it is:\n\n{told}\n"
        done = do(answer, before, workspace)
        (again := Path(name) / "again").mkdir()
        twice = do(answer, after, again)
    wanted = {path: text.encode() for path, text in after.items()}
    if "rename" not in told:
        assert twice.files == wanted, (told, twice.events)
    was = {path: text.encode() for path, text in before.items()}
    if not done.failures:
        assert done.files == wanted, (told, done.events)
    for path in {*was, *wanted, *done.files}:
        assert done.files.get(path) in (was.get(path), wanted.get(path)), (told, path, done.failures)
    for old, new in _moved(before, after) if "rename from" in told else ():
        if f"rename from {old}\nrename to {new}\n" in told:
            assert (old in done.files) is not (new in done.files), (told, done.failures)
