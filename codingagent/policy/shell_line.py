"""What a shell line runs: its commands, with their words, as the shell would pass them on."""

from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern

_ASSIGNMENT = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]]*\])?\+?=")
# GNU's tools as Homebrew names them.
_GNU = lazy_pattern("g(ch(mod|own)|cp|dd|env|find|ln|mv|rm|sed|shred|tar|timeout|xargs)")


class Word(Struct, frozen=True):
    """One word of a command, unquoted."""

    text: str
    """The text, with expansions as written: `$HOME/x`."""
    head: str | None = None
    """The text before the first expansion; None if the word is literal."""
    tail: str = ""
    """The text after the last expansion."""
    wild: bool = False
    """Whether it contains an unquoted `*`, `?` or `[`."""

    @property
    def literal(self) -> bool:
        return self.head is None

    @property
    def sure(self) -> str:
        """The text up to the first expansion: enough to recognize an option."""
        return self.text if self.head is None else self.head


Words = tuple[Word, ...]


def command_name(word: Word) -> str | None:
    """Return a command's name without folders, in lower case; None if the line alone does not tell.

    `$VENV/bin/python` is `python`: its last part is literal.
    """
    if (word.wild and word.text not in ("[", "[[")) or "{}" in word.text:
        return None
    if not word.literal and "/" not in word.tail:
        return None
    # Lower case, because some file systems find sudo under SUDO.
    name = (word.text if word.literal else word.tail).rpartition("/")[2].casefold()
    return name[1:] if _GNU.fullmatch(name) else name or None


def split_assignment(word: Word) -> tuple[str, Word] | None:
    """Return the variable that a word before a command sets, and the value; None if it sets none."""
    found = _ASSIGNMENT.match(word.sure)
    if found is None:
        return None
    head = None if word.head is None else word.head[found.end() :]
    return found[1], replace(word, text=word.text[found.end() :], head=head)


# With a dict, for the cached name: each rule of a policy asks each command for it.
class ShellCommand(Struct, frozen=True, dict=True):
    """One simple command: a name and its arguments, or only assignments or redirections."""

    words: Words = ()
    writes: Words = ()
    """The files that redirections write to; not `2>&1`."""
    assignments: tuple[tuple[str, Word], ...] = ()
    """The variables set for it, or by it."""
    reads_from: tuple[str, ...] = ()
    """The names of the commands whose output it reads: by a pipe, which is `|` here, or substituted."""
    runs_input: bool = False
    """Whether it runs its input as a program."""

    @cached_property
    def name(self) -> str | None:
        """The name without folders, in lower case; None if it has none or it is unknown."""
        return command_name(self.words[0]) if self.words else None

    @property
    def arguments(self) -> Words:
        return self.words[1:]


class ShellLine(Struct, frozen=True):
    """Everything that a shell line would run."""

    commands: tuple[ShellCommand, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why parts of it could not be judged, worded for a person."""
    too_large: bool = False
    """It was not read, or not to the end."""
    functions: frozenset[str] = frozenset()
    """The names of the functions that it defines."""
    text: str = ""
