"""Commands for programs: run, serve, call."""

import os
from pathlib import Path
from typing import Annotated

import typer

from codingagent.cli.commands.common import Given, home_was_found
from codingagent.cli.commands.options import Network, PolicyName, SandboxUse, WorkspaceFolder, Yes

app = typer.Typer()


@app.command(
    epilog="Example: codingagent run operations.json --workspace project > events.json", name="run"
)
def _run(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An operations message; - reads it from stdin.")
    ],
    workspace: WorkspaceFolder = None,
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    yes: Yes = False,
    events_stream: Annotated[
        bool,
        typer.Option(
            "--events-stream",
            help="Print each event as it happens, one a line; last the message without them.",
        ),
    ] = False,
) -> int:
    """Execute a JSON operations message, and print the events message.

    Exit status: 0 done (a failed operation is an event), 1 a fault of the system halted it, 2 it is
    no operations message, 3 an operation awaits approval: see `approve`.
    """
    from codingagent.cli import runs
    from codingagent.storage import homes

    was_found = home_was_found(context)
    root = homes.find_home(context.obj, Path.cwd(), os.environ)
    homes.check_home(root, was_found=was_found)
    options = {
        "workspace": None if workspace is None else str(workspace),
        **Given(policy, sandbox, network).settings,
    }
    resolved, folder = homes.settings_for(root, options, os.environ)
    data = runs.read_message(file)
    home = homes.Home.at(root, create=True, was_found=was_found)
    homes.make_workspace(home.root, folder)
    return runs.execute(
        home, folder, resolved.settings, data, approves_all=yes, streams=events_stream
    )


# System timers count no further: 2^31 ms, 24 days.
_LONGEST_S = 2_000_000

# The highest number means "any" to the system.
_LAST_VSOCK = 2**32 - 2


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise typer.BadParameter(f"{value:g} is not more than 0 and at most {_LONGEST_S} seconds")
    return value


_Stdio = Annotated[bool, typer.Option("--stdio", help="Speak on standard input and output.")]
_Socket = Annotated[str | None, typer.Option("--socket", metavar="PATH", help="A Unix socket.")]
_Tcp = Annotated[
    str | None,
    typer.Option("--tcp", metavar="HOST:PORT", help="A port of this machine: 127.0.0.1:8000."),
]
_TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="The file with the token of --tcp; `serve` makes it."
    ),
]
_Vsock = Annotated[
    int | None,
    typer.Option(
        "--vsock",
        metavar="PORT",
        min=0,
        max=_LAST_VSOCK,
        help="A port between a guest and its host.",
    ),
]


@app.command(epilog="Example: codingagent serve --socket /tmp/agent.sock", name="serve")
def _serve(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    stdio: _Stdio = False,
    socket: _Socket = None,
    tcp: _Tcp = None,
    vsock: _Vsock = None,
    token_file: _TokenFile = None,
    no_token: Annotated[
        bool,
        typer.Option("--no-token", help="With --tcp: let every user of this machine in."),
    ] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder to serve; / is the whole machine. [default: the workspace]",
        ),
    ] = None,
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            callback=_seconds,
            metavar="SECONDS",
            help="Limit of a command that names none. [default: no limit]",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", help="Log the messages too.")] = False,
) -> None:
    """Serve a folder or a whole machine over JSON-RPC 2.0: run commands, move files."""
    from dataclasses import replace

    from codingagent.cli import serve_call
    from codingagent.model.settings import DEFAULT
    from codingagent.storage import homes

    named = serve_call.EndpointOptions(
        stdio, socket, tcp, vsock, token_file=token_file, no_token=no_token
    )
    named.chosen()  # before anything is created for a missing endpoint
    home = homes.find_home(context.obj, Path.cwd(), os.environ)
    homes.check_home(home, was_found=home_was_found(context))
    options = Given(policy, sandbox, network).settings
    resolved, folder = homes.settings_for(home, options, os.environ, root)
    settings = resolved.settings
    is_machine = root is not None and root.resolve() == Path(root.resolve().anchor)
    if is_machine and resolved.origins["policy"] == DEFAULT:
        # The guest machine is the confinement; nobody could answer a preset's questions.
        settings = replace(settings, policy="permissive")
    if root is None:
        homes.make_workspace(home, folder)
    served = serve_call.Served(home, folder, settings, timeout)
    serve_call.serve(named, served, verbose=verbose)


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
        bool, typer.Option("--stdio", help="A server of its own, for this call.")
    ] = False,
    socket: _Socket = None,
    tcp: _Tcp = None,
    vsock: _Vsock = None,
    token_file: _TokenFile = None,
    cid: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_LAST_VSOCK,
            metavar="CID",
            help="Of --vsock: the guest's number. [default: the host]",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="LINE", help='A program that carries it: "ssh HOST codingagent serve --stdio".'
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(callback=_seconds, metavar="SECONDS", help="How long to wait for the answer."),
    ] = 30.0,
) -> int:
    """Call a method of a server, and print its result; exit status 1 with its error."""
    from codingagent.cli import serve_call

    named = serve_call.EndpointOptions(stdio, socket, tcp, vsock, command, cid, token_file)
    return serve_call.call(named, context.obj, method, params, timeout)
