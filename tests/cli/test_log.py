"""Records in words: what a person reads on every screen, and in `log`."""

from codingagent.cli.layout import PIPE, plain_lines
from codingagent.cli.record_words import lines_of, outputs
from codingagent.model.events import CommandRan, Denied, Event, FileRequested, Finished, MessageShown, Refused
from codingagent.model.journal_entries import (
    AnswerSetAside,
    AnswerTaken,
    OperationEnded,
    PersonSaid,
    Record,
    RefreshAsked,
    RequestWritten,
    SessionStarted,
)
from codingagent.model.operations import Kind
from codingagent.model.session_fold import fold
from tests.rows import each_row

AT = "2026-01-01T00:00:00Z"
TERMS = "policy strict, sandbox require, with network, answers in json, check `pytest -q`"
STARTED = SessionStarted("a1b2c3d4", "Mend it", "/w", AT)
CHECKED = SessionStarted("a1b2c3d4", "Mend it", "/w", AT, "strict", "require", True, "json", "pytest -q")


def told(record: Record) -> list[str]:
    return [plain_lines([line])[:-1] for line, _ in lines_of(record, fold(None, STARTED), None, PIPE)]


@each_row(
    ("record", "lines"),
    [
        (PersonSaid("be brief", (), AT), ["you said: be brief"]),
        (RefreshAsked(AT), ["refresh requested"]),
        (RefreshAsked(AT, unsays=True), ["the last words were withdrawn"]),
        (RefreshAsked(AT, leave_out=("a.py", "b/**")), ["left out of the choice: a.py, b/**"]),
        (PersonSaid("s\nt", ("a", "b"), AT), ["you said: s", "  t", "  attached: a, b"]),
        (PersonSaid("", ("a", "b"), AT), ["you attached a, b"]),
        (STARTED, ["session started: Mend it", "  workspace /w"]),
        (CHECKED, [f"session started ({TERMS}): Mend it", "  workspace /w"]),
        (AnswerTaken(1, "a.txt", "", AT, operations=2), ["answer 1: 2 operations, kept as a.txt"]),
        # As in journals from before this was recorded.
        (AnswerTaken(1, "a.txt", "", AT), ["answer 1: kept as a.txt"]),
        (AnswerSetAside("x.txt", "it is old", AT), ["x.txt rejected: it is old (moved to inbox/rejected/)"]),
        (RequestWritten(1, AT), ["Request 1"]),
    ],
)
def test_each_record_has_its_lines(record: Record, lines: list[str]) -> None:
    assert told(record) == lines


@each_row(
    ("event", "lines"),
    [
        (FileRequested("a", ("a",)), ["  ok     Read 'a'"]),
        (
            CommandRan("x", -15, "", 30.0, "time_limit", "30 s"),
            ["  FAILED x  ended at its time limit of 30 s, 30 s"],
        ),
        (
            Refused(Kind.EDIT_FILE, "'a': not found", advice="; send the edit again"),
            ["  FAILED EDIT_FILE: 'a': not found"],
        ),
        (
            Refused(Kind.DONE, "Not accepted, because this failed: 'a; b'", advice="; fix that"),
            ["  FAILED DONE not accepted, because this failed: 'a; b'"],
        ),
        (
            Refused(Kind.DONE, "[/DONE] is in doubt: two of them", advice="; send it again"),
            ["  FAILED DONE not accepted: [/DONE] is in doubt: two of them"],
        ),
        (
            Refused(Kind.DONE, "Not accepted: the user's check fails: Ran 'a; b' (exit code 1)"),
            ["  FAILED DONE not accepted: your check fails; the next request tells the model"],
        ),
        (
            Denied(Kind.RUN_COMMAND, "x", (), "the user said no: why"),
            ["  FAILED RUN_COMMAND: DENIED 'x': you said no: why"],
        ),
        (MessageShown("so\nbe it"), ["the model says: so", "  be it"]),
        (Finished("all"), []),
    ],
)
def test_the_person_is_told_what_came_of_an_operation(event: Event, lines: list[str]) -> None:
    """And nothing that only the model can use."""
    assert told(OperationEnded(0, event, AT)) == lines


def test_what_the_commands_of_a_turn_printed_is_shown_whole() -> None:
    def ended(command: str, output: str) -> Record:
        return OperationEnded(0, CommandRan(command, 0, output, 0.1), AT)

    lines = "\n".join(map(str, range(99)))
    taken = [AnswerTaken(number, "a.txt", "", AT) for number in (1, 2, 3)]
    records = [taken[0], ended("a", lines), ended("b\x1b", ""), taken[1], ended("c", "x\n"), taken[2]]
    assert outputs(records, None) == "$ c\nx"
    assert outputs(records, 1) == f"$ a\n{lines}\n$ b\\x1b\n(it printed nothing)"
    assert outputs(records, 3) == "turn 3 ran no command"
