"""The answers of an API in its OpenAPI document, from tables of types (memories/api/answers.py and others): a named
schema for each type, the headers of answers and requests, and an example of each body.

The types only describe. Answers are not passed through them: that would cost time with each request. A test compares
them instead (tests/config/test_documented_answers.py)."""

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
    "description": "With a trusted key: your id of the person this request is about.",
}
_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 100},
    "description": "The ETag of what you read: it is changed only if it still is that.",
}
_ETAG = {"description": "The version of what was answered, for If-Match.", "schema": _TEXT}
_REQUEST_ID = {"description": "Names this request in the log. What you send as x-request-id is kept.", "schema": _TEXT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What operations answer, by the name of the view and by status; examples of bodies; which operations know
    ETags."""

    types: Mapping[str, Mapping[int, Any]]
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    etags: Collection[str] = ()
    if_match: Collection[str] = ()


def document_answers(document: dict[str, Any], answers: Answers) -> None:
    """Add schemas of answers, examples and headers to a document whose operation ids are those of `answers`."""
    schemas = document["components"].setdefault("schemas", {})
    for name, example in answers.examples.items():
        schemas[name]["examples"] = [example]
    for operation in chain.from_iterable(path.values() for path in document["paths"].values()):
        name = operation["operationId"]
        for status, shape in answers.types.get(name, {}).items():
            if shape is not None:
                response = operation["responses"].setdefault(status, {"description": "OK"})
                response.setdefault("content", {})[_JSON] = {"schema": _schema(shape, schemas)}
        _add_headers(operation, etag=name in answers.etags, if_match=name in answers.if_match)


def _schema(shape: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a type, which is put among the schemas with those that it uses."""
    schema = TypeAdapter(shape).json_schema(mode="serialization", ref_template=_REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    if "title" not in schema:  # a union
        return schema
    schemas[schema["title"]] = schema
    return {"$ref": _REFERENCE.format(model=schema["title"])}


def _add_headers(operation: dict[str, Any], *, etag: bool, if_match: bool) -> None:
    operation.setdefault("parameters", []).extend([_USER, *([_IF_MATCH] if if_match else [])])
    for status, response in operation["responses"].items():
        if isinstance(status, int) and status < 300 and "$ref" not in response:
            response["headers"] = {"x-request-id": _REQUEST_ID, **({"ETag": _ETAG} if etag else {})}
