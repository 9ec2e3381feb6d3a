"""What the person reads of a refusal is the fact; what to send instead is for the model."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.cli.layout import PIPE, plain_lines
from codingagent.cli.record_words import lines_of
from codingagent.model.events import Event, Refused
from codingagent.model.journal_entries import OperationEnded, Record, SessionStarted, TurnEnded
from codingagent.model.plain_text import parted
from codingagent.model.session_fold import fold
from tests import damage_table, reply_table
from tests.protocols.foreign.doing import do, files_in

_FOR_THE_MODEL = re.compile(
    r"(?:^|[;:.,] |\b(?:and|then|or) )(?:send|write|go on from|give|leave out|add|begin|name|use|look|copy"
    r"|correct|read (?:it|the)|make all|replace the|put it|READ_FILE it|DELETE_FILE before)\b|until="
    r"|\bTOKEN\b|next time|code block",
    re.IGNORECASE,
)


def _done(tmp_path: Path) -> Iterator[tuple[tuple[Event, ...], tuple[str, ...]]]:
    """Yield the events and the notes of all answers."""
    for case in reply_table.cases():
        done = reply_table.execute(case.reply, case.before, _new(tmp_path, case.name))
        yield done.events, done.notes
    for path in sorted(reply_table.REPLIES.glob("formats/*/reply.txt")):
        before = files_in(path.parent / "before")
        name = f"format {path.parent.name}"
        foreign = do(path.read_bytes().decode(), before, _new(tmp_path, name))
        yield foreign.events, foreign.notes
    for row in reply_table.run_all(one_in=96):
        yield row.done.events, row.done.notes
    for cell in damage_table.run(damage_table.ROWS[6::24], damage_table.answers()):
        yield cell.done.events, cell.done.notes


def _new(folder: Path, name: str) -> Path:
    root = folder / name
    root.mkdir()
    return root


@pytest.mark.long
def test_the_person_reads_nothing_that_is_for_the_model(tmp_path: Path) -> None:
    """Issue of words: an order to "send this block again" is none to the person."""
    done = list(_done(tmp_path))
    refused = {event for events, _ in done for event in events if isinstance(event, Refused)}
    assert len(refused) > 100
    assert len({event.kind for event in refused}) > 5
    records: list[Record] = [OperationEnded(0, event, "") for event in refused]
    for events, notes in done:
        said = (*notes, *(note for event in events for note in event.notes))
        records.append(TurnEnded(1, said, "", facts=parted(said)[1]))
    session = fold(None, SessionStarted("a1b2c3d4", "x", "/w", ""))
    told = {plain_lines([line])[:-1] for each in records for line, _ in lines_of(each, session, None, PIPE)}
    ours = {line.replace("; the next request asks the model to fix it", "") for line in told}
    assert sorted(filter(_FOR_THE_MODEL.search, ours)) == []
