"""A project and a tab of a browser for each test of the page."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.page.browsing import demo_folder

# A guard against waiting for ever, on a machine that does much else.
_LONG_MS = 60_000
expect.set_options(timeout=_LONG_MS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a repository; git knows nobody who could commit, wherever the tests run."""
    configuration = tmp_path / "gitconfig"
    configuration.write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = demo_folder(tmp_path)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Return a tab; what happens in it is shown where a test fails. It asks for nothing that it may not."""
    refused: list[str] = []

    def console(each: ConsoleMessage) -> None:
        print(each.type, each.text)  # noqa: T201
        # One script is asked for in order to be refused.
        if "Content Security Policy" in each.text and "htmx.min.js'" not in each.text:
            refused.append(each.text)

    may = ["clipboard-read", "clipboard-write"]
    with chromium.new_context(permissions=may) as context:
        context.set_default_timeout(_LONG_MS)
        found = context.new_page()
        found.on("console", console)
        found.on("pageerror", lambda each: print("fault", each))  # noqa: T201
        found.on("response", lambda each: print(each.status, each.url))  # noqa: T201
        yield found
    assert not refused
