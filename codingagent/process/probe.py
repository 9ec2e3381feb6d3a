"""Program that runs inside the sandbox and reports what there depends on the machine; `doctor` shows it.

It is started as a command would be: `python3 -I -S -c SOURCE ARGUMENT`. The argument is a JSON object that
names the lures, things that exist outside and must be out of reach:

    workspace  the folder that commands may write to
    data       a folder of a tool's, which takes what is written if the kernel can keep that apart
    outside    a folder that the person can write to, outside the workspace
    home_file  an existing file in the person's home; empty if there is none
    agent_pid  a process that must be invisible: the agent's
    tcp_port   a port with a listener at the person's 127.0.0.1

It prints a JSON object that has for each promise a list: whether it was tried and holds (null: it does not
apply), and a detail. It changes nothing, even without a sandbox, and imports nothing from the package.
"""

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

assert sys.platform == "linux"

# Errors that mean "not allowed" or "does not exist". Any other error leaves a doubt.
_REFUSALS = (
    *(errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ELOOP),
    *(errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN),
    *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENXIO, errno.ESRCH),
)
# Enough for this machine's own sockets, which respond at once.
_PATIENCE_S = 1.0
_SYSTEM_FOLDERS = ("/", "/etc", "/usr", "/opt", "/var", "/run", "/dev", "/sys")
# Addresses for documentation (RFC 5737, RFC 3849).
_NOWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_CLONE_NEWUSER = 0x1000_0000
_Verdict = tuple[bool | None, str]
_Order = dict[str, Any]


def main() -> None:
    order = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps({name: _judge(look, order) for name, look in PROMISES.items()}))


def _judge(look: Callable[[_Order], _Verdict], order: _Order) -> _Verdict:
    try:
        return look(order)
    except Exception as fault:  # noqa: BLE001  # one failed probe must not hide the others
        return False, f"could not be checked: {fault}"


def _capabilities(_: _Order) -> _Verdict:
    # The bounding set too: without it, a set-uid program grants nothing.
    sets = {name: _status(name) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    held = [f"{name}={value}" for name, value in sets.items() if int(value, 16)]
    return not held, ", ".join(held) or "all sets are empty"


def _filter(_: _Order) -> _Verdict:
    value = _status("Seccomp")
    return value == "2", f"Seccomp is {value}"  # SECCOMP_MODE_FILTER


def _outside_read_only(order: _Order) -> _Verdict:
    # What lies in /tmp is not the sandbox's own /tmp.
    folders = [*_SYSTEM_FOLDERS, order["outside"]]
    tried = [name for name in folders if not f"{os.path.realpath(name)}/".startswith("/tmp/")]  # noqa: S108
    # A file without a name, which nobody ever sees. A disk without such files gives EOPNOTSUPP after the
    # permission check, so that is no refusal.
    made = {name: _error_of(partial(os.open, name, os.O_TMPFILE | os.O_WRONLY)) for name in tried}
    open_ = [name for name, error in made.items() if error not in _REFUSALS]
    return not open_, f"can create in {', '.join(open_)}" if open_ else f"tried {', '.join(tried)}"


def _home_hidden(order: _Order) -> _Verdict:
    path = order["home_file"]
    if not path:
        return None, "the home folder holds no file"
    error = _error_of(lambda: os.lstat(path))
    return error in _REFUSALS, f"{path}: {_said(error) if error else 'is there'}"


def _agent_hidden(order: _Order) -> _Verdict:
    """Look for any process from outside: a separate process namespace shows none."""
    ours, pid = list[int](), int(_status("Pid"))
    while pid > 0:
        ours.append(pid)
        pid = int(_status("PPid", pid))
    if os.getpid() not in ours:
        return False, "could not be checked: /proc is not of this sandbox"
    seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    if others := seen - {*ours}:
        return False, f"{len(others)} other processes are visible"
    if order["agent_pid"] not in ours:
        error = _error_of(lambda: os.kill(order["agent_pid"], 0))
        if error != errno.ESRCH:
            return False, f"process {order['agent_pid']} takes signals: {_said(error)}"
    return True, f"{len(seen)} processes, all of this sandbox"


def _no_network(order: _Order) -> _Verdict:
    # Interfaces prove nothing: many kernels add idle ones to each new namespace. Connecting a UDP
    # socket asks for a route and sends nothing (these addresses are reserved).
    for family, address in _NOWHERE:
        error = _error_of_connecting(family, socket.SOCK_DGRAM, (address, 9))
        if error not in _REFUSALS:
            return False, f"there is a route to {address}: {_said(error)}"
    place = ("127.0.0.1", order["tcp_port"])
    error = _error_of_connecting(socket.AF_INET, socket.SOCK_STREAM, place)
    return error in _REFUSALS, f"a port of the person's machine: {_said(error)}"


def _no_new_namespaces(_: _Order) -> _Verdict:
    pid = os.fork()
    if pid == 0:
        library = ctypes.CDLL(None, use_errno=True)
        os._exit(ctypes.get_errno() if library.unshare(_CLONE_NEWUSER) else 0)
    error = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    # ENOSPC is the kernel's error at its limit of namespaces, which a sandbox can set to the number in use.
    return error in {errno.EPERM, errno.ENOSPC, errno.ENOSYS}, f"unshare: {_said(error)}"


def _is_writable(folder: str) -> _Verdict:
    path = os.path.join(folder, f".codingagent-probe-{os.getpid()}-{os.urandom(8).hex()}")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        os.unlink(path)
    except OSError as fault:
        return False, f"{folder}: {_said(fault.errno)}"
    return True, f"made a file in {folder} and removed it"


def _loopback(_: _Order) -> _Verdict:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = ("127.0.0.1", listener.getsockname()[1])
        error = _error_of_connecting(socket.AF_INET, socket.SOCK_STREAM, place)
    return error == 0, f"a server of this sandbox on 127.0.0.1: {_said(error)}"


def _error_of(attempt: Callable[[], object]) -> int:
    """Return the errno of an attempt; 0 if it succeeded."""
    try:
        attempt()
    except OSError as fault:
        return fault.errno or errno.EIO
    return 0


def _said(error: int | None) -> str:
    return "succeeded" if error == 0 else errno.errorcode.get(error or -1, f"ended with {error}")


def _error_of_connecting(family: int, kind: int, address: tuple[str, int]) -> int:
    def connect() -> None:
        with socket.socket(family, kind) as caller:
            caller.settimeout(_PATIENCE_S)
            caller.connect(address)

    return _error_of(connect)


def _status(field: str, pid: int | str = "self") -> str:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        found = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return found[field].strip()


# In reading order; the names are part of the interface.
PROMISES: dict[str, Callable[[_Order], _Verdict]] = {
    "no capabilities": _capabilities,
    "system call filter": _filter,
    "outside read-only": _outside_read_only,
    "home hidden": _home_hidden,
    "agent process hidden": _agent_hidden,
    "no network": _no_network,
    "no new namespaces": _no_new_namespaces,
    "workspace writable": lambda order: _is_writable(order["workspace"]),
    "shared memory works": lambda _: _is_writable("/dev/shm"),  # noqa: S108
    "loopback works": _loopback,
    "tools' folders can be written": lambda order: _is_writable(order["data"]),
}

if __name__ == "__main__":
    main()
