"""The record in words: what a person reads who asks what was tried."""

from codingagent.cli.record_words import line_of
from codingagent.model.journal_entries import PersonSaid, Record, RefreshAsked, SessionStarted
from tests.rows import each_row

AT = "2026-01-01T00:00:00Z"
TERMS = (
    "workspace /w, policy strict, sandbox require, with network, answers in json, check `pytest -q`"
)
STARTED = SessionStarted("a1b2c3d4", "Mend it", "/w", AT)
CHECKED = SessionStarted(
    "a1b2c3d4", "Mend it", "/w", AT, "strict", "require", True, "json", "pytest -q"
)


@each_row(
    ("record", "line"),
    [
        (PersonSaid("be brief", (), AT), "the person said: be brief"),
        (RefreshAsked(AT), "refresh requested"),
        (RefreshAsked(AT, unsays=True), "the last words were withdrawn"),
        (RefreshAsked(AT, leave_out=("a.py", "b/**")), "left out of the choice: a.py, b/**"),
        (PersonSaid("see", ("a", "b"), AT), "the person said: see; attached: a, b"),
        (PersonSaid("", ("a", "b"), AT), "the person attached a, b"),
        (STARTED, "session started (workspace /w): Mend it"),
        (CHECKED, f"session started ({TERMS}): Mend it"),
    ],
)
def test_each_record_has_its_line(record: Record, line: str) -> None:
    assert line_of(record) == line
