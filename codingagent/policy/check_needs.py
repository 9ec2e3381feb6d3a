"""Find what a shell line needs to start: programs, and the scripts and modules that they run.

It reports too little rather than too much: at anything that only the shell knows, it stops.
"""

import posixpath
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern
from codingagent.policy.shell_parser import ShellCommand, read_line
from codingagent.policy.shell_wrappers import SHELLS, Words, is_assignment

# A command after one of these may never run: only the first command is certain to.
_BRANCHES = lazy_pattern(r"\|\||\b(?:if|case|while|until)\b")

# These resolve their command like the shell; other wrappers may resolve it differently.
_HANDING_ON = frozenset(
    {"env", "exec", "command", "builtin", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf"}
    | {"taskset", "time", "timeout", "xargs"}
)
# Commands whose effect on the shell is unknown from outside.
_TURNING = frozenset({".", "source", "eval", "alias", "set", "export", "unset", "hash", "popd"})

_PYTHON = lazy_pattern(r"python[0-9.]*|pypy[0-9.]*")
_PYTHON_FLAGS = lazy_pattern(r"-[bBdEhiIOPqRsSuvVx]+")
_OTHERS = frozenset({"node", "ruby", "perl"})


class Need(Struct, frozen=True):
    """Something that a line needs to start."""

    kind: Literal["program", "script", "module"]
    name: str
    """The program as written, or the path of the script, or the module."""
    folder: str = ""
    """The folder where it is looked up, relative to where the line starts."""
    by: tuple[str, ...] = ()
    """For a script or a module: the words that run it."""


def needs_of(text: str) -> tuple[Need, ...]:
    """Return what a shell line needs, in order of use."""
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
            # A subshell in the line means that `cd` may not apply to the rest.
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
    """Return the target of `cd`; None if only the shell knows."""
    words = [word for word in arguments if word.text != "--"]
    if len(words) != 1 or not words[0].literal or words[0].wild or words[0].text[:1] in "-~":
        return None
    return words[0].text


def _given(command: ShellCommand, folder: str) -> Iterator[Need]:
    """Yield the script or module that an interpreter runs, where that is certain."""
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
