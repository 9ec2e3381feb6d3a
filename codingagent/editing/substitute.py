"""How substitutions change a text: the first occurrence of each, in order, all or none.

Specification 001, editFile. Nothing is guessed: an old text is found to the letter, or not at all.
"""

from collections.abc import Sequence

from codingagent.editing.apply import Edited
from codingagent.errors import OperationError
from codingagent.model.events import Hunk
from codingagent.model.operations import Substitution
from codingagent.model.paths import shown

# So many edits of so many characters take some seconds: each is searched for from the start, and makes
# a new text.
_WORK_LIMIT = 2 * 10**10


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
    head = _common(old, new)
    old_rest, new_rest = old[head:], new[head:]
    tail = _common(old_rest, new_rest, at_end=True)
    start = old.count("\n", 0, head) + 1
    old_end, new_end = len(old) - tail, len(new) - tail
    return Hunk(start, _lines(old, head, old_end), start, _lines(new, head, new_end))


def _lines(text: str, start: int, end: int) -> int:
    """Return how many lines a part of a text touches; none, if it is empty and at a line's start."""
    is_between = end == 0 or text[end - 1] == "\n"
    return text.count("\n", start, end) + (0 if is_between else 1)


def _common(a: str, b: str, *, at_end: bool = False) -> int:
    """Return how many characters two texts share at one end: by halving, so that slices are compared."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        same = a[len(a) - middle :] == b[len(b) - middle :] if at_end else a[:middle] == b[:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
