"""What never leaves: the repository's `.codingagent/leave` keeps files from the chat, whatever is asked."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import factory
from codingagent.errors import UsageError, WorkError
from codingagent.model.settings import Settings
from codingagent.policy.rules import PRESETS
from codingagent.workspace.workspace import Workspace
from tests.helpers import LiveSession, command_line, plain_session, run_here
from tests.rows import each_row
from tests.sandboxes import needs_bwrap

KEPT = "the price is 4711"
RULES = "# not ours to show\nprices/\n*.cost\n!open.cost\n"


@pytest.fixture(name="live")
def _live(tmp_path: Path) -> Iterator[LiveSession]:
    root = tmp_path / "home/workspace"
    for name in ("prices/list.txt", "a.cost", "deep/b.cost", "open.cost", "plain.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("open\n" if name in ("open.cost", "plain.txt") else f"{KEPT}\nx\n")
    (root / "link.txt").symlink_to("prices/list.txt")
    (root / ".codingagent").mkdir()
    (root / ".codingagent/leave").write_text(RULES)
    task = "what is in prices/list.txt, a.cost and link.txt? the price"
    with plain_session(tmp_path / "home", task, settings=Settings(context=8_000)) as live:
        live.conversation.write_due()
        yield live


def reads(path: str) -> str:
    return f'[READ_FILE path="{path}"]\n'


@each_row(
    "asked",
    [
        *map(reads, ("prices/list.txt", "a.cost", "deep/b.cost", "link.txt", "prices/../a.cost")),
        reads("prices/*"),
        reads("**/*.cost"),
        '[EDIT_FILE path="a.cost"]\n<<<<<<< SEARCH\nnone\n=======\ny\n>>>>>>> REPLACE\n[/EDIT_FILE]\n',
        '[EDIT_FILE path="a.cost"]\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n[/EDIT_FILE]\n',
        '[MOVE_FILE path="a.cost" to="a.txt"]\n',
    ],
)
def test_it_is_not_sent_whatever_an_answer_asks(live: LiveSession, asked: str) -> None:
    assert KEPT not in live.request()
    live.answer(asked)
    assert KEPT not in live.request()
    assert (live.workspace / "a.cost").read_text() == f"{KEPT}\nx\n"


def test_it_is_not_sent_to_the_chat_of_a_candidate(tmp_path: Path) -> None:
    """Its copy has no rules where they lie in the home, as after `new --here`."""
    needs_bwrap()
    folder, answer = tmp_path / "project", tmp_path / "answer.txt"
    (folder / ".codingagent").mkdir(parents=True)
    for name, text in (("a.cost", KEPT), ("open.cost", "open\n"), (".codingagent/leave", RULES)):
        (folder / name).write_text(text)
    answer.write_text(reads("a.cost") + reads("open.cost"))
    begun = "new", "--here", "--no-wait", "--try", "--check=false", "x"
    for words in (begun, ("try", str(answer)), ("copy", "--candidate", "1")):
        done = run_here(*words, folder=folder)
        assert (done.returncode, done.stderr) == (0, "")
    assert "--- open.cost" in done.stdout
    assert KEPT not in done.stdout


def test_what_is_not_named_is_sent(live: LiveSession) -> None:
    live.answer(reads("*.cost"))
    assert "--- open.cost" in live.contents()


def test_it_is_not_attached_and_what_is_not_named_goes(live: LiveSession) -> None:
    root, policy = live.home.root, PRESETS["standard"]
    named = [str(live.workspace / "a.cost")]
    with pytest.raises(UsageError, match="never leaves this machine"):
        factory.attached(root, live.workspace, named, policy, lambda _: None)
    found = factory.attached(root, live.workspace, [str(live.workspace / "*.cost")], policy, lambda _: None)
    assert list(found) == ["open.cost"]


def test_an_answer_can_not_change_the_rules_unasked(live: LiveSession) -> None:
    assert "FAILED" in live.answer('[CREATE_FILE path=".codingagent/leave"]\n\n[/CREATE_FILE]\n')
    assert (live.workspace / ".codingagent/leave").read_text() == RULES


def test_an_answer_can_not_switch_them_off_for_itself(live: LiveSession) -> None:
    """They are read before its first command, also by a process of its own."""
    command = "python3 -c \"open(chr(46)+'coding'+'agent/lea'+'ve','w').write(chr(10))\""
    own = f'[REPLY session="{live.session_id}" sequence="1"]'
    text = f"{own}\n[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n{reads('a.cost')}[END]\n"
    (live.home.mailbox.inbox / "a.txt").write_text(text)
    command_line(live.home.root, "resume", "--once", "--yes")
    assert (live.workspace / ".codingagent/leave").read_text() == "\n"
    assert KEPT not in live.request(2)


def test_those_of_the_folders_above_count_to_the_repositorys_top(tmp_path: Path) -> None:
    for name in ("app/a.cost", "app/b.txt", ".git/HEAD", "app/sub/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    for folder, rules in (("", "*.cost\n"), ("app", "sub/\n")):
        (tmp_path / folder / ".codingagent").mkdir()
        (tmp_path / folder / ".codingagent/leave").write_text(rules)
    with contextlib.closing(Workspace(tmp_path / "app")) as workspace:
        kept = [workspace.stays(name) for name in ("a.cost", "b.txt", "sub/c.txt")]
    assert kept == [True, False, True]


@each_row(
    ("data", "why"),
    [
        (b"\xef\xbb\xbfa.cost\n", ""),
        ("a.cost\n".encode("utf-16"), "is not text in UTF-8"),
        (b"\xff\n", "is not text in UTF-8"),
        (b"a[[:digit:]].cost\n", "write [0-9]"),
        (b"a.cost\rb.cost\r", "save it with LF"),
        (b"x" * 1001 + b"\na.cost\n", "over 1,000 characters"),
        (b"prices\\list.txt\n", "write /"),
        (b"prices\\", "write /"),
        (b"# prices\\x\n\\#x\\\\y\\ \r\na.cost\r\n", ""),
        ("\u2028x\x0cy\na.cost".encode(), ""),
        (None, "is a link"),
    ],
)
def test_rules_that_may_mean_something_else_are_refused(tmp_path: Path, data: bytes | None, why: str) -> None:
    file = tmp_path / ".codingagent/leave"
    file.parent.mkdir(exist_ok=True)
    if data is None:
        (tmp_path / "rules").write_text("a.cost\n")
        file.unlink()
        file.symlink_to("../rules")
    else:
        file.write_bytes(data)
    with contextlib.closing(Workspace(tmp_path)) as workspace:
        if why:
            with pytest.raises(WorkError, match=re.escape(why)):
                workspace.check()
        else:
            assert workspace.stays("a.cost")


def test_the_log_names_what_was_kept(live: LiveSession) -> None:
    done = command_line(live.home.root, "log", "--egress")
    assert "never sent (.codingagent/leave): a.cost, deep/b.cost, prices/list.txt, link.txt" in done.stdout


def test_a_program_gets_it_no_more_than_a_chat(live: LiveSession) -> None:
    message = {
        "protocolVersion": "1.0",
        "type": "operations",
        "operations": [{"type": "readFile", "path": "a.cost"}],
    }
    (live.home.root / "message.json").write_text(json.dumps(message))
    done = command_line(live.home.root, "run", str(live.home.root / "message.json"))
    assert KEPT not in done.stdout
    assert "never leaves" in done.stdout
