"""What a session did since the last commit of its changes: how each file changed, and words for it."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from codingagent.checkpoints.history import NO_CHECKPOINT, HistoryStep, State, named, steps
from codingagent.checkpoints.store import Checkpoints
from codingagent.model import journal_entries as entries
from codingagent.model.events import Finished
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import without_unseen


class WorkDone(NamedTuple):
    """What a session did since its last commit, and a message that says it."""

    steps: tuple[HistoryStep, ...]
    message: str
    records: int
    """How many records of the journal it is made of."""
    since: str
    """The id of that commit; empty: none."""


def work_since_commit(
    records: Iterable[entries.Record], holds: Callable[[str], bool], hide: Callable[[str], str] = str
) -> WorkDone:
    """Return what a session did since its last commit that HEAD still `holds`; `hide` is for the message."""
    every = [*records]
    made = (each for each in every if isinstance(each, entries.CommitMade) and holds(each.commit))
    last = max(made, key=lambda each: each.records, default=None)
    count = last.records if last else 0
    found = steps(every)[len(steps(every[:count])) :]
    message = _message(every, count, found, lambda text: without_unseen(hide(text)))
    return WorkDone(found, message, len(every), last.commit if last else "")


_SUBJECT_CHARACTERS = 72
# git-interpret-trailers(1).
_TRAILER = lazy_pattern(r"(?m)^(?=[A-Za-z0-9-]+[ \t]*:)")
_SIGNATURE = lazy_pattern(r"(?m)^(?=[A-Za-z0-9]+-[A-Za-z0-9-]+[ \t]*:|\(cherry picked from )")
_BLANK = lazy_pattern(r"\n\s*\n")
_HEADING = lazy_pattern(r"(?:#+|[*>-]|\d+[.)])\s+")


def _message(
    every: Sequence[entries.Record], count: int, found: Sequence[HistoryStep], clean: Callable[[str], str]
) -> str:
    """Return a message for what came after so many records: the wish that was worked on, and each DONE."""
    undone = {step.sequence for step in found if step.undo and not step.undo.files}
    start = every[0]
    wishes = [start.task if isinstance(start, entries.SessionStarted) else ""]
    done: list[str] = []
    wish, kind = "", ""
    sequence, is_done, is_wish = 0, False, False
    for index, record in enumerate(every):
        match record:
            case entries.PersonSaid():
                # What is said before DONE belongs to the task.
                is_wish = record.wants == "edits" or (is_done and record.wants is None)
                if is_wish := is_wish and bool(record.text.strip()):
                    wishes.append(record.text)
                    is_done = False
            case entries.RefreshAsked(unsays=True) if is_wish:
                wishes.pop()
                is_wish, is_done = False, True
            case entries.CommitMade():
                is_done = True
            case entries.AnswerTaken():
                sequence = record.sequence
            case entries.OperationEnded(event=Finished(summary=text)):
                is_done = True
                done += [text] * (index >= count and sequence not in undone)
            case entries.TurnEnded() if record.changed and record.sequence not in undone:
                wish = wish or wishes[-1] * (index >= count)
            case entries.UndoEnded() if index >= count:
                kind = "Undo: "
            case entries.HookChanged() if index >= count:
                kind = kind or "Format: "
            case _:
                pass
    subjects = [clean(wish) or f"{kind}{clean(wishes[-1]).strip()}", *map(clean, done)]
    subject = next(filter(None, map(_subject, subjects)), "Changes of a session")
    parts = dict.fromkeys((subject, *(_unsigned(clean(text).strip()) for text in done)))
    return "\n\n".join(filter(None, parts)) + "\n"


def _subject(text: str) -> str:
    """Return the first line of a text, as much as a list of commits shows of it."""
    line = unicodedata.normalize("NFC", text).strip().partition("\n")[0]
    line = " ".join(_HEADING.sub("", line, 1).split())
    if len(line) <= _SUBJECT_CHARACTERS:
        return line
    end_at = _SUBJECT_CHARACTERS - 1
    # No mark is parted from what it is on.
    while unicodedata.category(line[end_at])[0] == "M" or "🏻" <= line[end_at] <= "🏿":
        end_at -= 1
    kept = line[:end_at] if line[end_at] == " " else line[:end_at].rpartition(" ")[0]
    # Not all scripts have blanks between words.
    kept = kept if len(kept) > _SUBJECT_CHARACTERS // 2 else line[:end_at]
    return f"{kept.rstrip(' ,;:')}…"


def _unsigned(text: str) -> str:
    """Indent what git would take for trailers: only the person signs, and names who else did."""
    paragraphs = _BLANK.split(text)
    for index, paragraph in enumerate(paragraphs):
        lines = paragraph.split("\n")
        is_block = all(_TRAILER.match(line) or line[:1].isspace() for line in lines)
        paragraphs[index] = (_TRAILER if is_block else _SIGNATURE).sub("    ", paragraph)
    return "\n\n".join(paragraphs)


def chains_of(
    checkpoints: Checkpoints, found: Sequence[HistoryStep]
) -> tuple[dict[str, list[tuple[State | None, State | None]]], list[str]]:
    """Return how each file changed, step after step, and in words which changes are unknown."""
    chains: dict[str, list[tuple[State | None, State | None]]] = {}
    unknown: dict[str, None] = {}
    for step in found:
        for change in step.its(checkpoints.changes(step.before, step.after)) if step.after else ():
            if change.kind == "left_out":
                unknown[change.path] = None
            else:
                chains.setdefault(change.path, []).append((change.old, change.new))
        unknown |= dict.fromkeys(step.uncovered)
    left = [f"{named([*unknown])}: {NO_CHECKPOINT}"] if unknown else []
    more = dict.fromkeys(line for step in found for line in step.left_out if "(ignored" not in line)
    left += [f"{len(more)} not looked into: {named([*more])}"] if more else []
    return {path: chain for path, chain in chains.items() if path not in unknown}, left
