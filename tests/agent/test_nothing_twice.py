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
    assert short.count("if table.is_seen") == 1
    assert len(code_of(short)) <= 2
    assert len(short) - short.count(WISH) * len(WISH) <= 1_500


def lines_sent(request: str) -> set[str]:
    return set(re.findall(r"^    row = database.find.*$", request, re.MULTILINE))


def test_a_file_known_whole_that_the_person_changed_goes_as_its_changes(chat: Chat) -> None:
    """Also in a request that goes on with the task, and again where that is rewritten; then it is known."""
    note = chat.root / "note.py"
    note.write_text("".join(f"value_{n} = {n}\n" for n in range(400)))
    chat.answer(1, '[READ_FILE path="note.py"]\n')
    assert "value_399" in chat.request(2)
    note.write_text(note.read_text().replace("value_200 = 200", "value_200 = 'two hundred'"))
    chat.answer(2, "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n")
    short = chat.request(3)
    assert re.findall(r"value_\d+ = .*", short) == [
        *(f"value_{n} = {n}" for n in (197, 198, 199)),
        "value_200 = 'two hundred'",
        *(f"value_{n} = {n}" for n in (201, 202, 203)),
    ]
    chat.call("say", chat.session, "Rewritten.")
    assert "'two hundred'" in chat.request(3)
    chat.answer(3, "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n")
    assert "value_" not in chat.request(4)


def test_lines_that_were_asked_for_or_named_by_a_failure_are_not_chosen_again(chat: Chat) -> None:
    """READ_FILE with a range, and the definitions that a failed command names."""
    fails = "echo '  File \"shop/cli.py\", line 1512, in step_251'; false"
    chat.answer(1, '[READ_FILE path="shop/cli.py" start_line="1206" end_line="1260"]\n')
    chat.answer(2, f"{EDIT}[RUN_COMMAND]\n{fails}\n[/RUN_COMMAND]\n")
    asked = lines_sent(chat.request(2)) | lines_sent(chat.request(3))
    assert {"    row = database.find(value_205)", "    row = database.find(value_250)"} <= asked
    chat.answer(3, "[DONE]\nall\n[/DONE]\n")
    chat.call("say", chat.session, "--do", "Table work of step 205, step 206 and step 250, step 251: rows")
    assert not asked & lines_sent(chat.request(4))


def test_much_that_the_person_changed_is_sent(chat: Chat) -> None:
    """More lines than are worth sending of what the chat could ask for."""
    chat.edited()
    text = chat.file.read_text()
    sent = sorted(lines_sent(chat.request(1, is_short=False)))[:20]
    for line in sent:
        text = text.replace(line, line.replace("row = database", "rows = tables_of_the_database"))
    chat.file.write_text(text)
    chat.call("say", chat.session, "--do", WISH)
    short = chat.request(2)
    assert short.count("rows = tables_of_the_database") == len(sent)


@pytest.mark.parametrize("how", [["--ask"], ["--do"], []])
def test_a_follow_up_is_short(chat: Chat, how: list[str]) -> None:
    """After one edit without new files: at most 1,500 characters beside the person's words."""
    chat.edited()
    words = "Is a limit of zero allowed for the tables command?"
    chat.call("say", chat.session, *how, words)
    short = chat.request(2)
    assert len(short) - short.count(words) * len(words) <= 1_500
