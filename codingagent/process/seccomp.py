"""System call filter for confined commands (Linux seccomp), as a BPF program.

A sandbox made of namespaces hides files, processes and the network; the kernel itself stays reachable through
every system call. This filter refuses those that no compiler, test or build needs and that have been used to
escape sandboxes. All others are allowed, among them `ptrace`: debuggers need it, and a command sees only its
own processes. So is `name_to_handle_at`: a handle is useless while `open_by_handle_at` is refused.

The program is for `bwrap --seccomp`: an array of `struct sock_filter` (linux/filter.h), for the
classic BPF machine. The kernel runs it before each call on a `struct seccomp_data`: the call
number, the architecture, and six 64-bit arguments. It compares only 32 bits at once; for an
argument, it compares the half that the kernel itself reads.

Numbers are literal, not taken from `errno` and `socket`: they are Linux's on every system.
"""

import struct
from functools import cache

from msgspec import Struct

from codingagent.model.patterns import sections

_EPERM = 1
_ENOSYS = 38
_EAFNOSUPPORT = 97
_ERRORS = {"EPERM": _EPERM, "ENOSYS": _ENOSYS}
_LABELS = {error: label for label, error in _ERRORS.items()}
# Of each call its error or how it is judged, its name, and its numbers.
_CALLS = [
    [head.partition(":")[0], *row.split()]
    for head, rows in sections(__file__).items()
    for row in rows.split(",")
]

REFUSED = {name: _ERRORS[error] for error, name, *_ in _CALLS if error in _ERRORS}
"""The error of each call that fails whatever its arguments."""

# socket and socketpair: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Not AF_VSOCK, which reaches a virtual
# machine's host from any network namespace, nor AF_PACKET, AF_ALG and the many that nobody needs.
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


class Machine(Struct, frozen=True):
    arch: int
    """Its AUDIT_ARCH_… (linux/audit.h)."""
    foreign_from: int | None
    """Numbers from here on belong to another table of the same machine."""
    numbers: dict[str, int]
    """The call numbers by name."""


def _numbers(column: int) -> dict[str, int]:
    return {row[1]: int(row[column]) for row in _CALLS if row[column] != "-"}


MACHINES = {
    # x32 (programs with short pointers) has the same arch, and the same calls at higher numbers.
    "x86_64": Machine(0xC000_003E, 0x4000_0000, _numbers(2)),
    # Checked only in a simulator; never run on real hardware.
    "aarch64": Machine(0xC000_00B7, None, _numbers(3)),
}


# linux/bpf_common.h: load a word at a fixed offset; compare with a constant and jump; return a constant.
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
    if machine not in MACHINES:
        return None
    steps: list[_Step] = []
    places: dict[str, int] = {}
    for line in _listing(MACHINES[machine]):
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
        _INSTRUCTION.pack(each.code, distance(at, each.yes), distance(at, each.no), each.value)
        for at, each in enumerate(steps)
    )


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
    for name, where in modes.items():
        lines += [_Step(_JUMP_EQUAL, number[name], yes=f"mode {where}")]
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
    ]
    for mode, flags in sorted(set(modes.values()), key=str):
        lines += [f"mode {(mode, flags)}"]
        if flags is not None:  # only some of them create a file
            lines += [_Step(_LOAD, _argument(flags)), _Step(_JUMP_ANY_BIT, CREATING, no="allow")]
        lines += [_Step(_LOAD, _argument(mode))]
        lines += [_Step(_JUMP_ANY_BIT, OWNER_BITS, yes="EPERM", no="allow")]
    return [
        *lines,
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


def _argument(number: int) -> int:
    return _FIRST_ARGUMENT + number * _ARGUMENT_BYTES
