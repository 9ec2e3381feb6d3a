"""A turn costs one glance: how many lines a session prints."""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.text import Text

from tests import golden
from tests.cli.terminals import on_terminal
from tests.cli.test_amend import Terminal, terminal
from tests.cli.test_output import CART, CREATE, DONE, EDIT, drop
from tests.cli.test_waiting_line import PROMPT, enter, paste
from tests.helpers import run_here, wait_until
from tests.recorded_session import ANSWERS, CHECK, EDITED, FILES, LINE, TASK, rows, same


def test_after_the_first_request_one_line_says_what_comes_next(tmp_path: Path) -> None:
    """The first says it in three; later ones in one, an undo with what it restored."""
    home = ["--home", str(tmp_path / "home")]

    def lines(*words: str) -> list[str]:
        done = run_here(*home, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    (tmp_path / "home" / "workspace").mkdir(parents=True)
    first = lines("new", "--no-wait", "--sandbox", "off", "Create notes.txt")
    assert [line.partition(" ")[0] for line in first[-3:]] == ["Request", "Send", "Then:"]
    assert lines("say", "be quick")[0].startswith("Request 1 was rewritten; send this one: /")
    drop(tmp_path / "home", CREATE)
    shown = [line[:10] for line in lines("resume", "--once")[-3:]]
    assert shown == ["Turn 1: 1 ", "Request 2:", "It is for "]  # which of the two files, once
    for words in (("say", "x"), ("refresh",), ("undo",), ("undo", "--redo")):
        shown = lines(*words)
        assert len(shown) == 1 + (words[0] == "undo"), shown
        assert shown[-1].startswith("Request 2 was rewritten; send this one: /")
    assert lines("undo")[0] == "Undid turn 1: removed notes.txt"


def test_a_turn_of_an_edit_and_a_green_check_is_read_at_a_glance(tmp_path: Path) -> None:
    """At most 8 lines and 300 characters, the path aside: what was edited, and that it works."""
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "cart.py").write_text(CART, "utf-8")
    words = ["--home", str(home), "new", "--no-wait", "--sandbox", "off", "Multiply by the quantity"]
    assert run_here(*words, "--check", "echo '918 passed in 11.52s'").returncode == 0
    drop(home, EDIT)
    shown = on_terminal(["--home", str(home), "resume", "--once"], 200).text
    turn = shown[shown.index("── Answer 1") :].replace(str(home), "")
    assert "  ✓ cart.py, line 4  +1 −1\n" in turn
    assert "  ✓ check: 918 passed  " in turn
    assert len(turn.splitlines()) <= 8
    assert len(turn) <= 300


def test_what_went_wrong_is_told_in_few_lines(tmp_path: Path) -> None:
    """A cut answer, a DONE that the check refuses, and files that are no answers: facts, and what to do."""
    home = tmp_path / "home"

    def lines(*words: str) -> list[str]:
        return run_here("--home", str(home), *words).stdout.splitlines()

    lines("new", "--no-wait", "--sandbox", "off", "Create notes.txt", "--check", "exit 3")
    drop(home, CREATE[: CREATE.index("line 3\n")])
    cut = lines("resume", "--once")[1:]
    assert cut[0].startswith(
        "  FAILED Cut off inside CREATE_FILE 'notes.txt': 2 lines arrived, nothing of it was used. The next"
    )
    assert [line.partition(":")[0] for line in cut[1:]] == [
        "Turn 1",
        "Request 2",
        "It is for the same chat; a new one needs " + str(next((home / "outbox").glob("*2.txt"))),
    ]
    for number in (2, 3):
        drop(home, CREATE.replace('path="', f'path="{number}') + DONE)
        shown = lines("resume", "--once")
        why = "  FAILED DONE not accepted: your check fails as before any change; the next request "
        at = shown.index(f"{why}tells the model")
        is_first = shown[at + 1].startswith("    Wrong check? Set another: codingagent --home ")
        assert is_first == (number == 2)
        assert len(shown) == at + 3 + is_first
    (request,) = (home / "outbox").glob("*_seq0001.txt")
    (home / "inbox" / "b.txt").write_bytes(request.read_bytes())
    old = f'[REPLY session="{request.name[:8]}" sequence="1"]\n{CREATE}[END]\n'
    (home / "inbox" / "a.txt").write_text(old, "utf-8")
    a, b, *rest = sorted(lines("resume", "--once"))
    assert a.startswith("a.txt rejected: it answers request 1, but request 4 is waiting. Apply it")
    assert a.endswith(f"--accept {home}/inbox/rejected/a.txt")
    assert b == (
        "b.txt rejected: it is a request, not an answer (moved to inbox/rejected/)."
        " Save only what the chat answered"
    )
    assert not rest


RIGHT = "        return max(0, self.net - self.discount)"
ASKS = "[MESSAGE]\nNever below 0?\n[/MESSAGE]\n[END]\n"
TURNS = (
    ANSWERS[0].replace("[DONE]\ntotal() subtracts the discount.\n[/DONE]\n", ""),
    ASKS,
    EDITED.format("        return self.nett", RIGHT, "It is never negative."),
    EDITED.format(LINE.replace("+", "-"), "        return -1000", "It is."),
    EDITED.format("        return -1000", RIGHT, "It is never negative."),
)
NEW = ("new", "--sandbox", "off", TASK, "--check", CHECK)


def laid(folder: Path) -> Path:
    """Return a home whose workspace has the files."""
    home = folder / "shop"
    (home / "workspace").mkdir(parents=True)
    for name, text in FILES.items():
        (home / "workspace" / name).write_text(text, "utf-8")
    return home


def comes(asked: Terminal, text: str) -> None:
    """Wait until a text was shown, and the line below it."""
    hint = re.compile(f"{PROMPT}|to do next, or /quit")  # after DONE
    wait_until(lambda: text in asked.said and bool(hint.search(asked.said.rpartition(text)[2])))


def on_a_terminal(folder: Path) -> Iterator[str]:
    home = laid(folder)
    with terminal(home, *NEW) as asked:
        asked.says("any change")
        comes(asked, "any change")
        for number, text in enumerate(TURNS, start=1):
            paste(asked, text)
            comes(asked, f"Answer {number}")
            for words in ("and a docstring", "/undo", "/redo", "/refresh") if number == 1 else ():
                enter(asked, words)
                comes(asked, f"> {words}")
        asked.leaves()
    yield from (Text.from_ansi(same(line, home)).plain for line in rows(asked.raw))


def in_a_pipe(folder: Path) -> Iterator[str]:
    home = laid(folder)

    def shown(*words: str) -> Iterator[str]:
        yield f"$ codingagent {' '.join(words)}"
        yield from (same(line, home) for line in run_here("--home", str(home), *words).stdout.splitlines())

    yield from shown(*NEW, "--no-wait")
    for number, text in enumerate(TURNS, start=1):
        drop(home, text)
        yield from shown("resume", "--once")
        for words in ("say hello", "undo", "undo --redo", "refresh") if number == 1 else ():
            yield from shown(*words.split())


def five_turns() -> str:
    """Play an edit, words, an undo, a question, a failed edit, a red check, and the end, in both ways."""
    told = list[str]()
    for way in (on_a_terminal, in_a_pipe):
        # As long everywhere: where a line is broken depends on it.
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            told += ["", f"--- {way.__name__.replace('_', ' ')} ---", *way(Path(folder))]
    text = "".join(f"{line.rstrip()}\n" for line in told[1:])
    # A request says what the machine has, and a traceback is Python's.
    text = re.sub(r"[\d,]+(?= characters| more lines)", "N", text)
    return re.sub(r"~[\d,]+ tokens", "~N tokens", text)


TEXTS = {"five_turns.txt": five_turns}


@pytest.mark.skipif(sys.platform == "win32", reason="a pty is what is tested")
@pytest.mark.long
def test_a_session_of_five_turns() -> None:
    """`python -m tests.golden` writes it anew: `git diff` then shows what a person reads otherwise."""
    assert five_turns() == golden.text(__file__, "five_turns.txt")
