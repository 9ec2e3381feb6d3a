"""Settings, the source of each, and errors for values that can't be used; what each chat takes."""

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, json, toml

from codingagent.errors import UsageError
from codingagent.model.patterns import sections, table, text_at

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
_LISTS = ("pass_env", "show", "always_attach", "never_choose", "chat_pages")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_HIGHEST = 10**9
_Chats = Literal[
    "custom", "chatgpt", "claude", "copilot", "deepseek", "gemini", "github-copilot", "glm", "gpt"
]
_Chat = Literal[_Chats, "kimi", "le-chat", "m365", "open-webui", "qwen"]
_Names = tuple[Annotated[str, Meta(min_length=1)], ...]


# What each means is in settings.txt.
class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings; the fields are their names in codingagent.toml."""

    workspace: str = ""
    context_chars: Annotated[int, Meta(ge=10_000, le=_HIGHEST)] = 200_000
    list_entries: Annotated[int, Meta(ge=20, le=_HIGHEST)] = 2_000
    command_timeout: Annotated[int, Meta(ge=1, le=3600)] = 30
    command_memory: Annotated[int, Meta(ge=0, le=10**7)] = 0
    pass_env: _Names = ()
    show: _Names = ()
    check: str = ""
    check_timeout: Annotated[int, Meta(ge=1, le=3600)] = 300
    check_first: Annotated[int, Meta(ge=0, le=3600)] = 10
    policy: str = "standard"
    sandbox: Literal["auto", "require", "off"] = "auto"
    network: bool = False
    secrets: Literal["mask", "redact", "off"] = "redact"
    diff: Literal["never", "short", "full"] = "short"
    notify: bool = True
    clipboard: Literal["ask", "off", "auto"] = "ask"
    context: Annotated[int, Meta(ge=0, le=10**6)] = 8_000
    always_attach: _Names = ()
    never_choose: _Names = ()
    conventions: bool = True
    guide: Literal["whole", "installed"] = "whole"
    chat: _Chat = "custom"
    chat_pages: tuple[Annotated[str, Meta(pattern="^https://[^/]")], ...] = ()


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """A number, who says it, and when that was looked up."""

    value: int
    source: str
    seen: str


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """What a chat takes; None: nobody says."""

    title: str
    pasted: Figure | None = None
    """Characters of a message."""
    folds: Figure | None = None
    """Characters beyond which a paste becomes an attachment."""
    files: Figure | None = None
    megabytes: Figure | None = None
    """The size of each."""
    keeps: Figure | None = None
    """Characters that it keeps from one conversation to the next; 0: nobody says how many."""
    kept_as: str = ""
    how: tuple[str, ...] = ()
    """What holds them, and two lines on how to put a text there."""

    def advice(self, size: int) -> str:
        """Return how a request of so many characters is sent to it; empty: nothing is known."""
        said, most = table(sections(__file__)["advice"]), self.pasted.value if self.pasted else 0
        if self.pasted is not None:
            return said["too_long" if size > most else "pasted"].format(title=self.title, pasted=most)
        is_folded = self.folds is not None and size > self.folds.value
        return said["folds"].format(title=self.title) if is_folded else ""


@cache
def chats() -> Mapping[str, Chat]:
    """Return what chats take, by the names that the setting `chat` takes."""
    return toml.decode(text_at(f"{__file__.removesuffix('settings.py')}chats.toml"), type=dict[str, Chat])


def pasted(name: str) -> int | None:
    """Return how many characters a chat takes in a message, if that is known."""
    figure = chats()[name].pasted if name in chats() else None
    return None if figure is None else figure.value


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
            if name not in origins:
                close = _near(name)
                hint = f"did you mean '{close[0]}'?" if close else ""
                hint = hint or "`codingagent config` lists the settings"
                raise UsageError(f"{source.name}: unknown setting '{name}'; {hint}")
            values[name] = _checked(name, value, source)
            origins[name] = source.name
    # The table of chats is read for a chat that is named: tomllib takes a thirtieth of a start.
    limit = pasted(str(values["chat"])) if "chat" in values and "context_chars" not in values else None
    if limit is not None:
        values["context_chars"], origins["context_chars"] = limit, f"chat {values['chat']}"
    return Resolved(Settings(**values), origins)  # type: ignore[arg-type]  # each was checked by name


def from_environment(variables: Mapping[str, str]) -> Source:
    """Return the settings in variables, CODINGAGENT_…; of other names, those that one may have meant."""
    named = {_of(variable): text for variable, text in variables.items()}
    values = {
        name: [v for v in text.split(",") if v] if name in _LISTS else text
        for name, text in named.items()
        if name and _near(name)
    }
    return Source("environment", values)


def strays(variables: Mapping[str, str]) -> list[str]:
    """Return the variables, CODINGAGENT_…, of a script's own: they look like no setting."""
    return [each for each in variables if (name := _of(each)) and not _near(name)]


def _of(variable: str) -> str:
    """Return the setting that a variable names; empty if it is another program's, or no setting."""
    is_ours = variable.startswith(ENVIRONMENT_PREFIX) and variable not in _NO_SETTINGS
    return variable.removeprefix(ENVIRONMENT_PREFIX).lower() if is_ours else ""


def _near(name: str) -> list[str]:
    return difflib.get_close_matches(name, Settings.__struct_fields__, n=1)


def meanings() -> dict[str, str]:
    return table(sections(__file__)["meanings"])


def schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of codingagent.toml."""
    _, parts = json.schema_components([Settings])
    told = parts["Settings"]["properties"]
    told |= {name: {"description": said, **told[name]} for name, said in meanings().items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **parts["Settings"]}


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Settings, include_extras=True)


def _checked(name: str, value: object, source: Source) -> object:
    hint, given = _hints()[name], value
    kind = hint.__origin__ if get_origin(hint) is Annotated else hint
    # An environment variable holds text.
    if isinstance(value, str) and kind is bool:
        given = _TRUTH.get(value.lower(), value)
    elif isinstance(value, str) and kind is int:
        given = re.sub(r"(?<=\d)[kK]$", "000", value.strip())  # 8k is 8000
    try:
        return convert(given, hint, strict=not isinstance(given, str))
    except ValidationError as fault:
        is_option = source.name == OPTION
        what = f"--{name.replace('_', '-')}" if is_option else f"{source.name}: {name}"
        if "<=" in str(fault):
            most = hint.__metadata__[0].le
            raise UsageError(f"{what} is more than {most}; name a smaller number") from fault
        wanted = {
            bool: "true or false",
            int: f"a whole number from {hint.__metadata__[0].ge} up" if kind is int else "",
            str: "a text",
            tuple: "a list of names",
        }.get(get_origin(kind) or kind)
        wanted = wanted or f"one of {', '.join(get_args(kind))}"
        raise UsageError(f"{what} is {value!r}; it must be {wanted}") from fault
