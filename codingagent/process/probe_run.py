"""Prove a sandbox from inside: place lures outside it and have `probe` try to reach them."""

import contextlib
import json
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.errors import WorkError


class Promise(Struct, frozen=True):
    """One promise of a sandbox and whether it holds; None if it does not apply here."""

    name: str
    enforced: bool | None
    detail: str


class Lures(Struct, frozen=True):
    """Lures outside a sandbox under test, and the workspace inside.

    `path` must be on its PATH; `order` is the probe's argument.
    """

    workspace: Path
    agent_home: Path
    temporary: Path
    path: Path
    order: dict[str, object]


@contextlib.contextmanager
def lures(outside: Path) -> Iterator[Lures]:
    """Create the lures, some in a folder outside any workspace and /tmp; remove them all afterwards.

    Raises:
        WorkError: if they can't be created.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
            workspace, home = folder / "workspace", folder / "workspace" / ".codingagent"
            (workspace / ".git").mkdir(parents=True)
            home.mkdir()
            (home / "journal.jsonl").write_text("", "utf-8")
            in_tmp = stack.enter_context(tempfile.NamedTemporaryFile(prefix="codingagent-"))
            application = _lay_application(folder / "application")
            sockets = _listeners(outside, stack)
        except OSError as fault:
            raise WorkError(f"the sandbox can't be tested: {fault}") from fault
        order: dict[str, object] = {
            "workspace": os.fspath(workspace),
            "git": os.fspath(workspace / ".git"),
            "agent_home": os.fspath(home),
            "outside_folder": os.fspath(outside),
            "tmp_file": in_tmp.name,
            "agent_pid": os.getpid(),
            **application,
            **sockets,
            **_from_home(),
        }
        yield Lures(workspace, home, folder / "tmp", folder / "application" / "bin", order)


def prove(found: Lures, run: Callable[[str], str], *, has_network: bool) -> tuple[Promise, ...]:
    """Return every promise of the sandbox around the lures' workspace, and whether it holds.

    `run` runs a shell line in that sandbox and returns its output.

    Raises:
        WorkError: if the probe could not run.
    """
    program = Path(__file__).with_name("probe.py").read_text("utf-8")
    order = json.dumps({**found.order, "network": has_network})
    words = [sys.executable, "-I", "-S", "-c", program, order]
    try:
        told = json.loads(run(shlex.join(words)))["promises"]
    except (ValueError, KeyError, TypeError) as fault:
        raise WorkError(
            "the sandbox can't be tested: the probe did not report from inside it"
        ) from fault
    return tuple(Promise(each["name"], each["enforced"], each["detail"]) for each in told)


# The ways applications keep them: by name, in a dot folder, in a folder of their own.
_CREDENTIALS = (
    *(".netrc", ".env", ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml"),
    ".kube/config",
    *("credentials.toml", "etc/npmrc", "etc/pip.conf", "share/uv/credentials/credentials.toml"),
    *("bin/.docker/config.json", "terraform/credentials.tfrc.json"),
)


def _lay_application(folder: Path) -> dict[str, object]:
    """Create a program as a person would install it, with credentials beside it."""
    program, credentials = folder / "bin" / "program", [folder / name for name in _CREDENTIALS]
    (folder / "lib").mkdir(parents=True)
    for file in (program, *credentials):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a lure", "utf-8")
    return {"program": os.fspath(program), "credentials": list(map(os.fspath, credentials))}


def _listeners(outside: Path, stack: contextlib.ExitStack) -> dict[str, object]:
    """Open sockets that nothing in a sandbox may reach."""
    if sys.platform != "win32":
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        # Not in /tmp, which a sandbox replaces: that alone would hide the socket.
        name = outside / f".s{os.getpid()}"
        by_path = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_path.bind(os.fspath(name))
        stack.callback(name.unlink)
        by_path.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract_name = f"codingagent-{os.getpid()}"
        abstract.bind(f"\0{abstract_name}")
        abstract.listen()
        return {
            "tcp_port": tcp.getsockname()[1],
            "unix_socket": os.fspath(name),
            "abstract_socket": abstract_name,
        }
    else:  # noqa: RET505  # the type checker follows this
        raise NotImplementedError  # nothing calls it there


def _from_home() -> dict[str, object]:
    """Return the home folder and a file in it that no command needs."""
    home = os.environ.get("HOME", "")
    with contextlib.suppress(OSError), os.scandir(home) as entries:
        files = sorted(e.path for e in entries if e.is_file(follow_symlinks=False))
        return {"home": home, **({"home_file": files[0]} if files else {})}
    return {}
