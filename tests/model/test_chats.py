"""Chats by name: a table of what they take, with who says so, and requests that are made for it."""

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from codingagent.model import settings
from codingagent.model.settings import DEFAULT, Settings, Source, chats, pasted, resolve
from tests.helpers import run_here


def test_each_chat_is_in_the_table_with_its_figures() -> None:
    assert {*get_args(get_type_hints(Settings)["chat"])} == {"custom", *chats()}
    page = (Path(settings.__file__).parents[1] / "docs" / "chats.md").read_text("utf-8")
    for name, chat in chats().items():
        said = (f"[{each:,}](https://" if each else "unknown |" for each in (chat.pasted, chat.folds))
        assert f"\n| `{name}` | {chat.title} | " in page
        row = page.partition(f"| `{name}` | {chat.title} | ")[2].partition("\n")[0]
        assert all(each in row for each in said)


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
