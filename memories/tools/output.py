"""JSON Schemas of what tools return, made from the types that stand beside their handlers. Pure functions."""

from typing import Any

from pydantic import TypeAdapter

_OK = {"type": "boolean", "description": "Whether the call did what it was asked to."}
_REFUSAL = {
    "error": {"type": "string", "description": "With ok: false. What is wrong, for programs."},
    "message": {"type": "string", "description": "With ok: false. What is wrong and what to do about it."},
}


def output_schema(result: type) -> dict[str, Any]:
    """Return the schema of a tool's results: `result`, a TypedDict, where `ok` is true, else a refusal, which may carry
    further details. The root is an object with properties, as clients of every version of MCP want it."""
    schema = TypeAdapter(result).json_schema()
    types = schema.pop("$defs", {})
    properties = {name: _plain(value, types) for name, value in schema["properties"].items()}
    return {
        "type": "object",
        "properties": {"ok": _OK, **{k: v for k, v in properties.items() if k != "ok"}, **_REFUSAL},
        "required": ["ok"],
        "anyOf": [
            {"properties": {"ok": {"const": True}}, "required": schema["required"]},
            {"properties": {"ok": {"const": False}}, "required": ["ok", *_REFUSAL]},
        ],
    }


def _plain(schema: Any, types: dict[str, Any]) -> Any:
    """Return a schema without references and without the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_plain(part, types) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(types[schema["$ref"].rpartition("/")[2]], types)
    named = {"properties": {name: _plain(part, types) for name, part in schema.get("properties", {}).items()}}
    rest = {key: _plain(part, types) for key, part in schema.items() if key not in {"title", "description"}}
    described = {"description": schema["description"]} if isinstance(schema.get("description"), str) else {}
    return {**described, **rest, **(named if "properties" in schema else {})}
