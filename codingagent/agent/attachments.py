"""Resolve the files that a person attaches to a request: find them in the workspace, keep only text."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.agent.context import may_read
from codingagent.agent.file_views import Views
from codingagent.agent.spelling import Spellings
from codingagent.context import eligible
from codingagent.errors import OperationError, UsageError
from codingagent.model import documents, paths
from codingagent.policy.rules import Policy
from codingagent.prompt.file_contents import FileView
from codingagent.secrets.vault import Hides
from codingagent.workspace.real_paths import typed_in, with_slashes
from codingagent.workspace.workspace import Workspace

# As for READ_FILE: more files in one request do not help a model.
_FILES_LIMIT = 100
_NAMED = 5
# In each folder the first of these that exists; each tool has its own name for the same thing.
CONVENTIONS = (
    *("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", "CONVENTIONS.md"),
    ".cursorrules",
)


class Attachable(Struct, frozen=True):
    """Paths, in normal form (True: named by itself), and a note on matches that can't be shown."""

    paths: dict[str, bool]
    left_out: tuple[str, ...]


def attachable(
    workspace: Workspace, patterns: Iterable[str], folder: Path, policy: Policy
) -> Attachable:
    """Return the files that some paths, folders or globs name; UsageError if one names none to be shown.

    The `patterns` are as the person wrote them: absolute, or relative to `folder`, or to the workspace. What
    the policy protects from reading must be named individually.
    """
    found: dict[str, bool] = {}
    left_out: list[str] = []
    views = Views(workspace)
    for pattern in patterns:
        what = f"--attach '{paths.shown(pattern)}'"
        try:
            chosen, is_named = _files_of(workspace, pattern, folder)
        except OperationError as fault:
            raise UsageError(f"{what}: {fault.reason}") from fault
        shown = 0
        for path in chosen:
            if not (is_named or documents.is_asked_for(path, pattern)):
                left_out.append(f"File '{paths.shown(path)}' is no text; name it by itself")
                continue
            try:
                _check(path, may_be_read=is_named or may_read(workspace, policy, path))
                views.view(path, None, None)
                found[path] = found.get(path, False) or is_named
                shown += 1
            except OperationError as fault:
                if is_named:
                    raise UsageError(f"{what}: {fault.reason}") from fault
                left_out.append(fault.reason)
        if not shown:
            which = "; ".join(left_out[:_NAMED])
            raise UsageError(
                f"{what}: nothing that can be shown fits ({which})"
                if chosen
                else f"{what}: no file in the workspace matches; name one of {workspace.root}, or a glob"
                " such as 'src/**/*.py'; files that git ignores: one by one"
            )
    return Attachable(found, tuple(left_out))


def conventions(
    workspace: Workspace,
    policy: Policy,
    listed: Collection[str],
    near: Iterable[str] = (),
    hide: Hides = lambda text, _: text,
) -> Iterator[FileView]:
    """Yield the files in which the repository tells agents how to work on it, whole.

    Nobody asked for them: what `--attach` would refuse, or ask about, is passed over. `listed` are the files
    of the workspace, `near` those that the request is about; `hide` hides the secrets of a text.
    """
    views = Views(workspace, hide)
    for path in told_in(listed, near):
        with contextlib.suppress(OperationError):
            # A link may have a harmless name.
            is_odd = eligible.why_not_named(workspace.resolved(path)) or not paths.is_utf8(path)
            if not is_odd and may_read(workspace, policy, path):
                yield views.view(path, None, None)


def told_in(listed: Collection[str], near: Iterable[str] = ()) -> Iterator[str]:
    """Yield one listed file for the root, and one for each folder on the way to `near`, outermost first."""
    folders = {""}
    for path in near:
        while path := path.rpartition("/")[0]:  # up to the root
            folders.add(f"{path}/")
    for folder in sorted(folders):
        yield from [folder + name for name in CONVENTIONS if folder + name in listed][:1]


def _files_of(workspace: Workspace, pattern: str, folder: Path) -> tuple[list[str], bool]:
    """Return the files that a pattern names (OperationError: too many), and whether it names exactly one."""
    listed: list[str] | None = None
    for meaning in _meanings(workspace.root, pattern, folder):
        spellings = ["."] if meaning == "." else Spellings(workspace).of(meaning)
        inner = spellings[0] if len(spellings) == 1 else meaning
        if inner != "." and workspace.exists(inner):
            if not _is_folder(workspace, inner):
                return [inner], True
            # A linked folder is replaced by its target: the listing does not follow links.
            inner = workspace.resolved(inner)
        if listed is None:
            listed = list(workspace.listing().files)
        glob = inner if paths.is_glob(inner) else "**" if inner == "." else f"{inner}/**"
        fits = paths.glob_matcher(glob)
        chosen = sorted(path for path in listed if fits(path))
        if len(chosen) > _FILES_LIMIT:
            raise OperationError(
                f"{len(chosen)} files fit, more than {_FILES_LIMIT}; name those that matter"
            )
        if chosen:
            return chosen, False
    return [], False


def _meanings(root: Path, pattern: str, folder: Path) -> list[str]:
    """Return the possible meanings of a path in the workspace: from the current folder, then its root."""
    if not pattern:
        raise OperationError("it is empty; name a file")
    written = with_slashes(pattern)
    given = os.path.expanduser(pattern)
    meanings = [] if (near := typed_in(root, pattern, folder)) is None else [near]
    if near is None and (os.path.isabs(given) or os.path.lexists(os.path.join(folder, given))):
        raise OperationError(
            f"it is outside the workspace {root}; copy it there, or paste it into the task"
        )
    if not os.path.isabs(given):
        try:
            meanings.append(paths.folder_path(written))
        except OperationError:
            # From a subfolder "../x.py" is right, and has no meaning from the root.
            if not meanings:
                raise
    return list(dict.fromkeys(meanings))


def _check(path: str, *, may_be_read: bool) -> None:
    if not paths.is_utf8(path):
        raise OperationError(f"File '{paths.shown(path)}' has a name that is not UTF-8; rename it")
    if not may_be_read:
        raise OperationError(
            f"File '{paths.shown(path)}' is blocked by the policy; name it by itself"
        )


def _is_folder(workspace: Workspace, path: str) -> bool:
    try:
        workspace.entries(path)
    except OperationError:
        return False
    return True
