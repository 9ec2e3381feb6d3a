"""How often a mangled edit is still read right: ours, and aider's on the same edits in its own format.

`python -m tests.benchmarks.peers` prints the table; it needs aider-chat (0.86) beside this package.
"""

import importlib
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from codingagent.model.operations import EditFile, Replacement
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests import reply_table
from tests.manglings import MANGLINGS
from tests.reply_table import Came, Case

# What happens to tags alone does not happen to a format without tags.
_OURS_ALONE = ("tags", "names", "openings", "bodies", "fences", "the request", "thoughts", "blocks")


def main() -> int:
    """Prints cases, right, asked again, wrong and silent of both; gives 1 without aider."""
    try:
        aider = importlib.import_module("aider.coders.editblock_coder")
    except ImportError:
        sys.stderr.write("aider-chat is not installed here\n")
        return 1
    names = [name for name in MANGLINGS if not name.startswith(_OURS_ALONE)]
    cases = [case for case in reply_table.cases() if not case.problem and _edits(case)]
    ours, theirs = Counter[Came](), Counter[Came]()
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            clean = reply_table.execute(case.reply, case.before, _new(folder, number))
            for index, name in enumerate(names):
                text = MANGLINGS[name](case.reply)
                done = reply_table.execute(text, case.before, _new(folder, number, index))
                ours[reply_table.judge(clean, case.before, done)] += 1
                theirs[_by_aider(aider, case, MANGLINGS[name](_as_aider(case)))] += 1
    sys.stdout.write(f"{len(cases)} edits, {len(names)} manglings of each\n")
    sys.stdout.write(f"{'':8}" + " ".join(f"{came.value:>12}" for came in Came) + "\n")
    for who, counts in (("ours", ours), ("aider", theirs)):
        total = counts.total()
        cells = " ".join(f"{counts[c]:>5} ({counts[c] / total:4.0%})" for c in Came)
        sys.stdout.write(f"{who:8}{cells}\n")
    return 0


def _edits(case: Case) -> list[EditFile]:
    """Return the edits of a case that holds nothing else that changes files; none if it holds more."""
    operations = [item.operation for item in reply.read(case.reply).items if isinstance(item, Step)]
    edits = [each for each in operations if isinstance(each, EditFile)]
    is_plain = all(isinstance(edit.change, tuple) for edit in edits)
    changed = {path for path in case.after if case.after[path] != case.before.get(path)}
    return edits if is_plain and changed == {edit.path for edit in edits} else []


def _as_aider(case: Case) -> str:
    blocks = [
        f"{edit.path}\n```\n<<<<<<< SEARCH\n{each.search}\n=======\n{each.replace}\n>>>>>>> REPLACE\n```\n"
        for edit in _edits(case)
        for each in edit.parts
        if isinstance(each, Replacement)
    ]
    return "Here are the edits.\n\n" + "\n".join(blocks).replace("\n\n=======", "\n=======").replace(
        "\n\n>>>>>>>", "\n>>>>>>>"
    )


def _by_aider(aider: Any, case: Case, text: str) -> Came:
    """Reads and applies a text as aider does, and judges it as ours is judged."""
    files = {path: data.decode("utf-8", "replace") for path, data in case.before.items()}
    expected = {path: data.decode("utf-8", "replace") for path, data in case.after.items()}
    before = dict(files)
    asked = False
    try:
        edits = list(aider.find_original_update_blocks(text, valid_fnames=list(files)))
        for path, old, new in edits:
            if path not in files:
                asked = True
                continue
            changed = aider.do_replace(path, files[path], old, new, ("```", "```"))
            asked = asked or changed is None
            files[path] = files[path] if changed is None else changed
    except ValueError:
        asked = True
    if any(files[path] not in (expected.get(path), before[path]) and not asked for path in files):
        return Came.WRONG
    if files == expected and not asked:
        return Came.RIGHT
    return Came.ASKED if asked else Came.SILENT


def _new(folder: str, *numbers: int) -> Path:
    root = Path(folder, "-".join(map(str, numbers)))
    root.mkdir()
    return root


if __name__ == "__main__":
    sys.exit(main())
