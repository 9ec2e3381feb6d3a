"""A turn costs one glance: how many lines a session prints."""

from pathlib import Path

from tests.cli.terminals import on_terminal
from tests.cli.test_output import CART, CREATE, EDIT, drop
from tests.helpers import run_here


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
    assert lines("say", "be quick")[0].startswith("Request 1 was rewritten; send it again: /")
    drop(tmp_path / "home", CREATE)
    assert [line[:10] for line in lines("resume", "--once")[-2:]] == ["Turn 1: 1 ", "Request 2:"]
    for words in (("say", "x"), ("refresh",), ("undo",), ("undo", "--redo")):
        shown = lines(*words)
        assert len(shown) == 1 + (words[0] == "undo"), shown
        assert shown[-1].startswith("Request 2 was rewritten; send it again: /")
    assert lines("undo")[0] == "Undid turn 1: removed notes.txt"


def test_a_turn_of_an_edit_and_a_green_check_is_read_at_a_glance(tmp_path: Path) -> None:
    """At most 8 lines and 300 characters, the path aside: what was edited, and that it works."""
    home = tmp_path / "home"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "cart.py").write_text(CART, "utf-8")
    words = [
        "--home",
        str(home),
        "new",
        "--no-wait",
        "--sandbox",
        "off",
        "Multiply by the quantity",
    ]
    assert run_here(*words, "--check", "echo '918 passed in 11.52s'").returncode == 0
    drop(home, EDIT)
    shown = on_terminal(["--home", str(home), "resume", "--once"], 200).text
    turn = shown[shown.index("── Answer 1") :].replace(str(home), "")
    assert "  ✓ cart.py, line 4  +1 −1\n" in turn
    assert "  ✓ check: 918 passed  " in turn
    assert len(turn.splitlines()) <= 8
    assert len(turn) <= 300
