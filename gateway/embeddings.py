"""Vectors from the embedding model, if one is configured. A background job computes those of memories; a turn requests
the vector of its query with a deadline, and continues without it if it is late. Texts of agents on other upstreams are
sent to the embedding model only if an administrator has named its upstream."""

import asyncio
import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.conf import settings

from gateway import upstream
from gateway.agents.model_choice import BackgroundModels, embedding_upstream, home_upstream, may_embed
from gateway.errors import RequestRefused, UpstreamUnreachable
from gateway.jobs import Throttle, enqueue, enqueue_books, run_async
from gateway.requests import request_id
from gateway.upstream import EMBEDDINGS, ModelRequest
from gateway.upstream.fault_classes import CONTEXT, fault_class
from memories.errors import DomainError
from memories.models import Book, Memory
from memories.recall.vectors import known_vectors, missing_vectors, packed, vectors_store

logger = logging.getLogger("daybook.embeddings")

BATCH = 64
_MAX_BYTES = 500_000  # of an answer, for each text: vectors have at most some ten thousand numbers
TASK = "gateway.embeddings.embed_book"
PAUSE_SECONDS = 30.0
_MAX_BATCHES = 5  # batches of refused texts in one job
_MAX_REFUSED = 3  # single texts refused before any vector was computed: the cause is then not a text
_MIN_CHARS = 100  # shortest beginning of a text that is too long
_QUERY_SENTENCE = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Find what is known about the writer of this message\nQuery: "
# What models expect before a query and before a text, by their names, from their model cards. Other models (OpenAI's,
# bge-m3, gte, all-MiniLM) expect nothing.
_PREFIXES = tuple(
    (re.compile(name, re.IGNORECASE), query, text)
    for name, query, text in (
        (r"\be5-.*instruct|qwen3-embedding", _TASK, ""),
        (r"\be5-", "query: ", "passage: "),
        (r"nomic-embed-text", "search_query: ", "search_document: "),
        (r"embedding-?gemma", "task: search result | query: ", "title: none | text: "),
        (r"arctic-embed.*(2|v2\.0)\b", "query: ", ""),
        (r"arctic-embed|mxbai-embed|bge-\w+-en\b", _QUERY_SENTENCE, ""),
    )
)
_throttle = Throttle()


def enqueue_missing() -> int:
    """Queue jobs for books with memories that have no vector. Return how many; 0 without a model."""
    if not settings.EMBEDDING_MODEL or not _throttle.check(pause=PAUSE_SECONDS):
        return 0
    return enqueue_books(TASK, BackgroundModels.now().embeddable(missing_vectors(), "book__name"), limit=BATCH)


def embed_book(book_id: str) -> int:
    """Compute the vectors of one batch of a book, or of a later one if the server refuses all texts of the first.
    Return how many were stored. Errors are logged, and the batch is tried again later."""
    book = Book.objects.filter(pk=UUID(book_id)).first()
    if book is None or not settings.EMBEDDING_MODEL:
        return 0
    missing = missing_vectors().filter(book=book)
    rows, stored, after = BackgroundModels.now(book.name).embeddable(missing, "book__name").order_by("number"), 0, 0
    for _ in range(_MAX_BATCHES):
        batch = list(rows.filter(number__gt=after)[:BATCH])
        if not batch:
            break
        stored, all_refused = _embed(book, batch)
        if not all_refused:
            break
        after = batch[-1].number
    left = missing.count()
    logger.info("book %s: %d vectors stored, %d memories are left", book.pk, stored, left)
    if left and stored:
        enqueue(TASK, book.pk)
    return stored


def _embed(book: Book, batch: Sequence[Memory]) -> tuple[int, bool]:
    """Compute and store the vectors of a batch. Return how many, and True if the server refused all texts."""
    keys = {row.pk: row.content_key for row in batch}
    known = known_vectors(book.owner_id, list(keys.values()))
    texts = {row.content_key: row.content for row in batch if row.content_key not in known}
    refused = True
    try:
        if texts:
            run_async(_add_vectors(known, texts, settings.EMBEDDING_MODEL, settings.COMPACTION_SECONDS))
    except (DomainError, TimeoutError) as error:
        logger.warning("no vectors for a batch of book %s: %s", book.pk, type(error).__name__)
        refused = isinstance(error, RequestRefused)
    made = {pk: known[key] for pk, key in keys.items() if key in known}
    return (vectors_store(book, made, keys), False) if made else (0, refused)


async def query_vector(
    text: str, *, upstreams: Collection[str], model: str = ""
) -> tuple[list[float] | None, dict[str, str]]:
    """Return the vector of a turn's query, or None, and an entry for the run's trace. `upstreams` are the agent's,
    `model` is the model of the book's vectors, or "" for the configured one, which must exist."""
    if not may_embed(upstreams):
        return None, {"embedding": "other_upstream"}
    try:
        async with asyncio.timeout(settings.EMBEDDING_SECONDS):
            return await _vector_of(text, model or settings.EMBEDDING_MODEL), {"embedding": "ok"}
    except TimeoutError:
        return None, {"embedding": "timeout"}
    except DomainError as error:
        return None, {"embedding": error.code}


def prefixes(model: str) -> tuple[str, str]:
    """Return what an embedding model expects before a query and before a text that is searched."""
    return next(((query, text) for name, query, text in _PREFIXES if name.search(model)), ("", ""))


async def embed(model: str, texts: Sequence[str]) -> list[list[float]]:
    """Return a vector per text, in order, from an embedding model. The caller limits the time. Raises DomainErrors."""
    request = ModelRequest(
        upstream=embedding_upstream(),
        model=model,
        parameters={"input": list(texts), "encoding_format": "float"},
        path=EMBEDDINGS,
        request_id=request_id.get(),
    )
    answer = await upstream.model().embeddings(request)
    try:
        if len(answer) > _MAX_BYTES * len(texts):  # parsing it would block the event loop
            raise ValueError
        rows = sorted(json.loads(answer)["data"], key=lambda row: row["index"])
        vectors = [[float(value) for value in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise UpstreamUnreachable("The model server's answer contains no vectors.") from None
    if len(vectors) != len(texts):
        raise UpstreamUnreachable("The model server returned the wrong number of vectors.")
    return vectors


async def _vector_of(text: str, model: str) -> list[float]:
    """Return the vector of a text, or of its beginning if the text is too long. Raises DomainErrors."""
    while True:
        try:
            return (await embed(model, [prefixes(model)[0] + text]))[0]
        except RequestRefused as refusal:
            if not (text := _shortened(text, refusal)):
                raise


async def searched_vector(text: str, model: str) -> list[float] | None:
    """Return the vector of a search in a book whose vectors are from this model, or None."""
    return (await query_vector(text, upstreams=(home_upstream(),), model=model))[0]


async def _add_vectors(known: dict[str, bytes], texts: Mapping[str, str], model: str, seconds: float) -> None:
    """Add the vectors of texts to `known`, by their keys. Servers limit the number of texts in a request and the length
    of each: after a refusal fewer texts are sent, and only the beginning of a text that is too long. A text that is
    still refused is left out. Raises TimeoutError, DomainErrors; vectors added before stay."""
    waiting, size, refused, before = list(texts.items()), len(texts), 0, len(known)
    prefix = prefixes(model)[1]
    async with asyncio.timeout(seconds):
        while waiting:
            part = waiting[:size]
            try:
                made = await embed(model, [prefix + text for _, text in part])
            except RequestRefused as refusal:
                size = len(part) // 2
                if size:
                    continue
                refused += 1
                if refused == _MAX_REFUSED and len(known) == before:
                    raise
                key, text = waiting.pop(0)
                if text := _shortened(text, refusal):
                    waiting.insert(0, (key, text))
                size = BATCH
            else:
                known |= zip((key for key, _ in part), map(packed, made), strict=True)
                del waiting[: len(part)]


def _shortened(text: str, refusal: RequestRefused) -> str:
    """Return the first half of a refused text if the text was too long, otherwise ""."""
    half = text[: len(text) // 2]
    return half if fault_class(refusal) is CONTEXT and len(half) >= _MIN_CHARS else ""
