"""Find the SEARCH/REPLACE blocks of an answer, in any spelling, and read what each replaces."""

from collections.abc import Sequence

from codingagent.editing import edit_markers, elisions
from codingagent.editing.edit_markers import MarkedEdit
from codingagent.errors import OperationError
from codingagent.model import chat_damage
from codingagent.model.chat_damage import Channel, Damage
from codingagent.model.operations import Replacement
from codingagent.model.plain_text import joined
from codingagent.protocols.foreign.fences import dedented

_HOW = (
    "send <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE again; if the text"
    " itself holds such a line, make all three markers longer, of equal length"
)
_ENDLESS = "it has no closing marker"
_UNOPENED = "it has no opening marker"


def find(lines: Sequence[str]) -> tuple[MarkedEdit, ...]:
    """Return the blocks of an answer in order; a marker that belongs to none is a broken one."""
    found: list[MarkedEdit] = []
    at = 0
    for edit in (*edit_markers.find_edits(lines), None):
        for index in range(at, len(lines) if edit is None else edit.start):
            if edit_markers.asks(lines[index]):
                found.append(MarkedEdit(index, index + 1, fault=_ENDLESS, asks=True))
            elif edit_markers.answers(lines[index]):
                found.append(MarkedEdit(index, index + 1, fault=_UNOPENED, asks=True))
        if edit is not None:
            found.append(edit)
            at = edit.end
    return tuple(found)


def replacement(edit: MarkedEdit, indent: str, *, fenced: bool) -> tuple[Replacement, Channel]:
    """Return the replacement that a block asks for, and what its text may still have suffered."""
    if edit.fault:
        raise OperationError(f"{edit.fault}; {_HOW}")
    first = edit_markers.behind_place(edit.old)
    both = [*edit.old[first:], *edit.new[edit_markers.behind_place(edit.new) :]]
    both = dedented(both, indent)
    if Damage.ANGLES in edit.way:
        # What encoded the markers has encoded the text between them.
        both = [chat_damage.without_entities(line) for line in both]
    count = len(edit.old) - first
    old, new = both[:count], both[count:]
    elided = elisions.first_elision(new, {line.strip() for line in old})
    if elided is not None:
        raise OperationError(
            f"its new text has '{new[elided].strip()}', which stands for text that was left out; write"
            " that text"
        )
    way = edit.way - {Damage.ANGLES}
    return Replacement(joined(old), joined(new), is_verbatim=fenced), way
