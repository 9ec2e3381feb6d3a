"""The guide once: a chat keeps it, requests name it, and an answer that shows none brings it back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.model.settings import Settings
from codingagent.prompt import guide
from tests.helpers import LiveSession, plain_session, run_here
from tests.rows import each_row

CART = "def total(cart):\n    return sum(cart)\n"
TASK = "Add a function mean to cart.py"
MEAN = "def mean(cart):\n    return total(cart) / len(cart)\n"
EDIT = f'[CREATE_FILE path="cart.py"]\n{CART}\n\n{MEAN}[/CREATE_FILE]\n'
WHOLE = "## The shape of an answer"


def begun(folder: Path, **settings: str) -> Iterator[LiveSession]:
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace/cart.py").write_text(CART)
    with plain_session(folder, TASK, settings=Settings(**settings)) as live:  # type: ignore[arg-type]
        live.conversation.write_due()
        yield live


@pytest.fixture(name="live")
def _live(tmp_path: Path) -> Iterator[LiveSession]:
    yield from begun(tmp_path / "kept", guide="installed", check="true")


def reply(live: LiveSession, body: str, mark: str = "") -> str:
    of_guide = f' guide="{mark}"' if mark else ""
    sequence = live.conversation.session.sequence
    return f'[REPLY session="{live.session_id}" sequence="{sequence}"{of_guide}]\n{body}[END]\n'


def short(live: LiveSession) -> str:
    path = live.home.mailbox.short_path(live.session_id, live.conversation.session.sequence)
    return path.read_text("utf-8")


def test_a_request_is_a_fraction_where_the_chat_keeps_the_guide(live: LiveSession, tmp_path: Path) -> None:
    (whole,) = begun(tmp_path / "whole", check="true")
    assert WHOLE in whole.request()
    assert guide.mark()[:4] in live.request()
    assert len(live.request()) <= 0.3 * len(whole.request())
    live.answer(reply(live, EDIT, guide.mark()))
    assert "[OK] CHECK" in short(live)
    assert len(short(live)) <= 1_000


@each_row("mark", ["", "0123abcd"])
def test_an_answer_by_no_guide_or_another_brings_it_whole(tmp_path: Path, mark: str) -> None:
    for live in begun(tmp_path / f"home{mark}", guide="installed"):
        session_id = live.session_id
        live.answer(reply(live, '[READ_FILE path="cart.py"]\n', mark))
        assert WHOLE in live.request()
        assert WHOLE in short(live)
        assert "the next request has it whole" in str(live.notices)
    # What is known of the chat outlives the process; the answer after it needs no more words about it.
    with plain_session(tmp_path / f"home{mark}", session_id=session_id) as live:
        live.answer(reply(live, '[READ_FILE path="cart.py"]\n'))
        assert WHOLE in live.request()
        assert WHOLE not in short(live)
        assert "the next request has it whole" not in str(live.notices)
        live.answer(reply(live, '[READ_FILE path="cart.py"]\n', guide.mark()))
        assert WHOLE not in live.request()


def test_the_guide_to_json_is_always_whole(tmp_path: Path) -> None:
    with plain_session(tmp_path / "home", settings=Settings(guide="installed"), protocol="json") as live:
        live.conversation.write_due()
        live.answer('{"protocolVersion": "1.0", "type": "operations", "operations": []}')
        assert "which you keep" not in live.request()
        assert "has it whole" not in str(live.notices)


def test_an_answer_by_the_guide_keeps_it_away(live: LiveSession) -> None:
    live.answer(reply(live, EDIT, guide.mark()))
    assert WHOLE not in live.request()
    assert "has it whole" not in str(live.notices)


def test_the_guide_that_is_kept_teaches_its_mark_and_nothing_else() -> None:
    text = guide.kept_text()
    assert text.replace(f' guide="{guide.mark()}"', "").endswith(f"{guide.protocol_text()}\n")
    assert guide.mark() in text
    assert len(text) <= 8_000


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--for", "project"), "New project"),
        (("--for", "m365"), "New agent"),
        (("--for", "kimi"), "Nobody says what this chat keeps"),
        ((), "Nobody says what this chat keeps"),
    ],
)
def test_the_guide_is_printed_with_how_to_put_it_there(words: tuple[str, ...], says: str) -> None:
    done = run_here("guide", *words)
    assert (done.returncode, done.stdout) == (0, guide.kept_text())
    assert says in done.stderr
    assert "config set guide installed" in done.stderr


def test_a_chat_that_nobody_knows_is_refused() -> None:
    done = run_here("guide", "--for", "nobody")
    assert done.returncode == 2
    assert "--for nobody: name one of project, custom, chatgpt" in done.stderr
