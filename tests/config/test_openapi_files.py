"""The OpenAPI documents in docs/api equal those that the server generates."""

import json
from pathlib import Path
from typing import Any

import pytest
from ninja.responses import NinjaJSONEncoder

from config.api import api, v1
from gateway.api.documented import DocumentedAPI

FOLDER = Path(__file__).resolve().parents[2] / "docs/api"
COMMAND = "python manage.py export_openapi_schema --api config.api.{} --indent 1 --sorted --output docs/api/{}"


@pytest.mark.parametrize(("assembled", "name", "file"), [(api, "api", "openapi.json"), (v1, "v1", "openapi-v1.json")])
def test_the_stored_document_is_up_to_date(assembled: DocumentedAPI, name: str, file: str) -> None:
    generated = json.loads(json.dumps(assembled.get_openapi_schema(), cls=NinjaJSONEncoder, sort_keys=True))
    assert json.loads((FOLDER / file).read_text()) == generated, COMMAND.format(name, file)


def test_every_operation_has_a_tag_a_summary_and_response_schemas() -> None:
    document = json.loads((FOLDER / "openapi.json").read_text())
    names = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names.append(operation["operationId"])
            assert operation["tags"], (method, path)
            assert operation["summary"], (method, path)
            good = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
            for status, answer in good.items():
                schemas = [content["schema"] for content in answer.get("content", {}).values()]
                assert status == "204" or schemas, (method, path, status)
                assert {"title": "Response"} not in schemas, (method, path, status)
    assert len(names) == len(set(names))


LIMITS = [
    ("MemoryIn", "metadata", {"maxProperties": 16}),
    ("MemoryPatch", "metadata", {"maxProperties": 16}),
    ("SearchIn", "metadata", {"maxProperties": 16}),
    ("MemoryIn", "category", {"minLength": 1, "maxLength": 40}),
    ("MemoryPatch", "category", {"minLength": 1, "maxLength": 40}),
    ("BulkIn", "category", {"minLength": 1, "maxLength": 40}),
    ("MemoryIn", "book", {"minLength": 1, "maxLength": 64}),
    ("IngestIn", "book", {"minLength": 1, "maxLength": 64}),
    ("ConsolidationIn", "book", {"minLength": 1, "maxLength": 64}),
    ("KeyIn", "books", {"minLength": 1, "maxLength": 64}),
    ("KeyPatch", "books", {"minLength": 1, "maxLength": 64}),
    ("SessionPatch", "tags", {"pattern": "^[^,]*$"}),
    ("ApprovalIn", "edits", {"propertyNames": {"pattern": "^[0-9]+$"}}),
]


@pytest.mark.parametrize(("name", "field", "limits"), LIMITS)
def test_limits_are_stated_with_the_keyword_of_their_type(name: str, field: str, limits: dict[str, Any]) -> None:
    schema = json.loads((FOLDER / "openapi.json").read_text())["components"]["schemas"][name]["properties"][field]
    schema = next((kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"), schema)
    schema = schema.get("items", schema)
    assert {keyword: schema.get(keyword) for keyword in limits} == limits
    assert schema["type"] != "object" or "maxLength" not in schema


def test_every_body_and_the_main_schemas_have_an_example() -> None:
    document = json.loads((FOLDER / "openapi.json").read_text())
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                named = json.dumps(content["schema"]).partition("#/components/schemas/")[2].partition('"')[0]
                assert not named or schemas[named]["examples"], named
    assert schemas["Memory"]["examples"]
    assert schemas["Session"]["examples"]
