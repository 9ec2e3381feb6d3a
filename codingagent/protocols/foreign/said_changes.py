"""Deletions and renamings that an answer only tells of: "Deleted file: `a.py`"."""

import re

from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.operations import DeleteFile, Kind
from codingagent.protocols.foreign import unified_diff
from codingagent.protocols.foreign.file_names import Files, Name
from codingagent.protocols.foreign.headings import TITLE
from codingagent.protocols.foreign.items import Items

_FILE = re.compile(r"(?i)\bfile\b")


def take(name: Name, written: str, items: Items, files: Files) -> None:
    """Do what a line says, where no part of the answer does it, or say what to send.

    Args:
        name: what the line names.
        written: the line.
        items: all that the parts of the answer ask for.
        files: what exists.
    """
    if name.is_moved:
        _rename(name, items, files)
        return
    text, line = name.texts[0], name.line + 1
    shown = paths.shown(text)
    try:
        path = files.existing(text)[0]
    except OperationError as fault:
        items.refuse(Kind.DELETE_FILE, line, fault.reason, text)
        return
    if path in items.deleted:
        return
    is_title = TITLE.match(written) or _FILE.search(written)
    if path in files and is_title:
        items.add(DeleteFile(path), line, ())
    elif path in files:
        items.note(
            f"line {line} tells of the deletion of '{shown}', and it was not deleted; send"
            f' [DELETE_FILE path="{shown}"]'
        )
    elif is_title:
        items.note(f"line {line} says that '{shown}' is deleted; there is no such file")


def _rename(name: Name, items: Items, files: Files) -> None:
    old, new = name.texts
    if old not in files and new in files:
        old, new = new, old
    is_said = not items.refused.isdisjoint((new, f"b/{new}"))
    if old in files and new not in files and not is_said:
        reason = unified_diff.renaming(old, new, edited=False)
        items.refuse(Kind.RENAME, name.line + 1, reason, new)
