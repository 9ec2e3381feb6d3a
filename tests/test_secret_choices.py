"""What the person decides about secrets: globs, secret files, commands, and programs."""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent import Space
from codingagent.agent import factory
from codingagent.errors import UsageError
from codingagent.model.approval import Answer, Decision, Question
from codingagent.model.journal_entries import ApprovalAsked
from codingagent.model.notices import OutputCame, Remark
from codingagent.model.settings import Settings
from codingagent.protocols.json.wire import ReadFileEvent
from codingagent.storage import homes
from tests.cli.terminals import on_terminal
from tests.cli.test_runs import Caller
from tests.helpers import (
    LiveSession,
    Told,
    command_line,
    conversation_in,
    live_session,
    plain_session,
    watcher,
)
from tests.hosting import served
from tests.sandboxes import needs_bwrap
from tests.test_secrets import token

pytestmark = pytest.mark.usefixtures("plain")

NAME = re.compile(r"SECRET-[A-Z0-9]+-[A-Z0-9]{6}")
PIN = "hunter4Blue!x"
CAT = {"type": "shell", "command": "cat app.py; cat app.py >&2"}


@contextlib.contextmanager
def asked(
    root: Path, decision: Decision | None, questions: list[Question], *, approves_all: bool = False
) -> Iterator[LiveSession]:
    """Yield a session with a secret file, and a person who answers each question alike."""
    (root / "workspace").mkdir(parents=True, exist_ok=True)
    (root / "workspace" / ".env").write_text(f"PIN={PIN}\n", "utf-8")
    home, settings = homes.Home.at(root, create=True), Settings(sandbox="off")
    session = factory.start_session(home, root / "workspace", "the task", settings)
    notices: list[Told] = []

    def ask(question: ApprovalAsked) -> Answer | None:
        questions.append(question.question)
        return None if decision is None else Answer(decision)

    person = watcher(notices, ask, approves_all)
    with conversation_in(home, session, settings, person) as conversation:
        live = LiveSession(home, session.session_id, conversation)
        live.notices = notices
        conversation.recover()
        yield live


@pytest.mark.parametrize("decision", ["yes", "no", None])
def test_the_person_is_asked_before_the_chat_sees_a_file_of_secrets(
    tmp_path: Path, decision: Decision | None
) -> None:
    """Once for each file; without a yes, and without anybody to ask, it sees names."""
    questions: list[Question] = []
    with asked(tmp_path, decision, questions) as live:
        for number, path in enumerate((".e*v", ".env", "missing.env")):
            live.answer(f'{number}\n[READ_FILE path="{path}"]\n')
            if path != "missing.env":
                assert (PIN in live.contents()) == (decision == "yes")
                assert "PIN=" in live.contents()
        remarks = [each.text for each in live.notices if isinstance(each, Remark)]
    assert {each.subject for each in questions} == {".env"}
    assert len(questions) == (2 if decision is None else 1)
    assert any("codingagent secrets allow .env" in each for each in remarks) == (decision is None)


@pytest.mark.with_git
def test_a_yes_for_one_file_shows_no_value_of_another(tmp_path: Path) -> None:
    """A command can copy into a file that may be shown, or make one that has the name of a glob."""
    questions: list[Question] = []
    (tmp_path / "workspace/**").mkdir(parents=True)
    (tmp_path / "workspace/**/.env").write_text("A=1\n", "utf-8")
    (tmp_path / "workspace/prod.env").write_text(f"A={token('prod')}\n", "utf-8")
    with asked(tmp_path, "yes", questions) as live:
        live.answer('[READ_FILE path="**/.env"]\n')
        live.answer('[READ_FILE path=".env"]\n')
        assert PIN in live.contents()
        live.answer("[RUN_COMMAND]\ncat prod.env >> .env\n[/RUN_COMMAND]\n")
        live.answer('again\n[READ_FILE path=".env"]\n')
        assert PIN in live.contents()
        assert token("prod") not in live.request()
    assert [each.subject for each in questions] == [".env", ".env"]


def test_a_yes_in_advance_shows_no_values(tmp_path: Path) -> None:
    """`--yes` approves what an answer does, not what the chat sees."""
    questions: list[Question] = []
    with asked(tmp_path, "yes", questions, approves_all=True) as live:
        live.answer('[READ_FILE path=".env"]\n')
        assert PIN not in live.contents()
        assert any("allow .env" in each.text for each in live.notices if isinstance(each, Remark))
    assert questions == []


def test_no_part_of_a_value_comes_live(tmp_path: Path) -> None:
    """Output comes in pieces that may end inside a value."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "log.txt").write_text(f"{token('live')}\n" * 4_000, "utf-8")
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.answer("[RUN_COMMAND]\ncat log.txt\n[/RUN_COMMAND]\n")
        came = [each.text for each in live.notices if isinstance(each, OutputCame)]
    assert len(came) > 1
    assert token("live")[:12] not in "".join(came)
    assert token("live")[-12:] not in "".join(came)


def test_a_glob_allows_its_files(tmp_path: Path) -> None:
    """And says what it allows."""
    workspace = tmp_path / "workspace"
    (workspace / "a" / "b").mkdir(parents=True)
    for path in (".env", "a/test.env", "a/b/test.env"):
        (workspace / path).write_text(f"PIN={PIN}{path}\n", "utf-8")
    with plain_session(tmp_path) as live:
        live.answer('[READ_FILE path="**/*.env"]\n')
        refused = command_line(tmp_path, "secrets", "allow", "*.pem")
        assert (refused.returncode, refused.stdout) == (2, "")
        told = command_line(tmp_path, "secrets", "allow", "a/**").stdout
        assert "a/test.env" in told
        assert "a/b/test.env" in told
        live.answer('Again:\n[READ_FILE path="**/*.env"]\n')
        shown = [p for p in (".env", "a/test.env", "a/b/test.env") if f"{PIN}{p}\n" in live.contents()]
        assert shown == ["a/test.env", "a/b/test.env"]
        command_line(tmp_path, "secrets", "hide", "a/**")
        live.answer('And again:\n[READ_FILE path="**/*.env"]\n')
        assert PIN not in live.contents()


@pytest.mark.with_git
def test_commands_see_masked_files_empty(tmp_path: Path) -> None:
    """Also those that git ignores, in folders, and behind links; without a sandbox it refuses to work."""
    needs_bwrap()
    workspace = tmp_path / "workspace"
    (workspace / "conf").mkdir(parents=True)
    (workspace / ".gitignore").write_text("*.env\n", "utf-8")
    (workspace / "conf" / "site.env").write_text(f"PIN={PIN}\n", "utf-8")
    (workspace / "real.txt").write_text(f"PIN={PIN}\n", "utf-8")
    (workspace / ".env").symlink_to("real.txt")
    settings = Settings(sandbox="require", secrets="mask")
    with live_session(tmp_path, settings=settings) as live:
        line = "base64 conf/site.env .env real.txt; wc -c conf/site.env real.txt; echo x >> conf/site.env"
        assert "secret files look empty" in live.request()
        told = live.answer(f"[RUN_COMMAND]\n{line} || echo kept\n[/RUN_COMMAND]\n")
        assert "0 total" in told
        assert "kept" in told
        live.answer('[READ_FILE path="conf/site.env"]\n', "read.txt")
        assert NAME.search(live.contents())
    assert (workspace / "conf" / "site.env").read_text("utf-8") == f"PIN={PIN}\n"
    done = command_line(tmp_path, "new", "x", "--no-wait", "--secrets", "mask", "--sandbox", "off")
    assert done.returncode == 2
    assert "leave out --sandbox off" in done.stderr


def test_sixty_files_are_written_back_to_the_byte(tmp_path: Path) -> None:
    """Files of many forms, each written anew from what the chat saw of it, in a file of its own name."""
    forms = (
        ("f.py", "KEY = '{}'\nprint(KEY)\n"),
        ("f.yml", "key: {}\nother: 1\n"),
        ("f.json", '[{"token": "{}"}]\n'),
        ("f.ini", "[a]\r\ntoken={}\r\nB=2\r\n"),
        ("f.uri", "https://user:{}@example.org/x\n"),
        ("f.txt", "# {} and {}\n\n\nend\n"),
        ("f.xml", "<token>{}</token>\n"),
        ("f.toml", '[a]\ntoken = "{}"\n'),
        ("f.env", "export TOKEN={}\nMODE=1\n"),
        ("f.sh", "curl -H 'Authorization: Bearer {}'\n"),
    )
    workspace, written = tmp_path / "workspace", dict[str, str]()
    workspace.mkdir(parents=True)
    for number in range(60):
        name, form = forms[number % len(forms)]
        path = f"{number:02}/{name}"
        (workspace / path).parent.mkdir()
        written[path] = form.replace("{}", token(f"{number}"))
        (workspace / path).write_bytes(written[path].encode())
    with plain_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.answer("".join(f'[READ_FILE path="{path}"]\n' for path in written))
        shown = _files_in(live)
        assert shown.keys() == written.keys()
        assert not any(token(f"{number}") in live.request() for number in range(60))
        blocks = (
            f'[CREATE_FILE path="{path}" overwrite="true"]\n\n{text}\n[/CREATE_FILE]\n'
            for path, text in shown.items()
        )
        live.answer("".join(blocks), "back.txt")
        assert live.results().count("[OK]") == len(written)
    for path, text in written.items():
        end = "\r\n" if "\r\n" in text else "\n"
        assert (workspace / path).read_bytes() == f"{end}{text}".encode()


def _files_in(live: LiveSession) -> dict[str, str]:
    """Return the files that the latest request shows, without their last line ends."""
    text = live.request().partition("## Requested File Contents\n")[2]
    return dict(re.findall(r"^--- (\d\d/\S+) ---\n(.*?)\n--- end \1 ---$", text, re.MULTILINE | re.DOTALL))


# --- programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_space_hides_what_it_is_asked_to(tmp_path: Path, is_kept: bool) -> None:
    """Names go out, values come back, also in a later run; a command is given none."""
    project, home = tmp_path / "project", tmp_path / "home" if is_kept else None
    project.mkdir()
    (project / "app.py").write_text(f"KEY = '{token('space')}'\n", "utf-8")
    read = {"type": "readFile", "path": "app.py"}
    with Space(project, sandbox="off", home=home) as plain:
        (event,) = plain.run(operations=[read]).events
        assert isinstance(event, ReadFileEvent)
        assert token("space") in (event.content or "")
    with Space(project, sandbox="off", home=home, secrets="redact") as space:
        run = space.run(operations=[read])
        assert token("space") not in run.to_json()
        (name,) = set(NAME.findall(run.to_json()))
        if not is_kept:
            space.run(
                operations=[
                    {"type": "createFile", "path": "app.py", "overwrite": True, "content": f"A = '{name}'\n"}
                ]
            )
    if is_kept:
        with Space(project, sandbox="off", home=home, secrets="redact") as again:
            again.run(
                operations=[
                    {"type": "createFile", "path": "app.py", "overwrite": True, "content": f"A = '{name}'\n"}
                ]
            )
            told = again.run(operations=[{"type": "shell", "command": f"echo {name} > x"}])
            assert token("space") not in again.run(operations=[CAT]).to_json()
            asks = again.run(operations=[{"type": "createFile", "path": "b", "content": name}])
            assert "commands are not given the values of placeholders" in told.to_json()
            assert asks.pending_approval is not None
            assert token("space") not in asks.to_json()
        assert not (project / "x").exists()
        listed = command_line(tmp_path / "home", "secrets", "--session", run.run_id).stdout
        assert listed.startswith(name)
    assert (project / "app.py").read_text("utf-8") == f"A = '{token('space')}'\n"
    with pytest.raises(UsageError, match="secrets"):
        Space(project, secrets="some")


def test_run_hides_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default of a session's setting is not meant for programs; a choice of the person's is."""
    caller = Caller(tmp_path / "home", capsys)
    caller.workspace.mkdir(parents=True)
    (caller.workspace / "app.py").write_text(f"KEY = '{token('run')}'\n", "utf-8")
    message = caller.message({"type": "readFile", "path": "app.py"})
    shows = {"": True, "--secrets=redact": False, "--secrets=off": True}
    for option, is_shown in shows.items():
        done = command_line(caller.home, "run", message, *filter(None, [option]))
        assert (token("run") in done.stdout) == is_shown, option
    monkeypatch.setenv("CODINGAGENT_SECRETS", "redact")
    assert token("run") not in command_line(caller.home, "run", message).stdout


def test_serve_hides_if_asked(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "app.py").write_text(f"KEY = '{token('served')}'\n", "utf-8")
    with (
        served(tmp_path, "--secrets", "redact", "--sandbox", "off", kind="stdio") as server,
        server.connect() as host,
    ):
        told = [host.call("read_file", path="app.py"), host.call("exec", cmd="cat app.py; cat app.py >&2")]
        assert token("served") not in json.dumps(told)
        (name,) = set(NAME.findall(json.dumps(told)))
        assert host.call("write_file", path="app.py", content=f"B = '{name}'\n") == {"success": True}
        assert "a placeholder" in host.call("exec", cmd=f"echo {name}")["stderr"]
        assert "needs approval" in host.call("write_file", path="b.py", content=name)["message"]
    assert (tmp_path / "root" / "app.py").read_text("utf-8") == f"B = '{token('served')}'\n"


def test_there_is_no_mode_that_only_warns(tmp_path: Path) -> None:
    """Settings of an earlier time get the usual error, which names what there is."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "codingagent.toml").write_text('secrets = "warn"\n', "utf-8")
    for words in (("new", "x", "--no-wait"), ("run", "x", "--secrets", "warn")):
        done = command_line(tmp_path, *words)
        assert done.returncode == 2
        assert re.search(r"mask.*redact.*off", done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such terminals")
def test_the_question_is_asked_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / ".env").write_text(f"PIN={PIN}\n", "utf-8")
    command_line(tmp_path, "new", "x", "--no-wait")
    (tmp_path / "inbox" / "a.txt").write_text('[READ_FILE path=".env"]\n', "utf-8")
    words = ("--home", str(tmp_path), "resume", "--once")
    shown = on_terminal(words, answers=[("Send them?", "y\r")])
    assert "Send the secret values in" in shown.text
    assert "Reason for the model" not in shown.text
    assert shown.status == 0
    (request,) = (tmp_path / "outbox").glob("*seq0002.txt")
    assert f"PIN={PIN}" in request.read_text("utf-8")
