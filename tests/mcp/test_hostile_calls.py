"""Calls that want out of the folder, at the secrets in it, or at what limits them."""

import os
import re
from pathlib import Path

import pytest

from tests.helpers import children
from tests.mcp.clients import ERAS, Tools, server_at, talk
from tests.sandboxes import needs_bwrap

# From the table of paths: as a file's, these are refused.
PATHS = [
    path
    for path, told in re.findall(
        r"^\('file', '((?:[^'\\]|\\\\)+)'\)\t(.*)$", Path("tests/model/paths.txt").read_text(), re.MULTILINE
    )
    if told.startswith("REJECTED")
]
OWN = [".git/config", ".codingagent/codingagent.toml", ".codingagent/sessions/x", "link/secret", "dangling"]
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def threads() -> int:
    """Return how many threads there are in what runs beside the tests, so in the server."""
    return sum(len([*Path(f"/proc/{pid}/task").iterdir()]) for pid in children(os.getpid()))


def test_no_path_leads_out(tmp_path: Path) -> None:
    """None of the table, of links, of git's or our own folder is read, written, moved or deleted."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    for folder in (outside, root, root / ".git"):
        folder.mkdir()
    (outside / "secret").write_text("of the person")
    (root / "link").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "new")
    (root / "a").write_text("")
    assert len(PATHS) > 10

    async def work(tools: Tools) -> None:
        for path in (*PATHS, *OWN, "x" * 5_000, "a\0b"):
            path = path.replace("\\\\", "\\")  # noqa: PLW2901  # as the table quotes it
            edits = [{"search": "of the person", "replace": "x"}]
            for told in (
                await tools("write_file", path=path, content="x"),
                await tools("edit_file", path=path, edits=edits),
                await tools("move_file", path="a", to=path),
                "" if path == "dangling" else await tools("delete_file", path=path),
                "" if path.startswith(".git/") else await tools("read_files", paths=[path]),
            ):
                assert told.startswith("FAILED") or not told, (path, told)
                assert "of the person" not in told
        assert "of the person" not in await tools("search", texts=["person"])
        assert "of the person" not in await tools("read_files", paths=["**"])

    talk(server_at(root), work)
    assert {each.name for each in outside.iterdir()} == {"secret"}
    assert {each.name for each in tmp_path.iterdir()} == {"outside", "root"}
    assert not (root / ".codingagent" / "codingagent.toml").exists()


def test_a_command_reaches_neither_the_session_nor_what_is_outside(tmp_path: Path) -> None:
    needs_bwrap()
    (tmp_path / "secret").write_text("of the person")
    (root := tmp_path / "root").mkdir()

    async def work(tools: Tools) -> None:
        told = await tools("run_command", command="ls -A .codingagent; cat ../secret; echo x >../out; env")
        assert "of the person" not in told
        assert "journal" not in told
        assert TOKEN not in told

    talk(server_at(root), work)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("era", ERAS)
def test_secrets_are_placeholders_both_ways(tmp_path: Path, era: str) -> None:
    """No tool shows a value, no search finds it, and a placeholder writes it."""
    (tmp_path / ".env").write_text(f"API_TOKEN={TOKEN}\n")
    (tmp_path / "app.py").write_text(f"x = 1\nkey = '{TOKEN}'\n")
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("read_files", {"paths": [".env", "app.py"]}),
        ("search", {"texts": ["key"]}),
        ("search", {"texts": [TOKEN]}),
        ("search", {"texts": ["ghp_*B2"]}),
        ("run_command", {"command": "cat .env app.py"}),
        ("context", {"task": "the key in app.py"}),
        ("edit_file", {"path": "app.py", "edits": [{"search": "x = 1", "replace": "x = 2"}]}),
        ("diff", {}),
        ("undo", {}),
    )

    async def work(tools: Tools) -> None:
        for tool, arguments in calls:
            assert TOKEN[:8] not in await tools(tool, **arguments), tool
        [name] = set(re.findall(r"SECRET-\w+-\w+", await tools("read_files", paths=[".env"])))
        assert "no line has it" in await tools("search", texts=["ghp_"])
        content = f"API_TOKEN={name}\nMORE=1\n"
        assert "Replaced" in await tools("write_file", path=".env", content=content)
        assert "FAILED" in await tools("run_command", command=f"echo {name}")

    talk(server_at(tmp_path), work, era)
    assert (tmp_path / ".env").read_text() == f"API_TOKEN={TOKEN}\nMORE=1\n"


def test_sizes_and_patterns_have_limits(tmp_path: Path) -> None:
    """What is too large, or takes forever, is one plain line; the next call works."""
    (tmp_path / "a").write_text("a" * 60 + "!\n" + "line\n" * 50_000)
    calls: tuple[tuple[str, dict[str, object], str], ...] = (
        ("read_files", {"paths": ["a"]}, "lines 1-"),
        ("read_files", {"paths": ["a"] * 101}, "^FAILED At most 100"),
        ("read_files", {"paths": []}, "^FAILED"),
        ("search", {"texts": ["*a" * 400 + "*b"]}, "^no line has it"),
        ("search", {"texts": ["line"]}, "more lines have it: narrow"),
        ("run_command", {"command": ": " + "x" * 100_000}, "^FAILED The command is longer"),
        ("run_command", {"command": " "}, "^FAILED The command is empty"),
        ("undo", {"calls": -5}, "^FAILED"),
        ("write_file", {"path": "b", "content": "x" * 3_000_000}, "^Created"),
        ("write_file", {"path": "b", "content": 5}, "^FAILED write_file: Expected `str`"),
        ("list_files", {"session": "../../x"}, "^FAILED '../../x' is not a session id"),
        ("list_files", {"more": 1}, "^FAILED list_files: Object contains unknown field `more`"),
    )

    async def work(tools: Tools) -> None:
        for tool, arguments, wanted in calls:
            assert re.search(wanted, told := await tools(tool, **arguments)), (tool, told[:300])
            assert len(told) < 100_000
        before = threads()
        for number in range(50):  # a session that there is not costs nothing
            assert "FAILED no session" in await tools("list_files", session=f"{number:08x}")
        assert threads() <= before

    talk(server_at(tmp_path), work)
