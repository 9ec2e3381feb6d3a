"""`ask`: answers in words, that change nothing; then, or in between, edits in the same chat."""

import json
import sys
from pathlib import Path

import pytest

from codingagent.context.show import EDIT_IT
from codingagent.model.operations import ReadFile
from codingagent.prompt import guide
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.storage.homes import Home
from tests.agent.test_every_state import EDIT, RUN, Recorded
from tests.cli.test_amend import terminal
from tests.helpers import HANG_S, run_here
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("plain")

CART = "def total(net, discount):\n    return net + discount\n"
FIX = EDIT("cart.py", "    return net + discount", "    return net - discount")
WORDS = "It is in `cart.py`, line 2.\n\n```python\nreturn net - discount\n```\n"
PROMPT = "Paste the answer"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "cart.py").write_text(CART, "utf-8")
    return home


def go(home: Path, *words: str) -> str:
    done = run_here("--home", str(home), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(home: Path) -> str:
    go(home, "ask", "--no-wait", "Where is the total computed?")
    return next(iter(Home.at(home, create=False).sessions.ids()))


def drop(home: Path, text: str, *words: str) -> str:
    session = Home.at(home, create=False).sessions.load(name_of(home))
    header = f'[REPLY session="{session.session_id}" sequence="{session.sequence}"]\n'
    (home / "inbox" / "reply.txt").write_text(f"{header}{text}[END]\n", "utf-8")
    return go(home, "resume", "--once", *words)


def name_of(home: Path) -> str:
    (name,) = Home.at(home, create=False).sessions.ids()
    return name


def request(home: Path, *, short: bool = False) -> str:
    folder = home / "outbox" / "short" if short else home / "outbox"
    return max(folder.glob("*_seq*.txt")).read_text("utf-8")


def cart(home: Path) -> str:
    return (home / "workspace" / "cart.py").read_text("utf-8")


def is_complete(home: Path) -> bool:
    return Home.at(home, create=False).sessions.load(name_of(home)).is_complete


def test_the_guide_teaches_nothing_but_to_read() -> None:
    """Its blocks are parsed, and each only reads."""
    text = guide.question_text() + guide.reminder("a1b2c3d4", 1, is_asking=True)
    steps = [item for item in reply.read(text).items if isinstance(item, Step)]
    assert {type(step.operation) for step in steps} == {ReadFile}


def test_questions_then_edits_in_one_chat(home: Path) -> None:
    """Only words are taken, whole; each question is a request; `--do` teaches the commands, once."""
    name = ask(home)
    first = request(home)
    assert "[EDIT_FILE" not in first
    assert "## Environment" not in first
    assert EDIT_IT not in first
    assert CART in first

    out = drop(home, WORDS + FIX + RUN("touch ran") + "[DONE]\nfixed\n[/DONE]\n")
    assert cart(home) == CART
    assert not (home / "workspace" / "ran").exists()
    assert all(line in out for line in WORDS.split("\n"))
    assert "Not executed, because this was only a question: EDIT_FILE cart.py, RUN_COMMAND touch ran" in out
    assert "No command" not in out
    assert is_complete(home)
    assert len(list((home / "outbox").glob("*.txt"))) == 1

    go(home, "say", name, "Is it tested?")
    assert "The user says:\nIs it tested?" in request(home, short=True)
    drop(home, '[READ_FILE path="cart.py"]\n')
    assert not is_complete(home)
    for is_short in (True, False):
        asked = request(home, short=is_short)
        assert "or answer the question:\nIs it tested?" in asked
        assert asked.count("Is it tested?") == 1
    assert CART in request(home, short=True)
    drop(home, "No.\n")
    assert is_complete(home)

    go(home, "say", name, "--do", "Mend it")
    asked = request(home, short=True)
    assert guide.protocol_text() in asked
    assert "## Environment" in asked
    assert "The user says:\nMend it" in asked
    assert "\nTask: Mend it\n" in asked
    assert guide.protocol_text() in request(home)
    drop(home, FIX)
    assert cart(home) != CART
    assert "As in the earlier requests" in request(home, short=True)
    drop(home, "[DONE]\nmended\n[/DONE]\n")
    assert is_complete(home)
    shown = go(home, "show", name)
    assert all(said in shown for said in ("return net - discount", "you want done: Mend it"))


def test_what_is_wanted_anew_brings_its_files(home: Path) -> None:
    """A later question, what is to be done after it, and what follows DONE: the chat need not ask first.

    In the short request, too, without what the chat has; they are told, can be left out, and a rewritten
    request keeps them.
    """
    for name in ("voucher", "shipping", "invoice", "remittance"):
        text = "".join(f"def {name}_{n}():\n    return {n}\n\n\n" for n in range(900))
        (home / "workspace" / f"{name}.py").write_text(text, "utf-8")
    go(home, "ask", "--no-wait", "--context", "500", "Where is the total computed?")
    session = name_of(home)

    def chosen(said: str, name: str) -> None:
        assert f"1  {name}.py, " in said
        for is_short in (True, False):
            text = request(home, short=is_short)
            assert f"--- {name}.py (" in text
            is_told = "Nothing is changed or run" in text or (is_short and "\nAs in the earlier req" in text)
            assert (EDIT_IT in text) is not is_told
        assert "--- cart.py" not in request(home, short=True)

    drop(home, WORDS)
    said = go(home, "say", session, "How is a voucher computed?")
    chosen(said, "voucher")
    chosen(said + go(home, "refresh"), "voucher")
    drop(home, WORDS)
    assert "voucher" not in go(home, "say", session, "And why?")
    chosen(go(home, "say", session, "--do", "Make shipping free"), "shipping")
    assert "--- voucher.py" not in request(home, short=True)
    drop(home, "[MESSAGE]\nNow?\n[/MESSAGE]\n")
    assert ", whole" not in go(home, "say", "yes, and the invoice")
    drop(home, FIX + "[DONE]\nok\n[/DONE]\n")
    chosen(go(home, "say", session, "Round each remittance"), "remittance")


def test_a_new_chat_is_told_what_was_said(home: Path) -> None:
    """Quoted and within bounds; a pasted request is no answer, whatever was said before."""
    name = ask(home)
    token = "ghp_" + "8fK2mQ9xR4tW7yB3nZ6cV1sD5gH0jL2pA4eU"
    drop(home, f"{WORDS}The token is {token}.\n=== HEADER ===\n" + "So. " * 3_000)
    go(home, "say", name, "Who calls it?")
    asked, short = request(home), request(home, short=True)
    before, _, said = asked.partition("=== PROMPT ===\n")[2].partition("\n\nEarlier you answered")
    assert before == "The user first asked:\nWhere is the total computed?"
    lines = said.partition("\n\nThe user says:\nWho calls it?\n")[0].split("\n")[1:]
    assert lines[:3] == ["> It is in `cart.py`, line 2.", "> ", "> ```python"]
    assert all(line.startswith("> ") for line in lines)
    assert len("".join(lines)) < 4_000
    assert token not in asked
    assert "It is in" not in short
    drop(home, "Nobody.\n")
    go(home, "say", name, "--do", "Call it")
    drop(home, '[MESSAGE until="X"]\nOr so?\n[DELETE_FILE path="cart.py"]\n[/MESSAGE X]\n')
    go(home, "say", "no")
    asked = request(home)
    for text in ("It is in", "Who calls it?", "> Nobody.", '> [DELETE_FILE path="cart.py"]'):
        assert text in asked
    (home / "inbox" / "all.txt").write_text(asked, "utf-8")
    assert "all.txt rejected: it is a request" in go(home, "resume", "--once")
    answer = f'{asked}\n[REPLY session="{name}" sequence="4"]\n{FIX}[DONE]\nok\n[/DONE]\n[END]\n'
    (home / "inbox" / "all.txt").write_text(answer, "utf-8")
    go(home, "resume", "--once")
    assert cart(home) == CART.replace("+", "-")
    assert is_complete(home)


def test_a_question_in_between_changes_nothing_until_it_is_answered(home: Path) -> None:
    """The task goes on after it; where it was done, it is done after the answer."""
    go(home, "new", "--no-wait", "mend the total")
    go(home, "say", "--ask", "Why?")
    assert "[EDIT_FILE" not in request(home)
    drop(home, '[READ_FILE path="cart.py"]\n' + FIX)
    drop(home, "Because.\n" + FIX)
    assert cart(home) == CART
    assert not is_complete(home)
    # The first request was sent as a question: the chat has not seen the commands.
    assert guide.protocol_text() in request(home, short=True)
    assert "might not have seen" not in request(home)
    drop(home, FIX)
    go(home, "say", "--ask", "And now?")
    out = drop(home, "It is right.\n")
    assert "? Ask more: `codingagent --home" in out
    asked = request(home, short=True)
    assert "has no reply to your message" not in asked
    assert "has read your answer, and has no more words: go on with the task." in asked
    assert "As in the earlier requests with operations: these are executed again." in asked
    drop(home, "[DONE]\nmended\n[/DONE]\n")
    assert cart(home) != CART
    assert is_complete(home)
    go(home, "say", name_of(home), "--ask", "Is that all?")
    assert "after your DONE" not in request(home)
    drop(home, "Yes.\n")
    assert is_complete(home)


def test_a_question_may_be_followed_by_a_wish(home: Path) -> None:
    """The last words decide what the request asks for."""
    go(home, "new", "--no-wait", "mend the total")
    go(home, "say", "--ask", "Why?")
    drop(home, FIX)
    assert cart(home) == CART
    go(home, "say", "--do", "do it now")
    drop(home, FIX)
    assert cart(home) != CART


@each_row(
    ("words", "said"),
    [
        ('[REPLY session="a" sequence="1"]\nYes.\n[END]\n', "Yes."),
        ('[REPLY session="a"]\n````\nYes:\n```\nx\n```\n````\n', "Yes:\n```\nx\n```"),
        ("```\nx\n```\nand\n```\ny\n```\n", "```\nx\n```\nand\n```\ny\n```"),
        ('\\[REPLY session="a" sequence="1"]\nYes.\n**[END]**\n', "Yes."),
        ("[MESSAGE]\nYes.\n[/MESSAGE]\n[DONE]\nAll.\n[/DONE]\n[END]\n", "Yes.\nAll."),
    ],
)
def test_the_words_are_those_of_the_answer(words: str, said: str) -> None:
    """Without our own lines and a fence around all."""
    assert reply.words_of(words) == said


def test_an_answer_without_words_is_told_so() -> None:
    (item,) = reply.answer_items("", [])
    assert isinstance(item, Problem)


def test_a_kill_at_any_record_loses_no_question_and_executes_nothing(home: Path) -> None:
    """The answer is taken once, and its words are in the record."""
    name = ask(home)
    drop(home, WORDS + FIX)
    go(home, "say", name, "And?")
    drop(home, "That is all.\n" + FIX)
    recorded = Recorded(home, home / "sessions" / name / "journal.jsonl")
    whole = b"".join(recorded.lines)
    for count in range(1, len(recorded.lines)):
        recorded.cut(count)
        told = b"".join(recorded.lines[:count])
        go(home, "resume", name, "--once")
        done = recorded.journal.read_bytes()
        assert done.startswith(told), count
        assert done.count(b'"message_shown"') <= whole.count(b'"message_shown"')
        assert cart(home) == CART, count
        taken, shown = (done.count(kind) for kind in (b'"reply_taken"', b'"turn_ended"'))
        assert taken == shown, count


@pytest.mark.skipif(sys.platform == "win32", reason="a shell answers")
def test_a_command_answers_and_the_wait_ends(home: Path) -> None:
    """In a pipe, and as JSON, too: an answered question is done."""
    out = go(home, "ask", "--reply-with", "echo It is there.", "--json", "Where?")
    told = [json.loads(line) for line in out.splitlines()]
    (said,) = [each["event"]["text"] for each in told if each["kind"] == "operation_ended"]
    assert said == "It is there."
    assert is_complete(home)


@pytest.mark.skipif(sys.platform == "win32", reason="a pty is what is tested")
def test_on_a_terminal_the_next_question_is_typed(home: Path) -> None:
    """After an answer the prompt stays: words ask, `/do` has it done, `/quit` ends."""
    from tests.cli.test_waiting_line import confirm, enter, paste

    with terminal(home, "ask", "Where?") as asked:
        asked.says(PROMPT)
        paste(asked, "It is in cart.py.\nIn line 2.\n")
        asked.says("type the next question")
        asked.says(PROMPT, 2)
        enter(asked, "is it right?")
        asked.says("Request 2")
        asked.says(PROMPT, 3)
        paste(asked, "No.\nIt adds.\n")
        asked.says("type the next question", 2)
        asked.says(PROMPT, 4)
        enter(asked, "/do mend it")
        asked.says("Wish: files may change. Request 3")
        asked.says(PROMPT, 5)
        paste(asked, FIX)
        asked.says("Request 4")
        asked.says(PROMPT, 6)
        enter(asked, "/ask sure?")
        asked.says("Question: nothing will change. Request 4 was rewritten")
        asked.says(PROMPT, 7)
        paste(asked, "Yes.\nIt is.\n")
        asked.says("? Type what to do next, /ask QUESTION, or /copy and send request 5 to go on")
        asked.says(PROMPT, 8)
        asked.types("/quit")
        confirm(asked)
        assert asked.process.wait(HANG_S) == 0
    assert cart(home) != CART


def test_both_ways_at_once_are_refused(home: Path) -> None:
    ask(home)
    done = run_here("--home", str(home), "say", "--ask", "--do", "x")
    assert done.returncode == 2
    assert "can't be combined" in done.stderr
    done = run_here("--home", str(home), "ask", "--no-wait")
    assert 'ask "the question"' in done.stderr
