"""Chats by name: a table of what they take, with who says so, and requests that are made for it."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from codingagent.model.settings import DEFAULT, Figure, Settings, Source, chats, pasted, resolve
from codingagent.prompt import guide
from tests.helpers import plain_session, run_here


def test_each_figure_has_its_source_and_its_date() -> None:
    names = get_args(get_type_hints(Settings)["chat"])
    assert {*names} == {*chats()}
    for chat in [each for name, each in chats().items() if name != "custom"]:
        assert bool(chat.keeps) == bool(chat.kept_as) == (len(chat.how) == 2)
        assert len(guide.kept_text()) <= ((chat.keeps and chat.keeps.value) or 8_000)
        for name in ("keeps", "pasted", "folds", "files", "megabytes"):
            figure = getattr(chat, name)
            assert figure is None or isinstance(figure, Figure)
            if figure is not None:
                assert figure.value > 0 or name == "keeps"
                assert figure.source.startswith("https://")
                assert re.fullmatch(r"20\d\d-\d\d-\d\d", figure.seen)


def test_a_chat_sets_the_limit_unless_the_person_does() -> None:
    found = resolve([Source("your settings", {"chat": "copilot"})])
    assert found.settings.context_chars == pasted("copilot")
    assert found.origins["context_chars"] == "chat copilot"
    found = resolve([Source("your settings", {"chat": "copilot", "context_chars": 50_000})])
    assert found.settings.context_chars == 50_000
    found = resolve([Source("your settings", {"chat": "le-chat"})])
    assert (found.settings, found.origins["context_chars"]) == (Settings(chat="le-chat"), DEFAULT)


@pytest.mark.parametrize("task", ["mend f1 in module1.py", "mend module1.py\n" + "why\n" * 1500])
def test_a_request_is_made_for_the_chat(tmp_path: Path, task: str) -> None:
    """What fits goes along; a task that is longer itself is told how to be sent."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for number in range(60):
        body = "".join(f"def f{n}(value):\n    return value + {n}\n\n\n" for n in range(40))
        (workspace / f"module{number}.py").write_text(body, "utf-8")
    variables = {"CODINGAGENT_CHAT": "copilot"}
    words = ("--home", str(tmp_path), "new", "--no-wait", task)
    done = run_here(*words, variables=variables)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "outbox").glob("*.txt")
    text, limit = path.read_text("utf-8"), pasted("copilot")
    assert limit is not None
    if len(task) > 100:
        assert "attach the file, or paste the parts" in done.stdout
        return
    assert limit * 0.7 < len(text) <= limit
    assert "def f1(value)" in text
    assert "The request is made for Microsoft Copilot: 8,000 characters" in done.stdout


def test_a_later_request_that_is_too_long_to_paste_says_what_to_do(tmp_path: Path) -> None:
    home, variables = ("--home", str(tmp_path)), {"CODINGAGENT_CHAT": "copilot"}
    assert run_here(*home, "new", "--no-wait", "a task", variables=variables).returncode == 0
    (tmp_path / "inbox" / "a.txt").write_text('[CREATE_FILE path="a.txt"]\nhi\n[/CREATE_FILE]\n', "utf-8")
    done = run_here(*home, "resume", "--once", variables=variables)
    assert "Request 2: " in done.stdout
    assert "attach the file" not in done.stdout
    done = run_here(*home, "say", "why\n" * 2_500, variables=variables)
    assert "Microsoft Copilot takes about 8,000 characters pasted: attach the file" in done.stdout


def test_at_the_limit_of_the_chat_a_new_one_is_offered(tmp_path: Path) -> None:
    settings, offer = Settings(chat="gemini", sandbox="off"), "Gemini takes 10 files: if it refuses"
    with plain_session(tmp_path / "home", settings=settings) as live:
        live.conversation.write_due()
        for number in range(2, 13):
            before = len(live.notices)
            live.answer(f'[CREATE_FILE path="{number}.txt"]\nhi\n[/CREATE_FILE]\n')
            assert (offer in str(live.notices[before:])) is (number == 11), number
