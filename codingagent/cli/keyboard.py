"""Read answers from a terminal: only what a person types after a question counts, never a paste.

The terminal edits and shows the line that answers, as it does for any program. Between two questions it
delivers each key at once, so that what is there can be looked at. Three rules decide:

- `discard` runs before a prompt appears. It reads until nothing more comes: a flush by the system would
  miss input that is still on its way, and the second half of an earlier line would become an answer.
- A paste is never an answer. Most terminals mark a paste on request ("bracketed paste"); for the others,
  several lines at once are taken for one.
- A line counts only if nothing else came with its Enter.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

from codingagent.model.patterns import lazy_pattern

# Keys, or pieces of a paste, that follow one another this quickly came at once.
TOGETHER_S = 0.05
# A person pauses at least this long between earlier typing and an answer.
_QUIET_S = 0.5
# A paste that never ends must not lock the person out.
_PASTE_END_S = 3.0
LOOK_ELSEWHERE_S = 0.2
_CHUNK_BYTES = 4096


class PasteError(Exception):
    """The input was pasted, or had several lines at once; all of it was discarded."""


def is_ours(terminal: TextIO) -> bool:
    """Return whether this process gets what is typed: a background job of a shell does not."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # without job control: another session's terminal
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return True


if sys.platform == "win32":
    import msvcrt

    class Keyboard(contextlib.AbstractContextManager["Keyboard"]):
        """The Windows console; it marks no pastes and can't be waited for together with other events."""

        last_codes = ""

        def __init__(self, _terminal: TextIO, _screen: TextIO) -> None:
            pass

        def __exit__(self, *fault: object) -> None:
            pass

        def mark_pastes(self) -> None:
            pass

        def has_key(self) -> bool:
            return msvcrt.kbhit()

        def discard(self, *, settles: bool = False) -> bool:
            time.sleep(_QUIET_S if settles else 0)
            found = False
            while msvcrt.kbhit():
                msvcrt.getwch()
                found = True
            return found

        def line(self, prompt: Callable[[], None], _elsewhere: Callable[[], bool]) -> str | None:
            prompt()
            line = input()
            time.sleep(TOGETHER_S)
            if self.discard():
                self.discard(settles=True)
                raise PasteError
            return line

else:
    import select
    import signal
    import termios

    # xterm, control sequences: bracketed paste mode.
    _MARK_PASTES, _DONT_MARK_PASTES = "\x1b[?2004h", "\x1b[?2004l"
    # A sign of life hides the cursor; a signal may end it.
    _SHOW_CURSOR = "\x1b[?25h"
    _PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"

    # ECMA-48: sequences that arrows and other keys send; ignored.
    _ESCAPE = lazy_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")

    # Signals that would leave the terminal in this mode.
    _LEAVING = (signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP)

    class Keyboard:
        """A terminal during a question; leaving it, even by Ctrl-C, restores its mode."""

        def __init__(self, terminal: TextIO, screen: TextIO) -> None:
            self._terminal = terminal.fileno()
            self._encoding = terminal.encoding or "utf-8"
            self._screen = screen
            self._before: list[Any] = []
            self._edits = self._was_away = False
            self.last_codes = ""
            """What the terminal still gets if a signal ends this process."""
            self._signals = [n for n in _LEAVING if signal.getsignal(n) is signal.SIG_DFL]

        def __enter__(self) -> Self:
            try:
                for number in self._signals:
                    signal.signal(number, self._step_aside)
                self._take()
            except BaseException:
                self.__exit__()
                raise
            return self

        def __exit__(self, *fault: object) -> None:
            self._give_back()
            for number in self._signals:
                signal.signal(number, signal.SIG_DFL)

        def mark_pastes(self) -> None:
            """Have the terminal mark pastes again, after another program used it."""
            self._switch(_MARK_PASTES)

        def has_key(self, patience_s: float = 0) -> bool:
            """Return whether a key came, or comes within a time; it stays to be read."""
            return bool(select.select([self._terminal], [], [], patience_s)[0])

        def discard(self, data: bytes = b"", *, settles: bool = False) -> bool:
            """Drop input until no more comes after `data`, or until a pause; return if any came."""
            found = is_within = False
            patience_s = _QUIET_S if settles else 0.0
            while True:
                begin, end = data.rfind(_PASTE), data.rfind(_PASTE_END)
                is_within = begin > end if begin != end else is_within
                if not self.has_key(_PASTE_END_S if is_within else patience_s):
                    return found
                # A mark may come in two pieces.
                data = data[1 - len(_PASTE) :] + self._read()
                found, patience_s = True, _QUIET_S

        def line(self, prompt: Callable[[], None], elsewhere: Callable[[], bool]) -> str | None:
            """Return the line typed after a prompt; None if `elsewhere` comes true first.

            `prompt` shows the prompt, also again after Ctrl-Z; `elsewhere` is polled a few times a second.
            EOFError at the end of input, PasteError if the line was pasted, or more came with it.
            """
            data = b""
            self._edit(True)
            try:
                prompt()
                while b"\n" not in data and _PASTE not in data:
                    if elsewhere():
                        self._forget()
                        return None
                    if self._was_away:
                        self._was_away, data = False, b""
                        prompt()
                    if self.has_key(LOOK_ELSEWHERE_S):
                        data += self._read()
            finally:
                self._edit(False)
            while _PASTE not in data and len(data) <= _CHUNK_BYTES and self.has_key(TOGETHER_S):
                data += self._read()
            text = data.decode(self._encoding, "replace").replace("\r", "\n")
            typed, *more = _ESCAPE.sub("", text).split("\n")
            if any(more) or _PASTE in data:
                self._screen.write("\n" * (not more))
                self.discard(data, settles=True)
                raise PasteError
            return "".join(filter(str.isprintable, typed))

        def _read(self) -> bytes:
            try:
                data = os.read(self._terminal, _CHUNK_BYTES)
            except OSError:  # Linux raises this for a terminal that is gone
                data = b""
            if not data:
                raise EOFError
            return data

        def _switch(self, code: str) -> None:
            """Write a control sequence past the buffer: a signal may have interrupted a write."""
            os.write(self._screen.fileno(), code.encode())

        def _take(self) -> None:
            """Switch the terminal to single keys and marked pastes."""
            self._before = termios.tcgetattr(self._terminal)
            self._edit(self._edits)
            self._switch(_MARK_PASTES)

        def _edit(self, edits: bool) -> None:
            """Have the terminal edit and show a line, or deliver each key; input that waits is kept."""
            self._edits = edits
            with contextlib.suppress(termios.error):  # the terminal is gone: a read tells
                modes = termios.tcgetattr(self._terminal)
                modes[0] |= termios.ICRNL
                if edits:
                    modes[3] |= termios.ECHO | termios.ICANON
                    modes[6][termios.VEOL] = b"\x1b"  # the mark of a paste is not kept until Enter
                else:
                    modes[3] &= ~(termios.ECHO | termios.ICANON)
                    modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
                termios.tcsetattr(self._terminal, termios.TCSANOW, modes)

        def _forget(self) -> None:
            """Drop a line that was begun: it is not shown again."""
            with contextlib.suppress(termios.error):
                termios.tcflush(self._terminal, termios.TCIFLUSH)

        def _give_back(self) -> None:
            if not self._before:
                return
            with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
                self._switch(_DONT_MARK_PASTES + _SHOW_CURSOR)
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)
            self._before = []

        def _step_aside(self, number: int, _: object) -> None:
            """Restore the terminal before a signal takes effect; go on if it only stopped this process."""
            self._give_back()
            if number != signal.SIGTSTP:
                with contextlib.suppress(OSError):  # the terminal may be gone
                    self._switch(self.last_codes)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self._step_aside)
            self._take()
            self._forget()
            self._was_away = True
