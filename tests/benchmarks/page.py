"""How soon the page is there, and the next request after an answer, against a terminal that waits."""

import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.benchmarks.measuring import Figure
from tests.helpers import wait_until
from tests.page.browsing import Served, keys_of, served

ROUNDS = 9
_OPERATIONS = 10


class _Browser:
    """What a browser sends, without a browser."""

    def __init__(self, page: Served) -> None:
        own = urlsplit(page.address)
        assert own.port is not None
        self._port = own.port
        self._headers = {"Origin": f"http://{own.netloc}", **keys_of(page)}

    def ask(self, method: str, path: str, body: str = "") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        connection.request(method, path, body.encode(), self._headers)
        return connection.getresponse()


def page() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with served(folder) as found:
            started = time.perf_counter()
            browser = _Browser(found)
            browser.ask("GET", "/").read()
            first_ms = (time.perf_counter() - started) * 1000
            name = "the page's first view after its start"
            yield Figure(name, f"{first_ms:.0f} ms", "100 ms", first_ms, 100, "ms")
            browser.ask("POST", "/begin", "task=x").read()
            ours = _turns_on_the_page(found, browser)
            peer = _turns_in_a_pipe(found)
    name = f"a turn of {_OPERATIONS} operations on the page beyond one in a waiting terminal"
    more = ours - peer
    yield Figure(name, f"{ours:.0f} ms", f"{peer:.0f} ms", more, 50, "ms")


def _answer(session_id: str, sequence: int) -> str:
    made = (
        f'[CREATE_FILE path="{sequence}/{number}.txt"]\nx\n[/CREATE_FILE]\n' for number in range(_OPERATIONS)
    )
    return f'[REPLY session="{session_id}" sequence="{sequence}"]\n{"".join(made)}[END]\n'


def _turns_on_the_page(found: Served, browser: _Browser) -> float:
    """Return how long it takes from an answer to the view of the next request, in milliseconds."""
    session_id, taken = found.session_id, []
    events = browser.ask("GET", f"/s/{session_id}/events")
    _read_until(events, "Send request 1</h2>")
    for sequence in range(1, ROUNDS + 1):
        wait_until(lambda: _is_waited_for(found))
        started = time.perf_counter()
        browser.ask("POST", f"/s/{session_id}/answer", _answer(session_id, sequence)).read()
        _read_until(events, f"Send request {sequence + 1}</h2>")
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def _turns_in_a_pipe(found: Served) -> float:
    """Return how long it takes from a file in the inbox to the line about the next request."""
    session_id, taken = found.session_id, []
    found.end()
    words = [sys.executable, "-m", "codingagent", "--home", str(found.home), "resume", session_id]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as terminal:
        assert terminal.stdout is not None
        for sequence in range(ROUNDS + 1, 2 * ROUNDS + 1):
            wait_until(lambda: _is_waited_for(found))
            part = found.home / "inbox" / "answer.part"
            part.write_text(_answer(session_id, sequence))
            started = time.perf_counter()
            part.rename(part.with_suffix(".txt"))
            while not terminal.stdout.readline().startswith(f"Request {sequence + 1}"):
                pass
            taken.append((time.perf_counter() - started) * 1000)
        terminal.terminate()
    return statistics.median(taken)


def _is_waited_for(found: Served) -> bool:
    from codingagent.storage.lock import is_held

    return is_held(found.home / "sessions" / found.session_id / "waiting")


def _read_until(events: http.client.HTTPResponse, text: str) -> None:
    while text not in events.readline().decode():
        pass


ALL = (page,)
