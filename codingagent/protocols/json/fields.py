"""The fields of this wire: the kinds of value that operations and events are made of.

Specification 001 is a JSON Schema, and its types are strict: nothing is turned from one into another
on the way in. Fields are called as on the wire in JSON (`oldContent`), and as Python does it in code.
"""

from typing import Annotated, Any, Final, TypeVar, dataclass_transform, get_args

from annotated_types import MinLen
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

PATH_LIMIT = 255
COMMAND_LIMIT = 4_096
MESSAGE_LIMIT = 100_000
TIMEOUT_LOWEST_MS = 1_000
TIMEOUT_HIGHEST_MS = 3_600_000

# "Max 10MB for files": the size of the file that the content makes, so bytes, not characters. A
# megabyte is 2^20 of them, as everywhere in this project.
FILE_LIMIT_BYTES = 10 * 2**20

# A character takes at most four bytes: shorter content needs no counting.
_SURELY_SMALL = FILE_LIMIT_BYTES // 4

# No leading `/`, no `..` anywhere, no NUL; written without looking ahead, which not every reader of
# patterns can do. The class names `\x00` since JavaScript, Python and Rust all read that.
PATH_PATTERN = r"^(?:(?:[^./\x00]|\.[^.\x00])(?:[^.\x00]|\.[^.\x00])*)?\.?$"

# RFC 3339, the profile of ISO 8601 that JSON Schema calls date-time.
TIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)

# Of so many variables each fault can be told.
_FEW = 100

# Given as the context when a value of JSON is validated: code may say None for an absent field.
FROM_WIRE: Final = "wire"

# How pydantic calls the way to what is wrong in a field that may be absent.
PRESENT: Final = "="

_T = TypeVar("_T")

_CONFIG = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    cache_strings="keys",  # contents and paths hardly ever come twice
)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def wire_value(cls: type[_T]) -> type[_T]:
    """Make a class a frozen value of this wire. Unknown fields are ignored: 001 is additive.

    A dataclass, not a model: with slots it is read a fifth faster.
    """
    return dataclass(config=_CONFIG, frozen=True, kw_only=True, slots=True)(cls)  # type: ignore[return-value]  # the same class, with slots


def types_of(union: Any) -> tuple[str, ...]:
    """Return the `type` of each member of a union of this wire's values."""
    return tuple(get_args(form.__annotations__["type"])[0] for form in get_args(union))


class Present:
    """Mark a field that may be absent, None in code, but may not be null in JSON."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable", f"{source} can't be None"
        # What is usual is first; Python is only called for a None.
        return core_schema.union_schema(
            [
                (schema["schema"], PRESENT),
                core_schema.with_info_plain_validator_function(_check_none),
            ],
            mode="left_to_right",
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema["choices"][0][0])


def _check_none(value: object, info: ValidationInfo) -> None:
    if value is not None or info.context == FROM_WIRE:
        raise ValueError


def _whole(value: object) -> object:
    """Return 1000.0 as 1000: to JSON Schema it is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_file_size(content: str, info: ValidationInfo) -> str:
    """Refuse what makes a file over the limit; that base64 is base64 is found out when it is executed."""
    if info.data.get("encoding") == "base64":
        # Four letters hold three bytes; line ends and the padding hold none.
        letters = len(content) - sum(map(content.count, "= \t\r\n"))
        size_bytes = letters * 3 // 4
    else:
        size_bytes = len(content.encode())
    if size_bytes > FILE_LIMIT_BYTES:
        raise ValueError
    return content


def _check_many(variables: object) -> object:
    """Refuse many variables with one fault, where pydantic would gather gigabytes of them."""
    if isinstance(variables, dict) and len(variables) > _FEW:
        try:
            "".join((*variables, *variables.values())).encode()
        except (TypeError, UnicodeEncodeError):
            raise ValueError from None
    return variables


def _check_true(flag: bool) -> bool:
    if not flag:
        raise ValueError
    return flag


# The length makes pydantic look at each character, and refuse half a surrogate pair, which is no text.
Text = Annotated[str, Strict(), MinLen(0)]
Message = Annotated[str, Strict(), StringConstraints(max_length=MESSAGE_LIMIT)]
Command = Annotated[str, Strict(), StringConstraints(max_length=COMMAND_LIMIT)]
Variables = Annotated[dict[Text, Text], BeforeValidator(_check_many)]
RelativePath = Annotated[
    str, Strict(), StringConstraints(max_length=PATH_LIMIT, pattern=PATH_PATTERN)
]
Flag = Annotated[bool, Strict()]
# Not Literal[True]: that takes 1 as well.
AlwaysTrue = Annotated[Flag, AfterValidator(_check_true), WithJsonSchema({"const": True})]
Timestamp = Annotated[str, Strict(), StringConstraints(pattern=TIME_PATTERN)]
# What is usual is first in these unions: it is then decided without a call of Python.
FileContent = Annotated[
    Annotated[str, Strict(), StringConstraints(max_length=_SURELY_SMALL)]
    | Annotated[str, Strict(), MinLen(0), AfterValidator(_check_file_size)],
    Field(union_mode="left_to_right"),
    WithJsonSchema(
        {"type": "string", "description": f"At most {FILE_LIMIT_BYTES} bytes as a file."}
    ),
]
Whole = Annotated[
    Annotated[int, Strict()] | Annotated[int, Strict(), BeforeValidator(_whole)],
    Field(union_mode="left_to_right"),
    WithJsonSchema({"type": "integer"}),
]
Number = Annotated[
    Annotated[int, Strict()] | Annotated[float, Strict(), Field(allow_inf_nan=False)],
    Field(union_mode="left_to_right"),
    WithJsonSchema({"type": "number"}),
]
_Milliseconds = Annotated[int, Strict(), Field(ge=TIMEOUT_LOWEST_MS, le=TIMEOUT_HIGHEST_MS)]
Milliseconds = Annotated[
    _Milliseconds | Annotated[_Milliseconds, BeforeValidator(_whole)],
    Field(union_mode="left_to_right"),
    WithJsonSchema(
        {"type": "integer", "minimum": TIMEOUT_LOWEST_MS, "maximum": TIMEOUT_HIGHEST_MS}
    ),
]
