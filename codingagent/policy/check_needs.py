"""What a shell line needs in order to start: programs, and the files and modules that they are to run.

It says less than the line needs rather than more: whatever only the shell would know ends the look.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codingagent.policy.shell_parser import ShellCommand, read_line
from codingagent.policy.shell_wrappers import SHELLS, Words, is_assignment

# What comes after one of these may never run: then only the first command is sure to.
_BRANCHES = re.compile(r"\|\||\b(?:if|case|while|until)\b")

# These run the command among their words as the shell would; any other finds it in a way of its own.
_HANDING_ON = frozenset(
    {"env", "exec", "command", "builtin", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf"}
    | {"taskset", "time", "timeout", "xargs"}
)
# What these do to the shell, nobody can tell from outside.
_TURNING = frozenset({".", "source", "eval", "alias", "set", "export", "unset", "hash", "popd"})

_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_PYTHON_FLAGS = re.compile(r"-[bBdEhiIOPqRsSuvVx]+")
_OTHERS = frozenset({"node", "ruby", "perl"})


@dataclass(frozen=True, slots=True)
class Need:
    """Something without which a line does not start."""

    kind: Literal["program", "script", "module"]
    name: str
    """The program as written, else the path of the script, or the module."""
    folder: str = ""
    """Where it would be looked for, as seen from where the line starts."""
    by: tuple[str, ...] = ()
    """The words that are to run it, of a script or a module."""


def needs_of(text: str) -> tuple[Need, ...]:
    """Return what a shell line needs, in the order in which it comes to it."""
    line = read_line(text)
    if line.doubts or line.too_large:
        return ()
    found = _needs(line.commands, text)
    known = (need for need in found if need.name not in line.functions)
    needs = tuple(known)
    return needs[:1] if _BRANCHES.search(text) else needs


def _needs(commands: tuple[ShellCommand, ...], text: str) -> Iterator[Need]:
    folder = ""
    passed: list[Words] = []
    for command in commands:
        names = {name for name, _ in command.assignments}
        if "PATH" in names:
            return
        if not command.words or any(_is_tail(command.words, words) for words in passed):
            continue
        first = command.words[0]
        if not first.literal or first.wild:
            return
        yield Need("program", first.text, folder)
        if command.name == "cd":
            there = _folder(command.arguments)
            # Where a part of the line has a shell of its own, the rest is not moved by this.
            if there is None or "(" in text or any(each.name in SHELLS for each in commands):
                return
            folder = posixpath.join(folder, there)
        elif command.name in _TURNING:
            return
        elif command.name not in _HANDING_ON:
            passed.append(command.words)
            if not any(name.startswith("PYTHON") for name in names):
                yield from _given(command, folder)


def _is_tail(words: Words, of: Words) -> bool:
    return len(words) < len(of) and of[-len(words) :] == words


def _folder(arguments: Words) -> str | None:
    """Return where `cd` goes; None if only the shell knows."""
    words = [word for word in arguments if word.text != "--"]
    if len(words) != 1 or not words[0].literal or words[0].wild or words[0].text[:1] in "-~":
        return None
    return words[0].text


def _given(command: ShellCommand, folder: str) -> Iterator[Need]:
    """Yield what an interpreter is to run, where that is certain."""
    name, before = command.name or "", [command.words[0].text]
    is_python = _PYTHON.fullmatch(name) is not None
    if not (is_python or name in SHELLS or name in _OTHERS):
        return
    for index, word in enumerate(command.arguments):
        if not word.literal or word.wild:
            return
        if is_python and word.text == "-m":
            module = command.arguments[index + 1 : index + 2]
            if module and module[0].literal:
                top = module[0].text.partition(".")[0]
                yield Need("module", top, folder, tuple(before))
            return
        if not word.text.startswith("-"):
            if not is_assignment(word) and word.text[:1] != "~":
                yield Need("script", word.text, folder, tuple(before))
            return
        if not (is_python and _PYTHON_FLAGS.fullmatch(word.text)):
            return
        before.append(word.text)
