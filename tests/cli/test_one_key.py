"""A carry is one key each way: keys are counted on a real terminal, with a clipboard that is a program."""

import os
import signal
import sys
from pathlib import Path

import pytest

from codingagent.prompt import tokens
from tests.cli.test_amend import Terminal, holding, request, terminal
from tests.cli.test_cli import drop, run
from tests.cli.test_commit import DONE, EDIT, Repository
from tests.cli.test_copy_paste import CLIPBOARD
from tests.cli.test_waiting_line import MAKE, PROMPT, answer, confirm, enter
from tests.helpers import HANG_S, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is Linux's xclip"),
    pytest.mark.usefixtures("plain"),
]


@pytest.fixture(name="clipboard")
def _clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program, file = tmp_path / "bin" / "xclip", tmp_path / "clipboard"
    program.parent.mkdir()
    program.write_text(CLIPBOARD)
    program.chmod(0o755)
    file.touch()
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    for name, value in (("DISPLAY", ":99"), ("CLIPBOARD_FILE", str(file)), ("CODINGAGENT_CLIPBOARD", "off")):
        monkeypatch.setenv(name, value)
    for name in ("WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    return file


def copied(clipboard: Path, part: str) -> None:
    wait_until(lambda: part in clipboard.read_text("utf-8"))


@pytest.mark.with_git
@pytest.mark.parametrize("setting", ["off", "auto"])
def test_a_task_takes_four_keys_from_new_to_commit(
    clipboard: Path, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the chat's own copy and paste; where the clipboard is watched it takes two."""
    for name, value in (("CLIPBOARD", setting), ("SANDBOX", "off"), ("CONTEXT", "0")):
        monkeypatch.setenv(f"CODINGAGENT_{name}", value)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "A")
        monkeypatch.setenv(f"{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_EDITOR", "true")
    repository = Repository(tmp_path / "project")
    repository.first()
    home, keys = repository.root / ".codingagent", list[str]()

    def press(asked: Terminal, key: str) -> None:
        keys.append(key)
        confirm(asked) if key == "\r" else asked.types(key)

    with terminal(home, "new", "--workspace", str(repository.root), "Change g to G") as asked:
        asked.says(PROMPT)
        if setting == "off":
            press(asked, "\r")
        copied(clipboard, "=== PROTOCOL ===")
        clipboard.write_text(answer(home, 1, EDIT.format("cart.py", "g", "G") + DONE), "utf-8")
        if setting == "off":
            press(asked, "\r")
        asked.says("1 commit")
        asked.says("Type what to do next")
        press(asked, "1")
        press(asked, "\r")
        asked.says("committed 1 file on main")
    assert len(keys) == (4 if setting == "off" else 2)
    assert repository.committed() == {"M\tcart.py"}


def test_what_enter_does_with_the_clipboard(clipboard: Path, tmp_path: Path) -> None:
    """It takes an answer to this request, puts the request there, and overwrites nothing that may be one."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    clipboard.write_text("what somebody copied before", "utf-8")
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        confirm(asked)
        copied(clipboard, "Sequence: 1\n")
        asked.says(PROMPT, 2)
        clipboard.write_text("I would say: no.", "utf-8")
        confirm(asked)
        asked.says("the clipboard has no answer to request 1")
        assert clipboard.read_text("utf-8") == "I would say: no."
        enter(asked, "/copy")
        copied(clipboard, "Sequence: 1\n")
        asked.says(PROMPT, 4)
        confirm(asked)  # nothing was copied since
        asked.says("is on the clipboard", 3)
        first = answer(home, 1, MAKE)
        clipboard.write_text(first, "utf-8")
        asked.says(PROMPT, 5)
        confirm(asked)
        asked.says("Request 2")
        asked.says(PROMPT, 6)
        clipboard.write_text(first.replace("notes", "other"), "utf-8")
        confirm(asked)  # an answer to another request is none
        copied(clipboard, "Sequence: 2\n")
        asked.says(PROMPT, 7)
        clipboard.write_text('[CREATE_FILE path="b.txt"]\nhi\n[/CREATE_FILE]\n', "utf-8")
        confirm(asked)  # without a header the key says it
        asked.says("Request 3")
        asked.says(PROMPT, 8)
        cut = MAKE.replace("notes", "c").partition("dich")[0]
        clipboard.write_text(answer(home, 3, cut).removesuffix("[END]\n"), "utf-8")
        confirm(asked)  # half of one, too
        asked.says("Request 4")
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    assert (home / "workspace" / "b.txt").read_text("utf-8") == "hi\n"


def test_a_command_of_the_persons_runs_and_its_output_is_offered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        for number, (line, reply) in enumerate(
            (("echo $((6*7)) >&2; exit 3", "y"), ("echo 5$((4+4))", "n")), 1
        ):
            enter(asked, f"/run {line}")
            asked.says("send this to the chat", number)
            asked.says("[y]es, [n]o:", number)
            asked.types(f"{reply}\r")
            asked.says(PROMPT, number + 1)
        asked.says("\n58\n")
        enter(asked, "/run sudo true")
        asked.says("Command 'sudo' is blocked")
        asked.says(PROMPT, 4)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    told = request(home)
    assert "`echo $((6*7)) >&2; exit 3` of mine, exit code 3, printed:\n42\n" in told
    assert "echo 5" not in told


def test_a_long_task_goes_on_in_a_new_chat(clipboard: Path, tmp_path: Path) -> None:
    """The whole request has the goal, what was done and what failed, in at most 3,000 tokens."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "the goal of it all") == 0
    failing = EDIT.format("notes.txt", "nothing like it", "x")
    made = [
        MAKE.replace("notes", f"notes{n}") + failing + f"[MESSAGE]\n{n} {'words ' * 400}\n[/MESSAGE]\n"
        for n in range(14)
    ]
    for reply in made:
        drop(home, reply)
        assert run(home, "resume", "--once") == 0
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        enter(asked, "the chat says that it is full")
        asked.says("go on in a new chat?")
        asked.says("Its number")
        asked.types("y\r")
        asked.says("open a new chat and paste it there")
        asked.says(PROMPT, 2)
        enter(asked, "/quit")
        assert asked.process.wait(HANG_S) == 0
    text = clipboard.read_text("utf-8")
    assert "Task: the goal of it all\n" in text
    assert (
        "\n  answer 13 changed notes12.txt; failed: EDIT_FILE notes.txt: File 'notes.txt' not found" in text
    )
    assert "it is full" not in text
    assert tokens.estimate(text.partition("=== PROMPT ===")[2]) <= 3_000


@pytest.mark.parametrize("rest", ["[DONE]\nall of it\n[/DONE]\n[END]\n", ""])
def test_an_answer_that_is_saved_in_steps_is_one(tmp_path: Path, rest: str) -> None:
    """One without its end waits for the rest, for a while; that is said."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    with holding(home) as holder, (home / "inbox" / "saved.txt").open("a", encoding="utf-8") as file:
        file.write(answer(home, 1, MAKE).removesuffix("[END]\n"))
        file.close()
        holder.says("saved.txt has no [END] yet")
        assert not (home / "workspace" / "notes.txt").exists()
        if rest:
            with (home / "inbox" / "saved.txt").open("a", encoding="utf-8") as more:
                more.write(rest)
        holder.says("Done: all of it" if rest else "Request 2")
    assert (home / "workspace" / "notes.txt").exists()
    assert len([*(home / "inbox" / "processed").iterdir()]) == 1


def test_resume_once_waits_for_the_end_of_an_answer(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    saved, text = home / "inbox" / "saved.txt", answer(home, 1, MAKE)
    saved.write_text(text.removesuffix("[END]\n"), "utf-8")
    with terminal(home, "resume", "--once") as asked:
        asked.says("saved.txt has no [END] yet")
        with saved.open("a", encoding="utf-8") as more:
            more.write("[DONE]\nall of it\n[/DONE]\n[END]\n")
        asked.says("Done: all of it")
        assert asked.process.wait(HANG_S) == 0


@pytest.mark.parametrize(
    "read", ["CONVENTIONS.md", "[CONVENTIONS.md, 'a/b.md']", "\n  - CONVENTIONS.md\n  - a/b.md"]
)
def test_what_aider_was_set_to_read_is_offered(tmp_path: Path, read: str) -> None:
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    conf = tmp_path / "home" / "workspace" / ".aider.conf.yml"
    conf.write_text(f"model: x\nread: {read}\nauto-commits: false\n", "utf-8")
    with terminal(tmp_path / "home", "new", "--sandbox", "off", "a task") as asked:
        more = " a/b.md" * ("a/b" in read)
        asked.says(f".aider.conf.yml reads more files: /attach CONVENTIONS.md{more} adds them")


def test_an_interrupt_stops_the_command_and_stays(tmp_path: Path) -> None:
    """The rest of the answer is done, the request tells of it; a second one leaves."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    begun = home / "workspace" / "begun"
    command = f"[RUN_COMMAND]\ntouch {begun}; exec sleep 60\n[/RUN_COMMAND]\n"
    with terminal(home, "resume") as asked:
        asked.says(PROMPT)
        drop(home, answer(home, 1, command + MAKE))
        wait_until(begun.exists)
        os.killpg(asked.process.pid, signal.SIGINT)
        asked.says("stopped; Ctrl-C again leaves")
        asked.says("Request 2")
        asked.says(PROMPT, 2)
        asked.types("\x03")
        assert asked.process.wait(HANG_S) == 130
    assert (home / "workspace" / "notes.txt").exists()
    assert "interrupted: it may have run in part" in request(home, 2)
