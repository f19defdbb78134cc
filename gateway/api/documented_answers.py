"""Adds answers to the OpenAPI document of an API, from tables of types (memories/api/answers.py and others): a named
schema per type, the headers of answers and requests, and examples of bodies.

The types are documentation only. Answers are not validated against them, which would slow down every request; a test
compares them instead (tests/config/test_documented_answers.py)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pydantic import TypeAdapter

_REFERENCE = "#/components/schemas/{model}"
_JSON = "application/json"
_TEXT = {"type": "string"}
_USER = {
    "name": "X-Daybook-User",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 255},
    "description": "With a trusted key: your id for the person this request is about.",
}
_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 100},
    "description": "The ETag of the version you read. The change is only made if that is still the current version.",
}
_ETAG = {"description": "The version of this object, for If-Match.", "schema": _TEXT}
_REQUEST_ID = {"description": "Identifies this request in the log. Your own x-request-id is used.", "schema": _TEXT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The types of answers by view name and status, examples of bodies, and the operations that use ETags."""

    types: Mapping[str, Mapping[int, Any]]
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    etags: Collection[str] = ()
    if_match: Collection[str] = ()


def document_answers(document: dict[str, Any], answers: Answers) -> None:
    """Add schemas, examples and headers to a document whose operation ids are the view names in `answers`."""
    schemas = document["components"].setdefault("schemas", {})
    for name, example in answers.examples.items():
        schemas[name]["examples"] = [example]
    for operation in chain.from_iterable(path.values() for path in document["paths"].values()):
        name = operation["operationId"]
        for status, shape in answers.types.get(name, {}).items():
            if shape is not None:
                response = operation["responses"].setdefault(status, {"description": "OK"})
                response.setdefault("content", {})[_JSON] = {"schema": _schema(shape, schemas)}
        headers = {"x-request-id": _REQUEST_ID, **({"ETag": _ETAG} if name in answers.etags else {})}
        operation.setdefault("parameters", []).extend([_USER, *([_IF_MATCH] if name in answers.if_match else [])])
        for status, response in operation["responses"].items():
            if isinstance(status, int) and status < 300 and "$ref" not in response:
                response["headers"] = dict(headers)


def _schema(shape: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a type, and add that schema and those it uses to `schemas`."""
    schema = TypeAdapter(shape).json_schema(mode="serialization", ref_template=_REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    if "title" not in schema:  # a union
        return schema
    schemas[schema["title"]] = schema
    return {"$ref": _REFERENCE.format(model=schema["title"])}
