"""Find a home, decide whether to trust it, and resolve its settings and workspace."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import CodingAgentError, UsageError, WorkError, disk_errors
from codingagent.model import journal_entries as entries
from codingagent.model import paths, plain_text
from codingagent.model import settings as settings_
from codingagent.model.encoding import typed_text
from codingagent.model.session_state import Session
from codingagent.model.settings import Resolved, Settings, Source
from codingagent.storage.journal import Runs, Sessions
from codingagent.storage.lock import HomeLock
from codingagent.storage.mailbox import Mailbox
from codingagent.workspace import path_walk
from codingagent.workspace.dirfd import is_link_at, retried
from codingagent.workspace.own_code import config_folder, state_folder
from codingagent.workspace.real_paths import resolved
from codingagent.workspace.workspace import Workspace

HERE_HOME = ".codingagent"
# Of a settings file; more is none.
_LIMIT_BYTES = 1_000_000


def find_home(named: Path | None, folder: Path, variables: Mapping[str, str]) -> Path:
    """Return the home: the one named, else `folder` or the nearest `.codingagent` upwards, else `folder`.

    The variable CODINGAGENT_HOME counts as named.
    """
    if named is not None:
        return named.absolute()
    if variable := variables.get(settings_.HOME_VARIABLE):
        return Path(variable).absolute()
    # A clone may look like a home.
    if not (_is_home(folder) and is_registered(folder)):
        for above in (folder, *folder.parents):
            if _is_home(above / HERE_HOME):
                return above / HERE_HOME
    return folder


def _is_home(folder: Path) -> bool:
    return (folder / "sessions").is_dir() and (folder / "inbox").is_dir()


def obeys_file(home: Path, workspace: Path) -> bool:
    """Return whether codingagent.toml in the home counts: not if the home is in the workspace.

    There an answer's commands, or the author of the repository, could have written it.
    """
    real, above = workspace.resolve(), home.resolve()
    for each in (above, *above.parents):
        with contextlib.suppress(OSError):
            # One folder has several names where the disk ignores case.
            if each == real or each.samefile(real):
                return False
    return True


# --- what a person wrote: in a home, and, where no clone can set it, for all and each workspace ---
def read_toml(path: Path) -> dict[str, object]:
    """Return the content of a TOML file; empty if it is missing. UsageError if it can't be read."""
    if not path.exists():
        return {}
    import tomllib  # slow to import, and only a home with settings needs it

    if not path.is_file() or path.stat().st_size > _LIMIT_BYTES:
        raise UsageError(f"{path} can't be read: it is not a file, or too large for settings")
    try:
        return tomllib.loads(typed_text(path.read_bytes()))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path} can't be read: {fault}") from fault


def settings_path(workspace: Path | None = None) -> Path:
    """Return the file of a workspace's settings; without one, that of all."""
    if workspace is None:
        return config_folder() / "settings.toml"
    name = hashlib.sha256(os.fsencode(resolved(workspace))).hexdigest()[:32]
    return config_folder() / "workspaces" / f"{name}.toml"


def is_out_of_reach(workspace: Path, of_person: Path | None = None) -> bool:
    """Return whether no answer in a workspace can write a folder of the person's, that of their settings."""
    place, folder = resolved(workspace), resolved(of_person or config_folder())
    return place != folder and place not in folder.parents and folder not in place.parents


def settings_for(
    home: Path, options: Mapping[str, object], variables: Mapping[str, str], workspace: Path | None = None
) -> tuple[Resolved, Path]:
    """Return the settings in force for a workspace, and that workspace (default: the settings' own).

    In rising order: defaults, the person's, codingagent.toml in the home, the person's for the workspace,
    environment, options of the command line by name. UsageError says where a setting is unknown or invalid.
    """
    own, from_file = read_toml(settings_path()), read_toml(home / settings_.FILE_NAME)
    if isinstance(named := from_file.get("workspace"), str) and named:
        from_file["workspace"] = str(home / named)  # relative to the home, where the file is
    given = {name: value for name, value in options.items() if value is not None}

    def resolve(where: Path | None, *, with_file: bool = True, with_own: bool = True) -> Resolved:
        here = read_toml(settings_path(where)) if with_own and where else {}
        sources = [
            Source("your settings", own if with_own else {}),
            Source(settings_.FILE_NAME, from_file if with_file else {}),
            Source("your settings here", here),
            settings_.from_environment(variables),
            Source(settings_.OPTION, given),
        ]
        return settings_.resolve(sources)

    resolved = resolve(workspace)
    folder = workspace or workspace_of(home, resolved.settings)
    with_file, with_own = obeys_file(home, folder), is_out_of_reach(folder)
    has_more = with_own and workspace is None and settings_path(folder).exists()
    if not with_file or not with_own or has_more:
        resolved = resolve(folder, with_file=with_file, with_own=with_own)
        # Settings of a workspace do not name another.
        if workspace is None and not (has_more and with_file):
            folder = workspace_of(home, resolved.settings)
    return resolved, folder


# --- the registry ------------------------------------------------------------------------------

# A home holds sessions, and a session says which workspace and policy it uses. A cloned repository, or an
# answer that writes to its workspace, could contain a forged home. So one that the person did not name is
# trusted only if it is the very folder that was registered, where no answer and no clone can write.


def is_registered(home: Path) -> bool:
    """Return whether this folder was registered under this path and is still the same folder."""
    try:
        return retried(lambda: registry_entry(home).read_text("utf-8").endswith(_identity(home)))
    except (OSError, ValueError):
        return False


def register(home: Path) -> None:
    """Register a home. If the registry can't be written, the home must be named each time."""
    with contextlib.suppress(OSError):
        token = home / "sessions" / paths.HOME_MARK
        # Of two that begin at once neither takes the other's mark away.
        with contextlib.suppress(FileExistsError), token.open("x", encoding="utf-8") as file:
            file.write(f"{secrets.token_hex(16)}\n")
        entry = registry_entry(home)
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = entry.with_name(f"{entry.name}.{os.getpid()}.tmp")
        temporary.write_text(_identity(home), "utf-8")
        retried(lambda: os.replace(temporary, entry))


def registry_entry(home: Path) -> Path:
    name = hashlib.sha256(os.fsencode(resolved(home))).hexdigest()[:32]
    return state_folder() / "homes" / name


def _identity(home: Path) -> str:
    # An inode alone may recur for a new folder in place of a removed one. A disk's own number does not
    # stay: it is another after a restart of macOS, and to Python 3.12 on Windows.
    token = home / "sessions" / paths.HOME_MARK
    is_own = token.is_file() and not token.is_symlink()
    secret = token.read_text("utf-8", "replace")[:100] if is_own else ""
    return f":{home.stat().st_ino} {resolved(home)} {secret}\n"


# --- settings of a session --------------------------------------------------------------------

# The values of each choice, strictest first.
_STRICTNESS = {
    "policy": ("restrictive", "standard", "permissive"),
    "sandbox": ("require", "auto", "off"),
    "network": (False, True),
    "secrets": ("mask", "redact", "off"),
}


def for_program(resolved: Resolved) -> Settings:
    """Return the settings for a program: it sees secrets unless somebody chose otherwise."""
    settings = resolved.settings
    is_chosen = resolved.origins["secrets"] != settings_.DEFAULT
    return settings if is_chosen else replace(settings, secrets="off")


def kept_settings(home: Path, session: Session, resolved: Resolved, *, executes: bool = True) -> Settings:
    """Return a session's settings when it continues: its own policy and sandbox, unless options differ.

    If anything of an answer will be executed, UsageError where they are looser than the settings, and the
    home is in the workspace: its record can't be trusted, unless the person's own says the same.
    """
    settings = for_program(resolved) if session.is_run else resolved.settings
    if not session.terms.policy:
        return settings
    chosen: dict[str, object] = {}
    if resolved.origins["check"] != settings_.OPTION:
        chosen["check"] = session.check
    for name in _STRICTNESS:
        kept, now_ = getattr(session.terms, name), getattr(settings, name)
        if resolved.origins[name] == settings_.OPTION or kept in ("", now_):
            continue
        place, terms = Path(session.workspace), session.terms
        is_allowed = obeys_file(home, place) or is_agreed(terms_text(home, terms), place)
        if executes and _is_looser(name, kept, now_) and not is_allowed:
            option = "--network" if name == "network" else f"--{name} {kept}"
            why = "its record is in the workspace and can't be trusted"
            begun = f"session {session.session_id} was started with {option}"
            raise UsageError(f"{begun}, but {why}; give {option} again")
        chosen[name] = kept
    return replace(settings, **chosen)


def _is_looser(name: str, kept: object, now_: object) -> bool:
    ranks: tuple[object, ...] = _STRICTNESS[name]
    return kept not in ranks or now_ not in ranks or ranks.index(kept) > ranks.index(now_)


def keep_terms(home: Path, terms: entries.SessionStarted) -> None:
    """Record what the person allowed a session of a home in its workspace, where no answer can write."""
    is_loose = any(_is_looser(n, getattr(terms, n), getattr(Settings(), n)) for n in _STRICTNESS)
    if is_loose and not obeys_file(home, Path(terms.workspace)):
        agree(terms_text(home, terms))


def terms_text(home: Path, terms: entries.SessionStarted) -> str:
    """Return the terms of a session of this very home; no prompt is this text: none begins with a blank."""
    return f"\n{_identity(home)}{entries.encode_record(terms).decode()}"


# --- texts that the person agreed to, and terms: by digest, out of reach of answers --------------


def is_agreed(text: str, workspace: Path) -> bool:
    """Return whether the person agreed to this very text, where no command of the workspace could say so."""
    return is_out_of_reach(workspace, state_folder()) and agreed_path(text).exists()


def agree(text: str) -> None:
    """Record that they did; if that can't be written, they are asked again."""
    with contextlib.suppress(OSError):
        agreed_path(text).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        agreed_path(text).touch()


def agreed_path(text: str) -> Path:
    digest = hashlib.sha256(text.encode(errors="surrogateescape"))
    return state_folder() / "allowed" / digest.hexdigest()


class Home(Struct, frozen=True):
    root: Path
    sessions: Sessions
    runs: Runs
    mailbox: Mailbox
    lock: HomeLock
    was_found: bool = False
    """Nobody named it: it is the current folder, or was found from there upwards."""

    @classmethod
    def of(cls, root: Path, *, was_found: bool = False) -> "Home":
        """Return the home at `root`, which need not be there, unchecked."""
        sessions, runs = Sessions(root / "sessions"), Runs(root / "sessions" / "runs")
        return cls(root, sessions, runs, Mailbox(root), HomeLock(sessions.folder / ".lock"), was_found)

    @classmethod
    def at(cls, root: Path, *, create: bool, was_found: bool = False, is_passing: bool = False) -> "Home":
        """Return the home at `root`; UsageError if it is missing (and not to `create`), or is not trusted.

        `was_found`: nobody named it, so it must be registered or empty. `is_passing`: it is not registered.
        """
        check_home(root, was_found=was_found)
        home = cls.of(root, was_found=was_found)
        sessions = home.sessions
        if not create and not sessions.folder.is_dir():
            raise UsageError(
                f"{root} is not a codingagent home yet: start a task there with `codingagent new`"
                " (in a project `new --here`), or name its home with --home"
            )
        for folder in (sessions.folder, home.mailbox.outbox, home.mailbox.inbox):
            failed = f"home {root} can't be used, name another with --home: {folder.name}/ can't be made"
            with disk_errors(failed, UsageError):
                folder.mkdir(0o700, parents=True, exist_ok=True)
            # They quote the person's files: nobody else reads them.
            with contextlib.suppress(OSError):
                if os.name != "nt" and folder.stat().st_mode & 0o077:
                    folder.chmod(0o700)
        if not is_passing:
            register(root)
        if root.name == HERE_HOME:
            # git then ignores all of the folder but prompts, and this file with it.
            with contextlib.suppress(OSError), open(root / ".gitignore", "x", encoding="utf-8") as file:
                file.write("*\n!/prompts/\n!/prompts/*.md\n")
        return home

    def load(self, name: str) -> Session:
        """Return the state of a session or run; UsageError if there is none, WorkError if it is damaged."""
        return self._of(name).load(name)

    def records(self, name: str) -> Iterator[entries.Record]:
        return self._of(name).records(name)

    def outcomes(self, name: str, most: int | None) -> tuple[list[tuple[entries.Record, Session]], int]:
        return self._of(name).outcomes(name, most)

    def _of(self, name: str) -> Sessions:
        return self.runs if entries.is_run_id(name) else self.sessions

    def waiting_path(self, session_id: str) -> Path:
        """Return the file that a process locks while it waits for the answers of a session."""
        return self.sessions.folder / session_id / "waiting"


def check_home(root: Path, *, was_found: bool) -> None:
    """Refuse (UsageError) a home that someone else may have laid out: not registered, or with links."""
    names = (
        *("sessions", "outbox", "inbox", "inbox/processed", "inbox/rejected"),
        *("sessions/.lock", "sessions/runs", "outbox/short", "outbox/parts"),
    )
    for name in names:
        if is_link_at(root / name):
            raise UsageError(f"{root / name} is a link; a home needs real folders: remove it")
    real = resolved(root)
    if real.parent.parent.name == "candidates" and entries.is_session_id(real.parents[2].name):
        how = "`codingagent try`, `take` and `copy --candidate N` work with it"
        raise UsageError(f"{root} is a candidate's, and no home of its own; {how}")
    if was_found and is_link_at(root):
        raise UsageError(f"{root} is a link; if it is yours, name its target with --home")
    holds = [n for n in ("sessions", settings_.FILE_NAME) if _holds_files(root / n)]
    if was_found and holds and not is_registered(root):
        not_ours = "that codingagent did not make here (a copy, or someone else's), so it is not used"
        how = "`codingagent help troubleshooting` says what to do"
        raise UsageError(f"{root} holds {' and '.join(holds)} {not_ours}; {how}")


def _holds_files(folder: Path) -> bool:
    """Return whether there is more than a folder with what has git keep it though it is empty."""
    try:
        return any(not name.startswith(".git") for name in os.listdir(folder))
    except OSError:
        return os.path.lexists(folder)


def own_folders(home: Path, root: Path) -> tuple[Path, ...]:
    """Return a home's folders that are hidden in a workspace; without the home that is round it."""
    folders = tuple(home / name for name in ("sessions", "outbox", "inbox"))
    real = root.resolve()
    return folders if home.resolve() in (real, *real.parents) else (home, *folders)


def default_workspace(home: Path) -> Path:
    """Return `workspace/` in the home; for a home named `.codingagent`, the folder around it."""
    return home.parent if home.name == HERE_HOME else home / "workspace"


# So many sessions are asked where they work before a program is started.
_ASKED = 200


def workspaces_of(home: Path) -> list[Path]:
    """Return the folders that the sessions and runs of a home worked in, and the one of the next."""
    found = {default_workspace(home)}
    runs = home / "sessions" / "runs"
    for where in (Sessions(runs.parent), Runs(runs)):
        folders = [where.folder / each for each in where.ids()]
        with contextlib.suppress(OSError):  # removed meanwhile
            folders.sort(key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
        for folder in folders[:_ASKED]:
            with contextlib.suppress(CodingAgentError, OSError):
                first = next(where.records(folder.name), None)
                if isinstance(first, entries.SessionStarted | entries.RunStarted):
                    found.add(Path(first.workspace))
    return [each for each in found if not path_walk.is_too_much(resolved(each))]


def workspace_of(home: Path, settings: Settings) -> Path:
    """Return the workspace that the settings name, without creating it; UsageError if it can't be used."""
    if not settings.workspace:
        return default_workspace(home)
    path = Path(settings.workspace).absolute()
    if resolved(path) == resolved(home):
        raise UsageError(
            f"'{path}' can't be workspace and home at once: give it a home of its own, `codingagent --home"
            f" {HERE_HOME} COMMAND`; for a task, `codingagent new --here` says both"
        )
    Workspace(path).close()
    check_apart(home, path)
    return path


def check_apart(home: Path, workspace: Path) -> None:
    """Refuse (UsageError) a workspace in which an answer could write answers, requests or the record."""
    real, inner = resolved(workspace), resolved(home)
    if real in inner.parents and inner.parent != real:
        where = "in a subfolder of the workspace, where commands could move it away"
        raise UsageError(f"home '{home}' is {where}; put it directly in the workspace, or outside")
    for name in ("inbox", "outbox", "sessions"):
        own = resolved(home / name)
        if own == real or own in real.parents:
            raise UsageError(f"'{workspace}' belongs to codingagent itself; name another workspace")


def make_workspace(home: Path, path: Path) -> None:
    """Create the default workspace if it is missing; a named one exists already."""
    if path == home / "workspace":
        if is_link_at(path):
            where = f"'{path.resolve()}'; to work there, add --workspace"
            raise UsageError(f"'{path}' is a link to {where}")
        with disk_errors(f"workspace '{path}' can't be made", UsageError):
            path.mkdir(exist_ok=True)


def latest_session(sessions: list[Session]) -> Session:
    """Return the session that changed last and is not complete; UsageError if there is none."""
    open_ones = [session for session in sessions if not session.is_complete]
    if open_ones:
        return open_ones[0]
    which = f"none of the {NEWEST} latest sessions" if len(sessions) == NEWEST else "no session"
    last = f"`codingagent resume {sessions[0].session_id if sessions else 'ID'}`"
    remedy = f"start one with `codingagent new`, or reopen the last with {last}"
    raise UsageError(f"{which} is waiting; {remedy}")


# Enough of a task to recognize it.
_TASK_CHARACTERS = 60


def told_as(session: Session) -> str:
    """Return how messages name a session: its id and its name, or the beginning of its task."""
    return f"{session.session_id} ({plain_text.one_line(session.name or session.task, _TASK_CHARACTERS)})"


def awaiting_approval(home: Home, on_damage: Callable[[str], object]) -> Session:
    """Return the one session or run that awaits approval; UsageError if none does, or several do."""
    found = [each for each in all_sessions(home, on_damage) if each.is_awaiting_approval]
    # A waiting run still has its message; completed runs number in the thousands.
    waiting = [run_id for run_id in home.runs.ids() if home.runs.has_message(run_id)]
    runs = [run for run in map(home.runs.load, waiting) if run.is_awaiting_approval]
    if not (found := [*found, *runs]):
        raise UsageError("nothing waits for approval here; `codingagent list` shows all sessions")
    if len(found) > 1:
        subjects = {each.session_id: each.asked.question.subject for each in found if each.asked}
        named = [f"{name} ({plain_text.one_line(what, _TASK_CHARACTERS)})" for name, what in subjects.items()]
        raise UsageError(f"{len(found)} wait for approval; name one of: {', '.join(named)}")
    return found[0]


# How many sessions are read where none is named: a home may hold tens of thousands.
NEWEST = 100


def all_sessions(
    home: Home, on_damage: Callable[[str], object], *, runs: bool = False, newest: int | None = NEWEST
) -> list[Session]:
    """Return the newest sessions or runs, the last changed first; `on_damage` is told of unreadable ones."""
    found: list[Session] = []
    where = home.runs if runs else home.sessions
    for session_id in where.ids(newest):
        try:
            found.append(where.load(session_id))
        except WorkError as fault:
            on_damage(str(fault))
    return sorted(found, key=lambda session: session.updated_at, reverse=True)
