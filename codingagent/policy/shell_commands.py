"""The commands of a shell line, and those that they run in turn: `env X=1 rm`, `sh -c 'rm x'`."""

import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern
from codingagent.policy.rules import usages

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
    """Return a command's name without folders, in lower case, if the line tells it: of `$VENV/bin/x` x."""
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

    @cached_property
    def name(self) -> str | None:
        return command_name(self.words[0]) if self.words else None

    @property
    def arguments(self) -> Words:
        return self.words[1:]

    @property
    def operands(self) -> Words:
        """The arguments that are no options, as far as they tell."""
        return tuple(word for word in self.words[1:] if not word.sure.startswith("-"))


class ShellLine(Struct, frozen=True):
    """Everything that a shell line would run."""

    commands: tuple[ShellCommand, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why parts of it could not be judged, worded for a person."""
    too_large: bool = False
    """It was not read, or not to the end."""
    functions: frozenset[str] = frozenset()
    text: str = ""


_STDIN = lazy_pattern(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")


class InnerCommands(Struct, frozen=True):
    """What a command runs: other commands, shell texts, or its input."""

    commands: tuple[Words, ...] = ()
    texts: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    runs_input: bool = False
    """It runs its input, or output substituted into its words, as a program."""


class _Shape(Struct, frozen=True):
    """The syntax of a wrapper's command line, up to the command that it runs."""

    takes: str = ""
    """Short options whose value may be the next word."""
    long: tuple[str, ...] = ()
    """Long options whose value may be the next word."""
    operands: int = 0
    """How many words of its own precede the command."""
    text: str = ""
    """A short option whose value is a shell text."""
    joined: bool = False
    """The remaining words are joined and given to a shell."""
    after: tuple[str, ...] = ()
    """The words of which one must stand before the command: `poetry run`."""


@cache
def _shapes() -> dict[str, _Shape]:
    shapes: dict[str, _Shape] = {}
    for name, (*words, last) in usages("wrappers").items():
        options = [word[1:] for word in words if word.startswith("-")]
        shapes[name] = _Shape(
            "".join(each for each in options if each[0] != "-" and ":" not in each),
            tuple(each[1:] for each in options if each[0] == "-"),
            words.count("WORD"),
            "".join(each[0] for each in options if ":" in each),
            last == "TEXT",
            tuple(words[0].split("|")) if words and words[0][0].islower() else (),
        )
    return shapes


SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"})
_SHELL = _Shape("oO", ("rcfile", "init-file"))
_GIT = _Shape("cC", ("git-dir", "work-tree", "namespace"))
# Interpreters, and the options that their program follows.
_PROGRAM_OPTIONS = {"python": "cm", "pypy": "cm", "perl": "eE", "ruby": "e"}
_PROGRAM_OPTIONS |= {"node": "ep", "bun": "ep", "php": "r", "lua": "e"}


def is_looked_through(name: str) -> bool:
    """Return whether a command of this name is known to run other commands, or to change the folder."""
    return name in SHELLS or name in _shapes() or name in _SPECIAL or name in ("cd", "pushd")


def inner(words: Words) -> InnerCommands:
    """Return what a command runs besides itself."""
    name = command_name(words[0]) or ""
    # python3.11 is python; the version does not affect the options.
    plain = re.sub(r"(?<=[a-z])[\d.]+$", "", name)
    if plain in SHELLS:
        return _shell(words)
    if plain in _PROGRAM_OPTIONS:
        return _interpreter(words, _PROGRAM_OPTIONS[plain])
    if name in _SPECIAL:
        return _SPECIAL[name](words)
    # `command -v sudo` only looks it up.
    if name == "command" and words[1:] and re.match("-p?[vV]", words[1].text):
        return InnerCommands()
    return _wrapped(words, name)


def _found(words: Words) -> InnerCommands:
    return InnerCommands(commands=(words,)) if words else InnerCommands()


def _wrapped(words: Words, name: str) -> InnerCommands:
    if (shape := _shapes().get(name)) is None:
        return InnerCommands()
    at = _operand(words, 1, shape)
    if shape.after:
        if at >= len(words) or words[at].text not in shape.after:
            return InnerCommands()
        at = _operand(words, at + 1, shape)
    rest = words[at + shape.operands :]
    if shape.joined:
        return _text(rest)
    texts = _values(words, shape.text) if shape.text else ()
    if texts and shape.text == "S":
        return _text((*texts, *rest))
    return replace(_text(texts), commands=(rest,) if rest else ())


def _operand(words: Words, at: int, shape: _Shape) -> int:
    """Return the position of the first word that is neither an option nor an option's value."""
    while at < len(words):
        text = words[at].sure
        at += 1
        if text == "--":
            return at
        if text.startswith("--"):
            option, equals, _ = text[2:].partition("=")
            # GNU programs accept abbreviated option names.
            at += bool(option and not equals and any(n.startswith(option) for n in shape.long))
        elif text.startswith("-") and text != "-":
            taking = next((i for i, letter in enumerate(text) if i and letter in shape.takes), None)
            at += taking == len(text) - 1 and words[at - 1].literal
        else:
            return at - 1
    return at


_LONG = {"c": "--(?:command|call)", "x": "--exec", "S": "--split-string"}


def _values(words: Words, letter: str) -> Words:
    """Return the values of an option that is alone, last in a cluster, or joined with its value."""
    found: list[Word] = []
    option = re.compile(rf"(?:-[A-Za-z]*{letter}|{_LONG[letter]})(?!.)|-{letter}|{_LONG[letter]}=")
    for word, following in zip(words, (*words[1:], None), strict=True):
        start = option.match(word.sure)
        value = word.text[start.end() :] if start else ""
        if start and (value or start[0][-1] == "="):
            found.append(Word(value, None if word.literal else ""))
        elif start and following is not None:
            found.append(following)
    return tuple(found)


def _text(words: Sequence[Word]) -> InnerCommands:
    """Join words into one shell text, as eval does, with expansions as written, which are doubtful."""
    if not words:
        return InnerCommands()
    sure = all(word.literal for word in words)
    doubts = () if sure else ("it runs text that is known only when it runs",)
    return InnerCommands((), (" ".join(word.text for word in words),), doubts, not sure)


def _shell(words: Words) -> InnerCommands:
    at = _operand(words, 1, _SHELL)
    letters = "".join(word.sure for word in words[1:at] if re.match(r"-\w", word.sure))
    rest = words[at:]
    if "c" in letters and rest:
        return _text(rest[:1])
    if "c" in letters:
        return InnerCommands(doubts=("the text that the shell would run is not in the line",))
    if not rest or "s" in letters or _STDIN.fullmatch(rest[0].text):
        return InnerCommands(runs_input=True)
    if rest[0].text.startswith("<("):
        return InnerCommands(doubts=("it runs what another command prints",), runs_input=True)
    return InnerCommands()


def _source(words: Words) -> InnerCommands:
    if all(word.literal and not _STDIN.fullmatch(word.text) for word in words[1:2]):
        return InnerCommands()
    doubt = "it reads commands from something that is not a named file"
    return InnerCommands(doubts=(doubt,), runs_input=True)


def _interpreter(words: Words, program_options: str) -> InnerCommands:
    """Return what an interpreter runs; programs are not read, only whether they come from outside."""
    for at, word in enumerate(words[1:], 1):
        text = word.sure
        if _STDIN.fullmatch(word.text) or word.text.startswith("<("):
            return InnerCommands(runs_input=True)
        if text.startswith("--eval") or re.fullmatch(rf"-[A-Za-z]*[{program_options}]\w*", text):
            following = words[at + 1 :]
            if text == "-m":
                return _found(following)
            return InnerCommands(runs_input=bool(following) and not following[0].literal)
        if not text.startswith("-"):
            return InnerCommands()
    return InnerCommands(runs_input=True)


def _parallel(words: Words) -> InnerCommands:
    ends = (i for i, word in enumerate(words) if re.fullmatch(r":::+\+?", word.text))
    done = _wrapped(words[: next(ends, len(words))], "parallel")
    doubt = ("the commands that it runs are its input",)
    return done if done.texts else InnerCommands(doubts=doubt)


_EXECUTING = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_ENDING = lazy_pattern(r"(^| );$|^\{\} \+$")


def _find(words: Words) -> InnerCommands:
    found: list[Words] = []
    end = 0
    for at, word in enumerate(words, 1):
        if at > end and word.text in _EXECUTING:
            texts = [each.text for each in words]
            ends = (i for i in range(at, len(texts)) if _ENDING.search(" ".join(texts[i - 1 : i + 1])))
            end = next(ends, len(texts))
            found += [words[at:end]] if end > at else []
    return InnerCommands(commands=tuple(found))


def _trap(words: Words) -> InnerCommands:
    rest = words[_operand(words, 1, _Shape()) :]
    return _text(rest[:1]) if len(rest) > 1 and rest[0].text not in ("", "-") else InnerCommands()


def _alias(words: Words) -> InnerCommands:
    defines = any("=" in word.text for word in words[1:])
    return InnerCommands(doubts=("it gives commands other names",) if defines else ())


def _git(words: Words) -> InnerCommands:
    """Return what git itself runs: `bisect run`, `submodule foreach`, `rebase --exec`, an alias."""
    at = _operand(words, 1, _GIT)
    if any(word.text.startswith("alias.") for word in words[1:at]):
        return _alias(words)
    verb, rest = (words[at].text if at < len(words) else ""), words[at + 1 :]
    if verb == "bisect" and rest[:1] == (Word("run"),):
        return _found(rest[1:])
    texts = _values(rest, "x") if verb == "rebase" else ()
    if verb == "submodule" and Word("foreach") in rest:
        foreach = rest[rest.index(Word("foreach")) :]
        texts = foreach[_operand(foreach, 1, _Shape()) :]
    return _text(texts)


_SPECIAL: dict[str, Callable[[Words], InnerCommands]] = {
    **dict.fromkeys((".", "source"), _source),
    **dict.fromkeys(("fd", "fdfind", "find"), _find),
}
_SPECIAL |= {"alias": _alias, "git": _git, "parallel": _parallel, "trap": _trap}
_SPECIAL |= {"eval": lambda words: _text(words[_operand(words, 1, _Shape()) :])}
