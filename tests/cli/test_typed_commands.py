"""A typed line that is a command or an answer asks or runs: it goes to the model only if it is for it."""

from pathlib import Path

import pytest

from codingagent.cli.commands.waiting import _command_in, _whole
from codingagent.errors import UsageError
from tests.cli.test_amend import request, terminal
from tests.cli.test_cli import CREATE, DONE, drop, run, session_of
from tests.cli.test_waiting_line import PROMPT, enter
from tests.helpers import HANG_S
from tests.rows import each_row

ASKED = "is it for the model?"

RUN = {
    "help": "/help",
    "?": "/help",
    "Exit": "/quit",
    "quit": "/quit",
    ":q": "/quit",
    "list": "/sessions",
    "/diff --turn 2": "/diff --turn 2",
    "codingagent undo": "/undo",
    "codingagent undo a1b2c3d4 --turns 2": "/undo --turns 2",
    "/x/.venv/bin/codingagent diff": "/diff",
    "~/bin/codingagent --home /x show": "/show",
    "codingagent list": "/sessions",
    "codingagent": "/help",
    "？": "/help",
    "ｑｕｉｔ": "/quit",
    "／ｕｎｄｏ": "/undo",
    "／new　任务，一": "/new 任务，一",
    "`codingagent diff`": "/diff",
    "$ codingagent undo": "/undo",
    r"C:\bin\CodingAgent.exe show": "/show",
    ":wq": "/quit",
    "quit()": "/quit",
    "--help": "/help",
    "Quit.": "/quit",
    ":q!": "/quit",
    "me@box:~/x$ codingagent undo": "/undo",
    r"PS C:\x> codingagent diff": "/diff",
}
ASK = (
    *(
        "y",
        "N",
        "yes",
        "no",
        "undo",
        "diff",
        "unsay",
        "ｕｎｄｏ",
        "ｙ",
        "udno",
        "dif",
        "codingagnet undo",
        "git status",
        "git add -A",
        "ls",
        "cd src",
        "python a.py",
        "Undo!",
        "yes.",
        "нет",
        "approve",
        "undo --turns 2",
        "diff --stat",
        "cd ..",
        "% git status",
    ),
    *("codingagent new --here 'x'", "codingagent resume", "codingagent approve", "codingagent help safety"),
)
WORDS = (
    *("undo the last edit please", "help me with the parser", "yes, and add a test", "no tests here"),
    *(
        "git is what we use for that, not hg",
        "ls prints nothing here: why is that so?",
        "Python 3.9 must work",
    ),
    *("what does codingagent undo do", " help", " git status", "exit codes are wrong", "merge"),
    *("100% of them fail", "> a quoted line of the log", "No, undo it.", "undo what you did"),
    *("docs", "done", "codingagent's own list of commands is wrong", "`undo` fails here"),
)


@each_row("line", [*RUN, *ASK, *WORDS])
def test_what_a_line_is(line: str) -> None:
    """Certain: it runs. Words of a sentence: they are words. Else the person says which."""
    expected = RUN.get(line, "" if line in ASK else None)
    assert _command_in(line, is_asked=False) == expected


def test_yes_and_no_answer_a_question_of_the_model() -> None:
    """Then they are words."""
    assert [_command_in(word, is_asked=True) for word in ("y", "No", "yes")] == [None] * 3
    assert _command_in("undo", is_asked=True) == ""


def test_a_command_may_be_shortened() -> None:
    """To what only one begins with."""
    named = {"/und": "/undo", "/q": "/quit", "/exit": "/quit", "/commti": "/commti", "/new": "/new"}
    named |= {"/add": "/attach", "/read-only": "/attach", "/drop": "/leave", "/ls": "/tokens", "/run": "/run"}
    named |= {"/clear": "/new-chat", "/reset": "/new-chat", "/code": "/do", "/commit": "/commit"}
    assert {each: _whole(each) for each in named} == named
    with pytest.raises(UsageError, match="/s may be /show or /sessions"):
        _whole("/s")


def test_on_the_terminal(tmp_path: Path) -> None:
    """Nothing of it is in the request but what the person says is for the model; words can be withdrawn."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "the task") == 0
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        enter(asked, "git status")
        asked.says(ASKED)
        asked.says("Its number")
        asked.types("ｎ\r")
        asked.says(PROMPT, 2)
        enter(asked, "undo")
        asked.says(ASKED, 2)
        asked.says("Its number", 2)
        asked.types("yes\r")
        asked.says("Request 1 was rewritten")
        assert "\nundo\n" in request(home, 1)
        asked.says(PROMPT, 3)
        enter(asked, "/uns")
        asked.says("Withdrawn. Request 1")
        asked.says("Request 1 was rewritten", 2)
        assert "undo\n" not in request(home, 1)
        asked.says(PROMPT, 4)
        enter(asked, "/unsay")
        asked.says("there is nothing to withdraw")
        enter(asked, "/re")
        asked.says("/re may be /redo or /refresh")
        enter(asked, "/merge")
        asked.says("there is no /merge; /help lists them")
        enter(asked, "codingagent undo")
        asked.says("no turn of this session can be undone")
        enter(asked, "/shwo")
        asked.says("did you mean '/show'?")
        enter(asked, "exit")
        asked.says("nothing is lost")
        assert asked.process.wait(HANG_S) == 0
    assert "git status" not in request(home, 1)


def test_files_are_withdrawn_too(tmp_path: Path) -> None:
    """What was attached goes out no more, unless words before it attached it, too."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "--context", "0", "the task") == 0
    (home / "workspace" / "a.txt").write_text("the text of a\n")
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        enter(asked, "/attach a.txt")
        asked.says("Request 1 was rewritten")
        assert "the text of a" in request(home, 1)
        enter(asked, "/unsay")
        asked.says("Request 1 was rewritten", 2)
        assert "the text of a" not in request(home, 1)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    assert run(home, "show") == 0


def test_the_choice_is_changed_by_its_numbers(tmp_path: Path) -> None:
    """A line of the choice is left out and taken back, a glob too; the request is rewritten at once."""
    home = tmp_path / "home"
    (home / "workspace" / "docs").mkdir(parents=True)
    for name in ("cart.py", "stock.py", "docs/cart.md"):
        (home / "workspace" / name).write_text(f"the cart of {name}\n" * 3)
    with terminal(home, "new", "--sandbox", "off", "Mend cart.py") as asked:
        asked.says("1  cart.py, whole")
        asked.says(PROMPT)
        enter(asked, "-1")
        asked.says("3  left out: cart.py")
        assert "the cart of cart.py" not in request(home, 1)
        asked.says(PROMPT, 2)
        enter(asked, "/leave docs/**")
        asked.says("3  left out: docs/**")
        assert "the cart of docs" not in request(home, 1)
        asked.says(PROMPT, 3)
        enter(asked, "+2 -1")
        asked.says("Request 1 was rewritten", 3)
        assert "the cart of cart.py" in request(home, 1)
        assert "the cart of stock.py" not in request(home, 1)
        asked.says(PROMPT, 4)
        enter(asked, "+9")
        asked.says("+9 names nothing: the choice has lines 1 to 3")
        enter(asked, "+1")
        asked.says("Request 1 was rewritten", 4)
        assert "## Requested File Contents\n--- cart.py ---" in request(home, 1)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0


def test_close_and_say_mean_the_only_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two that may be meant are named."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "the task") == 0
    session = session_of(home)
    drop(home, DONE)
    assert run(home, "resume", "--once") == 0
    assert run(home, "say", "go on") == 0
    assert run(home, "close") == 0
    assert f"closed {session}" in capsys.readouterr().out
    assert run(home, "close") == 2
    assert "no session is open" in capsys.readouterr().err
    for task in ("one", "two"):
        assert run(home, "new", "--no-wait", "--sandbox", "off", task) == 0
    assert run(home, "close") == 2
    said = capsys.readouterr().err
    assert ("(one)" in said, "(two)" in said, "2 are open; name one of" in said) == (True, True, True)


def test_a_session_that_is_done_is_shown_and_goes_on_when_told(tmp_path: Path) -> None:
    """`resume ID` writes no request without a wish, and a number is one of those that it shows."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "the task") == 0
    drop(home, CREATE + DONE)
    assert run(home, "resume", "--once") == 0
    with terminal(home, "resume", session_of(home)) as asked:
        asked.says("Done: ")
        asked.says("Changed: ")
        asked.says(" look  2 undo")
        asked.says("Type what to do next")
        enter(asked, "7")
        asked.says(ASKED)
        asked.says("Its number")
        asked.types("n\r")
        asked.says("Type what to do next", 2)
        assert not [*(home / "outbox").glob("*_seq0002.txt")]
        enter(asked, "2")
        asked.says("Undid turn 1")
        enter(asked, "go on")
        asked.says("Request 2")
        asked.says(PROMPT)
        assert "The user says:\ngo on\n" in request(home, 2)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
