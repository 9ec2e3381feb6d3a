"""Approvals: what the policy asks for is done only after a yes, for exactly what was shown."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from codingagent.agent import context
from codingagent.agent.conversation import Conversation
from codingagent.errors import ApprovalError, UsageError
from codingagent.model.approval import Answer, Question
from codingagent.model.events import CommandRan, Denied, FileCreated
from codingagent.model.journal_entries import ApprovalAnswered, ApprovalAsked
from codingagent.model.session_state import Phase
from codingagent.model.settings import Settings
from codingagent.process import memory
from tests.helpers import LiveSession, Told, conversation_in, live_session, watcher
from tests.sandboxes import needs_bwrap

REMOVE = "[RUN_COMMAND]\nrm -r build\n[/RUN_COMMAND]\n"
EDITOR = '[CREATE_FILE path=".vscode/tasks.json"]\n{}\n[/CREATE_FILE]\n'


class Person:
    """Answers what is asked, one answer after the other; without one nobody is there."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []

    def __call__(self, notice: ApprovalAsked) -> Answer | None:
        self.asked.append(notice.question)
        return self._answers.pop(0) if self._answers else None


def sit_down(home: Path, settings: Settings | None = None) -> LiveSession:
    """Starts a session whose workspace has a build folder."""
    with live_session(home, settings=settings, has_git=False) as live:
        pass
    (live.workspace / "build").mkdir()
    (live.workspace / "build" / "o").touch()
    return live


def take(
    live: LiveSession,
    reply: str,
    person: Person,
    *,
    approves_all: bool = False,
    settings: Settings | None = None,
) -> LiveSession:
    """Has a reply taken, with someone there to ask."""
    session = live.home.sessions.load(live.session_id)
    notices: list[Told] = []
    who = watcher(notices, person, approves_all)
    with conversation_in(live.home, session, settings or Settings(), who) as conversation:
        if reply:
            live.drop(reply)
            conversation.take("reply.txt")
        else:
            conversation.recover()
        again = LiveSession(live.home, live.session_id, conversation)
        again.notices = notices
        return again


def test_a_yes_lets_it_be_done(tmp_path: Path) -> None:
    """Design, policy: on a terminal we ask, showing what and why: yes, no, always."""
    live = sit_down(tmp_path)
    person = Person(Answer("yes"))
    after = take(live, REMOVE, person)
    assert not (live.workspace / "build").exists()
    (asked,) = person.asked
    assert asked.shown == "rm -r build"
    assert "may delete" in asked.reasons[0]
    assert "[OK] RUN_COMMAND: Ran 'rm -r build'" in after.results()


def test_a_no_is_a_result_with_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Design, policy: a denied operation is a result that the model understands, with a suggestion."""
    live = sit_down(tmp_path)
    after = take(live, REMOVE + EDITOR, Person(Answer("no", reason="keep it"), Answer("yes")))
    assert (live.workspace / "build" / "o").exists()
    assert (live.workspace / ".vscode" / "tasks.json").exists()
    results = after.results()
    assert "[FAILED] RUN_COMMAND: DENIED 'rm -r build': the user said no: keep it" in results
    assert "Find another way, or ask with MESSAGE" in results


def test_always_covers_what_was_shown_and_no_other(tmp_path: Path) -> None:
    """Design, policy: always for this session says what it covers, and covers little."""
    live = sit_down(tmp_path)
    (live.workspace / "out" / "a").mkdir(parents=True)
    person = Person(Answer("always"))
    take(live, REMOVE.replace("build", "out/a"), person)
    assert person.asked[0].grants == ("`rm -r` of paths under out/",)
    session = live.home.sessions.load(live.session_id)
    assert session.granted == {"`rm -r` of paths under out/"}
    (live.workspace / "out" / "b").mkdir()
    nobody = Person()
    take(live, REMOVE.replace("rm", "rm -v").replace("build", "out/b"), nobody)
    assert not nobody.asked
    assert not (live.workspace / "out" / "b").exists()
    for other in (REMOVE, REMOVE.replace("build", "out/c/d"), REMOVE.replace("rm -r", "rm -rf")):
        no = Person(Answer("no"))
        take(live, other, no)
        assert len(no.asked) == 1
    with pytest.raises(ApprovalError):
        take(live, EDITOR, nobody)
    assert len(nobody.asked) == 1


def test_what_was_approved_for_always_is_taken_back(tmp_path: Path) -> None:
    """Design, policy: `revoke` takes it back, and the record says so."""
    live = sit_down(tmp_path)
    take(live, REMOVE, Person(Answer("always")))
    with live_session(tmp_path, session_id=live.session_id) as again:
        with pytest.raises(UsageError, match="not granted in session"):
            again.conversation.requests.revoke(("`rm -r` of 'src'",))
        again.conversation.requests.revoke(("`rm -r` of 'build'",))
        assert again.conversation.session.granted == frozenset()
    (live.workspace / "build").mkdir()
    no = Person(Answer("no"))
    take(live, f"Once more.\n{REMOVE}", no)
    assert len(no.asked) == 1


def test_yes_beforehand_approves_what_is_asked_and_never_what_is_blocked(tmp_path: Path) -> None:
    """Design, policy: `--yes` approves what would be asked, never what is blocked."""
    live = sit_down(tmp_path)
    blocked = "[RUN_COMMAND]\nsudo id\n[/RUN_COMMAND]\n"
    person = Person()
    after = take(live, REMOVE + blocked, person, approves_all=True)
    assert not person.asked
    assert not (live.workspace / "build").exists()
    assert "[FAILED] RUN_COMMAND: DENIED 'sudo id'" in after.results()
    answers = [
        record.answer.by
        for record in live.home.sessions.records(live.session_id)
        if isinstance(record, ApprovalAnswered)
    ]
    assert answers == ["--yes"]


def test_without_anyone_to_ask_it_stops_and_nothing_is_done(tmp_path: Path) -> None:
    """Design, policy: elsewhere the agent stops with status 3 until `approve` or `deny`."""
    live = sit_down(tmp_path)
    with pytest.raises(ApprovalError, match=rf"codingagent approve {live.session_id} op-1"):
        take(live, REMOVE + EDITOR, Person())
    assert (live.workspace / "build" / "o").exists()
    session = live.home.sessions.load(live.session_id)
    assert session.phase is Phase.AWAITING_APPROVAL
    with pytest.raises(ApprovalError):
        take(live, "", Person())
    asked = [r for r in live.home.sessions.records(live.session_id) if isinstance(r, ApprovalAsked)]
    assert len(asked) == 1


def test_an_answer_to_something_else_does_nothing(tmp_path: Path) -> None:
    """Design, policy: an answer names what awaits approval, or nothing is executed."""
    live = sit_down(tmp_path)
    with live_session(tmp_path, session_id=live.session_id) as again:
        with pytest.raises(UsageError, match=r"nothing in [0-9a-f]{8} waits"):
            again.conversation.answer(None, Answer("yes"))
        again.drop(REMOVE)
        with pytest.raises(ApprovalError):
            again.conversation.take("reply.txt")
        with pytest.raises(UsageError, match="'op-7' does not wait for approval; op-1 does"):
            again.conversation.answer("op-7", Answer("yes"))
        assert (live.workspace / "build" / "o").exists()
        again.conversation.answer("op-1", Answer("yes"))
        with pytest.raises(UsageError, match=r"nothing in [0-9a-f]{8} waits"):
            again.conversation.answer("op-1", Answer("yes"))
        again.conversation.recover()
    assert not (live.workspace / "build").exists()


def test_a_yes_holds_for_exactly_what_was_shown(tmp_path: Path) -> None:
    """Design, policy: approval binds to the bytes; if these would be others now, it is asked anew."""
    live = sit_down(tmp_path)
    tasks = live.workspace / ".vscode" / "tasks.json"
    tasks.parent.mkdir()
    tasks.write_text("one\ntwo\n")
    edit = (
        '[EDIT_FILE path=".vscode/tasks.json"]\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n'
        "[/EDIT_FILE]\n"
    )
    with pytest.raises(ApprovalError):
        take(live, edit, Person())
    tasks.write_text("one\nsomething else\n")
    person = Person()
    with live_again(live) as conversation:
        conversation.answer("op-1", Answer("yes"))
    with pytest.raises(ApprovalError):
        take(live, "", person)
    assert "something else" in person.asked[0].shown
    assert tasks.read_text() == "one\nsomething else\n"
    take(live, "", Person(Answer("yes")))
    assert tasks.read_text() == "1\nsomething else\n"


def live_again(live: LiveSession) -> AbstractContextManager[Conversation]:
    session = live.home.sessions.load(live.session_id)
    return conversation_in(live.home, session, Settings(), context.Person(lambda _: None))


def test_a_link_to_a_protected_file_is_asked_for_by_where_it_leads(tmp_path: Path) -> None:
    """Design, policy: links are resolved before they are judged, also those to what is not there."""
    live = sit_down(tmp_path)
    (live.workspace / "innocent").symlink_to(".vscode")
    (live.workspace / "file").symlink_to(".github/workflows/ci.yml")
    for path in ("innocent/tasks.json", "file"):
        person = Person(Answer("no"))
        take(live, f'[CREATE_FILE path="{path}"]\nx\n[/CREATE_FILE]\n', person)
        assert len(person.asked) == 1, path
    assert not (live.workspace / ".vscode").exists()
    assert not (live.workspace / ".github").exists()


def test_deleting_a_protected_file_is_asked_for(tmp_path: Path) -> None:
    """Design, policy: protected files are never changed in silence."""
    live = sit_down(tmp_path)
    (live.workspace / ".envrc").write_text("x")
    person = Person(Answer("no"))
    take(live, '[DELETE_FILE path=".envrc"]\n', person)
    assert person.asked[0].shown == "the file is deleted"
    assert (live.workspace / ".envrc").exists()


def test_what_can_not_be_done_is_refused_before_anyone_is_asked(tmp_path: Path) -> None:
    """Design, purpose: the person's round trip is scarce; nobody is asked for what would fail."""
    live = sit_down(tmp_path)
    person = Person()
    reply = (
        '[DELETE_FILE path=".vscode/none.json"]\n'
        '[CREATE_FILE path=".git/hooks/x"]\nx\n[/CREATE_FILE]\n'
        '[EDIT_FILE path=".envrc"]\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    )
    after = take(live, reply, person)
    assert not person.asked
    assert after.results().count("[FAILED]") == 3


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [("restrictive", [Denied, Denied, Denied]), ("permissive", [FileCreated, FileCreated, CommandRan])],
)
def test_the_presets_hold(tmp_path: Path, policy: str, kinds: list[type]) -> None:
    """Design, policy: restrictive: read-only, no shell; permissive: asks nothing."""
    live = sit_down(tmp_path)
    create = '[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n'
    take(live, create + EDITOR + REMOVE, Person(), settings=Settings(policy=policy))
    session = live.home.sessions.load(live.session_id)
    assert [type(event) for event in session.results] == kinds


def test_a_policy_can_keep_files_from_being_read(tmp_path: Path) -> None:
    """Design, policy: blocked_paths hold for reading too, also by a glob and through a link."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[filesystem]\nblocked_paths = ["secrets"]\n')
    live = sit_down(tmp_path / "home")
    (live.workspace / "secrets").mkdir()
    (live.workspace / "secrets" / "key").write_text("canary-1b2c")
    (live.workspace / "open").symlink_to("secrets")
    reply = '[READ_FILE path="secrets/key"]\n[READ_FILE path="open/key"]\n[READ_FILE path="**/key"]\n'
    after = take(live, reply, Person(), settings=Settings(policy=str(rules)))
    assert "canary-1b2c" not in after.request()
    assert after.results().count("DENIED") >= 2


def test_a_policy_can_lower_the_time_limit(tmp_path: Path) -> None:
    """Design, policy: shell.timeout is the most that a command may have, whatever it asks for."""
    rules = tmp_path / "rules.toml"
    rules.write_text("[shell]\ntimeout = 1\n")
    live = sit_down(tmp_path / "home")
    line = '[RUN_COMMAND timeout="60"]\nsleep 60\n[/RUN_COMMAND]\n'
    after = take(live, line, Person(), settings=Settings(policy=str(rules)))
    assert "ended at its time limit of 1 s" in after.results()


def test_the_model_is_told_of_the_policy(tmp_path: Path) -> None:
    """Design, outbox: Environment has what a model needs in order not to guess."""
    with live_session(tmp_path / "a") as live:
        assert "Approval: commands that delete folders" in live.request()
    with live_session(tmp_path / "b", settings=Settings(policy="restrictive")) as live:
        assert "files can only be read; commands are turned off" in live.request()


def test_the_model_is_told_how_long_a_command_may_run_and_what_it_may_take(tmp_path: Path) -> None:
    """Design, commands: who knows the limit need not run into it."""
    with live_session(tmp_path, settings=Settings(command_timeout=7, command_memory=512)) as live:
        within = "\n  Limits per command: 7 seconds, unless timeout is set"
        limit = memory.in_words(memory.limit_bytes(512))
        largest = f"files of {memory.FILE_LIMIT_BYTES >> 30} GiB" * (os.name != "nt")
        assert "; ".join(filter(None, (within, limit, largest))) + "\n" in live.request()


def test_a_reply_has_no_say_in_what_confines_it(tmp_path: Path) -> None:
    """Design, commands, sandbox: no attribute of a reply turns it off, or the policy, or the network on."""
    needs_bwrap()
    live = sit_down(tmp_path)
    words = 'sandbox="off" network="on" policy="permissive" yes="true"'
    person = Person(Answer("no"))
    take(live, f"[RUN_COMMAND {words}]\ntrue\n[/RUN_COMMAND]\n{REMOVE}", person)
    ran = live.home.sessions.load(live.session_id).results[0]
    assert isinstance(ran, CommandRan)
    assert (ran.sandbox, ran.has_network) == ("bwrap", False)
    assert len(person.asked) == 1


def test_what_the_sandbox_prevents_is_not_asked_about(tmp_path: Path) -> None:
    """A yes to `git push` without a network would only fail."""
    needs_bwrap()
    for settings, count in ((Settings(sandbox="require"), 1), (Settings(sandbox="off"), 3)):
        live = sit_down(tmp_path / settings.sandbox, settings)
        person = Person(*[Answer("no")] * 3)
        lines = ("git push x HEAD", "touch /usr/gone", "rm -r build")
        reply = "".join(f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n" for line in lines)
        take(live, reply, person, settings=settings)
        assert len(person.asked) == count
        assert not Path("/usr/gone").exists()
