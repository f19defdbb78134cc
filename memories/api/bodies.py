"""What the bodies and queries of this app's operations share."""

from collections.abc import Iterable
from typing import Annotated, Any

from django.conf import settings
from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from memories.limits import METADATA_KEY, METADATA_KEYS, METADATA_VALUE

# A content that is too long is answered 413 by clean_content, so its bound is only documented here.
Content = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": settings.MAX_ENTRY})]


class Body(Schema):
    """A body whose unknown fields are refused: a key whose limit is misspelt must not be made without it."""

    model_config = ConfigDict(extra="forbid")


NO_FILTER = BeforeValidator(lambda value: value or None)
"""For filters of lists: an empty value filters nothing."""


def one_of(choices: Iterable[str]) -> WithJsonSchema:
    """Return how a filter by one of these values is documented: in its place, since names of enums repeat."""
    return WithJsonSchema({"type": "string", "enum": list(map(str, choices))})


METADATA_QUERY: dict[str, Any] = {
    "name": "metadata",
    "in": "query",
    "required": False,
    "style": "form",
    "explode": True,
    "description": "Each property is a parameter of its own: `metadata.<key>=<value>` finds memories with that pair.",
    "schema": {
        "type": "object",
        "maxProperties": METADATA_KEYS,
        "propertyNames": {"pattern": f"^metadata\\.\\S.{{0,{METADATA_KEY - 1}}}$"},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE},
        "examples": [{"metadata.source": "crm"}],
    },
}
"""The filters of a list by metadata, whose parameters have names that clients choose."""
