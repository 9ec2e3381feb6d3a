"""Settings, the source of each, and errors for values that can't be used."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from codingagent.errors import UsageError

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

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _setting(
    default: object,
    meaning: str,
    lowest: int | None = None,
    highest: int = 10**9,
    choices: tuple[str, ...] = (),
) -> object:
    metadata = {"meaning": meaning, "lowest": lowest, "highest": highest, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; the fields are their names in codingagent.toml."""

    workspace: str = _setting("", "the folder to work in; empty: workspace/ in the home")  # type: ignore[assignment]  # a field, as with dataclasses.field
    context_chars: int = _setting(200_000, "characters in a request, at most", 10_000)  # type: ignore[assignment]
    list_entries: int = _setting(2_000, "lines of the file list in a request, at most", 20)  # type: ignore[assignment]
    command_timeout: int = _setting(30, "seconds for a command that names no timeout", 1, 3600)  # type: ignore[assignment]
    command_memory: int = _setting(
        0,
        "megabytes for a command and all that it starts; 0: three quarters of the machine's",
        0,
        10**7,
    )  # type: ignore[assignment]
    pass_env: tuple[str, ...] = _setting(
        (), "environment variables that commands see besides the usual"
    )  # type: ignore[assignment]
    check: str = _setting(
        "", "a command to run after each turn that changed a file; [DONE] needs its success"
    )  # type: ignore[assignment]
    check_timeout: int = _setting(300, "seconds for that command", 1, 3600)  # type: ignore[assignment]
    policy: str = _setting(
        "standard",
        "what needs approval or is refused: restrictive, standard, permissive, or a file",
    )  # type: ignore[assignment]
    sandbox: str = _setting(
        "auto",
        "auto: confine commands where that works; require: refuse to work without; off",
        choices=("auto", "require", "off"),
    )  # type: ignore[assignment]
    network: bool = _setting(False, "let sandboxed commands use the network")  # type: ignore[assignment]
    diff: str = _setting(
        "short",
        "how much of each change of a file the screen shows: never, short or full",
        choices=("never", "short", "full"),
    )  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Source:
    """A source of values, described in words, and its values by setting name."""

    name: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The effective settings, and the source of each by its name."""

    settings: Settings
    origins: Mapping[str, str]


def resolve(sources: list[Source]) -> Resolved:
    """Merge sources, the strongest last.

    Raises:
        UsageError: for an unknown setting or an unusable value; it says where the value is.
    """
    values: dict[str, object] = {}
    origins = {f.name: DEFAULT for f in fields(Settings)}
    for source in sources:
        for name, value in source.values.items():
            _check_name(name, source)
            values[name] = _checked(name, value, source)
            origins[name] = source.name
    return Resolved(Settings(**values), origins)  # type: ignore[arg-type]  # each was checked by name


def from_environment(variables: Mapping[str, str]) -> Source:
    """Return the settings among environment variables: CODINGAGENT_CONTEXT_CHARS and so on.

    Raises:
        UsageError: for a CODINGAGENT_ variable that is no setting.
    """
    values: dict[str, object] = {}
    for variable, text in variables.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in _NO_SETTINGS:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            values[name] = [v for v in text.split(",") if v] if name == "pass_env" else text
    return Source("environment", values)


def meanings() -> dict[str, str]:
    """Return the meaning of each setting, by name."""
    return {f.name: f.metadata["meaning"] for f in fields(Settings)}


def schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of codingagent.toml."""
    properties: dict[str, object] = {}
    for each in fields(Settings):
        default = each.default
        about: dict[str, object] = {"description": each.metadata["meaning"], "default": default}
        if isinstance(default, bool):
            about["type"] = "boolean"
        elif isinstance(default, int):
            about |= {"type": "integer", "minimum": each.metadata["lowest"]}
            about["maximum"] = each.metadata["highest"]
        elif isinstance(default, tuple):
            about |= {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []}
        else:
            about["type"] = "string"
        if each.metadata["choices"]:
            about["enum"] = list(each.metadata["choices"])
        properties[each.name] = about
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _check_name(name: str, source: Source) -> None:
    known = [f.name for f in fields(Settings)]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"; did you mean '{close[0]}'?" if close else f"; the settings are {', '.join(known)}"
        )
        raise UsageError(f"{source.name}: unknown setting '{name}'{hint}")


def _checked(name: str, value: object, source: Source) -> object:
    default = next(f.default for f in fields(Settings) if f.name == name)
    about = next(f.metadata for f in fields(Settings) if f.name == name)
    if isinstance(default, bool):
        value = _TRUTH.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise UsageError(f"{source.name}: {name} is {value!r}; it must be true or false")
        return value
    if isinstance(default, int):
        lowest, highest = about["lowest"], about["highest"]
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > highest:
            raise UsageError(f"{source.name}: {name} is more than {highest}; name a smaller number")
        if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
            raise UsageError(
                f"{source.name}: {name} is {value!r}; it must be a whole number from {lowest} up"
            )
        return value
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
            raise UsageError(f"{source.name}: {name} is {value!r}; it must be a list of names")
        return tuple(value)
    if not isinstance(value, str):
        raise UsageError(f"{source.name}: {name} is {value!r}; it must be a text")
    if about["choices"] and value not in about["choices"]:
        choices = ", ".join(about["choices"])
        raise UsageError(f"{source.name}: {name} is {value!r}; it must be one of {choices}")
    return value
