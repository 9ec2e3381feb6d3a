"""Commits of any repository as edits with our tags, damaged as chats do: how many come out right.

`python -m tests.benchmarks.edits PATH... [--count 550]` takes each file that a commit changes as one answer
with SEARCH and REPLACE, and as one with line numbers, bare and with a line around each change.
"""

import argparse
import difflib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests import damage_table, reply_table
from tests.benchmarks import commits
from tests.damage_table import Answer

_KINDS = ("right", "as it came", "asked again", "partly asked", "wrong", "silent")
_ROWS = {row.name: row.damage for row in damage_table.ROWS}


@dataclass(frozen=True, slots=True)
class Damage:
    """What a chat does to an answer; `lost` makes a new line what nobody can know to be more."""

    name: str
    change: Callable[[list[damage_table.Part]], str]
    lost: Callable[[str, str], str] = lambda line, _: line


def _stripped(parts: list[damage_table.Part]) -> str:
    return "".join(f"{line.rstrip()}\n" for _, line in parts)


def _without_tabs(parts: list[damage_table.Part]) -> str:
    return "".join(line.replace("\t", "    ") + "\n" for _, line in parts)


DAMAGES = (
    Damage("as it is", _ROWS["as it is"]),
    Damage("trailing blanks stripped", _stripped, lambda line, _: line.rstrip()),
    Damage("tabs as blanks", _without_tabs, commits.as_tabs_are_lost),
    *(
        Damage(name, _ROWS[name])
        for name in (
            "entities",
            "entities in bodies",
            "no-break indentation",
            "no-break indentation in bodies",
            "no indentation in bodies",
            "indentation of one blank",
            "runs of blanks as one",
            "blank lines doubled",
            "a blank line after each",
        )
    ),
)


def answers(paths: list[Path], count: int) -> Iterator[tuple[Answer, str]]:
    """Yield answers, and the text that each makes."""
    for number, path in enumerate(paths):
        share = count * (number + 1) // len(paths) - count * number // len(paths)
        changes = (
            (name, commit.before[name].decode(), new.decode())
            for commit in commits.commits(path, share)
            for name, new in commit.changed.items()
            if name in commit.before and new is not None
        )
        fitting = (each for each in changes if all(map(_fits, each[1:])))
        for name, old, new in islice(fitting, share):
            for answer in damage_table.edits(name, old, new):
                yield answer, new


def _fits(text: str) -> bool:
    """Tell whether lines alone say what a text is."""
    return text.endswith("\n") and not re.search(r"[\r\f\v\x1c-\x1e\x85\u2028\u2029]", text)


def judge(answer: Answer, new: str, damage: Damage, done: reply_table.Done) -> str:
    """Return what came of an answer."""
    (name,) = answer.before
    old, now = answer.before[name].decode(), done.files[name].decode()
    is_asked = bool(done.problems) or done.is_request
    if now == new:
        return "right"
    if now == old:
        return "asked again" if is_asked else "silent"
    if now == _lost(old, new, damage):
        return "as it came"
    return "partly asked" if is_asked and _is_part(old, now, new) else "wrong"


def _lost(old: str, new: str, damage: Damage) -> str:
    return "".join(
        "".join(f"{damage.lost(line, old)}\n" if kind != "equal" else f"{line}\n" for line in lines)
        for kind, lines in _opcodes(old, new)
    )


def _opcodes(old: str, new: str) -> Iterator[tuple[str, list[str]]]:
    before, after = old.split("\n")[:-1], new.split("\n")[:-1]
    for kind, _, _, at, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield kind, after[at:end]


def _is_part(old: str, now: str, new: str) -> bool:
    """Tell whether every line is of one of two texts, as where some of several edits are done."""
    known = {*old.split("\n"), *new.split("\n")}
    return all(line in known for line in now.split("\n"))


def main() -> int:
    """Print the table, and each answer that came out wrong or silent; with -v what is asked for, too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=550)
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    counts: dict[tuple[str, str], Counter[str]] = {}
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (answer, new) in enumerate(answers(given.paths, given.count)):
            for damage in DAMAGES:
                text = damage.change(list(answer.parts))
                if text == answer.text and damage is not DAMAGES[0]:
                    continue
                root = Path(folder, f"{number} {damage.name}")
                root.mkdir()
                done = reply_table.execute(text, answer.before, root)
                came = judge(answer, new, damage, done)
                counts.setdefault((answer.style, damage.name), Counter())[came] += 1
                if came in ("wrong", "silent") or (given.v and "asked" in came):
                    reasons = "; ".join(problem.reason[:200] for problem in done.problems)
                    told.append(f"{came}: {number} {answer.file} {answer.style}, {damage.name}: {reasons}\n")
    sys.stdout.write(f"| edits | damage | answers | {' | '.join(_KINDS)} |\n")
    sys.stdout.write("|" + "---|" * (len(_KINDS) + 3) + "\n")
    for (style, name), count in sorted(counts.items()):
        cells = " | ".join(str(count[kind]) for kind in _KINDS)
        sys.stdout.write(f"| {style} | {name} | {count.total()} | {cells} |\n")
    sys.stdout.write("".join(told))
    return int(any(count["wrong"] or count["silent"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
