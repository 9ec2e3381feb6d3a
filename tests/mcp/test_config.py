"""What clients are to be told, in the formats of their documentation."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from codingagent.cli.commands import mcp
from codingagent.model.patterns import sections
from tests.helpers import run_here

KNOWN = sections(mcp.__file__)
JSON = {name for name in KNOWN if name not in ("claude-code", "codex")}


@pytest.mark.parametrize("client", KNOWN)
def test_a_config_names_the_program_and_the_folder(tmp_path: Path, client: str) -> None:
    """Also a folder whose name has quotes; where it belongs is said beside it, with source and date."""
    folder = tmp_path / "a \"b' c"
    folder.mkdir()
    done = run_here("mcp", str(folder), "--print-config", client)
    assert re.search(r"https://\S+,.* 20\d\d-\d\d-\d\d", done.stderr)
    program = str(Path(sys.executable).with_name("codingagent"))
    if client == "claude-code":
        assert shlex.split(done.stdout)[-3:] == [program, "mcp", str(folder)]
        return
    found = tomllib.loads(done.stdout) if client == "codex" else json.loads(done.stdout)
    text = json.dumps(found)
    assert json.dumps(program) in text
    assert f'["mcp", {json.dumps("${user_config.folder}" if client == "mcpb" else str(folder))}]' in text
    assert not (folder / ".codingagent").exists()


def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, wanted in (
        (["--print-config", "nobody"], "no configuration of 'nobody' is known; there are claude-code, "),
        (["--port", "1"], "--port and --token-file are only for --http"),
        (["--policy", "nope"], "nope"),
        ([str(tmp_path / "file")], "file"),
        (["/"], "/"),
        (["--wait", "x"], "--wait"),
    ):
        done = run_here("mcp", *words, folder=tmp_path)
        assert done.returncode == 2
        assert wanted in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / ".codingagent").exists()
