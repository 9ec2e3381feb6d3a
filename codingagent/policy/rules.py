"""Policy rules: whether an operation is allowed, denied or needs approval, as docs/settings.md says."""

import difflib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Literal, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import astuple, replace

from codingagent.errors import UsageError
from codingagent.model.operations import After
from codingagent.model.paths import ANY_FOLDERS, folded, glob_matcher, is_glob, name_pattern, shown
from codingagent.model.patterns import sections, table

_Number = Annotated[int, Meta(ge=1)]
_Patterns = tuple[Annotated[str, Meta(pattern=r"\S")], ...]


class FilesystemRules(Struct, frozen=True):
    enabled: bool = True
    read_only: bool = False
    max_file_size: _Number = 10 * 1024 * 1024
    """The maximum size in bytes of a written file."""
    allowed_paths: _Patterns = ()
    """If not empty, all other paths are denied."""
    blocked_paths: _Patterns = ()
    approval_required: _Patterns = ()
    """Paths whose change needs approval, by commands too. Empty: none does."""


class ShellRules(Struct, frozen=True):
    enabled: bool = True
    allowed_commands: _Patterns = ()
    """If not empty, all other commands are denied, and lines that can't be judged."""
    blocked_commands: _Patterns = ()
    approval_required: _Patterns = ()
    """Commands that need approval. Empty: nothing does, not even doubtful lines or outside writes."""
    timeout: _Number | None = None
    """The maximum time of a command in seconds. None: only the settings limit it."""


class NetworkRules(Struct, frozen=True):
    enabled: bool = False


class Policy(Struct, frozen=True):
    """All rules. Every section applies them in the order enabled, blocked, allowed, approval."""

    name: str
    filesystem: FilesystemRules = field(default_factory=FilesystemRules)
    shell: ShellRules = field(default_factory=ShellRules)
    network: NetworkRules = field(default_factory=NetworkRules)
    sandbox: Literal["none", "online", "offline"] = "none"
    """What is round commands: what it prevents is not asked about."""
    cmd_check: str | None = None
    """On Windows the person's check, which may be empty; commands are lines of cmd.exe then."""


class Allow(Struct, frozen=True):
    """Allowed."""


class Ask(Struct, frozen=True):
    """Allowed only with the person's approval."""

    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    grants: tuple[str, ...]
    """What a yes for always covers, and is remembered for: little more than what was asked."""


class Deny(Struct, frozen=True):
    """Denied. The model reads the reason and the suggestion."""

    rule: str
    reason: str
    suggestion: str


def denied(why: str, **named: object) -> Deny:
    """Return what denies, in the words of rules.txt, with what they name."""
    return Deny(*(part.format(**named) for part in _DENIED[why].split(" | ")))


Verdict = Allow | Ask | Deny

# --- the presets, as rules.txt lists what they block, ask about, and protect by its name ---
SECTIONS = sections(__file__)
_DENIED = table(SECTIONS["denied"])


def _patterns(name: str) -> tuple[str, ...]:
    """Return the patterns between the commas; the words before a bracket begin each in it."""
    found: list[str] = []
    text = " ".join(SECTIONS[name].split())
    for start, inside in re.findall(r"([^,()]+)(?:\(([^)]*)\))?", text):
        found += (f"{start} {end}".strip() for end in inside.split(","))
    return tuple(" ".join(each.split()) for each in found if each.strip())


def _names(name: str) -> tuple[str, ...]:
    return tuple(SECTIONS[name].split())


def reasons(*kinds: str) -> dict[str, str]:
    """Return the commands that sections of some kinds ask about, and why."""
    sections = [name for name in SECTIONS if name.startswith(kinds)]
    return {each: name.partition(": ")[2] for name in sections for each in _patterns(name)}


@cache
def usages(name: str) -> dict[str, tuple[str, ...]]:
    """Return the words that a section has for each program."""
    lines = [line.partition(": ") for line in SECTIONS[name].splitlines()]
    return {each: tuple(rest.split()) for names, _, rest in lines for each in names.split()}


BLOCKED_COMMANDS = _patterns("blocked")
REASONS = reasons("asked")
"""The reason for asking, appended to the command's name."""

ASKED_COMMANDS = tuple(REASONS)
ASKED_VARIABLES = frozenset(_names("variables asked"))
CHOOSING_VARIABLES = frozenset(_names("variables that choose"))

EXECUTED_NAMES = {
    f"!**/{name[1:]}" if name.startswith("!") else f"**/{name}": kind.partition(": ")[2]
    for kind in SECTIONS
    if kind.startswith("executed")
    for name in _names(kind)
}
"""Who executes the files of a pattern, by the pattern; an earlier one counts first."""

TAKEN_IN = tuple(
    pattern
    for pattern in EXECUTED_NAMES
    # Weights of neural networks are often called *.pth too, are large, and nobody executes them.
    if not pattern.startswith("!") and pattern not in ("**/.git", "**/.codingagent", "**/*.pth")
)
"""Those that checkpoints cover even where git ignores them."""

CMD_BLOCKED = _names("cmd blocked")
CMD_PLAIN = _patterns("cmd plain")

PRESETS: Mapping[str, Policy] = {
    "restrictive": Policy("restrictive", FilesystemRules(read_only=True), ShellRules(enabled=False)),
    "standard": Policy(
        "standard",
        FilesystemRules(approval_required=tuple(EXECUTED_NAMES)),
        ShellRules(blocked_commands=BLOCKED_COMMANDS, approval_required=ASKED_COMMANDS),
    ),
    "permissive": Policy("permissive", FilesystemRules(), ShellRules(blocked_commands=BLOCKED_COMMANDS)),
}


def in_sandbox(policy: Policy, *, has_network: bool) -> Policy:
    """Return the policy for commands in a sandbox; a list of commands of the person's own stands."""
    shell = policy.shell
    if shell.approval_required == ASKED_COMMANDS:
        kinds = ("asked: ", "asked where") if has_network else ("asked: ",)
        shell = replace(shell, approval_required=tuple(reasons(*kinds)))
    return replace(policy, shell=shell, sandbox="online" if has_network else "offline")


ASKED_BY_POLICY = "needs your approval under this policy"


def judge_read(policy: Policy, path: str) -> Verdict:
    """Judge reading a file; the path is in plain form, `a/b`, relative to the workspace."""
    return _judge_path(policy.filesystem, path) or Allow()


def judge_change(policy: Policy, after: After, path: str, size_bytes: int) -> Verdict:
    """Judge what an operation leaves at a path, of this size; the path as in `judge_read`."""
    rules = policy.filesystem
    if rules.enabled and rules.read_only:
        return denied("read_only", path=shown(path))
    if (refused := _judge_path(rules, path)) is not None:
        return refused
    # What is moved takes no more room than before.
    if after not in ("nothing", "moved") and size_bytes > rules.max_file_size:
        return denied("too_large", path=shown(path), size=size_bytes, most=rules.max_file_size)
    return ask_for_path(rules, path) or Allow()


def _judge_path(rules: FilesystemRules, path: str) -> Deny | None:
    if not rules.enabled:
        return denied("no_files")
    if (refused := deny_blocked(rules, path)) is not None:
        return refused
    if rules.allowed_paths and covering(rules.allowed_paths, path, exactly=True) is None:
        return denied("not_allowed", path=shown(path), allowed=", ".join(rules.allowed_paths))
    return None


def deny_blocked(rules: FilesystemRules, path: str) -> Deny | None:
    pattern = covering(rules.blocked_paths, path)
    return None if pattern is None else denied("blocked", path=shown(path), pattern=pattern)


def ask_for_path(rules: FilesystemRules, path: str) -> Ask | None:
    """Return the approval that a change to a path needs; None if none."""
    if (pattern := covering(rules.approval_required, path)) is None:
        return None
    own = "your policy names it"
    if pattern.startswith("./"):
        own = "git runs or obeys it, as the repository's configuration says"
    return ask_for_change(path, EXECUTED_NAMES.get(pattern, own), pattern)


def with_named(policy: Policy, paths: Iterable[str]) -> Policy:
    """Return a policy that asks for these paths too, each with `./` before it, unless it asks for none."""
    files = policy.filesystem
    if not (files.approval_required and (named := tuple(dict.fromkeys(paths)))):
        return policy
    files = replace(files, approval_required=(*files.approval_required, *named))
    return replace(policy, filesystem=files)


def ask_for_change(path: str, why: str, pattern: str = "**/.git") -> Ask:
    name = f"'{shown(path)}'"
    rule = f"filesystem.approval_required: {pattern}"
    return Ask((rule,), (f"{name} is protected: {why}",), (f"changes of {name}",))


def together(*asks: Ask) -> Ask:
    parts = zip(*map(astuple, asks), strict=True)
    return Ask(*(tuple(itertools.chain.from_iterable(each)) for each in parts))


def covering(patterns: tuple[str, ...], path: str, *, exactly: bool = False) -> str | None:
    """Return the first pattern that matches a path or one above it; `exactly` for a rule that allows."""
    parts = unicodedata.normalize("NFC", path).split("/")
    names = parts if exactly else [folded(part) or part for part in parts]
    known = "/".join(names)
    # Of hundreds of patterns, hardly one shares a name with the path.
    by_name, globs, by_glob = _by_name(patterns, exactly)
    places = {place for name in names for place in by_name.get(name, ())}
    if any(map(globs.fullmatch, names)):
        places.update(by_glob)
    for place in sorted(places):
        if any(fits(known) for fits in _matchers(patterns[place], exactly)):
            return None if patterns[place].startswith("!") else patterns[place]
    return None


@cache
def _by_name(
    patterns: tuple[str, ...], exactly: bool
) -> tuple[Mapping[str, tuple[int, ...]], re.Pattern[str], tuple[int, ...]]:
    """Index patterns by a name that a matching path must contain, or by a glob that it must match."""
    by_name: dict[str, tuple[int, ...]] = {}
    by_glob: dict[int, str] = {}
    for place, pattern in enumerate(patterns):
        parts = [part for part in _known(pattern, exactly).split("/") if part != ANY_FOLDERS]
        if names := [part for part in parts if not is_glob(part)]:
            by_name[names[-1]] = (*by_name.get(names[-1], ()), place)
        else:
            by_glob[place] = name_pattern(parts[-1] if parts else "*").pattern
    return by_name, re.compile("|".join(by_glob.values()) or "(?!)", re.DOTALL), (*by_glob,)


def _known(pattern: str, exactly: bool) -> str:
    plain = unicodedata.normalize("NFC", pattern.removeprefix("!").removeprefix("./").rstrip("/"))
    return plain if exactly else "/".join(folded(part) or part for part in plain.split("/"))


@cache
def _matchers(pattern: str, exactly: bool) -> tuple[Callable[[str], bool], ...]:
    """Return two functions: whether a path matches a pattern, and whether it is in a folder that does."""
    known = _known(pattern, exactly)
    return glob_matcher(known), glob_matcher(f"{known}/**")


_TABLES = ("filesystem", "shell", "network")
_NUMBER = "a whole number from 1 up"
_WANTED = {bool: "true or false", tuple: "a list of strings", int: _NUMBER, type(None): _NUMBER}


def from_document(document: Mapping[str, object], source: str) -> Policy:
    """Return the policy in a TOML document, whose keys replace those that it `extends`; UsageError."""
    _check_keys(document, ["extends", *_TABLES], source, "")
    base = document.get("extends", "standard")
    if not isinstance(base, str) or base not in PRESETS:
        names = ", ".join(PRESETS)
        raise UsageError(f"{source}: extends is {base!r}; it must be one of {names}")
    policy = replace(PRESETS[base], name=source)
    for name in _TABLES:
        table = document.get(name, {})
        if not isinstance(table, Mapping):
            raise UsageError(f"{source}: {name} is {table!r}; it must be a table, [{name}]")
        rules = getattr(policy, name)
        _check_keys(table, [*rules.__struct_fields__], source, f"{name}.")
        hints = get_type_hints(type(rules), include_extras=True)
        for key, value in table.items():
            try:
                rules = replace(rules, **{key: convert(value, hints[key])})
            except ValidationError as fault:
                wanted = _WANTED[type(getattr(rules, key))]
                where = f"{source}: {name}.{key}"
                raise UsageError(f"{where} is {value!r}; it must be {wanted}") from fault
        policy = replace(policy, **{name: rules})
    return policy


def _check_keys(table: Mapping[str, object], known: list[str], source: str, prefix: str) -> None:
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{prefix}{close[0]}'?" if close else f"known: {', '.join(known)}"
            raise UsageError(f"{source}: unknown key '{prefix}{key}'; {hint}")


def advice(policy: Policy) -> str:
    """Return what a model should know of the policy before it answers; empty if everything is allowed."""
    files, shell = policy.filesystem, policy.shell
    said = []
    if not files.enabled:
        said.append("file operations are turned off")
    elif files.read_only:
        said.append("files can only be read")
    if not shell.enabled:
        said.append("commands are turned off")
    elif shell.allowed_commands:
        said.append(f"only these commands run: {', '.join(shell.allowed_commands)}")
    elif shell.approval_required:
        said.append(
            "commands that delete folders, discard work, publish or reach outside wait for the user's"
            " approval: avoid them where there is another way"
        )
    if shell.enabled and shell.blocked_commands:
        said.append("sudo and the like are blocked")
    return "; ".join(said)


def describe(policy: Policy) -> str:
    """Describe the policy in two lines: what it allows, and exactly what asks or is refused."""
    files, shell = policy.filesystem, policy.shell
    may = "files may only be read" if files.read_only else "files may be read and changed"
    said = [may if files.enabled else "no file operations"]
    said += [f"only in {', '.join(files.allowed_paths)}"] if files.allowed_paths else []
    listed = ", ".join(shell.allowed_commands)
    runs = f"commands: only {listed}" if listed else "commands may be run"
    said.append(runs if shell.enabled else "no commands")
    asked = (
        _named(shell.approval_required) if shell.enabled else "",
        "protected files" if files.approval_required and not files.read_only else "",
    )
    blocked = (_named(shell.blocked_commands) if shell.enabled else "", _named(files.blocked_paths))
    rest = "; ".join(
        f"{what}: {', '.join(filter(None, names))}"
        for what, names in (("asks before", asked), ("blocks", blocked))
        if any(names)
    )
    return f"{policy.name}: {', '.join(said)}\n{rest}".rstrip("\n")


def _named(patterns: tuple[str, ...]) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns)
