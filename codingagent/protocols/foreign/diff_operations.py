"""What differences and patches ask for: the paths that they mean, and the operations on these files.

How it works. The paths of a patch begin alike: what its edited files prove holds for all of them.
"""

import contextlib
import re
import shlex
from collections.abc import Iterable
from itertools import takewhile

from codingagent.errors import OperationError
from codingagent.model import chat_damage, paths, plain_text
from codingagent.model.operations import CreateFile, DeleteFile, Diff, EditFile, MoveFile
from codingagent.protocols.foreign.diffs import NO_FILE, Asked, DiffPart, FileDiff, path_of
from codingagent.protocols.foreign.file_names import Files, Name, ambiguous

# What such lines above the hunks say of a file, and what to do with it.
_NO_TEXT = {
    "copy from ": ("a copy", "; send it whole"),
    " 160000": ("a submodule, which can't be changed here", "; leave it out"),
    " 120000": ("a symbolic link, which only a command can change", "; send [RUN_COMMAND]"),
    "Binary files ": ("binary", '; send it with [CREATE_FILE] and encoding="base64"'),
    "GIT binary": ("binary", '; send it with [CREATE_FILE] and encoding="base64"'),
}
# How git names the bytes of an empty file.
_EMPTY = "..e69de29"
Heads = tuple[str, str]
"""What the paths of a patch begin with, before and after, beyond those in the workspace: `a/` and `b/`."""


def operations_of(difference: FileDiff, named: Name | None, files: Files, heads: Heads | None) -> Asked:
    """Return the operations that a difference asks for, and notes on how it was read."""
    if difference.fault:
        raise difference.fault
    old, new = _sides(difference, files, heads)
    if old is None or new is None:
        if named is None:
            raise OperationError("it names no file", advice="; write --- a/path and +++ b/path above it")
        old = new = named.only("--- a/path and +++ b/path")
    notes, hunks = _check_kind(difference, new), difference.hunks
    if difference.is_new and difference.is_gone:
        what = "it says that its file is new, and that it is deleted"
        raise OperationError(what, advice="; write one header")
    if difference.is_gone:
        if old not in files and (fits := files.fits(old)):
            raise ambiguous(old, fits)
        if any(hunk.new for hunk in hunks):
            raise OperationError(
                f"it deletes '{paths.shown(old)}' and has lines that are to stay",
                advice="; begin each of its"
                " lines with -, or send the changes without the header of a deleted file",
            )
        gone = tuple(text for hunk in hunks for text in hunk.old)
        return (DeleteFile(paths.workspace_path(old), gone if hunks else None),), notes
    if difference.is_new:
        if not (hunks or difference.paths) and _EMPTY not in (difference.says("index ") or ""):
            raise OperationError("it makes a new file and has none of its lines", advice="; send them")
        return (creation_of(paths.workspace_path(new), hunks),), notes
    if old != new:
        return _renaming(difference, old, new, files, notes)
    path, note = files.existing(new)
    notes = (*notes, note) if note else notes
    if path not in files and len(hunks) == 1 and hunks[0].new and not any(hunks[0].old):
        return (creation_of(path, hunks),), notes
    return (edit_of(path, hunks),), notes


def _renaming(difference: FileDiff, old: str, new: str, files: Files, notes: tuple[str, ...]) -> Asked:
    """Return an edit, and the move that needs it; refuse what can't be read, or is no certain move."""
    is_said = difference.paths is not None or difference.says("rename from ") is not None
    is_whole = difference.says("similarity index ") in (None, "100%") and difference.says("index ") is None
    is_whole = is_whole and difference.old is None
    is_done = new in files and old not in files
    if not is_said or (new in files and not is_done) or not (difference.hunks or is_whole):
        raise renaming(old, new, edited=not is_whole)
    old, new = paths.workspace_path(old), paths.workspace_path(new)
    edits = [edit_of(new if is_done else old, difference.hunks)] if difference.hunks else []
    if is_done:
        return edits, (*notes, f"'{paths.shown(old)}' is renamed already")
    return (*edits, MoveFile(old, new, is_after_edit=bool(edits))), notes


def edit_of(path: str, hunks: list[DiffPart]) -> EditFile:
    """Return the edit that hunks of one file ask for; refuse one without any."""
    if not hunks:
        raise OperationError("it has no hunks", advice="; send them")
    said = [hunk.as_said() for hunk in hunks if any(mark != " " for mark, _ in hunk.lines)]
    if not said:
        how = "begin the lines that go with - and those that come with +"
        raise OperationError("it changes nothing", advice=f"; {how}")
    return EditFile(path, Diff(tuple(said)))


def creation_of(path: str, hunks: list[DiffPart]) -> CreateFile:
    """Return the new file that one hunk of added lines makes; refuse other hunks."""
    if not hunks:
        return CreateFile(path, "", overwrite=False)
    if len(hunks) > 1:
        raise OperationError("a new file in several hunks", advice="; send it whole")
    hunk = hunks[0]
    if any(hunk.old):
        how = "begin each of its lines with +"
        raise OperationError("a new file with lines that are not added", advice=f"; {how}")
    # Empty lines that lost their "+": a new file has no other kind.
    text = "\n".join(hunk.new) if hunk.new_open else plain_text.joined(hunk.new)
    is_exact = hunk.is_counted and hunk.is_verbatim
    arrival = None if is_exact else chat_damage.BodyEvidence(in_code=hunk.is_verbatim)
    return CreateFile(path, text, overwrite=False, arrival=arrival)


def renaming(old: str, new: str, *, edited: bool) -> OperationError:
    """Return what to send in place of a renaming."""
    move = f'[MOVE_FILE path="{paths.shown(old)}" to="{paths.shown(new)}"]'
    then = f', then [EDIT_FILE path="{paths.shown(new)}"] with the changes' if edited else ""
    fact = f"it renames '{paths.shown(old)}' to '{paths.shown(new)}'"
    return OperationError(fact, advice=f"; send {move}{then}")


def _check_kind(difference: FileDiff, path: str) -> tuple[str, ...]:
    """Refuse what is no text, or only a mode; return a note on a mode that stays as it was."""
    shown = paths.shown(path)
    for trace, (what, how) in _NO_TEXT.items():
        if any(trace in mark for mark in difference.marks) and not (difference.is_gone and "inary" in trace):
            raise OperationError(f"'{shown}' is {what}", advice=how)
    changed, new = difference.says("new mode "), difference.says("new file mode ") or ""
    if changed is None and not new.endswith("755"):
        return ()
    change = f"the mode of '{shown}', which only a command can do"
    command = f"chmod {(changed or new)[-3:] or '644'} {shlex.quote(shown)}"
    how = f"; send [RUN_COMMAND]{command}[/RUN_COMMAND]"
    if changed is not None and not difference.hunks and difference.says("rename from ") is None:
        raise OperationError(f"it changes {change}", advice=how)
    return (plain_text.Note(f"it also changes {change}", how),)


# --- paths -----------------------------------------------------------------------------------------
def heads_of(differences: Iterable[FileDiff], files: Files) -> Heads | None:
    """Return what the paths of a patch begin with, as its edited files prove; None: nothing does."""
    found: set[Heads] = set()
    for each in differences:
        if each.old and each.new and NO_FILE not in (each.old, each.new):
            with contextlib.suppress(OperationError):
                old, new = _unprefixed(each.old, each.new, files, is_git=bool(each.git))
                if old == new and each.old.endswith(old) and each.new.endswith(new):
                    found.add((each.old.removesuffix(old), each.new.removesuffix(new)))
    return found.pop() if len(found) == 1 else None


def _sides(difference: FileDiff, files: Files, heads: Heads | None) -> tuple[str | None, str | None]:
    """Return the file's path before and after, both the same for a file that is only then; None: not said."""
    if difference.paths is not None:
        return difference.paths
    renamed = difference.says("rename from "), difference.says("rename to ")
    if renamed[0] is not None and renamed[1] is not None:
        return path_of(renamed[0]), path_of(renamed[1])
    git = _git_sides(difference)
    old, new = (difference.old, difference.new) if difference.old and difference.new else git or ("", "")
    if old == new and old in ("", NO_FILE):
        index = difference.says("Index: ")
        return index, index
    is_lone = difference.says("new file mode") is not None or difference.says("deleted file mode") is not None
    if NO_FILE not in (old, new) and not (git and is_lone):
        if heads is not None and old.startswith(heads[0]) and new.startswith(heads[1]):
            return old.removeprefix(heads[0]), new.removeprefix(heads[1])
        return _unprefixed(old, new, files, is_git=git is not None)
    side, path = (0, old) if new == NO_FILE else (1, new)
    head = heads[side] if heads is not None else ""
    if head and path.startswith(head):
        path = path.removeprefix(head)
    elif git and git[side] == path:
        path = _common_tail(*git) or path
    else:
        path = _unprefixed_one(path, ("a/", "b/")[side], files, is_bare=heads == ("", ""))
    return path, path


def _git_sides(difference: FileDiff) -> tuple[str, str] | None:
    """Return the two paths of a `diff --git` line: they may hold blanks, and nothing else parts them."""
    text, old, new = difference.git, difference.old or "", difference.new or ""
    if old == NO_FILE and text.endswith(f" {new}"):
        return text.removesuffix(f" {new}"), new
    if new == NO_FILE and text.startswith(f"{old} "):
        return old, text.removeprefix(f"{old} ")
    middle = len(text) // 2
    is_halved = len(text) % 2 and text[middle] == " "
    both = [text[:middle], text[middle + 1 :]] if is_halved else text.split(" ")
    return (path_of(both[0]), path_of(both[1])) if len(both) == 2 else None


def _common_tail(one: str, other: str) -> str:
    """Return the components that two paths have in common at their ends."""
    both = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    return "/".join(reversed([a for a, _ in takewhile(lambda pair: pair[0] == pair[1], both)]))


def _unprefixed_one(path: str, prefix: str, files: Files, *, is_bare: bool) -> str:
    """Take git's `a/` or `b/` off one path; refuse it where a first folder may be meant, or not."""
    folder, _, rest = path.partition("/")
    is_prefixed = path.startswith(prefix)
    is_odd = not is_bare and not files.has_folder(folder) and files.has_folder(rest.partition("/")[0])
    if files.has_folder(folder) if is_prefixed else is_odd and "/" in rest:
        fact = f"'{paths.shown(path)}' may be in the folder {folder}/ or not"
        raise OperationError(fact, advice="; write the line diff --git above it")
    return path.removeprefix(prefix)


def _unprefixed(old: str, new: str, files: Files, *, is_git: bool) -> tuple[str, str]:
    """Take git's `a/` and `b/` off, or whatever folders mean before and after; refuse what may be both."""
    (folder, _, before), (other, _, after) = old.partition("/"), new.partition("/")
    there = [side for side in (old, new) if side in files]
    if before and before == after and folder != other:
        if len(there) == 2 and not is_git:
            fact = f"'{paths.shown(old)}' and '{paths.shown(new)}' both exist"
            raise OperationError(fact, advice="; write one path above it")
        if not there or (folder, other) == ("a", "b"):
            return before, after
    tail = _common_tail(old, new)
    if old != new and tail in files and not any(side in files for side in (old, new, before, after)):
        return tail, tail  # `--src-prefix=x/y/`, or two folders that `git diff --no-index` compares
    old, new = (side if side in files else re.sub("^[ab]/", "", side) for side in (old, new))
    # A copy beside the file, `a.py.orig`, is none of the workspace's.
    return (new, new) if old not in files and new in files else (old, new)
