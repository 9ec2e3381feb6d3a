"""Stand-alone program that runs inside the sandbox and reports which promises hold there.

It is started as a command would be: `python3 -I -S probe.py ARGUMENT`, or with its source after
`-c`. The argument is a JSON object that names the lures: things that exist outside and must be out
of reach. It prints a JSON object, {"promises": [{"name": …, "enforced": …, "detail": …}]}, with
`enforced` one of

    true   tried, and the promise holds
    false  tried, and it does not hold; or it could not be tried: unproved counts as broken
    null   does not apply: the argument names no lure, or allows the network

All keys of the argument are optional:

    workspace        the folder that commands may write to; default: the current folder
    home             the person's home folder
    home_file        an existing file in it
    outside_folder   a folder that the person can write to, outside the workspace and /tmp
    tmp_file         an existing file in the person's /tmp
    agent_pid        a process that must be invisible: the agent's
    agent_token      text in the environment of that process, and of no command
    tcp_port         a port with a listener at the person's 127.0.0.1
    unix_socket      the path of a socket with a listener outside
    abstract_socket  the name of an abstract socket with a listener outside
    network          true if commands may use the network
    git              the workspace's .git, a folder or a file, if it has one
    agent_home       the agent's home, if it is in the workspace
    program          a program outside the system's folders that commands may run
    credentials      a list of files beside it that commands must not see

It changes nothing, even without a sandbox: it creates files without a name or removes them at once,
opens and closes what must not be written, and calls the system with arguments that have no effect.

It imports nothing from the package, which does not exist in the sandbox.

Over 500 lines: it runs alone, as one file, inside the sandbox.
"""

import contextlib
import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable

assert sys.platform == "linux"

# Errors that mean "not allowed" or "does not exist". Any other error leaves a doubt.
_REFUSALS = (
    *(errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ELOOP),
    *(errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN),
    *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENXIO, errno.ESRCH),
)

# Enough for this machine's own sockets, which respond at once.
_PATIENCE_S = 1.0

_CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_FILTERED = "2"  # SECCOMP_MODE_FILTER

_SYSTEM_FOLDERS = ("/", "/etc", "/usr", "/opt", "/var", "/run", "/dev", "/sys")
_SECRET_FILES = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers")
_SECRET_FOLDERS = ("/etc/ssl/private", "/etc/sudoers.d")
_KERNEL_SETTINGS = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger"),
    *("/sys/kernel/uevent_helper", "/sys/power/state"),
)

# bits/socket.h of Linux; Python does not define all of them everywhere.
_SPECIAL_FAMILIES = {"AF_PACKET": 17, "AF_ALG": 38, "AF_VSOCK": 40}

# Addresses for documentation (RFC 5737, RFC 3849).
_NOWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))

_CLONE_NEWUSER = 0x1000_0000
_MS_REMOUNT_BIND = 0x20 | 0x1000
_TIOCSTI = 0x5412

_Verdict = tuple[bool | None, str]
_Order = dict[str, object]


def main() -> int:
    """Print the result of every promise; return 0 if the probe ran, whatever it found."""
    if len(sys.argv) != 2:
        sys.stderr.write("probe: one argument, a JSON object\n")
        return 2
    order = json.loads(sys.argv[1])
    promises = [
        {"name": name, "enforced": enforced, "detail": detail}
        for name, look in PROMISES
        for enforced, detail in [_judge(look, order)]
    ]
    sys.stdout.write(json.dumps({"promises": promises}) + "\n")
    return 0


def _judge(look: Callable[[_Order], _Verdict], order: _Order) -> _Verdict:
    try:
        return look(order)
    except Exception as fault:  # noqa: BLE001  # one failed probe must not hide the others
        return False, f"could not be checked: {fault}"


# --- the process -----------------------------------------------------------------------------------


def _capabilities(_: _Order) -> _Verdict:
    # The bounding set too: without it, a set-uid program grants nothing.
    held = [f"{name}={_status(name)}" for name in _CAPABILITY_SETS if int(_status(name), 16)]
    return not held, ", ".join(held) or "all sets are empty"


def _status_is(field: str, wanted: str) -> _Verdict:
    value = _status(field)
    return value == wanted, f"{field} is {value}"


def _descriptors(_: _Order) -> _Verdict:
    # Listing opens a descriptor itself, which is closed afterwards.
    listed = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    extra = [handle for handle in listed if handle > 2 and _is_open(handle)]
    return not extra, f"also open: {_words(extra)}" if extra else "none but 0, 1 and 2"


def _no_terminal(_: _Order) -> _Verdict:
    error = _error_of(lambda: _open_and_close("/dev/tty", os.O_RDWR))
    return _refused(error), f"/dev/tty: {_said(error)}"


# --- files -----------------------------------------------------------------------------------------


def _outside_read_only(order: _Order) -> _Verdict:
    # Its privacy is a promise of its own, checked under its second name too.
    inner = [os.path.realpath(_workspace(order)), "/tmp"]  # noqa: S108
    with contextlib.suppress(OSError):
        inner += ["/var/tmp"] if os.path.samefile("/tmp", "/var/tmp") else []  # noqa: S108
    parent = os.path.dirname(_text(order, "home"))
    candidates = [*_SYSTEM_FOLDERS, _text(order, "outside_folder"), parent]
    folders = {
        name: None for name in candidates if name and not _is_inside(os.path.realpath(name), inner)
    }
    open_ = [name for name in folders if not _refused(_error_of_creating_in(name))]
    return not open_, f"can create in {_words(open_)}" if open_ else f"tried {_words(folders)}"


def _credentials_hidden(order: _Order) -> _Verdict:
    names = order.get("credentials")
    if not isinstance(names, list) or not names:
        return None, "not asked: credentials"
    program = _text(order, "program")
    if not _holds_text(program):
        return False, f"could not be checked: {program} is not there"
    seen = [name for name in names if _holds_text(name)]
    return not seen, f"can read {_words(seen)}" if seen else f"tried {_words(names)}"


def _system_secrets(_: _Order) -> _Verdict:
    names = list(_SECRET_FILES)
    for folder in _SECRET_FOLDERS:
        with contextlib.suppress(OSError):
            names += [f"{folder}/{name}" for name in os.listdir(folder)]
    with contextlib.suppress(OSError):
        keys = [name for name in os.listdir("/etc/ssh") if name.endswith("_key")]
        names += [f"/etc/ssh/{name}" for name in keys]
    seen = [name for name in names if _holds_text(name)]
    return not seen, f"can read {_words(seen)}" if seen else f"tried {_words(names)}"


def _kernel_settings(_: _Order) -> _Verdict:
    # Opened, but never written.
    errors = {name: _error_of_opening(name, os.O_WRONLY) for name in _KERNEL_SETTINGS}
    writable = [name for name, error in errors.items() if not _refused(error)]
    told = f"can write {_words(writable)}" if writable else f"tried {_words(errors)}"
    return not writable, told


def _git_read_only(order: _Order) -> _Verdict:
    # The workspace around it is writable. So a read-only path must be a mount of its own, which
    # can't be renamed either: no command can put another .git in its place.
    git = _text(order, "git")
    if not git:
        return None, "the workspace has none"
    is_folder = os.path.isdir(git)
    error = _error_of_creating_in(git) if is_folder else _error_of_opening(git, os.O_WRONLY)
    return error == errno.EROFS, f"{git}: {_said(error)}"


def _agent_home_hidden(order: _Order) -> _Verdict:
    folder = _text(order, "agent_home")
    if not folder:
        return None, "not in the workspace"
    try:
        names = os.listdir(folder)
    except OSError as fault:
        return _refused(fault.errno), f"{folder}: {_said(fault.errno)}"
    if names:
        return False, f"{folder} shows {len(names)} names"
    error = _error_of_creating_in(folder)
    return _refused(error), f"{folder} is empty; creating there: {_said(error)}"


# --- processes, sockets, the network ---------------------------------------------------------------


def _agent_hidden(order: _Order) -> _Verdict:
    """Look for any process from outside: a separate process namespace shows none.

    The agent's pid may belong to another process inside by chance; the token tells them apart.
    """
    seen = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    ours = _ancestors()
    if os.getpid() not in ours:
        return False, "could not be checked: /proc is not of this sandbox"
    others = sorted(set(seen) - set(ours))
    if others:
        return False, f"{len(others)} other processes are visible"
    token = _text(order, "agent_token").encode()
    if token:
        telling = [pid for pid in seen if token in _environment(pid)]
        if telling:
            return False, f"process {telling[0]} shows the environment of the agent"
    pid = _whole(order, "agent_pid")
    if pid > 0 and pid not in ours:
        error = _error_of(lambda: os.kill(pid, 0))
        if error != errno.ESRCH:
            return False, f"process {pid} takes signals: {_said(error)}"
    return True, f"{len(seen)} processes, all of this sandbox"


def _no_network(order: _Order) -> _Verdict:
    if _network_allowed(order):
        return None, "allowed"
    # Interfaces prove nothing: many kernels add idle ones to each new namespace. Connecting a UDP
    # socket asks for a route and sends nothing (these addresses are reserved).
    for family, address in _NOWHERE:
        error = _error_of_connecting(family, socket.SOCK_DGRAM, (address, 9))
        if not _refused(error):
            return False, f"there is a route to {address}: {_said(error)}"
    port = _whole(order, "tcp_port")
    if port <= 0:
        return None, "not asked: tcp_port"
    error = _error_of_connecting(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port))
    return _refused(error), f"a port of the person's machine: {_said(error)}"


def _no_outside_sockets(order: _Order) -> _Verdict:
    path = _text(order, "unix_socket")
    if not path:
        return None, "not asked: unix_socket"
    error = _error_of_connecting(socket.AF_UNIX, socket.SOCK_STREAM, path)
    return _refused(error), f"{path}: {_said(error)}"


def _no_abstract_sockets(order: _Order) -> _Verdict:
    # Abstract sockets belong to the network namespace.
    if _network_allowed(order):
        return None, "allowed with the network"
    name = _text(order, "abstract_socket")
    if not name:
        return None, "not asked: abstract_socket"
    error = _error_of_connecting(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name)
    return _refused(error), f"@{name}: {_said(error)}"


def _no_special_sockets(_: _Order) -> _Verdict:
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
    made = [
        name
        for name, family in _SPECIAL_FAMILIES.items()
        if any(_makes_socket(family, kind) for kind in kinds)
    ]
    return not made, f"can make {_words(made)}" if made else f"tried {_words(_SPECIAL_FAMILIES)}"


def _loopback(_: _Order) -> _Verdict:
    with socket.socket() as listener, socket.socket() as caller:
        listener.settimeout(_PATIENCE_S)
        caller.settimeout(_PATIENCE_S)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        caller.connect(listener.getsockname())
        answering, _peer = listener.accept()
        with answering:
            answering.sendall(b"!")
            heard = caller.recv(1)
    return heard == b"!", "a server and a client of this sandbox met on 127.0.0.1"


# --- the kernel ------------------------------------------------------------------------------------


def _no_new_namespaces(_: _Order) -> _Verdict:
    error = _error_in_child(lambda: _call("unshare", _CLONE_NEWUSER))
    # ENOSPC is the kernel's error at its limit of namespaces, which a sandbox can set to the number
    # in use.
    refused = error in {errno.EPERM, errno.ENOSPC, errno.ENOSYS}
    return refused, f"unshare: {_said(error)}"


def _no_mounts(_: _Order) -> _Verdict:
    # A process that may mount gets EINVAL here, because this is not a mount point.
    place = b"/proc/self/fdinfo"
    error = _error_of(lambda: _call("mount", b"none", place, None, _MS_REMOUNT_BIND, None))
    return error in {errno.EPERM, errno.ENOSYS}, f"mount: {_said(error)}"


def _no_terminal_injection(_: _Order) -> _Verdict:
    error = _error_in_child(_type_into_own_terminal)
    # EIO is the error of a kernel that allows this to nobody (dev.tty.legacy_tiocsti=0).
    return error in {errno.EPERM, errno.EIO}, f"TIOCSTI: {_said(error)}"


def _type_into_own_terminal() -> None:
    """Push a character into a new terminal as its session leader: where that works at all, it works here."""
    import fcntl

    os.setsid()
    _keyboard, screen = os.openpty()
    # Opening it by name makes it the controlling terminal.
    handle = os.open(os.ttyname(screen), os.O_RDWR)
    fcntl.ioctl(handle, _TIOCSTI, b"x")


# --- how to try ------------------------------------------------------------------------------------


def _error_of(attempt: Callable[[], object]) -> int:
    """Return the errno of an attempt; 0 if it succeeded."""
    try:
        attempt()
    except OSError as fault:
        return fault.errno or errno.EIO
    return 0


def _error_in_child(attempt: Callable[[], object]) -> int:
    """Return the errno of an attempt made in a child, whose changed state ends with it."""
    pid = os.fork()
    if pid == 0:
        error = 255
        try:
            error = _error_of(attempt)
        finally:
            os._exit(error)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _refused(error: int | None) -> bool:
    return error in _REFUSALS


def _said(error: int | None) -> str:
    return "succeeded" if error == 0 else errno.errorcode.get(error or -1, f"ended with {error}")


def _call(name: str, *arguments: object) -> None:
    """Call a C library function that returns 0 on success."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _open_and_close(path: str, flags: int) -> None:
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK))


def _is_open(handle: int) -> bool:
    return _error_of(lambda: os.fstat(handle)) == 0


def _error_of_opening(path: str, flags: int) -> int:
    return _error_of(lambda: _open_and_close(path, flags))


def _error_of_creating_in(folder: str) -> int:
    """Create a file without a name, which nobody ever sees.

    A disk without such files gives EOPNOTSUPP after the permission check, so that is not a refusal.
    Nor is EISDIR, from a kernel without such files.
    """
    return _error_of_opening(folder, getattr(os, "O_TMPFILE", 0) | os.O_WRONLY)


def _is_writable(folder: str) -> _Verdict:
    path = os.path.join(folder, f".codingagent-probe-{os.getpid()}-{os.urandom(8).hex()}")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        os.close(os.open(path, flags, 0o600))
        os.unlink(path)
    except OSError as fault:
        return False, f"{folder}: {_said(fault.errno)}"
    return True, f"made a file in {folder} and removed it"


def _is_absent(order: _Order, key: str) -> _Verdict:
    path = _text(order, key)
    if not path:
        return None, f"not asked: {key}"
    error = _error_of(lambda: os.lstat(path))
    return _refused(error), f"{path}: {_said(error) if error else 'is there'}"


def _holds_text(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return bool(os.read(handle, 1))
    except OSError:  # a folder
        return False
    finally:
        os.close(handle)


def _makes_socket(family: int, kind: int) -> bool:
    return _error_of(lambda: socket.socket(family, kind).close()) == 0


def _error_of_connecting(family: int, kind: int, address: str | tuple[str, int]) -> int:
    def connect() -> None:
        with socket.socket(family, kind) as caller:
            caller.settimeout(_PATIENCE_S)
            caller.connect(address)

    return _error_of(connect)


def _status(field: str, pid: int | str = "self") -> str:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == field:
                return value.strip()
    raise LookupError(f"this kernel does not report {field}")


def _ancestors() -> list[int]:
    """Return this process, its parent and so on, as far as /proc shows them."""
    found, pid = list[int](), int(_status("Pid"))
    while pid > 0:
        found.append(pid)
        pid = int(_status("PPid", pid))
    return found


def _environment(pid: int) -> bytes:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
    return b""


def _is_inside(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _words(values: object) -> str:
    assert isinstance(values, (list, tuple, dict))
    return ", ".join(map(str, values))


# --- the argument ----------------------------------------------------------------------------------


def _text(order: _Order, key: str) -> str:
    value = order.get(key)
    return value if isinstance(value, str) else ""


def _whole(order: _Order, key: str) -> int:
    value = order.get(key)
    return value if isinstance(value, int) else 0


def _workspace(order: _Order) -> str:
    return _text(order, "workspace") or os.getcwd()


def _network_allowed(order: _Order) -> bool:
    return order.get("network") is True


# In reading order; the names are part of the interface.
PROMISES: tuple[tuple[str, Callable[[_Order], _Verdict]], ...] = (
    ("no capabilities", _capabilities),
    ("no new privileges", lambda _: _status_is("NoNewPrivs", "1")),
    ("system call filter", lambda _: _status_is("Seccomp", _FILTERED)),
    ("no inherited descriptors", _descriptors),
    ("no terminal", _no_terminal),
    ("no typing into terminals", _no_terminal_injection),
    ("outside read-only", _outside_read_only),
    ("kernel settings read-only", _kernel_settings),
    ("system secrets hidden", _system_secrets),
    ("home hidden", lambda order: _is_absent(order, "home_file")),
    ("credentials beside tools hidden", _credentials_hidden),
    ("git folder read-only", _git_read_only),
    ("agent home hidden", _agent_home_hidden),
    ("agent process hidden", _agent_hidden),
    ("no network", _no_network),
    ("no sockets of others", _no_outside_sockets),
    ("no abstract sockets of others", _no_abstract_sockets),
    ("no special sockets", _no_special_sockets),
    ("no new namespaces", _no_new_namespaces),
    ("no mounts", _no_mounts),
    ("workspace writable", lambda order: _is_writable(_workspace(order))),
    ("own /tmp writable", lambda _: _is_writable("/tmp")),  # noqa: S108  # the sandbox's own
    ("own /tmp private", lambda order: _is_absent(order, "tmp_file")),
    ("shared memory works", lambda _: _is_writable("/dev/shm")),  # noqa: S108
    ("loopback works", _loopback),
)

if __name__ == "__main__":
    sys.exit(main())
