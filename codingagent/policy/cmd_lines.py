"""Judge a line of cmd.exe (Windows): no sandbox is behind it, and no POSIX shell's grammar reads it.

So each line is asked about, but for the person's own check and a few plain ones.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from codingagent.policy import rules as policies
from codingagent.policy.presets import CMD_BLOCKED, CMD_PLAIN

# Anything else may be an operator, a variable, a device or an escape.
_PLAIN_LINE = re.compile(r"[\w .,:=@/+\\-]+", re.ASCII)
# Out of the project, into a file, or by names that a file holds: `git diff --output=x`, `findstr /f:x`.
_LEAVES = re.compile(
    r"(^|[ =:,])([A-Za-z]:|\\|/\S*[/.]|~)|\.\.|\.git\b| --(out|ext)| /[fg]:", re.IGNORECASE
)

_BETWEEN_COMMANDS = re.compile(r"[&|\n()]+|\b(?:do|else)\b", re.IGNORECASE)
_BEFORE_A_COMMAND = re.compile(
    r"""[\s@,;=]*(?:(?:call|start(?:\s+""|\s+/\w+)*|cmd(?:\.exe)?(?:\s+/\w+)+)\s+"?)*""",
    re.IGNORECASE,
)
_NAME = re.compile(r'"([^"]+)"|([^\s"<>,;=/]+)')
_ENDING = re.compile(r"\.(exe|com|cmd|bat)$")


def judge_cmd_line(
    policy: policies.Policy, line: str, variables: Iterable[str] = ()
) -> policies.Verdict:
    """Judge a line; the person's check, as it stands, is theirs. Variables may choose what any line runs."""
    rules = policy.shell
    commands = list(_commands(line)) or [("", [])]
    names = [name for name, _ in commands]
    for name, arguments in commands:
        pattern = name if name in CMD_BLOCKED else _first(rules.blocked_commands, name, arguments)
        if pattern:
            return policies.deny_command(pattern, name)
    has_variables = any(True for _ in variables)
    if line == policy.cmd_check and not has_variables:
        return policies.Allow()
    said = " ".join(line.casefold().split())
    is_plain = _PLAIN_LINE.fullmatch(line) is not None and not has_variables
    if rules.allowed_commands and (not is_plain or names[0] not in rules.allowed_commands):
        return policies.deny_unlisted(rules)
    stays = is_plain and not _LEAVES.search(line)
    is_asked = any(_first(rules.approval_required, *command) for command in commands)
    if not rules.approval_required or (
        stays and not is_asked and any(f"{said} ".startswith(f"{plain} ") for plain in CMD_PLAIN)
    ):
        return policies.Allow()
    rule, why = "shell.unguarded", "no sandbox guards commands on Windows"
    grants = () if has_variables else (f"exactly the line `{policies.clipped(line)}`",)
    return policies.Ask((rule,), (why,), grants)


def _first(patterns: Iterable[str], name: str, arguments: Sequence[str]) -> str:
    """Return the first pattern whose words a command has, in any order; empty if there is none."""
    for pattern in patterns:
        first, *others = pattern.casefold().split() or [""]
        if fnmatchcase(name, first) and all(
            any(fnmatchcase(word, each) for word in arguments) for each in others
        ):
            return pattern
    return ""


def _commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command's name, without folder and ending, and its words, all in small letters."""
    # A caret escapes what follows, and is no part of a name.
    for part in _BETWEEN_COMMANDS.split(line.replace("^", "")):
        start = _BEFORE_A_COMMAND.match(part)
        found = _NAME.match(part, start.end() if start else 0)
        if found:
            name = re.split(r"[\\/]", found[1] or found[2])[-1].casefold()
            yield _ENDING.sub("", name), part[found.end() :].casefold().replace('"', "").split()
