"""Read the task from the command line, stdin, a file or an editor."""

import os
import sys
from pathlib import Path

from codingagent.cli.stdio import is_terminal
from codingagent.errors import UsageError
from codingagent.model.encoding import typed_text
from codingagent.model.plain_text import without_halves
from codingagent.storage.mailbox import read_bounded


def read_task(
    words: list[str], file: Path | None, edit: bool, what: str = "task", *, may_be_empty: bool = False
) -> str:
    """Return the task, or the question, from the one source that was given."""
    task = _read(f"the {what}", words, file, edit)
    if not (task or may_be_empty):
        verb = "new" if what == "task" else "ask"
        raise UsageError(f'no {what} given; write it in quotes: codingagent {verb} "the {what}"')
    return task


def read_words(words: list[str], file: Path | None, edit: bool, *, may_be_empty: bool) -> str:
    """Return the person's words: typed, from a file, or both; with attached files they may be empty."""
    if words and file is not None and not edit:
        both = (_read("", words, None, edit=False), _read("", [], file, edit=False))
        said = "\n\n".join(filter(None, both))
    else:
        said = _read("what you say", words, file, edit)
    if not said and not may_be_empty:
        raise UsageError('no words given; write them in quotes: codingagent say "your words"')
    return said


def _read(what: str, words: list[str], file: Path | None, edit: bool) -> str:
    ways = [bool(words), file is not None, edit]
    if sum(ways) > 1:
        raise UsageError(f"{what} is given twice; give it as words, with --file, or with --edit")
    if file is not None:
        try:
            if (data := read_bounded(file, UsageError)) is None:
                raise UsageError(f"{file} is too large to be {what or 'words'}; name another file")
            task = typed_text(data)
        except UnicodeDecodeError:
            raise UsageError(f"{file} is not UTF-8 text; save it as UTF-8") from None
    elif edit or words == ["-"]:
        data = edited("task.txt") if edit else sys.stdin.buffer.read()
        # Bytes that are not UTF-8 become question marks, not errors.
        task = typed_text(data, "replace")
    else:
        task = " ".join(words)
    # Command-line arguments that are not UTF-8 hold lone surrogates.
    return without_halves(task.strip().replace("\r\n", "\n"))


def edited(name: str, begun: str = "") -> bytes:
    """Return what the person writes in their editor, in a temporary file of this name."""
    import tempfile

    from codingagent.process.runner import open_editor

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / name
        path.write_text(begun, "utf-8", "replace")
        before = path.read_bytes()
        open_editor(path)
        if os.name == "nt" and path.read_bytes() == before and is_terminal(sys.stdin):
            # Notepad of Windows 11 hands the file to a window of its own, and ends.
            sys.stderr.write("if the editor is still open: save the file there, then press Enter here: ")
            sys.stderr.flush()
            sys.stdin.readline()
        return path.read_bytes()
