"""Run commands with a time limit, bounded output and a chosen environment, and end their process trees.

It starts all processes; commands are left to `windows` there, else to the `supervisor` process.
"""

import contextlib
import errno
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import RawIOBase
from pathlib import Path
from typing import Protocol

from msgspec.structs import asdict, replace

from codingagent.errors import UsageError, WorkError, disk_errors
from codingagent.model.events import EndedBy
from codingagent.model.observations import LAYER_BYTES, PLAIN, Confined, Extras, Outcome
from codingagent.model.patterns import sections, words
from codingagent.process import memory
from codingagent.process.output import FLOOD_LIMIT_BYTES, Reading, Show
from codingagent.workspace import programs

# How long a supervisor may take to end its commands and itself.
_CLOSE_PATIENCE_S = 10.0
# How long a transport program may take to end after its connection closes.
_TRANSPORT_PATIENCE_S = 2.0

# Last on the path, so that no file beside the package shadows the standard library.
_SUPERVISOR = """
import sys
sys.path.append(sys.argv[1])
from codingagent.process.supervisor import main
main()
"""

_SECTIONS = sections(__file__)
_PASSED = words(_SECTIONS["variables"], _SECTIONS["variables of windows"])
# An interpreter may need these to start at all.
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_SET = {
    **dict(each.split("=") for each in _SECTIONS["variables set"].split()),
    **({"PYTHONIOENCODING": "utf-8"} if sys.platform == "win32" else {}),
}

Variables = Mapping[str, str]
Started = tuple[socket.socket, Sequence[RawIOBase]]
"""Where a command's guard reports, and the outputs of the command."""


class SandboxLike(Protocol):
    """A sandbox that may confine commands."""

    @property
    def tier(self) -> str: ...
    @property
    def has_network(self) -> bool: ...

    def confine(self, line: str, variables: Variables, folder: str, added: Variables) -> Confined:
        """Return how to run a shell line confined in `folder`; the variables in `added` are untrusted."""
        ...


def environment(base: Variables, passed: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a command sees: a list of allowed ones, as no list of secrets is complete."""
    # Windows tells all names in capitals.
    names = {*_PASSED, *passed, *(map(str.upper, passed) if os.name == "nt" else ())}
    chosen = {name: value for name, value in base.items() if name in names or name.upper() in names}
    return {**chosen, **{name: value for name, value in _SET.items() if name not in passed}}


class Runner:
    """Run one command at a time. Start it in the main thread; close it at the end.

    `sandbox` confines the next command, which sees `variables`; `memory_bytes` limits its process tree.
    """

    def __init__(self, sandbox: SandboxLike, variables: Variables, memory_bytes: int | None = None) -> None:
        self._memory_bytes = memory_bytes
        self.sandbox = sandbox
        self.variables = dict(variables)
        self._supervisor: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._reading: Reading | None = None

    def close(self) -> None:
        """End the supervisor and every command it still guards."""
        if sys.platform != "win32" and self._supervisor is not None:
            process, agent = self._supervisor
            self._supervisor = None
            agent.close()
            try:
                process.wait(_CLOSE_PATIENCE_S)
            except subprocess.TimeoutExpired:
                # If a command stopped it, it now wakes, sees that the agent is gone, and ends the rest.
                process.send_signal(signal.SIGCONT)
                process.wait()

    def start(self) -> None:
        """Start the supervisor, if it is not running, so that the next command need not wait for it."""
        if sys.platform != "win32" and self._supervisor is None:
            ours, theirs = socket.socketpair()
            ours.settimeout(_CLOSE_PATIENCE_S)
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
            self._supervisor = process, ours

    def run(
        self, command: str, folder: int | str, timeout_s: float | None, show: Show, extras: Extras = PLAIN
    ) -> Outcome:
        """Run a shell line and return its outcome; pass the output to `show` as it arrives.

        The folder is a handle, or a name where handles are not supported. Without `timeout_s` there is no
        limit. A KeyboardInterrupt is raised again after the command and its tree have ended.
        """
        start = self._start_here if sys.platform == "win32" else self._start_supervised
        with ExitStack() as stack:
            started = start(stack, command, folder, timeout_s, extras)
            if isinstance(started, str):
                outcome = Outcome(-1, "", 0.0, failure=started)
            else:
                reading = self._reading = Reading(*started, show, extras.is_flooded)
                try:
                    outcome = reading.outcome(timeout_s)
                finally:
                    self._reading = None
                    if reading.is_overdue:
                        self._end_all()
        told: dict[EndedBy, str] = {
            "time_limit": "" if timeout_s is None else f"{timeout_s:g} s",
            "output_limit": f"{FLOOD_LIMIT_BYTES // 2**20} MiB",
            "process_limit": f"{memory.PROCESS_LIMIT} processes",
            "memory_limit": memory.in_words(self._memory_bytes),
            "layer_limit": f"{LAYER_BYTES // 10**9} GB",
        }
        limit, used = told.get(outcome.ended_by, ""), self.sandbox
        return replace(outcome, limit=limit, sandbox=used.tier, has_network=used.has_network)

    def _start_here(
        self, stack: ExitStack, command: str, folder: int | str, timeout_s: float | None, extras: Extras
    ) -> Started | str:
        """Start a command on Windows; return its ways to us, or why it did not start."""
        from codingagent.process import windows

        try:
            variables, most = self.variables, self._memory_bytes
            job = windows.start(stack, command, str(folder), variables, most, extras)
        except OSError as fault:
            return fault.strerror or str(fault)
        control, theirs = socket.socketpair()
        stack.enter_context(control)
        return control, windows.guarded(job, theirs, timeout_s)

    def _start_supervised(
        self, stack: ExitStack, command: str, folder: int | str, timeout_s: float | None, extras: Extras
    ) -> Started | str:
        """Have the supervisor start a command; return its ways to us, or why it did not start."""
        handle = os.open(folder, os.O_RDONLY) if isinstance(folder, str) else os.dup(folder)
        stack.callback(os.close, handle)
        # A sandbox needs its real path.
        own = f"/proc/self/fd/{handle}"
        name = os.readlink(own) if os.path.islink(own) else str(folder)
        try:
            confined = self.sandbox.confine(command, self.variables, name, extras.variables)
        except OSError as fault:
            return f"the sandbox can't be set up: {fault}"
        for each in confined.handles:
            stack.callback(os.close, each)
        order = {
            **asdict(confined),
            "variables": dict(confined.variables),
            "timeout_s": timeout_s,
            "memory_bytes": self._memory_bytes,
            "parts_streams": extras.parts_streams,
        }
        control, theirs = socket.socketpair()
        stack.enter_context(control)
        pipes = [os.pipe() for _ in range(2 if extras.parts_streams else 1)]
        outputs = [stack.enter_context(os.fdopen(output, "rb", 0)) for output, _ in pipes]
        first, *errors = write_ends = [write_end for _, write_end in pipes]
        try:
            self._hand_over([theirs.fileno(), first, handle, *errors, *confined.handles])
        finally:
            theirs.close()
            for write_end in write_ends:
                os.close(write_end)
        with contextlib.suppress(BrokenPipeError):  # the report is then missing
            control.sendall(marshal.dumps(order))
        return control, outputs

    def end_command(self) -> None:
        """End the running command, if any; called from another thread than the one that waits for it."""
        reading = self._reading
        # It may end by itself meanwhile; then there is nothing left to end.
        if reading is not None:
            reading.hurry()

    def _end_all(self) -> None:
        """End the supervisor and everything below it, after a command stopped its guard."""
        if sys.platform != "win32":
            from codingagent.process import supervisor

            if self._supervisor is None:
                return
            pid = self._supervisor[0].pid

            def living() -> set[int]:
                return supervisor.living(supervisor.tree(pid))

            # Between two reads a process may end and its child move up, so look twice.
            supervisor.kill_all(lambda: living() or living())
            self._supervisor[0].kill()
            self.close()

    def _hand_over(self, handles: list[int]) -> None:
        """Pass a command's handles to the supervisor; start it first if it is not running."""
        if sys.platform != "win32":
            from codingagent.process import supervisor

            for _ in range(2):
                self.start()
                assert self._supervisor is not None, "it was just started"
                process, agent = self._supervisor
                if supervisor.hand_on(process.pid, agent, handles):
                    return
                self.close()
            raise WorkError("the process that starts commands does not respond")


def editor_of(variables: Variables) -> str:
    default = "notepad" if os.name == "nt" else "vi"
    return variables.get("VISUAL") or variables.get("EDITOR") or default


def open_editor(path: Path) -> None:
    """Open a file in the editor that VISUAL or EDITOR names, and wait for it; UsageError if that fails."""
    editor = editor_of(os.environ)
    try:
        # A Python of Microsoft's store has its own AppData, and so its own TEMP: others see them elsewhere.
        words = [*programs.command_line(editor), os.path.realpath(path)]
        status = subprocess.run(words, check=False).returncode
    except (OSError, UsageError) as fault:
        raise UsageError(f"the editor {fault}; set EDITOR") from fault
    if status:
        raise UsageError(f"the editor {editor!r} ended with exit code {status}: nothing was done")


def run_in_terminal(argv: Sequence[str], variables: Variables) -> int:
    """Run a program of the person's, which gets the terminal and Ctrl-C; return its exit code."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be ignored there, too
    try:
        with disk_errors(f"{argv[0]} can't be started"):
            return subprocess.run(argv, env=dict(variables), check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


class Transport:
    """A program that carries a connection, such as `ssh HOST codingagent serve --stdio`.

    Its standard input and output are one connection, `connection` our end; its errors go where ours go.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.connection, theirs = socket.socketpair()
        try:
            # One that is named by a path is the person's choice.
            is_path = os.path.dirname(argv[0])
            program = argv[0] if is_path else programs.find_program(argv[0])
            if program is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            handle = subprocess.PIPE if sys.platform == "win32" else theirs.fileno()
            self._process = subprocess.Popen(
                [program, *argv[1:]],
                stdin=handle,
                stdout=handle,
                # What it starts may be a server, which runs commands.
                env=programs.persons_variables(),
            )
            if self._process.stdin and self._process.stdout:
                from codingagent.process import windows

                windows.carry(theirs.dup(), self._process.stdin, self._process.stdout)
        except (OSError, ValueError) as fault:
            self.connection.close()
            why = fault.strerror if isinstance(fault, OSError) else None
            raise WorkError(f"{argv[0]!r} can't be started: {why or fault}") from fault
        finally:
            theirs.close()

    def close(self) -> int:
        """Close the connection, wait for the program to end, terminate it if needed; return its exit code."""
        self.connection.close()
        for urge in (self._process.terminate, self._process.kill):
            try:
                return self._process.wait(_TRANSPORT_PATIENCE_S)
            except subprocess.TimeoutExpired:
                urge()
        return self._process.wait()


def run_tool(
    argv: Sequence[str],
    variables: Variables,
    data: bytes = b"",
    timeout_s: float = 600,
    handles: Sequence[int] = (),
) -> "subprocess.CompletedProcess[bytes]":
    """Run one of the agent's own tools (git, the clipboard) to its end; return exit code and both streams.

    `variables` are its whole environment. WorkError if it can't be started or does not end in time; it is
    killed then.
    """
    try:
        with disk_errors(f"{argv[0]} can't be started"):
            return subprocess.run(
                argv,
                input=data,
                capture_output=True,
                env=dict(variables),
                timeout=timeout_s,
                check=False,
                # A Ctrl-C on the terminal is for the agent and must not interrupt the tool.
                start_new_session=sys.platform != "win32",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                pass_fds=handles,
            )
    except subprocess.TimeoutExpired as fault:
        raise WorkError(f"{argv[0]} did not end within {timeout_s:g} s") from fault
