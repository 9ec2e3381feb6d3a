"""Client for a host that drives a workspace or a guest over JSON-RPC.

    from codingagent.rpc import Client, UnixSocket

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

from codingagent.rpc.client import *  # noqa: F403
from codingagent.rpc.endpoints import *  # noqa: F403
