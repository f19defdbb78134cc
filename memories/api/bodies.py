"""Types that the bodies and queries of the API's operations share."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from django.conf import settings
from ninja import Schema
from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, WithJsonSchema, model_validator
from pydantic.fields import FieldInfo

from memories.entry_rules import MAX_CATEGORY
from memories.limits import BOOK_NAME, METADATA_KEY, METADATA_KEYS, METADATA_VALUE, ShortText

# clean_content answers 413 for longer content, so the limit is only documented here.
Content = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": settings.MAX_ENTRY})]

# clean_category and check_book_name refuse longer ones in words of their own, so their limits are only documented too.
Category = Annotated[ShortText, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_CATEGORY})]
BookName = Annotated[ShortText, Field(json_schema_extra={"minLength": 1, "maxLength": BOOK_NAME})]


class Body(Schema):
    """A body that refuses unknown fields: an API key whose limit is misspelt must not be created without the limit. A
    null in an optional field is like no field, unless null is one of its values: many clients send all fields."""

    model_config = ConfigDict(extra="forbid")

    # Replaces ninja's validator of this name, which is for rows and would validate each body twice.
    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(values, dict):
            defaults = {name for name, field in cls.model_fields.items() if _has_value(field)}
            values = {name: value for name, value in values.items() if value is not None or name not in defaults}
        return handler(values)


def _has_value(field: FieldInfo) -> bool:
    """Return True if a field has a default other than None."""
    return not field.is_required() and field.get_default(call_default_factory=False) is not None


def inline_enum(choices: Iterable[str]) -> WithJsonSchema:
    """Return the schema of a filter by one of these values. It is inlined, since several enums share a name."""
    return WithJsonSchema({"type": "string", "enum": list(map(str, choices))})


METADATA_QUERY: dict[str, Any] = {
    "name": "metadata",
    "in": "query",
    "required": False,
    "style": "form",
    "explode": True,
    "description": "Each property is a separate parameter: `metadata.<key>=<value>` filters by that pair.",
    "schema": {
        "type": "object",
        "maxProperties": METADATA_KEYS,
        "propertyNames": {"pattern": f"^metadata\\.\\S.{{0,{METADATA_KEY - 1}}}$"},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE},
        "examples": [{"metadata.source": "crm"}],
    },
}
"""The metadata filters of a list, whose parameter names depend on the client's keys."""
