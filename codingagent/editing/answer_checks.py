"""Refuse what a chat's answer must not make of a file: judged on texts, before anything is written.

Programs that send operations are taken at their word; an answer went through a chat, was written by a
model, and may be cut, mangled or meant as something else.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from codingagent.editing import apply, edit_markers, elisions, file_kinds, nearest, syntax_check
from codingagent.editing.file_lines import split
from codingagent.errors import OperationError
from codingagent.model.chat_damage import TURN
from codingagent.model.events import Hunk
from codingagent.model.operations import CreateFile, EditFile, Operation, Replacement, Substitutions
from codingagent.model.paths import shown
from codingagent.model.plain_text import DOUBT, one_line

# So many later changes of the same file may mend what one has broken.
_LATER_LIMIT = 20

_WAY_OUT = {
    False: ' If it is intended, add unchecked="true" to the opening tag of the block',
    True: " If it is intended, write the file with a shell operation",
}


def apply_edit(
    operation: EditFile, text: str, earlier: Sequence[Hunk] = (), counted: str | None = None
) -> apply.Edited:
    """Return a file's text after an edit; `earlier` is what edits of the same answer have put into it.

    `counted` is the text in which the chat counts its lines, if that is known.
    """
    if isinstance(operation.change, Substitutions):
        return apply.substitute(operation.change.edits, text)
    return apply.apply(operation.change, text, operation.arrival, earlier, operation.path, counted)


def check_no_edits(operation: CreateFile, old: str | None) -> None:
    """Refuse edits in place of the text of a whole file.

    Text with the markers of edits or conflicts never replaces a file. It is meant where the file has such
    markers already, where its own grammar reads it (they are in a string then), in documentation that shows
    them, or where the answer says so. `old` is None where there is no file, or no text.
    """
    path, text = operation.path, operation.content
    if not isinstance(text, str) or operation.arrival is None or operation.unchecked:
        return
    is_prose, lines = file_kinds.is_prose(path), text.split("\n")
    found = edit_markers.find_edits(lines, is_prose=is_prose)
    if not found or (old is None and is_prose):
        return
    inside = {at for edit in found for at in range(edit.start, edit.end)}
    if any(line.strip() for at, line in enumerate(lines) if at not in inside) and (
        old is None
        or syntax_check.parses(path, text) is True
        or edit_markers.find_edits(old.split("\n"), is_prose=is_prose)
    ):
        return
    marker = shown(lines[found[0].start].strip()[:40])
    raise OperationError(
        f"The body contains an edit, {marker} at its line {found[0].start + 1}; such text never becomes the"
        f" file '{shown(path)}'",
        advice=". Send [EDIT_FILE] with SEARCH/REPLACE, or the whole text"
        ' without markers; if they are intended as text, send it with until="TOKEN" and close it with'
        " [/CREATE_FILE TOKEN]",
    )


def turned(path: str, old: str, new: str) -> tuple[str, ...]:
    """Return a note if a program has more direction marks than before: it is not what it looks like."""
    if not file_kinds.is_program(path) or len(TURN.findall(new)) <= len(TURN.findall(old)):
        return ()
    known = frozenset(old.split("\n"))
    lines = ((i, line) for i, line in enumerate(new.split("\n"), start=1) if line not in known)
    number, mark = next(((i, m[0]) for i, line in lines if (m := TURN.search(line))), (0, " "))
    note = (
        f"line {number} contains U+{ord(mark):04X}, which is invisible and changes in which order the line is"
        f" shown; it is {DOUBT}"
    )
    return (note,) if number else ()


def check_left_out(operation: CreateFile | EditFile, old: str, new: str, *, is_json: bool = False) -> None:
    """Refuse a change that has a lone comment in place of many lines: it may say that they stay the same."""
    if operation.unchecked:
        return
    parts = operation.parts if isinstance(operation, EditFile) else ()
    searches = [part for part in parts if isinstance(part, Replacement)]
    if searches and len(searches) == len(parts):
        pairs = [(split(each.search), split(each.replace)) for each in searches]
    else:
        before, after = split(old), split(new)
        is_edit = isinstance(operation, EditFile)
        head, tail = nearest.common_ends(before, after) if is_edit else (0, 0)
        pairs = [(before[head : len(before) - tail], after[head : len(after) - tail])]
    for before, after in pairs:
        if said := elisions.in_place_of(before, after, operation.path):
            raise OperationError(
                f"'{one_line(said, 60)}' would replace lines of '{shown(operation.path)}'. Nothing was"
                " changed",
                advice="; send all lines that belong there, or an EDIT_FILE of only those that change; to"
                f" remove lines, leave the comment out.{_WAY_OUT[is_json]}",
            )


def check_reading(
    operation: CreateFile | EditFile,
    old: str | None,
    new: str,
    later: Iterable[Operation],
    *,
    is_json: bool = False,
) -> tuple[str, ...]:
    """Refuse what leaves a file that can't be read any more, and could be before; return notes.

    Several changes of one file may pass through a state that can't be read: then what all of them
    make of it counts, up to the next command, which would see that state. `old` is None where there is
    no file, or no text; `later` is what follows in the answer.
    """
    path = operation.path
    if operation.unchecked or not syntax_check.is_known(path, new):
        return ()
    is_whole = isinstance(operation, CreateFile)
    way_out = _WAY_OUT[is_json]
    in_code = operation.arrival is not None and operation.arrival.in_code
    again = "send it again" if in_code else "send it again in a code block"
    is_over = is_whole and old is not None and file_kinds.is_python(path)
    if is_over and (lost := syntax_check.lost_underscores(old or "", new)):
        names = ", ".join(f"{name.strip('_')} for {name}" for name in lost[:5])
        what = f"The body looks damaged by the chat: '{shown(path)}' would have {names}"
        raise OperationError(f"{what}. Nothing was written", advice=f"; {again}.{way_out}")
    fault = syntax_check.find_fault(path, new)
    if fault is None:
        return ()
    where = f"line {fault.line}: {fault.message}"
    detail = nearest.around(new.split("\n"), [(fault.line, fault.line)])
    is_mangleable = (
        isinstance(operation, CreateFile)
        and isinstance(operation.content, str)
        and operation.arrival is not None
    )
    if is_mangleable and fault.is_indentation:
        what = f"The body looks damaged by the chat: its indentation is gone ({where})"
        raise OperationError(f"{what}. Nothing was written", detail, advice=f"; {again}.{way_out}")
    if old is None or syntax_check.parses(path, old) is not True:
        return ()
    if _is_mended(path, new, later):
        return (f"until the changes after this one, '{shown(path)}' does not parse ({where})",)
    raise OperationError(
        f"'{shown(path)}' parses now and would not after this: {where}. Nothing was changed; send it again so"
        " that the file parses after it, with all that belongs to it in the same answer and no command in"
        f" between.{way_out}",
        f"The lines would then be:\n{detail}",
    )


def _is_mended(path: str, text: str, later: Iterable[Operation]) -> bool:
    """Return whether what follows makes a text readable again, before anything else can see it."""
    same = (o for o in later if any(each.path == path or each.after == "anything" for each in o.changes))
    for operation in islice(same, _LATER_LIMIT):
        match operation:
            case CreateFile(content=str() as content):
                text = content
            case EditFile():
                try:
                    text = apply_edit(operation, text).text
                except OperationError:
                    continue
            case _:
                # A command; or there is no text of that file any more.
                return all(each.removes for each in operation.changes)
        if syntax_check.find_fault(path, text) is None:
            return True
    return False
