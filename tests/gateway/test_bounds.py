"""Limits of inputs: what exceeds one is answered with 4xx before a thread or a lock is taken, and never with 500"""

import codecs
import json
from typing import Any
from unittest.mock import patch

import pytest
from channels.testing import WebsocketCommunicator
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from ninja.errors import ValidationError

from config.api import api, v1
from gateway.api.errors import as_domain_error, error_response
from gateway.api.openai_body import read_body
from gateway.models import Agent
from gateway.requests import origin_allowed
from gateway.routing import websocket_application
from memories.database.access import in_thread
from memories.errors import InvalidRequest
from memories.json_input import read_json
from memories.limits import JSON_DEPTH, JSON_NUMBER, JSON_VALUES, MESSAGES, PARTS, QUERY_LENGTH, SHORT_LENGTH, TOOLS
from memories.models import Book, Memory, Owner
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make
from tests.gateway.v1 import PATH
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database

DIGITS = "9" * 5000
MANY_NUMBERS = 20_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * (JSON_DEPTH + 1) + "]" * (JSON_DEPTH + 1), "more than 100 levels"),
        ("[" * 100_000 + "]" * 100_000, "more than 100 levels"),
        ('{"a":' * 900 + '"\\u0041"' + "}" * 900, "more than 100 levels"),
        ("9" * (JSON_NUMBER + 1), "holds a number of more than 100 characters"),
        (DIGITS, "holds a number of more than 100 characters"),
        ("0." + DIGITS, "holds a number of more than 100 characters"),
        ("1e999", "holds a number that is too large"),
        ("NaN", "holds NaN, which is not a JSON number"),
        ("[" + "1," * (JSON_VALUES + 1) + "1]", "more than 200000 values"),
        ("[" + '{"a": 1},' * (JSON_VALUES // 2 + 1) + "1]", "more than 200000 values"),
        ('["\\\\", "\\"", ' + '"[,", "\\",", ' * (JSON_VALUES // 2 + 1) + "1]", "more than 200000 values"),
        ("[" + "1, " * MANY_NUMBERS + "9" * (JSON_NUMBER + 1) + "]", "holds a number of more than 100 characters"),
        ('"\\ud800"', "half a character"),
        ("[1", "is not valid JSON"),
    ],
    ids=lambda text: text[:12],
)
def test_json_over_a_limit_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^The body .*{why}"):
        read_json(text)


def test_json_within_the_limits_is_parsed() -> None:
    assert read_json("[" * JSON_DEPTH + "]" * JSON_DEPTH)
    assert read_json(json.dumps({"text": "[{," * JSON_VALUES, "quoted": '\\"' * 10})) is not None
    assert read_json("9" * JSON_NUMBER) == int("9" * JSON_NUMBER)
    many = [-1, int("9" * JSON_NUMBER), 2.5, "0" * 1_000] * MANY_NUMBERS
    assert read_json(json.dumps(many)) == many
    texts = ["[,{" * 9, '"', "\\", '\\"', "\u2028"] * (JSON_VALUES // 6)
    assert read_json(json.dumps(texts)) == texts
    assert read_json('["\\u0000a", "\\ud83d\\ude00"]') == ["a", "\U0001f600"]
    assert read_json(b'"\\u0041\\u0000"') == "A"
    assert read_json('"\\ud800"', repair=True) == "?"


def test_a_byte_order_mark_before_json_is_ignored() -> None:
    """Windows PowerShell writes it at the beginning of UTF-8 files, which are then sent as bodies."""
    assert read_json(codecs.BOM_UTF8 + b'{"a": 1}') == {"a": 1}


def body_of(**fields: Any) -> bytes:
    return json.dumps({"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], **fields}).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": "Hi"}] * (MESSAGES + 1)},
        {"tools": [{"type": "function", "function": {"name": "a"}}] * (TOOLS + 1)},
        {"tools": [{"type": "function", "function": {"name": ["x"]}}]},
        {"model": "m" * (SHORT_LENGTH + 1)},
    ],
)
def test_a_completion_request_over_a_limit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read_body(body_of(**fields))


async def test_malformed_completion_requests_never_cause_a_500(alice_api: Api) -> None:
    await in_thread(agent_make)
    odd: list[Any] = [None, 7, "x", ["x"], {"x": "y"}, [{"x": ["y"]}], [[]], "\ud83d\ude00", 1.5, True]
    for key in ("model", "tools", "metadata", "stream", "stream_options"):
        for value in (["x"], {"x": ["y"]}, [{"function": {"name": ["x"]}}], 10**50):
            body = {"model": "nobody", "messages": [{"role": "user", "content": "Hi"}], key: value}
            status, answer = await alice_api.post(PATH, body)
            assert 400 <= status < 500, (key, value, answer)
    for value in odd:
        for message in (
            {"role": value, "content": "Hi"},
            {"role": "user", "content": value},
            {"role": "assistant", "tool_calls": value},
            {"role": "tool", "tool_call_id": value, "content": value},
        ):
            status, answer = await alice_api.post(PATH, {"model": "nobody", "messages": [message]})
            assert 400 <= status < 500, (message, answer)


async def test_a_too_long_search_query_is_refused(alice_api: Api) -> None:
    query = {"query": "x" * (QUERY_LENGTH + 1)}
    status, answer = await alice_api.post("/api/memories/search", query)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "query")
    assert answer["error"]["message"] == f"query: String should have at most {QUERY_LENGTH} characters."


async def test_a_body_over_a_limit_is_refused_with_the_reason(alice_api: Api) -> None:
    status, answer = await alice_api.post("/api/memories", f'{{"content": {DIGITS}}}')
    assert (status, answer["error"]["message"]) == (400, "The body holds a number of more than 100 characters.")


async def test_a_too_long_list_is_refused(alice_api: Api) -> None:
    status, answer = await alice_api.post("/api/memories", {"content": "Ada likes tea", "keywords": ["tea"] * 101})
    assert (status, answer["error"]["param"]) == (400, "keywords")
    assert answer["error"]["message"] == "keywords: List should have at most 100 items, not 101."


@pytest.mark.parametrize(
    "path",
    [
        f"/api/memories?limit={DIGITS}",
        "/api/memories?limit=201",
        "/api/memories?limit=0",
        f"/api/memories?after={DIGITS}",
        f"/api/memories?after={2**63}",
        f"/api/notifications?after={DIGITS}",
        f"/api/notifications?after={2**63}",
        "/api/notifications?after=-1",
        f"/api/sessions?after={DIGITS}",
        f"/api/reviews?limit={DIGITS}",
        f"/api/reviews?state={DIGITS}",
        f"/api/consolidations?limit={DIGITS}",
        f"/api/memories?review={DIGITS}",
    ],
)
async def test_invalid_list_parameters_are_refused(alice_api: Api, path: str) -> None:
    status, answer = await alice_api.get(path)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert not answer["error"]["param"].startswith("query")


@pytest.mark.parametrize("name", ["memories", "notifications", "sessions", "reviews", "webhooks"])
async def test_a_list_with_an_empty_cursor_begins_at_its_start(alice: Owner, alice_api: Api, name: str) -> None:
    await in_thread(memory_make, alice)
    assert await alice_api.get(f"/api/{name}?after=") == await alice_api.get(f"/api/{name}")


async def test_an_impossible_id_is_not_found(alice_api: Api) -> None:
    for number in (DIGITS, str(2**63), "9" * 19, "٣"):
        for path in (f"/api/memories/{number}", f"/api/memories/{number}/revisions"):
            assert (await alice_api.get(path))[0] == 404


async def test_an_etag_with_too_many_digits_is_refused(alice: Owner, alice_api: Api) -> None:
    memory = await in_thread(memory_make, alice)
    for etag in (f'"{DIGITS}"', f'"{2**63}"'):
        response = await alice_api.raw("PATCH", f"/api/memories/{memory.number}", {"pinned": True}, if_match=etag)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("name", [["x"], {"x": "y"}, 7, None])
async def test_a_tool_name_that_is_not_text_is_refused(alice_api: Api, name: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    status, answer = await alice_api.post("/mcp", message)
    assert (status, answer["error"]["code"]) == (200, -32602)


@pytest.mark.parametrize("number", [f'"{DIGITS}"', DIGITS, "9" * 90, f'"{2**63}"', str(2**63), "-5"])
async def test_a_tool_call_with_an_impossible_id_finds_nothing(alice_api: Api, number: str) -> None:
    message = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete_memory", "arguments": '
    response = await alice_api.client.post(
        "/mcp",
        data=f'{message}{{"id": {number}}}}}}}'.encode(),
        content_type="application/json",
        headers=alice_api.headers,
    )
    if response.status_code == 400:  # the number itself is refused as JSON
        assert response.json()["error"]["code"] == -32700
        return
    assert response.json()["result"]["structuredContent"]["error"] == "not_found"


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"jsonrpc": "2.0", "id": %s}' % DIGITS.encode(), b'{"a":' * 5000])
async def test_an_mcp_body_over_a_limit_is_refused(alice_api: Api, body: bytes) -> None:
    response = await alice_api.client.post(
        "/mcp", data=body, content_type="application/json", headers=alice_api.headers
    )
    assert response.status_code == 400


@override_settings(TRUSTED_ORIGINS=["https://chat.example.org"])
def test_only_this_host_and_trusted_origins_are_allowed() -> None:
    assert origin_allowed("http://Daybook:8000", "daybook:8000")
    assert origin_allowed("https://chat.example.org", "daybook:8000")
    for foreign in ("http://[::1", "http://evil.example", "null", "http://daybook:8000@evil.example"):
        assert not origin_allowed(foreign, "daybook:8000")


async def test_an_invalid_origin_is_refused_on_each_surface(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    origin = b"http://[::1"
    headers = [(b"host", b"testserver"), (b"origin", origin), (b"authorization", f"Bearer {plain}".encode())]
    socket = WebsocketCommunicator(websocket_application, "/ws/notifications/", headers=headers)
    assert (await socket.connect(timeout=10))[0] is False
    response = await Api(plain).raw("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, origin="http://[::1")
    assert response.status_code == 403


async def test_a_websocket_with_an_impossible_after_starts_at_the_end(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {plain}".encode())]
    for after in ("9" * 4400, str(2**63)):
        socket = WebsocketCommunicator(websocket_application, f"/ws/notifications/?after={after}", headers=headers)
        assert (await socket.connect(timeout=10))[0] is True
        await socket.disconnect()


@override_settings(BOOKS_PER_OWNER=2)
async def test_books_per_owner_are_limited_apart_from_those_of_agents(alice_api: Api, charlie_api: Api) -> None:
    await in_thread(agent_make)  # uses the book `main`
    for book in ("a", "b"):
        assert (await alice_api.post("/api/memories", {"content": f"Likes {book}.", "book": book}))[0] == 201
    status, answer = await alice_api.post("/api/memories", {"content": "Likes tea.", "book": "c"})
    assert (status, answer["error"]["code"], answer["error"]["details"]) == (409, "conflict", {"limit": 2})
    assert (await alice_api.post("/api/memories", {"content": "Likes tea.", "book": "main"}))[0] == 201
    assert (await charlie_api.post("/api/memories", {"content": "Likes tea.", "book": "c"}))[0] == 201
    assert await in_thread(Book.objects.count) == 4


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memories", {"content": "Likes tea.", "expires": "2030-01-01"}),
        ("POST", "/api/sessions", {"agent": "assistant", "temprary": True}),
        ("PATCH", "/api/sessions/x", {"name": "Kitchen"}),
        ("POST", "/api/sessions/x/turns", {"content": "Hello.", "temperature": 0}),
        ("POST", "/api/webhooks", {"url": "https://example.org", "events": ["memory.changed"]}),
    ],
)
async def test_an_unknown_field_is_refused(alice_api: Api, method: str, path: str, body: Any) -> None:
    status, answer = await alice_api.call(method, path, body)
    assert (status, answer["error"]["param"]) == (400, [*body][-1])


@pytest.mark.parametrize("body", [[], "x", 5])
async def test_a_body_that_is_not_an_object_is_refused_without_a_param(alice_api: Api, body: Any) -> None:
    status, answer = await alice_api.post("/api/sessions", body)
    assert (status, answer["error"]["param"]) == (400, None)


async def test_null_in_an_optional_field_is_like_no_field(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    status, key = await alice_api.post(
        "/api/keys", {"name": "x", "read_only": None, "agents": None, "expires_at": None}
    )
    assert (status, key.get("read_only"), key.get("agents")) == (201, False, []), key
    status, key = await alice_api.call("PATCH", f"/api/keys/{key['id']}", {"name": None, "agents": None})
    assert (status, key["name"]) == (200, "x")
    fields = {"target": None, "category": None, "keywords": None, "metadata": None, "book": None, "pinned": None}
    status, memory = await alice_api.post("/api/memories", {"content": "Likes tea.", **fields})
    assert (status, memory["target"], memory["category"], memory["pinned"]) == (201, "user", "general", False)
    model.script("Hello.")
    _, session = await alice_api.post("/api/sessions", {"agent": agent.name, "title": None, "temporary": None})
    turn = {"content": "Hi", "tools": None, "parameters": None, "render": None, "keep_attached": None}
    assert (await alice_api.post(f"/api/sessions/{session['id']}/turns", turn))[0] == 200
    status, answer = await alice_api.post("/api/memories", {"content": None})
    assert (status, answer["error"]["param"]) == (400, "content")


async def test_only_an_import_accepts_ndjson(alice: Owner, alice_api: Api) -> None:
    for path, status in (("/api/memories", 415), ("/api/import?preview=true", 200)):
        answer = await alice_api.client.post(
            path, data='{"content": "Likes tea."}', content_type="application/x-ndjson", headers=alice_api.headers
        )
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"type": "text", "text": "a"}] * (PARTS + 1), "content: List should have at most 1000 items, not 1001."),
        (["a"], "content.0: Input should be a valid dictionary."),
        (7, "content: Input should be a valid string."),
    ],
)
async def test_what_is_wrong_with_content_parts_is_said(alice_api: Api, content: Any, message: str) -> None:
    status, answer = await alice_api.post("/api/sessions/x/turns", {"content": content})
    assert (status, answer["error"]["message"]) == (400, message)


async def test_an_error_names_the_field_without_its_type_or_location(alice_api: Api) -> None:
    _, content = await alice_api.post("/api/sessions/x/turns", {"content": 5})
    body = {"messages": [{"role": "user", "content": "Hello."}]}
    _, key = await alice_api.post("/api/memories/ingest", body, idempotency_key="k" * 256)
    invalid_result = {"results": [{"tool_call_id": "call_1", "content": 5}]}
    _, result = await alice_api.post("/api/sessions/x/turns/x/results", invalid_result)
    params = [answer["error"]["param"] for answer in (content, result, key)]
    assert params == ["content", "results.0.content", "Idempotency-Key"]


async def test_a_too_large_memory_is_refused_before_its_book_is_created(alice_api: Api) -> None:
    status, answer = await alice_api.post("/api/memories", {"content": "x" * 1_000_000, "book": "untouched"})
    assert (status, answer["error"]["code"]) == (413, "too_large")
    for field in ("target", "category"):
        status, answer = await alice_api.post("/api/memories", {"content": "x", "book": "untouched", field: "y" * 256})
        assert (status, answer["error"]["param"]) == (400, field)
    assert not await in_thread(Book.objects.exists)
    assert not await in_thread(Memory.objects.exists)


def _unlimited(schema: dict[str, Any], root: dict[str, Any], location: str) -> list[str]:
    """Return the locations in a schema that accept text or a list of unlimited size."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _unlimited(root["components"]["schemas"][name], root, location)
    found = []
    for part in schema.get("anyOf", ()):
        found += _unlimited(part, root, location)
    if schema.get("type") == "string" and not {"maxLength", "format", "enum", "const"} & schema.keys():
        found.append(location)
    if schema.get("type") == "array":
        found += [] if "maxItems" in schema else [location]
        found += _unlimited(schema["items"], root, f"{location}[]")
    for name, part in schema.get("properties", {}).items():
        found += _unlimited(part, root, f"{location}.{name}")
    return found


def test_every_text_list_and_integer_of_the_native_api_has_a_documented_limit() -> None:
    root: dict[str, Any] = api.get_openapi_schema()
    unbounded = []
    for path, verbs in root["paths"].items():
        for verb, operation in verbs.items():
            location = f"{verb} {path}"
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    unbounded += _unlimited(parameter["schema"], root, f"{location} ?{parameter['name']}")
                    if parameter["schema"].get("type") == "integer" and "maximum" not in parameter["schema"]:
                        unbounded.append(f"{location} ?{parameter['name']}")
            for content in operation.get("requestBody", {}).get("content", {}).values():
                unbounded += _unlimited(content["schema"], root, location)
    assert unbounded == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_the_limits_of_ids_in_headers_of_v1_are_documented(path: str) -> None:
    parameters = v1.get_openapi_schema()["paths"][path]["post"]["parameters"]
    limits = {each["name"]: each["schema"].get("maxLength") for each in parameters}
    assert limits == {"X-Daybook-Session": 190, "X-Daybook-User": 255}


async def test_a_thousand_unknown_keys_cause_one_error(alice_api: Api) -> None:
    made: list[int] = []

    def respond(request: HttpRequest, error: ValidationError) -> HttpResponse:
        made.append(len(error.errors))
        return error_response(as_domain_error(error), request.path)

    with patch.dict(api._exception_handlers, {ValidationError: respond}):
        body = {"agent": "x"} | {f"k{number}": 1 for number in range(1_000)}
        status, answer = await alice_api.post("/api/sessions", body)
    assert (status, answer["error"]["param"], made) == (400, "k0", [1])
