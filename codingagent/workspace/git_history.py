"""Read the recent commits of the repository around a folder: messages, and the files they changed.

git reads the objects alone. Its directory is an empty one of ours, so no configuration, hook, attribute or
remote of the repository takes effect.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codingagent.errors import WorkError
from codingagent.model.observations import PastCommit
from codingagent.model.patterns import lazy_pattern
from codingagent.workspace.git_files import Git
from codingagent.workspace.git_repository import Repository, repository_of

_COMMIT = lazy_pattern(r"[0-9a-f]{40}")
# git reads a thousand commits of a large repository in a fraction of this time.
_PATIENCE_S = 3.0

_START, _END = "\x01", "\x02"
# As `git init` would write it, and nothing else.
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


def recent(root: Path, git: Git, limit: int = 1_000) -> list[PastCommit]:
    """Return the latest commits, the newest first; none without a repository that git can read."""
    with repository_of(root) as found:
        if found is None:
            return []
        repository, names = found
        top = root.parents[len(names) - 1] if names else root
        return _read(top, repository, names, git, limit)


def _read(
    top: Path, repository: Repository, inner: Sequence[str], git: Git, limit: int
) -> list[PastCommit]:
    head = repository.head()
    if not _COMMIT.fullmatch(head):
        return []
    common = top / repository.common
    options = ("--no-merges", "--no-renames", "--name-only", "-z", "--no-show-signature")
    words = ("log", f"-{limit}", *options, "--format=%x01%ct %B%x02", head, "--")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        Path(own, "refs").mkdir()
        Path(own, "config").write_text(_CONFIG, "ascii")
        Path(own, "HEAD").write_text(f"{head}\n", "ascii")
        variables = {
            "GIT_DIR": own,
            "GIT_OBJECT_DIRECTORY": os.fspath(common / "objects"),
            "GIT_SHALLOW_FILE": os.fspath(common / "shallow"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "LC_ALL": "C",
            # Where Windows has the parts of programs.
            "SYSTEMROOT": git.variables.get("SYSTEMROOT", ""),
        }
        try:
            # Whatever in the repository is a pipe, git waits for it: seconds, then without history.
            run: Any = git.run
            done = run([git.program, *words], variables, b"", timeout_s=_PATIENCE_S)
        except WorkError:
            return []
    # What was told before git failed holds: a partial clone lacks trees.
    return [
        *_commits(done.stdout.decode("utf-8", "surrogateescape"), "".join(f"{n}/" for n in inner))
    ]


def _commits(told: str, before: str) -> list[PastCommit]:
    found = []
    for part in told.split(_START)[1:]:
        message, _, rest = part.partition(_END)
        at_s, _, message = message.partition(" ")
        paths = (path.strip("\n") for path in rest.split("\0"))
        inner = (path.removeprefix(before) for path in paths if path and path.startswith(before))
        found.append(PastCommit(message.strip(), tuple(inner), int(at_s)))
    return found
