"""The command page: the loop in a browser on this machine."""

import contextlib
import os
import signal
import sys
import webbrowser
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from codingagent.cli.commands.common import here_home, trusted_home
from codingagent.cli.commands.options import Here, WorkspaceFolder, option
from codingagent.rpc.endpoints import Tcp, listen
from codingagent.storage import atomic_write, homes
from codingagent.workspace.own_code import state_folder
from codingagent.workspace.workspace import Workspace

app = typer.Typer()


@app.command(epilog="Example: codingagent page --here", name="page")
def _page(
    context: typer.Context,
    here: Here = False,
    workspace: WorkspaceFolder = None,
    no_open: Annotated[bool, option("no open")] = False,
    port: Annotated[int | None, option("port", min=1, max=65535)] = None,
) -> None:
    """Do the whole loop on a page in your browser, beside the chat; Ctrl-C ends it.

    Only this machine's browser can reach it, with the address that is opened or printed. Sessions are those
    of the command line: begin one here, and continue it there.
    """
    # The page's libraries are imported by this command alone.
    from codingagent.cli.page.queries import PageState
    from codingagent.cli.page.server import serve

    named = here_home(context, workspace) if here else None
    workspace = named.parent if named else workspace
    root, _ = trusted_home(context, named)
    options = {"workspace": None if workspace is None else str(workspace)}
    resolved, folder = homes.settings_for(root, options, os.environ, workspace)
    if folder != homes.default_workspace(root):
        Workspace(folder).close()  # one that can't be used is refused before anything is typed
    desk = PageState(root, folder.absolute(), resolved.settings, is_here=here)
    # Ended by the system, too, it takes the door away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.closing(listen(Tcp("127.0.0.1", port or 0))) as listener, _door(no_open) as opened:
        serve(desk, listener.socket, opened)
    sys.stdout.write("\nthe page is closed; nothing is lost\n")


@contextlib.contextmanager
def _door(is_shown: bool) -> Iterator[Callable[[str], None]]:
    """Yield what prints the page's address, and opens it in a browser, unless it is to be shown only.

    A browser is started with the name of a file that only the person can read, and that leads to the
    address: other users of the machine see the words of its command line.
    """
    file = state_folder() / f"page-{os.getpid()}.html"
    is_remote = bool(os.environ.get("SSH_CONNECTION")) and not os.environ.get("DISPLAY")

    def opened(address: str) -> None:
        port = address.partition("/?")[0].rpartition(":")[2]
        if is_remote:
            sys.stdout.write(f"on your own machine: ssh -L {port}:127.0.0.1:{port} THIS_MACHINE\n")
        sys.stdout.write(f"the page (Ctrl-C ends it): {address}\n")
        sys.stdout.flush()
        if not (is_shown or is_remote):
            text = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">\n'
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write.write_whole(file, text)
            webbrowser.open(file.as_uri())

    try:
        yield opened
    finally:
        file.unlink(missing_ok=True)
