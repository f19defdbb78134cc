"""Types that the bodies and queries of the API's operations share."""

from collections.abc import Iterable
from typing import Annotated, Any

from django.conf import settings
from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from memories.entry_rules import MAX_CATEGORY
from memories.limits import BOOK_NAME, METADATA_KEY, METADATA_KEYS, METADATA_VALUE, ShortText

# clean_content answers 413 for longer content, so the limit is only documented here.
Content = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": settings.MAX_ENTRY})]

# clean_category and check_book_name refuse longer ones in words of their own, so their limits are only documented too.
Category = Annotated[ShortText, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_CATEGORY})]
BookName = Annotated[ShortText, Field(json_schema_extra={"minLength": 1, "maxLength": BOOK_NAME})]


class Body(Schema):
    """A body that refuses unknown fields: an API key whose limit is misspelt must not be created without the limit."""

    model_config = ConfigDict(extra="forbid")


EMPTY_AS_NONE = BeforeValidator(lambda value: value or None)
"""For list filters: an empty value means no filter."""


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
