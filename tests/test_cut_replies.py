"""Answers that were cut short, in a real session; and what a short request tells of the turns between."""

from pathlib import Path

from tests.helpers import Desk, desk_at

BODY = "".join(f"line number {n}\n" for n in range(40))


def reply(desk: Desk, text: str, sequence: int) -> str:
    return f'[REPLY session="{desk.session_id}" sequence="{sequence}"]\n{text}'


def test_a_file_arrives_in_three_parts(tmp_path: Path) -> None:
    """Design, truncation: what arrived is kept until it is gone on with, also over another turn."""
    with desk_at(tmp_path) as desk:
        first = desk.answer(reply(desk, f'[CREATE_FILE path="a.txt"]\n{BODY[:200]}', 1))
        assert "cut short inside this block" in first
        assert not (desk.workspace / "a.txt").exists()
        desk.answer(reply(desk, "[MESSAGE]\nI go on.\n[/MESSAGE]\n[END]\n", 2))
        start = BODY[:180].rindex("\n") + 1
        second = desk.answer(reply(desk, BODY[start:400], 3))
        assert "cut short inside this block" in second
        start = BODY[:370].rindex("\n") + 1
        done = desk.answer(reply(desk, f"{BODY[start:]}[/CREATE_FILE]\n[END]\n", 4))
        assert "[OK] CREATE_FILE: Created 'a.txt'" in done
        assert "lines that had arrived before" in done
        assert (desk.workspace / "a.txt").read_text() == BODY


def test_what_does_not_go_on_leaves_the_file_alone(tmp_path: Path) -> None:
    """A cut reply never overwrites a whole file with a part."""
    with desk_at(tmp_path) as desk:
        (desk.workspace / "a.txt").write_text("old\n")
        desk.answer(reply(desk, f'[CREATE_FILE path="a.txt"]\n{BODY[:200]}', 1))
        text = desk.answer(reply(desk, f"{BODY[300:]}[/CREATE_FILE]\n[END]\n", 2))
        assert "send the block again from its start" in text
        assert (desk.workspace / "a.txt").read_text() == "old\n"


def test_a_short_request_tells_what_the_person_changed_while_it_only_read(tmp_path: Path) -> None:
    """Design, outbox: what changed in the workspace since, the person's own edits too."""
    with desk_at(tmp_path) as desk:
        (desk.workspace / "mine.txt").write_text("one\n")
        desk.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
        (desk.workspace / "mine.txt").write_text("two\n")
        desk.answer('[READ_FILE path="a.txt"]\n', "second.txt")
        short = desk.home.mailbox.short_path(desk.session_id, 3).read_text("utf-8")
        assert "modified: mine.txt" in short
