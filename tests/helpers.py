"""What several tests need: waiting, finding processes, swapping names, and a live session."""

import contextlib
import contextvars
import ctypes
import hashlib
import io
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import hypothesis
import pytest
from msgspec.structs import replace

import codingagent
from codingagent.agent import context, factory
from codingagent.agent.conversation import Conversation
from codingagent.checkpoints.checkpointer import git_for
from codingagent.cli import main
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import ApprovalAsked, Protocol, Record
from codingagent.model.notices import Notice
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.storage import homes
from codingagent.workspace.dirfd import Folder
from codingagent.workspace.workspace import Workspace
from tests import warm

REPOSITORY = Path(codingagent.__file__).parents[1]

# How long a test waits for what must come before it gives up. It says nothing about how fast anything
# is: a machine that is five times oversubscribed never gets near it.
HANG_S = 120.0


def fewer_examples(share: int) -> hypothesis.settings:
    """Return settings for a property whose examples cost much: a share of those of the profile."""
    return hypothesis.settings(max_examples=hypothesis.settings().max_examples // share)


# --- waiting ---------------------------------------------------------------------------------------


def wait_until(condition: Callable[[], bool]) -> None:
    """Look whether a condition holds, soon and then less often; fail where it never does."""
    pause, pause_s = threading.Event(), 0.003
    give_up_at = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < give_up_at, f"not so within {HANG_S:g} s"
        pause.wait(pause_s)
        pause_s = min(pause_s * 1.1, 0.02)


# --- what work costs ---------------------------------------------------------------------------------

_STEPS = 50_000


def million_steps_s() -> float:
    """Return what a million steps of a plain loop cost of this process's CPU, here and now."""
    begun_at, total = time.process_time(), 0
    for number in range(_STEPS):
        total += number
    return (time.process_time() - begun_at) * 1_000_000 / _STEPS


@contextlib.contextmanager
def cpu_below(million_steps: float) -> Iterator[None]:
    """Fail if the block costs more CPU than a loop of so many million steps.

    The loop is measured before and after the block, so that neither a slow nor a busy machine matters;
    the slower one counts, for a processor may share its core now and then. The limits are far above
    what linear work costs, and far below a square.
    """
    before_s = million_steps_s()
    begun_at = time.process_time()
    yield
    used_s = time.process_time() - begun_at
    assert used_s < million_steps * max(before_s, million_steps_s(), million_steps_s())


def calls_of(function: Callable[..., object], work: Callable[[], object]) -> int:
    """Return how often some work calls a function of Python, in the threads that it starts, too."""
    assert isinstance(function, FunctionType)
    code, count = function.__code__, 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is code

    before, of_threads = sys.getprofile(), threading.getprofile()
    sys.setprofile(look)
    threading.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(of_threads)
    return count


def grows_with(size: int, work: Callable[[int], object]) -> None:
    """Fail unless work on four times the size costs about four times the CPU; a square costs sixteen."""

    def cost_s(of_size: int) -> float:
        begun_at = time.process_time()
        work(of_size)
        return time.process_time() - begun_at

    short_s = long_s = math.inf
    for _ in range(5):  # whatever else the machine does only ever adds to it
        short_s = min(short_s, cost_s(size), cost_s(size))
        long_s = min(long_s, cost_s(4 * size))
        if long_s < 9 * short_s + 0.2 * million_steps_s():
            return
    raise AssertionError(f"{long_s / short_s:.1f} times as much")


# --- processes -------------------------------------------------------------------------------------


def new_marker() -> str:
    """Return a number that `sleep` takes for a day and that no other process has in its arguments."""
    return f"86400.{uuid.uuid4().int % 10**15:015d}"


def processes_with(marker: str) -> set[int]:
    """Return the living processes that have a marker in their arguments or their environment."""
    word, own = marker.encode(), os.getpid()
    # One that is a zombie, or the system's, has no arguments.
    return {
        pid
        for pid in _processes()
        if pid != own
        and (words := _of_process(pid, "cmdline"))
        and (word in words or word in _of_process(pid, "environ"))
    }


def _processes() -> Iterator[int]:
    return map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208  # half of the time


def _of_process(pid: int, name: str) -> bytes:
    """Return a file of a process's; nothing once it is gone. A path object costs as much again."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb", 0) as file:  # noqa: PTH123
        return file.read()
    return b""


def is_zombie(pid: int) -> bool:
    return _stat(pid)[0] in "ZX"


def children(pid: int) -> set[int]:
    """Return a process's children, zombies too."""
    found = set()
    for each in _processes():
        with contextlib.suppress(OSError):
            if int(_stat(each)[1]) == pid:
                found.add(each)
    return found


def descendants(pid: int) -> set[int]:
    """Return a process's children, theirs, and so on."""
    found = children(pid)
    return found.union(*map(descendants, found))


def descriptors(pid: int | str = "self") -> list[str]:
    """Return what a process has open, sorted; nothing where the system does not tell."""
    folder = Path(f"/proc/{pid}/fd")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def open_files() -> set[tuple[str, str]]:
    """Return what this process has open, each by its number and what it leads to."""
    found = set()
    for number in descriptors():
        with contextlib.suppress(FileNotFoundError):  # the list's own, and what a thread closes meanwhile
            found.add((number, str(Path(f"/proc/self/fd/{number}").readlink())))
    return found


def _stat(pid: int) -> list[str]:
    if not (text := _of_process(pid, "stat").decode("utf-8", "replace")):
        raise ProcessLookupError(pid)
    return text.rpartition(")")[2].split()


@contextlib.contextmanager
def none_left(marker: str) -> Iterator[None]:
    """Fail if a process with the marker lives on after the block, and end what does."""
    try:
        yield
        wait_until(lambda: not processes_with(marker))
    finally:
        for pid in processes_with(marker):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def python(program: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a Python program beside the test, its output on a pipe; it is killed at the end."""
    process = warm.start(program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_from(process: "subprocess.Popen[bytes]") -> str:
    """Waits for one line of a process's output."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def run_here(
    *words: str,
    folder: Path | None = None,
    stdin: bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run `codingagent …` to its end in this process, which costs no start; its streams are pipes.

    For what is no matter of processes, terminals or signals. Variables are those of the environment
    besides the usual; the empty one is none.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with pytest.MonkeyPatch.context() as set_:
        if folder is not None:
            set_.chdir(folder)
        for name, value in (variables or {}).items():
            set_.setenv(name, value) if value else set_.delenv(name, raising=False)
        if stdin is not None:
            set_.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                # As in a process of its own: what the command line remembers ends with it.
                status = contextvars.copy_context().run(main.run, list(words))
            except SystemExit as end:  # a shell that asks for completion gets it so
                status = int(end.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(words, status, *texts)


def command_line(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `codingagent --home HOME …` to its end in this process."""
    return run_here("--home", str(home), *words)


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "1m") -> Iterator[Callable[[str], object]]:
    """Mounts a small disk on a folder, which is made; yields what mounts it again, as "ro" or "rw"."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o"]
    words = [*mount, f"size={size}", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can't be mounted here: that needs root")
    try:
        yield lambda how: subprocess.check_call([*mount, f"remount,{how}", "none", str(folder)])
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


# --- races -----------------------------------------------------------------------------------------

# linux/fs.h
RENAME_EXCHANGE = 2

_SWAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
a, b = map(os.fsencode, sys.argv[1:])
print("ready", flush=True)
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


def can_swap(folder: Path) -> bool:
    """Return whether this system and disk can exchange two names at once."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "renameat2"):
        return False
    first, second = folder / "swap-1", folder / "swap-2"
    first.touch()
    second.touch()
    done = library.renameat2(-100, bytes(first), -100, bytes(second), RENAME_EXCHANGE)
    first.unlink()
    second.unlink()
    return bool(done == 0)


@contextlib.contextmanager
def swapping(first: Path, second: Path) -> Iterator[None]:
    """Exchanges two names, over and over and as fast as can be, while the block runs."""
    with python(_SWAPPER, str(first), str(second)) as process:
        assert line_from(process) == "ready"
        yield


# --- the workspace without handles -----------------------------------------------------------------


def open_by_name(root: Path) -> Folder:
    return Folder(os.fspath(root))


class NamedWorkspace(Workspace):
    """A workspace as it is on systems that have no handles on folders."""

    def __init__(self, root: Path, hidden: tuple[Path, ...] = ()) -> None:
        super().__init__(root, hidden, open_by_name)


# --- the agent -------------------------------------------------------------------------------------


Told = Notice | Record
"""What a person is shown."""


def watcher(
    notices: list[Told],
    ask: Callable[[ApprovalAsked], Answer | None] = lambda _: None,
    approves_all: bool = False,
) -> context.Person:
    """Return a person, and what they are shown in a list."""
    return context.Person(notices.append, ask, approves_all, record=lambda record, _: notices.append(record))


class LiveSession:
    """A home with one session in it whose agent is at work; what it said is in `notices`."""

    work: factory.OpenSession

    def __init__(self, home: homes.Home, session_id: str, agent: Conversation) -> None:
        self.home = home
        self.session_id = session_id
        self.conversation = agent
        self.notices: list[Told] = []

    @property
    def workspace(self) -> Path:
        return self.home.root / "workspace"

    def drop(self, reply: str | bytes, name: str = "reply.txt") -> None:
        """Lays a reply in the inbox."""
        data = reply.encode() if isinstance(reply, str) else reply
        (self.home.mailbox.inbox / name).write_bytes(data)

    def answer(self, reply: str | bytes, name: str = "reply.txt") -> str:
        """Has a reply taken, and gives the results that the next request tells of."""
        self.drop(reply, name)
        self.conversation.take(name)
        return self.results()

    def results(self) -> str:
        """Return what the latest request says of the previous commands."""
        text = self.request()
        _, found, rest = text.partition("## Previous Command Results\n")
        assert found, "the request has results"
        return rest.partition("\n\n")[0]

    def contents(self) -> str:
        """Return the section of the latest request that holds file contents."""
        return self.request().partition("## Requested File Contents\n")[2].partition("\n\n##")[0]

    def request(self, sequence: int | None = None) -> str:
        """Return a request's text; the latest unless said."""
        number = self.conversation.session.sequence if sequence is None else sequence
        name = f"{self.session_id}_seq{number:04d}.txt"
        return (self.home.mailbox.outbox / name).read_text("utf-8", "surrogateescape")

    def rejected(self) -> list[str]:
        """Return the names in `inbox/rejected/`, sorted."""
        folder = self.home.mailbox.rejected
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@contextlib.contextmanager
def conversation_in(
    home: homes.Home, session: Session, settings: Settings, person: context.Person
) -> Iterator[Conversation]:
    """Yield a session at work, ready to take answers."""
    with factory.session_in(home, session, settings, person) as work:
        yield work.conversation


@contextlib.contextmanager
def live_session(
    root: Path,
    task: str = "the task",
    settings: Settings | None = None,
    session_id: str = "",
    protocol: Protocol = "tags",
    person: context.Person | None = None,
    *,
    has_git: bool = True,
) -> Iterator[LiveSession]:
    """Starts a session in the home at `root`, or goes on with one, up to its next request."""
    chosen = settings or Settings()
    home = homes.Home.at(root, create=True)
    workspace = homes.workspace_of(root, chosen)
    if not has_git:
        use_no_git(workspace)
    begun = home.sessions.load(session_id) if session_id else None
    session = begun or factory.start_session(home, workspace, task, chosen, protocol)
    notices: list[Told] = []
    person = person or watcher(notices)
    with factory.session_in(home, session, chosen, person) as work:
        live = LiveSession(home, session.session_id, work.conversation)
        live.notices, live.work = notices, work
        work.conversation.recover()
        yield live


def use_no_git(workspace: Path) -> None:
    """Have a workspace used as where git is not installed: where its programs are is remembered."""
    with pytest.MonkeyPatch.context() as set_:
        set_.setenv("PATH", "")
        assert git_for(workspace) is None


@contextlib.contextmanager
def plain_session(root: Path, task: str = "the task", **others: Any) -> Iterator[LiveSession]:
    """Do as `live_session`, without git and sandbox: half of the time, for what has to do with neither."""
    settings = replace(others.pop("settings", None) or Settings(), sandbox="off")
    with live_session(root, task, settings, has_git=False, **others) as live:
        yield live


def forged_index(names: Iterable[bytes], blob: str = "0" * 40) -> bytes:
    """Return an index of git's with these names, which git itself would refuse to write."""
    head = struct.pack(">4sII", b"DIRC", 2, len(names := sorted(names)))
    for name in names:
        entry = struct.pack(">10I20sH", *6 * [0], 0o100644, 0, 0, 0, bytes.fromhex(blob), len(name))
        head += entry + name + bytes(8 - (len(entry + name)) % 8)
    return head + hashlib.sha1(head, usedforsecurity=False).digest()
