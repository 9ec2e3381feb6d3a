"""Drive Debian's firefox-esr by Marionette, its own protocol: JSON with its length before it."""

import contextlib
import itertools
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.browsing import need_browser

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
# Nothing is asked outside, and nothing is shown but the page.
_ALONE = {
    "marionette.port": 0,
    "browser.startup.page": 0,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.normandy.enabled": False,
    "browser.safebrowsing.update.enabled": False,
    "extensions.update.enabled": False,
    "services.settings.server": "http://127.0.0.1:1/",
}
_LONG_S = 60
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CONTROL = "\ue009"
_FIELD = """const field = Object.assign(document.createElement("textarea"), {id: "field"});
    field.onpaste = (event) => event.stopPropagation();
    document.body.append(field); field.focus();"""


class UnloadedError(AssertionError):
    """The page went away while its script ran."""


class Firefox:
    """One tab of a Firefox that runs without a screen."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _LONG_S)
        self._stream = self._socket.makefile("rb")
        self._numbers = itertools.count(1)
        self._read()
        self.ask("WebDriver:NewSession", timeouts={"script": _LONG_S * 1000})

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, command: str, **parameters: object) -> object:
        """Send one command of WebDriver; return its value, or fail with Firefox's words."""
        text = json.dumps([0, next(self._numbers), command, parameters])
        self._socket.sendall(f"{len(text.encode())}:{text}".encode())
        _, _, fault, result = self._read()
        if isinstance(fault, dict):
            kind = UnloadedError if fault["message"] == "Document was unloaded" else AssertionError
            raise kind(f"{command}: {fault['error']}: {fault['message']}")
        return result.get("value", result) if isinstance(result, dict) else result

    def _read(self) -> list[object]:
        digits = b""
        while not digits.endswith(b":"):
            digits += self._stream.read(1)
        found: list[object] = json.loads(self._stream.read(int(digits[:-1])))
        return found

    def open(self, address: str) -> None:
        self.ask("WebDriver:Navigate", url=address)

    def run(self, script: str, *arguments: object) -> object:
        """Return what a script of the page returns; a promise is waited for."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=arguments)

    def until(self, expression: str) -> None:
        """Wait until an expression of the page holds."""
        # The page looks for half a second itself; one that goes away meanwhile is followed by another.
        waiting = f"""return new Promise((done) => {{
            const until = performance.now() + 500;
            const look = () => {{
                const found = Boolean({expression});
                if (found || performance.now() > until) done(found); else setTimeout(look, 10);
            }};
            look();
        }})"""
        late = time.monotonic() + _LONG_S
        while time.monotonic() < late:
            with contextlib.suppress(UnloadedError):
                if self.run(waiting):
                    return
        pytest.fail(f"never: {expression}; the page shows\n{self.run('return document.body.innerText')}")

    def until_shown(self, text: str) -> None:
        self.until(f"document.body?.innerText.includes({json.dumps(text)})")

    def element(self, path: str) -> str:
        """Wait for the element of an XPath; return Firefox's name for it."""
        find = f"document.evaluate({json.dumps(path)}, document, null, 9).singleNodeValue"
        self.until(f"{find}?.checkVisibility()")
        found = self.ask("WebDriver:FindElement", using="xpath", value=path)
        assert isinstance(found, dict)
        return str(found[_ELEMENT])

    def click(self, path: str) -> None:
        self.ask("WebDriver:ElementClick", id=self.element(path))

    def press(self, name: str) -> None:
        """Click a button by its words."""
        self.click(f"//button[contains(normalize-space(), {json.dumps(name)})]")

    def fill(self, path: str, text: str) -> None:
        self.ask("WebDriver:ElementSendKeys", id=self.element(path), text=text)

    def keys(self, *held_then_key: str) -> None:
        """Press keys together, wherever the focus is."""
        down = [{"type": "keyDown", "value": each} for each in held_then_key]
        up = [{"type": "keyUp", "value": each} for each in reversed(held_then_key)]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": down + up}])

    def copy_elsewhere(self, text: str, place: Path) -> None:
        """Go to a tab of another origin, as a chat's is, copy a text there, by Ctrl-C, and come back."""
        place.write_text('<!doctype html><meta charset="utf-8"><textarea id="field"></textarea>', "utf-8")
        here = self.ask("WebDriver:GetWindowHandle")
        made = self.ask("WebDriver:NewWindow", type="tab", focus=True)
        assert isinstance(made, dict)
        self.ask("WebDriver:SwitchToWindow", handle=made["handle"])
        self.open(place.as_uri())
        self.run("field.value = arguments[0]; field.focus(); field.select()", text)
        self.keys(CONTROL, "c")
        self.ask("WebDriver:CloseWindow")
        self.ask("WebDriver:SwitchToWindow", handle=here)

    def pasted(self) -> object:
        """Return the text of the clipboard, by Ctrl-V."""
        self.run(_FIELD)
        self.keys(CONTROL, "v")
        return self.run("const field = document.getElementById('field'); field.remove(); return field.value")


@contextlib.contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    program = need_browser(FIREFOX, "firefox-esr")
    profile.mkdir()
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _ALONE.items())
    (profile / "user.js").write_text("".join(lines))
    words = [program, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            tab = Firefox(_port(profile / "MarionetteActivePort", process))
            try:
                yield tab
            finally:
                tab.close()
        finally:
            process.kill()


def _port(written: Path, process: "subprocess.Popen[bytes]") -> int:
    """Wait until Firefox has written where it listens."""
    until = time.monotonic() + _LONG_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            return int(written.read_text("ascii"))
        time.sleep(0.02)
    pytest.fail("Firefox did not start")
