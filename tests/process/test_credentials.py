"""What of a folder of tools is hidden: credentials by their names, dot-files, sockets; programs are not."""

import os
import socket
from pathlib import Path

import pytest

from codingagent.process.folders import CredentialSearch, files_of_secrets
from codingagent.storage import atomic_write

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sandboxes that need this are POSIX")


@pytest.fixture(name="tool")
def _tool(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / ".tool"
    lay(folder / "bin" / "program", 0o755)
    lay(folder / "lib" / "code.py")
    return folder


def lay(path: Path, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", "utf-8")
    path.chmod(mode)
    return path


def hidden(
    *folders: Path, workspace: Path = Path("/nowhere"), look: CredentialSearch | None = None
) -> list[str]:
    """Return what is hidden, relative to the first folder."""
    found = (look or CredentialSearch()).hidden_in(frozenset(folders), workspace)
    return [os.path.relpath(path, folders[0]) for path in found]


# As uv, pip, gh, aws, gcloud, docker, npm, cargo and the like keep them, wherever they are put.
CREDENTIALS = (
    *(".netrc", "_netrc", "etc/npmrc", ".npmrc", "etc/pip.conf", "pip.conf", "uv.toml", ".pypirc"),
    *("share/uv/credentials", "credentials.toml", "credentials", "gh/hosts.yml", "access_tokens.db"),
    *("gcloud/legacy_credentials", "gcloud/application_default_credentials.json", ".git-credentials"),
    *("terraform/credentials.tfrc.json", "terraform.rc", "kubeconfig", "id_ed25519", "keys/id_rsa"),
    *(".condarc", "yarnrc.yml", "auth.json", "Secrets.TOML", "data/secrets", ".env", "conf/token"),
    *(".pgpass", ".vault-token", "NuGet.Config", ".my.cnf", "var/service-account.json", "bin/.env"),
)


@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials_are_hidden(tool: Path, name: str) -> None:
    """Design, sandbox: a folder on PATH brings its programs, never credentials beside them."""
    lay(tool / name)
    assert hidden(tool) == [name]


@pytest.mark.parametrize("name", [".ssh", ".aws", ".config/gh", ".docker", "share/uv/credentials"])
def test_folders_are_hidden_whole(tool: Path, name: str) -> None:
    """What is in them needs no name."""
    lay(tool / name / "anything")
    assert hidden(tool) == [name.partition("/")[0] if name.startswith(".") else name]


PROGRAMS = (
    *("bin/token", "bin/passwd", "bin/node", "share/data", "conf/java.conf", "lib/.libs/x.so"),
    *("lib/python3.11/site-packages/google/auth/credentials.py", "lib/secrets", "include/token"),
    *("lib/node_modules/npm/.npmrc", ".store/tool/x", ".pnpm/x", "share/man/.x", "release"),
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_their_files_are_not(tool: Path, name: str) -> None:
    """A tool that lacks a part of itself is of no use."""
    lay(tool / name, 0o755 if name.startswith("bin/") else 0o644)
    assert hidden(tool) == []


def test_sockets_and_pipes_are_hidden(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket can be talked to though its folder is read-only: an agent with keys, a docker."""
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tool)  # its path would be too long for a socket
        listener.bind("s")
        os.mkfifo(tool / "p")
        assert hidden(tool) == ["p", "s"]


def test_what_a_link_of_such_a_name_leads_to_is_hidden(tool: Path) -> None:
    """It has another name there; what lies elsewhere is not shown anyway."""
    lay(tool / "store" / "innocent")
    lay(tool.parent / "elsewhere")
    (tool / ".netrc").symlink_to("store/innocent")
    (tool / ".npmrc").symlink_to(tool.parent / "elsewhere")
    (tool / "credentials").symlink_to("nowhere")
    assert hidden(tool) == ["store/innocent"]


def test_what_comes_later_is_hidden_then(tool: Path) -> None:
    """It is looked at again before each command; what did not change is not read again."""
    look = CredentialSearch()
    assert hidden(tool, look=look) == []
    lay(tool / "etc" / "npmrc")
    assert hidden(tool, look=look) == ["etc/npmrc"]
    lay(tool / "etc" / "deep" / "netrc")
    assert hidden(tool, look=look) == ["etc/deep/netrc", "etc/npmrc"]
    (tool / "etc" / "npmrc").unlink()
    assert hidden(tool, look=look) == ["etc/deep/netrc"]


def test_within_a_tool_that_lies_in_what_is_hidden_too(tool: Path) -> None:
    """A tool under a dot is shown by itself; its own credentials are hidden."""
    inner = lay(tool / ".own" / "bin" / "y", 0o755).parent
    lay(inner / ".env")
    lay(tool / ".own" / "netrc")
    assert hidden(tool, inner) == [".own", ".own/bin/.env"]


def test_a_workspace_is_not_looked_into(tool: Path) -> None:
    """It is shown whole, and may hold anything."""
    lay(tool / "project" / ".env")
    assert hidden(tool, workspace=tool / "project") == []


def test_folders_without_end_are_looked_at_within_bounds(tool: Path) -> None:
    """Design, sandbox: no start waits for a walk through all that was ever installed."""
    for number in range(3000):
        (tool / "many" / str(number)).mkdir(parents=True)
    lay(tool / "a" / "b" / "c" / "d" / "e" / "f" / ".env")
    lay(tool / "z" / "netrc")
    assert hidden(tool) == ["z/netrc"]


def test_secret_files_are_found_however_deep(tmp_path: Path) -> None:
    """A command may nest folders deeper than Python recurses."""
    at = os.fspath(tmp_path)
    for _ in range(1_100):
        at += "/d"
        Path(at).mkdir()
    Path(at, ".env").touch()
    try:
        assert files_of_secrets(tmp_path, frozenset()) == [Path(at, ".env")]
    finally:
        atomic_write.remove_folder(tmp_path / "d")
