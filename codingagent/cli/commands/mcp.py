"""The command mcp: a folder's tools for a client of the Model Context Protocol."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent import __version__
from codingagent.cli.commands.common import settings_of, trusted_home
from codingagent.cli.commands.options import RULES, SessionOptions, option, with_options
from codingagent.cli.output import fail
from codingagent.errors import UsageError
from codingagent.model.patterns import sections
from codingagent.process.select_sandbox import policy_of
from codingagent.storage import homes
from codingagent.workspace.programs import quoted
from codingagent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from codingagent.mcp.server import ToolServer
    from codingagent.mcp.tool_session import ToolSession

app = typer.Typer()

_INSTALL = "the Model Context Protocol needs its SDK: install it with `pip install 'codingagent[mcp]'`"


@app.command(epilog="Example: codingagent mcp ~/project", name="mcp")
@with_options(RULES)
def _mcp(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    given: SessionOptions,
    folder: Annotated[Path | None, option("served")] = None,
    http: Annotated[bool, option("http")] = False,
    port: Annotated[int | None, option("port", min=1, max=65535)] = None,
    token_file: Annotated[Path | None, option("http token")] = None,
    wait: Annotated[float, option("wait", min=0, max=3600)] = 45.0,
    print_config: Annotated[str | None, option("print config")] = None,
) -> None:
    """Serve a folder's tools over the Model Context Protocol: to the program that starts this, or by HTTP."""
    root = (folder or Path.cwd()).absolute()
    Workspace(root).close()  # one that can't be used is refused at once
    if print_config is not None:
        _print_config(print_config, root)
        return
    if not http and (port or token_file):
        raise UsageError("--port and --token-file are only for --http")
    try:
        from codingagent.mcp.server import ToolServer
    except ModuleNotFoundError as fault:
        raise UsageError(_INSTALL) from fault
    home, was_found = trusted_home(context, None if context.obj else root / homes.HERE_HOME)
    homes.check_apart(home, root)
    settings = homes.settings_for(home, given.settings, os.environ, root)[0].settings
    policy_of(settings, root)
    kept = partial(settings_of, options=given.settings)

    def opened(*session: str) -> "ToolSession":
        # With the first call, as a client waits for the list of tools.
        from codingagent.mcp.tool_session import ToolPlace, ToolSession

        made = partial(homes.Home.at, home, create=True, was_found=was_found)
        return ToolSession(ToolPlace(root, made, settings, kept, fail), *session)

    server = ToolServer(opened, wait)
    # Ended by the system, it ends what it runs, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(server):
        _serve_http(server, port, token_file) if http else asyncio.run(server.serve_stdio())


def _serve_http(server: "ToolServer", port: int | None, token_file: Path | None) -> None:
    """Serve until Ctrl-C."""
    import uvicorn

    from codingagent.cli.page.access import config_of
    from codingagent.rpc.endpoints import Tcp, listen, token_for_server

    token, told = token_for_server(token_file)
    with contextlib.closing(listen(Tcp("127.0.0.1", port or 0))) as listener:
        own = listener.socket.getsockname()[1]
        how = "clients send `Authorization: Bearer TOKEN`"
        fail(f"serving tools on http://127.0.0.1:{own}/mcp; {told}; {how}")
        uvicorn.Server(config_of(server.http_app(own, token), starts=True)).run([listener.socket])


def _print_config(client: str, root: Path) -> None:
    """Print what a client's documentation asks for; say where it belongs."""
    known = sections(__file__)
    if client not in known:
        raise UsageError(f"no configuration of '{client}' is known; there are {', '.join(known)}")
    where, _, text = known[client].partition("\n")
    fail(where.strip())
    # A client has another PATH: it gets the command that is installed beside this Python.
    program = shutil.which("codingagent", path=str(Path(sys.executable).parent)) or "codingagent"
    words = {"PROGRAM": program, "FOLDER": str(root), "VERSION": __version__}
    for name, value in words.items():
        text = text.replace(f"'{name}'", quoted([value])).replace(f'"{name}"', json.dumps(value))
    sys.stdout.write(dedent(text))
