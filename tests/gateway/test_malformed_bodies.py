"""No malformed body is answered with 5xx: each value of valid requests is replaced by values of other types. Requests
that are accepted all the same break neither a review of the session nor a consolidation."""

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from copy import deepcopy
from typing import Any

import pytest

from config.api import api as native_api
from gateway import upstream
from gateway.api.session_json import message_json
from gateway.models import Session
from gateway.upstream import Chunk, ModelRequest
from gateway.upstream.dialects import DIALECTS
from gateway.upstream.outgoing import request_body
from memories.database.access import in_thread
from memories.models import Book, Owner
from reviews.api import ingest
from reviews.consolidation.conversation import read_record
from reviews.consolidation.preview import consolidation_preview
from reviews.frozen import read_frozen
from reviews.models import ReviewRun
from tests.conftest import Api

ODD_VALUES: list[Any] = [None, 5, True, "", [], {}, {"a": 1}, "x" * 20_000]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
PICTURE = "data:image/png;base64,aGk="
CHAT = {
    "model": "assistant",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "42"},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": PICTURE}}, {"type": "text", "text": "?"}],
        },
    ],
    "tools": [{"type": "function", "function": LOOK}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "metadata": {"temporary": "false", "user_id": "u"},
    "stream": False,
    "stream_options": {"include_usage": True},
    "max_tokens": 5,
    "response_format": {"type": "text"},
}
RESPONSES = {
    "model": "assistant",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c", "name": "look", "namespace": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "42"}]},
        {"type": "custom_tool_call", "call_id": "d", "name": "write", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "ok"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": PICTURE, "detail": "low"},
                {"type": "input_file", "filename": "a.png", "file_data": PICTURE},
                {"type": "input_text", "text": "?"},
            ],
        },
    ],
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", **LOOK},
        {"type": "custom", "name": "write", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", **LOOK}]},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
    "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "metadata": {"user_id": "u"},
    "include": ["reasoning.encrypted_content"],
    "client_metadata": {"x-codex-turn-metadata": "{}"},
    "truncation": "auto",
    "previous_response_id": None,
    "store": True,
    "stream": False,
    "parallel_tool_calls": True,
    "max_output_tokens": 5,
    "top_logprobs": 1,
}
MESSAGES = {
    "model": "assistant",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "c", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "is_error": False,
                    "content": [{"type": "text", "text": "42"}],
                },
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "document", "title": "T", "source": {"type": "text", "data": "Words"}},
                {"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "x"}]},
                {"type": "text", "text": "?"},
            ],
        },
    ],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, "type": "custom"}],
    "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 100},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "metadata": {"user_id": "u"},
    "stop_sequences": ["x"],
    "stream": False,
}
TURN = {
    "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": PICTURE}}],
    "tools": [{"type": "function", "function": LOOK}],
    "parameters": {"temperature": 0, "tool_choice": {"type": "function", "function": {"name": "look"}}},
    "replaces": None,
    "keep_attached": False,
    "render": "text",
}
INGEST = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": "I like tea."}]}],
    "book": "main",
    "session_id": "brought",
    "wait": False,
}
CHAT_PATH, RESPONSES_PATH, MESSAGES_PATH = "/v1/chat/completions", "/v1/responses", "/v1/messages"
BODIES: dict[str, dict[str, Any]] = {
    CHAT_PATH: CHAT,
    RESPONSES_PATH: RESPONSES,
    MESSAGES_PATH: MESSAGES,
    "/v1/completions": {"model": "assistant", "prompt": ["x"], "suffix": "y", "stream": False, "max_tokens": 5},
    "/v1/embeddings": {"model": "assistant", "input": ["x"], "dimensions": 5},
    "/api/sessions/{id}/turns": TURN,
    "/api/memories/ingest": INGEST,
}


class AnswersEverything:
    """A model that answers every request."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        _serialise(request, stream=True)
        yield {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        _serialise(request, stream=False)
        message = {"role": "assistant", "content": "Yes."}
        return {"choices": [{"index": 0, "message": message, "text": "Yes.", "finish_reason": "stop"}]}

    async def embeddings(self, request: ModelRequest) -> bytes:
        return b"{}"


def _serialise(request: ModelRequest, *, stream: bool) -> None:
    """Serialise the request in the dialect of every kind of server."""
    for dialect in DIALECTS.values():
        json.dumps(request_body(request.body(stream=stream), dialect, upstream="default"))


def odd_bodies(body: dict[str, Any]) -> Iterator[Any]:
    """Yield bodies in which one value at any depth is replaced: by a list, since lists are unhashable, and by one of
    `ODD_VALUES` in turn."""
    for number, path_in_body in enumerate(_paths(body)):
        for odd in (["x"], ODD_VALUES[number % len(ODD_VALUES)]):
            copy = deepcopy(body)
            inner: Any = copy
            for step in path_in_body[:-1]:
                inner = inner[step]
            inner[path_in_body[-1]] = odd
            yield copy


def _paths(value: Any, *before: Any) -> Iterator[tuple[Any, ...]]:
    for step, child in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield *before, step
        yield from _paths(child, *before, step)


@pytest.mark.parametrize("path", BODIES)
async def test_no_malformed_body_is_answered_with_5xx(
    alice: Owner, alice_api: Api, session: Session, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "WAIT_SECONDS", 0.0)
    upstream.install(AnswersEverything())
    failed = [
        (body, fault)
        for body in odd_bodies(BODIES[path])
        if (fault := await _server_error(alice_api, path.format(id=session.pk), body, str(session.pk)))
    ]
    assert not failed, failed[:20]
    await in_thread(_read_sessions, alice)


async def _server_error(api: Api, path: str, body: Any, session: str) -> str:
    """Return the answer to a body if it is a server error, else ""."""
    headers = {"x-daybook-session": session} if path in {CHAT_PATH, RESPONSES_PATH, MESSAGES_PATH} else {}
    status, text = await api.stream(path, body, **headers)
    return text if status >= 500 or "internal_error" in text else ""


def _read_sessions(owner: Owner) -> None:
    for session in Session.objects.filter(owner_id=owner.pk, message_seq__gt=0):
        read_record(owner.pk, session.pk, floor=0, token_limit=10_000)
        read_frozen(ReviewRun(owner=owner, session=session, last_seq=session.message_seq), reviewed_through=0)
        assert [message_json(message) for message in session.messages.select_related("run")]
    if book := Book.objects.filter(owner=owner).first():
        assert consolidation_preview(book, force=True)["text"]


async def test_fields_of_operations_without_a_body_are_refused(alice_api: Api, book: Book) -> None:
    paths = native_api.get_openapi_schema()["paths"]
    operations = [
        (method.upper(), path)
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method != "get" and "requestBody" not in operation
    ]
    assert ("DELETE", "/api/account/memories") in operations
    for method, path in operations:
        status, answer = await alice_api.call(method, path.format_map(defaultdict(lambda: "1")), {"book": "work"})
        assert (status, answer["error"]["code"]) == (400, "invalid_request"), path
    for body in ("[]", "{", '""'):
        assert (await alice_api.call("DELETE", "/api/account/memories", body))[0] == 400
    for body in ("", " ", "{\r\n}\r\n", "null"):
        assert (await alice_api.call("DELETE", "/api/account/memories", body))[0] == 200
