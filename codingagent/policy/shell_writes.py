"""Find the files that a shell line changes, inside and outside the workspace."""

import re

from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern
from codingagent.policy.shell_line import ShellCommand, ShellLine, Word, Words

# Commands that change the files they name, either all of them or only the last.
_CHANGES_ALL = frozenset(
    {"tee", "rm", "rmdir", "unlink", "mv", "mkdir", "touch", "truncate", "chmod", "chown", "chgrp"}
)
_CHANGES_LAST = frozenset({"cp", "ln", "install", "rsync"})
# Commands that change what an option names.
_CHANGES_OPTION = {
    **dict.fromkeys(("tar", "bsdtar"), ("-C", "--directory")),
    "unzip": ("-d", "--extract-dir"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
}
_HARMLESS = lazy_pattern(
    r"/dev/(null|zero|full|tty|std(in|out|err)|fd/\d+)|"
    r"(/private)?((/var)?/tmp|/var/folders/[^/]+/[^/]+/T)(/.*)?"
)
_HOME = lazy_pattern(r"~|\$HOME\b|\$\{HOME\b")
_HERE = lazy_pattern(r"\$PWD\b|\$\{PWD\}|\$\(pwd\)")


def changed(line: ShellLine, workspace: str) -> list[str]:
    """Return the files that a line writes to, as far as it names them: `a/b` inside, `/a/b` outside."""
    found: list[str] = []
    here = ""
    for command in line.commands:
        if command.name in ("cd", "pushd"):
            operands = [word for word in command.arguments if not word.text.startswith("-")]
            target = operands[0] if operands else Word("~")
            here = _placed(target, here, workspace) or here
        for word in (*command.writes, *_written(command)):
            placed = _placed(word, here, workspace)
            if placed and not _HARMLESS.fullmatch(placed):
                found.append(placed)
    return found


def _written(command: ShellCommand) -> Words:
    """Return the arguments that a command changes."""
    words = command.arguments
    operands = tuple(word for word in words if not word.sure.startswith("-"))
    name = command.name or ""
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", word.sure) for word in words)
    if name in _CHANGES_ALL or (name in ("sed", "perl") and in_place):
        # The first argument of chmod, chown and sed is the mode, owner or script.
        return operands[1:] if name in ("chmod", "chown", "chgrp", "sed", "perl") else operands
    if name in _CHANGES_LAST:
        return (*operands[1:][-1:], *_option_values(words, "-t", "--target-directory"))
    if name == "dd":
        return tuple(_behind(word, "of=") for word in words if word.sure.startswith("of="))
    return _option_values(words, *_CHANGES_OPTION[name]) if name in _CHANGES_OPTION else ()


def _option_values(words: Words, short: str, long: str) -> Words:
    found: list[Word] = []
    for at, word in enumerate(words):
        if word.text == long or re.fullmatch(rf"-[A-Za-z]*{short[1]}", word.text):
            found += words[at + 1 : at + 2]
        elif word.sure.startswith(f"{long}="):
            found.append(_behind(word, f"{long}="))
    return tuple(found)


def _behind(word: Word, start: str) -> Word:
    head = None if word.head is None else word.head.removeprefix(start)
    return replace(word, text=word.text.removeprefix(start), head=head)


def _placed(word: Word, here: str, workspace: str) -> str:
    """Return where a word points: a path inside the workspace, one outside, or empty if unknown."""
    text = word.text
    if _HOME.match(text):
        return "/~"
    if _HERE.match(text):
        text = _HERE.sub(lambda _: workspace, text, count=1)
    elif not word.literal:
        text = word.sure
    if not text:
        return ""
    root = workspace.rstrip("/")
    start = (
        "" if text.startswith("/") else f"{here}/" if here.startswith("/") else f"{root}/{here}/"
    )
    parts: list[str] = []
    for part in f"{start}{text}".split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    whole = "/" + "/".join(parts)
    inside = whole.removeprefix(f"{root}/")
    return "." if whole == (root or "/") else inside


def is_outside(path: str) -> bool:
    return path.startswith("/")
