"""Who can talk to the page: raw requests, as another user of the machine or another site would send them."""

import asyncio
import hmac
import http.client
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from codingagent.cli.page.access import CONNECTIONS, BoundedConnection
from codingagent.cli.page.queries import PageState
from codingagent.cli.page.server import Page
from codingagent.model.settings import Settings
from codingagent.storage.homes import Home
from tests.helpers import wait_until
from tests.page.browsing import Served, keys_of, served
from tests.warm import run_command, start_command

Keys = dict[str, Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("walls")
    (folder / "secret.txt").write_text("of the workspace")
    with served(folder) as page:
        yield page


def ask(page: Served, path: str = "/", method: str = "GET", body: bytes = b"", **headers: str | None) -> Any:
    """Send a request; a header whose value is None is left out."""
    own = urlsplit(page.address)
    connection = http.client.HTTPConnection("127.0.0.1", own.port)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in {"Host": own.netloc, "Content-Length": str(len(body)), **named}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    response: Any = connection.getresponse()
    response.text = response.read().decode()  # read before it is closed
    connection.close()
    return response


@pytest.fixture(scope="module")
def keys(found: Served) -> Keys:
    return {name.replace("-", "_"): value for name, value in keys_of(found).items()}


@pytest.fixture(scope="module")
def cookie(keys: Keys) -> str:
    return str(keys["Cookie"])


@pytest.fixture(scope="module")
def own(found: Served) -> str:
    return f"http://{urlsplit(found.address).netloc}"


@pytest.fixture(scope="module")
def session(found: Served, keys: Keys, own: str) -> str:
    """Return the path of a session that waits for an answer."""
    begun = ask(found, "/begin", "POST", b"task=the-task-itself&check=true", Origin=own, **keys)
    return str(begun.headers["HX-Redirect"])


def test_both_keys_let_in_and_nothing_else(found: Served, keys: Keys) -> None:
    cookie, key = keys["Cookie"], keys["Codingagent_Key"]
    given = ask(found, f"/?{urlsplit(found.address).query}").headers["Set-Cookie"]
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    assert found.folder.name in ask(found, **keys).text
    assert found.folder.name not in ask(found, Cookie=cookie).text
    assert ask(found, "/static/page.js", Cookie=cookie).status == 200
    assert ask(found, "/files", Cookie=cookie).status == 403
    assert ask(found, "/files", Cookie=cookie, Codingagent_Key=key[:-1]).status == 403
    assert ask(found, "/files", Cookie=cookie, Codingagent_Key="\u00e4").status == 403
    assert ask(found, Cookie=cookie, Codingagent_Key="").status == 403
    assert ask(found, Codingagent_Key=key).status == 403
    assert ask(found).status == 403
    assert ask(found, "/static/page.js").status == 403
    assert ask(found, Cookie=cookie[:-1], Codingagent_Key=key).status == 403
    assert ask(found, "/?token=wrong").status == 403
    assert key not in ask(found, "/?token=", Cookie=cookie).text


def test_no_route_tells_or_does_anything_for_the_cookie_alone(
    found: Served, keys: Keys, own: str, session: str
) -> None:
    """Browsers send cookies to all ports of a host: somebody else's server has it, and is no browser."""
    page = Page(PageState(found.home, found.folder, Settings()))
    as_browser = {"Origin": own, "Sec_Fetch_Site": "same-origin", "HX_Request": "true"}
    known = (found.folder.name, "secret.txt", "of the workspace", "the-task-itself", session[3:])
    before = _files(found.home)
    walked = 0
    for route in page.routes():
        if not isinstance(route, Route) or route.methods is None:
            continue
        path = route.path.replace("{turn:int}", "0").replace("/s/{id}", session)
        actions = ("say", "undo", "commit", "close", "stop") if "{action}" in path else ("",)
        for action, headers in product(actions, ({}, as_browser)):
            asked = path.replace("{action}", action) + "?path=secret.txt&show"
            for method in route.methods:
                answer = ask(found, asked, method, b"text=x", Cookie=keys["Cookie"], **headers)
                told = f"{answer.text} {answer.headers}"
                assert not [each for each in known if each in told], (method, asked)
                assert answer.status == 403 or "<body><noscript>" in told or method == "HEAD"
                walked += 1
    assert walked > len(page.routes())
    assert _files(found.home) == before


def _files(folder: Path) -> dict[Path, bytes]:
    """Return all files but the lock, which names whoever of the page's own looked last."""
    found = (each for each in folder.rglob("*") if each.is_file() and each.name != ".lock")
    return {each: each.read_bytes() for each in found}


def _named(folder: Path) -> set[Path]:
    """Return the names of files alone: a journal may still take, what an earlier test typed."""
    return {each for each in _files(folder) if each.suffix != ".tmp"}


def test_a_server_proves_itself_by_a_secret_that_no_request_shows(found: Served, keys: Keys) -> None:
    """Each document has one of its own, also one that only a cookie asked for: none proves for another."""
    seen = set()
    for path in (f"/?{urlsplit(found.address).query}", "/", "/"):
        shell = ask(found, path, Cookie=keys["Cookie"]).text
        ((key, name, secret),) = re.findall(r'name="keys" content="(\S*) (\S+)\.(\S+)"', shell)
        assert bool(key) == ("token" in path)
        seen |= {name, secret}
        for nonce in (f"{name}.a", f"{name}.b"):
            proof = hmac.digest(secret.encode(), nonce.encode(), "sha256").hex()
            told = ask(found, "/proof", Cookie=keys["Cookie"], Codingagent_Nonce=nonce).headers
            assert told["Codingagent-Proof"] == proof
    assert len(seen) == 6


def test_who_never_ends_a_request_gives_way_to_who_does(
    found: Served, keys: Keys, own: str, session: str
) -> None:
    """So many half requests keep nobody out, and end no stream of events."""
    port = urlsplit(found.address).port
    listening = http.client.HTTPConnection("127.0.0.1", port)
    headers = {name.replace("_", "-"): value for name, value in keys.items()}
    listening.request("GET", f"{session}/events", headers=headers)
    events = listening.getresponse()
    with ExitStack() as stack:
        half = []
        for _ in range(2 * CONNECTIONS):
            half.append(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
            half[-1].sendall(b"GET / HT")
        assert ask(found, **keys).status == 200
        half[0].setblocking(False)  # it was closed before that was answered
        with suppress(ConnectionResetError):
            assert half[0].recv(1) == b""
        assert ask(found, f"{session}/say", "POST", b"text=heard", Origin=own, **keys).status == 200
        while b"heard" not in events.readline():
            pass
    listening.close()


def test_a_request_that_takes_too_long_to_come_is_ended() -> None:
    """Without a head, in it or in the body; an answer may take as long as it likes."""

    class Impatient(BoundedConnection):
        patience_s = 0.001

    async def ended() -> bytes:
        may_answer = asyncio.Event()

        async def app(_: Any, receive: Any, send: Any) -> None:
            while (await receive()).get("more_body"):
                pass
            await may_answer.wait()
            await PlainTextResponse("answered")(_, receive, send)

        config = uvicorn.Config(app, http=Impatient, lifespan="off", log_config=None)
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Impatient(config, state, {}), "127.0.0.1", 0)
        place = server.sockets[0].getsockname()
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
        # It is all there before the server hears of it: what comes goes before what is due.
        connection = socket.create_connection(place)
        connection.sendall(head + b"abc")
        whole, writer = await asyncio.open_connection(sock=connection)
        for part in (b"", head[:9], head + b"ab"):
            reader, other = await asyncio.open_connection(*place)
            other.write(part)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            other.close()
        may_answer.set()
        async with server:
            answer = await whole.read()
        writer.close()
        return answer

    assert asyncio.run(ended()).endswith(b"answered")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc to look in")
def _command_lines() -> bytes:
    """Return what every user of the machine sees of its processes."""
    told = b""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            told += each.read_bytes()
    return told


def test_no_other_user_sees_what_the_person_typed(found: Served, keys: Keys, own: str, session: str) -> None:
    """The words of a command line are everybody's; the process that has the check waits for an answer."""
    check = b"check=echo+typed-by-the-person"
    assert ask(found, f"{session}/check", "POST", check, Origin=own, **keys).status == 200
    wait_until(lambda: b"cli.page.workers" in _command_lines())
    told = _command_lines()
    assert b"typed-by-the-person" not in told
    assert session[3:].encode() not in told


@pytest.mark.parametrize("host", ["evil.invalid", "evil.invalid:80", "127.0.0.1", "localhost", "", None])
def test_a_name_of_somebody_else_gets_nothing(found: Served, cookie: str, host: str | None) -> None:
    """DNS rebinding: the browser thinks that it asks the other site. Localhost may be ::1, and not ours."""
    if host == "localhost":
        host = f"localhost:{urlsplit(found.address).port}"
    assert ask(found, Host=host, Cookie=cookie).status in (400, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.invalid"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site", "Origin": None},
        {"Sec_Fetch_Site": "same-site", "Origin": None},
        {"Origin": None},
    ],
)
def test_another_page_in_the_browser_can_do_nothing(
    found: Served, keys: Keys, headers: dict[str, str | None]
) -> None:
    before = _files(found.home)
    assert ask(found, "/begin", "POST", b"task=x", **keys, **headers).status == 403
    if headers != {"Origin": None}:
        assert ask(found, "/", "GET", b"", **keys, **headers).status == 403
    assert _files(found.home) == before


def test_no_page_of_ours_runs_a_script_of_others(found: Served, keys: Keys) -> None:
    """Of this port's either: a script runs by a word that is new each time."""
    given = (keys, {"Cookie": keys["Cookie"]})
    seen = set()
    for path, own in product(("/", "/static/page.js", "/s/00000000", "/nothing"), given):
        headers = ask(found, path, **own).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        (scripts,) = re.findall("script-src ([^;]*)", policy)
        seen.add(scripts)
        assert scripts == "'none'" or re.fullmatch(r"'nonce-\S{20,}'", scripts)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
    assert len(seen) == 3


def test_a_body_that_is_too_large_is_refused(found: Served, keys: Keys, own: str) -> None:
    large = b"task=" + b"x" * (4 * 2**20 + 1)
    assert ask(found, "/begin", "POST", large, Origin=own, **keys).status == 422


@pytest.mark.parametrize(
    "path", ["/secret.txt", "/static/../secret.txt", "/static/%2e%2e/server.py", "/static//etc/passwd"]
)
def test_no_file_is_served_by_its_path(found: Served, keys: Keys, path: str) -> None:
    assert ask(found, path, **keys).status in (400, 404)


@pytest.mark.parametrize("folder", ["..", "../..", "/etc", "%00"])
def test_the_tree_of_files_ends_at_the_workspace(found: Served, keys: Keys, folder: str) -> None:
    response = ask(found, f"/files?folder={folder}", **keys)
    assert response.status in (404, 422)


@pytest.mark.parametrize("other", ['ui={"a":1}', "foo@bar=1", "a=b c", "x", "ü=ü", '="'])
def test_a_cookie_of_another_server_locks_nobody_out(found: Served, cookie: str, other: str) -> None:
    """Cookies know no ports: any server on this machine can set one."""
    given = f"{other}; {cookie}".encode().decode("latin-1")
    assert ask(found, Cookie=given).status == 200
    assert ask(found, Cookie=other.encode().decode("latin-1")).status == 403


@pytest.mark.parametrize("body", ["task=a%00b", "task=x&check=%00", "task=a\0b"])
def test_a_nul_in_a_field_is_refused_in_words(found: Served, keys: Keys, own: str, body: str) -> None:
    before = _named(found.home)
    response = ask(found, "/begin", "POST", body.encode(), Origin=own, **keys)
    assert response.status == 422
    assert _named(found.home) == before


def test_of_ticks_at_once_each_one_counts(found: Served, keys: Keys, own: str, session: str) -> None:
    """Each builds on what was left out before it."""
    names = [f"{number}.txt" for number in range(3)]
    with ThreadPoolExecutor() as pool:
        posts = [(found, f"{session}/leave", "POST", f"path={name}".encode()) for name in names]
        done = [pool.submit(ask, *post, Origin=own, **keys) for post in posts]
    assert {each.result().status for each in done} == {200}
    assert {*Home.of(found.home).sessions.load(session.rpartition("/")[2]).leave_out} == {*names}


def test_a_page_says_and_uses_one_folder_and_leaves_no_door(tmp_path: Path) -> None:
    """Also in a home whose earlier sessions work elsewhere; the folder may go; the system may end it."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    env = {**os.environ, "BROWSER": "true", "XDG_STATE_HOME": str(tmp_path / "state")}
    begin, *page = ("new", "--no-wait", "--sandbox", "off", "x"), "page", "--workspace", str(work)
    assert run_command("--home", str(home), *begin, env=env, stdout=subprocess.DEVNULL).returncode == 0
    served_page = start_command("--home", str(home), *page, env=env, stdout=subprocess.PIPE, text=True)
    with served_page as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        found = Served(work)
        found.address = process.stdout.readline().rpartition(" ")[2].strip()
        keys: Keys = {name.replace("-", "_"): value for name, value in keys_of(found).items()}
        origin = f"http://{urlsplit(found.address).netloc}"
        ask(found, "/begin", "POST", b"task=y&wants=edits", Origin=origin, **keys)
        sessions = [json.loads(each.read_text()) for each in (home / "sessions").glob("*.json")]
        assert {each["workspace"] for each in sessions} == {str(home / "workspace"), str(work)}
        work.rmdir()
        assert "is gone: put it back" in ask(found, **keys).text
        (door,) = (tmp_path / "state").rglob("page-*.html")
        process.terminate()
        process.communicate()
    assert not door.exists()
