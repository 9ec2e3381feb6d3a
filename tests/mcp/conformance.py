"""The protocol's own conformance suite against our server, with Node 22 or newer and its package from npm.

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12
    python -m tests.mcp.conformance npx conformance server

runs it for both eras. What is expected to fail, and why, stands in conformance.yaml. The suite sends no
token: it is added here, before our own walls.
"""

import contextlib
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from codingagent.mcp.server import ToolServer
from codingagent.mcp.tool_session import ToolPlace, ToolSession
from codingagent.model.settings import Settings
from codingagent.rpc.endpoints import Tcp, listen
from codingagent.storage.homes import Home

_TOKEN = "token"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        place = ToolPlace(
            root,
            lambda: Home.at(root / ".codingagent", create=True),
            Settings(),
            lambda *_: Settings(),
            print,
        )
        tools = ToolServer(lambda *session: ToolSession(place, *session), 1.0)
        with contextlib.closing(tools), contextlib.closing(listen(Tcp("127.0.0.1", 0)).socket) as listening:
            port = listening.getsockname()[1]
            app = tools.http_app(port, _TOKEN)

            async def let_in(scope: Scope, receive: Receive, send: Send) -> None:
                headers = [*scope.get("headers", ()), (b"authorization", f"Bearer {_TOKEN}".encode())]
                await app({**scope, "headers": headers}, receive, send)

            server = uvicorn.Server(uvicorn.Config(let_in, log_level="warning"))
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            expected = f"--expected-failures={Path(__file__).with_suffix('.yaml')}"
            words = [*sys.argv[1:], f"--url=http://127.0.0.1:{port}/mcp", expected]
            eras = ("2025-11-25", "2026-07-28")
            status = [subprocess.call([*words, f"--requirements={era}"]) for era in eras]
            server.should_exit = True
            thread.join()
    return max(status)


if __name__ == "__main__":
    raise SystemExit(main())
