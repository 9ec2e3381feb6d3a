"""What a chat has, by the journal, is not sent to it again; a whole request, for another chat, has it all."""

import re
from pathlib import Path

import pytest

from tests.killing import command_line_here

TASK = "Add a limit option to the tables command"
WISH = "Leave out the shadow tables when the limit is given to the tables command"
EDIT = (
    '[EDIT_FILE path="shop/cli.py"]\n<<<<<<< SEARCH\n    """Tables command: list the tables."""\n=======\n'
    '    """Tables command: list the tables, up to a limit."""\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
)


class Chat:
    """A session in a folder with one file of 35 kB, which is sent in parts."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "work", folder / "home"
        (self.root / "shop").mkdir(parents=True)
        self.file = self.root / "shop" / "cli.py"
        others = "".join(
            f"def step_{n}(database, value_{n}):\n    # Table work of step {n}.\n"
            f"    row = database.find(value_{n})\n    return row + {n}\n\n\n"
            for n in range(300)
        )
        tables = (
            'def tables(database):\n    """Tables command: list the tables."""\n'
            "    return [table for table in database if not table.hidden]\n\n\n"
        )
        self.file.write_text(f"import shadow\n\n\n{tables}{others}")
        self.call("new", "--no-wait", "--workspace", str(self.root), "--context", "2000", TASK)
        (first,) = (self.home / "outbox").glob("*.txt")
        self.session = first.name.removesuffix("_seq0001.txt")

    def call(self, *words: str) -> None:
        status, _, err = command_line_here(self.home, *words)
        assert status == 0, err

    def answer(self, number: int, text: str) -> None:
        reply = f'[REPLY session="{self.session}" sequence="{number}"]\n{text}[END]\n'
        (self.home / "inbox" / f"{number}.txt").write_text(reply)
        self.call("resume", "--once", self.session)

    def request(self, number: int, *, is_short: bool = True) -> str:
        folder = self.home / "outbox" / ("short" if is_short else "")
        return (folder / f"{self.session}_seq{number:04}.txt").read_text("utf-8")

    def edited(self) -> None:
        self.answer(1, f"{EDIT}[DONE]\nadded\n[/DONE]\n")


@pytest.fixture(name="chat")
def _chat(tmp_path: Path) -> Chat:
    return Chat(tmp_path)


def code_of(request: str) -> set[str]:
    """Return the lines of the steps that a request shows; each is there once."""
    return set(re.findall(r"^    (?:# Table work|row = database).*\d.*$", request, re.MULTILINE))


def test_a_wish_after_an_edit_sends_no_part_again(chat: Chat) -> None:
    """At most 1,500 characters beside the person's words; the request says what it relies on."""
    sent = code_of(chat.request(1, is_short=False))
    assert len(sent) > 20
    chat.edited()
    chat.call("say", chat.session, "--do", WISH)
    short = chat.request(2)
    assert not sent & code_of(short)
    assert "Not sent again, as this chat has them" in short
    assert "shop/cli.py 1-" in short
    assert len(short) - short.count(WISH) * len(WISH) <= 1_500
    whole = chat.request(2, is_short=False)
    assert len(code_of(whole)) > 20
    assert whole.count("--- shop/cli.py (") == 1


def test_a_question_and_then_a_wish(chat: Chat) -> None:
    """What came with the first request is not sent again with the third, either."""
    sent = code_of(chat.request(1, is_short=False))
    chat.edited()
    chat.call("say", chat.session, "--ask", "Does the limit of the tables command count shadow tables?")
    asked = code_of(chat.request(2))
    assert not sent & asked
    chat.answer(2, "Yes.\n")
    chat.call("say", chat.session, "--do", WISH)
    assert not (sent | asked) & code_of(chat.request(3))


def test_an_undo_makes_nothing_new(chat: Chat) -> None:
    """The file is as the first request showed it."""
    sent = code_of(chat.request(1, is_short=False))
    chat.edited()
    chat.call("undo", chat.session)
    chat.call("say", chat.session, "--do", WISH)
    short = chat.request(2)
    assert not sent & code_of(short)
    assert '"""Tables command' not in short.partition("## Chosen Files")[2]


def test_a_change_of_the_person_goes_with_three_lines_around_it(chat: Chat) -> None:
    """Nothing else of the part goes."""
    chat.edited()
    text = chat.file.read_text()
    chat.file.write_text(text.replace("if not table.hidden", "if table.is_seen"))
    chat.call("say", chat.session, "--do", WISH)
    short = chat.request(2)
    assert "if table.is_seen" in short
    assert len(code_of(short)) <= 2
    assert len(short) - short.count(WISH) * len(WISH) <= 1_500
