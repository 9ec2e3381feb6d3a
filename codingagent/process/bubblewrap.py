"""Confine commands with bubblewrap; where it does not work, run them unconfined and say so.

A command sees an allow list of the system, read-only. It can write to the workspace but for `.git`, a private
/tmp and a home folder in memory. The network is a private loopback only. No capability is left, and `seccomp`
refuses calls that are only useful for escaping. bwrap mounts the system, whose names no command can change;
the person's folders are examined here and mounted by the guard, which finds the same or starts nothing
(`mounts`).
"""

import contextlib
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from codingagent.model.observations import LAYER_BYTES, Confined
from codingagent.process import folders, seccomp
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import file_id
from codingagent.workspace.own_code import own_code_in

# Only paths that no answer can write. Some systems grant user namespaces to this very path.
_BWRAP = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin")

_ROOTS = folders.listed("system folders")
_SYSTEM_PARTS = folders.listed("parts of the system")
_SECRET_FILES = folders.listed("secret files of the system")
_SECRET_FOLDERS = folders.listed("secret folders of the system")
# Where systemd keeps the target of /etc/resolv.conf.
_RESOLVER = "/run/systemd/resolve"
_MEMORY_BYTES = 256 * 2**20
# The size limit of a file system that only holds mount points.
_PLACES_BYTES = 2**16
# The descriptor where bwrap waits for the guard's mounts: it copies it to a file until its end.
_GATE = ("--file", "4", "/proc/gate")

# Runs the command in a shell of its own and counts the processes that it leaves running: they end
# with the namespace, so nobody could count them later. "+" reports that the sandbox has started;
# without a guard that reads it, nothing is run.
_TELLER = (
    'exec 4>&2 2>/dev/null; echo + >&3 || exit; /bin/sh -c -- "$1" 2>&4 3>&- 4>&-; code=$?;'
    " set -- /proc/[0-9]*; echo $(($# - 2)) >&3; exit $code"
)

# Elsewhere a command could leave the copy.
NO_TRIALS = "answers are tried only in the sandbox, which does not work here: see `codingagent doctor`"

Variables = Mapping[str, str]
NOTHING: Variables = MappingProxyType({})


class Mount(Struct, frozen=True):
    """What a command sees at one path of the person's.

    `kind` is one of

        bind   show `source`, a real path outside, at `target`
        keep   keep what is at `target`, but read-only
        empty  cover `target` with an empty folder in memory, or an empty file
        mask   the same, if anything is there
        layer  show `source`; what is written goes to the folder `stored` of the layer instead. If the kernel
               can't do that, it is read-only; unless that is not asked for, or there is no source: then
               `target` is a folder of the layer alone

    With `is_pinned`, what is hidden in the folder shown stays hidden if the person replaces a file there.
    One that `is_optional` is left out if there is no place for it, which an earlier command may have taken.
    `identity` is the device and inode expected of the source, or else of the target. Without one, a
    missing target is created.
    """

    kind: Literal["bind", "keep", "empty", "mask", "layer"]
    target: Path
    source: Path | None = None
    identity: tuple[int, int] | None = None
    is_read_only: bool = True
    mode: int = 0o500
    size: int = 0
    stored: str = ""
    is_pinned: bool = False
    is_optional: bool = False


class Unconfined(Struct, frozen=True):
    """Commands run with the rights of the person who started the agent; `reason` says why."""

    reason: str = ""
    tier: str = "none"
    has_network: bool = True
    network: str = "the user's own"
    description: str = "none; commands run with the user's full permissions, so be careful with them"

    @property
    def remark(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            "commands in answers run without a sandbox, with your full permissions; only file operations are"
            f" confined to the workspace{why}"
        )

    def with_temporary(self, _name: str) -> "Unconfined":
        return self

    def clear_temporary(self) -> None:
        """Remove nothing: the system's /tmp is not the agent's to clear."""

    def confine(self, line: str, variables: Variables, folder: str, added: Variables = NOTHING) -> Confined:
        del folder  # an unconfined command needs only its own handle on the folder
        return Confined(("/bin/sh", "-c", "--", line), {**variables, **added})


class Bubblewrap(Struct, frozen=True):
    """Run commands under bubblewrap, which can write to `workspace`, a real path.

    `hidden` are the agent's own folders. `temporary` is seen as /tmp and made when needed; no part of its
    path may be a link. Of the person's `home` only the `tools` are seen, without credentials in or beside
    them, and nothing of `others`, homes below system folders. `repositories` are inside the workspace, and
    `.git` of them is read-only too. Of the tools' `data` is seen, too, and what the person said to show
    (real paths; True: it can be written). What is written to the data goes to `layer`, a folder of ours.

    With a `copy`, commands see that in place of the workspace, which they do not see. `beside` are then the
    workspace's own folders that the copy lacks: shown in it, and what is written there goes to the layer.
    """

    program: str
    workspace: Path
    hidden: tuple[Path, ...]
    temporary: Path
    home: Path
    has_network: bool = False
    tools: Callable[[], tuple[Path, ...]] = tuple
    repositories: tuple[folders.OpenRepository, ...] = ()
    others: tuple[Path, ...] = ()
    masks_secrets: bool = False
    data: Callable[[], folders.ToolData] = folders.ToolData
    shown: Mapping[Path, bool] = {}
    layer: Path | None = None
    layer_bytes: int = LAYER_BYTES
    copy: Path | None = None
    beside: tuple[Path, ...] = ()
    tier: str = "bwrap"
    _look: folders.CredentialSearch = field(default_factory=folders.CredentialSearch)

    @property
    def remark(self) -> str:
        network = "with your network" if self.has_network else "without network"
        said = f"commands in answers run in a sandbox: they can write only to this workspace, {network}"
        if sys.platform == "linux" and os.geteuid() == 0 != os.stat(self.workspace).st_uid:
            # Without capabilities, root also loses access to other people's files.
            said += "; it belongs to another user, where root in a sandbox can't write: run as them"
        return said

    @property
    def description(self) -> str:
        masked = "; secret files look empty to them" if self.masks_secrets else ""
        return (
            "commands see the system read-only and can write only to the workspace and a private /tmp; HOME"
            f" is empty except for tools; .git is read-only, so git can show but not commit{masked}"
        )

    @property
    def network(self) -> str:
        return "on" if self.has_network else "off; servers on 127.0.0.1 work within one command"

    def confine(self, line: str, variables: Variables, folder: str, added: Variables = NOTHING) -> Confined:
        """Return the bwrap command line for a shell line, with untrusted `added` set inside only; OSError."""
        mounts = self._mounts()
        if self.copy is not None:
            folder = os.fspath(self.workspace / Path(folder).relative_to(self.copy))
        head, handles = self._head(folder, _GATE)
        for name, value in added.items():
            head += ["--setenv", name, value]
        told = ("/bin/sh", "-c", _TELLER, "sh", line)
        orders = tuple(to_builtins(mount, enc_hook=os.fspath) for mount in mounts)
        chosen = {
            **folders.ALONE,
            **(NOTHING if self.has_network else folders.OFFLINE),
            **self.data().variables,
            **variables,
        }
        chosen |= {"TMPDIR": "/tmp", "CI": variables.get("CI", "1")}  # noqa: S108
        chosen["HOME"] = os.fspath(self.home) if self._has_own_home() else "/tmp"  # noqa: S108
        layer = "" if self.layer is None else os.fspath(self.layer)
        if layer:
            _clear_set_aside(layer)
        return Confined((*head, "--", *told), chosen, handles, orders, layer, self.layer_bytes)

    def unseen(self, paths: Iterable[Path]) -> list[Path]:
        """Return which of the person's paths commands do not see, but for those hidden in what they see."""
        data = (each for part in self.data().parts for each in (part.target, part.real) if each)
        seen = {self.workspace, *_bound_roots(), *self.tools(), *self.shown, *data}
        return [each for each in paths if not _is_within(each, seen)]

    def confine_trial(self, line: str) -> Confined:
        """Return the bwrap command line for a trial line of our own, without the person's folders."""
        head, handles = self._head("/")
        return Confined((*head, "--", "/bin/sh", "-c", line), {}, handles)

    def with_temporary(self, name: str) -> "Bubblewrap":
        return replace(self, temporary=self.temporary / name)

    def clear_temporary(self) -> None:
        """Remove /tmp and everything in it; the next command gets an empty one."""
        atomic_write.remove_folder(self.temporary)

    def make_temporary(self) -> tuple[int, int]:
        """Create the /tmp of commands, a folder of ours and no link, else OSError; return its `file_id`."""
        if sys.platform != "win32":
            from codingagent.process.mounts import opened_at

            try:
                with contextlib.ExitStack() as opened:
                    found = os.fstat(opened_at("/", os.fspath(self.temporary), opened, "folder", 0o700))
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                    return file_id(found)
            except OSError as fault:
                if fault.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
        raise OSError(f"{self.temporary} is not a folder of yours; move it away")

    def _has_own_home(self) -> bool:
        """Return whether the home folder can be covered without covering the system."""
        if not _is_within(self.home, _bound_roots()):
            return self.home != Path("/")
        return _is_home_in_system(self.home)

    def _head(self, folder: str, gate: tuple[str, ...] = ()) -> tuple[list[str | int], tuple[int, ...]]:
        head: list[str | int] = [
            self.program,
            *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
            "--unshare-cgroup-try",
            *(() if self.has_network else ("--unshare-net",)),
            *("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *_system(),
            *("--dev", "/dev", "--size", str(_shared_bytes()), "--tmpfs", "/dev/shm"),  # noqa: S108
            *("--dir", "/run"),
            *(("--ro-bind-try", _RESOLVER, _RESOLVER) if self.has_network else ()),
            *gate,
            # Without the remount, root could write /proc/sys whatever its capabilities.
            *("--proc", "/proc", "--remount-ro", "/proc"),
            # Folders that bwrap made are in memory; read-only, a command can't fill it.
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", folder),
        ]
        if sys.platform == "linux" and (program := seccomp.filter_program(os.uname().machine)):
            handle = os.memfd_create("seccomp")
            os.write(handle, program)
            os.lseek(handle, 0, os.SEEK_SET)
            return [*head, "--seccomp", 0], (handle,)
        return head, ()

    def _mounts(self) -> list[Mount]:
        # Later mounts cover earlier ones: private folders first, then tools, then the workspace,
        # and its protected paths last.
        own, root = self.make_temporary(), self.workspace
        places = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108
        mounts = [Mount("bind", each, self.temporary, own, is_read_only=False) for each in places]
        mounts += [self._covered(each) for each in self.others if each != self.home]
        if self._has_own_home():
            size = _MEMORY_BYTES
            mounts += [Mount("empty", self.home, is_read_only=False, mode=0o700, size=size)]
        mounts += sorted(self._tool_mounts(), key=lambda mount: mount.target.parts)
        if self.copy is not None:
            return [*mounts, *self._copied(self.copy)]
        code = own_code_in(root)
        mounts += [Mount("bind", root, root, file_id(root), is_read_only=False)]
        for around in code.around:  # a folder that something is mounted on keeps its name
            mounts += [Mount("keep", around, identity=file_id(around), is_read_only=False)]
        mounts += [Mount("keep", each, identity=file_id(each)) for each in code.kept]
        for git in folders.git_folders(root):
            outside = None if root in git.parents else git  # of a worktree
            mounts += [Mount("bind" if outside else "keep", git, outside, file_id(git))]
        for repository in self.repositories:
            if root in (git := repository.place()).parents:
                mounts += [Mount("keep", git, identity=repository.identity)]
        hidden = {folder.resolve() for folder in self.hidden}
        empty = folders.files_of_secrets(root, hidden) if self.masks_secrets else []
        inside = {folder for folder in hidden if folder.is_dir() and root in folder.parents}
        # A folder inside a covered one is covered with it and has no mount point left.
        empty += [each for each in sorted(inside) if not inside.intersection(each.parents)]
        return mounts + [Mount("empty", each, identity=file_id(each)) for each in empty]

    def _copied(self, copy: Path) -> Iterator[Mount]:
        """Yield the mounts of a copy at the workspace's path; what commands do there stays in it."""
        root = self.workspace
        yield Mount("bind", root, copy, file_id(copy), is_read_only=False)
        for folder in self.beside:
            yield Mount("layer", folder, folder, file_id(folder), stored=_stored(folder), is_optional=True)
        nested = (git for each in self.repositories if root in (git := each.place()).parents)
        hidden = {folder.resolve() for folder in self.hidden}
        for git in dict.fromkeys((*folders.git_folders(root), *nested)):
            if not _is_within(git, hidden):
                yield Mount("bind", git, git, file_id(git))
        for each in folders.files_of_secrets(copy, set()) if self.masks_secrets else ():
            yield Mount("empty", root / each.relative_to(copy), identity=file_id(each))

    def _tool_mounts(self) -> Iterator[Mount]:
        """Yield the mounts of tools, their data, and what the person shows, with what is hidden there."""
        parts = {part.real or part.target: part.target for part in self.data().parts}
        tools = {*self.tools(), *self.shown}.difference(parts)
        cache = Path(self.data().variables.get("XDG_CACHE_HOME") or self.home / ".cache")
        if self.layer is not None and self._has_own_home():
            yield Mount("layer", cache, stored=_stored(cache), is_optional=True)
        pinned: set[Path | None] = set()
        for path in self._look.hidden_in(frozenset(tools), self.workspace, frozenset(parts)):
            above = next(each for each in path.parents if each in parts or each in tools)
            pinned.add(above)
            with contextlib.suppress(OSError):  # removed meanwhile
                yield self._covered(path, parts.get(above, above) / path.relative_to(above))
        for folder in tools:
            is_read_only = not self.shown.get(folder, False)
            is_pinned = is_read_only and folder in pinned
            mount = Mount("bind", folder, folder, None, is_read_only, is_pinned=is_pinned)
            yield replace(mount, is_optional=cache in folder.parents)
        for part in self.data().parts:
            with contextlib.suppress(OSError):
                found = file_id(part.real) if part.real else None
                kind: Literal["bind", "layer"] = "bind" if part.kind in ("?", "=") else "layer"
                stored, is_read_only = _stored(part.target), part.kind != "!"
                mount = Mount(kind, part.target, part.real, found, is_read_only, stored=stored)
                yield replace(mount, is_pinned=part.real in pinned, is_optional=True)

    def _covered(self, path: Path, target: Path | None = None) -> Mount:
        """Return the mount that covers a path, seen at a `target` or of the system."""
        is_around = any(path in each.parents for each in (self.workspace, self.home, *self.tools()))
        size = _PLACES_BYTES if is_around else 0
        mode = 0o700 if is_around else 0o500
        kind: Literal["mask", "empty"] = "mask" if target else "empty"
        identity = None if target else file_id(path)
        return Mount(kind, target or path, None, identity, not is_around, mode, size)


def forget_layer(layer: Path) -> bool:
    """Remove a layer; return whether no command had a part of it, which stays then."""
    if sys.platform != "win32" and layer.is_dir():
        from codingagent.process.mounts import set_aside

        for each in list(layer.iterdir()):
            if each.name.isdigit():
                set_aside(os.fspath(each))
        _clear_set_aside(os.fspath(layer))
        with contextlib.suppress(OSError):
            layer.rmdir()
    return not layer.exists()


def _clear_set_aside(layer: str) -> None:
    with contextlib.suppress(OSError):  # no command has written yet
        for name in os.listdir(layer):
            if not name.isdigit():
                atomic_write.remove_folder(Path(layer, name))


def find_bubblewrap() -> str | None:
    for program in (f"{folder}/bwrap" for folder in _BWRAP):
        with contextlib.suppress(OSError):
            found = os.stat(program)
            if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022:
                return program
    return None


def advice_on(message: str) -> str:
    for part, advice in folders.pairs("what bubblewrap says").items():
        if part in message:
            return f"{message}: {advice}"
    return message


def tools_for(
    workspace: Path, path: str, home: Path, prefixes: Iterable[str], programs: Iterable[Path] = ()
) -> tuple[Path, ...]:
    found = folders.tool_folders(path, home, workspace, prefixes, programs)
    roots = [*_bound_roots(), workspace]
    # A home folder below a system folder is covered, together with its tools.
    covered = [each for each in (home, *homes_in_system()) if _is_within(each, _bound_roots())]
    return tuple(f for f in found if not _is_within(f, roots) or _is_within(f, covered))


@cache
def _system() -> list[str]:
    flags: list[str] = []
    for name in _ROOTS:
        if os.path.islink(name):
            flags += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            flags += ["--ro-bind", name, name]
    for name in _SYSTEM_PARTS:
        flags += ["--ro-bind-try", name, name]
    for name in _SECRET_FILES:
        if os.path.lexists(name):
            flags += ["--ro-bind", "/dev/null", name]
    for name in _SECRET_FOLDERS:
        if os.path.isdir(name):
            flags += ["--tmpfs", name, "--remount-ro", name]
    return flags


@cache
def _shared_bytes() -> int:
    """Return the size of /dev/shm for commands: that outside, but a quarter of the memory at most."""
    if sys.platform == "linux":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        with contextlib.suppress(OSError):
            disk = os.statvfs("/dev/shm")  # noqa: S108
            return max(_MEMORY_BYTES, min(disk.f_blocks * disk.f_frsize, memory // 4))
    return _MEMORY_BYTES


def _stored(target: Path) -> str:
    """Return the name of a part in a layer: none lies in another, where a command could write links."""
    return f"{hashlib.sha256(os.fsencode(target)).hexdigest()[:16]}-{target.name.strip('.')[:40]}"


@cache
def _bound_roots() -> list[Path]:
    return [Path(name) for name in _ROOTS if os.path.isdir(name) and not os.path.islink(name)]


@cache
def homes_in_system() -> tuple[Path, ...]:
    """Return people's home folders below a system folder, which would be visible along with it."""
    real = {each.resolve() for each in folders.homes()}
    within = (each for each in real if _is_within(each, _bound_roots()))
    return tuple(sorted(each for each in within if _is_home_in_system(each)))


def _is_home_in_system(home: Path) -> bool:
    """Return whether a home below a system folder is not part of the system (unlike /usr/local)."""
    is_system = home.parts[1] == "usr" and (home / "bin").is_dir()
    return home.is_dir() and not is_system and len(home.parts) > 2


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return not {path, *path.parents}.isdisjoint(folders)
