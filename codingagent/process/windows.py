"""Run commands on Windows: by cmd.exe, in a job object that ends everything a command started.

There is no supervisor there: this takes its place. What is text here (command line, script, folder,
code page) is computed on every system; what asks the system stands in branches of `sys.platform`.
"""

import contextlib
import os
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from io import RawIOBase
from pathlib import Path, PureWindowsPath
from typing import IO, Protocol

from codingagent.model.observations import Extras
from codingagent.process import memory
from codingagent.process.output import CHUNK_BYTES

Variables = Mapping[str, str]

# How often to look whether the command is to be ended.
_LOOK_UP_S = 0.2

# How long to wait for what was printed last: a process that is no part of the command may keep its pipes.
_COPY_PATIENCE_S = 1.0

# A command of a line: what may come before its name, the name, and all up to the next command.
_COMMAND = re.compile(
    r"""(?P<before>(?:[\s@(]|else\b|for\s.+?\sdo\b|if(?:\s+/i)?(?:\s+not)?\s+(?:
        (?:exist|defined|errorlevel)\s+{word} | {word}(?:\s*==\s*|\s+[a-z]{{3}}\s+){word})\s)*)
    (?P<name>"[^"]+"|[^\s"&|<>()=,;]*)
    (?P<rest>(?:"[^"]*"?|\^.|[<>]&|\)(?!\s*else\b)|[^"&|)])*(?:\)|[&|]+)?)""".format(
        word=r"""(?:"[^"]*"|[^\s"()&|=])+"""
    ),
    re.IGNORECASE | re.VERBOSE,
)

# The variables that a command sets: `set a=`, `set /a a+=1,b=`.
_SET = re.compile(r"""(?:\bset\s*(?:/[ap])?\s*"?|,\s*)([^\s",=%]*[\w)])\W{0,4}=""", re.IGNORECASE)


class Job(Protocol):
    """A command, and all that it started."""

    process: "subprocess.Popen[bytes]"

    def end(self) -> int:
        """End everything in it, for good; return how many processes that were."""
        ...


def system_program(name: str) -> str:
    """Return the path of a program of Windows: by its bare name, one in the current folder would run."""
    return str(PureWindowsPath(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", name))


def command_line(command: str) -> str:
    r"""Return the command line that has cmd.exe run one line as it stands.

    `/s` takes off the outer quotes and nothing else. subprocess would write `\"` for each quote in a
    list, which cmd does not know.
    """
    return f'"{system_program("cmd.exe")}" /d /s /c "{command}"'


def script(command: str, is_batch_file: Callable[[str], bool], variables: Collection[str]) -> bytes:
    """Return a batch file that runs a command of several lines: `cmd /c` stops after the first.

    A batch file that calls another one (npm is one) by its name alone never comes back from it: such
    a command gets a `call`. A percent sign that names no variable stays as it is, as on one line.
    """
    names = "|".join(map(re.escape, (*variables, *_SET.findall(command), "cd", "date", "time")))
    arguments = r"\*|(?:~[a-z]*)?\d" if re.search(r"^\s*:\w", command, re.MULTILINE) else "%"
    kept = re.compile(
        rf"%(?:%|(?:(?i:{names}|errorlevel|random)|[A-Z_]{{3,}}\w*)(?::[^%\n]*)?%|{arguments})?"
    )
    is_looped = re.search(r"\bfor\s", command, re.IGNORECASE)

    def called(found: re.Match[str]) -> str:
        before, name, rest = found.groups()
        if name and is_batch_file(name.strip('"')):
            # `call` reads them once more, but for what a loop has put in.
            rest = rest if is_looped else rest.replace("%%", "%%%%")
            return f"{before}call {name}{rest}"
        return found[0]

    command = kept.sub(lambda found: found[0] if found[0] != "%" else "%%", command)
    lines = ("@echo off", f"{system_program('chcp.com')} 65001 >nul", *command.split("\n"))
    return "".join(f"{_COMMAND.sub(called, line).rstrip()}\r\n" for line in lines).encode()


def is_batch_file(name: str, variables: Variables, folder: str) -> bool:
    """Return whether cmd.exe would run a batch file for this name."""
    return _program(name, variables, folder).lower().endswith((".bat", ".cmd"))


def searched(command: str, variables: Variables) -> dict[str, str]:
    """Return variables with which cmd.exe prefers a program on PATH to a git.bat in the current folder."""
    first = command.split(None, 1)[0].strip('"') if command.strip() else ""
    is_on_path = bool(first) and not re.search(r"[\\/:]", first) and _program(first, variables)
    return {**variables, **({"NoDefaultCurrentDirectoryInExePath": "1"} if is_on_path else {})}


def _program(name: str, variables: Variables, *folders: str) -> str:
    """Return the file that cmd.exe would run for a name, looking in some folders before PATH; or nothing."""
    known = [*filter(None, variables.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";"))]
    endings = [""] if os.path.splitext(name)[1].lower() in known else known
    places = variables.get("PATH", "").split(os.pathsep) if not re.search(r"[\\/:]", name) else []
    folders = (*folders, *places)
    paths = (os.path.join(each, name + ending) for each in folders for ending in endings)
    return next(filter(os.path.isfile, paths), "")


def start(
    stack: contextlib.ExitStack,
    command: str,
    folder: str,
    variables: Variables,
    memory_bytes: int | None,
    extras: Extras,
) -> Job:
    """Start a command, with a script that `stack` removes; OSError."""
    if folder.startswith("\\\\"):
        why = f"a network folder ({folder}): map it to a drive letter first"
        raise OSError(f"cmd.exe does not work in {why}")
    command = command.strip("\r\n")  # it would end before a line that begins with one
    environment = searched(command, {**variables, **extras.variables})
    line = command_line(command)
    if "\n" in command:
        scratch = tempfile.TemporaryDirectory(prefix="ca-", ignore_cleanup_errors=True)
        place = Path(stack.enter_context(scratch), "run.cmd")
        finds = partial(is_batch_file, variables=environment, folder=folder)
        place.write_bytes(script(command, finds, environment))
        line = command_line(f'"{place}"')
    return _started(line, folder, environment, memory_bytes, extras)


def guarded(job: Job, control: socket.socket, timeout_s: float | None) -> list[RawIOBase]:
    """Guard a command as the supervisor does, in a thread that reports on `control`; return its outputs."""
    outputs, copying = list[RawIOBase](), list[threading.Thread]()
    for pipe in (job.process.stdout, job.process.stderr):
        if pipe is not None:  # only of sockets can Windows tell which has something to read
            ours, theirs = socket.socketpair()
            copying.append(threading.Thread(target=_copy, args=(pipe, theirs), daemon=True))
            with ours:
                outputs.append(ours.makefile("rb", 0))
    guard = threading.Thread(target=_guard, args=(job, control, timeout_s, copying), daemon=True)
    for thread in (*copying, guard):
        thread.start()
    return outputs


def _guard(
    job: Job, control: socket.socket, timeout_s: float | None, copying: list[threading.Thread]
) -> None:
    started = time.monotonic()
    report = {"ended_by": "itself", "has_begun": True, "alive": 0}
    while job.process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.process.wait(_LOOK_UP_S)
        if select.select([control], [], [], 0)[0]:
            report["ended_by"] = "agent"
            break
        if timeout_s is not None and time.monotonic() > started + timeout_s:
            report["ended_by"] = "time_limit"
            break
    report["took_s"] = time.monotonic() - started
    is_over = job.process.poll() is not None
    # Also what the command left running, which may hold the pipes open.
    report["stopped"] = job.end() * is_over
    report["code"] = job.process.wait()
    for thread in copying:
        thread.join(_COPY_PATIENCE_S)
    with control, contextlib.suppress(OSError):  # nobody may listen any more
        control.sendall(f"{report!r}\n".encode())


def _copy(pipe: IO[bytes], connection: socket.socket) -> None:
    with contextlib.suppress(OSError), pipe, connection:
        while piece := os.read(pipe.fileno(), CHUNK_BYTES):
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_RDWR)


def carry(connection: socket.socket, to_program: IO[bytes], from_program: IO[bytes]) -> None:
    """Carry what comes on a connection to a program, and back: a socket is no standard input there."""

    def send() -> None:
        with contextlib.suppress(OSError), to_program:
            while piece := connection.recv(CHUNK_BYTES):
                to_program.write(piece)
                to_program.flush()

    threading.Thread(target=send, daemon=True).start()
    threading.Thread(target=_copy, args=(from_program, connection), daemon=True).start()


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _SUSPENDED = 0x4
    _EXTENDED_LIMITS, _ACCOUNTING = 9, 1
    _LIMITS = 0x2000 | 0x8 | 0x200  # kill on close, number of processes, memory of the job

    # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: two times; flags, two sizes, how many processes, a mask, two
    # classes; six counters; two limits of memory, two peaks.
    _LIMITS_FORM = "2q INNINII 6Q 2N2N"
    # JOBOBJECT_BASIC_ACCOUNTING_INFORMATION: four times, page faults, processes in all, active, ended.
    _ACCOUNTING_FORM = struct.Struct("4q 4I")

    class _JobObject:
        """A job object: what is started in it can't leave it, and ends with it."""

        def __init__(self, memory_bytes: int | None) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
            most = memory_bytes or 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1
            numbers = (0, 0, _LIMITS, 0, 0, memory.PROCESS_LIMIT, 0, 0, 0, *[0] * 6, 0, most, 0, 0)
            limits = struct.pack(_LIMITS_FORM, *numbers)
            put = self._kernel.SetInformationJobObject
            self._check(put(self._handle, _EXTENDED_LIMITS, limits, len(limits)))

        def take(self, process: "subprocess.Popen[bytes]") -> None:
            """Put a suspended process into the job, then let it go."""
            self.process = process
            process_handle = process._handle  # type: ignore[attr-defined]  # noqa: SLF001  # what Popen waits for
            handle = wintypes.HANDLE(int(process_handle))
            self._check(self._kernel.AssignProcessToJobObject(self._handle, handle))
            ctypes.WinDLL("ntdll").NtResumeProcess(handle)

        def end(self) -> int:
            found, active = ctypes.create_string_buffer(_ACCOUNTING_FORM.size), 0
            ask = self._kernel.QueryInformationJobObject
            for _ in range(10):
                ask(self._handle, _ACCOUNTING, found, len(found), None)
                active = _ACCOUNTING_FORM.unpack(found)[6]
                if not active:
                    break
                time.sleep(0.01)  # the console's own process ends a moment after the command
            self._kernel.TerminateJobObject(self._handle, 1)
            self._kernel.CloseHandle(self._handle)
            return active

        @staticmethod
        def _check(done: int) -> None:
            if not done:
                raise ctypes.WinError(ctypes.get_last_error())


def _started(line: str, folder: str, variables: Variables, memory_bytes: int | None, extras: Extras) -> Job:
    if sys.platform == "win32":
        job = _JobObject(memory_bytes)
        process = subprocess.Popen(
            line,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if extras.parts_streams else subprocess.STDOUT,
            # Suspended: nothing can start outside of the job. A console of its own: Ctrl-C is for us,
            # and `chcp` changes nothing of the person's.
            creationflags=_SUSPENDED | subprocess.CREATE_NO_WINDOW,
        )
        try:
            job.take(process)
        except OSError:
            process.kill()
            job.end()
            raise
        return job
    raise NotImplementedError
