"""Helper process that spawns commands and reaps their whole process tree.

The agent starts it once, with `python -I -S` and a socket as standard input. It stays single-threaded, so
that it can fork at any time, and imports little: `json`, `re` and `typing` alone cost as much as Python's own
start.

    agent ── supervisor ── guard ── /bin/sh -c … ── its children
                          └──── guard, waiting for the next command

Guard and supervisor are subreapers: a process that calls setsid or forks twice becomes the guard's child. The
guard ends the whole tree when the command has ended, its time is up, or its control socket closes: the agent
says so, or is gone. If a command kills its guard, the supervisor ends the rest. If it stops guard or
supervisor, the agent ends them all when the time is up; if the agent is killed meanwhile, the kernel wakes
the supervisor (PR_SET_PDEATHSIG). Without subreapers (macOS), a process that left the process group and lost
its parent is missed. In a sandbox none of these can be reached, and everything inside ends with the sandbox's
program.
"""

import contextlib
import ctypes
import marshal
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache

from codingagent.process import memory

assert sys.platform != "win32"

from codingagent.process.mounts import Gate, Slot, moved_up  # noqa: E402  # the type checker stops above

TYPE_CHECKING = False  # as in `typing`
if TYPE_CHECKING:
    from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A stopped tree can't outrun the killing; this allows for kernels that are slow to reap.
_KILL_PATIENCE_S = 5.0
# How often the guard measures the command: at most a fifth of its own time.
_LOOK_EVERY_S = 0.05
_REST = 4
_OPEN_FILES_LIMIT = 4096
# More than come with any command.
_MOST_HANDLES = 8
# At most so many ended children are read from the wakeup pipe at once.
_WAKEUPS = 4096
# Every shell can write to a single-digit descriptor.
_STATUS_HANDLE = 3
_GATE_HANDLE = 4


def main() -> "NoReturn":
    """Serve the agent on standard input until it closes; then end."""
    agent = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    wakeup = _become_watcher()
    guards: set[int] = set()
    spare = _fork_guard(agent, guards)
    while True:
        ready, _, _ = select.select([agent.fileno(), wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, _WAKEUPS)
            ended = _reap_all()
            guards.difference_update(ended)
            kill_all(lambda: set(_children(os.getpid())) - guards, ended)  # called at once
        if agent.fileno() in ready:
            handles = _receive_handles(agent)
            if not handles:
                # The agent is gone. Each guard notices by itself, but a command may have stopped it.
                kill_all(lambda: tree(os.getpid()), {})
                os._exit(0)  # nothing is left to tear down
            while not hand_on(*spare, handles):
                spare[1].close()
                spare = _fork_guard(agent, guards)
            spare[1].close()
            for handle in handles:
                os.close(handle)
            # Fork the next guard while this command runs, so that no command waits for a fork.
            spare = _fork_guard(agent, guards)


def _fork_guard(agent: socket.socket, guards: set[int]) -> tuple[int, socket.socket]:
    """Fork a guard that waits for a command; add its pid to `guards`; return it and its socket."""
    ours, theirs = socket.socketpair()
    if pid := os.fork():
        theirs.close()
        guards.add(pid)
        return pid, ours
    # The guard runs one command to its end, and never returns into the supervisor's loop.
    agent.close()
    ours.close()
    status = 1
    try:
        wakeup = _become_watcher()
        control_handle, *handles = _receive_handles(theirs) or [-1]
        if control_handle >= 0:
            control = socket.socket(fileno=control_handle)
            with contextlib.suppress(EOFError):  # the agent is gone
                order = marshal.load(control.makefile("rb"))  # noqa: S302  # of the agent alone
                slot = Slot(order["layer"], order["layer_bytes"])
                report = _run(order, control, wakeup, tuple(handles), slot)
                slot.release()
                ended_by = report.get("ended_by")
                if ended_by == "layer_limit":
                    slot.settle(was_killed=True)
                # The agent may be gone; then there is no one to tell. Nobody waits for what follows.
                with contextlib.suppress(OSError):
                    control.sendall(f"{report!r}\n".encode())
                slot.settle(was_killed=ended_by != "itself")
        status = 0
    finally:
        # Whatever went wrong, this copy of the supervisor must not live on.
        kill_all(lambda: tree(os.getpid()), {})
        os._exit(status)


def hand_on(pid: int, way: socket.socket, handles: list[int]) -> bool:
    """Pass a command to a guard or supervisor; return False if an earlier command killed that process."""
    _signal(pid, signal.SIGCONT)  # or stopped it
    try:
        socket.send_fds(way, [b"c"], handles)
        # macOS may lose handles that their sender closes before they are received.
        return bool(way.recv(1))
    except OSError:
        return False


def _receive_handles(agent: socket.socket) -> list[int]:
    """Return the control socket, output pipe, folder and other handles of one command; empty at the end."""
    message, handles, _, _ = socket.recv_fds(agent, 1, _MOST_HANDLES)
    for handle in handles:
        os.set_inheritable(handle, False)  # received descriptors would survive exec
    with contextlib.suppress(OSError):  # the sender is gone
        agent.send(message)
    return handles if message else []


def _run(
    order: "dict[str, Any]", control: socket.socket, wakeup: int, handles: tuple[int, ...], slot: Slot
) -> dict[str, object]:
    """Start the command, wait for its end, end all that it left running; return the report."""
    started = time.monotonic()
    deadline = math.inf if order["timeout_s"] is None else started + order["timeout_s"]
    look_at = started + _LOOK_EVERY_S
    status, theirs = os.pipe()
    gate = Gate() if order["mounts"] else None
    try:
        pid = _start(order, handles, theirs, gate)
    except OSError as fault:
        return {"failure": fault.strerror or str(fault)}
    finally:
        for handle in (*handles, theirs):
            os.close(handle)
    listened = [control.fileno(), wakeup]
    if gate is not None:
        listened.append(gate.prepare(lambda: _children(pid)[0], order["mounts"], slot.path))
    ended_by, failure = "itself", ""
    ended: dict[int, int] = {}
    while ended_by == "itself" and not failure:
        left = max(min(deadline, look_at) - time.monotonic(), 0)
        ready, _, _ = select.select(listened, [], [], left)
        if wakeup in ready:
            os.read(wakeup, _WAKEUPS)
        ended.update(_reap_all())
        if pid in ended:
            break
        if gate is not None and listened[-1] in ready:
            listened.pop()
            failure, gate = gate.open(), None
        now = time.monotonic()
        if control.fileno() in ready:
            ended_by = "agent"
        elif now >= deadline:
            ended_by = "time_limit"
        elif now >= look_at:
            ended_by = memory.exceeded(tree(os.getpid()), order["memory_bytes"])
            if slot.is_full():
                ended_by = "layer_limit"
            done_at = time.monotonic()
            look_at = done_at + max(_LOOK_EVERY_S, _REST * (done_at - now))
    took = time.monotonic() - started
    code = ended.get(pid)
    stopped = kill_all(lambda: tree(os.getpid(), pid), ended) - {pid}
    if failure:
        return {"failure": failure}
    has_begun, left_running = _told(status)
    return {
        "code": ended.get(pid, -signal.SIGKILL) if code is None else code,
        "ended_by": ended_by,
        "stopped": left_running if order["mounts"] else len(stopped),
        "has_begun": has_begun or not order["mounts"],
        "alive": len(living(stopped)),
        "took_s": took,
    }


def _start(order: "dict[str, Any]", handles: tuple[int, ...], status: int, gate: Gate | None) -> int:
    """Start the command; return its pid. Folder and limits are the guard's own: posix_spawn sets none."""
    output, folder, *more = handles
    errors = more.pop(0) if order["parts_streams"] else output
    actions = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
    if order["mounts"]:
        # Move them first: one of ours may have the number that is wanted.
        more = [moved_up(handle) for handle in more]
        actions.append((os.POSIX_SPAWN_DUP2, status, _STATUS_HANDLE))
    if gate is not None:
        actions.append((os.POSIX_SPAWN_DUP2, gate.entry, _GATE_HANDLE))
    for handle in more:
        os.set_inheritable(handle, True)
    # A number is an index into the handles that came along.
    words = [str(more[word]) if isinstance(word, int) else word for word in order["argv"]]
    os.fchdir(folder)
    # A core dump would be in the workspace, and an endless file would fill the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, memory.FILE_LIMIT_BYTES)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_LIMIT)
    score = memory.put_score(memory.ENDED_FIRST)
    pid = os.posix_spawn(
        words[0],
        words,
        order["variables"],
        file_actions=actions,
        setsid=True,
        setsigdef=[signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ],
    )
    memory.put_score(score)
    return pid


def _limit(resource_: int, value: int) -> None:
    """Lower a limit; keep one that is lower already."""
    _, highest = resource.getrlimit(resource_)
    if highest == resource.RLIM_INFINITY or highest > value:
        resource.setrlimit(resource_, (value, highest))


def _told(status: int) -> tuple[bool, int]:
    """Return whether the command in a sandbox began, and how much it left running, which it may fake."""
    os.set_blocking(status, False)
    try:
        words = os.read(status, 100).split()
    except BlockingIOError:
        return False, 0
    finally:
        os.close(status)
    count = words[1] if len(words) > 1 else b"0"
    return words[:1] == [b"+"], min(int(count), memory.PROCESS_LIMIT) if count.isdigit() else 0


# --- ending processes ------------------------------------------------------------------------------
def kill_all(find: Callable[[], Iterable[int]], ended: dict[int, int] | None = None) -> set[int]:
    """Stop, then kill, all processes that `find()` returns, until it returns none; return those found alive.

    A stopped process can't fork away. One that has ended but is not reaped still counts: its last child may
    just have been adopted. `ended` receives the exit code of each child reaped meanwhile; None reaps no
    child.
    """
    deadline = time.monotonic() + _KILL_PATIENCE_S
    pause_s = 0.0
    alive: set[int] = set()
    while True:
        if ended is not None:
            ended.update(_reap_all())
        pids = list(find())
        if not pids or time.monotonic() > deadline:
            return alive
        alive.update(living(pids))
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                _signal(pid, number)
        time.sleep(pause_s)
        # Start short: a dying process mostly takes less than a millisecond.
        pause_s = min(pause_s * 1.2 + 0.00005, 0.02)


def _signal(pid: int, number: int) -> None:
    # Gone already, or another user's, which the report counts as alive.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def tree(root: int, adopted: int | None = None) -> list[int]:
    """Return all descendants, ended ones too; without subreapers, the group `adopted` as well."""
    children_of = _children
    if not _has_proc():
        below: dict[int, list[int]] = {}
        for child, parent, group in _ps():
            below.setdefault(root if group == adopted else parent, []).append(child)
        children_of = lambda pid: below.get(pid, [])  # noqa: E731
    found: list[int] = []
    todo = [root]
    while todo:
        children = children_of(todo.pop())
        found.extend(children)
        todo.extend(children)
    return found


@cache
def _has_proc() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def _children(pid: int) -> list[int]:
    """Return a process's children, including ended ones; none without /proc, where none are adopted."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it ended meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(map(int, file.read().split()))
    return found


def living(pids: Iterable[int]) -> set[int]:
    """Return those processes that have not ended, reaped or not."""
    if not _has_proc():
        return {pid for pid, _, _ in _ps()}.intersection(pids)
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] not in "ZX":
                found.add(pid)
    return found


def _ps() -> Iterable[tuple[int, int, int]]:
    import subprocess

    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        lines = listing.stdout.readlines()
    for line in lines:
        pid, parent, group, state = line.split(None, 3)
        # ps lists itself too, as a new child of ours each time.
        if int(pid) != listing.pid and not state.startswith("Z"):
            yield int(pid), int(parent), int(group)


def _reap_all() -> dict[int, int]:
    """Reap every child that has ended; return exit codes by pid, negative for signals."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):  # none is left
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


# --- helpers ---------------------------------------------------------------------------------------
def _become_watcher() -> int:
    """Adopt orphaned descendants; return a descriptor that becomes readable when a child ends.

    The kernel wakes this process when its parent ends; SIGKILL would leave processes stopped but not killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable
