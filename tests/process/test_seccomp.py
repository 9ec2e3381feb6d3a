"""Rules for the filter of system calls: what it refuses on paper, and what the kernel makes of it."""

import json
import os
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.process.seccomp import (
    MACHINES,
    MODE_ARGUMENTS,
    NAMESPACE_FLAGS,
    REFUSED,
    SOCKET_FAMILIES,
    TERMINAL_REQUESTS,
    filter_program,
)
from tests.helpers import HANG_S
from tests.sandboxes import BWRAP, needs_bwrap

ALLOWED = 0
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
AUDIT_ARCH_I386 = 0x40000003
AUDIT_ARCH_ARM = 0x40000028

# Halves that the kernel does not read: a filter that compares all 64 bits lets these through.
GARBAGE = (0, 1, 0xDEAD_BEEF, 0x8000_0000, 0xFFFF_FFFF)

names = pytest.mark.parametrize("machine", sorted(MACHINES))
Run: TypeAlias = Callable[..., int]


# --- the machine that the kernel has for filters ----------------------------------------------------


class BrokenProgramError(Exception):
    """What the kernel would not have taken."""


def simulate(program: bytes, arch: int, number: int, arguments: Iterable[int] = ()) -> int:
    """Runs a program as the kernel does; gives the error that the call fails with, 0 if allowed."""
    steps = list(struct.iter_unpack("<HBBI", program))
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFF_FFFF, arch, 0, *words)
    accumulator, place = 0, 0
    while place < len(steps):
        code, yes, no, value = steps[place]
        place += 1
        match code:
            case 0x20:
                if value % 4 or value + 4 > len(data):
                    raise BrokenProgramError(f"load at {value}")
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x15:
                place += yes if accumulator == value else no
            case 0x35:
                place += yes if accumulator >= value else no
            case 0x45:
                place += yes if accumulator & value else no
            case 0x06:
                return error_of(value)
            case _:
                raise BrokenProgramError(f"code {code:#x}")
    raise BrokenProgramError("it ends without an answer")


def error_of(answer: int) -> int:
    if answer == 0x7FFF_0000:
        return ALLOWED
    if answer >> 16 != 5 or answer & 0xFFFF == 0:
        raise BrokenProgramError(f"answer {answer:#x}")
    return answer & 0xFFFF


def call(machine: str, name: str, *arguments: int) -> int:
    """Return what becomes of a call, by its name."""
    number = MACHINES[machine][2][name]
    return simulate(program_of(machine), AUDIT_ARCH[machine], number, arguments)


def program_of(machine: str) -> bytes:
    program = filter_program(machine)
    assert program is not None
    return program


def with_garbage(low: int) -> list[int]:
    """Return a 32-bit value with many upper halves."""
    return [high << 32 | low for high in GARBAGE]


# --- on paper --------------------------------------------------------------------------------------


def test_a_machine_without_a_table_has_no_filter() -> None:
    """Anyone who asks is told that there is none, not given one that means other calls."""
    assert all(filter_program(name) is None for name in ("riscv64", "i686", "armv7l", "AMD64", ""))


@names
def test_the_program_is_one_that_the_kernel_takes(machine: str) -> None:
    """It is bounded, each step is known, each way through it ends, and no jump leads out of it."""
    program = program_of(machine)
    steps = list(struct.iter_unpack("<HBBI", program))
    assert 0 < len(steps) <= 256
    assert len(program) == 8 * len(steps)
    for place, (code, yes, no, _) in enumerate(steps):
        assert code in {0x20, 0x15, 0x35, 0x45, 0x06}
        assert place + 1 + max(yes, no) < len(steps) or code == 0x06
    reached = {0}
    for place, (code, yes, no, _) in enumerate(steps):
        assert place in reached, "a step that nothing leads to"
        if code == 0x20:
            reached |= {place + 1}
        elif code != 0x06:
            reached |= {place + 1 + yes, place + 1 + no}


@names
@pytest.mark.parametrize("high", GARBAGE)
def test_what_is_refused_is_refused_whatever_its_arguments(machine: str, high: int) -> None:
    """Sandbox: the calls of the table, each with the error that stands there."""
    table = MACHINES[machine][2]
    for name, error in REFUSED.items():
        if name in table:
            assert call(machine, name, high << 32, high, high << 32) == error, name


# Each call that must be refused and its error, once more: the table itself could leave one out.
EXPECTED = {
    ENOSYS: "io_uring_setup io_uring_enter io_uring_register clone3 openat2",
    EPERM: """
        mount umount2 pivot_root chroot setns unshare fsopen fsconfig fsmount fspick move_mount
        open_tree open_tree_attr mount_setattr add_key request_key keyctl bpf perf_event_open
        userfaultfd kexec_load kexec_file_load init_module finit_module delete_module
        open_by_handle_at quotactl quotactl_fd swapon swapoff reboot clock_settime settimeofday
        adjtimex clock_adjtime acct syslog lookup_dcookie setxattr lsetxattr fsetxattr setxattrat
    """,
}
EXPECTED_ON_X86_64 = "create_module query_module iopl ioperm"


@names
def test_nothing_is_missing_in_the_table(machine: str) -> None:
    """Sandbox, by name: what is to be refused is refused."""
    for error, text in EXPECTED.items():
        for name in text.split():
            assert call(machine, name) == error, name
    if machine == "x86_64":
        assert all(call(machine, name) == EPERM for name in EXPECTED_ON_X86_64.split())


@names
def test_all_other_calls_are_allowed(machine: str) -> None:
    """What is not in the table is allowed: no number but these is refused."""
    special = {"socket", "socketpair", "clone", "ioctl", *MODE_ARGUMENTS}
    table = MACHINES[machine][2]
    refused = set(REFUSED)
    assert set(table) <= refused | special
    arch = AUDIT_ARCH[machine]
    seen = {number for number in range(1024) if simulate(program_of(machine), arch, number) != ALLOWED}
    # A socket of family 0 is refused too.
    expected = {table[name] for name in (refused | {"socket", "socketpair"}) if name in table}
    assert seen == expected


@names
@given(number=st.integers(0, 2**32 - 1), arguments=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_call_gets_an_answer(machine: str, number: int, arguments: list[int]) -> None:
    """Whatever is called with whatever, the program ends with one of its four answers."""
    answer = simulate(program_of(machine), AUDIT_ARCH[machine], number, arguments)
    assert answer in {ALLOWED, EPERM, ENOSYS, EAFNOSUPPORT}


@names
def test_calls_of_another_machine_are_refused(machine: str) -> None:
    """A 32-bit program has other numbers for the same calls: none of them is let through."""
    others = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, *AUDIT_ARCH.values(), 0, 0xFFFF_FFFF}
    for arch in others - {AUDIT_ARCH[machine]}:
        for number in (0, 1, 20, 39, 165, 0x4000_0027, 0xFFFF_FFFF):
            assert simulate(program_of(machine), arch, number) == EPERM


def test_the_second_table_of_x86_64_does_not_exist() -> None:
    """Sandbox: x32 has the machine's own arch, and every call a second time."""
    program, arch = program_of("x86_64"), AUDIT_ARCH["x86_64"]
    for number in (0x4000_0000, 0x4000_0000 | 165, 0x4000_0000 | 512, 0x7FFF_FFFF, 0xFFFF_FFFF):
        assert simulate(program, arch, number) == ENOSYS
    assert simulate(program, arch, 0x3FFF_FFFF) == ALLOWED


@names
@pytest.mark.parametrize("name", ["socket", "socketpair"])
def test_sockets_are_of_four_families(machine: str, name: str) -> None:
    """Sandbox: UNIX, INET, INET6, NETLINK; the kernel reads the family as 32 bits."""
    assert SOCKET_FAMILIES == (1, 2, 10, 16)
    for family in range(64):
        error = ALLOWED if family in SOCKET_FAMILIES else EAFNOSUPPORT
        for word in with_garbage(family):
            assert call(machine, name, word, 1, 0) == error, (name, word)
    assert call(machine, name, 0xFFFF_FFFF) == EAFNOSUPPORT


@names
def test_a_child_in_another_namespace_is_refused(machine: str) -> None:
    """Sandbox: clone with any CLONE_NEW… fails; threads and plain children are let through."""
    flags = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
    assert sum(flags) == NAMESPACE_FLAGS
    plain = {
        "fork": 0x01200011,  # CHILD_SETTID | CHILD_CLEARTID | SIGCHLD
        "vfork": 0x00004111,  # VM | VFORK | SIGCHLD
        "thread": 0x003D0F00,  # what pthread_create asks for
    }
    for bits in plain.values():
        for word in with_garbage(bits):
            assert call(machine, "clone", word) == ALLOWED
        for flag in flags:
            for word in with_garbage(bits | flag):
                assert call(machine, "clone", word) == EPERM, hex(flag)


@names
def test_nobody_types_into_a_terminal(machine: str) -> None:
    """Sandbox: TIOCSTI and TIOCLINUX, by the 32 bits that the kernel reads (CVE-2017-5226 and after)."""
    assert TERMINAL_REQUESTS == (0x5412, 0x541C)
    for handle in (0, 2**64 - 1):
        for request in (0x5412, 0x541C):
            assert all(call(machine, "ioctl", handle, w) == EPERM for w in with_garbage(request))
        # TCGETS, TIOCGWINSZ, TIOCSCTTY, FIONREAD; and the number of a refused one in another place.
        for request in (0x5401, 0x5413, 0x540E, 0x541B, 0x5412_0000):
            assert all(call(machine, "ioctl", handle, w) == ALLOWED for w in with_garbage(request))
        assert call(machine, "ioctl", 0x5412, 0x5401, 0x5412) == ALLOWED


# The argument that is the mode, and what makes it count: once more, by hand.
MODES: dict[str, tuple[int, int | None]] = {
    "chmod": (1, None),
    "fchmod": (1, None),
    "fchmodat": (2, None),
    "fchmodat2": (2, None),
    "creat": (1, None),
    "mknod": (1, None),
    "mknodat": (2, None),
    "open": (2, 1),
    "openat": (3, 2),
}


@names
def test_no_file_gets_the_rights_of_its_owner(machine: str) -> None:
    """Sandbox: no call sets S_ISUID or S_ISGID; where the flags make no file, its mode means nothing."""
    on_aarch64 = {"fchmod", "fchmodat", "fchmodat2", "mknodat", "openat"}
    assert MODES.keys() & MACHINES[machine][2].keys() == (MODES.keys() if machine == "x86_64" else on_aarch64)
    for name in MODES.keys() & MACHINES[machine][2].keys():
        place, flags = MODES[name]
        for mode in (0o4755, 0o2755, 0o6000, 0o104755, 0o755, 0o1777, 0o100644, 0, 0o20000):
            for word in with_garbage(mode):
                words = [2**64 - 1] * 6
                words[place] = word
                if flags is not None:
                    words[flags] = 0x80000  # O_CLOEXEC
                    assert call(machine, name, *words) == ALLOWED
                    # O_CREAT, O_TMPFILE as both machines' headers have them, with O_WRONLY.
                    words[flags] = 0x41 if mode % 2 else 0x410001
                expected = EPERM if mode & 0o6000 else ALLOWED
                assert call(machine, name, *words) == expected, (name, oct(word))


# --- the numbers -----------------------------------------------------------------------------------

# Where the C library's headers lie on Debian, Fedora, Arch, Alpine; asm-generic is aarch64's table.
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


@names
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    """A wrong number would refuse a harmless call, and let the harmful one through."""
    files = [Path(name) for name in HEADERS[machine] if Path(name).is_file()]
    if not files:
        pytest.skip(f"no kernel headers for {machine} here")
    text = files[0].read_text("utf-8")
    pairs = re.findall(r"^#define __NR_(\w+)\s+(\d+)\s*$", text, re.MULTILINE)
    numbers = {name: int(number) for name, number in pairs}
    ours = MACHINES[machine][2]
    # The headers may be older than a call.
    young = {"fchmodat2", "setxattrat", "open_tree_attr"}  # of Linux 6.6, 6.13 and 6.15
    known = ours.keys() & numbers.keys()
    assert ours.keys() - known <= young
    assert {name: ours[name] for name in known} == {name: numbers[name] for name in known}


# --- in the kernel ---------------------------------------------------------------------------------

# Makes the calls it is told, each in a child of its own, and prints the error of each.
_CALLER = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def error_of(words):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        result = libc.syscall(*[ctypes.c_uint64(word) for word in words])
        error = ctypes.get_errno() if result == -1 else 0
        os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 10)
    os.close(read)
    os.waitpid(pid, 0)
    return int(said or -1)
print(json.dumps([error_of(words) for words in json.loads(sys.argv[1])]))
"""


def in_sandbox(program: str, *arguments: str, filtered: bool = True) -> str:
    """Runs a Python program as the root of a sandbox that only the filter makes one."""
    needs_bwrap()
    text = filter_program(platform.machine())
    if text is None:
        pytest.skip(f"no filter for {platform.machine()}")
    handle = os.memfd_create("filter")
    try:
        os.write(handle, text)
        os.lseek(handle, 0, os.SEEK_SET)
        rights = ["--unshare-user", "--unshare-pid", "--unshare-net", "--cap-add", "ALL"]
        rights += ["--uid", "0", "--gid", "0", "--die-with-parent", "--new-session"]
        disk = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
        said = ["--seccomp", str(handle)] if filtered else []
        python = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", program, *arguments]
        done = subprocess.run(
            [BWRAP, *rights, *disk, *said, "--", *python],
            capture_output=True,
            text=True,
            pass_fds=[handle],
            check=False,
            timeout=HANG_S,
        )
    finally:
        os.close(handle)
    assert done.returncode == 0, done.stderr
    return done.stdout


def real_errors(calls: list[list[int]], *, filtered: bool = True) -> list[int]:
    return list(json.loads(in_sandbox(_CALLER, json.dumps(calls), filtered=filtered)))


def here() -> dict[str, int]:
    """Return the numbers of this machine's calls."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        pytest.skip(f"no table for {platform.machine()}")
    return machine[2]


def test_the_kernel_refuses_what_the_table_refuses() -> None:
    """The same calls for real, by one who has all rights in the sandbox: the filter alone refuses.

    Arguments are all -1, which no call takes: should the filter let one through, it comes to nothing.
    """
    table = here()
    names = [name for name in REFUSED if name in table]
    seen = real_errors([[table[name], *[2**64 - 1] * 6] for name in names])
    assert dict(zip(names, seen, strict=True)) == {name: REFUSED[name] for name in names}


def test_the_filter_is_what_refuses() -> None:
    """The same calls without the filter meet other answers, so it was the filter above."""
    table = here()
    calls = ("chroot", "mount", "unshare", "setns", "pivot_root", "add_key")
    words = [[table[name], *[2**64 - 1] * 6] for name in calls]
    free, held = real_errors(words, filtered=False), real_errors(words)
    assert all(error != EPERM for error in free), free
    assert all(error == EPERM for error in held), held


@pytest.mark.parametrize("high", GARBAGE)
def test_the_kernel_refuses_by_argument(high: int) -> None:
    """Families, namespaces and requests for real, with upper halves that the kernel does not read."""
    table = here()
    up = high << 32
    none = 2**64 - 1
    cases = {
        "AF_UNIX": ([table["socket"], up | 1, 1, 0], ALLOWED),
        "AF_INET": ([table["socket"], up | 2, 1, 0], ALLOWED),
        "AF_NETLINK": ([table["socket"], up | 16, 3, 0], ALLOWED),
        "AF_PACKET": ([table["socket"], up | 17, 3, 0], EAFNOSUPPORT),
        "AF_ALG": ([table["socket"], up | 38, 5, 0], EAFNOSUPPORT),
        "AF_VSOCK": ([table["socket"], up | 40, 1, 0], EAFNOSUPPORT),
        "pair": ([table["socketpair"], up | 40, 1, 0, 0], EAFNOSUPPORT),
        "NEWUSER": ([table["clone"], up | 0x1000_0011, 0, 0, 0, 0], EPERM),
        "NEWNS": ([table["clone"], up | 0x0002_0011, 0, 0, 0, 0], EPERM),
        # No such descriptor (EBADF) is what a call hears that gets through.
        "TIOCSTI": ([table["ioctl"], none, up | 0x5412, 0], EPERM),
        "TIOCLINUX": ([table["ioctl"], none, up | 0x541C, 0], EPERM),
        "TCGETS": ([table["ioctl"], none, up | 0x5401, 0], 9),
    }
    seen = real_errors([words for words, _ in cases.values()])
    assert dict(zip(cases, seen, strict=True)) == {name: error for name, (_, error) in cases.items()}


def test_the_kernel_refuses_the_second_table() -> None:
    """getpid exists twice on x86_64; its x32 number is refused, also where a kernel has x32."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86_64 has x32")
    assert real_errors([[39], [0x4000_0000 | 39]]) == [ALLOWED, ENOSYS]


# getpid as a 32-bit program calls it: mov eax, 20; int 0x80; ret.
_OLD_CALL = """
import ctypes, mmap, os
room = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
room.write(bytes.fromhex("b814000000cd80c3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(room))
print("ready", flush=True)
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)(), flush=True)
os._exit(0)
"""


def test_the_kernel_refuses_32_bit_calls() -> None:
    """A 64-bit program can make the calls of a 32-bit one; they are refused, all of them."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86_64 has this way in")
    program = f"""
import os, signal, sys
pid = os.fork()
if pid == 0:
    exec({_OLD_CALL!r})
_, status = os.waitpid(pid, 0)
print("ended", os.waitstatus_to_exitcode(status))
"""
    free = in_sandbox(program, filtered=False).split()
    if free[-1] != "0":
        pytest.skip("this kernel has no 32-bit calls")
    assert int(free[1]) > 0
    assert in_sandbox(program).split() == ["ready", str(-EPERM), "ended", "0"]


_WORK = """
import os, socket, subprocess, sys, threading
thread = threading.Thread(target=lambda: print("thread"))
thread.start(); thread.join()
sys.stdout.flush()
subprocess.run(["/bin/sh", "-c", "echo child | cat"], check=True)
a, b = socket.socketpair()
a.send(b"!"); assert b.recv(1) == b"!"
master, slave = os.openpty()
assert os.get_terminal_size(slave) is not None
print("done", flush=True)
"""


def test_programs_still_work() -> None:
    """Threads, children, pipes, sockets and terminals work: what falls back finds its older call."""
    assert in_sandbox(_WORK).split() == ["thread", "child", "done"]


def test_a_debugger_still_works() -> None:
    """Sandbox: ptrace is left allowed, for the command sees its own processes only."""
    # PTRACE_TRACEME, then PTRACE_ATTACH to nobody (ESRCH).
    number = {"x86_64": 101, "aarch64": 117}.get(platform.machine())
    if number is None:
        pytest.skip(f"no table for {platform.machine()}")
    assert real_errors([[number, 0, 0, 0, 0], [number, 16, 2**31 - 1, 0, 0]]) == [ALLOWED, 3]
