"""The JSON Schema of both messages, draft 2020-12, made from the same definitions that validate them.

One rule it can't state: the limit of a file's content counts bytes.
"""

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from codingagent.protocols.json.events import EventsMessage
from codingagent.protocols.json.operations import OperationsMessage


def operations_schema() -> dict[str, Any]:
    return _schema(OperationsMessage)


def events_schema() -> dict[str, Any]:
    return _schema(EventsMessage)


def _schema(form: type) -> dict[str, Any]:
    schema = TypeAdapter(form).json_schema(schema_generator=_PlainSchema)
    return {"$schema": _PlainSchema.schema_dialect, **schema}


class _PlainSchema(GenerateJsonSchema):
    """Leave out what is pydantic's or Python's own: titles, null defaults, OpenAPI's discriminator."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = schema["schema"]
        # A default of None is an absent field; the tag's default is for code that makes values.
        if schema.get("default") is None or _is_constant(inner):
            return self.generate_inner(inner)
        return super().default_schema(schema)

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        plain = super().str_schema(schema)
        # Said for pydantic only, and always 0: any text is that long.
        plain.pop("minLength", None)
        return plain

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        plain = super().tagged_union_schema(schema)
        plain.pop("discriminator", None)
        return plain

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        inner = field["schema"]
        tag = inner["type"] == "default" and _is_constant(inner["schema"])
        return tag or super().field_is_required(field, total)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # as the base has it
        return False


def _is_constant(schema: core_schema.CoreSchema) -> bool:
    return schema["type"] == "literal" and len(schema["expected"]) == 1
