"""Commands for programs: run, serve, call."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from codingagent.cli.commands import options
from codingagent.cli.commands.common import Given, trusted_home

if TYPE_CHECKING:
    from codingagent.cli.serve_call import Served

app = typer.Typer()


@app.command(
    epilog="Example: codingagent run operations.json --workspace project > events.json", name="run"
)
def _run(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An operations message; - reads it from stdin.")
    ],
    workspace: options.WorkspaceFolder = None,
    policy: options.PolicyName = None,
    sandbox: options.SandboxUse = None,
    network: options.Network = None,
    yes: options.Yes = False,
    events_stream: options.EventsStream = False,
) -> int:
    """Execute a JSON operations message, and print the events message.

    Exit status: 0 done (a failed operation is an event), 1 a system fault stopped it, 2 not an
    operations message, 3 an operation awaits approval: see `approve`.
    """
    from codingagent.cli import runs
    from codingagent.storage import homes

    root, was_found = trusted_home(context)
    named = {"workspace": None if workspace is None else str(workspace)}
    given = {**named, **Given(policy, sandbox, network).settings}
    resolved, folder = homes.settings_for(root, given, os.environ)
    data = runs.read_message(file)
    home = homes.Home.at(root, create=True, was_found=was_found)
    homes.make_workspace(home.root, folder)
    return runs.execute(
        home, folder, resolved.settings, data, approves_all=yes, streams=events_stream
    )


@app.command(epilog="Example: codingagent serve --socket /tmp/agent.sock", name="serve")
def _serve(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    stdio: options.Stdio = False,
    socket: options.Socket = None,
    tcp: options.Tcp = None,
    vsock: options.Vsock = None,
    token_file: options.TokenFile = None,
    no_token: options.NoToken = False,
    root: options.Root = None,
    policy: options.PolicyName = None,
    sandbox: options.SandboxUse = None,
    network: options.Network = None,
    timeout: options.CommandLimit = None,
    verbose: Annotated[bool, typer.Option("-v", help="Log the messages too.")] = False,
) -> None:
    """Serve a folder or a whole machine over JSON-RPC 2.0: run commands, read and write files."""
    from codingagent.cli import serve_call

    named = serve_call.EndpointOptions(
        stdio, socket, tcp, vsock, token_file=token_file, no_token=no_token
    )
    named.chosen()  # before anything is created for a missing endpoint
    served = _served(context, root, Given(policy, sandbox, network), timeout)
    serve_call.serve(named, served, verbose=verbose)


def _served(
    context: typer.Context, root: Path | None, given: Given, timeout_s: float | None
) -> "Served":
    from codingagent.cli import serve_call
    from codingagent.model.settings import DEFAULT
    from codingagent.storage import homes

    home, _ = trusted_home(context)
    resolved, folder = homes.settings_for(home, given.settings, os.environ, root)
    settings = resolved.settings
    is_machine = root is not None and root.resolve() == Path(root.resolve().anchor)
    if is_machine and resolved.origins["policy"] == DEFAULT:
        # The guest machine is the confinement; nobody could answer a preset's questions.
        settings = replace(settings, policy="permissive")
    if root is None:
        homes.make_workspace(home, folder)
    return serve_call.Served(home, folder, settings, timeout_s)


@app.command(
    epilog='Example: codingagent call exec \'{"cmd": "ls"}\' --socket /tmp/agent.sock', name="call"
)
def _call(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    method: Annotated[
        str,
        typer.Argument(help="ping, exec, exec_code, read_file, write_file, list_dir, or another."),
    ],
    params: Annotated[
        str | None, typer.Argument(metavar="PARAMS_JSON", help="A JSON object or array.")
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Start a server for this call alone.")
    ] = False,
    socket: options.Socket = None,
    tcp: options.Tcp = None,
    vsock: options.Vsock = None,
    token_file: options.TokenFile = None,
    cid: options.Cid = None,
    command: options.CarryingCommand = None,
    timeout: options.AnswerLimit = 30.0,
) -> int:
    """Call a method of a JSON-RPC server and print its result. Exit status 1: it reports an error."""
    from codingagent.cli import serve_call

    named = serve_call.EndpointOptions(stdio, socket, tcp, vsock, command, cid, token_file)
    return serve_call.call(named, context.obj, method, params, timeout)
