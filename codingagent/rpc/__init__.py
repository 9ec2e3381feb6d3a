"""Client for a host that drives a workspace or a guest over JSON-RPC.

    from codingagent.rpc.client import Client, UnixSocket

    with Client.connect(UnixSocket("/run/agent.sock")) as guest:
        print(guest.exec("uname -a").stdout)

Exceptions:

RpcError                        a call or the connection failed
├── ConnectError                nothing listens at the endpoint
├── ClosedError                 the connection ended before the answer came
├── CallTimeoutError            no answer in time; the connection is closed
├── AnswerError                 the bytes received are not an answer to the call
└── RemoteError                 the server answered with an error: its code, message and data
    ├── ParseError              -32700
    ├── InvalidRequestError     -32600
    ├── MethodNotFoundError     -32601
    ├── InvalidParamsError      -32602
    └── InternalError           -32603
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codingagent.rpc.client import (
        AnswerError,
        CallTimeoutError,
        Client,
        ClosedError,
        ConnectError,
        ExecResult,
        FileEntry,
        InternalError,
        InvalidParamsError,
        InvalidRequestError,
        MethodNotFoundError,
        ParseError,
        RemoteError,
        RpcError,
    )
    from codingagent.rpc.endpoints import Command, Tcp, UnixSocket, Vsock

__all__ = [
    "AnswerError",
    "CallTimeoutError",
    "Client",
    "ClosedError",
    "Command",
    "ConnectError",
    "ExecResult",
    "FileEntry",
    "InternalError",
    "InvalidParamsError",
    "InvalidRequestError",
    "MethodNotFoundError",
    "ParseError",
    "RemoteError",
    "RpcError",
    "Tcp",
    "UnixSocket",
    "Vsock",
]

_ENDPOINTS = frozenset({"Command", "Tcp", "UnixSocket", "Vsock"})


# The server is in this package too: importing it must not import the client.
def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'codingagent.rpc' has no attribute '{name}'")
    from importlib import import_module

    module = "endpoints" if name in _ENDPOINTS else "client"
    return getattr(import_module(f"codingagent.rpc.{module}"), name)
