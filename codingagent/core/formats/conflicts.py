"""SEARCH/REPLACE blocks of an answer, in whatever spelling: where they are and what each replaces."""

from collections.abc import Sequence

from codingagent.core import channel, edit_markers
from codingagent.core.channel import Channel, Damage
from codingagent.core.edit_markers import MarkedEdit
from codingagent.core.formats import elisions
from codingagent.core.formats.fences import dedented
from codingagent.core.formats.hunks import joined
from codingagent.core.operations import Replacement
from codingagent.errors import OperationError

TAG = "SEARCH/REPLACE"

_HOW = (
    "send <<<<<<< SEARCH, the old lines, =======, the new lines, >>>>>>> REPLACE again; if the text"
    " itself holds such a line, make all three markers longer, of equal length"
)
_ENDLESS = "it has no closing marker"


def find(lines: Sequence[str]) -> tuple[MarkedEdit, ...]:
    """Return the blocks of an answer in order; an opening after which nothing follows is one, too."""
    found = {edit.start: edit for edit in edit_markers.find_edits(lines)}
    for index, line in enumerate(lines):
        if index not in found and edit_markers.asks(line):
            found[index] = MarkedEdit(index, index + 1, fault=_ENDLESS, asks=True)
    return tuple(found[index] for index in sorted(found))


def replacement(edit: MarkedEdit, indent: str, *, fenced: bool) -> tuple[Replacement, Channel]:
    """Return the replacement that a block asks for, and what its text may still have suffered.

    Args:
        edit: the block.
        indent: the blanks before its opening.
        fenced: it stands in a code block.

    Raises:
        OperationError: if it can't be read, or its new lines leave something out.
    """
    if edit.fault:
        raise OperationError(f"{edit.fault}; {_HOW}")
    both = dedented([*edit.old, *edit.new], indent)
    if Damage.ANGLES in edit.way:
        # What encoded the markers has encoded the text between them.
        both = [channel.without_entities(line) for line in both]
    old, new = both[: len(edit.old)], both[len(edit.old) :]
    elided = elisions.added_elision(old, new)
    if elided is not None:
        raise OperationError(
            f"its new text has '{new[elided].strip()}', which stands for text that was left out; write"
            " that text"
        )
    way = edit.way - {Damage.ANGLES}
    return Replacement(joined(old), joined(new), is_verbatim=fenced), way
