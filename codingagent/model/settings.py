"""Settings, the source of each, and errors for values that can't be used."""

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, json

from codingagent.errors import UsageError
from codingagent.model.patterns import lazy_pattern

FILE_NAME = "codingagent.toml"
OPTION = "option"
DEFAULT = "default"
ENVIRONMENT_PREFIX = "CODINGAGENT_"

# Read before the settings, since it says where they are.
HOME_VARIABLE = "CODINGAGENT_HOME"

# Set for a command that answers in place of a chat; it may call codingagent itself.
SESSION_VARIABLE = "CODINGAGENT_SESSION"
SEQUENCE_VARIABLE = "CODINGAGENT_SEQUENCE"
SHORT_VARIABLE = "CODINGAGENT_SHORT"
_NO_SETTINGS = (HOME_VARIABLE, SESSION_VARIABLE, SEQUENCE_VARIABLE, SHORT_VARIABLE)

# A list in the environment is separated by commas.
_LISTS = ("pass_env", "always_attach", "never_choose")

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


# 8k is 8000.
_THOUSANDS = lazy_pattern(r"(?<=\d)[kK]$")

_HIGHEST = 10**9


def _told(meaning: str, ge: int | None = None, le: int | None = None) -> Meta:
    return Meta(description=meaning, ge=ge, le=le)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings; the fields are their names in codingagent.toml."""

    workspace: Annotated[str, _told("the folder to work in; empty: workspace/ in the home")] = ""
    context_chars: Annotated[
        int, _told("characters in a request, at most", ge=10_000, le=_HIGHEST)
    ] = 200_000
    list_entries: Annotated[
        int, _told("names in the file list of a request, at most", ge=20, le=_HIGHEST)
    ] = 2_000
    command_timeout: Annotated[
        int, _told("seconds for a command that names no timeout", ge=1, le=3600)
    ] = 30
    command_memory: Annotated[
        int,
        _told(
            "megabytes for a command and all that it starts; 0: three quarters of the machine's",
            ge=0,
            le=10**7,
        ),
    ] = 0
    pass_env: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        _told("environment variables that commands see in addition to the usual ones"),
    ] = ()
    check: Annotated[
        str, _told("a command to run before any change and after each; [DONE] needs its success")
    ] = ""
    check_timeout: Annotated[int, _told("seconds for that command", ge=1, le=3600)] = 300
    policy: Annotated[
        str,
        _told("what is asked about or blocked: restrictive, standard, permissive, or a file"),
    ] = "standard"
    sandbox: Annotated[
        Literal["auto", "require", "off"],
        _told("auto: confine commands where that works; require: refuse to work without; off"),
    ] = "auto"
    network: Annotated[bool, _told("let sandboxed commands use the network")] = False
    secrets: Annotated[
        Literal["mask", "redact", "off"],
        _told("redact: placeholders for them; mask: also hide secret files from commands; off"),
    ] = "redact"
    diff: Annotated[
        Literal["never", "short", "full"],
        _told("how much of each change of a file the screen shows: never, short or full"),
    ] = "short"
    notify: Annotated[
        bool, _told("ring the bell and set the title where a terminal waits and it is your turn")
    ] = True
    clipboard: Annotated[
        Literal["ask", "off", "auto"],
        _told("auto: as with --clipboard, where there is a clipboard to use; ask: once; off"),
    ] = "ask"
    context: Annotated[
        int,
        _told(
            "tokens for files that are chosen from the task for the first request; 0: none",
            ge=0,
            le=10**6,
        ),
    ] = 8_000
    always_attach: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="files that the first request shows whole, as paths or globs"),
    ] = ()
    never_choose: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        _told("files that are never chosen, as globs: `docs/**`"),
    ] = ()
    conventions: Annotated[bool, _told("show AGENTS.md, or a file like it, in requests")] = True
    chat: Annotated[
        Literal["custom", "chatgpt", "claude", "copilot", "deepseek", "gemini", "le-chat"],
        _told("the chat that you use: it sets context_chars to what it takes pasted, if known"),
    ] = "custom"


class Source(Struct, frozen=True):
    """A source of values, described in words, and its values by setting name."""

    name: str
    values: Mapping[str, object]


class Resolved(Struct, frozen=True):
    """The effective settings, and the source of each by its name."""

    settings: Settings
    origins: Mapping[str, str]


def resolve(sources: list[Source]) -> Resolved:
    """Merge sources, the strongest last; UsageError says where a name or a value is wrong."""
    values: dict[str, object] = {}
    origins = dict.fromkeys(Settings.__struct_fields__, DEFAULT)
    for source in sources:
        for name, value in source.values.items():
            _check_name(name, source)
            values[name] = _checked(name, value, source)
            origins[name] = source.name
    if values.get("chat", "custom") != "custom" and "context_chars" not in values:
        from codingagent.model import chats  # the table is read only where it says something

        if (limit := chats.pasted(str(values["chat"]))) is not None:
            values["context_chars"], origins["context_chars"] = limit, f"chat {values['chat']}"
    return Resolved(Settings(**values), origins)  # type: ignore[arg-type]  # each was checked by name


def from_environment(variables: Mapping[str, str]) -> Source:
    """Return the settings among environment variables: CODINGAGENT_CONTEXT_CHARS and so on.

    UsageError for a CODINGAGENT_ variable that is not a setting.
    """
    values: dict[str, object] = {}
    for variable, text in variables.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in _NO_SETTINGS:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            values[name] = [v for v in text.split(",") if v] if name in _LISTS else text
    return Source("environment", values)


def meanings() -> dict[str, str]:
    return {name: meta.description or "" for name, (_, meta) in _about().items()}


def schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of codingagent.toml."""
    _, parts = json.schema_components([Settings])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **parts["Settings"]}


@cache
def _about() -> dict[str, tuple[Any, Meta]]:
    """Return the type of each setting, and its limits and meaning."""
    hints = get_type_hints(Settings, include_extras=True)
    return {name: (hint, hint.__metadata__[0]) for name, hint in hints.items()}


def _check_name(name: str, source: Source) -> None:
    known = Settings.__struct_fields__
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"; did you mean '{close[0]}'?"
            if close
            else "; `codingagent config` lists the settings"
        )
        raise UsageError(f"{source.name}: unknown setting '{name}'{hint}")


def _checked(name: str, value: object, source: Source) -> object:
    hint, meta = _about()[name]
    kind, given = hint.__origin__, value
    if isinstance(value, str) and kind in (bool, int):
        # An environment variable holds text.
        given = (
            _TRUTH.get(value.lower(), value)
            if kind is bool
            else _THOUSANDS.sub("000", value.strip())
        )
    try:
        return convert(given, hint, strict=not isinstance(given, str))
    except ValidationError as fault:
        is_option = source.name == OPTION
        what = f"--{name.replace('_', '-')}" if is_option else f"{source.name}: {name}"
        if "<=" in str(fault):
            raise UsageError(f"{what} is more than {meta.le}; name a smaller number") from fault
        wanted = {
            bool: "true or false",
            int: f"a whole number from {meta.ge} up",
            str: "a text",
            tuple: "a list of names",
        }.get(get_origin(kind) or kind)
        wanted = wanted or f"one of {', '.join(get_args(kind))}"
        raise UsageError(f"{what} is {value!r}; it must be {wanted}") from fault
