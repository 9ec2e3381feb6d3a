"""Run commands with a time limit, bounded output and a chosen environment, and end their process trees.

The only module that starts processes. On POSIX systems it delegates to the `supervisor` process.

Over 500 lines: it is the only module that starts processes, so that all care for them is in one place.
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
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import UsageError, WorkError
from codingagent.model.events import EndedBy
from codingagent.model.observations import PLAIN, Extras, Outcome
from codingagent.process import memory

# The output limit of one command: beyond it, something runs away (`yes`) and takes a core with it.
FLOOD_LIMIT_BYTES = 256 * 2**20

# Kept at each end of the output; much more than a result shows, so that its cut can find line ends.
_KEPT_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024

# Kept of each of two streams, and the marker of a cut (specification 004, ExecResult).
STREAM_LIMIT_BYTES = 2**20
_TRUNCATED = "\n... [output truncated]"

# How long to keep reading after the command and its tree have ended while the pipe is still open: a
# process outside the tree was given it and may keep it forever.
_DRAIN_S = 0.2

# Each UTF-8 character has exactly one byte that is not one of these.
_CONTINUATION = bytes(range(0x80, 0xC0))

_TRIAL_S = 20

# How long a supervisor may take to end its commands and itself.
_CLOSE_PATIENCE_S = 10.0

_LOOK_UP_S = 0.5

# The guard ends a command at its limit and reports at once; a later report means it was prevented.
_OVERDUE_AFTER_S = 1.0

# How long a transport program may take to end after its connection closes.
_TRANSPORT_PATIENCE_S = 2.0

# Last on the path, so that no file beside the package shadows the standard library.
_SUPERVISOR = """
import sys
sys.path.append(sys.argv[1])
from codingagent.process.supervisor import main
main()
"""

_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
    "VIRTUAL_ENV",
    # All locale variables of POSIX and glibc: another name with this prefix may hold anything.
    *("LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    *("LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"),
    # Windows programs do not start without these.
    *("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA"),
    *("LOCALAPPDATA", "PROGRAMFILES", "PROGRAMDATA", "WINDIR", "NUMBER_OF_PROCESSORS"),
)
# An interpreter may need these to start at all.
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # A program that prompts here would wait forever.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # A .pyc records its source's size and second: an edit right after a run might go unnoticed.
    "PYTHONDONTWRITEBYTECODE": "1",
}


Variables = Mapping[str, str]


class ConfinedLike(Protocol):
    """How to start a command; a number in `argv` is an index into `handles`."""

    @property
    def argv(self) -> Sequence[str | int]: ...
    @property
    def variables(self) -> Variables: ...
    @property
    def handles(self) -> Sequence[int]: ...
    @property
    def is_told(self) -> bool: ...
    @property
    def mounts(self) -> Sequence[Mapping[str, object]]: ...


class SandboxLike(Protocol):
    """A sandbox that may confine commands."""

    @property
    def tier(self) -> str: ...
    @property
    def has_network(self) -> bool: ...

    def confine(
        self, argv: Sequence[str], variables: Variables, folder: str, added: Variables
    ) -> ConfinedLike:
        """Return how to run `argv` confined in `folder`; the variables in `added` are untrusted."""
        ...


def environment(base: Variables, passed: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a command sees: selected ones of `base`, and those named in `passed`.

    An allow list, because no list of secrets is ever complete.
    """
    names = {*_PASSED, *passed}
    chosen = {name: value for name, value in base.items() if name in names or name.upper() in names}
    return {**chosen, **{name: value for name, value in _SET.items() if name not in passed}}


class Runner:
    """Run one command at a time. Start it in the main thread; close it at the end.

    `sandbox` confines the next command; `memory_bytes` limits each command's process tree.
    """

    def __init__(
        self, sandbox: SandboxLike, variables: Variables, memory_bytes: int | None = None
    ) -> None:
        self._memory_bytes = memory_bytes
        self.sandbox = sandbox
        self._variables = dict(variables)
        self._supervisor: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._reading: _Reading | None = None

    def close(self) -> None:
        """End the supervisor and every command it still guards."""
        if self._supervisor is not None:
            process, agent = self._supervisor
            self._supervisor = None
            agent.close()
            try:
                process.wait(_CLOSE_PATIENCE_S)
            except subprocess.TimeoutExpired:
                # If a command stopped it, it now wakes, sees that the agent is gone, and ends the
                # rest.
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
        """Run a shell line and return its outcome; pass the output to `show` as it arrives.

        The folder is a handle, or a name where handles are not supported. Without `timeout_s` there is no
        limit.

        Raises:
            KeyboardInterrupt: re-raised after the command and its tree have ended.
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
            ):  # then the report is missing, as the outcome says below
                control.sendall(struct.pack("!I", len(body)) + body)
            reading = self._reading = _Reading(control, outputs, show, extras.is_flooded)
            try:
                return reading.outcome(timeout_s)
            finally:
                self._reading = None
                if reading.is_overdue:
                    self._end_all()

    def end_command(self) -> None:
        """End the running command, if any; called from another thread than the one that waits for it."""
        reading = self._reading
        # It may end by itself meanwhile; then there is nothing left to end.
        if reading is not None:
            reading.hurry()

    def _end_all(self) -> None:
        """End the supervisor and everything below it, after a command stopped its guard."""
        from codingagent.process import supervisor

        if self._supervisor is None:
            return
        pid = self._supervisor[0].pid

        def living() -> list[int]:
            return [p for p in supervisor.tree(pid) if not supervisor.is_zombie(p)]

        # Between two reads a process may end and its child move up, so look twice.
        supervisor.kill_all(lambda: living() or living())
        self._supervisor[0].kill()
        self.close()

    def _hand_over(self, handles: list[int]) -> None:
        """Pass a command's handles to the supervisor; start it first if it is not running."""
        for attempt in (1, 2):
            if self._supervisor is None:
                self._supervisor = _start_supervisor()
            try:
                socket.send_fds(self._supervisor[1], [b"c"], handles)
            except OSError as fault:
                self.close()
                if attempt == 2:
                    raise WorkError(
                        f"the process that starts commands does not respond: {fault}"
                    ) from fault
            else:
                return


def try_out(confined: ConfinedLike) -> str:
    """Run something short without a supervisor; return its output.

    Raises:
        WorkError: if it fails; the message has its output.
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


def editor_of(variables: Variables) -> str:
    """Return the person's editor as a shell line."""
    default = "notepad" if os.name == "nt" else "vi"
    return variables.get("VISUAL") or variables.get("EDITOR") or default


def open_editor(path: Path) -> None:
    """Open a file in the editor that VISUAL or EDITOR names, and wait for it.

    Raises:
        UsageError: if there is no such editor, or it fails.
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

    Its error output goes to our own.
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
        """Close the connection, wait for the program to end, terminate it if needed; return its exit code."""
        self.connection.close()
        for urge in (self._process.terminate, self._process.kill):
            try:
                return self._process.wait(_TRANSPORT_PATIENCE_S)
            except subprocess.TimeoutExpired:
                urge()
        return self._process.wait()


def open_transport(argv: Sequence[str]) -> Transport:
    """Start a program that carries a connection, such as `ssh HOST codingagent serve --stdio`.

    Raises:
        WorkError: if it can't be started.
    """
    try:
        return Transport(argv)
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else None
        raise WorkError(f"{argv[0]!r} can't be started: {why or fault}") from fault


def find_program(name: str, *outside: Path) -> str | None:
    """Find a program on PATH, skipping folders where an answer could have put it.

    Those are the folders in `outside`, such as the workspace, and relative ones.
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
    argv: Sequence[str], variables: Variables, data: bytes = b"", timeout_s: float = 600
) -> "subprocess.CompletedProcess[bytes]":
    """Run one of the agent's own tools (git, the clipboard) to its end; return exit code and both streams.

    `variables` are its whole environment. It is killed at the time limit.

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
            # A Ctrl-C on the terminal is for the agent and must not interrupt the tool.
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
            # A command could read its environment there, and find what the allow list withholds.
            env={name: os.environ[name] for name in _LOADER if name in os.environ},
            # A Ctrl-C on the terminal is for the agent, which ends the command itself.
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
    """Return the real path of an open folder for a sandbox; without one it is not needed."""
    if isinstance(folder, str):
        return folder
    name = f"/proc/self/fd/{handle}"
    return os.readlink(name) if os.path.islink(name) else "."


class _Kept:
    """The head and tail of a byte stream of any length."""

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
        """Return the kept text and how many characters are missing in the middle."""
        tail = self._tail[-_KEPT_BYTES:]
        if self.total == len(self._head) + len(tail):
            return bytes(self._head + tail).decode("utf-8", "replace"), 0
        # Drop partial characters at the cut.
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
        """Return the text of these bytes, and mark it if the stream continued."""
        # Not final: a character split by the cut is dropped.
        decoder = getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(bytes(self._bytes), not self._is_cut)
        return text + _TRUNCATED if self._is_cut else text


class _Reading:
    """Read a command's output and report until both are complete; `outputs` is one pipe, or two."""

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
        """Whether a report is missing that should have come."""
        self._selector = selectors.DefaultSelector()

    def hurry(self) -> None:
        """End the command early; called from another thread than the one that waits."""
        self._hurries = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def outcome(self, timeout_s: float | None) -> Outcome:
        started = time.monotonic()
        try:
            self._read(None if timeout_s is None else started + timeout_s + _OVERDUE_AFTER_S)
        except BaseException:
            # Interrupted: closing our end makes the guard end the tree; it then closes its own end.
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
        """Read until the report has come and the pipe is closed, or has been open long enough."""
        self._selector.register(self._control, selectors.EVENT_READ)
        for output in self._outputs:
            self._selector.register(output, selectors.EVENT_READ)
        give_up: float | None = None
        while self._selector.get_map():
            if self._hurries and overdue_at is None:
                overdue_at = time.monotonic() + _OVERDUE_AFTER_S
            wake_at = give_up or overdue_at
            # Without a limit, wake now and then: another thread may want the command ended.
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
            chunk = b""  # it ended before it read its input
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


class _Where(Struct, frozen=True):
    """The surroundings of a command that runs without a supervisor."""

    folder: str
    variables: Variables
    parts_streams: bool


def _run_directly(
    argv: list[str], where: _Where, timeout_s: float | None, show: Callable[[str], None]
) -> Outcome:
    """Run a command on a system without fork (Windows); `taskkill /t` ends its tree."""
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
