"""Drive the page in a real browser, as a person does: Debian's chromium, by Playwright."""

import contextlib
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from codingagent import demo
from tests import warm

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)

# The browser asks nobody outside for anything.
_ALONE = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
RECORDED = Path(demo.__path__[0])


def need_browser(program: str | None, package: str) -> str:
    """Return a browser; skip the tests where there is none, unless it is required."""
    if program is None:
        if os.environ.get("BROWSER_TESTS") == "require":
            pytest.fail(f"no {package}: apt install {package}")
        pytest.skip(f"no {package} to show the page in (apt install {package})")
    return program


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    program = need_browser(CHROMIUM, "chromium")
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        yield _launched(playwright, program, [*_ALONE, *as_root])


def _launched(playwright: Playwright, program: str, arguments: list[str]) -> Browser:
    return playwright.chromium.launch(executable_path=program, args=arguments)


class Served:
    """A page that is served in a folder, and the home of its sessions."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self._options = folder, options
        self.home = folder / ".codingagent"
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        words = ("page", "--here", "--no-open", *self._options)
        self._process = warm.start_command(*words, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().rpartition(" ")[2].strip()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def end(self) -> int:
        """Press Ctrl-C, and return its exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(2)
            self._process.communicate()
        return self._process.returncode

    @property
    def session_id(self) -> str:
        (found,) = [each.name for each in (self.home / "sessions").iterdir() if len(each.name) == 8]
        return found

    def reply(self, number: int) -> str:
        """Return a recorded answer of the demo, for this session."""
        text = (RECORDED / "replies" / f"{number}.txt").read_text("utf-8")
        return text.replace("00000000", self.session_id)


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    found = Served(folder, *options)
    found.start()
    try:
        yield found
    finally:
        found.end()


def keys_of(page: Served) -> dict[str, str]:
    """Return the headers of a tab that came by the page's address: its cookie, and its own key."""
    with urllib.request.urlopen(page.address) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        (keys,) = re.findall(r'name="keys" content="(\S+) \S+"', answer.read().decode())
    return {"Cookie": cookie, "Codingagent-Key": keys}


def demo_folder(place: Path) -> Path:
    """Return a project as the demo has it."""
    folder = place / "project"
    shutil.copytree(RECORDED / "workspace", folder)
    return folder


def paste(page: Page, text: str) -> None:
    """Put a text on the clipboard, and click Paste."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.get_by_role("button", name="Paste the answer").click()


TASK = (RECORDED / "task.txt").read_text("utf-8").strip()


def begin(page: Page, served_page: Served, task: str = TASK, check: str = "") -> None:
    """Begin a session, and wait for its first request."""
    page.goto(served_page.address)
    page.get_by_label("Your task, or your question").fill(task)
    page.get_by_label("The command that checks").fill(check)
    page.get_by_role("button", name="Write the first request").click()
    expect(page.get_by_role("heading", name="Send request 1")).to_be_visible()


def answer(served_page: Served, sequence: int, body: str) -> str:
    head = f'[REPLY session="{served_page.session_id}" sequence="{sequence}"]'
    return f"{head}\n{body}\n[END]\n"


def drop(page: Page, name: str, data: bytes) -> None:
    page.evaluate(
        """([data, name]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(data)], name));
            document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true}));
        }""",
        [list(data), name],
    )
