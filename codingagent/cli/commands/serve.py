"""The commands serve and call: the two ends of a host's connection."""

import json
import os
import sys
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from codingagent.cli.commands import options
from codingagent.cli.commands.common import trusted_home
from codingagent.cli.stdio import be_utf8
from codingagent.errors import UsageError, disk_errors
from codingagent.model.settings import DEFAULT
from codingagent.policy.rules import describe
from codingagent.rpc import endpoints
from codingagent.rpc.client import Client
from codingagent.rpc.endpoints import Command, StandardStreams, Tcp
from codingagent.rpc.methods import TABLE, Host, host_of, is_machine
from codingagent.storage import homes
from codingagent.workspace.programs import quoted

app = typer.Typer()
# The highest number means "any" to the system.
_LAST_VSOCK = 2**32 - 2


class _EndpointOptions(Struct, frozen=True):
    """The endpoint options of the command line; one of them must be given."""

    stdio: Annotated[bool, options.option("stdio")] = False
    own: Annotated[bool, options.option("own server")] = False
    socket: Annotated[str | None, options.option("socket")] = None
    tcp: Annotated[str | None, options.option("tcp")] = None
    vsock: Annotated[int | None, options.option("vsock", min=0, max=_LAST_VSOCK)] = None
    token_file: Annotated[Path | None, options.option("token")] = None
    no_token: Annotated[bool, options.option("no token")] = False
    cid: Annotated[int | None, options.option("cid", min=0, max=_LAST_VSOCK)] = None
    command: Annotated[str | None, options.option("command")] = None

    def chosen(self) -> endpoints.Listenable | Command | None:
        """Return the endpoint; None is standard input and output."""
        named = (each is not None for each in (self.socket, self.tcp, self.vsock, self.command))
        if sum((self.stdio or self.own, *named)) != 1:
            raise UsageError("choose one endpoint: --stdio, --socket PATH, --tcp HOST:PORT or --vsock PORT")
        if self.tcp is None and (self.token_file is not None or self.no_token):
            raise UsageError("a token is only for --tcp; the other endpoints are closed to other users")
        if self.token_file is not None and self.no_token:
            raise UsageError("--token-file and --no-token can't be combined; leave one out")
        if self.socket is not None:
            return endpoints.UnixSocket(self.socket)
        if self.tcp is not None:
            return endpoints.tcp_from(self.tcp)
        if self.vsock is not None:
            return endpoints.Vsock(self.vsock, endpoints.HOST_CID if self.cid is None else self.cid)
        return None if self.command is None else Command(self.command)


@app.command(epilog="Example: codingagent serve --tcp 127.0.0.1:8000", name="serve")
@options.with_options(options.RULES)
@options.with_options("stdio socket tcp vsock token_file no_token", _EndpointOptions)
def _serve(  # one for each command-line option
    context: typer.Context,
    given: options.SessionOptions,
    named: _EndpointOptions,
    root: Annotated[Path | None, options.option("root")] = None,
    timeout: options.CommandLimit = None,
    verbose: Annotated[bool, options.option("log")] = False,
) -> None:
    """Serve a folder or a whole machine over JSON-RPC 2.0: run commands, read and write files."""
    named.chosen()  # before anything is created for a missing endpoint
    home, _ = trusted_home(context)
    resolved, folder = homes.settings_for(home, given.settings, os.environ, root)
    settings = homes.for_program(resolved)
    if root is None:
        homes.make_workspace(home, folder)
    elif is_machine(root) and resolved.origins["policy"] == DEFAULT:
        # The guest machine is the confinement; nobody could answer a preset's questions.
        settings = replace(settings, policy="permissive")
    _serve_until_stopped(host_of(home, folder, settings, timeout), named, verbose=verbose)


def _serve_until_stopped(
    hosting: AbstractContextManager[Host], named: _EndpointOptions, *, verbose: bool
) -> None:
    # It imports asyncio, which a client need not wait for.
    from codingagent.rpc.server import HandleLog, Server

    endpoint = named.chosen()
    assert not isinstance(endpoint, Command)
    token, told = None, "no token: every user of this machine can run commands here" * named.no_token
    if isinstance(endpoint, Tcp) and not named.no_token:
        token, told = endpoints.token_for_server(named.token_file)
    log = HandleLog(sys.stderr.fileno())
    place: StandardStreams | endpoints.Listener
    with ExitStack() as stack:
        stack.callback(log.flush)
        if endpoint is None:
            # Before any file is opened: it would get the number of a closed standard stream.
            with disk_errors("--stdio needs both standard input and output", UsageError):
                place = StandardStreams()
        host = stack.enter_context(hosting)
        if endpoint is not None:
            place = stack.enter_context(closing(endpoints.listen(endpoint)))
        where = "standard input and output" if isinstance(place, StandardStreams) else place.endpoint

        def say() -> None:
            held = "in a sandbox" if host.sandbox.tier != "none" else "unconfined"
            log(f"serving {host.workspace.root} on {where}; commands run {held}")
            allowed, *_ = describe(host.policy).split("\n")
            log(f"policy {allowed}")
            if told:
                log(told)

        server = Server(TABLE, host.open_methods, log, shows_bodies=verbose, token=token)
        server.serve(place, say)


@app.command(epilog="Example: codingagent call ping --stdio", name="call")
@options.with_options("own socket tcp vsock token_file cid command", _EndpointOptions)
def _call(
    context: typer.Context,
    named: _EndpointOptions,
    method: Annotated[str, options.option("method")],
    params: Annotated[str | None, options.option("params")] = None,
    timeout: options.AnswerLimit = 30.0,
) -> int:
    """Call a method of a JSON-RPC server and print its result. Exit status 1: it reports an error."""
    try:
        values = None if params is None else decode(params, type=dict[str, Any] | list[Any])
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"the params are not a JSON object or array: {fault}") from fault
    endpoint: endpoints.Endpoint | None = named.chosen()
    if endpoint is None:
        # A server for this call alone. It must find an unnamed home itself: a named one is trusted. -P:
        # nothing is imported from the current folder, which may be a workspace.
        home = () if context.obj is None else ("--home", os.fspath(context.obj))
        words = (sys.executable, "-P", "-m", "codingagent", *home, "serve", "--stdio")
        endpoint = Command(quoted(words))
    if isinstance(endpoint, Tcp) and named.token_file is not None:
        endpoint = replace(endpoint, token=endpoints.read_token(named.token_file))
    with Client.connect(endpoint, timeout_s=timeout) as client:
        result = client.call(method, values)
    be_utf8(sys.stdout)
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    return 0
