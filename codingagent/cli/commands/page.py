"""The command page: the loop in a browser on this machine."""

import contextlib
import os
import signal
import socket
import sys
import webbrowser
from typing import Annotated

import typer

from codingagent.cli.commands.common import here_home, trusted_home
from codingagent.cli.commands.options import Here, WorkspaceFolder, told
from codingagent.errors import UsageError, system_reason
from codingagent.storage import atomic_write, homes
from codingagent.workspace.own_code import state_folder
from codingagent.workspace.workspace import Workspace

app = typer.Typer()


@app.command(epilog="Example: codingagent page --here", name="page")
def _page(
    context: typer.Context,
    here: Here = False,
    workspace: WorkspaceFolder = None,
    no_open: Annotated[bool, told("no open")] = False,
    port: Annotated[int | None, told("port", min=1, max=65535)] = None,
) -> None:
    """Do the whole loop on a page in your browser, beside the chat; Ctrl-C ends it.

    Only this machine's browser can reach it, with the address that is opened or printed. Sessions are those
    of the command line: begin one here, and continue it there.
    """
    # The page's libraries are imported by this command alone.
    from codingagent.cli.page.looking import Desk
    from codingagent.cli.page.server import serve

    named = here_home(context, workspace) if here else None
    workspace = named.parent if named else workspace
    root, _ = trusted_home(context, named)
    options = {"workspace": None if workspace is None else str(workspace)}
    resolved, folder = homes.settings_for(root, options, os.environ, workspace)
    if folder != homes.default_workspace(root):
        Workspace(folder).close()  # one that can't be used is refused before anything is typed
    desk = Desk(root, folder.absolute(), resolved.settings, is_here=here)
    door = _Door(is_shown=no_open or _is_remote())
    # Ended by the system, too, it takes the door away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.closing(_listening(port or 0)) as listening:
        try:
            serve(desk, listening, door.open)
        finally:
            door.close()
    sys.stdout.write("\nthe page is closed; nothing is lost\n")


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name != "nt":
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()  # a browser that is quicker than the server waits
    except OSError as fault:
        found.close()
        reason = system_reason(fault)
        raise UsageError(f"port {port} can't be used ({reason}); name another") from fault
    return found


def _is_remote() -> bool:
    """Return whether the person's browser is on another machine."""
    return bool(os.environ.get("SSH_CONNECTION")) and not os.environ.get("DISPLAY")


class _Door:
    """The way in: a file that only the person can read, with the address that lets its reader in.

    A browser is started with a file's name: other users of the machine see the words of its command line.
    """

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._file = state_folder() / f"page-{os.getpid()}.html"

    def open(self, address: str) -> None:
        """Open the page in a browser, and print its address."""
        port = address.partition("/?")[0].rpartition(":")[2]
        if _is_remote():
            sys.stdout.write(f"on your own machine: ssh -L {port}:127.0.0.1:{port} THIS_MACHINE\n")
        sys.stdout.write(f"the page (Ctrl-C ends it): {address}\n")
        sys.stdout.flush()
        if not self._is_shown:
            text = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">\n'
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write.write_whole(self._file, text)
            webbrowser.open(self._file.as_uri())

    def close(self) -> None:
        self._file.unlink(missing_ok=True)
