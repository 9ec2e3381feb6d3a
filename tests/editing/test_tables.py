"""What edits make of files, and what is written of whole bodies: tables, a line a case.

A case of edits.txt is the file's name, its text, the change and how it came: pairs of SEARCH and REPLACE,
the first line, the last one and the new lines, or the hunks of a diff. One of bodies.txt is the file's
name, the text that stands there, the body and how it came.
"""

import difflib
from typing import Any

from codingagent.editing import apply, body_rules
from codingagent.errors import OperationError
from codingagent.model.chat_damage import BodyEvidence, Damage
from codingagent.model.operations import Diff, DiffHunk, FileEnd, LineRange, Replacement
from tests import golden
from tests.rows import each_row

Case = tuple[str, Any, Any, dict[str, Any]]


def show_edit(case: Case) -> str:
    """Return what an edit changes, in new lines by their places, or why it is refused."""
    path, old, change, came = case
    try:
        edited = apply.apply(_change(change), old, _arrival(came), path=path)
    except OperationError as fault:
        return f"refused: {fault.reason}"
    hunks = " ".join(f"{h.old_start},{h.old_count}>{h.new_start},{h.new_count}" for h in edited.hunks)
    return " · ".join([_changes(old, edited.text), hunks, *edited.notes])


def show_body(case: Case) -> str:
    """Return what is written of a body, as what is changed of it, or why it is refused."""
    path, old, body, came = case
    try:
        mended = body_rules.mend_file(body, path, _arrival(came) or BodyEvidence(), old)
    except OperationError as fault:
        return f"refused: {fault.reason}"
    return " · ".join([_changes(body, mended.text), *mended.notes])


def show_markers(body: str) -> str:
    """Return the pairs that the body of an edit holds, or why it is refused."""
    try:
        return repr([(pair.search, pair.replace) for pair in apply.read_replacements(body)])
    except OperationError as fault:
        return f"refused: {fault.reason}"


def _change(said: Any) -> LineRange | tuple[Replacement, ...] | Diff:
    if isinstance(said, tuple):
        return LineRange(*said)
    if isinstance(said, dict):
        return Diff(tuple(_hunk(lines, dict(rest)) for lines, rest in said["hunks"]))
    return tuple(Replacement(search, replace) for search, replace in said)


def _hunk(lines: str, rest: dict[str, Any]) -> DiffHunk:
    end: FileEnd | None = rest.pop("end").lower() if "end" in rest else None
    return DiffHunk(tuple((line[0], line[1:]) for line in lines.split("\n")), end=end, **rest)


def _arrival(came: dict[str, Any] | None) -> BodyEvidence | None:
    if came is None:
        return None
    way = frozenset(Damage[name] for name in came.get("way", ()))
    return BodyEvidence(**{**came, "way": way})


def _changes(old: str, new: str) -> str:
    """Return the parts of a text that are new, each with the lines of the old one that it replaces."""
    before, after = (text.split("\n") for text in (old, new))
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = [
        f"{first + 1}-{last}: " + repr("\n".join(after[start:end]))
        for kind, first, last, start, end in blocks
        if kind != "equal"
    ]
    return ", ".join(changed) or "as it was"


TABLES: dict[str, golden.Show] = {
    "edits.txt": show_edit,
    "bodies.txt": show_body,
    "markers.txt": show_markers,
}


@each_row(("case", "outcome"), golden.cases(__file__, "edits.txt"))
def test_what_an_edit_makes_of_a_file(case: Case, outcome: str) -> None:
    """Specification 003, EDIT_FILE, and Design: right, or asked for again with what to do."""
    assert show_edit(case) == outcome


@each_row(("case", "outcome"), golden.cases(__file__, "bodies.txt"))
def test_what_is_written_of_a_body(case: Case, outcome: str) -> None:
    """Design, replies as chats really give them: what can't be meant is undone, what may be is not."""
    assert show_body(case) == outcome


@each_row(("body", "outcome"), golden.cases(__file__, "markers.txt"))
def test_where_search_and_replace_are_in_a_body(body: str, outcome: str) -> None:
    """Design, tag blocks: never a guess; where lines equal a marker, all three markers are longer."""
    assert show_markers(body) == outcome
