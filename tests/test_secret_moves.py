"""A value that requests hide is never moved, written elsewhere or overwritten unasked."""

import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codingagent import Space
from codingagent.agent import context
from codingagent.errors import ApprovalError
from codingagent.model.approval import Answer, Question
from codingagent.model.journal_entries import ApprovalAsked
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, command_line, live_session
from tests.test_secrets import command, edit, token

NAME = re.compile(r"SECRET-[A-Z0-9]+-[0-9A-Z]{6}")
VALUE = token("moved")
SHORT = "q7!zk"
ENV = f"GITHUB_TOKEN={VALUE}\nPIN={SHORT}\nMODE=quiet\n"
README = "# Readme\n\nUse it.\n"
CONFIG = f"name: shop\ntoken: {VALUE}\nport: 1\n"


@contextlib.contextmanager
def with_files(root: Path, files: dict[str, str], **options: object) -> Iterator[LiveSession]:
    """Yield a session whose latest request shows these files; what commands did needs git to be known."""
    for path, text in files.items():
        (root / "workspace" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "workspace" / path).write_text(text, "utf-8")
    chosen: dict[str, Any] = {"settings": Settings(sandbox="off"), "has_git": False, **options}
    with live_session(root, **chosen) as live:
        live.conversation.requests.say("", {each: True for each in files if each[0] != "."})
        live.conversation.write_due()
        live.answer("".join(f'[READ_FILE path="{path}"]\n' for path in files if path[0] == "."))
        yield live


def name_of(live: LiveSession, before: str) -> str:
    found = re.search(rf"{re.escape(before)}[\"' ]*({NAME.pattern})", live.request())
    assert found is not None, live.request()
    return found[1]


def asked_for(live: LiveSession, answer: str) -> str:
    """Return the reasons and the preview of what an answer stops for."""
    with pytest.raises(ApprovalError):
        live.answer(answer)
    asked = live.conversation.session.asked
    assert asked is not None
    return "\n".join((*asked.question.reasons, asked.question.shown))


def settle(live: LiveSession, decision: str) -> None:
    live.conversation.answer(None, Answer(decision, how="command"))  # type: ignore[arg-type]
    live.conversation.recover()


def create(path: str, body: str) -> str:
    return f'[CREATE_FILE path="{path}" overwrite="true"]\n{body}\n[/CREATE_FILE]\n'


def lines(path: str, at: int, body: str) -> str:
    return f'[EDIT_FILE path="{path}" start_line="{at}" end_line="{at}"]\n{body}\n[/EDIT_FILE]\n'


def patch(path: str, old: str, new: str) -> str:
    return f"```diff\n--- a/{path}\n+++ b/{path}\n@@ -3 +3 @@\n-{old}\n+{new}\n```\n"


# --- written elsewhere -----------------------------------------------------------------------------

WRITES: dict[str, Callable[[str], str]] = {
    "create": lambda name: create("README.md", f"Use {name}"),
    "search": lambda name: edit("README.md", "Use it.", f"Use {name}."),
    "lines": lambda name: lines("README.md", 3, f"Use {name}."),
    "diff": lambda name: patch("README.md", "Use it.", f"Use {name}."),
    "whole file": lambda name: f"README.md\n```\n# Readme\n\nUse {name}.\n```\n",
    "name": lambda name: f'[MOVE_FILE path="README.md" to="{name}.md"]\n',
    "folder": lambda name: create(f"{name}/x", "y"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WRITES)
def test_no_value_is_written_elsewhere_unasked(tmp_path: Path, way: str) -> None:
    """However often it is tried, also after a restart; what was denied is not there."""
    with with_files(tmp_path, {".env": ENV, "README.md": README}) as live:
        name = name_of(live, "GITHUB_TOKEN=")
        for number in range(2):
            told = asked_for(live, f"{number}\n\n{WRITES[way](name)}")
            assert f"it writes the secret {name} (.env line 1)" in told
            assert VALUE not in told
            settle(live, "no")
    with live_session(tmp_path, session_id=live.session_id) as again:
        asked_for(again, f"again\n\n{WRITES[way](name)}")
        listed = command_line(tmp_path, "secrets").stdout
        assert f"{name}  .env line 1\n" in listed
        settle(again, "yes")
        held = [str(p.relative_to(tmp_path)) for p in (tmp_path / "workspace").rglob("*")]
        texts = [p.read_text("utf-8") for p in (tmp_path / "workspace").rglob("*") if p.is_file()]
        assert sum(VALUE in each for each in (*held, *texts)) >= 2


def test_a_denial_stands_against_yes_in_advance_and_always(tmp_path: Path) -> None:
    """Only an explicit answer to a later question lifts it."""
    answer = '[EDIT_FILE path="README.md" start_line="3" end_line="3"]\nUse {}\n[/EDIT_FILE]\n'
    with with_files(tmp_path, {".env": ENV, "README.md": README}) as live:
        name = name_of(live, "GITHUB_TOKEN=")
        asked_for(live, answer.format(name))
        settle(live, "no")
    person = context.Person(lambda _: None, approves_all=True)
    with live_session(tmp_path, session_id=live.session_id, person=person) as again:
        asked_for(again, f"again\n{answer.format(name)}")
        assert VALUE not in (again.workspace / "README.md").read_text("utf-8")
        settle(again, "yes")
        assert VALUE in (again.workspace / "README.md").read_text("utf-8")
        again.answer(edit("README.md", f"Use {name}", "Use it"))
        again.answer(edit("README.md", "Use it", f"Use {name}"))
        assert VALUE in (again.workspace / "README.md").read_text("utf-8")


def test_no_name_is_put_together_in_a_file(tmp_path: Path) -> None:
    """Two edits may write its pieces: what reads the file later takes it for the value."""
    with with_files(tmp_path, {".env": ENV, "README.md": README}, protocol="json") as live:
        name = name_of(live, "GITHUB_TOKEN=")
        live.answer(json_edits("README.md", ("Use it.", f"{name[:-3]}~")))
        live.answer(json_edits("README.md", ("~", name[-3:])))
        text = (live.workspace / "README.md").read_text("utf-8")
        assert VALUE not in text
        assert name not in text


def json_edits(path: str, *edits: tuple[str, str]) -> str:
    made = [{"oldContent": old, "newContent": new} for old, new in edits]
    return operations({"type": "editFile", "path": path, "edits": made})


def operations(*asked: dict[str, object]) -> str:
    numbered = [{"id": str(number), **each} for number, each in enumerate(asked)]
    return json.dumps({"type": "operations", "protocolVersion": "1.0", "operations": numbered})


def test_programs_are_asked_too(tmp_path: Path) -> None:
    """In text, in base64, in an edit, for a deletion; nothing of a run that stops is written."""
    (tmp_path / ".env").write_text(ENV, "utf-8")
    (tmp_path / "README.md").write_text(README, "utf-8")
    with Space(tmp_path, sandbox="off", secrets="redact") as space:
        shown = space.run(operations=[{"type": "readFile", "path": ".env"}]).to_json()
        name = NAME.findall(shown)[0]
        body = {"type": "createFile", "path": "b", "content": name}
        coded = {**body, "content": base64.b64encode(name.encode()).decode(), "encoding": "base64"}
        edited = {"oldContent": "Use it.", "newContent": name}
        ways = (
            body,
            {**coded, "encoding": "base64"},
            {"type": "editFile", "path": "README.md", "edits": [edited]},
            {"type": "deleteFile", "path": ".env"},
            {"type": "createFile", "path": ".env", "content": "X=1\n", "overwrite": True},
        )
        for way in (*ways, *ways):
            asks = space.run(operations=[way])
            assert asks.pending_approval is not None, asks.to_json()
            assert VALUE not in asks.to_json()
    assert {p.name: p.read_text("utf-8") for p in tmp_path.iterdir()} == {".env": ENV, "README.md": README}


# --- overwritten -----------------------------------------------------------------------------------

MASKS = [
    '"***"',
    "<redacted>",
    "your-api-key-here",
    "xxxx",
    "(unchanged)",
    "",
    "ghp_new",
    "${TOKEN}",
    "SECRET",
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("way", ["create", "search", "lines", "diff"])
def test_nothing_takes_the_place_of_a_value_unasked(tmp_path: Path, way: str, mask: str) -> None:
    """Whatever it is; the model is told the name that keeps the value."""
    with with_files(tmp_path, {"config.yml": CONFIG}) as live:
        name = name_of(live, "token: ")
        line = f"token: {mask}".strip()
        answer = {
            "create": create("config.yml", f"name: shop\n{line}\nport: 1"),
            "search": edit("config.yml", f"token: {name}", line),
            "lines": lines("config.yml", 2, line),
            "diff": patch("config.yml", f"token: {name}", line).replace("@@ -3 +3 @@", "@@ -2 +2 @@"),
        }[way]
        told = asked_for(live, answer)
        assert f"{name} (config.yml line 2)" in told
        assert VALUE not in told
        settle(live, "no")
        assert (live.workspace / "config.yml").read_text("utf-8") == CONFIG
        assert name in live.results()


def test_several_values_are_one_question(tmp_path: Path) -> None:
    """Of a file that is deleted, too; what is done then names what is gone."""
    text = f"a:\n  token: {token('a')}\nb:\n  token: {token('b')}\n"
    with with_files(tmp_path, {"config.yml": text}) as live:
        names = sorted(set(NAME.findall(live.contents())))
        assert len(names) == 2
        with pytest.raises(ApprovalError):
            live.answer('[DELETE_FILE path="config.yml"]\n')
        asked = live.conversation.session.asked
        assert asked is not None
        assert len(asked.question.reasons) == 1
        assert all(each in asked.question.reasons[0] for each in names)
        settle(live, "yes")
        assert not (live.workspace / "config.yml").exists()
        assert all(each in live.results() for each in names)


QUIET = {
    "it stands elsewhere": edit("config.yml", "token: {}", "token: x"),
    "it is moved within the file": edit("config.yml", "token: {}\nport: 1", "port: 1\ntoken: {}"),
    "another line": edit("config.yml", "port: 1", "port: 2"),
    "another quote": edit("config.yml", "token: {}", "token: '{}'"),
    "a link goes": '[DELETE_FILE path="link.yml"]\n',
}


@pytest.mark.parametrize("way", QUIET)
def test_what_loses_no_value_asks_nothing(tmp_path: Path, way: str) -> None:
    files = {"config.yml": CONFIG}
    if way == "it stands elsewhere":
        files["other.yml"] = CONFIG
    with with_files(tmp_path, files) as live:
        (live.workspace / "link.yml").symlink_to("config.yml")
        name = name_of(live, "token: ")
        assert "[OK]" in live.answer(QUIET[way].replace("{}", name))


def test_a_link_to_the_file_is_no_other_place(tmp_path: Path) -> None:
    with with_files(tmp_path, {"config.yml": CONFIG}) as live:
        (live.workspace / "link.yml").symlink_to("config.yml")
        live.answer('[READ_FILE path="link.yml"]\n')
        name = name_of(live, "token: ")
        asked_for(live, edit("config.yml", f"token: {name}", "token: x"))
        settle(live, "no")
        asked_for(live, edit("link.yml", f"token: {name}", "token: x"))


def test_examples_are_no_values(tmp_path: Path) -> None:
    """Fixtures with sample tokens, and digests of lock files, change and go without a question."""
    sample = "API_KEY = 'your-api-key-here'\nTOKEN = 'example-token-1234'\n"
    lock = f'"integrity": "sha512-{base64.b64encode(b"a9" * 32).decode()}"\n'
    with with_files(tmp_path, {"tests/fixture.py": sample, "package-lock.json": lock}) as live:
        told = live.answer(
            edit("tests/fixture.py", "API_KEY = 'your-api-key-here'", "API_KEY = 'another-key'")
            + '[DELETE_FILE path="package-lock.json"]\n[MOVE_FILE path="tests/fixture.py" to="a.py"]\n'
        )
        assert told.count("[OK]") == 3


# --- by commands -----------------------------------------------------------------------------------

LOOSE = "import sys; p = '.en' + 'v'; t = open(p).read(); open(sys.argv[1], 'w').write({})"
BY_COMMANDS = {
    "masked": ("sed -i 's/^GITHUB_TOKEN=.*/GITHUB_TOKEN=***/' .env", ".env", "no file would hold"),
    "gone": ("rm .env", ".env", "no file would hold"),
    "program": (f'python3 -c "{LOOSE.format("str()")}" .env', ".env", "no file would hold"),
    "added": ("cat .env >>README.md", "README.md", "it writes the secret"),
    "copied": (f'python3 -c "{LOOSE.format("t")}" notes.txt', "notes.txt", "it writes the secret"),
    "moved": ("mv config.yml x.yml", "config.yml, x.yml", "which does not hold it"),
    "two places": ("rm config.yml; echo >local/config.yml", "config.yml, ", "no file would hold"),
}


@pytest.mark.parametrize("way", BY_COMMANDS)
@pytest.mark.one_in(3)
def test_what_a_command_did_with_values_is_asked(tmp_path: Path, way: str) -> None:
    """A no puts everything back, in files that git ignores, too; so does undo after a yes."""
    line, subject, reason = BY_COMMANDS[way]
    config = CONFIG.replace(VALUE, token("config"))
    files = {".gitignore": ".env\nlocal/\n", "README.md": README, "config.yml": config}
    with with_files(tmp_path, {**files, ".env": ENV, "local/config.yml": config}, has_git=True) as live:
        if way == "moved":
            (live.workspace / "local/config.yml").unlink()
        before = {p: p.read_bytes() for p in live.workspace.rglob("*") if p.is_file()}
        told = asked_for(live, command(line))
        asked = live.conversation.session.asked
        assert asked is not None
        assert subject in asked.question.subject
        assert reason in told
        settle(live, "no")
        # A denial holds, against a yes in advance, too.
        assert {p: p.read_bytes() for p in live.workspace.rglob("*") if p.is_file()} == before
        asked_for(live, f"again\n{command(line)}")
        settle(live, "yes")
    assert command_line(tmp_path, "undo").returncode == 0
    assert {p: p.read_bytes() for p in live.workspace.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "line",
    [
        "echo B=2 >>.env",
        "sed -i s/quiet/loud/ .env",
        "sed -i 's/port: 1/port: 2/' config.yml",
        f"echo A={token('new')} | tee .env.new one.txt",
        "echo more >>README.md",
    ],
)
def test_a_command_that_moves_no_value_asks_nothing(tmp_path: Path, line: str) -> None:
    files = {".env": ENV, "README.md": README, "config.yml": CONFIG}
    with with_files(tmp_path, files) as live:
        assert "[OK]" in live.answer(command(line))


# --- files of secrets under other names ------------------------------------------------------------

MOVES = {
    "move": '[MOVE_FILE path=".env" to="notes.txt"]\n',
    "mv": command("mv .env notes.txt"),
    "cp": command("cp .env notes.txt"),
    "more": command("(echo '# more'; cat .env; echo B=2) > notes.txt"),
    "part": command("tail -2 .env > notes.txt"),
    "unnamed": command("cp .env \"$(printf 'notes%s' .txt)\""),
    "folder": command(
        "mkdir cargo; mv .env cargo/config.toml; mv cargo plain; mv plain/config.toml notes.txt"
    ),
    "create": create("notes.txt", "GITHUB_TOKEN={0}\nPIN={1}\nMODE={2}"),
    "rename": "```diff\ndiff --git a/.env b/notes.txt\nsimilarity index 100%\nrename from .env\n"
    "rename to notes.txt\n```\n",
}


@pytest.mark.parametrize("way", MOVES)
@pytest.mark.one_in(3)
def test_what_was_a_file_of_secrets_stays_one(tmp_path: Path, way: str) -> None:
    """Its short values and common words are hidden under its new name; also after a restart."""
    with with_files(tmp_path, {".env": ENV}, has_git=True) as live:
        answer = MOVES[way]
        for number, key in enumerate(("GITHUB_TOKEN", "PIN", "MODE")):
            answer = answer.replace(f"{{{number}}}", name_of(live, f"{key}="))
        if way == "part":  # of short values only
            live.answer(answer)
        else:
            asked_for(live, answer)
            settle(live, "yes")
        assert (live.workspace / "notes.txt").exists()
        live.answer('x\n[READ_FILE path="notes.txt"]\n')
        assert "PIN=SECRET-" in live.contents()
        assert SHORT not in live.request()
    with live_session(tmp_path, session_id=live.session_id) as again:
        (again.workspace / "notes.txt").write_text("PIN=w8!mm\nMODE=loud\n", "utf-8")
        again.answer('y\n[READ_FILE path="notes.txt"]\n')
        assert "MODE=SECRET-" in again.contents()
        assert "w8!mm" not in again.request()
        # And moving it asks again, by whatever name.
        asked_for(again, '[MOVE_FILE path="notes.txt" to="more.txt"]\n')
        settle(again, "no")
        # What has nothing of it any more is a file like others.
        (again.workspace / "notes.txt").write_text("Buy milk\nand bread\n", "utf-8")
        again.answer('z\n[READ_FILE path="notes.txt"]\n')
        assert "Buy milk" in again.contents()


def test_undo_and_redo_show_nothing(tmp_path: Path) -> None:
    with with_files(tmp_path, {".env": ENV}, has_git=True) as live:
        asked_for(live, '[MOVE_FILE path=".env" to="notes.txt"]\n')
        settle(live, "yes")
    for words, path in ((("undo",), ".env"), (("undo", "--redo"), "notes.txt")):
        assert command_line(tmp_path, *words).returncode == 0
        assert (tmp_path / "workspace" / path).exists()
        with live_session(tmp_path, session_id=live.session_id) as again:
            again.answer(f'{path}\n[READ_FILE path="{path}"]\n')
            assert "PIN=SECRET-" in again.contents()
            assert SHORT not in again.request()


def test_moving_a_file_with_a_value_asks(tmp_path: Path) -> None:
    """It may go from where git ignores it to where it does not; one over another may lose a value."""
    files = {"local/config.yml": CONFIG, "b.yml": f"token: {token('b')}\n"}
    with with_files(tmp_path, files) as live:
        told = asked_for(live, '[MOVE_FILE path="local/config.yml" to="config.yml"]\n')
        assert "into 'config.yml', which does not hold it" in told
        settle(live, "no")
        told = asked_for(live, '[MOVE_FILE path="local/config.yml" to="b.yml" overwrite="true"]\n')
        assert "b.yml line 1" in told
        assert (live.workspace / "b.yml").read_text("utf-8") == files["b.yml"]


def test_a_question_of_a_copy_is_put_before_it_is_read(tmp_path: Path) -> None:
    """Whether the chat may see its values, as for the file that it was."""
    questions: list[Question] = []

    def ask(question: ApprovalAsked) -> Answer:
        questions.append(question.question)
        return Answer("no")

    with with_files(tmp_path, {".env": ENV}, has_git=True) as live:
        asked_for(live, command("cp .env notes.txt"))
        settle(live, "yes")
    person = context.Person(lambda _: None, ask)
    with live_session(tmp_path, session_id=live.session_id, person=person) as again:
        again.answer('[READ_FILE path="notes.txt"]\n')
        assert [each.subject for each in questions] == ["notes.txt"]


@pytest.mark.parametrize(
    ("line", "new"), [(1, "PORT=8080"), (2, "DEBUG=1"), (3, "WORKERS=16"), (4, "APP_NAME=store")]
)
def test_a_setting_of_a_secret_file_is_changed_unasked(tmp_path: Path, line: int, new: str) -> None:
    env = "PORT=3000\nDEBUG=true\nWORKERS=4\nAPP_NAME=shop\nPIN=q7!zk\n"
    with with_files(tmp_path, {".env": env}) as live:
        live.answer(f"a\n\n{lines('.env', line, new)}")
        assert new in (live.workspace / ".env").read_text("utf-8")
        assert "SECRET-VALUE-" in asked_for(live, f"b\n\n{lines('.env', 5, 'PIN=1')}")


def test_a_public_certificate_is_no_secret(tmp_path: Path) -> None:
    body = base64.b64encode(bytes(range(90))).decode()
    text = f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
    with with_files(tmp_path, {"ca.pem": text}) as live:
        live.answer('[READ_FILE path="ca.pem"]\n')
        assert body in live.request()
        live.answer('a\n\n[MOVE_FILE path="ca.pem" to="certs/ca.pem"]\n')
        assert (live.workspace / "certs" / "ca.pem").exists()
        key = text.replace("CERTIFICATE", "PRIVATE KEY")
        (live.workspace / "ca.pem").write_text(text + key, "utf-8")
        live.answer('b\n\n[READ_FILE path="ca.pem"]\n')
        assert "holds secrets" in asked_for(live, 'c\n\n[MOVE_FILE path="ca.pem" to="x"]\n')
