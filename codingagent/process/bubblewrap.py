"""What confines a command besides its limits: bubblewrap where it works, else nothing, and that is said.

How it works. A command sees an allow list of the system, read-only, instead of the whole of it with
holes: what nobody thought of is then hidden, not open. It writes the workspace, a private /tmp and a
home folder in memory. `.git` is read-only inside the workspace, and a home of ours that is there can't
be seen. There is no network but a loopback of its own. No capability is left, and a system call filter
(`seccomp`) refuses what is only of use to break out. Another kind of sandbox is another class with the
same attributes.

bwrap mounts the system, whose names no command can change. What belongs to the person is looked at here
and mounted by the guard, which finds the same or starts nothing (`mounts`).
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from codingagent.process import credentials, seccomp, toolchains
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import walk_names

# Only from where an answer can't have put it. Some systems grant user namespaces to this very path.
_BWRAP = (
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)

_ROOTS = (
    "/usr",
    "/opt",
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/snap",
)
_SECRET_FILES = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *("/etc/krb5.keytab", "/etc/security/opasswd"),
)
_SECRET_FOLDERS = (
    *("/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d", "/etc/wireguard", "/etc/openvpn"),
    *(
        "/etc/kubernetes",
        "/etc/rancher",
        "/etc/NetworkManager/system-connections",
        "/etc/pki/tls/private",
    ),
)
# Where systemd keeps what /etc/resolv.conf leads to.
_RESOLVER = "/run/systemd/resolve"

# A start must not wait for a walk through all that was ever installed.
_LOOK_LIMIT_FOLDERS = 2000
_NOT_LOOKED_INTO = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__"})

# Each is held open, and there are a thousand handles at most.
_REPOSITORY_LIMIT = 400

_MEMORY_BYTES = 256 * 2**20

# Of what is only to hold the places of mounts.
_PLACES_BYTES = 2**16

# Since then a mount can be made read-only by its descriptor (mount_setattr).
_LINUX = (5, 12)

# The handle at which bwrap waits for the guard's mounts: it copies that to a file, up to its end.
_GATE = ("--file", "4", "/proc/gate")

# Runs the command in a shell of its own and counts what it leaves behind, since all of that ends with
# the namespace and nobody could count it after. "+" says that the sandbox itself has started; without a
# guard to hear it, nothing is run.
_TELLER = (
    'exec 4>&2 2>/dev/null; echo + >&3 || exit; /bin/sh -c -- "$1" 2>&4 3>&- 4>&-; code=$?;'
    " set -- /proc/[0-9]*; echo $(($# - 2)) >&3; exit $code"
)

_ADVICE = {
    "Unknown option": "bubblewrap 0.8 or newer is needed",
    "No permissions to create": "this system does not let users make namespaces",
    "setting up uid map": "this system lets only chosen programs make namespaces (AppArmor); install"
    " bubblewrap from its own packages",
    "Failed RTM_NEWADDR": "this system lets only chosen programs make namespaces (AppArmor); install"
    " bubblewrap from its own packages",
    "Can't mount proc": "a container without the right to mount /proc: run it with"
    " --security-opt systempaths=unconfined",
    "Failed to make / slave": "a container that may not mount",
    "Permission denied": "as root in a folder of another user: run codingagent as that user",
}


NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Confined:
    """How to start a command. In `argv` a number stands for that one of `handles`.

    `handles` are the caller's to close. `is_told` says that handle 3 reports of its start and end.
    `mounts` are made before it starts, while it waits at handle 4.
    """

    argv: tuple[str | int, ...]
    variables: Mapping[str, str]
    handles: tuple[int, ...] = ()
    is_told: bool = False
    mounts: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Mount:
    """What a command sees of the person's in one place.

    `kind` is one of

        bind   `source`, a real path outside, is shown at `target`
        keep   what is at `target` stays, read-only
        empty  something empty covers what is at `target`, a folder in memory or a file

    `identity` is the device and the inode that must be found: of the source, else of the target. Without
    one a missing target is made.
    """

    kind: Literal["bind", "keep", "empty"]
    target: Path
    source: Path | None = None
    identity: tuple[int, int] | None = None
    is_read_only: bool = True
    mode: int = 0o500
    size: int = 0

    def order(self) -> dict[str, object]:
        """Return it for the guard."""
        return {
            "kind": self.kind,
            "target": os.fspath(self.target),
            "source": os.fspath(self.source or ""),
            "identity": self.identity,
            "is_read_only": self.is_read_only,
            "mode": self.mode,
            "size": self.size,
        }


@dataclass(frozen=True, slots=True)
class Unconfined:
    """Commands run with the rights of the person who started the agent; `reason` says why."""

    reason: str = ""
    tier: str = "none"
    has_network: bool = True

    @property
    def remark(self) -> str:
        """For the person, once a session."""
        why = f" ({self.reason})" if self.reason else ""
        return (
            "commands in answers run unconfined here, with your own rights; only file operations are"
            f" held in the workspace{why}"
        )

    @property
    def description(self) -> str:
        """For the model."""
        return "none; commands run with the person's own rights, so be careful with them"

    @property
    def network(self) -> str:
        return "as the person has it"

    def with_temporary(self, name: str) -> "Unconfined":
        del name  # commands use the /tmp of everyone
        return self

    def clear_temporary(self) -> None:
        """Remove nothing: what is in the /tmp of everyone is not ours."""

    def confine(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        added: Mapping[str, str] = NOTHING,
    ) -> Confined:
        del folder  # the command's own handle on it is all that it takes
        return Confined(tuple(argv), {**variables, **added})


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Commands run under bubblewrap.

    Args:
        program: bwrap, from a folder that only root writes.
        workspace: the real path of the folder that commands may write.
        hidden: folders of ours; those in the workspace are covered.
        temporary: a folder of ours, which commands see as /tmp; made when it is needed. No part of its
            path may be a link.
        home: the person's home folder, of which commands see their tools only.
        has_network: leave the network on.
        tools: folders outside of the system's that commands need to find their programs; credentials
            beside these are hidden.
        others: other people's home folders, where commands would see them with the system's folders.
        repositories: those within the workspace, whose `.git` is read-only too.
    """

    program: str
    workspace: Path
    hidden: tuple[Path, ...]
    temporary: Path
    home: Path
    has_network: bool = False
    tools: tuple[Path, ...] = ()
    repositories: tuple["Repository", ...] = ()
    others: tuple[Path, ...] = ()
    tier: str = "bwrap"
    _look: credentials.Look = field(default_factory=credentials.Look, repr=False, compare=False)

    @property
    def remark(self) -> str:
        """For the person, once a session."""
        network = "with your network" if self.has_network else "without network"
        said = (
            f"commands in answers run in a sandbox: they can write this workspace only, {network}"
        )
        if os.geteuid() == 0 and os.stat(self.workspace).st_uid != 0:
            # All capabilities are gone, and with them root's right to other people's files.
            said += (
                "; it belongs to another user, and root in a sandbox can't write there: run as them"
            )
        return said

    @property
    def description(self) -> str:
        """For the model."""
        return (
            "commands see the system read-only and write only the workspace and a private /tmp; HOME is"
            " empty but for tools; .git is read-only, so git can show but not commit"
        )

    @property
    def network(self) -> str:
        return "on" if self.has_network else "off; servers on 127.0.0.1 work within one command"

    def confine(
        self,
        argv: Sequence[str],
        variables: Mapping[str, str],
        folder: str,
        added: Mapping[str, str] = NOTHING,
    ) -> Confined:
        """Return the bwrap command line for one command.

        Args:
            argv: `/bin/sh`, its options, and the shell line.
            variables: the environment, which bwrap itself sees too.
            folder: the real path of the folder to run in.
            added: variables that are not the person's own: they are set inside, where bwrap, which
                runs outside, is not moved by them (LD_PRELOAD).

        Raises:
            OSError: if the private /tmp can't be made.
        """
        mounts = self._mounts()
        head: list[str | int] = [self.program, *self._flags(_GATE), "--chdir", folder]
        handles = _add_filter(head)
        for name, value in added.items():
            head += ["--setenv", name, value]
        *shell, command = argv
        del shell  # /bin/sh -c, which the teller does itself
        told = ("/bin/sh", "-c", _TELLER, "sh", command)
        orders = tuple(mount.order() for mount in mounts)
        chosen = self._variables(variables)
        return Confined((*head, "--", *told), chosen, handles, is_told=True, mounts=orders)

    def confine_trial(self, line: str) -> Confined:
        """Return the bwrap command line for a line of ours that needs nothing of the person's."""
        head: list[str | int] = [self.program, *self._flags(), "--chdir", "/"]
        handles = _add_filter(head)
        return Confined((*head, "--", "/bin/sh", "-c", line), {}, handles)

    def with_temporary(self, name: str) -> "Bubblewrap":
        """Return the same sandbox with a /tmp of its own, below this one's."""
        return replace(self, temporary=self.temporary / name)

    def clear_temporary(self) -> None:
        """Remove /tmp and what commands have left there; the next one has an empty one."""
        atomic_write.remove_folder(self.temporary)

    def make_temporary(self) -> tuple[int, int]:
        """Make the /tmp of commands; return its device and inode.

        A link in its way would open to commands whatever it leads to.

        Raises:
            OSError: if it can't be made, or is not the person's.
        """
        with contextlib.ExitStack() as opened:
            at = os.open("/", os.O_PATH)
            opened.callback(os.close, at)
            for name in self.temporary.parts[1:]:
                try:
                    at = _opened_or_made(name, at)
                except NotADirectoryError:
                    raise OSError(f"{self.temporary} is no folder of yours; move it away") from None
                opened.callback(os.close, at)
            found = os.fstat(at)
        if found.st_uid != os.geteuid():
            raise OSError(f"{self.temporary} is no folder of yours; move it away")
        return found.st_dev, found.st_ino

    def _variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        chosen = {**variables, "TMPDIR": "/tmp", "CI": variables.get("CI", "1")}  # noqa: S108
        chosen["HOME"] = os.fspath(self.home) if self._has_own_home() else "/tmp"  # noqa: S108
        return chosen

    def _has_own_home(self) -> bool:
        """Tells whether the home folder's name can be covered without covering the system."""
        if not _is_within(self.home, _bound_roots()):
            return self.home != Path("/")
        return _is_home_in_system(self.home)

    def _flags(self, gate: tuple[str, ...] = ()) -> list[str]:
        return [
            *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
            "--unshare-cgroup-try",
            *(() if self.has_network else ("--unshare-net",)),
            *("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *_system(),
            *("--dev", "/dev", "--size", str(_MEMORY_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
            *("--dir", "/run", *(self._resolver() if self.has_network else ())),
            *gate,
            # Without the remount root may write /proc/sys, whatever its capabilities are.
            *("--proc", "/proc", "--remount-ro", "/proc"),
            # The folders that bwrap itself made are in memory: no place to fill it.
            *("--remount-ro", "/dev", "--remount-ro", "/"),
        ]

    def _mounts(self) -> list[Mount]:
        """Return what is mounted of the person's, as it is now.

        Raises:
            OSError: if the private /tmp can't be made, or the workspace is gone.
        """
        # What comes later is on top: private folders, then tools, then the workspace, and what is
        # protected in it last.
        own, root = self.make_temporary(), self.workspace
        places = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108
        return [
            *(Mount("bind", each, self.temporary, own, is_read_only=False) for each in places),
            *(self._covered(each) for each in self.others if each != self.home),
            *(self._own_home() if self._has_own_home() else ()),
            *self._tools(),
            Mount("bind", root, root, _identity(root), is_read_only=False),
            *(self._kept(git) for git in git_folders(self.workspace)),
            *(kept for each in self.repositories for kept in self._kept_where_it_is(each)),
            *self._covers(),
        ]

    @staticmethod
    def _resolver() -> tuple[str, ...]:
        return ("--ro-bind-try", _RESOLVER, _RESOLVER)

    def _tools(self) -> list[Mount]:
        """Return what shows the tools, and covers the credentials beside them."""
        shown = [Mount("bind", folder, folder) for folder in self.tools]
        hidden = self._look.hidden_in(frozenset(self.tools), self.workspace)
        covers: list[Mount] = []
        for path in hidden:
            with contextlib.suppress(OSError):  # removed since
                covers.append(self._covered(path))
        # What is in another comes after it; a tool may be in what is covered.
        return sorted([*covers, *shown], key=lambda mount: mount.target.parts)

    def _covered(self, path: Path) -> Mount:
        """Return what covers a file or a folder; what is shown in it has yet to be mounted there."""
        is_around = any(path in each.parents for each in (self.workspace, self.home, *self.tools))
        size = _PLACES_BYTES if is_around else 0
        mode = 0o700 if is_around else 0o500
        return Mount("empty", path, None, _identity(path), not is_around, mode, size)

    def _own_home(self) -> tuple[Mount]:
        return (Mount("empty", self.home, is_read_only=False, mode=0o700, size=_MEMORY_BYTES),)

    def _kept(self, git: Path) -> Mount:
        """Return what makes a `.git` read-only; that of a worktree is elsewhere."""
        if self.workspace in git.parents:
            return Mount("keep", git, identity=_identity(git))
        return Mount("bind", git, git, _identity(git))

    def _kept_where_it_is(self, repository: "Repository") -> Iterator[Mount]:
        git = repository.place()
        if git is not None and self.workspace in git.parents:
            yield Mount("keep", git, identity=repository.identity)

    def _covers(self) -> list[Mount]:
        """Return what hides that which is ours in the workspace."""
        inside = {folder.resolve() for folder in self.hidden if folder.is_dir()}
        inside = {folder for folder in inside if self.workspace in folder.parents}
        # What is in one that is covered is covered with it, and has no place left to be mounted.
        outermost = [each for each in sorted(inside) if not inside.intersection(each.parents)]
        return [Mount("empty", folder, identity=_identity(folder)) for folder in outermost]


def find_bubblewrap() -> str | None:
    """Return bwrap's path, from a folder that no answer can write; None if it is not there."""
    for program in _BWRAP:
        with contextlib.suppress(OSError):
            found = os.stat(program)
            if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022:
                return program
    return None


def lack_for_mounts(program: str) -> str | None:
    """Return why the guard could not mount in a sandbox of this bwrap; None if it can."""
    first, second, *_ = os.uname().release.partition("-")[0].split(".")
    if (int(first), int(second)) < _LINUX:
        return f"Linux {'.'.join(map(str, _LINUX))} or newer is needed"
    if os.geteuid() and os.stat(program).st_mode & stat.S_ISUID:
        return f"{program} runs as root: take its setuid bit away, or install a newer one"
    return None


def advice_on(message: str) -> str:
    """Return what a message of bwrap's means, in words, with the message itself."""
    for part, advice in _ADVICE.items():
        if part in message:
            return f"{message}: {advice}"
    return message


def git_folders(workspace: Path) -> list[Path]:
    """Return what must be read-only for git's data to be: `.git`, and of a worktree the repository after it.

    A worktree's `.git` is a file that names a folder elsewhere. It is believed only if that folder names
    this worktree in turn, which nobody who writes just here can bring about.
    """
    git = workspace / ".git"
    if git.is_symlink():
        # A command may have made it: where it leads must not come into view by that.
        with contextlib.suppress(
            OSError, RuntimeError
        ):  # a link to itself; 3.11 says so by the latter
            real = git.resolve()
            return [real] if workspace in real.parents and real.exists() else []
        return []
    if git.is_dir():
        return [git]
    said = toolchains.small_text(git)
    if not said.startswith("gitdir:") or "\0" in said:
        return [git] if git.exists() else []
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        folder = (workspace / said.removeprefix("gitdir:").strip()).resolve()
        back = toolchains.small_text(folder / "gitdir").strip()
        common = (folder / toolchains.small_text(folder / "commondir").strip()).resolve()
        is_ours = (
            back and (folder / back).resolve() == git and folder.parent == common / "worktrees"
        )
        if is_ours and (common / "HEAD").is_file() and (common / "objects").is_dir():
            return [git, common]
    return [git]


class Repository:
    """The `.git` of a repository, held open: it is known wherever a command moves it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        found = os.fstat(handle)
        self.identity = found.st_dev, found.st_ino

    def __del__(self) -> None:
        os.close(self._handle)

    def place(self) -> Path | None:
        """Return its path as it is now; None if it was removed."""
        path = os.readlink(f"/proc/self/fd/{self._handle}")
        return None if path.endswith("/.git (deleted)") else Path(path)


def repositories_in(workspace: Path) -> tuple[Repository, ...]:
    """Return the repositories below a workspace's root, as far as a quick look finds them."""
    found: list[Repository] = []
    for folder, names, others in islice(walk_names(os.fspath(workspace)), _LOOK_LIMIT_FOLDERS):
        if (".git" in names or ".git" in others) and Path(folder) != workspace:
            with contextlib.suppress(OSError):  # gone since
                handle = os.open(Path(folder) / ".git", os.O_PATH | os.O_NOFOLLOW)
                repository = Repository(handle)
                if not stat.S_ISLNK(os.fstat(handle).st_mode):
                    found.append(repository)
        for name in _NOT_LOOKED_INTO.intersection(names):
            names.remove(name)
        if len(found) == _REPOSITORY_LIMIT:
            break
    return tuple(found)


def plain_path(path: Path, workspace: Path) -> Path:
    """Return a path without links above its last part.

    Those in the workspace stay: a command may have made them.
    """
    absolute = Path(os.path.abspath(path))
    for parent in absolute.parents:
        if parent.resolve() == workspace:
            return workspace / absolute.relative_to(parent)
    return absolute.parent.resolve() / absolute.name


def tools_for(workspace: Path, path: str, home: Path, prefixes: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders besides the system's that hold the programs on a PATH and what these need."""
    found = toolchains.folders(path, home, workspace, prefixes)
    roots = [*_bound_roots(), workspace]
    # A home folder below one of the system's is covered, and its tools with it.
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
    for name in _SECRET_FILES:
        if os.path.lexists(name):
            flags += ["--ro-bind", "/dev/null", name]
    for name in _SECRET_FOLDERS:
        if os.path.isdir(name):
            flags += ["--tmpfs", name, "--remount-ro", name]
    return flags


@cache
def _bound_roots() -> list[Path]:
    return [Path(name) for name in _ROOTS if os.path.isdir(name) and not os.path.islink(name)]


@cache
def homes_in_system() -> tuple[Path, ...]:
    """Return people's home folders below a folder of the system's, which commands would see with that."""
    real = {each.resolve() for each in toolchains.homes()}
    within = (each for each in real if _is_within(each, _bound_roots()))
    return tuple(sorted(each for each in within if _is_home_in_system(each)))


def _is_home_in_system(home: Path) -> bool:
    """Tells whether a home below a folder of the system's is no part of that, as /usr/local and its like."""
    is_system = home.parts[1] == "usr" and (home / "bin").is_dir()
    return home.is_dir() and not is_system and len(home.parts) > 2


def _add_filter(argv: list[str | int]) -> tuple[int, ...]:
    """Add the system call filter to a command line of bwrap's; return the handles that it needs."""
    program = seccomp.filter_program(os.uname().machine)
    if program is None:
        return ()
    handle = os.memfd_create("seccomp")
    os.write(handle, program)
    os.lseek(handle, 0, os.SEEK_SET)
    argv += ["--seccomp", 0]
    return (handle,)


def _opened_or_made(name: str, folder: int) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another command makes it too
            os.mkdir(name, 0o700, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


def _identity(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder == path or folder in path.parents for folder in folders)
