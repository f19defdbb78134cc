"""gateway.embeddings: vectors of an upstream model improve the search, which works without them"""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils import timezone

from gateway import embeddings, jobs
from gateway.agents.model_choice import home_upstream
from gateway.models import Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.health import book_health
from memories.models import Book, Memory, MemoryVector, Owner, WriteOrigin
from memories.recall.vectors import packed, vectors_of_book, vectors_store
from memories.services import MemoryFields, Source, book_writing
from tests.conftest import Api
from tests.factories import agent_make, memory_make, session_make
from tests.scripted_model import ScriptedModel, calls
from tests.sweeps import reset_sweep_throttles


@pytest.fixture(autouse=True)
def _configured(settings: Any) -> None:
    settings.EMBEDDING_MODEL = "letters"


@pytest.fixture
def book(alice: Owner) -> Book:
    memory_make(alice, "Zzz qqq.", keywords=["sleep"])
    memory_make(alice, "Plays the cello.")
    return Book.objects.get()


def test_vectors_are_made_in_one_batch_and_raise_the_generation(book: Book, model: ScriptedModel) -> None:
    assert embeddings.embed_book(str(book.pk)) == 2
    assert model.embedded == [("Zzz qqq.", "Plays the cello.")]
    assert sorted(vectors_of_book(book.owner_id, book.pk).by_number) == [1, 2]
    assert Book.objects.get().generation == book.generation + 1
    assert embeddings.embed_book(str(book.pk)) == 0


@pytest.mark.parametrize(
    ("name", "query", "text"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("snowflake-arctic-embed:22m", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        (
            "multilingual-e5-large-instruct",
            "Instruct: Find what is known about the writer of this message\nQuery: ",
            "",
        ),
        ("bge-m3", "", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
async def test_a_model_gets_the_prefixes_that_it_expects(
    book: Book, model: ScriptedModel, settings: Any, name: str, query: str, text: str
) -> None:
    settings.EMBEDDING_MODEL = name
    await in_thread(embeddings.embed_book, str(book.pk))
    await embeddings.query_vector("cello lessons", upstreams=(home_upstream(),))
    assert model.embedded == [(f"{text}Zzz qqq.", f"{text}Plays the cello."), (f"{query}cello lessons",)]


def test_an_upgrade_deletes_vectors_that_were_made_without_a_prefix(
    book: Book, model: ScriptedModel, settings: Any
) -> None:
    memory = Memory.objects.get(number=1)
    for settings.EMBEDDING_MODEL in ("intfloat/e5-base", "nomic-embed-text", "letters"):
        vectors_store(book, {memory.pk: packed([1.0])}, {memory.pk: memory.content_key})
    migration = import_module("memories.migrations.0017_vectors_with_prefixes")
    migration.delete_vectors(apps, connection.schema_editor())
    assert [row.model for row in MemoryVector.objects.all()] == ["letters"]


def test_changed_text_is_embedded_again(book: Book, model: ScriptedModel, alice: Owner) -> None:
    embeddings.embed_book(str(book.pk))

    with book_writing(book, Source(actor="user:1", origin=WriteOrigin.USER)) as writer:
        writer.update(2, MemoryFields(content="Plays the viola."))
    assert sorted(vectors_of_book(book.owner_id, book.pk).by_number) == [1]
    assert embeddings.embed_book(str(book.pk)) == 1
    assert MemoryVector.objects.count() == 2


def test_a_vector_is_stored_in_half_precision_and_normalised(book: Book, model: ScriptedModel) -> None:
    embeddings.embed_book(str(book.pk))
    stored = MemoryVector.objects.get(memory__number=2)
    assert len(stored.values) == 2 * 26
    assert np.linalg.norm(vectors_of_book(book.owner_id, book.pk).by_number[2]) == pytest.approx(1, abs=1e-3)


def test_an_embedded_text_is_reused_across_books(book: Book, model: ScriptedModel, alice: Owner) -> None:
    embeddings.embed_book(str(book.pk))
    memory_make(alice, "Plays the cello.", book="other")
    other = Book.objects.get(name="other")
    assert embeddings.embed_book(str(other.pk)) == 1
    assert len(model.embedded) == 1
    assert len(vectors_of_book(alice.pk, other.pk).by_number) == 1


def test_vectors_of_other_owners_are_never_reused(book: Book, model: ScriptedModel, bob: Owner) -> None:
    embeddings.embed_book(str(book.pk))
    memory_make(bob, "Plays the cello.")
    embeddings.embed_book(str(Book.objects.get(owner=bob).pk))
    assert model.embedded[-1] == ("Plays the cello.",)


def test_batches_are_queued_until_the_book_is_complete(
    book: Book, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[str] = []
    monkeypatch.setattr(embeddings, "BATCH", 1)
    monkeypatch.setattr(embeddings, "enqueue", lambda task, book_id: queued.append(str(book_id)))
    assert (embeddings.embed_book(str(book.pk)), queued) == (1, [str(book.pk)])
    assert book_health(book, timezone.now())["vectors"] == 1
    assert "1 memory waits for a vector of letters." in book_health(book, timezone.now())["text"]
    assert (embeddings.embed_book(str(book.pk)), len(queued)) == (1, 1)
    assert "vector" not in book_health(book, timezone.now())["text"]


def test_the_old_model_is_used_until_the_new_one_has_as_many_vectors(
    book: Book, model: ScriptedModel, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    embeddings.embed_book(str(book.pk))
    settings.EMBEDDING_MODEL = "more-letters"
    assert vectors_of_book(book.owner_id, book.pk).model == "letters"
    monkeypatch.setattr(embeddings, "BATCH", 1)
    monkeypatch.setattr(embeddings, "enqueue", lambda task, book_id: None)
    embeddings.embed_book(str(book.pk))
    assert vectors_of_book(book.owner_id, book.pk).model == "letters"
    assert MemoryVector.objects.count() == 3
    embeddings.embed_book(str(book.pk))
    assert vectors_of_book(book.owner_id, book.pk).model == "more-letters"
    assert set(MemoryVector.objects.values_list("model", flat=True)) == {"more-letters"}


def test_a_failed_batch_stores_nothing_and_is_retried(book: Book, model: ScriptedModel) -> None:
    model.embedding_fault = UpstreamError("down")
    assert embeddings.embed_book(str(book.pk)) == 0
    model.embedding_fault = None
    assert embeddings.embed_book(str(book.pk)) == 2


def test_a_deleted_memory_loses_its_vector(book: Book, model: ScriptedModel) -> None:
    embeddings.embed_book(str(book.pk))
    Memory.objects.all().delete()
    assert MemoryVector.objects.count() == 0


@pytest.fixture
def recalling_session(alice: Owner, book: Book) -> Session:
    return session_make(alice, agent_make(frozen_char_limit=0, tools=[]))


async def test_a_turn_embeds_its_query(
    alice_api: Api, recalling_session: Session, book: Book, model: ScriptedModel
) -> None:
    await in_thread(lambda: MemoryVector.objects.all().delete())
    model.script("Yes.")
    await alice_api.post(f"/api/sessions/{recalling_session.pk}/turns", {"content": "cello lessons"})
    assert model.embedded == [("cello lessons",)]
    trace = (await in_thread(Run.objects.get)).trace["recall"]
    assert trace["embedding"] == "ok"


async def test_a_turn_succeeds_without_the_vector_of_its_query(
    alice_api: Api, recalling_session: Session, model: ScriptedModel
) -> None:
    model.embedding_fault = UpstreamError("down")
    model.script("Yes.")
    status, _ = await alice_api.post(f"/api/sessions/{recalling_session.pk}/turns", {"content": "cello lessons"})
    trace = (await in_thread(Run.objects.get)).trace["recall"]
    assert (status, trace["embedding"], trace["long_term"]["state"]) == (200, "upstream_error", "ok")
    assert "cello" in model.calls[0].messages[-2]["content"]


SCAR = "Has a scar on the elbow."
STRANGE = "woble hte racs sah no a"  # has the letters of SCAR and no word of any memory


@pytest.fixture
def embedded_book(book: Book, model: ScriptedModel) -> Book:
    """Return the book with more memories, all with vectors."""
    sentences = "Owns a garden|Feeds two cats|Bakes bread|Reads maps|Knows chess|Sings|Swims|Flies to Rome|Hates mud"
    for what in (*sentences.split("|"), SCAR):
        memory_make(book.owner, what)
    embeddings.embed_book(str(book.pk))
    return book


async def test_the_api_search_uses_vectors(alice_api: Api, embedded_book: Book, model: ScriptedModel) -> None:
    body = {"query": STRANGE}
    _, found = await alice_api.post("/api/memories/search", body)
    assert SCAR in [row["content"] for row in found["data"]]
    assert model.embedded[-1] == (STRANGE,)
    asked = len(model.embedded)
    for without in ({"book": "*"}, {"search": "match_all"}, {"book": "empty"}):
        await alice_api.post("/api/memories/search", body | without)
    assert len(model.embedded) == asked
    model.embedding_fault = UpstreamError("down")
    status, found = await alice_api.post("/api/memories/search", body)
    assert (status, found["data"]) == (200, [])


@pytest.mark.django_db(transaction=True)
def test_the_page_search_uses_vectors(embedded_book: Book, client: Client, model: ScriptedModel) -> None:
    client.force_login(embedded_book.owner.user)
    assert SCAR in client.get("/memories/", {"q": STRANGE}).content.decode()
    model.embedding_fault = UpstreamError("down")
    assert SCAR not in client.get("/memories/", {"q": STRANGE}).content.decode()


async def test_the_mcp_search_uses_vectors(alice_api: Api, embedded_book: Book, model: ScriptedModel) -> None:
    call = {"name": "search_memories", "arguments": {"query": STRANGE}}
    _, body = await alice_api.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert SCAR in [row["content"] for row in body["result"]["structuredContent"]["memories"]]


async def test_the_search_tool_of_the_model_uses_vectors(
    alice_api: Api, embedded_book: Book, model: ScriptedModel
) -> None:
    session = await in_thread(lambda: session_make(embedded_book.owner, agent_make(frozen_char_limit=0)))
    model.script(calls(("search_memories", f'{{"query": "{STRANGE}"}}')), "Yes.")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Look."})
    assert SCAR in model.calls[1].messages[-1]["content"]


async def test_nothing_is_embedded_without_an_embedding_model(
    alice_api: Api, recalling_session: Session, model: ScriptedModel, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = ""
    model.script("Yes.")
    await alice_api.post(f"/api/sessions/{recalling_session.pk}/turns", {"content": "cello lessons"})
    assert model.embedded == []
    assert await in_thread(embeddings.enqueue_missing) == 0


@pytest.fixture
def private_session(alice: Owner, settings: Any) -> Session:
    """Return a session whose agent uses another upstream than the embedding model, with a memory in its book."""
    address = {"url": "http://127.0.0.1:9/v1", "key": ""}
    settings.DAYBOOK_UPSTREAMS = {"default": address, "local": address}
    memory_make(alice, "Keeps a zebrafinch.", book="private")
    agent = agent_make("private", upstream="local", book="private", frozen_char_limit=0, tools=[])
    return session_make(alice, agent)


async def test_texts_for_another_upstream_are_embedded_only_if_an_administrator_allows_it(
    alice_api: Api, private_session: Session, model: ScriptedModel, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(jobs, "enqueue", lambda task, book_id: asked.append(str(book_id)))
    book = await in_thread(Book.objects.get)
    turns = f"/api/sessions/{private_session.pk}/turns"
    model.script("Yes.", "Yes.")
    await alice_api.post(turns, {"content": "zebrafinch song"})
    assert await in_thread(embeddings.enqueue_missing) == 0
    assert await in_thread(embeddings.embed_book, str(book.pk)) == 0
    assert (model.embedded, asked) == ([], [])
    run = await in_thread(lambda: Run.objects.latest("id"))
    assert run.trace["recall"]["embedding"] == "other_upstream"

    settings.EMBEDDING_UPSTREAM = "default"
    reset_sweep_throttles()
    assert await in_thread(embeddings.enqueue_missing) == 1
    assert asked == [str(book.pk)]
    await alice_api.post(turns, {"content": "zebrafinch song"})
    assert model.embedded == [("zebrafinch song",)]
