"""Who can talk to the page: raw requests, as another user of the machine or another site would send them."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.page.browsing import Served, served


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("walls")
    (folder / "secret.txt").write_text("of the workspace")
    with served(folder) as page:
        yield page


def ask(
    page: Served, path: str = "/", method: str = "GET", body: bytes = b"", **headers: str | None
) -> http.client.HTTPResponse:
    """Send a request; a header whose value is None is left out."""
    own = urlsplit(page.address)
    connection = http.client.HTTPConnection("127.0.0.1", own.port)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in {"Host": own.netloc, "Content-Length": str(len(body)), **named}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    response.text = response.read().decode()  # type: ignore[attr-defined]  # read before it is closed
    connection.close()
    return response


@pytest.fixture(scope="module")
def cookie(found: Served) -> str:
    own = urlsplit(found.address)
    response = ask(found, f"/?{own.query}")
    assert response.status == 200
    given = response.headers["Set-Cookie"]
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    return given.partition(";")[0]


def test_the_cookie_lets_in_and_nothing_else(found: Served, cookie: str) -> None:
    assert ask(found, Cookie=cookie).status == 200
    assert ask(found).status == 403
    assert ask(found, "/static/page.js").status == 403
    assert ask(found, Cookie=cookie[:-1]).status == 403
    assert ask(found, "/?token=wrong").status == 403
    assert ask(found, "/?token=", Cookie=cookie).status == 200


@pytest.mark.parametrize("host", ["evil.invalid", "evil.invalid:80", "127.0.0.1", "", None])
def test_a_name_of_somebody_else_gets_nothing(found: Served, cookie: str, host: str | None) -> None:
    """DNS rebinding: the browser thinks that it asks the other site."""
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
    found: Served, cookie: str, headers: dict[str, str | None]
) -> None:
    assert ask(found, "/begin", "POST", b"task=x", Cookie=cookie, **headers).status == 403
    if headers != {"Origin": None}:
        assert ask(found, "/", "GET", b"", Cookie=cookie, **headers).status == 403
    assert not (found.home / "sessions").exists()


def test_no_page_of_ours_runs_a_script_of_others(found: Served, cookie: str) -> None:
    for path in ("/", "/static/page.js", "/s/00000000", "/nothing"):
        headers = ask(found, path, Cookie=cookie).headers
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers


def test_a_body_that_is_too_large_is_refused(found: Served, cookie: str) -> None:
    own = f"http://{urlsplit(found.address).netloc}"
    large = b"task=" + b"x" * (4 * 2**20 + 1)
    assert ask(found, "/begin", "POST", large, Cookie=cookie, Origin=own).status == 422


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/static/../secret.txt", "/static/%2e%2e/server.py", "/static//etc/passwd"],
)
def test_no_file_is_served_by_its_path(found: Served, cookie: str, path: str) -> None:
    assert ask(found, path, Cookie=cookie).status in (400, 404)


@pytest.mark.parametrize("folder", ["..", "../..", "/etc", "%00"])
def test_the_tree_of_files_ends_at_the_workspace(found: Served, cookie: str, folder: str) -> None:
    response = ask(found, f"/files?folder={folder}", Cookie=cookie)
    assert response.status in (404, 422)


@pytest.mark.parametrize("other", ['ui={"a":1}', "foo@bar=1", "a=b c", "x", "ü=ü", '="'])
def test_a_cookie_of_another_server_locks_nobody_out(
    found: Served, cookie: str, other: str
) -> None:
    """Cookies know no ports: any server on this machine can set one."""
    given = f"{other}; {cookie}".encode().decode("latin-1")
    assert ask(found, Cookie=given).status == 200
    assert ask(found, Cookie=other.encode().decode("latin-1")).status == 403


@pytest.mark.parametrize("body", ["task=a%00b", "task=x&check=%00", "task=a\0b"])
def test_a_nul_in_a_field_is_refused_in_words(found: Served, cookie: str, body: str) -> None:
    own = f"http://{urlsplit(found.address).netloc}"
    response = ask(found, "/begin", "POST", body.encode(), Cookie=cookie, Origin=own)
    assert response.status == 422
    assert not (found.home / "sessions").exists()


def test_a_page_says_and_uses_one_folder_and_leaves_no_door(tmp_path: Path) -> None:
    """Also in a home whose earlier sessions work elsewhere; the folder may go; the system may end it."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    program = [sys.executable, "-m", "codingagent", "--home", str(home)]
    env = {**os.environ, "BROWSER": "true", "XDG_STATE_HOME": str(tmp_path / "state")}
    new = [*program, "new", "--no-wait", "--sandbox", "off", "x"]
    subprocess.run(new, env=env, check=True, stdout=subprocess.DEVNULL)
    words = [*program, "page", "--workspace", str(work)]
    with (
        subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert process.stdout is not None
        found = Served(work)
        found.address = process.stdout.readline().rpartition(" ")[2].strip()
        own = urlsplit(found.address)
        cookie = ask(found, f"/?{own.query}").headers["Set-Cookie"].partition(";")[0]
        origin = f"http://{own.netloc}"
        ask(found, "/begin", "POST", b"task=y&wants=edits", Cookie=cookie, Origin=origin)
        sessions = [json.loads(each.read_text()) for each in (home / "sessions").glob("*.json")]
        assert {each["workspace"] for each in sessions} == {str(home / "workspace"), str(work)}
        work.rmdir()
        response: Any = ask(found, Cookie=cookie)
        assert "is gone: put it back" in response.text
        (door,) = (tmp_path / "state").rglob("page-*.html")
        process.terminate()
        process.communicate()
    assert not door.exists()
