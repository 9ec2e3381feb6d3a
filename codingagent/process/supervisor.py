"""A program of its own: starts commands for the agent and sees to it that nothing of them is left.

How it works. The agent starts it once, with `python -I -S` and a socket as standard input. It stays
single-threaded and small, so that it can fork at any time. For each command it forks
a guard, the guard forks the command:

    agent ── supervisor ── guard ── /bin/sh -c … ── whatever that starts
                     └──── guard, waiting for the next command

Guard and supervisor are subreapers: what calls setsid or forks twice becomes the guard's child, not
init's, and is found. The guard ends the whole tree when the command has ended, when its time is up,
when the agent says so, and when the agent is gone: its end of the control socket then reads as
closed, whatever killed the agent. If a command kills its guard, the supervisor adopts and ends the
rest. If it stops guard or supervisor, the agent ends them all when the time is up; if the agent is
killed meanwhile, the kernel wakes the supervisor (PR_SET_PDEATHSIG), and each sees to the rest. Where there
are no subreapers (macOS), what left the process group and lost its parent is missed. In a sandbox with
processes of its own none of these can be reached; the command is then the sandbox's program, and all
that is in it ends with that.

Before that a sandbox waits at a gate, while a child of the guard mounts in it what the agent has looked at
(`mounts`).

It imports nothing else of the package: it must start at once.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import NoReturn

from codingagent.process import memory
from codingagent.process.mounts import mount_all

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# A tree that is stopped before it is killed can't outrun us; this is for kernels that are slow to reap.
_KILL_PATIENCE_S = 5.0

# More processes than this are a fork bomb; a machine must not go down for one.
PROCESS_LIMIT = 1000

# How often the guard looks at how much a command takes: of its own time a fifth at most.
_LOOK_EVERY_S = 0.05
_REST = 4

# A core dump would be in the workspace, and a file without end fill the disk.
_FILE_LIMIT_BYTES = 2 * 2**30
_OPEN_FILES_LIMIT = 4096

# Every shell can write to a handle of one digit.
_STATUS_HANDLE = 3
_GATE_HANDLE = 4
_ABOVE_STANDARD = 10

_LENGTH = struct.Struct("!I")

# What a mounter says that has done all.
_MOUNTED = "+"


def main() -> None:
    """Serve the agent on standard input until it closes."""
    agent = socket.socket(fileno=os.dup(0))
    _point_to_null(0)
    _become_subreaper()
    _wake_at_parents_end()
    wakeup = _wakeup_on_child()
    guards: set[int] = set()
    spare = _fork_guard(agent)
    guards.add(spare[0])
    while True:
        ready, _, _ = select.select([agent.fileno(), wakeup], [], [])
        if wakeup in ready:
            _drain(wakeup)
            ended = _reap_all()
            guards.difference_update(ended)
            kill_all(lambda: set(_children(os.getpid())) - guards, ended)  # called at once
        if agent.fileno() in ready:
            handles = _receive_handles(agent)
            if not handles:
                # The agent is gone. Each guard notices by itself, but a command may have stopped it.
                kill_all(lambda: tree(os.getpid()), {})
                return
            while not _hand_on(spare, handles):
                spare = _fork_guard(agent)
                guards.add(spare[0])
            for handle in handles:
                os.close(handle)
            # The next one is made now, while this command runs: nobody need wait for a fork.
            spare = _fork_guard(agent)
            guards.add(spare[0])


def _fork_guard(agent: socket.socket) -> tuple[int, socket.socket]:
    """Make a guard that waits for a command; return its pid and how to reach it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        agent.close()
        ours.close()
        _guard(theirs)
    theirs.close()
    return pid, ours


def _hand_on(guard: tuple[int, socket.socket], handles: list[int]) -> bool:
    """Return a command to a guard; False if a command before has killed that guard."""
    pid, way = guard
    with way:
        _signal(pid, signal.SIGCONT)  # or stopped it
        try:
            socket.send_fds(way, [b"c"], handles)
        except OSError:
            return False
    return True


def _receive_handles(agent: socket.socket) -> list[int]:
    """Return the control socket, the output pipe, the folder and more of one command; none at the end."""
    handles = array.array("i")
    room = socket.CMSG_SPACE(8 * handles.itemsize)
    message, ancillary, _, _ = agent.recvmsg(1, room)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    for handle in handles:
        os.set_inheritable(handle, False)  # a received descriptor would pass an exec
    return list(handles) if message else []


# --- the guard -------------------------------------------------------------------------------------


def _guard(way: socket.socket) -> NoReturn:
    """Run one command to its end and reports; never returns into the supervisor's loop."""
    status = 1
    try:
        _become_subreaper()
        _wake_at_parents_end()
        wakeup = _wakeup_on_child()
        control_handle, *handles = _receive_handles(way) or [-1]
        if control_handle >= 0:
            control = socket.socket(fileno=control_handle)
            order = _receive_order(control)
            if order is not None:
                _send(control, _run(order, control, wakeup, tuple(handles)))
        status = 0
    finally:
        # Whatever went wrong here, the copy of the supervisor must not live on.
        kill_all(lambda: _children(os.getpid()), {})
        os._exit(status)


def _receive_order(control: socket.socket) -> dict[str, object] | None:
    head = _receive_exactly(control, _LENGTH.size)
    body = _receive_exactly(control, _LENGTH.unpack(head)[0]) if head else b""
    return json.loads(body) if body else None


def _receive_exactly(control: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = control.recv(count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def _run(
    order: dict[str, object], control: socket.socket, wakeup: int, handles: tuple[int, ...]
) -> dict[str, object]:
    """Start the command, wait for its end, and ends all that it left; return the report."""
    started = time.monotonic()
    status, theirs = os.pipe()
    gate = _Gate() if order["mounts"] else None
    limit = order["timeout_s"]
    deadline = started + float(limit) if isinstance(limit, (int, float)) else None
    pid, failure = _start(order, handles, theirs, gate)
    for handle in (*handles, theirs):
        os.close(handle)
    if failure:
        os.close(status)
        return {"failure": failure}
    listened = [control.fileno(), wakeup]
    if gate is not None:
        listened.append(gate.prepare(pid, order["mounts"]))
    ended_by, code = "itself", None
    ended: dict[int, int] = {}
    most = order["memory_bytes"]
    assert most is None or isinstance(most, int)
    look_at = started + _LOOK_EVERY_S
    while code is None:
        left = _LOOK_EVERY_S if deadline is None else max(deadline - time.monotonic(), 0)
        until_look = max(look_at - time.monotonic(), 0)
        ready, _, _ = select.select(listened, [], [], min(left, until_look))
        if wakeup in ready:
            _drain(wakeup)
        ended.update(_reap_all())
        code = ended.get(pid)
        if code is not None:
            break
        if gate is not None and listened[-1] in ready:
            listened.pop()
            failure, gate = gate.open(), None
            if failure:
                break
        if control.fileno() in ready:
            ended_by = "agent"
        elif left == 0:
            ended_by = "time_limit"
        elif (looked_at := time.monotonic()) >= look_at and (exceeded := _exceeded(most)):
            ended_by = exceeded
        else:
            if looked_at >= look_at:
                done_at = time.monotonic()
                look_at = done_at + max(_LOOK_EVERY_S, _REST * (done_at - looked_at))
            continue
        break
    took = time.monotonic() - started
    stopped = kill_all(lambda: _tree_of_group(pid), ended) - {pid}
    if failure:
        return {"failure": failure}
    code = ended.get(pid, -signal.SIGKILL) if code is None else code
    has_begun, left_running = _told(status)
    return {
        "code": code,
        "ended_by": ended_by,
        "stopped": left_running if order["is_told"] else len(stopped),
        "has_begun": has_begun or not order["is_told"],
        "alive": sum(not is_zombie(other) for other in stopped),
        "took_s": took,
    }


def _exceeded(most: int | None) -> str:
    """Return the limit that the command's tree is beyond; nothing if there is none."""
    pids = tree(os.getpid())
    if len(pids) > PROCESS_LIMIT:
        return "process_limit"
    is_beyond = most is not None and memory.taken_bytes(pids, most) > most
    return "memory_limit" if is_beyond else ""


def _start(
    order: dict[str, object], handles: tuple[int, ...], status: int, gate: "_Gate | None"
) -> tuple[int, str]:
    """Start the command; return its pid, and why it could not be started, or nothing.

    The guard takes on its folder and limits first, so that nothing need be done between fork and exec:
    posix_spawn then copies no memory, which is most of what a fork of Python costs.
    """
    output, folder, *more = handles
    errors = more.pop(0) if order["parts_streams"] else output
    argv, environment = order["argv"], order["environment"]
    assert isinstance(argv, list)
    assert isinstance(environment, dict)
    actions = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
    if order["is_told"]:
        # Out of the way first: any of ours may have the number that is wanted.
        more = [_moved_up(handle) for handle in more]
        actions.append((os.POSIX_SPAWN_DUP2, status, _STATUS_HANDLE))
    if gate is not None:
        actions.append((os.POSIX_SPAWN_DUP2, gate.entry, _GATE_HANDLE))
    for handle in more:
        os.set_inheritable(handle, True)
    # A number stands for a handle that came along.
    words = [str(more[word]) if isinstance(word, int) else word for word in argv]
    try:
        os.fchdir(folder)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit(resource.RLIMIT_FSIZE, _FILE_LIMIT_BYTES)
        _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_LIMIT)
        score = memory.end_first()
        pid = os.posix_spawn(
            words[0],
            words,
            environment,
            file_actions=actions,
            setsid=True,
            setsigdef=[signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ],
        )
        memory.put_score(score)
    except OSError as fault:
        return 0, fault.strerror or str(fault)
    return pid, ""


def _moved_up(handle: int) -> int:
    return fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)


def _limit(resource_: int, value: int) -> None:
    """Lowers a limit; one that is lower already stays."""
    _, highest = resource.getrlimit(resource_)
    if highest == resource.RLIM_INFINITY or highest > value:
        resource.setrlimit(resource_, (value, highest))


def _told(status: int) -> tuple[bool, int]:
    """Return what the teller in a sandbox said: whether the command began, and what it left running.

    It sits beside the command, which may be through it: the count is a courtesy, and bounded.
    """
    os.set_blocking(status, False)
    try:
        words = os.read(status, 100).split()
    except BlockingIOError:
        return False, 0
    finally:
        os.close(status)
    count = words[1] if len(words) > 1 else b"0"
    return words[:1] == [b"+"], min(int(count), PROCESS_LIMIT) if count.isdigit() else 0


# --- the gate --------------------------------------------------------------------------------------


class _Gate:
    """A full pipe, which a sandbox reads to its end before it runs anything."""

    def __init__(self) -> None:
        entry, self._exit = os.pipe()
        self.entry = _moved_up(entry)
        os.close(entry)
        os.set_blocking(self._exit, False)
        # It can be written to again when, and only when, the sandbox has come to read it.
        os.write(self._exit, bytes(fcntl.fcntl(self._exit, fcntl.F_SETPIPE_SZ, 1)))

    def prepare(self, sandbox: int, mounts: object) -> int:
        """Start a child that mounts once the sandbox has come to the gate; return where it reports."""
        os.close(self.entry)
        self._report, theirs = os.pipe()
        if os.fork() == 0:
            said = b""
            try:
                said = os.fsencode(self._mounted(sandbox, mounts))
            finally:
                os.write(theirs, said)
                os._exit(0)
        os.close(theirs)
        return self._report

    def open(self) -> str:
        """Let the sandbox go on if all is mounted; return why it is not, or nothing."""
        said = os.fsdecode(os.read(self._report, 4096))
        if said == _MOUNTED:
            os.close(self._exit)
            return ""
        return f"the sandbox can't be set up: {said or 'what mounts in it was ended'}"

    def _mounted(self, sandbox: int, mounts: object) -> str:
        waiting = select.poll()
        waiting.register(self._exit, select.POLLOUT)
        [(_, events)] = waiting.poll()
        if events & select.POLLERR:
            return _MOUNTED  # it has ended, and says itself why
        assert isinstance(mounts, list)
        [setting_up] = _children(sandbox)
        return mount_all(setting_up, mounts) or _MOUNTED


# --- ending processes ------------------------------------------------------------------------------


def kill_all(find: Callable[[], Iterable[int]], ended: dict[int, int] | None = None) -> set[int]:
    """Stop, then kills all that `find()` names, until it names none; return all that were alive.

    What is stopped can't fork away between being found and being killed. What has ended and is not
    reaped yet counts as named: between a look at it and the next, its last child may have become ours.

    Args:
        find: names processes, ended ones too if they are to be waited for.
        ended: gets the exit code of each child that is reaped meanwhile. None reaps no child: for a
            process that has children besides those it ends.
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
        alive.update(pid for pid in pids if not is_zombie(pid))
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                _signal(pid, number)
        time.sleep(pause_s)
        # Short at first: what is dying mostly takes less than a millisecond.
        pause_s = min(pause_s * 1.2 + 0.00005, 0.02)


def _signal(pid: int, number: int) -> None:
    # Gone already, or another user's: the report counts it as alive.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _tree_of_group(pid: int) -> list[int]:
    return tree(os.getpid()) if _has_proc() else _group(pid)


def tree(root: int) -> list[int]:
    """Return all descendants of a process, ended ones too."""
    found: list[int] = []
    todo = [root]
    while todo:
        children = _children(todo.pop())
        found.extend(children)
        todo.extend(children)
    return found


@cache
def _has_proc() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def _children(pid: int) -> list[int]:
    """Return a process's children, ended ones too: from /proc where there is one, else from ps."""
    if not _has_proc():
        return [child for child, parent, _ in _ps() if parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(map(int, file.read().split()))
    except OSError:
        pass  # it ended while we looked
    return found


def is_zombie(pid: int) -> bool:
    """Tells whether a process has ended, reaped or not."""
    if not _has_proc():
        return all(other != pid for other, _, _ in _ps())
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _group(group: int) -> list[int]:
    descendants = tree(os.getpid())
    return sorted(
        {pid for pid, _, of in _ps() if of == group and pid != os.getpid()} | set(descendants)
    )


def _ps() -> Iterable[tuple[int, int, int]]:
    import subprocess

    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        lines = listing.stdout.readlines()
    for line in lines:
        pid, parent, group, state = line.split(None, 3)
        # It lists itself too, and is a child of ours each time anew.
        if int(pid) != listing.pid and not state.startswith("Z"):
            yield int(pid), int(parent), int(group)


def _reap_all() -> dict[int, int]:
    """Take the exit status of every child that has ended: pid and code, minus the signal if killed."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


# --- small things ----------------------------------------------------------------------------------


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wake_at_parents_end() -> None:
    """Has the kernel wake us, if a command has stopped us, when our parent ends: there is work to do.

    Not SIGKILL: it would come in the midst of that work, and leave what is stopped and not yet killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def _wakeup_on_child() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _drain(handle: int) -> None:
    try:
        while os.read(handle, 4096):
            pass
    except BlockingIOError:
        pass


def _send(control: socket.socket, report: dict[str, object]) -> None:
    # The agent may be gone: then nobody is left to tell.
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(report).encode() + b"\n")


def _point_to_null(handle: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, handle)
    os.close(null)
