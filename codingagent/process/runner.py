"""Runs commands: a time limit, bounded output, a chosen environment, and nothing left behind.

The only module that starts processes. On POSIX systems `supervisor` does it, in a process of its own.
"""

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol

from codingagent.errors import UsageError, WorkError
from codingagent.model.events import EndedBy
from codingagent.model.observations import PLAIN, Extras, Outcome
from codingagent.process import memory

# The most that one command may print: beyond it something runs away (`yes`), and a core with it.
FLOOD_LIMIT_BYTES = 256 * 2**20

# Kept of the output at either end; far more than a result shows, so that its cut can find line ends.
_KEPT_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024

# What is kept of each of two streams, and what is where one is cut (specification 004, ExecResult).
STREAM_LIMIT_BYTES = 2**20
_TRUNCATED = "\n... [output truncated]"

# How long to go on reading when the command and all of its tree have ended but the pipe is still
# open: someone outside of the tree was handed it, and may keep it for ever.
_DRAIN_S = 0.2

# In UTF-8 each character has one byte that is none of these.
_CONTINUATION = bytes(range(0x80, 0xC0))

_TRIAL_S = 20

# How long a supervisor may take to end what it guards and itself.
_CLOSE_PATIENCE_S = 10.0

_LOOK_UP_S = 0.5

# The guard ends a command at its limit and reports at once; later, something keeps it from that.
_OVERDUE_AFTER_S = 1.0

# How long a program that carried a connection may take to end when that is closed.
_TRANSPORT_PATIENCE_S = 2.0

# Last on the path: nothing beside the package takes the place of what Python brings.
_SUPERVISOR = """
import sys
sys.path.append(sys.argv[1])
from codingagent.process.supervisor import main
main()
"""

_PASSED = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
    ),
    # All that POSIX and glibc know: another name that begins so may hold anything.
    *("LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    *("LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"),
    # Windows programs do not start without these.
    *("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA"),
    *("LOCALAPPDATA", "PROGRAMFILES", "PROGRAMDATA", "WINDIR", "NUMBER_OF_PROCESSORS"),
)
# What an interpreter may need to start at all.
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # Whoever asks a question here waits for ever.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # A .pyc knows its source by size and second: an edit right after a run may go unnoticed.
    "PYTHONDONTWRITEBYTECODE": "1",
}


class ConfinedLike(Protocol):
    """How to start a command; in `argv` a number stands for that one of `handles`."""

    @property
    def argv(self) -> Sequence[str | int]: ...
    @property
    def variables(self) -> Mapping[str, str]: ...
    @property
    def handles(self) -> Sequence[int]: ...
    @property
    def is_told(self) -> bool: ...
    @property
    def mounts(self) -> Sequence[Mapping[str, object]]: ...


class SandboxLike(Protocol):
    """What may confine a command."""

    @property
    def tier(self) -> str: ...
    @property
    def has_network(self) -> bool: ...

    def confine(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        added: Mapping[str, str],
    ) -> ConfinedLike:
        """Return how to run `argv` in `folder`, confined; the variables `added` are not to be trusted."""
        ...


def environment(base: Mapping[str, str], passed: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a command sees: a chosen few of `base`, and those named in `passed`.

    An allow list, because no list of secrets is ever complete.
    """
    names = {*_PASSED, *passed}
    chosen = {name: value for name, value in base.items() if name in names or name.upper() in names}
    return {**chosen, **{name: value for name, value in _SET.items() if name not in passed}}


class Runner:
    """Runs one command at a time. Start it in the main thread; close it when all is done.

    `sandbox` confines the next one; `memory_bytes` is what each may take, with all that it starts.
    """

    def __init__(
        self,
        sandbox: SandboxLike,
        variables: Mapping[str, str],
        memory_bytes: int | None = None,
    ) -> None:
        self._memory_bytes = memory_bytes
        self.sandbox = sandbox
        self._variables = dict(variables)
        self._supervisor: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._reading: _Reading | None = None

    def close(self) -> None:
        """End the supervisor, and with it whatever it still guards."""
        if self._supervisor is not None:
            process, agent = self._supervisor
            self._supervisor = None
            agent.close()
            try:
                process.wait(_CLOSE_PATIENCE_S)
            except subprocess.TimeoutExpired:
                # A command has stopped it; woken it sees that we are gone, and ends what is left.
                process.send_signal(signal.SIGCONT)
                process.wait()

    def run(
        self,
        command: str,
        folder: int | str,
        timeout_s: float | None,
        show: Callable[[str], None],
        extras: Extras = PLAIN,
    ) -> Outcome:
        """Run a shell line and return its outcome; `show` gets the output as it comes.

        Args:
            command: for `/bin/sh -c`, or `cmd.exe /c` on Windows.
            folder: a handle on the folder to run in, or its name where handles do not exist.
            timeout_s: None for no limit.
            show: called with pieces of text, in the caller's thread.
            extras: what else is wanted.

        Raises:
            KeyboardInterrupt: passed on, after the command and its tree have been ended.
        """
        if os.name == "nt":
            argv = ["cmd.exe", "/d", "/s", "/c", command]
            variables = {**self._variables, **extras.variables}
            where = _Where(str(folder), variables, extras.parts_streams)
            outcome = _run_directly(argv, where, timeout_s, show)
        else:
            outcome = self._run_supervised(
                ["/bin/sh", "-c", "--", command], folder, timeout_s, show, extras
            )
        if outcome.ended_by == "memory_limit":
            outcome = replace(outcome, limit=memory.in_words(self._memory_bytes))
        return replace(outcome, sandbox=self.sandbox.tier, has_network=self.sandbox.has_network)

    def _run_supervised(
        self,
        argv: list[str],
        folder: int | str,
        timeout_s: float | None,
        show: Callable[[str], None],
        extras: Extras,
    ) -> Outcome:
        with contextlib.ExitStack() as stack:
            handle = _handle(folder, stack)
            name = _name_of(handle, folder)
            try:
                confined = self.sandbox.confine(argv, self._variables, name, extras.variables)
            except OSError as fault:
                return Outcome(-1, "", 0.0, failure=f"the sandbox can't be set up: {fault}")
            for each in confined.handles:
                stack.callback(os.close, each)
            order = {
                "argv": list(confined.argv),
                "environment": dict(confined.variables),
                "timeout_s": timeout_s,
                "memory_bytes": self._memory_bytes,
                "is_told": confined.is_told,
                "mounts": list(confined.mounts),
                "parts_streams": extras.parts_streams,
            }
            control, theirs = socket.socketpair()
            stack.enter_context(control)
            pipes = [os.pipe() for _ in range(2 if extras.parts_streams else 1)]
            outputs, write_ends = zip(*pipes, strict=True)
            for output in outputs:
                stack.callback(os.close, output)
            try:
                first, *errors = write_ends
                self._hand_over([theirs.fileno(), first, handle, *errors, *confined.handles])
            finally:
                theirs.close()
                for write_end in write_ends:
                    os.close(write_end)
            body = json.dumps(order).encode()
            with contextlib.suppress(
                BrokenPipeError
            ):  # then the report is missing, which is said below
                control.sendall(struct.pack("!I", len(body)) + body)
            reading = self._reading = _Reading(control, outputs, show, extras.is_flooded)
            try:
                return reading.outcome(timeout_s)
            finally:
                self._reading = None
                if reading.is_overdue:
                    self._end_all()

    def end_command(self) -> None:
        """End the command that runs now, if one does; for another thread than the one that waits for it."""
        reading = self._reading
        # It may end by itself meanwhile: then there is nothing left to be told.
        if reading is not None:
            reading.hurry()

    def _end_all(self) -> None:
        """End the supervisor and all below it: a command stopped the one that was to end it."""
        from codingagent.process import supervisor

        if self._supervisor is None:
            return
        pid = self._supervisor[0].pid

        def living() -> list[int]:
            return [p for p in supervisor.tree(pid) if not supervisor.is_zombie(p)]

        # Between two reads of one look a process may end and its child move up: look once more.
        supervisor.kill_all(lambda: living() or living())
        self._supervisor[0].kill()
        self.close()

    def _hand_over(self, handles: list[int]) -> None:
        """Pass a command's handles to the supervisor, which is started if it is not there (any more)."""
        for attempt in (1, 2):
            if self._supervisor is None:
                self._supervisor = _start_supervisor()
            try:
                socket.send_fds(self._supervisor[1], [b"c"], handles)
            except OSError as fault:
                self.close()
                if attempt == 2:
                    raise WorkError(
                        f"the process that starts commands does not answer: {fault}"
                    ) from fault
            else:
                return


def try_out(confined: ConfinedLike) -> str:
    """Run something short, without a supervisor; return its output.

    Raises:
        WorkError: with what it said, if it did not succeed.
    """
    handles = confined.handles
    words = [str(handles[w]) if isinstance(w, int) else w for w in confined.argv]
    try:
        done = subprocess.run(
            words,
            env=dict(confined.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=handles,
            timeout=_TRIAL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise WorkError(f"{words[0]} does not work: {fault}") from fault
    finally:
        for handle in handles:
            os.close(handle)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise WorkError(said or f"{words[0]} ended with exit code {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def editor_of(variables: Mapping[str, str]) -> str:
    """Return the person's editor, as a line of a shell."""
    default = "notepad" if os.name == "nt" else "vi"
    return variables.get("VISUAL") or variables.get("EDITOR") or default


def open_editor(path: Path) -> None:
    """Lets the person edit a file in the editor that VISUAL or EDITOR names, and waits for it.

    Raises:
        UsageError: if there is no such editor, or it ends with a fault.
    """
    editor = editor_of(os.environ)
    try:
        status = subprocess.run([*shlex.split(editor), os.fspath(path)], check=False).returncode
    except (OSError, ValueError) as fault:
        raise UsageError(f"the editor {editor!r} can't be started: {fault}; set EDITOR") from fault
    if status:
        raise UsageError(
            f"the editor {editor!r} ended with exit code {status}; nothing was started"
        )


class Transport:
    """A program whose standard input and output are one connection; `connection` is our end.

    Its messages go where ours go.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.connection, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    argv, stdin=theirs.fileno(), stdout=theirs.fileno()
                )
            except BaseException:
                self.connection.close()
                raise

    def close(self) -> int:
        """Hangs up and waits for the program to end, which it is helped to; gives its exit code."""
        self.connection.close()
        for urge in (self._process.terminate, self._process.kill):
            try:
                return self._process.wait(_TRANSPORT_PATIENCE_S)
            except subprocess.TimeoutExpired:
                urge()
        return self._process.wait()


def open_transport(argv: Sequence[str]) -> Transport:
    """Start a program that carries a connection: `ssh HOST codingagent serve --stdio`.

    Raises:
        WorkError: if it can't be started.
    """
    try:
        return Transport(argv)
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else None
        raise WorkError(f"{argv[0]!r} can't be started: {why or fault}") from fault


def find_program(name: str, *outside: Path) -> str | None:
    """Return where a program of ours is: the first on PATH that an answer could not have put there.

    Args:
        name: the program.
        outside: the workspace and the like; what is there, or is named relative to the current
            folder, is passed over.
    """
    untrusted = {folder.resolve() for folder in outside}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which(name, path=folder) if os.path.isabs(folder) else None
        if found:
            within, real = Path(folder).resolve(), Path(found).resolve()
            if untrusted.isdisjoint((within, *within.parents, *real.parents)):
                return found
    return None


def run_tool(
    argv: Sequence[str], variables: Mapping[str, str], data: bytes = b"", timeout_s: float = 600
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program of ours (git, the clipboard's) to its end; return its exit code and both streams.

    Args:
        argv: the program, by its full path, and its arguments.
        variables: its whole environment.
        data: for its standard input.
        timeout_s: seconds after which it is killed.

    Raises:
        WorkError: if it can't be started or does not end in time.
    """
    try:
        return subprocess.run(
            argv,
            input=data,
            capture_output=True,
            env=dict(variables),
            timeout=timeout_s,
            check=False,
            # A Ctrl-C on the terminal is for us, and must not leave its work half done.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as fault:
        raise WorkError(f"{argv[0]} did not end within {timeout_s:g} s") from fault
    except OSError as fault:
        raise WorkError(f"{argv[0]} can't be started: {fault.strerror or fault}") from fault


def _start_supervisor() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    package = Path(__file__).parents[2]
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SUPERVISOR, os.fspath(package)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            # A command could read it there, and find what the allow list keeps from it.
            env={name: os.environ[name] for name in _LOADER if name in os.environ},
            # A Ctrl-C on the terminal is for us; we end the command ourselves.
            start_new_session=True,
        )
    return process, ours


def _handle(folder: int | str, stack: contextlib.ExitStack) -> int:
    if isinstance(folder, int):
        return folder
    handle = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, handle)
    return handle


def _name_of(handle: int, folder: int | str) -> str:
    """Return the real path of an open folder, for a sandbox; where there is none it is not needed."""
    if isinstance(folder, str):
        return folder
    name = f"/proc/self/fd/{handle}"
    return os.readlink(name) if os.path.islink(name) else "."


class _Kept:
    """The head and the tail of a stream of bytes, whatever its length."""

    def __init__(self) -> None:
        self.total = 0
        self._characters = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._characters += len(chunk.translate(None, _CONTINUATION))
        room = _KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        if len(chunk) > room:
            self._tail += chunk[room:]
            if len(self._tail) > 2 * _KEPT_BYTES:
                del self._tail[:-_KEPT_BYTES]

    def text(self) -> tuple[str, int]:
        """Return the text kept and how many characters are missing from its middle."""
        tail = self._tail[-_KEPT_BYTES:]
        if self.total == len(self._head) + len(tail):
            return bytes(self._head + tail).decode("utf-8", "replace"), 0
        # Cut within a character: no half ones at the seam.
        head = self._head.decode("utf-8", "ignore")
        while tail and 0x80 <= tail[0] < 0xC0:
            del tail[0]
        end = tail.decode("utf-8", "replace")
        return f"{head}\n{end}", max(self._characters - len(head) - len(end), 1)


class _Beginning:
    """The first bytes of a stream."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._is_cut = False

    def add(self, chunk: bytes) -> None:
        room = STREAM_LIMIT_BYTES - len(self._bytes)
        self._bytes += chunk[:room]
        self._is_cut = self._is_cut or len(chunk) > room

    def text(self) -> str:
        """Return the text of these bytes; where the stream went on, it says so."""
        # Not final: of a character that the cut parts, nothing is given.
        decoder = getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(bytes(self._bytes), not self._is_cut)
        return text + _TRUNCATED if self._is_cut else text


class _Reading:
    """Reads a command's output and report until both are there; `outputs` are one pipe, or two."""

    def __init__(
        self,
        control: socket.socket,
        outputs: Sequence[int],
        show: Callable[[str], None],
        is_flooded: Callable[[], bool] | None,
    ) -> None:
        self._is_flooded = is_flooded
        self._control = control
        self._outputs = tuple(outputs)
        self._show = show
        self._kept = _Kept()
        self._decoders = {o: getincrementaldecoder("utf-8")("replace") for o in outputs}
        self._apart = {o: _Beginning() for o in outputs} if len(outputs) > 1 else {}
        self._report = b""
        self._flooded = False
        self._hurries = False
        self.is_overdue = False
        """No report came though it should have."""
        self._selector = selectors.DefaultSelector()

    def hurry(self) -> None:
        """Has the command ended; for another thread than the one that waits."""
        self._hurries = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def outcome(self, timeout_s: float | None) -> Outcome:
        started = time.monotonic()
        try:
            self._read(None if timeout_s is None else started + timeout_s + _OVERDUE_AFTER_S)
        except BaseException:
            # Interrupted: our end closes, the guard ends the tree, and says so by closing its own.
            self._control.shutdown(socket.SHUT_WR)
            self._wait_for_end()
            raise
        finally:
            self._selector.close()
        took = time.monotonic() - started
        text, dropped = self._kept.text()
        stdout, stderr = (
            (self._apart[o].text() for o in self._outputs) if self._apart else (None, None)
        )
        ended = Outcome(
            -signal.SIGKILL, text, took, dropped_characters=dropped, stdout=stdout, stderr=stderr
        )
        if self.is_overdue:
            note = "the command stopped the process that watched over it; both were ended"
            limit = _limit("time_limit", timeout_s)
            return replace(ended, ended_by="time_limit", limit=limit, notes=(note,))
        if not self._report:
            note = "the command ended the process that watched over it; what it left was ended"
            return replace(ended, notes=(note,))
        report = json.loads(self._report)
        if "failure" in report:
            return Outcome(-1, "", took, failure=report["failure"])
        notes: tuple[str, ...] = ()
        if report["alive"]:
            notes = (f"{report['alive']} processes could not be ended",)
        if not report["has_begun"] and report["ended_by"] == "itself":
            return Outcome(-1, "", took, failure=text.strip() or "the sandbox did not start")
        ended_by: EndedBy = report["ended_by"]
        if self._flooded:
            ended_by = "output_limit"
        return replace(
            ended,
            exit_code=report["code"],
            duration_s=report["took_s"],
            ended_by=ended_by,
            limit=_limit(ended_by, timeout_s),
            stopped_processes=report["stopped"],
            notes=notes,
        )

    def _read(self, overdue_at: float | None) -> None:
        """Read until the report is there and the pipe is at its end, or was so long enough."""
        self._selector.register(self._control, selectors.EVENT_READ)
        for output in self._outputs:
            self._selector.register(output, selectors.EVENT_READ)
        give_up: float | None = None
        while self._selector.get_map():
            if self._hurries and overdue_at is None:
                overdue_at = time.monotonic() + _OVERDUE_AFTER_S
            wake_at = give_up or overdue_at
            # Without a limit we look up now and then: another thread may want it ended.
            left = _LOOK_UP_S if wake_at is None else max(wake_at - time.monotonic(), 0)
            if self._is_flooded is not None:
                left = min(left, _LOOK_UP_S)
                if self._is_flooded():
                    self._end_flood()
            ready = {key.fileobj for key, _ in self._selector.select(left)}
            for output in self._outputs:
                if output in ready:
                    self._read_output(output)
            if self._control in ready:
                self._read_report()
            if self._control not in self._selector.get_map() and give_up is None:
                give_up = time.monotonic() + _DRAIN_S
            if give_up is not None and time.monotonic() >= give_up:
                return
            if give_up is None and overdue_at is not None and time.monotonic() >= overdue_at:
                self.is_overdue = True
                return

    def _read_output(self, output: int) -> None:
        chunk = os.read(output, _CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(output)
            return
        self._kept.add(chunk)
        if self._apart:
            self._apart[output].add(chunk)
        self._show(self._decoders[output].decode(chunk))
        if self._kept.total > FLOOD_LIMIT_BYTES:
            self._end_flood()

    def _end_flood(self) -> None:
        if not self._flooded:
            self._flooded = True
            with contextlib.suppress(OSError):  # it has just ended by itself
                self._control.shutdown(socket.SHUT_WR)

    def _read_report(self) -> None:
        try:
            chunk = self._control.recv(4096)
        except ConnectionResetError:
            chunk = b""  # it ended before it had read what to do
        self._report += chunk
        if not chunk or self._report.endswith(b"\n"):
            self._selector.unregister(self._control)

    def _wait_for_end(self) -> None:
        self._control.settimeout(_OVERDUE_AFTER_S)
        try:
            while self._control.recv(4096):
                pass
        except OSError:
            self.is_overdue = True


@dataclass(frozen=True, slots=True)
class _Where:
    """What a command that runs without a supervisor finds around it."""

    folder: str
    variables: Mapping[str, str]
    parts_streams: bool


def _run_directly(
    argv: list[str], where: _Where, timeout_s: float | None, show: Callable[[str], None]
) -> Outcome:
    """Run a command where there is no fork (Windows); `taskkill /t` ends its tree."""
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            argv,
            cwd=where.folder,
            env=dict(where.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if where.parts_streams else subprocess.STDOUT,
        )
    except OSError as fault:
        return Outcome(-1, "", 0.0, failure=fault.strerror or str(fault))
    kept = _Kept()
    streams = [process.stdout, process.stderr] if where.parts_streams else [process.stdout]
    apart = [_Beginning() for _ in streams]
    readers = [
        threading.Thread(target=_copy, args=(stream, kept, beginning), daemon=True)
        for stream, beginning in zip(streams, apart, strict=True)
    ]
    for reader in readers:
        reader.start()
    ended_by: EndedBy = "itself"
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        ended_by = "time_limit"
    finally:
        if process.poll() is None:
            _end_tree(process)
    for reader in readers:
        reader.join(_DRAIN_S)
    text, dropped = kept.text()
    show(text)
    outcome = Outcome(
        process.returncode,
        text,
        time.monotonic() - started,
        ended_by,
        _limit(ended_by, timeout_s),
        dropped_characters=dropped,
    )
    if where.parts_streams:
        return replace(outcome, stdout=apart[0].text(), stderr=apart[1].text())
    return outcome


def _limit(ended_by: str, timeout_s: float | None) -> str:
    if ended_by == "output_limit":
        return f"{FLOOD_LIMIT_BYTES // 2**20} MiB"
    if ended_by == "process_limit":
        from codingagent.process.supervisor import PROCESS_LIMIT

        return f"{PROCESS_LIMIT} processes"
    return f"{timeout_s:g} s" if ended_by == "time_limit" and timeout_s is not None else ""


def _copy(stream: IO[bytes] | None, kept: _Kept, beginning: _Beginning) -> None:
    assert stream is not None
    while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
        kept.add(chunk)
        beginning.add(chunk)


def _end_tree(process: "subprocess.Popen[bytes]") -> None:
    if os.name == "nt":
        subprocess.run(
            ["taskkill", "/f", "/t", "/pid", str(process.pid)], capture_output=True, check=False
        )
    process.kill()
    process.wait()
