"""Answers that hold no command of ours but edits in a form that models use anyway, in a real session."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from codingagent.agent import context
from codingagent.errors import ApprovalError
from codingagent.model.approval import Answer, Question
from codingagent.model.journal_entries import ApprovalAsked, OperationEnded, Record
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from tests import helpers
from tests.helpers import LiveSession, conversation_in

DIFF = """Here is the change:

```diff
--- a/cart.py
+++ b/cart.py
@@ -1,2 +1,2 @@
 def total(net, discount):
-    return net + discount
+    return net - discount
```
"""
OLD, NEW = "    return net + discount\n", "    return net - discount\n"
DONE = "[DONE]\nAll of it.\n[/DONE]\n"
CART = f"def total(net, discount):\n{OLD}"


@contextlib.contextmanager
def plain_session(
    root: Path,
    person: Callable[[ApprovalAsked], Answer | None] = lambda _: None,
    *,
    accepts_formats: bool = False,
    policy: str = "standard",
) -> Iterator[LiveSession]:
    """Starts a session with someone who can be asked, or who accepted formats beforehand."""
    with helpers.plain_session(root) as begun:
        pass
    session = begun.home.sessions.load(begun.session_id)
    settings = Settings(policy=policy)
    who = context.Person(lambda _: None, person, accepts_formats=accepts_formats)
    with conversation_in(begun.home, session, settings, who) as conversation:
        yield LiveSession(begun.home, begun.session_id, conversation)


def lay(live: LiveSession) -> Path:
    path = live.workspace / "cart.py"
    path.write_text(CART)
    return path


def test_a_diff_is_shown_and_applied_after_a_yes(tmp_path: Path) -> None:
    """Design, replies: shown as a diff, and needs a yes on a terminal."""
    shown: list[Question] = []

    def person(awaited: ApprovalAsked) -> Answer:
        shown.append(awaited.question)
        return Answer("yes")

    with plain_session(tmp_path, person) as live:
        path = lay(live)
        live.answer(DIFF)
        assert path.read_text() == CART.replace(OLD, NEW)
    (awaited,) = shown
    assert "+    return net - discount" in awaited.shown
    assert "came in another format" in awaited.reasons[0]


def test_without_a_yes_nothing_is_changed(tmp_path: Path) -> None:
    """Where nobody can be asked it waits, as anything that needs approval does."""
    with plain_session(tmp_path) as live:
        path = lay(live)
        with pytest.raises(ApprovalError):
            live.answer(DIFF)
        assert path.read_text() == CART


def test_it_can_be_accepted_beforehand(tmp_path: Path) -> None:
    """Design, replies: `--accept-formats` says it beforehand."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        path = lay(live)
        live.answer(DIFF)
        assert path.read_text() == CART.replace(OLD, NEW)
        text = live.request()
        assert "[OK] EDIT_FILE: Edited 'cart.py'" in text
        assert "write operations next time" in text


def test_what_takes_most_of_a_file_away_is_asked_all_the_same(tmp_path: Path) -> None:
    """A snippet under a file's name looks like the whole of it."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        path = live.workspace / "long.py"
        path.write_text("x = 1\n" * 100)
        with pytest.raises(ApprovalError):
            live.answer("### long.py\n\n```python\nx = 2\n```\n")
        assert path.read_text() == "x = 1\n" * 100


def test_beside_commands_it_is_done_with_them(tmp_path: Path) -> None:
    """Design, replies: beside blocks of ours it goes the same way where it can't be meant otherwise."""
    shown: list[Question] = []

    def person(awaited: ApprovalAsked) -> Answer:
        shown.append(awaited.question)
        return Answer("yes")

    with plain_session(tmp_path, person) as live:
        path = lay(live)
        live.drop(f"{DIFF}\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n{DONE}")
        live.conversation.take("reply.txt")
        assert path.read_text() == CART.replace(OLD, NEW)
        assert live.conversation.session.is_complete
    (awaited,) = shown
    assert "+    return net - discount" in awaited.shown


def test_beside_commands_a_no_leaves_the_task_open(tmp_path: Path) -> None:
    """Design, replies: what was not done leaves the task open."""
    with plain_session(tmp_path, lambda _: Answer("no")) as live:
        path = lay(live)
        live.answer(f"{DIFF}\n{DONE}")
        assert path.read_text() == CART
        assert not live.conversation.session.is_complete
        assert "Not accepted, because this failed: EDIT_FILE 'cart.py'" in live.results()


def test_beside_commands_what_does_not_fit_leaves_the_task_open(tmp_path: Path) -> None:
    """Design, replies: the text must fit."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        lay(live)
        live.answer(f"{DIFF.replace('def total', 'def sum_of')}\n{DONE}")
        assert not live.conversation.session.is_complete
        results = live.results()
        assert "[FAILED] EDIT_FILE" in results
        assert "[FAILED] DONE: Not accepted" in results


def test_beside_commands_what_is_not_certain_is_the_first_result(tmp_path: Path) -> None:
    """Design, replies: else it is named first in the results, and the answer's DONE does not count."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        path = lay(live)
        live.answer(f"[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n\n### cart.py\n\n```python\nx\n```\n{DONE}")
        assert path.read_text() == CART
        assert not live.conversation.session.is_complete
        first, *_ = live.results().splitlines()
        assert "[FAILED] CREATE_FILE: The part at line 7 was not used: 'cart.py' exists" in first


def test_beside_commands_a_repetition_is_asked_for_nowhere(tmp_path: Path) -> None:
    """The command did it; the file holds it already, and nothing is changed a second time."""
    edit = f'[EDIT_FILE path="cart.py"]\n<<<<<<< SEARCH\n{OLD}=======\n{NEW}>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    with plain_session(tmp_path) as live:
        path = lay(live)
        live.drop(f"{DIFF}\n{edit}{DONE}")
        live.conversation.take("reply.txt")
        assert path.read_text() == CART.replace(OLD, NEW)
        assert live.conversation.session.is_complete


def test_beside_the_rest_of_a_block_that_was_cut_it_is_done_too(tmp_path: Path) -> None:
    """Design, replies: beside blocks of ours, however they arrived."""
    first = '[REPLY session="{0}" sequence="1"]\n[CREATE_FILE path="a.txt"]\none line\nanother line\n'
    with plain_session(tmp_path, accepts_formats=True) as live:
        path = lay(live)
        live.answer(first.format(live.session_id))
        live.answer(f"another line\nthird line\n[/CREATE_FILE]\n\n{DIFF}", "rest.txt")
        assert (live.workspace / "a.txt").read_text() == "one line\nanother line\nthird line\n"
        assert path.read_text() == CART.replace(OLD, NEW)


class Killed(BaseException):
    """Ends the agent in the middle of a turn."""


MIXED = (
    '[DELETE_FILE path="lib/x.py"]\n\n'
    "x.py\n```python\n<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n```\n\n"
    '[CREATE_FILE path="z/y.py"]\ny = 1\n[/CREATE_FILE]\n\n'
    "y.py\n```python\n<<<<<<< SEARCH\nb = 1\n=======\nb = 2\n>>>>>>> REPLACE\n```\n\n"
    "### new.py\n```python\nc = 1\n```\n\n"
    f"{DONE}"
)


@pytest.mark.parametrize("at", range(8))
@pytest.mark.one_in(3)
def test_a_mixed_answer_that_was_interrupted_is_gone_on_with_as_it_began(tmp_path: Path, at: int) -> None:
    """The order and the meaning of its parts are those of the moment when it was taken.

    Its own commands make one path fit that fitted two, and one fit two that fitted one.
    """
    seen = 0

    def look(record: Record, _: Session) -> None:
        nonlocal seen
        if isinstance(record, OperationEnded):
            seen += 1
            if seen == at:
                raise Killed

    with plain_session(tmp_path) as begun:
        for name, text in (("src/x.py", "a"), ("lib/x.py", "a"), ("q/y.py", "b")):
            (begun.workspace / name).parent.mkdir()
            (begun.workspace / name).write_text(f"{text} = 1\n")
    session_id = begun.session_id
    for may_kill in (True, False):
        session = begun.home.sessions.load(session_id)
        who = context.Person(lambda _: None, accepts_formats=True)
        who = replace(who, record=look) if may_kill else who
        with conversation_in(begun.home, session, Settings(), who) as conversation:
            live = LiveSession(begun.home, session_id, conversation)
            if may_kill:
                live.drop(MIXED)
                with contextlib.suppress(Killed):
                    conversation.take("reply.txt")
                continue
            conversation.recover()
            lines = [line for line in live.results().splitlines() if line.startswith("[")]
    told = [line.partition(" (")[0][:60] for line in lines]
    assert told == [
        "[FAILED] SEARCH/REPLACE: SEARCH/REPLACE at line 5 was not us",
        "[OK] DELETE_FILE: Deleted 'lib/x.py'",
        "[OK] CREATE_FILE: Created 'z/y.py'",
        "[OK] EDIT_FILE: Edited 'q/y.py'",
        "[OK] CREATE_FILE: Created 'new.py'",
        "[FAILED] DONE: Not accepted, because this failed: SEARCH/REP",
    ]
    assert (live.workspace / "q" / "y.py").read_text() == "b = 2\n"
    assert (live.workspace / "src" / "x.py").read_text() == "a = 1\n"


def test_shell_blocks_are_never_executed(tmp_path: Path) -> None:
    """Design, replies: only named."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        lay(live)
        live.answer(f"{DIFF}\n```sh\ntouch executed\n```\n")
        assert not (live.workspace / "executed").exists()


def test_prose_alone_is_still_told_how_to_answer(tmp_path: Path) -> None:
    """Design, tag blocks: no block at all shows the model one example."""
    with plain_session(tmp_path, accepts_formats=True) as live:
        live.answer("I think that the discount is added where it should be taken off.\n")
        assert "The answer has no operations" in live.request()


def test_a_policy_holds_for_it_too(tmp_path: Path) -> None:
    """Design, replies: through the same operations, policy and journal."""
    with plain_session(tmp_path, accepts_formats=True, policy="restrictive") as live:
        path = lay(live)
        live.answer(DIFF)
        assert path.read_text() == CART
        assert "DENIED" in live.request()


def test_names_are_made_out_once_whatever_the_reply_itself_changes(tmp_path: Path) -> None:
    """Killed or paused, the rest of a reply means what it meant when it was taken."""
    names = ("src/x.py", "lib/x.py", "z.py")
    edit = "{0}\n```python\n<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n```\n\n"
    gone = "```diff\n--- a/lib/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a = 1\n```\n\n"
    text = edit.format("x.py") + edit.format("src/x.py") + gone + edit.format("z.py")
    with plain_session(tmp_path) as live:
        for name in names:
            (live.workspace / name).parent.mkdir(exist_ok=True)
            (live.workspace / name).write_text("a = 1\n")
        with pytest.raises(ApprovalError):
            live.answer(text)
        session_id = live.session_id
    home = live.home
    for _ in range(3):
        session = home.sessions.load(session_id)
        who = context.Person(lambda _: None)
        with conversation_in(home, session, Settings(), who) as conversation:
            conversation.answer(None, Answer("yes"))
            with contextlib.suppress(ApprovalError):
                conversation.recover()
            if conversation.session.asked is None:
                break
    assert (live.workspace / "z.py").read_text() == "a = 2\n"
    assert (live.workspace / "src" / "x.py").read_text() == "a = 2\n"
    assert not (live.workspace / "lib" / "x.py").exists()
