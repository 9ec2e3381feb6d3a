"""Errors on the command line: what is wrong, in words of ours, with advice that leads on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.cli import main
from codingagent.model.settings import Settings
from tests import warm
from tests.cli.terminals import on_terminal
from tests.cli.test_cli import run, session_of
from tests.helpers import REPOSITORY, command_line, plain_session
from tests.rows import each_row


@each_row(
    ("words", "said"),
    [
        (
            "new --check",
            "--check needs a value: --check COMMAND; `codingagent new --help` shows how it is used",
        ),
        ("new --check --no-wait x", "--check needs a value: --check COMMAND;"),
        ("run x.json --workspace", "--workspace needs a value: --workspace DIR;"),
        ("deny --reason", "--reason needs a value: --reason TEXT;"),
        ("resume --accept --once", "--accept needs a value: --accept FILE;"),
        ("--home", "--home needs a value;"),
        ("new --here=x", "--here takes no value;"),
        ("diff --turn x", "--turn is 'x'; it must be a whole number, 1 or more"),
        ("diff --turn 0", "--turn is 0; it must be a whole number, 1 or more"),
        ("copy --split x", "--split is 'x'; it must be a whole number"),
        ("serve --timeout x", "--timeout is 'x'; it must be a number"),
        ("serve --vsock -1", "--vsock is -1; it must be a whole number from 0 to 4294967294"),
        ("call ping --timeout 0", "--timeout: 0 is not more than 0 and at most 2000000 seconds"),
        ("new --protocol xml x", "--protocol is 'xml'; it must be one of tags, json"),
        ("schema it", "WHAT is 'it'; it must be one of operations, events, settings"),
        ("run --workspace .", "FILE is missing; for example: codingagent run operations.json "),
        ("call", "METHOD is missing; for example: codingagent call ping "),
        ("diff a b c", "unexpected argument: b c; `codingagent diff --help` shows"),
        ("show --turns 1", "there is no option --turns; did you mean --turn?"),
    ],
)
def test_wrong_words_are_told_in_words_of_ours(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never in those of a library; nothing is made, and nothing is taken for a value that is none."""
    home = [] if words.startswith("--home") else ["--home", str(tmp_path / "home")]
    assert main.run([*home, *words.split(" ")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"codingagent: {said}")
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_option_may_have_a_value_that_looks_like_one(tmp_path: Path) -> None:
    """Said with `=` it is meant; and what is no option of the command is a value."""
    words = ["--home", str(tmp_path), "new", "--no-wait", "--check=--yes", "x"]
    assert main.run(words) == 0
    assert main.run([*words[:4], "--check", "--version", "y"]) == 0


def test_advice_on_a_workspace_that_is_the_home_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of `run`, which has no --here."""
    monkeypatch.chdir(tmp_path)
    text = '{"protocolVersion": "1.0", "operations": [{"type": "createFile", "path": "a", "content": ""}]}'
    Path("x.json").write_text(text, "utf-8")
    command = ["run", "x.json", "--workspace", "."]
    assert main.run(command) == 2
    assert "`codingagent --home .codingagent COMMAND`" in capfd.readouterr().err
    assert main.run(["--home", ".codingagent", *command]) == 0
    assert Path("a").exists()
    assert {path.name for path in tmp_path.iterdir()} == {".codingagent", "a", "x.json"}


@pytest.mark.parametrize("columns", [24, 40, 80])
def test_an_error_is_broken_between_words(tmp_path: Path, columns: int) -> None:
    """As wide as the terminal; what one copies stays in one piece where it fits."""
    value = "word " * 20 + "end"
    shown = on_terminal(["--home", str(tmp_path), "diff", "--turn", value], columns)
    assert shown.status == 2
    lines = shown.text.rstrip("\n").split("\n")
    assert max(map(len, lines)) <= columns
    said = " ".join(line.strip() for line in lines)
    assert said == f"codingagent: --turn is '{value}'; it must be a whole number, 1 or more"
    shown = on_terminal(["--home", str(tmp_path), "list"], columns)
    assert "new`" in "".join(shown.text.split())


@pytest.mark.one_in(2)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk is full here")
@pytest.mark.parametrize(
    "words", [["new", "--no-wait", "x"], ["new", "x"], ["list"], ["show"], ["help", "safety"]]
)
def test_output_that_can_not_be_written_is_an_error(tmp_path: Path, words: list[str]) -> None:
    """A full disk below a redirection; a reader that went away is none."""
    assert run(tmp_path, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    command = ["--home", str(tmp_path), *words]
    with Path("/dev/full").open("wb") as full:
        done = warm.run_command(*command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "standard output can't be written: No space left on device; " in done.stderr
    if "x" not in words:
        with warm.start_command(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as piped:
            assert piped.stdout is not None
            piped.stdout.close()
            assert piped.stderr is not None
            assert piped.stderr.read() == b""


def test_a_damaged_vault_hides_one_session_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are listed, and what their requests carried out."""
    for task in ("first", "second"):
        assert run(tmp_path, "new", "--no-wait", "--sandbox", "off", task) == 0
    damaged = session_of(tmp_path)
    (tmp_path / "sessions" / damaged / "vault.json").write_text("{")
    for words in (["list"], ["log", "--egress"]):
        capsys.readouterr()
        assert run(tmp_path, *words) == 0
        out, err = capsys.readouterr()
        assert damaged not in out
        assert len(out.splitlines()) >= 1
        assert f"{damaged} is not shown" in err
        assert "vault.json is damaged" in err


@pytest.mark.one_in(3)
@pytest.mark.parametrize("words", ["list", "show ID", "log ID", "diff ID", "resume ID", "undo ID"])
def test_a_record_of_a_newer_version_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """It is not damaged, and moving it away would be bad advice alone."""
    assert run(tmp_path, "new", "--no-wait", "--sandbox", "off", "a task") == 0
    session = session_of(tmp_path)
    with (tmp_path / "sessions" / session / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps({"kind": "thought", "at": "2030-01-01T00:00:00Z"}) + "\n")
    capsys.readouterr()
    assert run(tmp_path, *words.replace("ID", session).split()) == (0 if words == "list" else 1)
    err = capsys.readouterr().err
    assert "was written by a newer codingagent (line" in err
    assert err.count("\n") == 1


def test_a_policy_beside_the_workspace_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name may lead there through the folder above; no link in the workspace may."""
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "p.toml").write_text('extends = "restrictive"\n')
    (tmp_path / "work" / "p.toml").symlink_to("../p.toml")
    for folder, name, status in (
        ("work", "../p.toml", 0),
        ("work/sub", "../../p.toml", 0),
        ("work", "p.toml", 2),
        ("work", "../work/p.toml", 2),
    ):
        monkeypatch.chdir(tmp_path / folder)
        words = ("new", "--no-wait", "--workspace", str(tmp_path / "work"), "--policy", name, "x")
        assert run(tmp_path / "home", *words) == status


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the names of files are in UTF-8")
def test_a_locale_that_cannot_write_a_name_costs_one_block(tmp_path: Path) -> None:
    """Names of files are in the locale's encoding: one that it lacks is refused, and the turn goes on."""
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": str(tmp_path)}

    def run_there(*words: str) -> "subprocess.CompletedProcess[str]":
        line = [sys.executable, "-m", "codingagent", "--home", str(tmp_path / "h"), *words]
        env = {**os.environ, **variables}
        return subprocess.run(line, env=env, capture_output=True, text=True, check=False)

    assert run_there("new", "--no-wait", "--sandbox", "off", "task").returncode == 0
    made = '[CREATE_FILE path="{}"]\nx\n[/CREATE_FILE]\n'
    answer = f"{made.format('新.txt')}{made.format('a.txt')}[RUN_COMMAND]\ntouch b\n[/RUN_COMMAND]\n"
    (tmp_path / "h" / "inbox" / "a.txt").write_text(answer, "utf-8")
    done = run_there("resume", "--once")
    assert done.returncode == 0, done.stderr
    assert "in this locale" in done.stdout
    assert sorted(each.name for each in (tmp_path / "h" / "workspace").iterdir()) == ["a.txt", "b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_file_of_a_home_that_is_a_pipe_or_no_text_holds_nothing_up(tmp_path: Path) -> None:
    """Each is as good as damaged: nothing waits for its end, no command ends with a traceback."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.answer('[READ_FILE path="a"]\n')
    kept, said = tmp_path / "sessions", live.session_id
    pipes = kept / f"{said}.json", kept / said / "vault.json"
    for path in (*pipes, *(tmp_path / "inbox" / "processed").iterdir()):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    (kept / ".home").write_bytes(b"\xff\xfe\n")
    for words in (["show"], ["secrets"], ["resume", "--once"], ["undo"], ["list"]):
        done = command_line(tmp_path, *words)
        assert done.returncode in (0, 1), done.stderr
    assert "is damaged: move it away" in command_line(tmp_path, "secrets").stderr
    pipes[1].unlink()
    assert command_line(tmp_path, "secrets", "hide", "Projekt \udcff").returncode == 0


def test_a_text_on_stdin_is_utf8_in_each_locale(tmp_path: Path) -> None:
    """Python reads the code page of Windows there: another text than the one in the files was hidden."""
    with plain_session(tmp_path, settings=Settings(sandbox="off")):
        pass
    words = (sys.executable, "-m", "codingagent", "--home", str(tmp_path), "secrets", "hide", "-")
    done = subprocess.run(
        words,
        cwd=tmp_path,
        input="gr\u00fcner Tee\n".encode(),
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [kept] = (tmp_path / "sessions").glob("*/secrets.json")
    assert "gr\u00fcner Tee" in kept.read_text("utf-8")
