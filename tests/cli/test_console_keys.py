"""The classic console of Windows, imitated: what is pasted comes as keys (design, the waiting terminal)."""

import os
import subprocess
import sys

import pytest
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from codingagent.cli.waiting_line import ConsolePastes, as_paste
from tests.helpers import REPOSITORY
from tests.rows import each_row


def keys(text: str) -> list[KeyPress]:
    """Return the keys that conhost sends for a text."""
    special = {"\r": Keys.ControlM, "\n": Keys.ControlJ, "\t": Keys.ControlI}
    return [KeyPress(special.get(character, character), character) for character in text]


@each_row("text", ["[DONE]\r/check rm\r", "\r/quit", "a\rb", "/undo\r", "\tx\r"])
def test_lines_that_come_at_once_are_a_paste_and_no_commands(text: str) -> None:
    [paste] = as_paste(keys(text))
    assert (paste.key, paste.data) == (Keys.BracketedPaste, text)


@each_row("text", ["", "a", "\r", "words", "\t"])
def test_words_and_a_lone_enter_are_typed(text: str) -> None:
    assert as_paste(keys(text)) == keys(text)


def test_a_marked_paste_stays_one() -> None:
    marked = [KeyPress(Keys.BracketedPaste, "[DONE]\r\n"), KeyPress(Keys.Left)]
    assert as_paste(marked) == marked


def test_a_paste_that_the_library_saw_is_no_less_than_the_rest_of_it() -> None:
    first = KeyPress(Keys.BracketedPaste, "[REPLY]\n")
    [paste] = as_paste([first, *keys("[END]\r")])
    assert paste.data == "[REPLY]\n[END]\r"


class Console:
    """A console with the pieces that it sends, each at its time; an empty one is a key let go."""

    def __init__(self, *pieces: tuple[float, list[KeyPress]]) -> None:
        self.pieces, self.now = list(pieces), 0.0
        self.pastes = ConsolePastes(self.read, self.comes, lambda: self.now)

    def read(self) -> list[KeyPress]:
        return self.pieces.pop(0)[1]

    def comes(self, left_s: float) -> bool:
        end_s = self.now + left_s
        is_there = bool(self.pieces) and self.pieces[0][0] <= end_s
        self.now = max(self.now, self.pieces[0][0]) if is_there else end_s
        return is_there

    def all_keys(self) -> list[KeyPress]:
        found: list[KeyPress] = []
        while self.pieces:
            self.now = max(self.now, self.pieces[0][0])
            found += self.pastes.keys()
        return found


def test_a_paste_in_pieces_is_one_whatever_the_first_was_taken_for() -> None:
    """prompt_toolkit takes a piece with a line end for a paste of its own."""
    first = [KeyPress(Keys.BracketedPaste, "[REPLY]\r[DONE]")]
    console = Console((0, first), (0.01, keys("x" * 1000)), (0.04, keys("[END]")), (0.07, keys("\r")))

    [paste] = console.all_keys()
    assert (paste.key, paste.data) == (Keys.BracketedPaste, "[REPLY]\r[DONE]" + "x" * 1000 + "[END]\r")


def test_an_enter_after_quick_typing_is_an_enter() -> None:
    """Keys that are let go come in between, and keep nothing together."""
    console = Console((0, keys("ok")), *[(n / 32, []) for n in range(1, 5)], (0.16, keys("\r")))
    assert console.all_keys() == keys("ok\r")


def test_the_last_line_end_of_a_paste_is_no_enter() -> None:
    console = Console((0, keys("a\rb")), (0.09, keys("\r")), (1, keys("\r")))
    assert [key.data for key in console.all_keys()] == ["a\rb", "\r"]


def test_a_character_that_is_sent_in_halves_is_one() -> None:
    halves = keys("\ud83d\ude00")
    assert Console((0, [*halves, *keys("\r")])).all_keys()[0].data == "\U0001f600\r"
    marked = [KeyPress(Keys.BracketedPaste, "\ud83d\ude00")]
    assert Console((0, marked)).all_keys()[0].data == "\U0001f600"


STREAMS = r"""
import ctypes, sys
from types import SimpleNamespace
from codingagent.cli import stdio
from codingagent.cli.terminal import Console
modes, newest = {5: 3}, int(sys.argv[1])
class Kernel:
    def GetConsoleMode(self, handle, found):
        found._obj.value = modes.get(handle.value, 0)
        return handle.value in modes
    def SetConsoleMode(self, handle, mode):
        modes[handle.value] = mode
        return mode <= newest
ctypes.WinDLL = lambda _: Kernel()
sys.modules["msvcrt"] = SimpleNamespace(get_osfhandle=lambda number: number)
sys.platform = "win32"
nul, console = (SimpleNamespace(isatty=lambda: True, fileno=lambda n=n: n) for n in (4, 5))
modes[1] = 3
print(stdio.is_terminal(nul), stdio.is_terminal(console), flush=True)
Console().page("# Head\n**words**")
print(modes[1])
"""


@pytest.mark.parametrize("obeys", [True, False])
def test_only_a_console_is_a_terminal_and_one_that_obeys_no_codes_gets_none(obeys: bool) -> None:
    """`nul` is a character device, too: a session with its output there ended in a traceback."""
    words = [sys.executable, "-c", STREAMS, "7" if obeys else "3"]
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": ""}
    done = subprocess.run(words, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("False True\n"), done.stderr
    assert ("\x1b[1m" in done.stdout) is obeys
    assert done.stdout.endswith("\n7\n")


CONSOLE = r"""
import ctypes, importlib, sys
from types import SimpleNamespace
from codingagent.cli import waiting_line
from prompt_toolkit.input import vt100_parser
from prompt_toolkit.win32_types import INPUT_RECORD
is_vt, sent, fed = sys.argv[1] == "vt", [], []
class Kernel:
    def GetStdHandle(self, _): return 3
    def GetConsoleMode(self, *_): return 1
    def SetConsoleMode(self, *_): return is_vt
    def WaitForMultipleObjects(self, *_): return 0 if sent else 258
    def ReadConsoleInputW(self, _, records, most, read):
        count = read.contents.value = min(most, len(sent))
        for record, (is_down, code, char) in zip(records.contents, sent[:count]):
            key, record.EventType = record.Event.KeyEvent, 1
            key.KeyDown, key.VirtualKeyCode, key.uChar.UnicodeChar = is_down, code, char
        del sent[:count]
ctypes.windll = SimpleNamespace(kernel32=Kernel())
sys.modules["msvcrt"] = SimpleNamespace()
sys.stdin = SimpleNamespace(isatty=lambda: True)
sys.platform = "win32"
importlib.reload(waiting_line)
feed = vt100_parser.Vt100Parser.feed
vt100_parser.Vt100Parser.feed = lambda parser, text: fed.append(text) or feed(parser, text)
for char in ("\x1b[200~a \u2014 b\r\x1b[201~" if is_vt else "a \u2014 b\r"):
    if char == "\u2014":  # SynthesizeNumpadEvents of conhost
        keys = [(1, 18, "\0"), (1, 0x60, "\0"), (0, 0x60, "\0"), (0, 18, char)]
    else:
        keys = [(1, 0, char), (0, 0, char), (0, 18, "\0")]
    sent += keys
keys = waiting_line.LineKeys(sys.stdin)
[found] = keys.read_keys()
print(found.key.value, ascii(found.data), len(fed))
"""


@pytest.mark.parametrize(("kind", "feeds"), [("classic", 0), ("vt", 3)])
def test_what_the_keyboard_has_no_key_for_is_part_of_a_paste(kind: str, feeds: int) -> None:
    """The library lost it. Of a marked paste it took each character by itself, which costs its square."""
    words = [sys.executable, "-c", CONSOLE, kind]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == f"<bracketed-paste> 'a \\u2014 b\\r' {feeds}\n", done.stderr
