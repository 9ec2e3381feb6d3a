"""What a session did since the last commit of its changes: how each file changed, and words for it."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from codingagent.checkpoints.history import NO_CHECKPOINT, Change, HistoryStep, State, named, steps
from codingagent.model import journal_entries as entries
from codingagent.model.events import Finished, MessageShown

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints


class WorkDone(NamedTuple):
    """What a session did since its last commit, and a message that says it."""

    steps: tuple[HistoryStep, ...]
    message: str
    records: int
    """How many records of the journal it is made of."""


def work_since_commit(
    records: Iterable[entries.Record], holds: "Callable[[str], bool]"
) -> WorkDone:
    """Return what a session did since the last commit of its changes that HEAD still `holds`."""
    every = [*records]
    last = max(
        (
            record.records
            for record in every
            if isinstance(record, entries.CommitMade) and holds(record.commit)
        ),
        default=0,
    )
    found = steps(every)[len(steps(every[:last])) :]
    return WorkDone(found, _message(every[last:], every[0]), len(every))


_SUBJECT_CHARACTERS = 72


def _message(records: Sequence[entries.Record], start: entries.Record) -> str:
    """Return a message: what each DONE says, the last first, else the task; then what was said of changes."""
    told: list[str] = []
    said: list[str] = []
    done: list[str] = []
    for record in records:
        match record:
            case entries.AnswerTaken():
                said = []
            case entries.OperationEnded(event=MessageShown(text=text)):
                # A question says nothing of what was changed.
                said += [text.strip()] * (not text.rstrip().endswith("?"))
            case entries.OperationEnded(event=Finished(summary=text)):
                done.append(text.strip())
            case entries.TurnEnded() if record.changed:
                told += said
            case _:
                pass
    task = start.task.strip() if isinstance(start, entries.SessionStarted) else ""
    summary, *earlier = done[::-1] or [""]
    subject, _, rest = summary.partition("\n")
    if not summary:
        was_undone = not any(isinstance(record, entries.TurnEnded) for record in records)
        subject = f"{'Undo: ' * was_undone}{task.partition(chr(10))[0]}"
    if len(subject) > _SUBJECT_CHARACTERS:  # a list of commits shows one line of each
        start_of = subject[: _SUBJECT_CHARACTERS - 1].rpartition(" ")[0]
        subject, rest = f"{start_of or subject[: _SUBJECT_CHARACTERS - 1]}…", f"{subject}\n{rest}"
    parts = dict.fromkeys((subject.strip(), rest.strip(), *earlier, *told))
    return "\n\n".join(filter(None, parts)) + "\n"


def chains_of(
    checkpoints: "Checkpoints", found: Sequence[HistoryStep]
) -> tuple[dict[str, list[tuple[State | None, State | None]]], list[str]]:
    """Return how each file changed, step after step, and in words which changes are unknown."""
    chains: dict[str, list[tuple[State | None, State | None]]] = {}
    unknown: dict[str, None] = {}
    for step in found:
        changes: Iterable[Change] = (
            checkpoints.changes(step.before, step.after) if step.after else ()
        )
        for change in changes:
            if change.kind == "left_out":
                unknown[change.path] = None
            else:
                chains.setdefault(change.path, []).append((change.old, change.new))
        unknown |= dict.fromkeys(step.uncovered)
    left = [f"{named([*unknown])}: {NO_CHECKPOINT}"] if unknown else []
    more = dict.fromkeys(line for step in found for line in step.left_out if "(ignored" not in line)
    left += [f"{len(more)} not looked into: {named([*more])}"] if more else []
    return {path: chain for path, chain in chains.items() if path not in unknown}, left
