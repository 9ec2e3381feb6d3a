"""Judge a shell line by a policy: parse it and judge every command in it, as a guard against accidents."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from posixpath import join, normpath

from codingagent.model.observations import digest_of
from codingagent.model.paths import is_glob, shown
from codingagent.model.patterns import alternatives, lazy_pattern
from codingagent.policy import rules as policies
from codingagent.policy.rules import Allow, Ask, Deny, Policy, Verdict, denied
from codingagent.policy.shell_commands import ShellCommand, ShellLine, Word, Words, is_looked_through
from codingagent.policy.shell_parser import read_line

_DOWNLOADS = frozenset({"curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx", "ftp"})
_UPLOADING = alternatives(policies.SECTIONS["uploads"])
_CHANGING = lazy_pattern(r"(-X|--request=?|--method=?)?(POST|PUT|PATCH|DELETE)", re.IGNORECASE)
_LINE_SHOWN_CHARACTERS = 200
_VARIABLE = lazy_pattern(r"\$\{?(\w+)")
_LOCAL_URL = alternatives(policies.SECTIONS["local addresses"])


def judge_command(policy: Policy, command: str, workspace: str, variables: Iterable[str] = ()) -> Verdict:
    """Judge a shell line by every command in it, and by the names of the variables that are set for it."""
    rules = policy.shell
    if not rules.enabled:
        return denied("no_commands")
    if policy.cmd_check is not None:
        return _judge_cmd_line(policy, command, variables)
    line = read_line(command)
    refused = _deny_line(policy, line, workspace, variables)
    return refused or _ask_for_line(policy, line, workspace, variables) or Allow()


def _deny_line(policy: Policy, line: ShellLine, workspace: str, variables: Iterable[str]) -> Deny | None:
    rules = policy.shell
    if line.too_large:
        return denied("too_long")
    for command in line.commands:
        if (pattern := next(fitting(rules.blocked_commands, command), None)) is not None:
            name = pattern if " " in pattern else command.name or pattern
            return denied("blocked_command", pattern=pattern, name=shown(name))
    for path in (p for p in changed(line, workspace) if not p.startswith("/")):
        if (refused := policies.deny_blocked(policy.filesystem, path)) is not None:
            return refused
    if not rules.allowed_commands:
        return None
    named = [command for command in line.commands if command.words and command.name != "["]
    if line.doubts or any(next(fitting(rules.allowed_commands, c), None) is None for c in named):
        return denied("unlisted", allowed=", ".join(rules.allowed_commands))
    # Variables could make an allowed command run another one.
    names = {*variables, *(name for command in line.commands for name, _ in command.assignments)}
    if risky := sorted(names & (policies.CHOOSING_VARIABLES | policies.ASKED_VARIABLES)):
        return denied("choosing", variable=shown(risky[0]))
    return None


def _clipped(text: str) -> str:
    """Shorten a line for the person; a digest identifies the omitted part of a long one."""
    if len(text) <= _LINE_SHOWN_CHARACTERS:
        return shown(text)
    return f"{shown(text[:_LINE_SHOWN_CHARACTERS])}…` ({digest_of(text.encode(errors='replace'))[:12]}) `"


def _ask_for_line(policy: Policy, line: ShellLine, workspace: str, variables: Iterable[str]) -> Ask | None:
    """Return everything that needs approval, each item once, and what a yes for always would cover."""
    found: dict[str, str] = {}
    grants: dict[str, None] = {}
    whole = f"exactly the line `{_clipped(line.text)}`"

    def add(reasons: Mapping[str, str], grant: str = whole) -> None:
        if reasons:
            found.update(reasons)
            grants[grant] = None

    if policy.shell.approval_required:
        for name in variables:
            add(_setting(name))
        for command in line.commands:
            add(_doubts(policy, command, line))
            text = shown(" ".join(word.text for word in command.words))
            for pattern in fitting(policy.shell.approval_required, command):
                why = policies.REASONS.get(pattern, policies.ASKED_BY_POLICY)
                rule = {f"shell.approval_required: {pattern}": f"'{text}' {why}"}
                for place in _places(command, line) or ("",):
                    add(rule, f"`{pattern}` of {place}" if place else whole)
        for name in sorted(line.functions):
            if name in _named(policy.shell.approval_required)[0] or is_looked_through(name):
                doubt = f"shell.doubt: function {shown(name)}"
                add({doubt: f"it defines a function with the name of the command {shown(name)}"})
        for doubt in line.doubts:
            add({f"shell.doubt: {doubt}": f"the command can't be judged: {doubt}"})
    for path in changed(line, workspace):
        if path.startswith("/"):
            if policy.shell.approval_required and policy.sandbox == "none":
                reason = f"it changes '{shown(path)}', outside the workspace"
                add({f"shell.outside: {shown(path)}": reason}, f"changes of '{shown(path)}'")
        elif (ask := policies.ask_for_path(policy.filesystem, path)) is not None:
            add(dict(zip(ask.rules, ask.reasons, strict=True)), *ask.grants)
    return Ask(tuple(found), tuple(dict.fromkeys(found.values())), tuple(grants)) if found else None


# Commands that destroy the paths in their arguments: a yes for always covers the folder.
_OF_PATHS = frozenset({"rm", "rimraf", "shred", "srm", "truncate"})


def _places(command: ShellCommand, line: ShellLine) -> tuple[str, ...]:
    """Describe where the paths are that a command destroys; return nothing if that is unknown."""
    if command.name not in _OF_PATHS or any(each.name in ("cd", "pushd") for each in line.commands):
        return ()
    if not command.operands or command.reads_from:
        return ()
    places: dict[str, None] = {}
    for word in command.operands:
        parts = [part for part in word.text.split("/") if part not in ("", ".")]
        if not word.literal or ".." in parts or word.text.startswith(("/", "~")) or not parts:
            return ()
        if len(parts) > 1 and not any(is_glob(part) for part in parts[:-1]):
            places[f"paths under {shown('/'.join(parts[:-1]))}/"] = None
        elif word.wild:
            return ()
        else:
            places[f"'{shown(parts[0])}'"] = None
    return tuple(places)


def _doubts(policy: Policy, command: ShellCommand, line: ShellLine) -> dict[str, str]:
    """Return doubts that no pattern can express, with their reasons."""
    _, with_options, with_subcommands = _named(policy.shell.approval_required)
    found: dict[str, str] = {}
    words = command.arguments
    online = policy.sandbox != "offline"
    if online and command.runs_input and _DOWNLOADS & set(command.reads_from):
        found["shell.download_run"] = "it runs what it downloads"
    texts = [word.text for word in words]
    if online and command.name in _DOWNLOADS and not any(map(_LOCAL_URL.match, texts)):
        uploads = [t for t in texts if _UPLOADING.fullmatch(t.partition("=")[0])]
        if uploads or any(map(_CHANGING.fullmatch, texts)):
            found["shell.upload"] = "it sends data to another machine"
    is_open = command.reads_from or any(each.wild or "{}" in each.text for each in words)
    if command.name == "rm" and is_open:
        found["shell.rm_many"] = "it deletes files that it does not name one by one"
    for name, _ in command.assignments:
        found |= _setting(name)
    if command.name in with_subcommands:
        operand = next(iter(command.operands), None)
        if operand is not None and not operand.sure and not operand.literal:
            rule = f"shell.doubt: subcommand of {command.name}"
            found[rule] = f"what {command.name} does is known only when it runs"
    if command.name in with_options:  # they may come from variables that the line itself sets
        given = {_VARIABLE.match(w.text) for w in words if not w.literal and not w.head}
        variables = {each[1] for each in given if each is not None}
        for name, value in (each for other in line.commands for each in other.assignments):
            if name in variables and value.sure.startswith("-"):
                rule = f"shell.doubt: options of {command.name}"
                found.setdefault(rule, f"what {command.name} does depends on the variable {name}")
    return found


def _setting(name: str) -> dict[str, str]:
    if name not in policies.ASKED_VARIABLES:
        return {}
    return {f"shell.variable: {name}": f"it sets {name}, which makes other programs run"}


@cache
def _named(patterns: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """Return the commands of patterns: all, those with an option, and those with a subcommand."""
    split = [(*pattern.split(), "") for pattern in patterns]
    with_options = (words[0] for words in split if any(each[:1] == "-" for each in words))
    with_subcommands = (words[0] for words in split if words[1].isalpha() and "*" not in words[0])
    return frozenset(w[0] for w in split), frozenset(with_options), frozenset(with_subcommands)


# Tools where any argument may be a target: `make clean deploy`.
_TARGETS = frozenset({"make", "gmake", "just", "task", "mvn", "mvnw", "rake", "ant", "gulp"})


def fitting(patterns: tuple[str, ...], command: ShellCommand) -> Iterator[str]:
    """Yield the patterns that match a command, in their order, by the rules in docs/settings.md."""
    if (name := command.name) is None:
        return
    for pattern, first, *wanted in _split(patterns):
        is_called = first == name or ("*" in first and _glob(first).fullmatch(name))
        if is_called and _fit(wanted, name, command):
            yield pattern


def _fit(wanted: list[str], called: str, command: ShellCommand) -> bool:
    words = command.arguments
    texts = [word.text for word in words]
    end = texts.index("--") if "--" in texts else len(texts)
    options = [word.sure for word in words[:end] if word.sure.startswith("-")]
    at = 0
    for want in wanted:
        if want == "--":
            fits = want in texts
        elif "*" in want:
            fits = any(map(_glob(want).fullmatch, texts))
        elif re.fullmatch(r"-\w", want):
            fits = any(want[1] in each for each in options if re.fullmatch(r"-\w+", each))
        elif want.startswith("-"):
            # Programs accept an abbreviated long option if it is unambiguous.
            given = [option.partition("=")[0] for option in options]
            begun = (each for each in given if len(each) > 3 and each.startswith("--"))
            fits = want in given or any(map(want.startswith, begun))
        else:
            at = _after_subcommand(texts, 0 if called in _TARGETS else at, want, called)
            fits = at > 0
        if not fits:
            return False
    return True


@cache
def _split(patterns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return each pattern, the name of its command in lower case, and its other words."""
    words = ((each, *each.split()) for each in patterns)
    return [(pattern, name.casefold(), *wanted) for pattern, name, *wanted in words]


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _after_subcommand(texts: list[str], at: int, want: str, name: str) -> int:
    """Return the position after a subcommand, or 0; it is unknown which options take the next word."""
    maybe_value = False
    for place, text in enumerate(texts[at:], at + 1):
        if text.startswith("-") and len(text) > 1:
            maybe_value = "=" not in text and not text.startswith("--no-")
        elif text == want:
            return place
        elif maybe_value or name in _TARGETS:
            maybe_value = False
        else:
            return 0
    return 0


_HARMLESS = alternatives(policies.SECTIONS["harmless places"])
_HOME = lazy_pattern(r"~|\$HOME\b|\$\{HOME\b")
_HERE = lazy_pattern(r"\$PWD\b|\$\{PWD\}|\$\(pwd\)")


def changed(line: ShellLine, workspace: str) -> list[str]:
    """Return the files that a line writes to, as far as it names them: `a/b` inside, `/a/b` outside."""
    found: list[str] = []
    here = ""
    for command in line.commands:
        if command.name in ("cd", "pushd"):
            here = _placed((*command.operands, Word("~"))[0], here, workspace) or here
        for word in (*command.writes, *_written(command)):
            placed = _placed(word, here, workspace)
            if placed and not _HARMLESS.fullmatch(placed):
                found.append(placed)
    return found


def _written(command: ShellCommand) -> Words:
    words, operands = command.arguments, command.operands
    how = policies.usages("changes").get(command.name or "", ())
    if "-i" in how and not any(re.match(r"-[a-zA-Z]*i|--in-place", word.sure) for word in words):
        return ()
    found = [*operands] if "ALL" in how else [*operands[1:]] if "REST" in how else []
    found += operands[1:][-1:] if "LAST" in how else []
    for option in how:
        short = rf"-[A-Za-z]*{option[1]}" if len(option) == 2 else re.escape(option)
        for at, word in enumerate(words):
            if option != "-i" and re.fullmatch(short, word.text):
                found += words[at + 1 : at + 2]
            elif word.sure.startswith(f"{option}="):
                value = word.text.removeprefix(f"{option}=")
                found.append(Word(value, word.head and word.head.removeprefix(f"{option}=")))
    return tuple(found)


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
    whole = normpath(join(root, here, text)).replace("//", "/")
    return "." if whole == (root or "/") else whole.removeprefix(f"{root}/")


# Anything else may be an operator, a variable, a device or an escape.
_PLAIN_LINE = lazy_pattern(r"[\w .,:=@/+\\-]+", re.ASCII)
_LEAVES = alternatives(policies.SECTIONS["cmd leaves"], re.IGNORECASE)

_BETWEEN_COMMANDS = lazy_pattern(r"[&|\n()]+|\b(?:do|else)\b", re.IGNORECASE)
_BEFORE_A_COMMAND = alternatives(policies.SECTIONS["cmd before a command"], re.IGNORECASE)
_NAME = lazy_pattern(r'"([^"]+)"|([^\s"<>,;=/]+)')
_ENDING = lazy_pattern(r"\.(exe|com|cmd|bat)$")


def _judge_cmd_line(policy: Policy, line: str, variables: Iterable[str] = ()) -> Verdict:
    """Judge a line; the person's check, as it stands, is theirs. Variables may choose what any line runs."""
    rules = policy.shell
    commands = list(_cmd_commands(line)) or [("", [])]
    blocked = (*policies.CMD_BLOCKED, *rules.blocked_commands)
    for name, arguments in commands:
        if pattern := _first_cmd(blocked, name, arguments):
            return denied("blocked_command", pattern=pattern, name=shown(name))
    has_variables = any(True for _ in variables)
    if line == policy.cmd_check and not has_variables:
        return Allow()
    is_plain = _PLAIN_LINE.fullmatch(line) is not None and not has_variables
    if rules.allowed_commands and (not is_plain or commands[0][0] not in rules.allowed_commands):
        return denied("unlisted", allowed=", ".join(rules.allowed_commands))
    said = f"{' '.join(line.casefold().split())} "
    is_harmless = (
        is_plain
        and said.startswith(tuple(f"{plain} " for plain in policies.CMD_PLAIN))
        and not _LEAVES.search(line)
        and not any(_first_cmd(rules.approval_required, *command) for command in commands)
    )
    if is_harmless or not rules.approval_required:
        return Allow()
    grants = () if has_variables else (f"exactly the line `{_clipped(line)}`",)
    return Ask(("shell.unguarded",), ("no sandbox guards commands on Windows",), grants)


def _first_cmd(patterns: Iterable[str], name: str, arguments: Sequence[str]) -> str:
    """Return the first pattern whose words a command has, in any order; empty if there is none."""
    for pattern in patterns:
        first, *others = pattern.casefold().split() or [""]
        if fnmatchcase(name, first) and all(
            any(fnmatchcase(it, each) for it in arguments) for each in others
        ):
            return pattern
    return ""


def _cmd_commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command's name, without folder and ending, and its words, all in small letters."""
    # A caret escapes what follows, and is no part of a name.
    for part in _BETWEEN_COMMANDS.split(line.replace("^", "")):
        start = _BEFORE_A_COMMAND.match(part)
        found = _NAME.match(part, start.end() if start else 0)
        if found:
            name = re.split(r"[\\/]", found[1] or found[2])[-1].casefold()
            yield _ENDING.sub("", name), part[found.end() :].casefold().replace('"', "").split()
