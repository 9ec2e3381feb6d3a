"""What people see, on real terminals of many widths, and what pipes get."""

import contextlib
import io
import itertools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from codingagent.cli import main
from tests.cli.terminals import HIDDEN, SHOWN, Shown, on_terminal
from tests.helpers import run_here

pytestmark = pytest.mark.usefixtures("plain")

CART = """\
def total(items):
    result = 0
    for item in items:
        result += item.price
    return result
"""
EDIT = """\
[EDIT_FILE path="cart.py"]
<<<<<<< SEARCH
        result += item.price
=======
        result += item.price * item.quantity
>>>>>>> REPLACE
[/EDIT_FILE]
"""
LINES = "".join(f"line {number}\n" for number in range(1, 31))
CREATE = f'[CREATE_FILE path="notes.txt"]\n{LINES}[/CREATE_FILE]\n'
FAIL = "[RUN_COMMAND]\necho hello; exit 3\n[/RUN_COMMAND]\n"
PROTECTED = '[CREATE_FILE path=".envrc"]\nuse flake\n[/CREATE_FILE]\n'
DONE = "[DONE]\nAll is well.\n[/DONE]\n"

TASK = "Multiply by the quantity, and say in the notes what was done and why"

# What a terminal may be.
KINDS: dict[str, Mapping[str, str]] = {
    "colours": {},
    "no colours": {"NO_COLOR": "1"},
    "dumb": {"TERM": "dumb"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
}


def run(home: Path, *words: str) -> int:
    return main.run(["--home", str(home), *words])


def drop(home: Path, text: str) -> None:
    part = home / "reply.part"
    part.write_text(text, "utf-8")
    part.rename(home / "inbox" / "reply.txt")


def seen(home: Path, *words: str, columns: int = 80, kind: str = "colours") -> Shown:
    return on_terminal(["--home", str(home), *words], columns, KINDS[kind])


def piped(home: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
    done = run_here("--home", str(home), *words, variables=variables)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def steady(text: str, home: Path) -> str:
    """Return a screen without what is another in each run."""
    text = text.replace(str(home), "HOME")
    text = re.sub(r"\b[0-9a-f]{8}(?=\b|_)", "SESSION_", text)
    text = re.sub(r"\b\d+\.\d s\b", "0.1 s", text)
    text = re.sub(r"\b\d\d:\d\d\b", "12:00", text)
    return re.sub(r"~[\d,]+ tokens", "~N tokens", text)


def begun(home: Path) -> Path:
    """Begin a session, which waits for its first reply, in a home; return the home."""
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "cart.py").write_text(CART, "utf-8")
    piped(home, "new", "--no-wait", "--sandbox", "off", TASK)
    return home


@pytest.fixture(name="waiting")
def _waiting(tmp_path: Path) -> Path:
    """A home with a session that waits for its first reply."""
    return begun(tmp_path / "home")


@pytest.fixture(name="told", scope="module")
def _told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a session in which much has happened, to be looked at only."""
    home = begun(tmp_path_factory.mktemp("told") / "home")
    drop(home, EDIT + FAIL)
    piped(home, "resume", "--once")
    drop(home, PROTECTED)
    piped(home, "resume", "--once")
    session = next((home / "sessions").glob("*.json")).stem
    said = piped(home, "deny", session, "--reason", "not here")
    assert "DENIED '.envrc': you said no: not here\n" in said
    assert "Find another way" not in said
    piped(home, "undo")
    return home


@pytest.mark.with_git
def test_a_diff_in_a_pipe_is_a_patch_whatever_the_pipe_is_said_to_be(waiting: Path) -> None:
    """On Windows a pipe is in the old code page of the system, in which most characters are none."""
    drop(waiting, '[CREATE_FILE path="a.txt"]\n中文 →\n[/CREATE_FILE]\n' + DONE)
    assert run(waiting, "resume", "--once") == 0
    out = io.TextIOWrapper(io.BytesIO(), "cp1252", "replace", newline="\r\n")
    with contextlib.redirect_stdout(out):
        assert run(waiting, "diff") == 0
    data = out.detach()
    assert isinstance(data, io.BytesIO)
    assert "\n+中文 →\n".encode() in data.getvalue()


@pytest.mark.with_git
def test_a_diff_in_numbers_and_in_names(waiting: Path) -> None:
    """As git has them; programs get one object a file. And a session is found by words of its summary."""
    drop(waiting, EDIT + CREATE + "[RUN_COMMAND]\nhead -c9 /dev/zero >a.bin\n[/RUN_COMMAND]\n" + DONE)
    assert run(waiting, "resume", "--once") == 0

    def said(*words: str) -> str:
        return run_here("--home", str(waiting), *words).stdout

    assert said("diff", "--name-only") == "a.bin\ncart.py\nnotes.txt\n"
    assert [line.split() for line in said("diff", "--stat").splitlines()] == [
        ["file", "lines"],
        ["a.bin", "no", "text", "added"],
        ["cart.py", "+1", "-1"],
        ["notes.txt", "+30", "-0", "added"],
        ["3", "files", "changed", "+31", "-1"],
    ]
    told = [json.loads(line) for line in said("diff", "--stat", "--json").splitlines()]
    assert told[1] == {"path": "cart.py", "kind": "modified", "added": 1, "removed": 1}
    session = next((waiting / "sessions").glob("*.json")).stem
    assert session in said("list", "IS", "well", "quantity")
    assert said("list", "nowhere") == ""


# --- changes of files ------------------------------------------------------------------------------


def test_a_terminal_shows_what_each_operation_changed(waiting: Path) -> None:
    """A glance at it: some lines, with one around them, and the numbers."""
    drop(waiting, EDIT + CREATE)
    shown = seen(waiting, "resume", "--once", columns=60, kind="no colours")
    assert steady(shown.text, waiting) == (
        "── Answer 1 ──\n"
        "  ✓ cart.py, line 4  +1 −1\n"
        "      -        result += item.price\n"
        "      +        result += item.price * item.quantity\n"
        "  ✓ notes.txt, new  +30 −0\n"
        + "".join(f"      +line {number}\n" for number in range(1, 13))
        + "      … 18 more lines\n"
        "Turn 1: 2 ok, 2 files changed\n"
        "Request 2, ~N tokens: HOME/outbox/short/SESSION__seq0002.txt\n"
    )


@pytest.mark.with_git
def test_a_turn_that_changed_more_files_than_its_record_names_says_so(waiting: Path) -> None:
    drop(waiting, "[RUN_COMMAND]\nfor n in $(seq 1001); do echo >$n; done\n[/RUN_COMMAND]\n")
    done = run_here("--home", str(waiting), "resume", "--once")
    assert "1 ok, 1000 or more files changed\n" in done.stdout


def test_the_output_of_a_command_is_folded(waiting: Path) -> None:
    """Of one that failed its last lines, below it; of others nothing. `show --output` has all."""
    command = "for n in $(seq 25); do echo line $n; done; printf '10%%\\r100%%\\n> yes\\n? Do it?'"
    fails = f"[RUN_COMMAND]\n({command}; exit 3)\n[/RUN_COMMAND]\n"
    drop(waiting, f"[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n{fails}")
    shown = seen(waiting, "resume", "--once", columns=120, kind="no colours").text
    last = "      line 25\n      100%\n      > yes\n      ? Do it?\n      … 24 more lines (show --output)"
    assert re.search(rf" exit code 3, \d+\.\d s\n{re.escape(last)}\nTurn 1", shown)
    assert "line 24" not in shown
    assert "line 2\\nline 3" in piped(waiting, "show", "--json")


@pytest.mark.with_git
def test_what_is_longer_than_the_screen_goes_to_the_pager(waiting: Path, tmp_path: Path) -> None:
    """`diff`, in the person's own pager, on a terminal; a pipe, and what fits, go as they are."""
    pager, paged = tmp_path / "pager", tmp_path / "paged"
    pager.write_text(f"#!/bin/sh\nexec cat > '{paged}'\n")
    pager.chmod(0o755)
    long = "".join(f"line {number}\n" for number in range(60))
    drop(waiting, f'[CREATE_FILE path="long.txt"]\n{long}[/CREATE_FILE]\n')
    seen(waiting, "resume", "--once")
    words = ["--home", str(waiting)]
    shown = on_terminal([*words, "diff"], 80, {"PAGER": str(pager), "MANPAGER": "no-such-pager"})
    assert "+line 59" not in shown.text
    assert "+line 59" in paged.read_text("utf-8")
    paged.unlink()
    assert "Request 2" in on_terminal([*words, "log"], 80, {"PAGER": str(pager)}).text
    assert not paged.exists()


def test_what_the_model_says_looks_like_nothing_of_ours(waiting: Path) -> None:
    """Each line is marked, on a terminal and in a pipe; Markdown's backslashes are gone."""
    said = "> yes\n? Do it?\nsnake\\_case " + "word " * 20 + "> no\n"
    drop(waiting, f"[MESSAGE]\n{said}[/MESSAGE]\n[DONE]\n{'Well ' * 9}Do it?\n{said}[/DONE]\n")
    shown = seen(waiting, "resume", "--once", columns=40, kind="no colours").text
    assert "│ > yes\n│ ? Do it?\n│ snake_case word" in shown
    assert not re.search("^ {0,2}(>|[?] Do|Do it|word)", shown, re.MULTILINE)
    assert shown.count("│ > yes\n") == 2


def test_a_person_is_not_told_what_the_model_is_to_do(waiting: Path) -> None:
    """The screen says what failed and what happens next; the advice for the model is in the request."""
    drop(waiting, EDIT.replace("item.price\n", "item.cost\n", 1))
    shown = seen(waiting, "resume", "--once", columns=200, kind="no colours").text
    assert "SEARCH not found\n" in shown
    assert "copy its lines" not in shown
    assert "copy its lines" in next((waiting / "outbox").glob("*_seq0002.txt")).read_text("utf-8")
    assert "copy its lines" not in piped(waiting, "show")


@pytest.mark.parametrize(("how", "lines"), [("never", 0), ("short", 12), ("full", 30)])
def test_the_person_says_how_much_of_a_change_is_shown(waiting: Path, how: str, lines: int) -> None:
    """By the option, as by the setting."""
    drop(waiting, CREATE)
    shown = seen(waiting, "resume", "--once", "--diff", how)
    assert shown.text.count("+line ") == lines
    assert ("\x1b[32m      +line 1\x1b[0m" in shown.raw) == bool(lines)


@pytest.mark.parametrize(
    ("words", "variables", "lines"),
    [
        ((), {}, 0),
        ((), {"CODINGAGENT_DIFF": "short"}, 0),
        ((), {"CODINGAGENT_DIFF": "full"}, 30),
        (("--diff", "short"), {}, 12),
        (("--diff", "never"), {"CODINGAGENT_DIFF": "full"}, 0),
    ],
)
@pytest.mark.one_in(2)
def test_a_pipe_gets_a_change_only_if_somebody_asked(
    waiting: Path, words: tuple[str, ...], variables: dict[str, str], lines: int
) -> None:
    """What reads it was written for what there was before; and JSON is never broken by it."""
    drop(waiting, CREATE)
    told = piped(waiting, "resume", "--once", *words, variables=variables)
    assert told.count("         +line ") == lines
    assert ("  +30 -0" in told) == bool(lines)
    drop(waiting, CREATE.replace("line 1\n", "line one\n"))
    told = piped(waiting, "resume", "--once", "--json", *words, variables=variables)
    entries = [json.loads(line) for line in told.splitlines()]
    changes = [entry for entry in entries if entry["kind"] == "file_changed"]
    assert len(changes) == bool(lines)
    if changes:
        assert changes[0]["path"] == "notes.txt"
        assert (changes[0]["added"], changes[0]["removed"]) == (1, 1)
        assert "-line 1\n+line one\n" in changes[0]["difference"]


def test_what_was_shown_for_approval_is_not_shown_again(waiting: Path) -> None:
    """Only what nobody has seen yet is news."""
    drop(waiting, PROTECTED + EDIT)
    words = ["--home", str(waiting), "resume", "--once"]
    shown = on_terminal(words, 60, answers=[("Approve?", "y\r")])
    assert shown.text.count("+use flake") == 1
    assert shown.text.count("+        result += item.price *") == 1
    assert "✓ .envrc, new\n  ✓ cart.py" in shown.text


def test_no_piece_of_a_long_line_looks_like_ours(waiting: Path) -> None:
    """What awaits approval, and what a command prints, is wrapped below its margin."""
    fake = "? nothing awaits approval "
    line = f"rm -rf build; echo '{fake * 6}'"
    drop(waiting, f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n")
    words = ["--home", str(waiting), "resume", "--once"]
    shown = on_terminal(words, 60, answers=[("Approve?", "y\r")])
    below = shown.text.partition("? Run this?\n")[2].partition("why:")[0]
    lines = [each for each in below.split("\n") if "nothing" in each]
    assert len(lines) > 3
    assert all(each.startswith("      ") for each in lines), lines


def test_what_was_approved_beforehand_is_shown(waiting: Path) -> None:
    """With --yes nobody has seen it; nor has who approves it later, on another screen."""
    drop(waiting, PROTECTED)
    assert seen(waiting, "resume", "--once", "--yes").text.count("+use flake") == 1
    drop(waiting, PROTECTED.replace("flake", "nix"))
    assert run(waiting, "resume", "--once") == 3
    session = next((waiting / "sessions").glob("*.json")).stem
    # It then waits for the next answer.
    words, leave = ["--home", str(waiting), "approve", session], [("Paste the answer", "\x04")]
    assert on_terminal(words, 80, KINDS["colours"], leave).text.count("+use nix") == 1


def test_a_change_of_bytes_is_said_in_words(waiting: Path) -> None:
    """And one that can't move the terminal: its control characters are written out."""
    drop(
        waiting,
        '[CREATE_FILE path="a.bin" encoding="base64"]\nAAEC\n[/CREATE_FILE]\n'
        '[CREATE_FILE path="b.txt"]\na\x1b]0;owned\x07b\x1b[2Jc\n[/CREATE_FILE]\n',
    )
    shown = seen(waiting, "resume", "--once")
    assert "      3 bytes that are not text\n" in shown.text
    assert "      +a\\x1b]0;owned\\x07b\\x1b[2Jc\n" in shown.text
    assert "\x1b]0;" not in shown.raw


# --- what is looked at -----------------------------------------------------------------------------


@pytest.mark.with_git
@pytest.mark.one_in(19)
@pytest.mark.parametrize(
    ("words", "columns", "kind"),
    [
        *itertools.product(["list", "show", "config"], [20, 60], KINDS),
        *itertools.product(["list", "show", "config"], [80, 200], ["colours"]),
        *itertools.product(["doctor"], [20, 60], ["colours", "ascii"]),
    ],
)
def test_every_screen_follows_its_terminal(told: Path, words: str, columns: int, kind: str) -> None:
    """Its width, its colours, its characters: nothing is wider, coloured against the wish, or garbled."""
    shown = seen(told, words, columns=columns, kind=kind)
    assert shown.status == 0
    assert shown.width <= columns, shown.text
    assert shown.has_colour == (kind not in ("no colours", "dumb"))
    if kind in ("ascii", "latin-1"):
        assert re.sub(r"\?\s+Approve[^?]*\?", "", shown.text).count("?") == 0
    session = next((told / "sessions").glob("*.json")).stem
    if words in ("list", "show"):
        assert session in shown.text  # it is what one copies


@pytest.mark.with_git
def test_the_list_on_a_terminal_of_60_columns(told: Path) -> None:
    """The state in a word, the time as people say it, and as much of the task as fits."""
    shown = seen(told, "list", columns=60)
    assert steady(shown.text, told) == (
        "session   state               changed   task\n"
        "SESSION_  waiting for answer  just now  Multiply by the qua…\n"
    )
    assert "\x1b[36mwaiting for answer" in shown.raw


@pytest.mark.with_git
def test_the_list_on_a_terminal_of_20_columns(told: Path) -> None:
    """There each session has lines of its own."""
    shown = seen(told, "list", columns=20, kind="ascii")
    assert steady(shown.text, told) == (
        "SESSION_\n  waiting for answer\n  just now\n  Multiply by the\n  quantity, and s...\n"
    )


@pytest.mark.with_git
def test_a_session_as_a_timeline(told: Path) -> None:
    """Turns with what was asked and what came of it, what was taken back, and how to go on."""
    shown = seen(told, "show", columns=72, kind="no colours")
    session = next((told / "sessions").glob("*.json")).stem
    assert steady(shown.text, told) == (
        "session SESSION_: waiting for answer, turn 3\n"
        "\n"
        "session started (policy standard, sandbox off): Multiply by the\n"
        "  quantity, and say in the notes what was done and why  12:00\n"
        "  workspace HOME/workspace\n"
        "\n"
        "answer 1: 2 operations, kept as SESSION__seq0001.txt  12:00\n"
        "  ✓ cart.py, line 4\n"
        "  ✗ echo hello; exit 3  exit code 3, 0.1 s\n"
        "Turn 1: 1 ok, 1 failed, 1 file changed\n"
        "  files changed: cart.py\n"
        "\n"
        "answer 2: 1 operation, kept as SESSION__seq0002.txt  12:00\n"
        "? Approve CREATE_FILE .envrc?\n"
        "  why: '.envrc' is protected: a shell, or what it starts, runs it when\n"
        "    the folder is entered\n"
        "  \"always\" covers: changes of '.envrc'\n"
        "op-1: you said no (`codingagent deny`): not here\n"
        "  ✗ CREATE_FILE: DENIED '.envrc': you said no: not here\n"
        "Turn 2: 1 failed\n"
        "\n"
        "Undid turn 1: restored cart.py  12:00\n"
        "\n"
        "request 3 waits for its answer, since just now:\n"
        "  HOME/outbox/short/SESSION__seq0003.txt\n"
        "  HOME/outbox/SESSION__seq0003.txt\n"
        "Then: codingagent --home HOME resume SESSION_\n"
    )
    in_pipe = piped(told, "show")
    assert "  ok     cart.py, line 4\n" in in_pipe
    assert "  files changed: cart.py\n" in in_pipe
    (document,) = map(json.loads, piped(told, "show", "--json").splitlines())
    ended = [each for each in document["records"] if each["kind"] == "turn_ended"]
    assert [each["changed"] for each in ended] == [["cart.py"], []]
    ran = [each["event"] for each in document["records"] if each["kind"] == "operation_ended"]
    assert ran[1]["exitCode"] == 3
    assert document["sessionId"] == session


def test_a_session_that_awaits_approval_says_how_to_answer(waiting: Path) -> None:
    """Also on the smallest screen the words can be copied."""
    drop(waiting, PROTECTED)
    assert run(waiting, "resume", "--once") == 3
    session = next((waiting / "sessions").glob("*.json")).stem
    shown = seen(waiting, "show", columns=60)
    ours = f"  codingagent --home {waiting}"
    assert f"{ours} approve {session}\n{ours} deny {session}\n" in shown.text
    assert "? Approve CREATE_FILE .envrc?\n" in shown.text


# --- the loop --------------------------------------------------------------------------------------


@pytest.mark.one_in(11)
@pytest.mark.parametrize(("columns", "kind"), [*itertools.product([20, 60, 80, 200], KINDS)])
def test_the_screen_that_waits_gives_the_terminal_back(waiting: Path, columns: int, kind: str) -> None:
    """Ctrl-C: status 130, the cursor shown; the words fit, and nothing is garbled."""
    words = ["--home", str(waiting), "resume"]
    shown = on_terminal(words, columns, KINDS[kind], [("Paste", "\x03")])
    assert shown.status == 130
    assert shown.raw.rfind(HIDDEN) <= shown.raw.rfind(SHOWN)
    assert "stopped; nothing is lost" in " ".join(shown.text.split())
    if kind == "dumb":
        assert "\x1b" not in shown.raw
        return
    assert HIDDEN in shown.raw
    before = shown.text.partition("waiting")[0]
    assert all(len(line) <= columns for line in before.split("\n") if "/" not in line)
    assert shown.has_colour == (kind != "no colours")
    if kind in ("ascii", "latin-1"):
        assert "?" not in shown.text


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("columns", "kind"), [*itertools.product([20, 60], KINDS)])
def test_a_turn_with_a_question_fits_its_terminal(waiting: Path, columns: int, kind: str) -> None:
    """The rule, the difference, the output, the question, the bar: all of a turn."""
    drop(waiting, EDIT + FAIL + PROTECTED + DONE)
    words = ["--home", str(waiting), "resume", "--once"]
    shown = on_terminal(words, columns, KINDS[kind], [("Approve?", "n\r"), ("Reason", "so\r")])
    assert shown.raw.rfind(HIDDEN) <= shown.raw.rfind(SHOWN)
    if kind == "dumb":
        # Nobody can be asked there: plain lines are for logs, too.
        assert shown.status == 3
        assert "\x1b" not in shown.raw
        return
    assert shown.status == 0
    assert "hello" in shown.text
    assert "you said no" in shown.text.replace("\n    ", " ")
    assert shown.has_colour == (kind != "no colours")
    if kind in ("ascii", "latin-1"):
        mark = "\N{REPLACEMENT CHARACTER}"
        assert mark not in shown.text
        assert shown.text.count("?") == 3  # what is asked: the change, and whether to approve it
        assert "FAILED" in shown.text


@pytest.mark.parametrize("columns", [20, 60])
def test_a_command_that_is_interrupted_leaves_the_cursor_shown(waiting: Path, columns: int) -> None:
    """Live output, a spinner, Ctrl-C in the middle of both."""
    drop(waiting, "[RUN_COMMAND]\necho begun; sleep 60\n[/RUN_COMMAND]\n")
    words = ["--home", str(waiting), "resume", "--once"]
    shown = on_terminal(words, columns, answers=[("running", "\x03")])
    assert shown.status == 130
    assert shown.raw.rfind(HIDDEN) < shown.raw.rfind(SHOWN)


def test_a_request_that_is_copied_is_said_in_the_same_words(waiting: Path) -> None:
    """Its size, the tokens as an estimate; how much of the budget it takes where that is nearly all."""
    words = ["--home", str(waiting), "copy"]
    shown = on_terminal(words, variables={"SSH_TTY": "/dev/pts/0"})
    told = piped(waiting, "resume", "--once")
    assert told.startswith("No answer to request 1 in ")
    assert re.search(r"\([\d,]+ characters,\s+~[\d,]+ tokens\): paste it", shown.text)
    size = len(next((waiting / "outbox").glob("*.txt")).read_text("utf-8"))
    budget, words = {"CODINGAGENT_CONTEXT_CHARS": "10000"}, ["say", "y" * (8_500 - size)]
    assert "The request takes" not in piped(waiting, "refresh", variables=budget)
    said = piped(waiting, *words, variables=budget)
    assert re.search(r"\n  The request takes 8\d % of context_chars, 10,000\n", said)


# --- doctor ----------------------------------------------------------------------------------------


def findings(home: Path, *, variables: Mapping[str, str] | None = None) -> dict[str, dict[str, object]]:
    done = run_here("--home", str(home), "doctor", "--json", variables=variables)
    found = {entry["name"]: entry for entry in map(json.loads, done.stdout.splitlines())}
    is_missing = any(each["isNeeded"] and each["holds"] is False for each in found.values())
    assert (done.returncode, done.stderr) == (is_missing, "")
    return found


def test_doctor_tries_out_this_very_inbox_and_leaves_nothing(waiting: Path) -> None:
    """A watch is believed by what it tells of a file there, and the file is gone after."""
    before = sorted(path.name for path in waiting.rglob("*"))
    found = findings(waiting, variables={"EDITOR": sys.executable})
    assert found["inbox"]["holds"] is True
    assert "is watched" in str(found["inbox"]["detail"])
    assert sorted(path.name for path in waiting.rglob("*")) == before
    assert found["editor"]["holds"] is True
    assert str(waiting) in str(found["home"]["detail"])
    assert str(waiting / "workspace") in str(found["workspace"]["detail"])


def test_doctor_names_the_remedy_for_what_is_missing(waiting: Path) -> None:
    """A finding without a remedy helps nobody."""
    nothing = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_TTY": "", "SSH_CONNECTION": ""}
    found = findings(waiting, variables={**nothing, "EDITOR": "no-such-editor -w", "VISUAL": ""})
    assert found["editor"]["holds"] is False
    assert "set EDITOR" in str(found["editor"]["remedy"])
    if sys.platform == "linux" and not found["clipboard"]["holds"]:
        assert "xclip" in str(found["clipboard"]["remedy"])
    found = findings(waiting, variables={**nothing, "SSH_TTY": "/dev/pts/0"})
    assert "OSC 52" in str(found["clipboard"]["detail"])


def test_doctor_tells_of_settings_that_can_not_be_used(waiting: Path) -> None:
    """It is what one calls when nothing else goes."""
    found = findings(waiting, variables={"CODINGAGENT_DIFF": "purple"})
    assert found["home"]["holds"] is False
    assert "diff is 'purple'; it must be one of never, short, full" in str(found["home"]["detail"])


@pytest.mark.deep
def test_doctor_says_which_characters_the_terminal_can_show(waiting: Path) -> None:
    text = seen(waiting, "doctor", columns=100).text
    assert "✓ encoding: utf-8 on the screen\n" in text
    text = seen(waiting, "doctor", columns=100, kind="ascii").text
    assert "note          encoding: ascii on the screen; set LANG=C.UTF-8 to see all characters\n" in text


def test_what_the_model_is_to_do_is_not_on_the_persons_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor in the log; the request has it, also where other notes stand beside it."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "x") == 0
    drop(home, '[CREATE_FILE path="a.py" new="1"]\ndef f(:\n[/CREATE_FILE]\n')
    capsys.readouterr()
    assert run(home, "resume", "--once") == 0
    assert run(home, "log") == 0
    said = capsys.readouterr().out
    assert said.count("note: it can't be parsed, line 1") == 2
    assert "what follows in your answer" not in said
    told = next((home / "outbox").glob("*_seq0002.txt")).read_text("utf-8")
    assert ": correct it, unless what follows in your answer does" in told
