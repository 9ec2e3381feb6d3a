"""Judge a line of cmd.exe (Windows): no sandbox is behind it, and no POSIX shell's grammar reads it.

So each line is asked about, but for the person's own check and a few plain ones.
"""

import re
from collections.abc import Iterable

from codingagent.model.patterns import words
from codingagent.policy import rules as policies
from codingagent.policy.presets import patterns

# What ends more than the project, or takes more rights.
_BLOCKED = words(
    "runas psexec format diskpart fdisk mountvol vssadmin wbadmin bcdedit bootcfg bootrec bootsect shutdown",
    "logoff tsdiscon",
)

# Lines of plain words that begin so are not asked about: they test, build or look.
_PLAIN = patterns(
    """
    pytest, python (-m pytest, -m unittest, --version), py (-m pytest, -m unittest, --version), ruff check,
    mypy, python -m mypy, tsc --noemit, eslint, npm (test, run test, run build, run lint), pnpm test,
    yarn test, dotnet (build, test), cargo (build, check, test), go (build, test, vet), mvn test,
    gradle test, gradlew test, git (status, diff, log, show, branch --show-current, --version), dir, type,
    tree, where, findstr, echo, ver, cd, node --version
    """
)
# Anything else may be an operator, a variable, a device or an escape.
_PLAIN_LINE = re.compile(r"[\w .,:=@/+\\-]+", re.ASCII)
# Out of the project, or into a file: `git diff --output=.git/hooks/pre-commit`.
_LEAVES = re.compile(r"(^|[ =:,])([A-Za-z]:|\\|/\S*[/.]|~)|\.\.| --(out|ext)", re.IGNORECASE)

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
    names = _names(line)
    for name in names:
        if name in _BLOCKED or name in rules.blocked_commands:
            return policies.deny_command(name, name)
    has_variables = any(True for _ in variables)
    if line == policy.cmd_check and not has_variables:
        return policies.Allow()
    said = " ".join(line.casefold().split())
    is_plain = _PLAIN_LINE.fullmatch(line) is not None and not has_variables
    if rules.allowed_commands and (not is_plain or names[0] not in rules.allowed_commands):
        return policies.deny_unlisted(rules)
    stays = is_plain and not _LEAVES.search(line)
    if not rules.approval_required or (
        stays and any(f"{said} ".startswith(f"{plain} ") for plain in _PLAIN)
    ):
        return policies.Allow()
    rule, why = "shell.unguarded", "no sandbox guards commands on Windows"
    grants = () if has_variables else (f"exactly the line `{policies.clipped(line)}`",)
    return policies.Ask((rule,), (why,), grants)


def _names(line: str) -> list[str]:
    """Return the names of the commands in a line, without folders and endings, in small letters."""
    names: list[str] = []
    # A caret escapes what follows, and is no part of a name.
    for part in _BETWEEN_COMMANDS.split(line.replace("^", "")):
        start = _BEFORE_A_COMMAND.match(part)
        found = _NAME.match(part, start.end() if start else 0)
        if found:
            name = re.split(r"[\\/]", found[1] or found[2])[-1].casefold()
            names.append(_ENDING.sub("", name))
    return names or [""]
