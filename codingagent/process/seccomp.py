"""System call filter for confined commands (Linux seccomp), as a BPF program for `bwrap --seccomp`.

It refuses the calls that no compiler, test or build needs and that have been used to escape sandboxes. All
others are allowed, among them `ptrace`: debuggers need it, and a command sees only its own processes. So is
`name_to_handle_at`: a handle is useless while `open_by_handle_at` is refused.

The program is an array of `struct sock_filter` (linux/filter.h). The kernel runs it before each call on a
`struct seccomp_data`: the call number, the architecture, and six 64-bit arguments. It compares only 32 bits
at once: of an argument the half that the kernel itself reads. Numbers are literal: Linux's on every system.
"""

import struct
from functools import cache

from codingagent.model.patterns import sections

_EPERM = 1
_ENOSYS = 38
_EAFNOSUPPORT = 97
_ERRORS = {"EPERM": _EPERM, "ENOSYS": _ENOSYS}
_SECTIONS = sections(__file__)
# Of each call its error or how it is judged, its name, and its numbers.
_CALLS = [
    [head.partition(":")[0], *row.split()]
    for head, rows in _SECTIONS.items()
    if head.startswith((*_ERRORS, "judged"))
    for row in rows.split(",")
]

REFUSED = {name: _ERRORS[error] for error, name, *_ in _CALLS if error in _ERRORS}
"""The error of each call that fails whatever its arguments."""


def _values(section: str) -> tuple[int, ...]:
    return tuple(int(word, 0) for word in _SECTIONS[section].split())


SOCKET_FAMILIES, TERMINAL_REQUESTS = _values("families"), _values("requests")
NAMESPACE_FLAGS, OWNER_BITS, CREATING = map(sum, map(_values, ("namespaces", "owner bits", "creating")))
MODE_ARGUMENTS = {
    name: (int(mode), int(flags)) for name, mode, flags in map(str.split, _SECTIONS["modes"].splitlines())
}
"""Which argument is the mode, and which has the flags that say whether it counts; -1: it always does."""


def _numbers(column: int) -> dict[str, int]:
    return {row[1]: int(row[column]) for row in _CALLS if row[column] != "-"}


# By machine: its AUDIT_ARCH_… (linux/audit.h), from where numbers belong to another table, and call numbers.
MACHINES: dict[str, tuple[int, int | None, dict[str, int]]] = {
    # x32 (programs with short pointers) has the same arch, and the same calls at higher numbers.
    "x86_64": (0xC000_003E, 0x4000_0000, _numbers(2)),
    # Checked only in a simulator; never run on real hardware.
    "aarch64": (0xC000_00B7, None, _numbers(3)),
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
_ARGUMENTS = range(16, 16 + 6 * 8, 8)
_INSTRUCTION = struct.Struct("<HBBI")  # struct sock_filter: code, jt, jf, k


@cache
def filter_program(machine: str) -> bytes | None:
    """Return the filter for a machine as `platform.machine()` names it; None if there is no table."""
    if machine not in MACHINES:
        return None
    arch, foreign_from, number = MACHINES[machine]
    allow, refuse = _step(_RETURN, _ALLOW), _step(_RETURN, _FAIL_WITH | _EPERM)
    # A call number is meaningless without the architecture: 32-bit programs use others.
    steps = [_step(_LOAD, _ARCH), _step(_JUMP_EQUAL, arch, yes=1), refuse, _step(_LOAD, _NUMBER)]
    if foreign_from is not None:
        steps += _when(_JUMP_AT_LEAST, foreign_from, _step(_RETURN, _FAIL_WITH | _ENOSYS))
    for name, error in REFUSED.items():
        if name in number:
            steps += _when(_JUMP_EQUAL, number[name], _step(_RETURN, _FAIL_WITH | error))
    known = _when(_JUMP_EQUAL, SOCKET_FAMILIES, allow)
    judged = _step(_LOAD, _ARGUMENTS[0]), *known, _step(_RETURN, _FAIL_WITH | _EAFNOSUPPORT)
    steps += _when(_JUMP_EQUAL, (number["socket"], number["socketpair"]), *judged)
    judged = _step(_LOAD, _ARGUMENTS[0]), *_when(_JUMP_ANY_BIT, NAMESPACE_FLAGS, refuse), allow
    steps += _when(_JUMP_EQUAL, number["clone"], *judged)
    # The kernel takes the request as 32 bits. Comparing all 64 has let TIOCSTI through in other sandboxes.
    judged = _step(_LOAD, _ARGUMENTS[1]), *_when(_JUMP_EQUAL, TERMINAL_REQUESTS, refuse), allow
    steps += _when(_JUMP_EQUAL, number["ioctl"], *judged)
    for name, (mode, flags) in MODE_ARGUMENTS.items():
        judged = _step(_LOAD, _ARGUMENTS[mode]), *_when(_JUMP_ANY_BIT, OWNER_BITS, refuse), allow
        if flags >= 0:  # only some of these calls create a file
            judged = *_when(_JUMP_ANY_BIT, CREATING, *judged), allow
            judged = _step(_LOAD, _ARGUMENTS[flags]), *judged
        if name in number:
            steps += _when(_JUMP_EQUAL, number[name], *judged)
    return b"".join((*steps, allow))


def _when(test: int, values: int | tuple[int, ...], *judged: bytes) -> list[bytes]:
    """Return steps that run only where a test of the loaded word holds, with this value or one of these."""
    each = (values,) if isinstance(values, int) else values
    return [step for value in each for step in (_step(test, value, no=len(judged)), *judged)]


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction; a jump skips as many steps as it says."""
    return _INSTRUCTION.pack(code, yes, no, value)
