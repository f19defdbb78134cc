"""Embedding servers with limits on the number or length of texts: each memory still gets its vector."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from gateway import embeddings, upstream
from gateway.upstream import EMBEDDINGS, ModelRequest, OpenAIModel, ResilientModel
from memories.models import Book, MemoryVector, Owner
from tests.factories import memory_make
from tests.upstreams.refusals import openai as error_body
from tests.upstreams.server import connect_to

VECTORS = {"object": "list", "data": [{"index": 0, "embedding": [1.0]}]}
LONG = "Lives in a long street. " * 40


@dataclass(slots=True)
class LimitedServer(httpx2.AsyncBaseTransport):
    """A server that accepts `max_texts` texts of `max_chars` characters, and otherwise answers `status` and `body`."""

    max_texts: int = 1000
    max_chars: int = 100_000
    status: int = 400
    body: Any = None
    requests: list[list[str]] = field(default_factory=list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        texts = json.loads(await request.aread())["input"]
        self.requests.append(texts)
        if len(texts) > self.max_texts or any(len(text) > self.max_chars for text in texts):
            return httpx2.Response(self.status, json=self.body)
        rows = [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(texts)]
        return httpx2.Response(200, json={"object": "list", "data": rows})


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None) -> LimitedServer:
    settings.EMBEDDING_MODEL = "e"
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": ""}}
    server = LimitedServer()
    connect_to(server, monkeypatch)
    upstream.install(ResilientModel(OpenAIModel()))
    return server


async def test_an_embedding_refused_within_a_successful_answer_is_requested_again(
    server: LimitedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = {"error": {"message": "Unknown parameter: 'user'.", "param": "user", "code": 400}}

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=refusal if b'"user"' in request.content else VECTORS)

    connect_to(httpx2.MockTransport(answer), monkeypatch)
    request = ModelRequest(upstream="default", model="e", path=EMBEDDINGS, parameters={"input": "a", "user": "u"})
    assert json.loads(await upstream.model().embeddings(request)) == VECTORS


def test_a_too_large_batch_is_split(server: LimitedServer, alice: Owner) -> None:
    # memodb-io/memobase#142
    server.max_texts, server.body = (
        10,
        error_body(
            "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger "
            "than 10.: input.contents"
        ),
    )
    for number in range(40):
        memory_make(alice, f"Knows number {number}.")
    assert embeddings.embed_book(str(Book.objects.get().pk)) == 40
    assert MemoryVector.objects.count() == 40
    assert [len(texts) for texts in server.requests] == [40, 20, 10, 10, 10, 10]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 512 tokens, however you requested 600 tokens"),
        (413, "`inputs` must have less than 512 tokens. Given: 600"),  # huggingface/text-embeddings-inference#107
        # canonical/inference-snaps#344
        (500, "input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)"),
    ],
)
def test_a_too_long_text_is_embedded_by_its_beginning(
    status: int, message: str, server: LimitedServer, alice: Owner
) -> None:
    server.max_chars, server.status, server.body = 500, status, error_body(message)
    for content in ("Is vegetarian.", LONG, "Likes tea.", "Plays the cello."):
        memory_make(alice, content)
    book = str(Book.objects.get().pk)
    assert embeddings.embed_book(book) == 4
    assert MemoryVector.objects.count() == 4
    assert [len(text) for texts in server.requests for text in texts if text in LONG and len(text) <= 500] == [479]


async def test_a_too_long_query_is_embedded_by_its_beginning(server: LimitedServer) -> None:
    server.max_chars, server.body = 500, error_body("This model's maximum context length is 512 tokens")
    vector, outcome = await embeddings.query_vector(LONG * 4, upstreams=("default",))
    assert (vector, outcome) == ([1.0, 480.0], {"embedding": "ok"})
    server.body = error_body("This text is not allowed.", code="content_filter")
    assert await embeddings.query_vector(LONG, upstreams=("default",)) == (None, {"embedding": "invalid_request"})


def test_a_text_refused_at_any_length_does_not_block_others(server: LimitedServer, alice: Owner) -> None:
    server.max_chars, server.body = 20, error_body("This text is not allowed.", code="content_filter")
    for content in ("Is vegetarian.", "Says what a filter of the server does not want.", "Likes tea."):
        memory_make(alice, content)
    book = str(Book.objects.get().pk)
    assert embeddings.embed_book(book) == 2
    assert sorted(MemoryVector.objects.values_list("memory__number", flat=True)) == [1, 3]


def test_a_batch_of_refused_texts_does_not_block_later_ones(
    server: LimitedServer, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "BATCH", 4)
    server.max_chars, server.body = 20, error_body("This text is not allowed.", code="content_filter")
    for number in range(4):
        memory_make(alice, f"Says what a filter of the server does not want, {number}.")
    memory_make(alice, "Likes tea.")
    assert embeddings.embed_book(str(Book.objects.get().pk)) == 1
    assert MemoryVector.objects.get().memory.content == "Likes tea."


@pytest.mark.any_database
def test_a_server_that_refuses_everything_gets_a_limited_number_of_requests(
    server: LimitedServer, alice: Owner
) -> None:
    server.max_texts, server.body = 0, error_body("Unknown field.")
    for number in range(64):
        memory_make(alice, f"Knows number {number}.")
    assert embeddings.embed_book(str(Book.objects.get().pk)) == 0
    assert len(server.requests) <= 40


@pytest.mark.parametrize(
    "answer",
    [
        b'{"data": ' + b"[" * 100_000,
        b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}",
        b'{"data": [{"index": 0, "embedding": [1' + b", 1" * 200_000 + b"]}]}",
    ],
    ids=["too deep", "too large a number", "too long"],
)
async def test_a_hostile_answer_costs_a_search_nothing_but_its_vector(
    server: LimitedServer, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    connect_to(httpx2.MockTransport(lambda _: httpx2.Response(200, content=answer)), monkeypatch)
    assert await embeddings.query_vector("tea", upstreams=("default",)) == (None, {"embedding": "upstream_error"})
