"""An answer without any block: its words are the person's to read, and one block is the model's to fill."""

import json
from pathlib import Path

import pytest

from codingagent.model.events import MessageShown
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Step
from tests.agent.test_requests_asked import short, working
from tests.helpers import plain_session
from tests.killing import command_line_here, kill_when

WORDS = "Should \x1b[31mtotal()\x1b[0m take them off?\n\nI think so.\u202e"
LINES = (r"Should \x1b[31mtotal()\x1b[0m take them off?", r"I think so.\u202e")


def in_a_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("flag", ["--json", "plain"])
def test_the_words_are_shown_in_full_and_can_be_answered(tmp_path: Path, flag: str) -> None:
    """Design, no block at all: shown to the person, harmless for a terminal, with the way to answer."""
    with plain_session(tmp_path) as live:
        long = "\n".join(f"line {number} of them" for number in range(300))
        header = f'[REPLY session="{live.session_id}" sequence="1"]'
        live.drop(f"{header}\n{WORDS}\n{long}\n[END]\n")
    words = ("resume", "--once", *(["--json"] if flag == "--json" else []))
    status, out, _ = command_line_here(tmp_path, *words)
    assert status == 0
    if flag == "--json":
        told = [json.loads(line) for line in out.splitlines()]
        out = "\n".join(each["event"].get("text", "") for each in told if "event" in each)
        assert WORDS in out  # a program gets them as they are
    else:
        home = f"codingagent --home {tmp_path}"
        assert f'`{home} say {live.session_id} "…"`; or send request 2' in in_a_line(out)
        assert not {*"\u202e\x1b"} & {*out}
        assert all(line in out for line in LINES)
    assert "line 299 of them" in out
    assert "[END]" not in out
    # It is said again until it is answered.
    _, again, _ = command_line_here(tmp_path, "refresh", live.session_id)
    assert flag == "--json" or f"`{home} say" in in_a_line(again)
    assert command_line_here(tmp_path, "say", live.session_id, "yes")[0] == 0
    assert "The user says:\nyes\n" in live.home.mailbox.outbox_path(live.session_id, 2).read_text()


def test_show_and_log_hold_the_words(tmp_path: Path) -> None:
    """Nothing of them is lost."""
    with plain_session(tmp_path) as live:
        live.answer(WORDS)
    for command in ("show", "log"):
        status, out, _ = command_line_here(tmp_path, command, live.session_id)
        assert status == 0
        assert in_a_line("\n".join(LINES)) in in_a_line(out)
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_the_model_is_shown_one_block_to_fill_in(tmp_path: Path) -> None:
    """Design, no block at all: one block, never a DONE."""
    with working(tmp_path) as live:
        live.drop("I would change a.py there.")
        live.conversation.take("reply.txt")
        for text in (live.request(), short(live)):
            results = text.partition("## Previous Command Results\n")[2].partition("=== PROMPT")[0]
            results = results.partition("\n\n")[0]
            assert results.count("The answer has no operations") == 1
            assert "the user was shown your words" in results
            shown = results.partition("for example:\n  Output:")[2]
            shown = "\n".join(line.strip() for line in shown.splitlines()).strip()
            assert shown.startswith("[READ_FILE path=")
            (item,) = reply.read(f"{shown}\n").items
            assert isinstance(item, Step)
            assert "DONE" not in results


def test_it_survives_a_kill_and_is_told_once(tmp_path: Path) -> None:
    """Design, nothing is lost: killed once it is taken, the words are in the record, and the turn ends."""
    with plain_session(tmp_path) as live:
        live.drop(WORDS)
    journal = tmp_path / "sessions" / live.session_id / "journal.jsonl"
    kill_when(tmp_path, ("resume", "--once"), lambda: b"reply_taken" in journal.read_bytes())
    assert command_line_here(tmp_path, "resume", live.session_id, "--once")[0] == 0
    session = live.home.sessions.load(live.session_id)
    assert [e.text for e in session.results if isinstance(e, MessageShown)] == [WORDS]
    assert len(session.results) == 2
    request = live.home.mailbox.outbox_path(live.session_id, 2).read_text("utf-8")
    assert request.count("[FAILED] REPLY: ") == 1


@pytest.mark.parametrize("text", [" ", "\n\n", "[END]\n"])
def test_without_words_there_is_nothing_to_show(tmp_path: Path, text: str) -> None:
    with plain_session(tmp_path) as live:
        assert live.answer(text).startswith("[FAILED] REPLY: The answer has no operations")
