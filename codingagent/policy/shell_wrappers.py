"""Find the commands that a command runs in turn: `env X=1 rm`, `sh -c 'rm x'`, `find -exec rm {} +`.

It knows the options of these programs word by word. An unknown option (from a newer version) makes
it take the wrong word for the command, which a guard against accidents can accept.
"""

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern
from codingagent.policy.shell_line import Word, Words, command_name

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
    """Options whose value is a shell text."""
    joined: bool = False
    """The remaining words are joined and given to a shell."""


_SHAPES = {
    **dict.fromkeys(("builtin", "busybox", "command", "entr", "firejail", "nohup"), _Shape()),
    **dict.fromkeys(("setsid", "toybox", "unbuffer"), _Shape()),
    **dict.fromkeys(("chroot", "taskset"), _Shape(operands=1)),
    "arch": _Shape("h"),
    "caffeinate": _Shape("tw"),
    "chrt": _Shape("TPD", operands=1),
    "doas": _Shape("uC"),
    "exec": _Shape("a"),
    "flock": _Shape("wE", ("timeout", "wait", "conflict-exit-code"), 1, "c"),
    "ionice": _Shape("cnpPu", ("class", "classdata")),
    "ltrace": _Shape("aeFlnopsuxX"),
    "nice": _Shape("n", ("adjustment",)),
    "npx": _Shape("p", ("package",), text="c"),
    "nsenter": _Shape("tSG", ("target",)),
    "parallel": _Shape("jaILnNPsSCdEvr", ("jobs", "arg-file", "colsep", "delay"), joined=True),
    "pkexec": _Shape(long=("user",)),
    "prlimit": _Shape("p"),
    "runuser": _Shape("ugGsw", ("user", "group", "shell"), text="c"),
    "sandbox-exec": _Shape("fpnD"),
    "script": _Shape("IOBTEmo", operands=1, text="c"),
    "setpriv": _Shape(long=("reuid", "regid", "groups", "pdeathsig", "securebits")),
    "stdbuf": _Shape("ioe", ("input", "output", "error")),
    "strace": _Shape("abeIoOpPsSuUXE"),
    "su": _Shape("gGsw", ("group", "shell"), text="c"),
    "sudo": _Shape("ugpChrtTDRU", ("user", "group", "prompt", "chdir", "host", "role", "type")),
    "systemd-run": _Shape("upEHM", ("unit", "property", "setenv")),
    "time": _Shape("fo", ("format", "output")),
    "timeout": _Shape("ks", ("kill-after", "signal"), 1),
    "unshare": _Shape("RwSG", ("root", "wd", "setuid", "setgid")),
    "uvx": _Shape("pw", ("from", "with", "python")),
    "bunx": _Shape("p", ("package",)),
    "watch": _Shape("nq", ("interval", "equexit"), joined=True),
    "xcrun": _Shape(long=("sdk", "toolchain")),
    "xargs": _Shape(
        "adEILnPs",
        ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"),
    ),
}

# Programs that run another one only after one of these words: `poetry run pytest`.
_RUNNERS = {
    "bundle": ("exec",),
    "conda": ("run",),
    "hatch": ("run",),
    "mise": ("exec", "x"),
    "npm": ("exec", "x"),
    "pdm": ("run",),
    "pipenv": ("run",),
    "pipx": ("run",),
    "pnpm": ("exec", "dlx"),
    "poetry": ("run",),
    "rye": ("run",),
    "uv": ("run",),
    "yarn": ("exec", "dlx"),
}
_RUNNER_SHAPE = _Shape(
    "npCPe", ("with", "python", "extra", "group", "env-file", "directory", "project", "package")
)

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"})

# Interpreters, and the options that their program follows.
_PROGRAM_OPTIONS = {"python": "cm", "pypy": "cm", "perl": "eE", "ruby": "e"}
_PROGRAM_OPTIONS |= {"node": "ep", "bun": "ep", "php": "r", "lua": "e"}


def is_looked_through(name: str) -> bool:
    """Return whether a command of this name is known to run other commands, or to change the folder."""
    return name in SHELLS or name in _SHAPES or name in _SPECIAL or name in ("cd", "pushd")


def inner(words: Words) -> InnerCommands:
    """Return what a command runs besides itself."""
    name = command_name(words[0])
    # python3.11 is python; the version does not affect the options.
    plain = re.sub(r"(?<=[a-z])[\d.]+$", "", name or "")
    if name is None:
        return InnerCommands()
    if plain in SHELLS:
        return _shell(words)
    if plain in _PROGRAM_OPTIONS:
        return _interpreter(words, _PROGRAM_OPTIONS[plain])
    if name in _RUNNERS:
        at = _operand(words, 1, _RUNNER_SHAPE)
        if at < len(words) and words[at].text in _RUNNERS[name]:
            return _found(words[_operand(words, at + 1, _RUNNER_SHAPE) :])
        return InnerCommands()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    shape = _SHAPES.get(name)
    return InnerCommands() if shape is None else _wrapped(words, shape)


def _found(words: Words) -> InnerCommands:
    return InnerCommands(commands=(words,)) if words else InnerCommands()


def _wrapped(words: Words, shape: _Shape) -> InnerCommands:
    at = _operand(words, 1, shape) + shape.operands
    rest = words[at:]
    if shape.joined:
        return _text(rest) if rest else InnerCommands()
    texts = _values(words, shape.text) if shape.text else ()
    return replace(_text(texts) if texts else InnerCommands(), commands=(rest,) if rest else ())


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
            if not equals and option and any(name.startswith(option) for name in shape.long):
                at += 1
        elif text.startswith("-") and text != "-":
            taking = next((i for i, letter in enumerate(text) if i and letter in shape.takes), None)
            if taking == len(text) - 1 and words[at - 1].literal:
                at += 1
        else:
            return at - 1
    return at


def _values(words: Words, letter: str) -> Words:
    """Return the values of an option that is alone, last in a cluster, or joined with its value."""
    found: list[Word] = []
    long = {"c": "--command", "x": "--exec"}[letter]
    for word, following in zip(words, (*words, None)[1:], strict=True):
        text = word.sure
        if text in (long, "--call") or (re.fullmatch(r"-[A-Za-z]+", text) and text[-1] == letter):
            found += [following] if following is not None else []
        elif text.startswith(f"{long}="):
            value = word.text.partition("=")[2]
            found.append(Word(value) if word.literal else Word(value, ""))
    return tuple(found)


def _text(words: Iterable[Word]) -> InnerCommands:
    """Join words into one shell text, as eval does: doubtful where they are not literal.

    Expansions stay in it as written, so that the text around them is still read.
    """
    words = tuple(words)
    sure = all(word.literal for word in words)
    return InnerCommands(
        texts=(" ".join(word.text for word in words),),
        doubts=() if sure else ("it runs text that is known only when it runs",),
        runs_input=not sure,
    )


def _eval(words: Words) -> InnerCommands:
    return _text(words[2:] if words[1:2] == (Word("--"),) else words[1:])


def _shell(words: Words) -> InnerCommands:
    at, wants_text, from_input = 1, False, False
    while at < len(words) and words[at].sure[:1] in ("-", "+") and len(words[at].text) > 1:
        option = words[at].sure
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
        else:
            at += sum(letter in "oO" for letter in option)
            wants_text = wants_text or (option[0] == "-" and "c" in option)
            from_input = from_input or "s" in option
    if wants_text:
        if at >= len(words):
            return InnerCommands(doubts=("the text that the shell would run is not in the line",))
        return _text(words[at : at + 1])
    if at >= len(words) or from_input or _STDIN.fullmatch(words[at].text):
        return InnerCommands(runs_input=True)
    if words[at].sure.startswith("<(") or words[at].text.startswith("<("):
        return InnerCommands(doubts=("it runs what another command prints",), runs_input=True)
    return InnerCommands()


def _source(words: Words) -> InnerCommands:
    if len(words) < 2:
        return InnerCommands()
    file = words[1]
    if file.literal and not _STDIN.fullmatch(file.text):
        return InnerCommands()
    return InnerCommands(
        doubts=("it reads commands from something that is not a named file",), runs_input=True
    )


def _interpreter(words: Words, program_options: str) -> InnerCommands:
    """Return what an interpreter runs; programs are not read, only whether they come from outside."""
    for at, word in enumerate(words[1:], 1):
        text = word.sure
        if _STDIN.fullmatch(word.text) or word.text.startswith("<("):
            return InnerCommands(runs_input=True)
        if text.startswith("--eval") or (
            re.fullmatch(r"-[A-Za-z]+", text) and set(text) & set(program_options)
        ):
            following = words[at + 1 :]
            if text == "-m":
                return _found(following)
            return InnerCommands(runs_input=bool(following) and not following[0].literal)
        if not text.startswith("-"):
            return InnerCommands()
    return InnerCommands(runs_input=True)


def _env(words: Words) -> InnerCommands:
    at = _operand(words, 1, _Shape("uCS", ("unset", "chdir", "split-string")))
    options, rest = words[1:at], words[at:]
    for option, value in zip(options, (*options, Word(""))[1:], strict=True):
        attached = re.match(r"-[a-zA-Z0]*S(.+)|--split-string=(.*)", option.text, re.DOTALL)
        if attached:
            return _text((Word(attached[1] or attached[2], option.head), *rest))
        if re.fullmatch(r"-[a-zA-Z0]*S|--s[a-z-]*", option.text):
            return _text((value, *rest))
    return _found(rest)


def _command(words: Words) -> InnerCommands:
    # `command -v sudo` only looks it up.
    return (
        InnerCommands()
        if re.match(r"-p?[vV]", words[1].text if words[1:] else "")
        else _wrapped(words, _SHAPES["command"])
    )


def _parallel(words: Words) -> InnerCommands:
    ends = (i for i, word in enumerate(words) if re.fullmatch(r":::+\+?", word.text))
    done = _wrapped(words[: next(ends, len(words))], _SHAPES["parallel"])
    return (
        done if done.texts else InnerCommands(doubts=("the commands that it runs are its input",))
    )


def _coproc(words: Words) -> InnerCommands:
    # `coproc NAME { …; }`: the grammar takes the brace for a word.
    brace = next((i for i, word in enumerate(words) if word.text == "{"), 0)
    return _found(words[brace + 1 :])


def _find(words: Words) -> InnerCommands:
    found: list[Words] = []
    at = 1
    while at < len(words):
        word = words[at].text
        at += 1
        if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            start = at
            while at < len(words) and words[at].text != ";":
                if words[at].text == "+" and words[at - 1].text == "{}":
                    break
                at += 1
            found += [words[start:at]] if at > start else []
    return InnerCommands(commands=tuple(found))


def _trap(words: Words) -> InnerCommands:
    rest = words[_operand(words, 1, _Shape()) :]
    return _text(rest[:1]) if len(rest) > 1 and rest[0].text not in ("", "-") else InnerCommands()


def _alias(words: Words) -> InnerCommands:
    defines = any("=" in word.text for word in words[1:])
    return InnerCommands(doubts=("it gives commands other names",) if defines else ())


_ALIAS = lazy_pattern(r"alias\.(.*?)=(.*)", re.DOTALL)


def _git(words: Words) -> InnerCommands:
    """Return what git itself runs: `bisect run`, `submodule foreach`, `rebase --exec`, an alias."""
    at = _operand(words, 1, _Shape("cC", ("git-dir", "work-tree", "namespace")))
    verb, rest = (words[at].text if at < len(words) else ""), words[at + 1 :]
    aliases = {
        at: found for at, word in enumerate(words[:at]) if (found := _ALIAS.match(word.text))
    }
    for place, found in aliases.items():
        # Alias names are case-insensitive in git, and an alias never refers to itself.
        if found[1].lower() == verb.lower() and found[2].strip() and not found[2].startswith("!"):
            before = (*words[:place], Word("x.y=z"), *words[place + 1 : at])
            return _found((*before, *map(Word, found[2].split()), *rest))
    texts = [Word(found[2][1:]) for found in aliases.values() if found[2].startswith("!")]
    if verb == "bisect" and rest[:1] == (Word("run"),):
        return _found(rest[1:])
    if verb == "submodule" and Word("foreach") in rest:
        foreach = rest[rest.index(Word("foreach")) :]
        texts += foreach[_operand(foreach, 1, _Shape()) :]
    if verb == "rebase":
        texts += _values(rest, "x")
    return _text(texts) if texts else InnerCommands()


_SPECIAL = {".": _source, "alias": _alias, "command": _command, "coproc": _coproc, "env": _env}
_SPECIAL |= {"eval": _eval, "fd": _find, "fdfind": _find, "find": _find, "git": _git}
_SPECIAL |= {"parallel": _parallel, "source": _source, "trap": _trap}
