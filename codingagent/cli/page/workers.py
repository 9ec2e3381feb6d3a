"""Run codingagent's own commands for the page: one that waits for answers, and those that are clicked.

The page executes nothing itself. What it does is a command in another process, so that a killed page or
browser leaves what a killed terminal leaves, and `codingagent resume` continues. Such a process ends when its
standard input does: with the page, or when the person stops it.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codingagent.errors import UsageError
from codingagent.model.patterns import lazy_pattern, sections, table
from codingagent.model.session_state import Session

# A record may hold the text of a file.
_LINE_BYTES = 2**27
# The last lines of a command's output that are shown while it runs.
_OUTPUT_CHARACTERS = 20_000
# Each file that is chosen for a request has one.
_REMARKS = 100
# What is shown elsewhere: a line of the choice, and what heads records of other processes.
_SHOWN = lazy_pattern(r" *\d+  |in another terminal:$")
# Time to end what a command started.
_STOP_S = 10.0

# Those of actions that need no more than a field each; S is the session.
_WORDS = table(sections(__file__)["command lines"])
_PREFIX = "codingagent: "
# Exit statuses: done, waits for approval, interrupted.
_EXPECTED = (0, 3, 130)


class Done(Struct):
    """What a command printed: its JSON objects, and what it says to the person on standard error."""

    status: int
    objects: list[dict[str, Any]]
    errors: str

    @property
    def fault(self) -> str:
        """Why it failed, in one line; empty if it did not."""
        if self.status in _EXPECTED:
            return ""
        return self.errors.strip().rpartition("\n")[2] or f"ended with status {self.status}"

    @property
    def remarks(self) -> list[str]:
        """What it said: remarks, lines about what was left out, and what programs that it started printed."""
        told = [each["text"] for each in self.objects if each.get("kind") in ("remark", "line")]
        lines = [line for line in self.errors.split("\n") if line]
        return [e for e in told if not _SHOWN.match(e)] + (lines[:-1] if self.fault else lines)


class Worker:
    """The processes that work on one session, or on a home, and what they show at the moment.

    Args:
        home: the words of the command line that name the home.
        changed: called when there is something new to see.
    """

    def __init__(self, home: Sequence[str], changed: Callable[[], None]) -> None:
        self.home, self._changed = [*home], changed
        self._running: tuple[asyncio.subprocess.Process, asyncio.Task[None]] | None = None
        self._gate, self.acts = asyncio.Lock(), asyncio.Lock()
        self._waits = asyncio.Event()
        self.session_id = ""
        """The session whose request waits, once it does."""
        self.output = ""
        """The end of what the running command printed."""
        self.written = 0
        """How many characters it printed, and earlier ones."""
        self.version = 0
        """Counts what changed of the rest."""
        self.remarks: deque[str] = deque(maxlen=_REMARKS)
        self.fault = ""
        self.is_stopped = False
        """The person stopped it: it does not go on by itself."""

    @property
    def is_running(self) -> bool:
        return self._running is not None

    async def begin(self, *words: str, instead: bool = False, data: bytes | None = None) -> None:
        """Start the session's command if none works, or `instead` of the one that does; it reads `data`."""
        async with self._gate:
            if instead:
                await self._end()
            if self._running is None:
                self.fault, self.is_stopped = "", False
                process = await _start([*self.home, *words], data)
                self._running = process, asyncio.create_task(self._read(process))

    async def has_begun(self) -> bool:
        """Wait for the request of a session that begins; return whether there is one."""
        await self._waits.wait()
        return bool(self.session_id)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        try:
            self.fault = (await _read_all(process, self._take)).fault
        finally:
            self._running = None
            self._waits.set()
            self.output = ""
            self.version += 1
            self._changed()

    def _take(self, found: dict[str, Any]) -> None:
        match found.get("kind"):
            case "output_came":
                text = found["text"]
                self.output = (self.output + text)[-_OUTPUT_CHARACTERS:]
                self.written += len(text)
            case "waiting":
                self.session_id = found["sessionId"]
                self._waits.set()
            case "remark" if not _SHOWN.match(found["text"]):
                self.remarks.append(found["text"])
                self.version += 1
            case "reply_taken":
                self.remarks.clear()
                self.version += 1
            case "operation_started" | "operation_ended" | "check_ended":
                self.output = ""
            case _:
                pass
        self._changed()

    async def end(self) -> None:
        """End it, as Ctrl-C does in a terminal; what it started ends, too. It may be gone already."""
        async with self._gate:
            await self._end()

    async def _end(self) -> None:
        if self._running is None:
            return
        process, reading = self._running
        _close_input(process)
        try:
            await asyncio.wait_for(asyncio.shield(reading), _STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await reading


def words_of(action: str, session: Session, form: Mapping[str, str]) -> tuple[list[str], bytes | None]:
    """Return the command line that a click stands for, and its standard input; UsageError for none."""
    session_id = session.session_id
    match action:
        case "say":
            wants = {"words": ["--ask"], "edits": ["--do"]}.get(form.get("wants", ""), [])
            text = form.get("text", "").strip()
            paths = filter(None, form.get("attach", "").split("\n"))
            files = [f"--attach={Path(session.workspace) / path}" for path in paths]
            if not (text or files):
                raise UsageError("type your words, or tick a file")
            return ["say", session_id, *wants, *files, "--json", *["-"] * bool(text)], text.encode()
        case "undo" if form.get("path"):
            path = str(Path(session.workspace) / form["path"])
            return ["undo", "--json", "--", session_id, path], None
        case "undo":
            return ["undo", session_id, f"--turns={form.get('turns', '1')}", "--json"], None
        case "leave":
            path, left = form.get("path", ""), session.leave_out
            left = tuple(each for each in left if each != path) if path in left else (*left, path)
            return ["refresh", session_id, "--json", *(f"--leave-out={each}" for each in left or [""])], None
        case _ if action in _WORDS:
            given = {"S": session_id, "NUMBER": form.get("number", ""), "NAME": form.get("name", "")}
            return [given.get(word, word) for word in _WORDS[action].split()], None
        case "try":  # what the chat of a candidate answers next, or a yes to what it asks
            text = form.get("text", "").strip()
            words = "try", f"--session={session_id}", f"--after={form.get('number')}", "--json"
            return [*words, "-" if text else "--yes"], text.encode()
        case "commit":
            branch, message = (form.get(name, "").strip() for name in ("branch", "message"))
            more = [*[f"--branch={branch}"] * bool(branch), *["--trust-ignored"] * ("trust" in form)]
            more.append("--message=-" if message else "--no-edit")
            return ["commit", session_id, "--json", *more], message.encode()
        case _:
            raise UsageError(f"the page has no action '{action}'")


async def run(words: Sequence[str], data: bytes | None = None) -> Done:
    """Run a command to its end; `data` is its standard input."""
    process = await _start(words, data)
    try:
        return await _read_all(process)
    except asyncio.CancelledError:
        # Who asked is gone: a newer question took its place, or the page ends.
        _close_input(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise


def _close_input(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


async def _start(words: Sequence[str], data: bytes | None = None) -> asyncio.subprocess.Process:
    if any("\0" in word for word in words):
        raise UsageError("a NUL can't be in a field: nothing was done")
    # -P: the current folder may hold a module that is called like one of ours.
    own = [sys.executable, "-P", "-m", "codingagent.cli.page.workers"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *own, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LINE_BYTES
    )
    assert process.stdin is not None
    # All users of the machine see the words of a command line: the person's own go another way.
    process.stdin.write(json.dumps([len(data or b""), *words]).encode() + b"\n" + (data or b""))
    with contextlib.suppress(OSError):
        await process.stdin.drain()
    return process


async def _read_all(
    process: asyncio.subprocess.Process, take: Callable[[dict[str, Any]], None] | None = None
) -> Done:
    """Read what a process prints until it ends; `take` gets each object as it comes, else all are kept."""
    assert process.stdout is not None
    assert process.stderr is not None
    objects: list[dict[str, Any]] = []
    take = take or objects.append
    errors = asyncio.create_task(process.stderr.read())
    async for line in process.stdout:
        try:
            found = json.loads(line)
        except ValueError:
            found = {"kind": "line", "text": line.decode("utf-8", "replace").rstrip("\n")}
        if isinstance(found, dict):
            take(found)
    said = (await errors).decode("utf-8", "replace").replace("\r\n", "\n")
    errors_told = "\n".join(line.removeprefix(_PREFIX) for line in said.split("\n"))
    return Done(await process.wait(), objects, errors_told)


# --- in the other process -------------------------------------------------------------------------


def main() -> None:
    """Run a command line; stop it, as Ctrl-C does, when standard input ends.

    Its first line is a JSON array: how many bytes of what follows are the command's own, and its words.
    """
    from codingagent.cli.main import main as run_command_line

    with open(0, "rb", buffering=0, closefd=False) as source:  # the rest is read by another
        size, *sys.argv[1:] = json.loads(source.readline())
    handle = os.dup(0)
    own, given = os.pipe()
    os.dup2(own, 0)
    os.close(own)
    threading.Thread(target=_pass_on, args=(handle, given, size), daemon=True).start()
    run_command_line()


def _pass_on(handle: int, given: int, size: int) -> None:
    """Pass the command's own input on, and wait for the end of the rest."""
    with open(handle, "rb", buffering=0) as source, open(given, "wb") as target:
        while size > 0 and (piece := source.read(min(size, 2**16))):
            size -= len(piece)
            with contextlib.suppress(OSError):
                target.write(piece)
        with contextlib.suppress(OSError):
            target.close()
        while source.read(1):
            pass
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


if __name__ == "__main__":
    main()
