"""Each tool, by the official client, in both eras; what it does is a session like others."""

import re
import subprocess
from pathlib import Path

import pytest

from codingagent.prompt.tokens import estimate
from tests.helpers import run_here
from tests.mcp.clients import ERAS, Tools, server_at, talk

BOTH = [{"search": "a", "replace": "A"}, {"search": "c", "replace": "C\nD"}]
RANGE = [{"start_line": 2, "end_line": 2, "replace": ""}]

# In their order: a tool, its arguments, and what its result says.
CALLS: list[tuple[str, dict[str, object], str]] = [
    ("list_files", {}, r"  a\.txt \(6 bytes\)"),
    ("read_files", {"paths": ["a.txt"]}, r"^--- a\.txt ---\na\nb\nc\n--- end a\.txt ---$"),
    (
        "read_files",
        {"paths": ["a.txt:2", "*.txt:3-9"]},
        r"lines 2-2 of 3\) ---\nb\n--- .*3-3 of 3\) ---\nc\n---",
    ),
    ("read_files", {"paths": ["a.txt::f", "a.txt:4"]}, "^FAILED .*no 'f'\n.*no '4'"),
    ("read_files", {"paths": ["no.txt"]}, "^FAILED .*not found"),
    ("read_files", {"paths": ["*", "a.png"]}, r"^--- a\.txt.*'b\.bin' is not text.*'a\.png' is a picture"),
    ("edit_file", {"path": "a.txt", "edits": BOTH}, "^Edited 'a.txt'"),
    ("edit_file", {"path": "a.txt", "edits": RANGE}, "removed"),
    (
        "edit_file",
        {"path": "a.txt", "edits": [{"search": "zzz", "replace": ""}]},
        "^FAILED .*SEARCH not found",
    ),
    ("edit_file", {"path": "a.txt", "edits": [{"replace": ""}]}, "^FAILED An edit needs either search"),
    ("write_file", {"path": "b/n.json", "content": '{"a": [1]}'}, "^Created 'b/n.json'$"),
    ("write_file", {"path": "b/n.json"}, "^FAILED .*missing required field `content`"),
    ("search", {"texts": ["d"]}, r"^a\.txt:3: D$"),
    ("search", {"texts": ['"A*[1'], "glob": "b"}, "^no line has it$"),
    ("search", {"texts": ['"a*[1'], "glob": "b"}, r'^b/n\.json:1: \{"a": \[1\]\}$'),
    ("search", {"texts": ["*"]}, "^no line has it$"),
    ("search", {"texts": ["d", "b", "*"]}, r"^a\.txt:2: B$|^a\.txt:3: D$"),
    ("move_file", {"path": "b/n.json", "to": "m.json"}, "^Moved 'b/n.json' to 'm.json'$"),
    ("run_command", {"command": "cat m.json; exit 3"}, r"^FAILED Ran .*exit code 3.*\n\{"),
    ("run_command", {"command": "echo made >made"}, "(?s)exit code 0.*made"),
    ("context", {"task": "change a.txt"}, r"(?s)--- a\.txt.*A\nC\nD"),
    ("diff", {}, r"(?s)diff --git a/a\.txt.*-b.*\+D"),
    ("delete_file", {"path": "m.json"}, "^Deleted 'm.json'$"),
    ("undo", {"calls": 2}, "(?s)undid.*made"),
    ("read_files", {"paths": ["m.json"]}, r'\{"a": \[1\]\}'),
    ("undo", {"calls": 50}, "FAILED|undid"),
]


@pytest.mark.parametrize("era", ERAS)
def test_each_tool_does_what_it_says(tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_text("a\nb\nc\n")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "b.bin").write_bytes(bytes(range(256)))

    async def work(tools: Tools) -> None:
        for tool, arguments, wanted in CALLS:
            assert re.search(wanted, told := await tools(tool, **arguments), re.DOTALL), (tool, told)

    talk(server_at(tmp_path), work, era)


def test_the_list_of_tools_is_short() -> None:
    """Every chat pays for it: at most 1,500 tokens."""

    async def work(tools: Tools) -> None:
        found = await tools.client.list_tools()
        assert len(found.tools) == 11
        for tool in found.tools:
            assert tool.annotations is not None
            assert tool.output_schema is not None
        assert estimate(found.model_dump_json(by_alias=True, exclude_none=True)) <= 1_500

    talk(server_at(Path(__file__).parent), work)


def test_a_session_of_tools_is_one_like_others(tmp_path: Path) -> None:
    """`list`, `show`, `log`, `diff`, `undo` and `commit` know it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("name", "email"):
        subprocess.run(["git", "-C", tmp_path, "config", f"user.{name}", "a@b"], check=True)

    async def work(tools: Tools) -> None:
        for name in ("one", "two"):
            assert "Created" in await tools("write_file", path=name, content=name)
        session.append(await tools.session())

    session: list[str] = []
    talk(server_at(tmp_path), work)
    for words, wanted in (
        ("list", r"over MCP"),
        ("show", r"(?s)one, new.*two, new.*waits for calls"),
        ("log", r"(?s)answer 1.*answer 2"),
        ("diff", r"(?s)\+one.*\+two"),
        ("undo", r"removed two"),
        ("commit --no-edit", r"1 file"),
        ("resume --once", r"waits for calls of its client"),
        (f"refresh {session[0]}", r"waits for calls of its client"),
    ):
        done = run_here(*words.split(), folder=tmp_path)
        assert not done.returncode, done.stderr
        assert re.search(wanted, done.stdout + done.stderr), (words, done.stdout, done.stderr)
    assert not (tmp_path / "two").exists()


def test_a_client_goes_on_with_a_session(tmp_path: Path) -> None:
    """What one client began, another one goes on with by its id, and may replace what it has read."""

    async def begin(tools: Tools) -> None:
        await tools("write_file", path="a", content="1\n2\n3\n")
        ids.append(await tools.session())

    async def go_on(tools: Tools) -> None:
        await tools("list_files", session=ids[0])
        assert not run_here("say", ids[0], "be brief", folder=tmp_path).returncode
        for _ in range(2):
            told = await tools("write_file", path="b", content="", session=ids[0])
            assert ("The user says: be brief" in told) is ("Created" in told)
        (tmp_path / "a").write_text("the person's\n")
        write = {"path": "a", "content": "the model's\n", "session": ids[0]}
        assert "the person's" in (told := await tools("write_file", **write))
        assert told.startswith("FAILED")
        assert "Replaced" in await tools("write_file", **write)
        (tmp_path / "a").write_text("the person's again\n")
        await tools("read_files", paths=["a"], session=ids[0])
        assert "Replaced" in await tools("write_file", **write)
        assert (await tools("diff", session="00000000")).startswith("FAILED no session 00000000")
        own = await tools.session()
        for words, told in (
            (("close", own), "Created 'c'"),
            (("delete", own, "--yes"), "FAILED no session"),
            (("list",), "Created 'c'"),
        ):
            assert not run_here(*words, folder=tmp_path).returncode
            assert told in await tools("write_file", path="c", content="")
            (tmp_path / "c").unlink(missing_ok=True)

    ids: list[str] = []
    talk(server_at(tmp_path), begin)
    talk(server_at(tmp_path), go_on, ERAS[1])
    assert run_here("list", folder=tmp_path).stdout.count("over MCP") == 2
