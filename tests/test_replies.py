"""Replies as chats give them, executed for real: Design, replies as chats really give them."""

from pathlib import Path

import pytest

from codingagent.model.events import Refused
from tests import reply_table
from tests.manglings import MANGLINGS, UNSEEN
from tests.reply_table import Came, Case
from tests.rows import each_row

CASES = reply_table.cases()
RIGHT_AT_LEAST = 0.9


@each_row("case", CASES, [case.name for case in CASES])
def test_a_reply_as_it_was_written_does_what_it_says(case: Case, tmp_path: Path) -> None:
    """The workspace is then as the case has it; or nothing was done and the problem says why."""
    root = tmp_path / case.name
    root.mkdir()
    done = reply_table.execute(case.reply, case.before, root)
    if case.problem:
        # What was right beside it was done.
        assert done.files == (case.after or case.before)
        assert any(case.problem in f"{p.reason}\n{p.detail}" for p in done.problems), done.events
    else:
        assert done.files == case.after
        assert not done.problems


@pytest.mark.long
def test_no_mangling_makes_a_reply_do_anything_else(request: pytest.FixtureRequest) -> None:
    """The right bytes, or nothing and a problem that names the block: never wrong, never silent."""
    one_in = 1 if request.config.getoption("--deep") else 12
    rows = reply_table.run_all(one_in=one_in)
    bad = [f"{row.case} / {row.mangling}" for row in rows if row.came in (Came.WRONG, Came.SILENT)]
    assert not bad
    seen = [row for row in rows if row.mangling not in UNSEEN]
    right = sum(row.came is Came.RIGHT for row in seen)
    assert right / len(seen) >= RIGHT_AT_LEAST, reply_table.table(rows)
    changed = {row.mangling for row in rows}
    assert one_in > 1 or changed == set(MANGLINGS), "each mangling changes some reply"


def test_what_was_undone_is_named() -> None:
    """Design: each repair is named in the result."""
    said = {"none", "in a fence", "in a fence with a language", "in a fence of tildes", "in prose"}
    said |= {"under a Copy code label", "blocks in fences of their own", "no last line end", "CRLF"}
    said |= {"byte-order mark", "tags indented", "tags with trailing blanks"}
    rows = reply_table.run_all([name for name in MANGLINGS if name not in said], "several_kinds")
    silent = [
        row.mangling
        for row in rows
        if row.came is Came.RIGHT and not row.done.notes and not any(e.notes for e in row.done.events)
    ]
    assert not silent


def test_a_second_time_nothing_is_left_to_undo(request: pytest.FixtureRequest) -> None:
    """Repairing is idempotent: what was read in the end is read again as it is."""
    one_in = 1 if request.config.getoption("--deep") else 24
    pairs = [(case, name) for case in CASES for name in MANGLINGS]
    for case, name in pairs[::one_in]:
        once = reply_table.read_text(MANGLINGS[name](case.reply))
        assert reply_table.read_text(once) == once, f"{case.name} / {name}"


def test_the_oracle_sees_wrong_bytes_and_silence(tmp_path: Path) -> None:
    """A check that could not fail would say nothing."""
    case = next(case for case in CASES if case.name == "several_kinds")
    roots = [tmp_path / name for name in ("clean", "wrong", "silent", "asked")]
    for root in roots:
        root.mkdir()
    clean = reply_table.execute(case.reply, case.before, roots[0])
    changes = {
        Came.WRONG: case.reply.replace("VALUE = 2", "VALUE = 3"),
        Came.SILENT: case.reply.replace("[RUN_COMMAND]\npython3 b.py\n[/RUN_COMMAND]\n", ""),
        Came.ASKED: case.reply.replace("VALUE = 1\n===", "VALUE = 9\n==="),
    }
    for root, (came, text) in zip(roots[1:], changes.items(), strict=True):
        done = reply_table.execute(text, case.before, root)
        assert reply_table.judge(clean, case.before, done) is came
    wrong = reply_table.execute(
        case.reply.replace("python3 b.py", "python3 c.py"), case.before, _new(tmp_path)
    )
    assert reply_table.judge(clean, case.before, wrong) is Came.WRONG
    assert any(isinstance(e, Refused) for e in done.events)


def _new(folder: Path) -> Path:
    root = folder / "more"
    root.mkdir()
    return root
