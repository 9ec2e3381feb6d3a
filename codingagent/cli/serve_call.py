"""The commands `serve` and `call`: the two ends of a host's connection."""

import ctypes
import json
import os
import shlex
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import UsageError
from codingagent.model.settings import Settings
from codingagent.policy.rules import describe
from codingagent.rpc import tcp_token
from codingagent.rpc.client import Client
from codingagent.rpc.endpoints import (
    HOST_CID,
    Command,
    Endpoint,
    Listenable,
    Tcp,
    UnixSocket,
    Vsock,
    tcp_from,
)
from codingagent.rpc.listeners import listen
from codingagent.rpc.methods import Host, host_of
from codingagent.rpc.server import HandleLog, Server, stopped_by_signals
from codingagent.rpc.streams import HandleStream, take_stdio

# <malloc.h>
_M_ARENA_MAX = -8


class EndpointOptions(Struct, frozen=True):
    """The endpoint options of the command line; one of them must be given."""

    stdio: bool = False
    socket: str | None = None
    tcp: str | None = None
    vsock: int | None = None
    command: str | None = None
    cid: int | None = None
    """The vsock peer that a client calls; None is the host."""
    token_file: Path | None = None
    no_token: bool = False

    def chosen(self) -> Listenable | Command | None:
        """Return the endpoint; None is standard input and output."""
        given = [
            self.stdio,
            *(each is not None for each in (self.socket, self.tcp, self.vsock, self.command)),
        ]
        if sum(given) != 1:
            raise UsageError(
                "name one endpoint: --stdio, --socket PATH, --tcp HOST:PORT or --vsock PORT"
            )
        if self.tcp is None and (self.token_file is not None or self.no_token):
            raise UsageError(
                "a token is only for --tcp; the other endpoints are closed to other users"
            )
        if self.token_file is not None and self.no_token:
            raise UsageError("--token-file and --no-token can't be combined; leave one out")
        if self.socket is not None:
            return UnixSocket(self.socket)
        if self.tcp is not None:
            return tcp_from(self.tcp)
        if self.vsock is not None:
            return Vsock(self.vsock, HOST_CID if self.cid is None else self.cid)
        return None if self.command is None else Command(self.command)


class Served(Struct, frozen=True):
    """Name what to serve, and its restrictions: see `host_of`."""

    home: Path
    root: Path
    settings: Settings
    timeout_s: float | None


def serve(named: EndpointOptions, served: Served, *, verbose: bool) -> None:
    """Serve until stopped; log on stderr."""
    endpoint = named.chosen()
    if isinstance(endpoint, Command):
        raise UsageError("--command works only with `call`")
    token, told = None, ""
    if isinstance(endpoint, Tcp):
        token, told = tcp_token.for_server(named.token_file, is_needed=not named.no_token)
    log = HandleLog(sys.stderr.fileno())
    _share_heap()
    # Before any file is opened: it would get the number of a closed standard stream.
    place = _standard_streams() if endpoint is None else endpoint
    with host_of(served.home, served.root, served.settings, served.timeout_s) as host:
        if isinstance(place, HandleStream):
            with Server(host.open_methods, log, shows_bodies=verbose) as server:
                _say(log, host, "standard input and output")
                with stopped_by_signals(server):
                    server.serve_one(place)
            return
        with (
            closing(listen(place)) as listener,
            Server(host.open_methods, log, shows_bodies=verbose, token=token) as server,
        ):
            _say(log, host, str(listener.endpoint))
            if told:
                log(told)
            with stopped_by_signals(server):
                server.serve(listener)


def _share_heap() -> None:
    """Make all threads share one heap.

    glibc gives each thread its own, up to eight for each core, and each keeps the most that a connection ever
    needed. Python runs one thread at a time, so they do not get in each other's way.
    """
    if sys.platform == "linux":
        # Another C library may lack it, and does not have the problem either.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _standard_streams() -> HandleStream:
    try:
        return take_stdio()
    except OSError as fault:
        raise UsageError("standard input or output is closed; --stdio needs both") from fault


def _say(log: HandleLog, host: Host, where: str) -> None:
    held = "commands run in a sandbox" if host.sandbox.tier != "none" else "commands run unconfined"
    log(f"serving {host.workspace.root} on {where}; {held}")
    for line in describe(host.policy).splitlines():
        log(f"policy {line}")


def call(
    named: EndpointOptions,
    home: Path | None,
    method: str,
    params: str | None,
    timeout_s: float | None,
) -> int:
    """Call a method and print its result as JSON; return the exit status.

    A server that is started for this call alone uses the home that was named, if any.
    """
    values = None
    if params is not None:
        try:
            values = json.loads(params, parse_constant=_no_constant)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"the params are not JSON: {fault}") from fault
        if not isinstance(values, dict | list):
            raise UsageError("the params must be a JSON object or array")
    chosen = named.chosen()
    endpoint: Endpoint = _served_here(home) if chosen is None else chosen
    if isinstance(endpoint, Tcp) and named.token_file is not None:
        endpoint = replace(endpoint, token=tcp_token.read(named.token_file))
    with Client.connect(endpoint, timeout_s=timeout_s) as client:
        result = client.call(method, values)
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    return 0


def _no_constant(name: str) -> NoReturn:
    # Python parses it, but could not send it.
    raise ValueError(f"{name} is not JSON")


def _served_here(home: Path | None) -> Command:
    """Return a server started for a single call."""
    # The server must find an unnamed home itself: a named one is trusted.
    named = () if home is None else ("--home", os.fspath(home))
    words = (sys.executable, "-m", "codingagent", *named, "serve", "--stdio")
    return Command(shlex.join(words))
