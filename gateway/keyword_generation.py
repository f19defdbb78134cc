"""Search words for memories that were written without them (by a person, by import). A background job asks the model in
batches if an upstream is configured. The words are indexed with the content and never injected."""

import json
import logging
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from gateway.agents.model_choice import BackgroundModels, UpstreamUndecided
from gateway.jobs import Throttle, enqueue_books, run_async
from gateway.model_call import ask
from gateway.upstream import ModelTarget, is_demo
from memories.errors import DomainError
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.selectors import live_condition
from memories.services import MemoryFields, Source, book_writing, keywords_claim, keywords_release
from prompts.memory import keyword_generation_prompt

logger = logging.getLogger("daybook.keyword_generation")

BATCH = 20
PAUSE_SECONDS = 60.0  # between two checks of one process, since sweeps run more often than such a job ends
_looks = Throttle()
TASK = "gateway.keyword_generation.fill_book"


def enqueue_missing() -> int:
    """Queue books with memories whose search words were never asked for. Returns how many. Nothing is queued without an
    upstream, since the demo model knows no synonyms, nor for books whose upstream is undecided."""
    if is_demo() or not _looks.look(pause=PAUSE_SECONDS):
        return 0
    return enqueue_books(TASK, BackgroundModels.now().given(_missing(), "book__name"), most=BATCH)


def fill_book(book_id: str) -> int:
    """Ask for the search words of one batch of a book, and store them. Returns how many memories got some. Memories are
    claimed first, so that two workers never ask for the same ones; the claims of a failed batch are released."""
    book = Book.objects.filter(pk=UUID(book_id)).first()
    if book is None:
        return 0
    try:
        target = BackgroundModels.now(book.name).of_book(book.name, "smol")
    except UpstreamUndecided as undecided:
        logger.info("no search words for book %s: %s", book.pk, undecided)
        return 0
    claimed = [row for row in _missing().filter(book=book).order_by("number")[:BATCH] if keywords_claim(row)]
    if not claimed:
        return 0
    try:
        words = parse_answer(run_async(_words_for(claimed, target, owner=str(book.owner_id))))
    except (DomainError, ValueError) as error:
        logger.warning("no search words for a batch of book %s: %s", book.pk, type(error).__name__)
        if isinstance(error, DomainError):
            keywords_release(claimed)
        return 0
    return _store(book, claimed, words)


def parse_answer(answer: str) -> dict[int, list[str]]:
    """Read `{number: words}` from an answer, which may stand in a code fence or between words. Raises ValueError."""
    data = json.loads(answer[answer.find("{") : answer.rfind("}") + 1])
    if not isinstance(data, dict):
        raise ValueError("no object")
    return {
        int(key): [str(word) for word in words]
        for key, words in data.items()
        if str(key).isdecimal() and isinstance(words, list)
    }


async def _words_for(rows: list[Memory], target: ModelTarget, *, owner: str) -> str:
    prompt = keyword_generation_prompt([(row.number, row.content) for row in rows])
    messages = ({"role": "user", "content": prompt},)
    seconds = settings.COMPACTION_SECONDS
    return (await ask(target, messages, seconds=seconds, owner=owner, request_id="keyword-generation")).said


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
    rows = Memory.objects.filter(live_condition(), scan_rule="", keywords=[])
    return rows.exclude(keywords_for=F("content_key"))
