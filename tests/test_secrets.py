"""Nothing that leaves a session holds a secret: planted values are looked for in all that left."""

import base64
import contextlib
import hashlib
import json
import os
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import to_builtins

from codingagent.agent.secrecy import HiddenStream, Secrecy, VaultFile
from codingagent.errors import ApprovalError
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import Protocol
from codingagent.model.notices import Remark
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, command_line, live_session

pytestmark = pytest.mark.usefixtures("plain")


def token(channel: str) -> str:
    """Return a GitHub token that is none, made here so that no file holds one."""
    letters = random.Random(channel).choices(string.ascii_letters + string.digits, k=36)
    return "ghp_" + "".join(letters)


PIN = "hunter4Blue!x"
KEY = [base64.b64encode(random.Random(i).randbytes(48)).decode() for i in range(12)]
PASTED = [base64.b64encode(random.Random(i).randbytes(48)).decode() for i in range(20, 31)]
CHANNELS = "task said file excerpt output long name refused traceback encoded check range created"
UNREAD = "zq-81-opal"
SHORT = "q7!zk"
VALUES = (*map(token, CHANNELS.split()), PIN, UNREAD, SHORT, *KEY, *PASTED)


def left(live: LiveSession, *, is_end: bool) -> Iterator[tuple[str, str]]:
    """Yield all that left a session, each with where; at its end also what the commands show of it."""
    for path in sorted(live.home.mailbox.outbox.rglob("*.txt")):
        yield str(path), path.read_text("utf-8")
    yield "screen", json.dumps(list(map(repr, map(to_builtins, live.notices))), ensure_ascii=False)
    for words in ("show", "log", "list", "diff", "log --egress", "secrets") if is_end else ():
        for more in ([], ["--json"]):
            done = command_line(live.home.root, *words.split(), *more)
            assert done.returncode == 0 or "of this session changed files" in done.stderr
            yield words, done.stdout + done.stderr


def leaks(live: LiveSession, *, is_end: bool) -> list[tuple[str, str, str]]:
    lines = ((where, line) for where, text in left(live, is_end=is_end) for line in text.split("\n"))
    return [
        (where, value, line[max(line.find(value) - 200, 0) :][:400])
        for where, line in lines
        for whole in VALUES
        for value in {whole[:16], whole[-16:]}
        if value in line
    ]


def plant(workspace: Path) -> None:
    workspace.mkdir(parents=True)
    files = {
        ".env.local": f"X={UNREAD}\n",
        "short.env": f"CODE={SHORT}\nMODE=1\n",
        "app.py": f"import os\nKEY = '{token('file')}'\nprint(1)\n",
        "edited.py": f"one = 1\nKEY = '{token('excerpt')}'\ntwo = 2\n",
        "bad.py": f"KEY = '{token('traceback')}'\nraise SystemExit(KEY)\n",
        "refused.py": f"a = 1\nKEY = '{token('refused')}'\nb = 2\n",
        ".env": f"PIN={PIN}\nMODE=1\n",
        "range.txt": f"a\nb {token('range')}\n",
        f"data-{token('name')}.txt": "x\n",
        # A part of it would be left where the output is cut in the middle.
        "long.txt": f"{'x' * 9_980} {token('long')} {'y' * 30_000}\n",
        "site.key": "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *KEY, "-----END RSA PRIVATE KEY-----"]),
        # Only a part of it is printed, where nothing says what it is.
        "pasted.txt": "\n".join(
            ["-----BEGIN RSA PRIVATE KEY-----", *PASTED, "-----END RSA PRIVATE KEY-----"]
        ),
        "encoded.txt": base64.b64encode(f"see {token('encoded')}".encode()).decode(),
        "encoded_plain.txt": token("encoded"),
    }
    for name, text in files.items():
        (workspace / name).write_text(text, "utf-8")


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


def edit(path: str, search: str, new: str) -> str:
    body = f"<<<<<<< SEARCH\n{search}\n=======\n{new}\n>>>>>>> REPLACE"
    return f'[EDIT_FILE path="{path}"]\n{body}\n[/EDIT_FILE]\n'


TURNS = (
    '[READ_FILE path="app.py"]\n[READ_FILE path=".env"]\n[READ_FILE path="encoded_plain.txt"]\n',
    '[READ_FILE path="site.key" start_line="3" end_line="5"]\n[READ_FILE path="range.txt"]\n',
    command("cat .env; cat site.key") + command("cat long.txt") + command("cat encoded.txt; ls"),
    command(f"printf 'A=%s\\n' {token('output')}; cut -c3- .env.local; sed -n 4,6p site.key"),
    edit("edited.py", "one = 1", "one = 3")
    + edit("refused.py", "b = 7", "b")
    + edit("short.env", "MODE=7", "x"),
    command("echo 'Traceback:\n  File \"bad.py\", line 1, in x'; python3 bad.py")
    + edit(".env", "MODE=1", "MODE=3"),
    f'[CREATE_FILE path="c.py"]\nKEY = "{token("created")}"\n[/CREATE_FILE]\n'
    + command("sed -n 4,6p pasted.txt; cut -c-36 pasted.txt")
    + command("rm bad.py"),
    '[READ_FILE path="**"]\n',
)


@pytest.mark.with_git
@pytest.mark.parametrize("protocol", ["tags", "json"])
def test_no_planted_value_leaves(tmp_path: Path, protocol: Protocol) -> None:
    """In requests whole and short, on the screen, in show, log, list and diff, also as JSON."""
    plant(tmp_path / "workspace")
    # A line of it is cut in requests.
    check = f"echo {'w ' * 90} {token('check')}"
    settings = Settings(sandbox="off", check=check)
    with live_session(tmp_path, f"{'w' * 175} {token('task')}", settings, protocol=protocol) as live:
        for number, reply in enumerate(TURNS):
            if number == 2:
                live.conversation.requests.say(f"It is {token('said')}.")
                live.conversation.write_due()
            try:
                live.answer(reply)
            except ApprovalError:  # bad.py goes, and its token with it
                assert leaks(live, is_end=False) == []
                live.conversation.answer(None, Answer("yes", how="command"))
                live.conversation.recover()
            assert leaks(live, is_end=number == len(TURNS) - 1) == []
        for path in (tmp_path / "workspace").rglob("*"):
            assert path.is_dir() or b"SECRET-" not in path.read_bytes()


NAME = re.compile(r"SECRET-[A-Z0-9]+-[0-9A-Z]{6}")


@contextlib.contextmanager
def with_app(root: Path, protocol: Protocol = "tags", mode: str = "redact") -> Iterator[LiveSession]:
    """Yield a session whose request shows app.py, with a token in it."""
    (root / "workspace").mkdir(parents=True)
    (root / "workspace" / "app.py").write_text(f"A = 1\r\nKEY = '{token('file')}'\r\n", "utf-8", newline="")
    settings = Settings(sandbox="off", secrets=mode)  # type: ignore[arg-type]  # the settings check it
    with live_session(root, settings=settings, protocol=protocol) as live:
        live.conversation.requests.say("", {"app.py": True})
        live.conversation.write_due()
        yield live


def test_an_answer_gets_its_values_back(tmp_path: Path) -> None:
    """In SEARCH and in bodies, byte for byte, without a question; also after a restart."""
    with with_app(tmp_path) as live:
        (name,) = set(NAME.findall(live.contents()))
        line = f"KEY = '{name}'"
        assert f"Secrets: placeholders such as {name} stand for" in live.request()
        assert "[OK]" in live.answer(edit("app.py", line, f"{line}  # {name}"))
    with live_session(tmp_path, session_id=live.session_id) as again:
        changed = f"A = 1\r\nKEY = '{token('file')}'  # {token('file')}\r\n"
        assert (again.workspace / "app.py").read_bytes() == changed.encode()
        whole = f'[CREATE_FILE path="app.py"]\nB = 2\nKEY = "{name}"\n[/CREATE_FILE]\n'
        assert "[OK]" in again.answer(whole)
        assert (again.workspace / "app.py").read_bytes() == f'B = 2\r\nKEY = "{token("file")}"\r\n'.encode()
        vault = tmp_path / "sessions" / live.session_id / "vault.json"
        assert vault.stat().st_mode & 0o777 == 0o600


def test_a_name_out_of_place_writes_nothing(tmp_path: Path) -> None:
    """An altered or unknown one fails with the true one; a command is told to read the file."""
    with with_app(tmp_path) as live:
        (name,) = set(NAME.findall(live.contents()))
        altered = name[:-1] + ("A" if name[-1] != "A" else "B")
        before = (live.workspace / "app.py").read_bytes()
        told = live.answer(
            edit("app.py", "A = 1", f"A = '{altered}'") + f"[RUN_COMMAND]\necho {name} > x\n"
            "[/RUN_COMMAND]\n" + '[CREATE_FILE path="y"]\nSECRET-GITHUB-ZZZZZZ\n[/CREATE_FILE]\n'
        )
        assert f"'{altered}' is not the placeholder that was shown: that is {name}" in told
        assert f"{name}, a placeholder" in told
        assert "(app.py line 2)" in told
        assert "is no placeholder that was shown" in told
        assert (live.workspace / "app.py").read_bytes() == before
        assert sorted(path.name for path in live.workspace.iterdir()) == ["app.py"]


def test_a_value_goes_to_another_file_only_with_a_yes(tmp_path: Path) -> None:
    """Written where it was not, it may be published."""
    with with_app(tmp_path) as live:
        (name,) = set(NAME.findall(live.contents()))
        with pytest.raises(ApprovalError):
            live.answer(f'[CREATE_FILE path="README.md"]\nUse {name}\n[/CREATE_FILE]\n')
        asked = live.conversation.session.asked
        assert asked is not None
        assert asked.question.reasons == (
            f"it writes the secret {name} (app.py line 2) into 'README.md', which does not hold it",
        )
        assert token("file") not in asked.question.shown
        live.conversation.answer(None, Answer("yes"))
        live.conversation.recover()
        assert (live.workspace / "README.md").read_text("utf-8") == f"Use {token('file')}\n"
        with pytest.raises(ApprovalError):
            live.answer(f'[MOVE_FILE path="README.md" to="{name}.md"]\n')


def test_a_value_that_changed_meanwhile_comes_back_only_with_a_yes(tmp_path: Path) -> None:
    """Its name is still known, and the file held it once."""
    with with_app(tmp_path) as live:
        (name,) = set(NAME.findall(live.contents()))
        rotates = f"sed -i s/{token('file')}/{token('rotated')}/ app.py"
        with pytest.raises(ApprovalError):
            live.answer(
                command(rotates) + f'[CREATE_FILE path="app.py"]\nA = 2\nKEY = "{name}"\n[/CREATE_FILE]\n'
            )
        assert token("rotated") in (live.workspace / "app.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "damage"),
    [
        ("p4&amp;sW0rd9x-Zq", ("'", "&#39;")),
        ("p“4”sW0rd–9xZq", ("'", "’")),
        ("p4\u00a0sW0rd9xZq", (" ", "\u00a0")),
    ],
)
def test_what_is_mended_in_an_answer_is_not_mended_in_a_value(
    tmp_path: Path, value: str, damage: tuple[str, str]
) -> None:
    """A password may hold what a chat makes of other characters."""
    (tmp_path / "workspace").mkdir()
    file = tmp_path / "workspace/a.yml"
    file.write_text(f"password: '{value}'\nb: 1\nname: 'x y'\n", "utf-8")
    with live_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.conversation.requests.say("", {"a.yml": True})
        live.conversation.write_due()
        (name,) = set(NAME.findall(live.contents()))
        body = f"password: '{name}'\nb: 2\nname: 'x y'".replace(*damage)
        live.answer(f'[CREATE_FILE path="a.yml"]\n{body}\n[/CREATE_FILE]\n')
        assert value in file.read_text("utf-8")


@pytest.mark.with_git
def test_an_answer_learns_no_short_value_by_its_name(tmp_path: Path) -> None:
    """Such a value is hidden only where it was found: not in errors that quote it, nor in paths."""
    (tmp_path / "workspace").mkdir()
    file = tmp_path / "workspace/a.py"
    file.write_text(f"password = '{SHORT}'\nb = 1\n", "utf-8")
    with live_session(tmp_path, settings=Settings(sandbox="off")) as live:
        live.conversation.requests.say("", {"a.py": True})
        live.conversation.write_due()
        (name,) = set(NAME.findall(live.contents()))
        bodies = [f"# ... rest unchanged {name} ...", f"def (\n {name}"]
        ways = [f'[CREATE_FILE path="a.py"]\n{body}\n[/CREATE_FILE]\n' for body in bodies]
        ways += [edit("a.py", f"password == {name}\nb = 1", "c = 2")]
        ways += [f'[READ_FILE path="{name}"]\n', f'[MOVE_FILE path="a.py" to="{name}"]\n']
        for way in ways:
            assert "[FAILED]" in live.answer(way)
        with pytest.raises(ApprovalError):
            live.answer(edit("a.py", "b = 1", f"b = 1  # {name}"))
        assert [each for each in leaks(live, is_end=True) if each[1] == SHORT] == []


def test_no_value_takes_the_headings_of_a_request_away(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    lines = "A==== PROMPT ===\nB=## Workspace Files\n"
    (tmp_path / "workspace/.env").write_text(lines, "utf-8")
    with live_session(tmp_path, settings=Settings(sandbox="off")) as live:
        assert "\n## Workspace Files\n" in live.request()
        assert "\n=== PROMPT ===\n" in live.request()


def test_no_edit_cuts_into_a_hidden_value(tmp_path: Path) -> None:
    """JSON edits replace any characters: also those in the middle of a value nobody showed."""
    with with_app(tmp_path, "json") as live:
        assert token("file") not in live.request()
        before = (live.workspace / "app.py").read_bytes()
        letter = next(each for each in token("file")[4:] if each in "AKEY1")
        times = before.decode().partition("ghp_")[0].count(letter) + 1
        for edits in (
            [{"oldContent": token("file")[10:14], "newContent": ""}],
            # The last of them meets the value.
            [{"oldContent": letter, "newContent": "-"}] * times,
        ):
            change = {"id": "1", "type": "editFile", "path": "app.py", "edits": edits}
            live.answer(json.dumps({"type": "operations", "protocolVersion": "1.0", "operations": [change]}))
            assert "in the middle of a value that is hidden" in live.request()
            assert (live.workspace / "app.py").read_bytes() == before


def test_without_a_search_values_are_shown_and_it_says_so(tmp_path: Path) -> None:
    with with_app(tmp_path, mode="off") as live:
        assert token("file") in live.contents()
        told = [each.text for each in live.notices if isinstance(each, Remark)]
        assert "secrets are not looked for (--secrets off): read the request before you send it" in told


def test_the_record_says_what_left(tmp_path: Path) -> None:
    """For each request its bytes and digest, the lines of files in it, and the secrets hidden by kind."""
    with with_app(tmp_path) as live:
        live.answer('[READ_FILE path="app.py" start_line="2"]\n')
        line = command_line(tmp_path, "log", "--egress").stdout.splitlines()[-1]
        last = json.loads(command_line(tmp_path, "log", "--egress", "--json").stdout.splitlines()[-1])
        sent = live.request().encode()
    assert (last["sizeBytes"], last["digest"]) == (len(sent), hashlib.sha256(sent).hexdigest())
    assert last["files"] == [{"path": "app.py", "first": 2, "last": 2}]
    assert (last["hidden"], last["secrets"], last["sequence"]) == ({"GITHUB": 1}, "redact", 2)
    assert f" {len(sent)} bytes, ~" in line
    assert "files: app.py 2-2; secrets (redact): GITHUB 1" in line


def test_the_person_decides(tmp_path: Path) -> None:
    """`secrets` lists names and never values; what they allow is shown from the next request on."""
    with with_app(tmp_path) as live:
        (name,) = set(NAME.findall(live.contents()))
        told = [each.text for each in live.notices if isinstance(each, Remark)]
        assert (
            f"Hidden: {name} (app.py:2). 1 secret in this request; all of the session: codingagent secrets"
            in told
        )
        assert command_line(tmp_path, "secrets").stdout == f"{name}  app.py line 2\n"
        refused = command_line(tmp_path, "secrets", "show", name)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "on a terminal only" in refused.stderr
        assert command_line(tmp_path, "secrets", "allow", "nothing").returncode == 2
        command_line(tmp_path, "secrets", "allow", "app.py")
        command_line(tmp_path, "secrets", "hide", "A = 1")
        live.answer('[READ_FILE path="app.py"]\n')
        assert token("file") in live.contents()
        assert "A = 1" not in live.contents()
        command_line(tmp_path, "secrets", "hide", "app.py")
        live.answer("[RUN_COMMAND]\ncat app.py\n[/RUN_COMMAND]\n")
        assert token("file") not in live.results()


FETCHED = [
    (".env", f"CODE={SHORT}\n".encode(), "utf-8"),
    (".env", f"CODE={SHORT}\n".encode(), "base64"),
    (".env", f"CODE={SHORT}\r\n".encode("utf-16"), "base64"),
    ("a.bin", b"\0\xff \x80" + token("binary").encode(), "base64"),
]


@pytest.mark.parametrize(("path", "data", "encoding"), FETCHED)
def test_a_file_in_a_json_event_is_hidden_as_a_file(
    tmp_path: Path, path: str, data: bytes, encoding: str
) -> None:
    """All values of a secret file, also short ones and in base64; what is written back is as it was."""
    with with_app(tmp_path, "json") as live:
        (live.workspace / path).write_bytes(data)
        read = {"id": "1", "type": "readFile", "path": path, "encoding": encoding}
        message = {"type": "operations", "protocolVersion": "1.0", "operations": [read]}
        live.answer(json.dumps(message))
        found = re.search(r'"success":true,"content":"([^"]*)"', live.request())
        assert found is not None
        content = found[1].replace("\\n", "\n")
        came = content.encode() if encoding == "utf-8" else base64.b64decode(content)
        assert b"SECRET-" in came.replace(b"\0", b"")
        assert not any(v.encode() in came.replace(b"\0", b"") for v in (SHORT, token("binary")))
        write = {**read, "type": "createFile", "content": content, "overwrite": True}
        live.answer(json.dumps({**message, "operations": [write]}))
        assert f'"path":"{path}","success":true' in live.request()
        assert (live.workspace / path).read_bytes() == data


HALVES = {
    "ended at its limit": "import time; print('x {}'[:20], end='', flush=True); time.sleep(99)",
    "cut at the limit": "print('x ' * (2**19 - 10) + ' {} ' + 'y' * 5000)",
    "control sequences": "print('{}'[:9] + chr(27) + '[0m' + '{}'[9:])",
    "cut in memory": "for i in range(60): print('eyJ%s.eyJ%s.%s' % ('aZ4k' * 9, 'ghp_' * 999, 'q7Rz' * 9))",
}


@pytest.mark.parametrize("protocol", ["tags", pytest.param("json", marks=pytest.mark.deep)])
def test_no_half_of_a_secret_is_in_an_output(tmp_path: Path, protocol: Protocol) -> None:
    """What was cut before anybody looked, or parted by controls, is found by no rule."""
    (tmp_path / "workspace").mkdir()
    with live_session(tmp_path, settings=Settings(sandbox="off"), protocol=protocol) as live:
        for way, code in HALVES.items():
            (live.workspace / "a.py").write_text(code.replace("{}", token("half")), "utf-8")
            # A busy machine may end the first one before it prints.
            is_ended = way == "ended at its limit"
            line, limit_s = f"python3 a.py # {way}", 1 if is_ended else 60
            run = {"id": "1", "type": "shell", "command": line, "timeout": 1000 * limit_s}
            message = {"type": "operations", "protocolVersion": "1.0", "operations": [run]}
            block = command(line).replace("]", f' timeout="{limit_s}"]', 1)
            live.answer(block if protocol == "tags" else json.dumps(message))
            assert is_ended or "Output:" in live.request() or '"stdout":"' in live.request()
            assert not re.search(r"ghp_\w{4}", live.request())


def test_an_output_is_shown_in_whole_lines_and_a_key_whole(tmp_path: Path) -> None:
    """It comes in pieces that end anywhere: half a secret is none that a rule finds."""
    stream = HiddenStream(Secrecy("redact", VaultFile(tmp_path)))
    text = "\n".join(["a", token("output"), "-----BEGIN RSA PRIVATE KEY-----", *KEY])
    text += "\n-----END RSA PRIVATE KEY-----\nlast"
    shown = [stream.add(text[at : at + 7]) for at in range(0, len(text), 7)]
    assert "".join(shown).startswith("a\nSECRET-GITHUB-")
    whole = "".join((*shown, stream.rest()))
    assert whole.endswith("\nlast")
    assert [value for value in VALUES if value[:16] in whole] == []
    # Of a line that is too long to be held back, no half is shown.
    cut = token("cut")
    pieces = ["a\n", "x " * 49_990, cut[:20], "y" * 100, f"{cut[20:]} {cut[20:]}\nb\n"]
    long = "".join(map(stream.add, ("x " * 51_000, *pieces, "")))
    assert cut[20:] not in long
    assert long.endswith("b\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_reads_a_home(tmp_path: Path) -> None:
    with with_app(tmp_path) as live:
        for folder in ("sessions", "inbox", "outbox"):
            (tmp_path / folder).chmod(0o755)  # as earlier versions left it
        command_line(tmp_path, "list")
        for folder in ("sessions", "inbox", "outbox"):
            assert (tmp_path / folder).stat().st_mode & 0o077 == 0
        kept = [*(tmp_path / "sessions" / live.session_id).iterdir(), *live.home.mailbox.outbox.iterdir()]
        assert [path for path in kept if path.is_file() and path.stat().st_mode & 0o077] == []


def test_an_older_session_goes_on_protected(tmp_path: Path) -> None:
    """Its journal says nothing of secrets and it has no vault: it gets one."""
    with with_app(tmp_path, mode="off") as live:
        folder = tmp_path / "sessions" / live.session_id
    assert not (folder / "vault.json").exists()
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b',"secrets":"off"', b""))
    with live_session(tmp_path, session_id=live.session_id) as again:
        again.answer('[READ_FILE path="app.py"]\n')
        assert token("file") not in again.request()
    assert token("file") not in command_line(tmp_path, "show", "--json").stdout


@pytest.mark.parametrize("way", ["attached", "command", "link"])
def test_a_secret_file_is_known_before_anything_is_shown(tmp_path: Path, way: str) -> None:
    """Ignored and in a folder, too: what other files, commands and links show of it is hidden at once."""
    workspace = tmp_path / "workspace"
    (workspace / "inner").mkdir(parents=True)
    (workspace / ".gitignore").write_text(".env\n", "utf-8")
    named = "DJANGO_SETTINGS_MODULE=shop.settings_for_tests\nENTRY=inner/notes2.py"
    (workspace / "inner/.env").write_text(f"X={UNREAD}\nCODE={SHORT}\n{named}\n", "utf-8")
    (workspace / "notes.txt").write_text(f"{UNREAD} shop.settings_for_tests inner/notes2.py\n", "utf-8")
    (workspace / "link.txt").symlink_to("inner/.env")
    with live_session(tmp_path, settings=Settings(sandbox="off")) as live:
        if way == "attached":
            live.conversation.requests.say("", {"notes.txt": True})
            live.conversation.write_due()
            assert "shop.settings_for_tests inner/notes2.py" in live.contents()
        elif way == "command":
            live.answer(command("cd inner && cut -c3- .env"))
        else:
            live.answer('[READ_FILE path="link.txt"]\n')
            assert SHORT not in live.request()
        assert UNREAD not in "".join(text for _, text in left(live, is_end=False))


def test_the_choice_of_files_shows_no_secret_in_a_name(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / f"data-{token('name')}.py").write_text("def foo(): ...\n", "utf-8")
    with live_session(tmp_path, settings=Settings(sandbox="off")) as live:
        words = ("context", "foo", "--workspace", str(live.workspace))
        for more in ([], ["--json"]):
            shown = command_line(live.home.root, *words, *more).stdout
            assert "data-SECRET-GITHUB-" in shown
            assert "ghp_" not in shown


def test_an_error_that_ends_a_command_shows_no_secret(tmp_path: Path) -> None:
    """The model chose the name of the operation that the message quotes."""
    home = tmp_path / "home"
    assert command_line(home, "new", "--no-wait", "--protocol", "json", "task").returncode == 0
    operation = {"type": "shell", "id": token("error"), "command": "rm -r build"}
    message = {"protocolVersion": "1.0", "operations": [operation]}
    (home / "inbox" / "answer.txt").write_text(json.dumps(message), "utf-8")
    done = command_line(home, "resume", "--once")
    assert (done.returncode, "waits for approval: " in done.stderr) == (3, True)
    assert token("error") not in done.stdout + done.stderr
