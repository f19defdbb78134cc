"""GET /v1/openapi.json, and answers to unknown paths"""

from itertools import chain
from typing import Any

import pytest
from django.test import AsyncClient

from memories.limits import INPUTS, MESSAGES, TOOLS


async def _document() -> dict[str, object]:
    response = await AsyncClient().get("/v1/openapi.json")  # no key is needed
    assert response.status_code == 200
    return dict(response.json())


async def test_the_document_lists_operations_with_their_limits() -> None:
    paths: dict[str, dict[str, dict[str, object]]] = (await _document())["paths"]  # type: ignore[assignment]
    assert {"/v1/models", "/v1/models/{name}", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"} <= {*paths}
    for path, name, most in (
        ("/v1/chat/completions", "messages", MESSAGES),
        ("/v1/chat/completions", "tools", TOOLS),
        ("/v1/embeddings", "input", INPUTS),
        ("/v1/completions", "prompt", INPUTS),
    ):
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]  # type: ignore[index]
        assert f"'maxItems': {most}" in str(body["properties"][name])
    for path in ("/v1/chat/completions", "/v1/completions"):
        answers = paths[path]["post"]["responses"]
        assert {*answers["200"]["content"]} == {"application/json", "text/event-stream"}  # type: ignore[index]
        assert {"400", "401", "403", "404", "413", "429", "502", "503", "504"} <= {*answers}  # type: ignore[misc]


async def test_rate_limit_headers_are_documented() -> None:
    document: dict[str, Any] = await _document()
    described = document["components"]["headers"]
    for path, header in (
        ("/v1/chat/completions", "x-ratelimit-remaining-tokens"),
        ("/v1/models", "x-ratelimit-reset-requests"),
        ("/v1/messages", "anthropic-ratelimit-tokens-reset"),
    ):
        operation = next(iter(document["paths"][path].values()))
        assert header in described
        assert operation["responses"]["200"]["headers"][header]["$ref"].endswith(header)
    assert "Retry-After" in document["paths"]["/v1/messages"]["post"]["responses"]["429"]["headers"]
    too_many = document["components"]["responses"]["TooManyRequests"]["headers"]
    assert {"Retry-After", "x-ratelimit-limit-requests"} <= {*too_many}


@pytest.mark.parametrize(
    ("file", "paths"),
    [
        ("/v1/openapi.json", ["/v1/chat/completions", "/v1/responses", "/v1/messages"]),
        (
            "/api/openapi.json",
            ["/api/sessions/{session_id}/turns", "/api/sessions/{session_id}/turns/{turn_id}/results"],
        ),
    ],
)
async def test_the_headers_that_name_request_session_and_run_are_documented(file: str, paths: list[str]) -> None:
    document = (await AsyncClient().get(file)).json()
    for operation in chain.from_iterable(operations.values() for operations in document["paths"].values()):
        for answer in operation["responses"].values():
            answer = document["components"]["responses"].get(answer.get("$ref", "").rpartition("/")[2], answer)
            assert "x-request-id" in answer["headers"]
    for path in paths:
        headers = document["paths"][path]["post"]["responses"]["200"]["headers"]
        assert {"x-daybook-session", "x-daybook-run"} <= {*headers}


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/audio/speech", "/v1/chat", "/v1/completions/x/"])
@pytest.mark.parametrize("method", ["get", "post"])
async def test_an_unknown_path_lists_the_existing_ones(path: str, method: str) -> None:
    response = await getattr(AsyncClient(), method)(path)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (404, "not_found", "not_found_error")
    for there in ("GET /v1/models", "POST /v1/chat/completions", "POST /v1/embeddings", "/v1/openapi.json"):
        assert there in error["message"]


async def test_an_unknown_native_path_refers_to_the_api_docs() -> None:
    assert "/api/docs" in (await AsyncClient().get("/api/nothing")).json()["error"]["message"]
