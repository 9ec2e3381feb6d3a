"""How substitutions change a text: the first occurrence of each, in order, all or none.

Specification 001, editFile. Nothing is guessed: an old text is found to the letter, or not at all.
"""

import re
from collections.abc import Sequence

from codingagent.editing import places
from codingagent.editing.apply import Edited
from codingagent.errors import OperationError
from codingagent.model.events import Hunk
from codingagent.model.operations import Substitution
from codingagent.model.paths import shown

# So many edits of so many characters take some seconds: each is searched for from the start, and makes
# a new text.
_WORK_LIMIT = 2 * 10**10
_LINE = re.compile(".*\n|.+")


def apply(substitutions: Sequence[Substitution], text: str) -> Edited:
    """Return the text after all of them; its one hunk is whatever lines have changed.

    Raises:
        OperationError: if an old text is empty or not there, in the text as those before have left it.
    """
    if len(substitutions) * len(text) > _WORK_LIMIT:
        raise OperationError(
            f"{len(substitutions)} edits of a file of {len(text)} characters are too many at once;"
            " replace the file whole"
        )
    new = text
    for index, substitution in enumerate(substitutions):
        where = f"edits[{index}].oldContent"
        if not substitution.old:
            raise OperationError(f"{where} is empty; nothing was changed: give the text to replace")
        at = new.find(substitution.old)
        if at < 0:
            raise OperationError(_not_found(where, substitution.old, new))
        new = f"{new[:at]}{substitution.new}{new[at + len(substitution.old) :]}"
    hunk = _hunk(text, new)
    return Edited(new, () if hunk is None else (hunk,), ())


def _not_found(where: str, old: str, text: str) -> str:
    reason = f"{where} not found: '{shown(old)}'; nothing was changed"
    if "\r\n" in text and "\n" in old and old.replace("\r\n", "\n") in text.replace("\r\n", "\n"):
        return f"{reason}: the file's lines end in \\r\\n, write them so"
    return f"{reason}: read the file and write its text to the letter"


def _hunk(old: str, new: str) -> Hunk | None:
    """Return the lines between what two texts share at their head and at their tail."""
    if old == new:
        return None
    before, after = (_LINE.findall(text) for text in (old, new))
    head, tail = places.common_ends(before, after)
    start, same = head + 1, head + tail
    return Hunk(start, len(before) - same, start, len(after) - same)
