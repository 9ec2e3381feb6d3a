"""System call filter for confined commands (Linux seccomp), as a BPF program.

A sandbox made of namespaces hides files, processes and the network; the kernel itself stays
reachable through every system call. This filter refuses those that no compiler, test or build needs
and that have been used to escape sandboxes. All others are allowed, among them `ptrace`: debuggers
need it, and a command sees only its own processes. So is `name_to_handle_at`: a handle is useless
while `open_by_handle_at` is refused.

The program is for `bwrap --seccomp`: an array of `struct sock_filter` (linux/filter.h), for the
classic BPF machine. The kernel runs it before each call on a `struct seccomp_data`: the call
number, the architecture, and six 64-bit arguments. It compares only 32 bits at once; for an
argument, it compares the half that the kernel itself reads.

Numbers are literal, not taken from `errno` and `socket`: they are Linux's on every system.
"""

import struct
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

# --- what is refused -------------------------------------------------------------------------------

_EPERM = 1
_ENOSYS = 38
_EAFNOSUPPORT = 97


def _calls(names: str, error: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), error)


REFUSED = {
    # What these do is in memory that the filter can't read. Programs fall back to older calls.
    **_calls("io_uring_setup io_uring_enter io_uring_register clone3 openat2", _ENOSYS),
    # Change what is mounted where, and with it what is read-only and hidden.
    **_calls("mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick", _EPERM),
    **_calls("move_mount open_tree open_tree_attr mount_setattr", _EPERM),
    # Enter another namespace.
    **_calls("setns unshare", _EPERM),
    # Reach files by number, past every folder that hides them.
    **_calls("open_by_handle_at", _EPERM),
    # The kernel's key store belongs to the person, not to a namespace.
    **_calls("add_key request_key keyctl", _EPERM),
    # Large and often broken parts of the kernel that few programs need.
    **_calls("bpf perf_event_open userfaultfd lookup_dcookie", _EPERM),
    # Give a file capabilities, among other attributes that nothing needs here.
    **_calls("setxattr lsetxattr fsetxattr setxattrat", _EPERM),
    # Load code into the kernel.
    **_calls("kexec_load kexec_file_load create_module init_module finit_module", _EPERM),
    **_calls("delete_module query_module", _EPERM),
    # Change the machine for everyone.
    **_calls("reboot swapon swapoff acct quotactl quotactl_fd syslog clock_settime", _EPERM),
    **_calls("settimeofday adjtimex clock_adjtime iopl ioperm", _EPERM),
}
"""The error of each call that fails whatever its arguments."""

# socket and socketpair: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Not AF_VSOCK, which reaches a
# virtual machine's host from any network namespace, nor AF_PACKET, AF_ALG and the many that nobody
# needs.
SOCKET_FAMILIES = (1, 2, 10, 16)

# clone: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h).
# CLONE_NEWTIME is missing because clone uses those bits for the child's exit signal.
NAMESPACE_FLAGS = (
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000
)

# ioctl: TIOCSTI types into a terminal as its owner, TIOCLINUX pastes into the console.
TERMINAL_REQUESTS = (0x5412, 0x541C)

# S_ISUID and S_ISGID: whoever ran such a file, also outside, would get its owner's rights. Folders
# get neither: a filter does not see what a path is.
OWNER_BITS = 0o4000 | 0o2000

# Which argument is the mode, and which has the flags that say whether it counts.
MODE_ARGUMENTS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("chmod", "fchmod", "creat", "mknod"), (1, None)),
    **dict.fromkeys(("fchmodat", "fchmodat2", "mknodat"), (2, None)),
    "open": (2, 1),
    "openat": (3, 2),
}

# O_CREAT and O_TMPFILE.
CREATING = 0x40 | 0x40_0000

# --- machines --------------------------------------------------------------------------------------


class Machine(Struct, frozen=True):
    arch: int
    """Its AUDIT_ARCH_… (linux/audit.h)."""
    foreign_from: int | None
    """Numbers from here on belong to another table of the same machine."""
    numbers: dict[str, int]
    """The call numbers by name."""


# Name, number on x86_64 (asm/unistd_64.h), number on aarch64 (asm-generic/unistd.h); "-" for none.
_CALLS = """
    acct 163 89, add_key 248 217, adjtimex 159 171, bpf 321 280, chmod 90 -, chroot 161 51,
    clock_adjtime 305 266, clock_settime 227 112, clone 56 220, clone3 435 435, creat 85 -,
    create_module 174 -, delete_module 176 106, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452,
    finit_module 313 273, fsconfig 431 431, fsetxattr 190 7, fsmount 432 432, fsopen 430 430,
    fspick 433 433, init_module 175 105, io_uring_enter 426 426, io_uring_register 427 427,
    io_uring_setup 425 425, ioctl 16 29, ioperm 173 -, iopl 172 -, kexec_file_load 320 294,
    kexec_load 246 104, keyctl 250 219, lookup_dcookie 212 18, lsetxattr 189 6, mknod 133 -,
    mknodat 259 33, mount 165 40, mount_setattr 442 442, move_mount 429 429, open 2 -,
    open_by_handle_at 304 265, open_tree 428 428, open_tree_attr 467 467, openat 257 56,
    openat2 437 437, perf_event_open 298 241, pivot_root 155 41, query_module 178 -,
    quotactl 179 60, quotactl_fd 443 443, reboot 169 142, request_key 249 218, setns 308 268,
    settimeofday 164 170, setxattr 188 5, setxattrat 463 463, socket 41 198, socketpair 53 199,
    swapoff 168 225, swapon 167 224, syslog 103 116, umount2 166 39, unshare 272 97,
    userfaultfd 323 282
"""


def _numbers(column: int) -> dict[str, int]:
    rows = (row.split() for row in _CALLS.split(","))
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


MACHINES = {
    # x32 (programs with short pointers) has the same arch, and the same calls at higher numbers.
    "x86_64": Machine(0xC000_003E, 0x4000_0000, _numbers(1)),
    # Checked only in a simulator; never run on real hardware.
    "aarch64": Machine(0xC000_00B7, None, _numbers(2)),
}

# --- the program -----------------------------------------------------------------------------------

# linux/bpf_common.h: load a word at a fixed offset; compare with a constant and jump; return a
# constant.
_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06

# linux/seccomp.h
_ALLOW = 0x7FFF_0000
_FAIL_WITH = 0x0005_0000

# struct seccomp_data offsets. Both machines are little-endian: the low half comes first.
_NUMBER = 0
_ARCH = 4
_FIRST_ARGUMENT = 16
_ARGUMENT_BYTES = 8

_INSTRUCTION = struct.Struct("<HBBI")  # struct sock_filter: code, jt, jf, k
_FARTHEST_JUMP = 0xFF
_LONGEST = 4096  # BPF_MAXINSNS


class _Step(Struct, frozen=True):
    """One instruction; a jump names its target labels, or falls through to the next step."""

    code: int
    value: int
    yes: str = ""
    no: str = ""


@cache
def filter_program(machine: str) -> bytes | None:
    """Return the filter for a machine as `platform.machine()` names it; None if there is no table."""
    known = MACHINES.get(machine)
    return None if known is None else _assemble(_listing(known))


def _listing(machine: Machine) -> list[_Step | str]:
    """Return the steps of the program, with labels as text between them."""
    number = machine.numbers
    lines: list[_Step | str] = [
        # A call number is meaningless without the architecture: 32-bit programs use others.
        _Step(_LOAD, _ARCH),
        _Step(_JUMP_EQUAL, machine.arch, no="EPERM"),
        _Step(_LOAD, _NUMBER),
    ]
    if machine.foreign_from is not None:
        lines += [_Step(_JUMP_AT_LEAST, machine.foreign_from, yes="ENOSYS")]
    lines += [
        _Step(_JUMP_EQUAL, number[name], yes=_LABELS[error])
        for name, error in REFUSED.items()
        if name in number
    ]
    modes = {name: where for name, where in MODE_ARGUMENTS.items() if name in number}
    lines += [
        _Step(_JUMP_EQUAL, number[name], yes=f"mode {where}") for name, where in modes.items()
    ]
    lines += [
        _Step(_JUMP_EQUAL, number["socket"], yes="socket"),
        _Step(_JUMP_EQUAL, number["socketpair"], yes="socket"),
        _Step(_JUMP_EQUAL, number["clone"], yes="clone"),
        _Step(_JUMP_EQUAL, number["ioctl"], yes="ioctl", no="allow"),
        "socket",
        _Step(_LOAD, _FIRST_ARGUMENT),
        *(_Step(_JUMP_EQUAL, family, yes="allow") for family in SOCKET_FAMILIES),
        _Step(_RETURN, _FAIL_WITH | _EAFNOSUPPORT),
        "clone",
        _Step(_LOAD, _FIRST_ARGUMENT),
        _Step(_JUMP_ANY_BIT, NAMESPACE_FLAGS, yes="EPERM", no="allow"),
        *(step for where in sorted(set(modes.values()), key=str) for step in _of_mode(*where)),
        "ioctl",
        # The kernel takes the request as 32 bits. Comparing all 64 has let TIOCSTI through in other
        # sandboxes.
        _Step(_LOAD, _argument(1)),
        *(_Step(_JUMP_EQUAL, request, yes="EPERM") for request in TERMINAL_REQUESTS),
        "allow",
        _Step(_RETURN, _ALLOW),
        "EPERM",
        _Step(_RETURN, _FAIL_WITH | _EPERM),
        "ENOSYS",
        _Step(_RETURN, _FAIL_WITH | _ENOSYS),
    ]
    return lines


def _of_mode(mode: int, flags: int | None) -> list[_Step | str]:
    """Return the steps for a call with a mode, which may count only with some flags."""
    counts = (
        []
        if flags is None
        else [_Step(_LOAD, _argument(flags)), _Step(_JUMP_ANY_BIT, CREATING, no="allow")]
    )
    return [
        f"mode {(mode, flags)}",
        *counts,
        _Step(_LOAD, _argument(mode)),
        _Step(_JUMP_ANY_BIT, OWNER_BITS, yes="EPERM", no="allow"),
    ]


def _argument(number: int) -> int:
    return _FIRST_ARGUMENT + number * _ARGUMENT_BYTES


_LABELS = {_EPERM: "EPERM", _ENOSYS: "ENOSYS"}


def _assemble(lines: Sequence[_Step | str]) -> bytes:
    """Turn labels into jump distances and steps into bytes."""
    steps: list[_Step] = []
    places: dict[str, int] = {}
    for line in lines:
        if isinstance(line, str):
            places[line] = len(steps)
        else:
            steps.append(line)
    assert len(steps) <= _LONGEST

    def distance(place: int, label: str) -> int:
        """Return how many steps a jump skips; it has one byte for that, and can't go backwards."""
        leap = places[label] - (place + 1) if label else 0
        assert 0 <= leap <= _FARTHEST_JUMP, label
        return leap

    return b"".join(
        _INSTRUCTION.pack(
            step.code, distance(place, step.yes), distance(place, step.no), step.value
        )
        for place, step in enumerate(steps)
    )
