"""Null characters and lone surrogates cannot be stored: they are removed, or refused in names"""

import json

import httpx2
import pytest

from gateway.models import Agent, Message, Session
from gateway.upstream.faults import refusal_error
from memories.database.access import in_thread
from memories.models import Book, Memory, Owner
from memories.storable import storable
from reviews.consolidation.answers import parse_synthesis
from tests.conftest import Api
from tests.scripted_model import ScriptedModel, calls, says
from tests.unsliced import import_text


def test_storable_cleans_every_text_of_a_json_value() -> None:
    assert storable({"a\x00": ["b\x00", {"c": "\ud83d"}], "n": 1.5, "emoji": "😀"}) == {
        "a": ["b", {"c": "?"}],
        "n": 1.5,
        "emoji": "😀",
    }


async def test_the_native_api_removes_null_characters(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Fine.")
    status, session = await alice_api.post("/api/sessions", {"agent": "assis\x00tant", "title": "a\x00b"})
    assert (status, session["title"]) == (201, "ab")
    path = f"/api/sessions/{session['id']}"
    assert (await alice_api.call("PATCH", path, {"title": "c\x00d"}))[1]["title"] == "cd"
    assert (await alice_api.post(f"{path}/turns", {"content": "e\x00f"}))[0] == 200
    assert (await in_thread(Message.objects.earliest, "seq")).text == "ef"
    memory = {"content": "Likes\x00 tea.", "category": "ta\x00ste", "book": "ma\x00in"}
    status, kept = await alice_api.post("/api/memories", memory)
    assert (status, kept["content"], kept["category"], kept["book"]) == (201, "Likes tea.", "taste", "main")


@pytest.mark.parametrize(
    "body", [b'{"content": "\\ud800"}', b'{"content": "\xff"}', b'{"content": NaN}', b"[" * 100_000]
)
async def test_the_native_api_refuses_invalid_text(alice_api: Api, body: bytes) -> None:
    response = await alice_api.client.post(
        "/api/memories", data=body, content_type="application/json", headers=alice_api.headers
    )
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/api/books/%00/artifacts", (404, "not_found")),
        ("/v1/models/a%00b", (404, "not_found")),
        ("/api/memories?q=%00", (400, "invalid_request")),
        ("/api/memories?book=a%00b", (400, "invalid_request")),
    ],
)
async def test_a_url_with_a_null_character_finds_nothing(alice_api: Api, path: str, refused: tuple[int, str]) -> None:
    status, answer = await alice_api.get(path)
    assert (status, answer["error"]["code"]) == refused


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\u202eb", "x" * 65])
async def test_book_names_must_be_readable(alice_api: Api, name: str) -> None:
    for path, body in (
        ("/api/memories", {"content": "Likes tea.", "book": name}),
        ("/api/consolidations", {"book": name}),
    ):
        status, answer = await alice_api.post(path, body)
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "book")
    assert not await in_thread(Book.objects.exists)


async def test_tool_calls_are_cleaned_whether_escaped_or_raw(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    escaped = json.dumps({"content": "Likes\x00 tea.", "category": "ta\x00ste", "keywords": ["dr\x00ink"]})
    raw = '{"content": "Likes\x00 rum.", "category": "ta\x00ste"}'
    model.script(calls(("add_memory", escaped), ("add_memory", raw)), says("Noted."))
    status, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert (status, [change["after"] for change in turn["memory_changes"]]) == (200, ["Likes tea.", "Likes rum."])
    assert await in_thread(lambda: set(Memory.objects.values_list("category", flat=True))) == {"taste"}
    sent = await in_thread(lambda: json.dumps(list(Message.objects.values_list("tool_calls", flat=True))))
    assert "\\u0000" not in sent.replace("\\\\u0000", "")


def test_an_import_removes_null_characters(alice: Owner) -> None:
    line = json.dumps({"content": "Likes\x00 tea.", "category": "ta\x00ste", "keywords": ["dr\x00ink"]})
    assert import_text(alice.pk, line).new == 1
    memory = Memory.objects.get()
    assert (memory.content, memory.category, memory.keywords) == ("Likes tea.", "taste", ["drink"])


def test_consolidation_documents_are_cleaned() -> None:
    answer = parse_synthesis(
        json.dumps({"memory_md": "a\x00b", "memory_summary": "c\ud800", "skills": [{"name": "s", "content": "d\x00e"}]})
    )
    assert answer.documents == {"MEMORY.md": "ab", "memory_summary.md": "c?", "skills/s/SKILL.md": "de"}


async def test_upstream_error_messages_are_cleaned() -> None:
    body = json.dumps({"error": {"message": "no\x00 such \ud83d thing"}}).encode()
    response = httpx2.Response(400, content=body, request=httpx2.Request("POST", "http://model"))
    assert str(refusal_error(response, response.content)) == "The model server refused the request: no such ? thing"
