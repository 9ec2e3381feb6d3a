"""The command that executes a message of JSON operations."""

import os
from typing import Annotated

import typer

from codingagent.cli.commands import options
from codingagent.cli.commands.common import Given, trusted_home
from codingagent.process.select_sandbox import possible_policy
from codingagent.storage import homes

app = typer.Typer()


@app.command(
    epilog="Example: codingagent run operations.json --workspace project > events.json", name="run"
)
def _run(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    file: Annotated[str, options.told("operations")],
    workspace: options.WorkspaceFolder = None,
    policy: options.PolicyName = None,
    sandbox: options.SandboxUse = None,
    network: options.Network = None,
    secrets: options.Secrets = None,
    yes: options.Yes = False,
    events_stream: Annotated[bool, options.told("stream")] = False,
) -> int:
    """Run a JSON operations message, and print the events message.

    Exit status: 0 done (a failed operation is an event), 1 a system fault stopped it, 2 not an
    operations message, 3 an operation waits for approval: see `approve`.
    """
    from codingagent.cli import runs  # pydantic with it: not for --help

    root, was_found = trusted_home(context)
    named = {"workspace": None if workspace is None else str(workspace)}
    given = {**named, **Given(policy, sandbox, network, secrets=secrets).settings}
    resolved, folder = homes.settings_for(root, given, os.environ)
    data = runs.read_message(file)
    settings = homes.for_program(resolved)
    possible_policy(settings, folder)
    home = homes.Home.at(root, create=True, was_found=was_found)
    homes.make_workspace(home.root, folder)
    return runs.execute(home, folder, settings, data, approves_all=yes, streams=events_stream)
