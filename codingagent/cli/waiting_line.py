"""The line at which the person types or pastes while a request waits. Only this module uses prompt_toolkit.

The line is there only between turns: when something is due it disappears, what was typed is kept, and the
terminal belongs to the output again. So output needs no care for it, and a question is never asked beside it.

An Enter counts only if it came alone, or with a single line before it. What else comes together with one is
a paste, also where the terminal marks none. A paste is returned as such; a few pasted words become part of
the line.
"""

import asyncio
import codecs
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TextIO

from msgspec import Struct
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter, WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession

from codingagent.cli import layout
from codingagent.cli.keyboard import TOGETHER_S
from codingagent.cli.task_input import edited
from codingagent.model.encoding import typed_text
from codingagent.model.patterns import lazy_pattern

_POLL_S = 0.1
# A paste that no marks enclose may come with pauses.
_PAUSE_S = 1.0
# Nobody types this: input that comes with it belongs to an answer, however late.
_ANSWER = "[REPLY"
# A paste that never ends must not lock the person out.
_PASTE_END_S = 10.0
_CHUNK_BYTES = 2**16
# A longer text is no part of a line.
_WORDS_LIMIT = 500
# xterm, control sequences: bracketed paste mode.
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"
_ALT_ENTER = ("\x1b\r", "\x1b\n")
_ENTER = lazy_pattern(r"[\r\n]")
_LINE = lazy_pattern(rf"[^\r\n\[{{][^\r\n]{{0,{_WORDS_LIMIT - 1}}}(?:\r|\n|\r\n)")
_LONE_CR = lazy_pattern(r"\r(?!\n)")
# Keys that do more than add themselves to the line; a tab is common in a paste.
_EDITING = lazy_pattern(r"[\x00-\x08\x0a-\x1f\x7f]")
# No keyboard sends it: it takes the given text back out of the line.
_TAKE_BACK = Keys.F24
# ECMA-48: sequences that arrows and other keys send.
_ESCAPE = lazy_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
# wincon.h, winuser.h: a record of a key, and the key Alt.
_KEY_EVENT, _ALT = 1, 18
_PROMPT = "> "
_NAME_FILES = ("/attach", "/leave", "/undo")
_HINTS = ("Paste the answer, type a message, or /help", "Paste the answer, or /help", "Paste, or /help")
_HINTS_AFTER_DONE = ("Type what to do next, or /quit", "Type, or /quit")


class LineEntry(Struct, frozen=True):
    """What the person entered: a line (empty: Enter alone), maybe with pasted words, or a longer paste."""

    text: str
    is_line: bool
    has_paste: bool


class LineCompleter(Completer):
    """Complete a command, and behind one that names files a path."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = WordCompleter(list(commands), sentence=True, meta_dict=dict(commands))
        self._paths = PathCompleter()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        name, space, _ = document.text_before_cursor.partition(" ")
        if not space or name not in _NAME_FILES:
            return self._commands.get_completions(document, complete_event)
        path = Document(document.get_word_before_cursor(WORD=True))
        return self._paths.get_completions(path, complete_event)


class WaitingLine:
    """A line with history, completion, and a draft that outlives interruptions."""

    is_done = False
    """The task is done: no answer is awaited."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._has_paste = self._is_edited = False
        input_, output = LineKeys(sys.stdin), create_output()
        self._is_mid_paste: Callable[[], bool] = getattr(input_, "is_mid_paste", bool)
        self._forget_paste: Callable[[], object] = getattr(input_, "forget_paste", bool)
        if isinstance(output, Vt100_Output):
            # The terminal's reply to the question where the cursor is could come when nobody reads it.
            output.enable_cpr = False
        self._session: PromptSession[LineEntry | None] = PromptSession(
            _PROMPT,
            multiline=True,
            prompt_continuation=" " * len(_PROMPT),
            completer=LineCompleter(commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            placeholder=self._hint,
            key_bindings=self._keys(),
            enable_suspend=True,
            erase_when_done=True,
            input=input_,
            output=output,
        )
        # Several keys enter a line; the library's own handler would return a text.
        buffer = self._session.default_buffer
        buffer.accept_handler = self._enter
        buffer.on_text_changed += self._forget_words

    def _hint(self) -> AnyFormattedText:
        width = layout.look_of(sys.stdout).width - len(_PROMPT) - 1
        hints = _HINTS_AFTER_DONE if self.is_done else _HINTS
        fitting = next((hint for hint in hints if len(hint) <= width), "")
        return [("fg:ansibrightblack", fitting)]

    def read(self, is_due: Callable[[], bool]) -> LineEntry | None:
        """Return what was entered; None when something is due.

        KeyboardInterrupt at Ctrl-C, UsageError if the editor can't be used (the draft stays), EOFError at
        Ctrl-D on an empty line, or if the terminal is gone.
        """
        app, buffer = self._session.app, self._session.default_buffer

        async def poll() -> None:
            fault = None
            try:
                # A question in the middle of a paste would take the rest of it.
                while self._is_mid_paste() or not is_due():  # noqa: ASYNC110  # no event tells
                    await asyncio.sleep(_POLL_S)
                self._forget_paste()
            except Exception as found:  # noqa: BLE001  # raised again by `prompt`
                fault = found
            if app.future is not None and not app.future.done():
                app.exit(exception=fault) if fault else app.exit()

        def begin() -> None:
            app.create_background_task(poll())

        entry = self._session.prompt(default=buffer.document, pre_run=begin)
        if self._is_edited:
            self._is_edited = False
            words = typed_text(edited("words.txt", buffer.text), "replace").strip()
            words = words.replace("\r\n", "\n")
            buffer.reset(Document(words, len(words)))
        if entry is not None and entry.is_line:
            buffer.reset(append_to_history=True)
            buffer.document = Document()
            self._has_paste = False
        return entry

    def _enter(self, buffer: Buffer) -> bool:
        if buffer.text.strip() or not (buffer.text or self.is_done):
            entry = LineEntry(buffer.text, is_line=True, has_paste=self._has_paste)
            self._session.app.exit(result=entry)
        return True

    def _forget_words(self, buffer: Buffer) -> None:
        self._has_paste = self._has_paste and bool(buffer.text)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        # In a search, Enter ends the search.
        @keys.add("enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add("c-x", "c-e")
        def _(event: KeyPressEvent) -> None:
            self._is_edited = True
            event.app.exit()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(_TAKE_BACK)
        def _(event: KeyPressEvent) -> None:
            begun, buffer = _without_controls(event.data), event.current_buffer
            if buffer.document.text_before_cursor.endswith(begun):
                buffer.delete_before_cursor(len(begun))

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            # Terminals send its line ends as CR. What came before the line was there has LF already.
            text = _LONE_CR.sub("\n", event.data)
            words = text.strip()
            if not words:
                return
            if len(words) > _WORDS_LIMIT or "\n" in words or words.startswith(("[", "{")):
                event.app.exit(result=LineEntry(text, is_line=False, has_paste=True))
                return
            self._has_paste = True
            event.current_buffer.insert_text(_without_controls(words))

        return keys


def _without_controls(text: str) -> str:
    return "".join(filter(str.isprintable, _ESCAPE.sub("", text)))


def as_paste(keys: list[KeyPress]) -> list[KeyPress]:
    """Return keys that came at once, with an Enter, as one paste: the console of Windows marks none."""
    parts = (Keys.ControlM, Keys.ControlJ, Keys.ControlI, Keys.BracketedPaste)
    typed = [key for key in keys if len(key.key) == 1 or key.key in parts]
    if len(typed) < 2 or not any(_ENTER.search(key.data) for key in typed):
        return keys
    return [KeyPress(Keys.BracketedPaste, "".join(key.data for key in typed))]


class ConsolePastes:
    """Gather what a console of Windows sends: of a paste about a thousand characters at a time.

    `read` returns what is there, which may be nothing; `comes` waits so many seconds for more.
    """

    def __init__(
        self,
        read: Callable[[], list[KeyPress]],
        comes: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._comes, self._clock = read, comes, clock
        self._burst_at = -TOGETHER_S

    def keys(self) -> list[KeyPress]:
        """Return the keys that came, with each paste in one piece."""
        keys, now = self._read(), self._clock()
        # The library itself may take the first piece for a paste.
        if len(keys) < 2 and not any(key.key == Keys.BracketedPaste for key in keys):
            # The rest of a paste whose last line end comes by itself is no Enter.
            is_rest = now - self._burst_at <= TOGETHER_S
            return [] if is_rest and [key.key for key in keys] == [Keys.ControlM] else keys
        until = now + TOGETHER_S
        while (left := until - self._clock()) > 0 and self._comes(left):
            # A key that is let go comes, too, and is nothing.
            if more := self._read():
                keys += more
                until = self._clock() + TOGETHER_S
        self._burst_at = self._clock()
        # An emoji comes as two halves.
        halves = [(key.key, key.data.encode("utf-16", "surrogatepass")) for key in as_paste(keys)]
        return [KeyPress(key, data.decode("utf-16", "surrogatepass")) for key, data in halves]


if sys.platform == "win32":
    from prompt_toolkit.eventloop.win32 import wait_for_handles
    from prompt_toolkit.input.win32 import Vt100ConsoleInputReader, Win32Input

    class LineKeys(Win32Input):
        """The keys of a console of Windows, with each paste in one piece."""

        def __init__(self, stdin: TextIO) -> None:
            super().__init__(stdin)
            reader = self.console_input_reader
            library: Any = reader._get_keys  # noqa: SLF001  # nothing else sees what the console sent

            def get_keys(read: Any, records: Any) -> Iterable[Any]:
                # What the keyboard has no key for comes as an Alt code, which ends with Alt let go. The
                # library reads only keys that are pressed.
                for record in records[: read.value]:
                    key = record.Event.KeyEvent
                    if record.EventType == _KEY_EVENT and key.VirtualKeyCode == _ALT:
                        key.KeyDown = key.KeyDown or key.uChar.UnicodeChar != "\0"
                keys = library(read, records)
                # The library looks for the end of a paste in all of it, for each text that it is given.
                return ["".join(keys)] if isinstance(reader, Vt100ConsoleInputReader) else keys

            vars(reader)["_get_keys"] = get_keys
            self._pastes = ConsolePastes(
                super().read_keys, lambda left_s: wait_for_handles([self.handle], timeout=int(left_s * 1000))
            )

        def read_keys(self) -> list[KeyPress]:
            return self._pastes.keys()

else:
    import select

    from prompt_toolkit.input.vt100 import Vt100Input

    class LineKeys(Vt100Input):
        """A terminal's keys, with each paste in one piece."""

        def __init__(self, stdin: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
            super().__init__(stdin)
            self._clock = clock
            self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
            self._held = ""
            """The end of the input, which may be the beginning of a mark."""
            self._paste: list[str] | None = None
            """The pieces of a paste until its end mark comes."""
            self._paste_at = 0.0
            self._is_gone = False
            self._run = ""
            """What came just now without an Enter: words that are typed, or the beginning of a paste."""
            self._run_at = 0.0
            self._burst_at = -TOGETHER_S
            """When a paste ended, or several characters came at once, as from no keyboard."""

        @property
        def closed(self) -> bool:
            return self._is_gone

        def is_mid_paste(self) -> bool:
            """Return whether more of a paste is probably to come."""
            return self._paste is not None and self._clock() - self._paste_at < _PASTE_END_S

        def forget_paste(self) -> None:
            """Take what comes for typed, whatever mark began before."""
            if self._paste is not None:
                self._paste, self._held = None, ""

        def read_keys(self) -> list[KeyPress]:
            new = self._read()
            now = self._paste_at = self._clock()
            if new == "\x03":
                # An end mark that never comes must not lock the person out.
                self.forget_paste()
            text, self._held = self._held + new, ""
            is_alone = text in ("\r", "\n", *_ALT_ENTER) and _ANSWER not in self._run
            # The rest of a paste whose last line end comes by itself is no Enter.
            is_alone = is_alone and now - self._burst_at > TOGETHER_S
            is_burst = self._paste is not None or _PASTE in text or len(_without_controls(text)) > 1
            found: list[KeyPress] = []
            while text:
                text = self._take(text, found, is_alone=is_alone)
            if is_burst:
                self._burst_at = self._clock()
            return found

        def flush_keys(self) -> list[KeyPress]:
            if self._paste is None:
                self.vt100_parser.feed(self._held)
                self._held = ""
            return super().flush_keys()

        def _take(self, text: str, found: list[KeyPress], *, is_alone: bool) -> str:
            """Add the keys or the paste at the beginning of a text; return the rest of it."""
            if self._paste is not None:
                piece, mark, rest = text.partition(_PASTE_END)
                if mark:
                    found.append(KeyPress(Keys.BracketedPaste, "".join([*self._paste, piece])))
                    self._paste = None
                    return rest
                end = max(len(text) - len(_PASTE_END) + 1, 0)
                self._paste.append(text[:end])
                self._held = text[end:]
                return ""
            typed, mark, rest = text.partition(_PASTE)
            typed = typed.replace(_PASTE_END, "")  # of a paste with a mark in it
            if mark:
                self._paste = []
            is_paste = not is_alone and (_ENTER.search(typed) or len(typed) > _WORDS_LIMIT)
            if is_paste:
                if not mark:
                    typed, rest = self._burst(self._begun(typed, found) + typed)
                if _without_controls(typed).strip():
                    found.append(KeyPress(Keys.BracketedPaste, typed))
                # A line that a program types comes so; it counts as pasted, so a command is asked about.
                if not mark and _LINE.fullmatch(typed):
                    found.append(KeyPress(Keys.ControlM, "\r"))
                self._run = ""
                return rest
            if not mark:
                begun = next(n for n in range(len(_PASTE) - 1, -1, -1) if typed.endswith(_PASTE[:n]))
                typed, self._held = typed[: len(typed) - begun], typed[len(typed) - begun :]
            self.vt100_parser.feed(typed)
            found += self._buffer
            self._buffer.clear()
            now = self._clock()
            if now - self._run_at > TOGETHER_S and _ANSWER not in self._run:
                self._run = ""
            self._run_at = now
            self._run = "" if _EDITING.search(typed) else self._run + typed
            return rest

        def _begun(self, text: str, found: list[KeyPress]) -> str:
            """Return the beginning of a paste that was taken for typed words; take it out of the line."""
            is_recent = len(self._run) > 1 and self._clock() - self._run_at <= _PAUSE_S
            if text.startswith(_ANSWER) or not (is_recent or _ANSWER in self._run):
                return ""
            found.append(KeyPress(_TAKE_BACK, self._run))
            return self._run

        def _burst(self, text: str) -> tuple[str, str]:
            """Read what comes together with a text; return all of it, and what follows from a mark on."""
            pieces = [text]
            while True:
                is_cut = _ANSWER in text and "[END]" not in "".join(pieces[-2:])
                patience_s = _PAUSE_S if is_cut else TOGETHER_S
                if not select.select([self._fileno], [], [], patience_s)[0]:
                    return "".join(pieces), ""
                if self._is_gone or _PASTE in (piece := self._read()):
                    return "".join(pieces), "" if self._is_gone else piece
                pieces.append(piece)

        def _read(self) -> str:
            data = b""
            with suppress(OSError):  # Linux raises this for a terminal that is gone
                data = os.read(self._fileno, _CHUNK_BYTES)
            self._is_gone = not data
            return self._decoder.decode(data)
