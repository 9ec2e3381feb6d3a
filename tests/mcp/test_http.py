"""Tools over HTTP: who is let in, and what several clients share."""

import asyncio
import contextlib
import http.client
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from codingagent.rpc.endpoints import Tcp, listen
from tests import warm
from tests.helpers import run_here
from tests.mcp.clients import ERAS, Tools, talk
from tests.rows import each_row


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[int, str]]:
    """Serve a folder over HTTP; yield its port and its token."""
    words = ("mcp", str(folder), "--http", *options)
    with warm.start_command(*words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)/mcp; token (\w+)", process.stderr.readline())
        assert found is not None
        try:
            yield int(found[1]), found[2]
        finally:
            process.terminate()
            assert process.wait() in (0, 143)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    with served(tmp_path_factory.mktemp("http")) as found:
        yield found


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

# Headers ({}: the server's address, TOKEN: its token), and the status of the answer.
REQUESTS: list[tuple[dict[str, str], int]] = [
    ({"Host": "127.0.0.1:{}"}, 401),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer"}, 401),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer x"}, 401),
    ({"Host": "127.0.0.1:{}", "Authorization": "Basic TOKEN"}, 401),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer TOKENx"}, 401),
    ({"Host": "127.0.0.1:{}", "Cookie": "token=TOKEN"}, 401),
    ({"Host": "evil.example", "Authorization": "Bearer TOKEN"}, 421),
    ({"Host": "evil.example:{}", "Authorization": "Bearer TOKEN"}, 421),
    ({"Host": "127.0.0.1:1", "Authorization": "Bearer TOKEN"}, 421),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer TOKEN", "Origin": "http://evil.example"}, 403),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer TOKEN", "Origin": "null"}, 403),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer TOKEN", "Origin": "http://127.0.0.1:1"}, 403),
    ({"Host": "127.0.0.1:{}", "Authorization": "Bearer TOKEN", "Content-Length": "99999999"}, 413),
]


@each_row("headers, status", REQUESTS)
def test_who_is_refused(server: tuple[int, str], headers: dict[str, str], status: int) -> None:
    port, token = server
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest("POST", "/mcp", skip_host=True)
    for name, value in {**JSON, "Content-Length": str(len(PING)), **headers}.items():
        connection.putheader(name, value.replace("{}", str(port)).replace("TOKEN", token))
    connection.endheaders(PING)
    response: Any = connection.getresponse()
    assert response.status == status, response.read()
    connection.close()


@contextlib.asynccontextmanager
async def at(server: tuple[int, str]) -> AsyncIterator[Any]:
    port, token = server
    headers, address = {"Authorization": f"Bearer {token}"}, f"http://127.0.0.1:{port}/mcp"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as client,
        streamable_http_client(address, http_client=client) as streams,
    ):
        yield streams


def test_clients_share_the_servers_session_and_may_name_another(tmp_path: Path) -> None:
    async def work(tools: Tools) -> None:
        ids.append(await tools.session())
        assert "Created" in await tools("write_file", path=f"{len(ids)}", content="")

    ids: list[str] = []
    with served(tmp_path) as server:
        for era in ERAS:
            talk(at(server), work, era)
    assert len(set(ids)) == 1
    assert "1 ok" in run_here("show", folder=tmp_path).stdout


def test_a_small_answer_is_sent_at_once() -> None:
    """The system does not hold its pieces back, here and on the page: that cost 40 ms each."""

    async def held_back() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen(Tcp("127.0.0.1", 0)).socket
        async with await asyncio.start_server(accepted, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            sent_at_once = await found
            writer.close()
            await writer.wait_closed()
        return sent_at_once

    assert asyncio.run(held_back())


def test_many_calls_at_once(server: tuple[int, str]) -> None:
    """Of eight clients: each gets its own answers."""

    async def read(tools: Tools) -> None:
        told = await asyncio.gather(*(tools("read_files", paths=[f"no {n}"]) for n in range(20)))
        assert told == [f"FAILED File 'no {n}' not found" for n in range(20)]

    async def all_of_them() -> None:
        await asyncio.gather(*(asyncio.to_thread(talk, at(server), read, ERAS[n % 2]) for n in range(8)))

    asyncio.run(all_of_them())
