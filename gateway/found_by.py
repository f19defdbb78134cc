"""Search words for memories that were written without them (by a person, by import): a background job asks the model
in batches, when an upstream is configured. The words are indexed beside the content and never injected."""

import asyncio
import json
import logging
import time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django_q.tasks import async_task

from gateway.agents.configuration import model_of_role
from gateway.upstream import ModelRequest, is_demo, model
from gateway.worker_loop import run_async
from memories.errors import DomainError
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.services import MemoryFields, Source, book_writing, keywords_claim, keywords_release
from prompts.found_by import found_by_prompt

logger = logging.getLogger("daybook.found_by")

BATCH = 20
PAUSE_SECONDS = 60.0  # between two looks of one process; the sweep comes more often than such a job is done
_looked_at: float | None = None
TASK = "gateway.found_by.fill_book"


def enqueue_missing() -> int:
    """Hand books to the queue that hold memories nobody asked search words for. Returns how many. Nothing without an
    upstream: the demo model knows no synonyms."""
    global _looked_at
    if is_demo() or (_looked_at is not None and time.monotonic() - _looked_at < PAUSE_SECONDS):
        return 0
    _looked_at = time.monotonic()
    books = list(_missing().order_by().values_list("book_id", flat=True).distinct()[:BATCH])
    for book_id in books:
        async_task(TASK, str(book_id), q_options={"save": False})
    return len(books)


def fill_book(book_id: str) -> int:
    """Ask for the search words of one batch of a book, and store them. Returns how many memories got some. A memory is
    claimed first, so that two workers never ask for the same one; a failed batch is given back."""
    book = Book.objects.filter(pk=UUID(book_id)).first()
    if book is None:
        return 0
    claimed = [row for row in _missing().filter(book=book).order_by("number")[:BATCH] if keywords_claim(row)]
    if not claimed:
        return 0
    try:
        words = parse_answer(run_async(_ask(claimed, model_of_role("smol"))))
    except (DomainError, TimeoutError, ValueError) as error:
        logger.warning("no search words for a batch of book %s: %s", book.pk, type(error).__name__)
        if isinstance(error, DomainError | TimeoutError):
            keywords_release(claimed)
        return 0
    return _store(book, claimed, words)


def parse_answer(answer: str) -> dict[int, list[str]]:
    """`{number: words}` of an answer; a code fence around the JSON is forgiven. Raises ValueError."""
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("no object")
    return {
        int(key): [str(word) for word in words]
        for key, words in data.items()
        if str(key).isdecimal() and isinstance(words, list)
    }


async def _ask(rows: list[Memory], name: str) -> str:
    request = ModelRequest(
        upstream="default",
        model=name,
        messages=({"role": "user", "content": found_by_prompt([(row.number, row.content) for row in rows])},),
        request_id="found-by",
    )
    async with asyncio.timeout(settings.COMPACTION_SECONDS):
        answer = await model().complete(request)
    return str(answer["choices"][0].get("message", {}).get("content") or "")


def _store(book: Book, rows: list[Memory], words: dict[int, list[str]]) -> int:
    source = Source(actor="system", origin=WriteOrigin.SYSTEM, kind=ChangeSet.Kind.SYSTEM)
    stored = 0
    for row in rows:
        found = [word for word in words.get(row.number, []) if word.casefold() not in row.content.casefold()]
        if not found:
            continue
        try:
            with book_writing(book, source) as writer:
                stored += writer.update(row.number, MemoryFields(keywords=found), version=row.version).changed
        except DomainError as error:
            logger.info("search words of memory %s were refused: %s", row.pk, error.code)
    return stored


def _missing() -> Any:
    rows = Memory.objects.filter(deleted_at__isnull=True, scan_rule="", keywords=[])
    return rows.exclude(keywords_for=F("content_key"))
