"""Several answers to one request: each is tried in a copy, and one is taken, byte for byte."""

import os
import random
import re
import resource
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import pytest
from msgspec.structs import replace

from codingagent.agent import factory
from codingagent.agent.secrecy import vault_file_of
from codingagent.agent.tried import difference, named
from codingagent.checkpoints.undo import UndoChoice, take_back
from codingagent.cli.page.workers import words_of
from codingagent.errors import ApprovalError, UsageError, WorkError
from codingagent.model.approval import Answer, Decision
from codingagent.model.notices import Remark
from codingagent.model.session_state import Phase
from codingagent.model.settings import Settings
from codingagent.secrets.vault import Wishes
from codingagent.storage.homes import Home
from tests.helpers import LiveSession, live_session, wait_until
from tests.killing import (
    Tree,
    command_line_here,
    has_lines,
    has_text,
    kill_when,
    lines_of,
    no_halves,
    none_outlives,
    tree,
)
from tests.sandboxes import needs_bwrap
from tests.warm import start_command
from tests.workspace.test_git_history import git

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.with_git]

CHECK = "test $(cat sum.txt) = 3 && grep -q dep deps/dep && echo x > deps/written"
DONE = "[DONE]\nall right\n[/DONE]\n"


def create(path: str, text: str) -> str:
    return f'[CREATE_FILE path="{path}"]\n{text}\n[/CREATE_FILE]\n'


def command(line: str) -> str:
    return f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n"


GREEN = create("sum.txt", "3") + command(
    "printf 'a\\0b\\377' > made; chmod +x made; ln -s made link; rm old.txt"
)
RED = create("sum.txt", "4")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    needs_bwrap()
    folder = tmp_path / "workspace"
    (folder / "deps").mkdir(parents=True)
    for name, text in {
        "sum.txt": "0\n",
        "old.txt": "old\n",
        "deps/dep": "dep\n",
        ".gitignore": "deps\n",
    }.items():
        (folder / name).write_text(text, "utf-8")
    with live_session(tmp_path, settings=Settings(check=CHECK)) as found:
        yield found


def tried(live: LiveSession, *answers: str) -> list[bool]:
    """Try answers; return which have a green check."""
    conversation = live.conversation
    conversation.try_candidates([conversation.trials.begin(answer.encode()) for answer in answers])
    return [bool(ended and ended.outcome == "green") for _, ended in conversation.session.trials]


def files(live: LiveSession) -> Tree:
    return tree(live.workspace)


def undo(live: LiveSession) -> None:
    take_back(live.home, live.conversation.context.checkpointer, UndoChoice())


def test_one_of_three_is_taken_as_it_was_tried_and_can_be_undone(live: LiveSession) -> None:
    before = files(live)
    assert tried(live, RED, GREEN + DONE, "Only words.") == [False, True, False]
    assert files(live) == before, "the workspace is as it was"
    copies = live.home.sessions.folder / live.session_id / "candidates"
    made = tree(copies / "2/home/workspace")
    live.conversation.take_candidate(2)
    assert {path: files(live)[path] for path in ("sum.txt", "made")} == {
        path: made[path] for path in ("sum.txt", "made")
    }
    assert (live.workspace / "link").readlink() == Path("made")
    assert os.access(live.workspace / "made", os.X_OK)
    assert not (live.workspace / "old.txt").exists()
    assert [each.name for each in (live.workspace / "deps").iterdir()] == ["dep"]
    assert live.conversation.session.is_complete
    assert not copies.exists(), "they are kept until the session ends"
    undo(live)
    assert files(live) == before


def test_the_next_request_has_its_results_and_its_changes_are_the_chats_own(live: LiveSession) -> None:
    tried(live, create("sum.txt", "3") + command("echo new > old.txt"))
    live.conversation.take_candidate(1)
    assert live.conversation.session.sequence == 2
    assert "sum.txt" in live.results()
    assert live.results().count("files that commands changed: old.txt (modified)") == 1
    # A file that the person had changed would not be replaced whole.
    live.answer(create("old.txt", "again") + create("sum.txt", "3 "))
    assert (live.workspace / "old.txt").read_text("utf-8") == "again\n"


def test_what_commands_are_told_of_the_folder_is_the_workspace(live: LiveSession) -> None:
    for number in range(501):  # so many are not copied
        (live.workspace / f"deps/{number}").touch()
    tried(live, command("pwd; ls -d deps .codingagent sessions; echo y > deps/dep; cat deps/dep"))
    one = live.conversation.trials.named(1)
    assert one.session is not None
    output = str(one.session.results[0])
    assert str(live.workspace) in output
    assert "candidates" not in output
    assert (live.workspace / "deps/dep").read_text("utf-8") == "dep\n"


def test_a_check_makes_anew_what_git_ignores(live: LiveSession) -> None:
    """A folder that is mounted could not be removed."""
    line = "rm -r deps && mkdir -p deps/a && cat sum.txt > deps/a/b && test $(cat deps/*/*) = 3"
    live.conversation.requests.name_check(line)
    live.conversation.write_due()
    assert tried(live, GREEN, RED) == [True, False]
    assert (live.workspace / "deps/dep").read_text("utf-8") == "dep\n"


@pytest.mark.parametrize(
    ("answers", "change", "number", "why"),
    [
        ((GREEN,), "", 2, "there is no candidate 2"),
        ((GREEN,), "sum.txt", 1, "sum.txt changed in the workspace since"),
        ((GREEN,), "other.txt", 1, "other.txt changed in the workspace since"),
        ((create("deps/dep", "mine"),), "", 1, "in a folder that git ignores"),
        (
            (command("head -c 5000001 /dev/zero > large"),),
            "",
            1,
            "changed large, in a folder that git ignores or over",
        ),
        ((command("echo >> large.bin"),), "", 1, "changed large.bin, in a folder that git ignores or over"),
        ((command("rm large.bin"),), "", 1, "changed large.bin, in a folder that git ignores or over"),
        ((command("rm -rf old.txt"),), "", 1, "asks you: RUN_COMMAND rm -rf old.txt"),
        (("=== HEADER ===\n=== PROTOCOL ===\n",), "", 1, "is no answer"),
    ],
)
def test_what_would_not_be_as_tried_is_refused(
    live: LiveSession, answers: tuple[str, ...], change: str, number: int, why: str
) -> None:
    (live.workspace / "large.bin").write_bytes(bytes(5_000_001))
    tried(live, *answers)
    if change:
        (live.workspace / change).write_text("the person's\n", "utf-8")
    before = files(live)
    with pytest.raises(UsageError, match=why):
        live.conversation.take_candidate(number)
    assert files(live) == before
    assert live.conversation.session.phase is Phase.AWAITING_ANSWER


def test_a_red_one_goes_on_with_its_own_chat_and_is_taken_with_all_its_turns(live: LiveSession) -> None:
    """Its next request is in its own outbox, with its failure."""
    live.conversation.requests.name_chats(1, takes_green=True)
    live.drop(create("more.txt", "more") + RED, "first.txt")
    live.conversation.take("first.txt")
    live.conversation.finish_trials()
    own = live.conversation.trials.named(1).home.mailbox.outbox_path(live.session_id, 2)
    assert "The user's check" in own.read_text("utf-8")
    head = f'[REPLY session="{live.session_id}" sequence="2"]\n'
    live.drop(f"{head}{create('sum.txt', '3')}[END]\n", "second.txt")
    live.conversation.take("second.txt")
    kept = live.home.mailbox.processed / f"{live.session_id}_seq0002_candidate1.txt"
    assert kept.read_text("utf-8") == f"{head}{create('sum.txt', '3')}[END]\n"
    assert (live.workspace / "more.txt").read_text("utf-8") == "more\n"
    assert (live.workspace / "sum.txt").read_text("utf-8") == "3\n"
    assert live.conversation.session.sequence == 2


def test_two_that_change_the_same_file_exclude_each_other(live: LiveSession) -> None:
    tried(live, create("sum.txt", "3") + create("old.txt", "one"), create("old.txt", "two"))
    assert "-one\n+two" in difference(live.home, live.conversation.session, 1, 2)
    live.conversation.take_candidate(1)
    with pytest.raises(UsageError, match="no candidate 2 for"):
        live.conversation.take_candidate(2)
    assert (live.workspace / "old.txt").read_text("utf-8") == "one\n"


def test_one_keeps_what_another_removes(live: LiveSession) -> None:
    """Each has a copy of its own: what is taken has nothing of the others."""
    tried(live, create("old.txt", "kept"), '[DELETE_FILE path="old.txt"]\n' + create("sum.txt", "3"))
    live.conversation.take_candidate(2)
    assert not (live.workspace / "old.txt").exists()
    undo(live)
    assert (live.workspace / "old.txt").read_text("utf-8") == "old\n"


def test_a_secret_that_a_candidate_finds_first_goes_to_no_chat(live: LiveSession) -> None:
    secret = "Xq9vLr2mTz8wPd"
    made = create(".env", f"DB_PASSWORD={secret}") + command("cut -d= -f2 .env | tee old.txt")
    tried(live, made + '[DELETE_FILE path=".env"]\n' + create("sum.txt", "4"))
    own = named(live.home, live.conversation.session, 1)
    assert own.session is not None
    text = own.home.mailbox.outbox_path(own.session.session_id, 2).read_text("utf-8")
    live.conversation.take_candidate(1)
    for request in (text, live.request()):
        assert "SECRET-" in request
        assert secret not in request
    assert secret in (live.workspace / "old.txt").read_text("utf-8")


def test_what_another_candidate_found_and_the_person_hides_goes_to_no_chat(live: LiveSession) -> None:
    secret, word = "Xq9vLr2mTz8wPd", "Aardvark Limited"
    (live.workspace / ".env").write_text(f"DB_PASSWORD={secret}\n", "utf-8")
    (live.workspace / "old.txt").write_text(f"{secret} of {word}\n", "utf-8")
    tried(live, RED)
    tried(live, '[READ_FILE path=".env"]\n' + create("sum.txt", "4"))
    vault_file_of(live.home.sessions.folder, live.conversation.session).keep_wishes(Wishes(hide=(word,)))
    live.conversation.trials.give(1, (command("cat old.txt") + RED).encode())
    live.conversation.try_candidates([1])
    own = named(live.home, live.conversation.session, 1).home.mailbox.outbox_path(live.session_id, 3)
    assert secret not in (text := own.read_text("utf-8"))
    assert word not in text


def test_a_damaged_candidate_is_told_and_stops_no_other(live: LiveSession) -> None:
    tried(live, RED, GREEN)
    own = named(live.home, live.conversation.session, 1).home.sessions.journal_path(live.session_id)
    own.write_bytes(own.read_bytes().replace(b'"kind":"reply_taken"', b'"kind":"gone"'))
    live.conversation.try_candidates([1, 2])
    assert "can't be read" in live.conversation.session.tried[1].told
    with pytest.raises(UsageError, match="can't be read"):
        live.conversation.take_candidate(1)
    live.conversation.take_candidate(2)
    assert (live.workspace / "sum.txt").read_text("utf-8") == "3\n"


def test_an_answer_that_may_be_of_two_chats_is_tried_as_neithers(live: LiveSession) -> None:
    live.conversation.requests.name_chats(2, takes_green=False)
    tried(live, RED, RED)
    live.drop(f'[REPLY session="{live.session_id}" sequence="2"]\n{GREEN}[END]\n', "next.txt")
    live.conversation.take("next.txt")
    assert len(live.conversation.session.candidates) == 2
    assert (live.home.mailbox.rejected / "next.txt").exists()


def test_two_are_tried_at_once_and_an_interrupt_ends_both(tmp_path: Path, live: LiveSession) -> None:
    """Both have begun before either ended; what was interrupted is not run again, the rest is done."""
    files = [tmp_path / name for name in ("one.txt", "two.txt")]
    for file in files:
        file.write_text(command(f"echo x > begun; sleep 600; echo {file.name}") + GREEN, "utf-8")
    live.work.close()
    own = live.home.sessions.folder / live.session_id / "candidates"
    with (
        none_outlives(),
        start_command(
            "--home", str(live.home.root), "try", *map(str, files), stdout=DEVNULL, stderr=DEVNULL
        ) as process,
    ):
        wait_until(lambda: all(has_text(own / f"{number}/home/workspace/begun") for number in (1, 2)))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    status, said, errors = command_line_here(live.home.root, "try")
    assert (status, errors) == (0, "")
    assert said.count("check green") == 2
    assert not (live.workspace / "begun").exists()


def test_a_command_that_never_ends_is_ended_and_the_other_one_goes_on(live: LiveSession) -> None:
    never = '[RUN_COMMAND timeout="1"]\nsleep 600 & sleep 600\n[/RUN_COMMAND]\n'
    assert tried(live, never, GREEN) == [False, True]


@pytest.mark.parametrize("decision", ["yes", "no"])
@pytest.mark.parametrize("way", ["FILES_CHANGED", "CREATE_FILE"])
def test_a_protected_file_is_asked_about_in_the_copy_and_here(
    live: LiveSession, way: str, decision: Decision
) -> None:
    """A yes to the copy's is none to the workspace's; without an answer neither goes on."""
    made = (
        "import os; os.makedirs('.github/workflows'); open('.github/workflows/a.yml', 'w').write('on: push')"
    )
    conversation, path = live.conversation, live.workspace / ".github/workflows/a.yml"
    by_file = create(".github/workflows/a.yml", "on: push")
    tried(live, create("sum.txt", "3") + (by_file if way[0] == "C" else command(f'python3 -c "{made}"')))
    assert f"asks you: {way} .github/workflows/a.yml" in conversation.trials.named(1).state
    yes = replace(conversation.context.person, ask=lambda _: Answer("yes"))
    with factory.session_in(live.home, conversation.session, Settings(check=CHECK), yes) as work:
        work.conversation.try_candidates([1])
    live.conversation.context.log.catch_up()
    with pytest.raises(ApprovalError):
        conversation.take_candidate(1)
    assert path.exists()
    conversation.answer(None, Answer(decision))
    conversation.recover()
    assert path.exists() == (decision == "yes")
    assert (live.workspace / "sum.txt").read_text("utf-8") == "3\n"
    assert conversation.session.sequence == 2


@pytest.mark.parametrize(
    ("count", "answers", "text"),
    [(1, (GREEN,), "3\n"), (1, (RED,), "0\n"), (2, (RED, GREEN), "3\n"), (2, (GREEN, GREEN + DONE), "0\n")],
)
def test_answers_from_the_inbox_are_tried_first(
    live: LiveSession, count: int, answers: tuple[str, ...], text: str
) -> None:
    live.conversation.requests.name_chats(count, takes_green=True)
    if len(answers) > 1:  # the same file from two downloads is one answer, and the person hears so
        for name in ("a.txt", "b.txt"):
            live.drop(answers[0], name)
            live.conversation.take(name)
        assert Remark("b.txt is candidate 1 once more: set aside") in live.notices
    for number, answer in enumerate(answers):
        live.drop(answer, f"{number}.txt")
        live.conversation.take(f"{number}.txt")
    live.conversation.finish_trials()
    assert (live.workspace / "sum.txt").read_text("utf-8") == text
    if live.conversation.session.sequence == 2:  # it goes to one chat, so one answer will do
        live.drop(create("sum.txt", "3 "), "next.txt")
        live.conversation.take("next.txt")
        live.conversation.finish_trials()
        assert (live.workspace / "sum.txt").read_text("utf-8") == "3 \n"
    assert not list(live.home.mailbox.inbox.glob("*.txt"))


def test_the_commands(tmp_path: Path) -> None:
    """`new --try` and its answer, `try FILE…`, `try --diff`, `take`: and what is refused in one line."""
    needs_bwrap()
    home, files = tmp_path / "home", [tmp_path / name for name in ("one.txt", "two.txt")]
    for file, answer in zip(files, (RED, create("sum.txt", "3") + DONE), strict=True):
        file.write_text(answer, "utf-8")
    for words, status, said in (
        (("new", "--no-wait", "--try", "--check", "grep -q 3 sum.txt", "x"), 0, "Request 1"),
        (("take", "1"), 2, "there is no candidate 1"),
        (("try", "missing.txt"), 2, "missing.txt is no file"),
        (("try", *map(str, files[:1])), 0, "candidate 1: check FAILS, commands took"),
        (("try", "--after", "1", str(files[0])), 0, "candidate 1: check FAILS"),
        (("try", str(files[1])), 0, "Done: all right"),
        (("try", str(files[0])), 2, "has no request that waits"),
        (("take", "1"), 2, "has no request that waits"),
        (("try", "--diff", "0", "1"), 2, "has no request that waits"),
        (("say", "more"), 0, "Request 2"),
        (("resume", "--once", "--chats", "0"), 0, "before one is taken: 0"),
        (("try", str(files[0])), 0, "candidate 3: check FAILS"),
        (("copy", "--candidate", "3"), 0, "[FAILED] CHECK"),
        (("copy", "--candidate", "1"), 2, "there is no candidate 1"),
        (("log", "--egress"), 0, "request 3 to the chat of candidate 3: "),
        (("try", "--diff", "0", "3"), 0, "+4"),
        (("try", "--diff", "1", "3"), 2, "can't be compared"),
    ):
        found = command_line_here(home, *words)
        assert found[0] == status, found
        assert said in found[1] + found[2], found
    assert (home / "workspace/sum.txt").read_text("utf-8") == "3\n"
    (own,) = home.glob("sessions/*/candidates/3/home")
    (link := tmp_path / "link").symlink_to(own)
    for place, words, said in (
        (own, ("list",), "no home of its own"),
        (link, ("list",), "no home of its own"),
        (home, ("close",), "closed"),
        (home, ("delete", own.parents[2].name, "--yes"), "deleted"),
    ):
        found = command_line_here(place, *words)
        assert said in found[1] + found[2], found
        assert own.exists() == (place != home)


@pytest.mark.parametrize("seed", range(4))
def test_kills_while_it_is_tried_and_while_it_is_taken(tmp_path: Path, live: LiveSession, seed: int) -> None:
    """Whatever instant is hit: the workspace changes once, all of it, and no command runs twice."""
    chance, before, workspace = random.Random(seed), files(live), live.workspace
    journal = live.home.sessions.journal_path(live.session_id)
    many = "".join(create(f"many/{number}.txt", f"{number}") for number in range(60))
    answer, red = tmp_path / "answer.txt", tmp_path / "red.txt"
    red.write_text(many + RED, "utf-8")
    answer.write_text(many + command("echo ran >> log") + GREEN, "utf-8")
    live.work.close()
    copy = journal.parent / "candidates/1/home"
    own = copy / "sessions" / live.session_id / "journal.jsonl"
    begun = lines_of(journal)

    def has_come(lines: int) -> bool:
        if lines:
            return own.exists() and lines_of(own) >= begun + lines
        return lines_of(journal) > begun  # its copy is made

    answers = [str(each) for each in (answer, red)[: 1 + seed % 2]]  # side by side, if there are two
    come = partial(has_come, chance.choice((0, 1, 120 + chance.randrange(12), chance.randrange(130))))
    kill_when(live.home.root, ("try", *answers), come, chance.random() / 20)
    found = command_line_here(live.home.root, "try")
    assert (found[0], found[2]) == (0, "")
    # A check that was hit is not run again.
    assert re.search("candidate 1: check (green|did not end)", found[1]), found
    assert files(live) == before
    log = copy / "workspace/log"
    assert (log.read_text("utf-8") if log.exists() else "") in ("", "ran\n")
    lines = lines_of(journal)
    kill_when(
        live.home.root,
        ("take", "1"),
        has_lines(journal, lines + 1 + chance.randrange(130)),
        chance.random() / 20,
    )
    command_line_here(live.home.root, "resume", "--once")
    if live.home.sessions.load(live.session_id).sequence == 1:  # it was killed before it began
        command_line_here(live.home.root, "take", "1")
    tried_files = {
        path: each for path, each in tree(copy / "workspace").items() if not path.startswith("deps")
    }
    assert {path: each for path, each in files(live).items() if not path.startswith("deps")} == tried_files
    assert workspace.joinpath("many/59.txt").exists()
    assert live.home.sessions.load(live.session_id).sequence == 2
    no_halves(live.home.root)


def test_the_files_of_a_submodule_and_of_a_nested_repository_are_as_others(
    tmp_path: Path, live: LiveSession
) -> None:
    """Nobody is asked about a `.git` that no command changed; a home may be named by a link."""
    places = [live.workspace / name for name in ("by_file", "by_folder", "nested")]
    for place in (live.workspace, *places):
        place.mkdir(exist_ok=True)
        apart = ["--separate-git-dir", str(tmp_path / "own.git")] if place == places[0] else []
        git(place, "init", "-q", *apart)
        (place / "sum.txt").write_text("0\n", "utf-8")
        git(place, "add", "sum.txt")
        git(place, "commit", "-qm", "first")
    git(live.workspace, "-c", "advice.addEmbeddedRepo=false", "add", "by_file", "by_folder")
    live.work.close()
    (link := tmp_path / "link").symlink_to(live.home.root)
    answer = tmp_path / "answer.txt"
    changed = "".join(create(f"{place.name}/sum.txt", "1") for place in places)
    made = " ".join(f"{place.name}/made" for place in places)
    answer.write_text(changed + command(f"touch {made}") + create("sum.txt", "3"), "utf-8")
    for words in (("try", str(answer)), ("take", "1")):
        found = command_line_here(link, *words)
        assert (found[0], found[2]) == (0, ""), found
    assert [(place / "sum.txt").read_text("utf-8") for place in places] == ["1\n"] * 3
    assert all((place / "made").exists() for place in places)


def test_in_a_folder_of_a_repository_its_rules_count(tmp_path: Path, live: LiveSession) -> None:
    """Also where it tracks what they ignore, in an index of two parts."""
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.o\nworkspace/out/\n", "utf-8")
    (live.workspace / "kept.o").write_text("0\n", "utf-8")
    git(tmp_path, "add", "-f", "workspace/kept.o")
    git(tmp_path, "update-index", "--split-index")
    made = command("mkdir out; echo x | tee made made.o out/made; echo 1 > kept.o")
    assert tried(live, made + create("sum.txt", "3")) == [True]
    told = live.conversation.session.tried[1].told
    assert "kept.o, made, sum.txt" in told
    live.conversation.take_candidate(1)
    assert (live.workspace / "kept.o").read_text("utf-8") == "1\n"
    names = {each.name for each in live.workspace.iterdir()}
    assert names == {".gitignore", "deps", "kept.o", "made", "old.txt", "sum.txt"}


def test_commands_of_a_copy_see_no_home_that_is_in_the_workspace(tmp_path: Path) -> None:
    needs_bwrap()
    (answer := tmp_path / "answer.txt").write_text(create("made", "1"), "utf-8")
    (workspace := tmp_path / "workspace").mkdir()
    git(workspace, "init", "-q")
    home, check = workspace / ".codingagent", "ls -dA .codingagent/* && exit 1; git log 2>&1 | grep commits"
    at = "--workspace", str(workspace), "--check", check
    command_line_here(home, "new", "--no-wait", *at, "x")
    found = command_line_here(home, "try", str(answer))
    assert "candidate 1: check green" in found[1], found


def test_half_a_copy_takes_no_room(live: LiveSession) -> None:
    """On a full disk nothing else could be done."""
    number = live.conversation.trials.begin(GREEN.encode())
    (kept := live.home.mailbox.processed / live.conversation.session.candidates[0].name).unlink()
    with pytest.raises(WorkError, match="can't be made; `codingagent try` does it once"):
        live.conversation.try_candidates([number])
    assert not list(live.home.sessions.folder.glob("*/candidates/1/*"))
    kept.write_text(GREEN, "utf-8")
    live.conversation.try_candidates([number])
    live.conversation.take_candidate(number)


def test_a_chat_that_keeps_no_guide_has_it_once_its_answer_is_taken(tmp_path: Path) -> None:
    needs_bwrap()
    with live_session(tmp_path, settings=Settings(check="true", guide="installed")) as live:
        tried(live, GREEN)
        live.conversation.take_candidate(1)
        assert "[CREATE_FILE" in live.request().partition("=== CONTEXT")[0]


def test_a_candidate_is_of_the_session_whose_page_it_is_on(tmp_path: Path) -> None:
    """Of several sessions that wait, the latest one is meant otherwise."""
    needs_bwrap()
    for number in (1, 2):
        (tmp_path / f"{number}.txt").write_text(create("sum.txt", f"{number}"), "utf-8")
        command_line_here(tmp_path, "new", "--no-wait", "--check", "true", f"{number}")
    sessions = Home.of(tmp_path).sessions
    first, second = sorted(map(sessions.load, sessions.ids()), key=lambda each: each.task)
    command_line_here(tmp_path, "try", str(tmp_path / "2.txt"))
    command_line_here(tmp_path, "try", "--session", first.session_id, str(tmp_path / "1.txt"))
    for action in ("try", "take"):
        words, _ = words_of(action, first, {"number": "1"})
        assert command_line_here(tmp_path, *words)[0] == 0
    assert (tmp_path / "workspace/sum.txt").read_text("utf-8") == "1\n"
    assert [sessions.load(each.session_id).sequence for each in (first, second)] == [2, 1]


def test_what_the_disk_refused_is_not_taken_in_part(live: LiveSession) -> None:
    """Once there is room, the rest is done."""
    tried(live, command("head -c 2000000 /dev/zero > large; touch made") + create("sum.txt", "3"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(WorkError, match=r"large: .*; once that is mended, `codingagent resume`"):
            live.conversation.take_candidate(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert live.conversation.session.phase is Phase.EXECUTING
    live.conversation.recover()
    assert (live.workspace / "large").stat().st_size == 2_000_000
    assert live.conversation.session.sequence == 2
