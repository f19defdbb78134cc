"""Generates search words for memories that were written without them (by a person or an import). A background job asks
the model in batches if an upstream is configured. The words are indexed with the content and never injected."""

import logging
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.conf import settings

from gateway.agents.model_choice import BackgroundModels, UpstreamUndecided
from gateway.errors import RequestRefused, UpstreamSilent
from gateway.jobs import Throttle, enqueue_books, run_async
from gateway.steps import ask
from gateway.upstream import ModelTarget, is_demo
from memories.errors import DomainError, UpstreamTimeout
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.model_json import objects_in
from memories.models import Book, ChangeSet, Memory, WriteOrigin
from memories.selectors import live_condition
from memories.services import (
    MemoryFields,
    Source,
    book_writing,
    keywords_claim,
    keywords_release,
    keywords_requested,
    keywords_wanted,
)
from prompts.memory import keyword_generation_prompt

logger = logging.getLogger("daybook.keyword_generation")

BATCH = 20
_CONTENT_CODES = frozenset({"content_filter", "context_length_exceeded"})  # codes of refusals because of the content
_MAX_DIGITS = 12  # more digits than the number of any memory has
PAUSE_SECONDS = 60.0  # between two checks of a process, since a job takes longer than the pause between sweeps
_throttle = Throttle()
TASK = "gateway.keyword_generation.fill_book"


def enqueue_missing() -> int:
    """Queue a job for each book with memories whose search words were never requested. Return the number of jobs.
    Nothing is queued without an upstream, since the demo model knows no synonyms, nor for books whose upstream is
    undecided."""
    if is_demo() or not _throttle.check(pause=PAUSE_SECONDS):
        return 0
    return enqueue_books(TASK, BackgroundModels.now().readable(_missing(), "book__name"), limit=BATCH)


def fill_book(book_id: str) -> int:
    """Request and store the search words of one batch of a book. Return how many memories got some. Memories are
    claimed first, so that two workers never request the same ones; the claims of a failed batch are released."""
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
        claimed, words = _in_time(claimed, target, owner=str(book.owner_id))
    except (DomainError, ValueError) as error:
        logger.warning("no search words for a batch of book %s: %s", book.pk, type(error).__name__)
        (keywords_release if isinstance(error, DomainError) else keywords_requested)(claimed)
        return 0
    stored = _store(book, claimed, words)
    keywords_requested(claimed)  # afterwards, since a worker may be killed in between
    return stored


def parse_answer(answer: str) -> dict[int, list[str]]:
    """Return `{number: words}` from an answer, also in the variants that small models write. Raises ValueError if it
    contains no object."""
    found = list(objects_in(answer))
    if not found:
        raise ValueError("no object")
    read: dict[int, list[str]] = {}
    for data in found:
        inner = (value for values in data.values() for value in (values if isinstance(values, list) else [values]))
        for part in (data, *(value for value in inner if isinstance(value, dict))):
            read |= _words_in(part)
    return read


def _words_in(data: dict[str, Any]) -> dict[int, list[str]]:
    """Return the words in an object that has numbers as keys, or describes a single number."""
    number, named = str(data.get("id", "")), data.get("words") or data.get("keywords")
    pairs = [(number, named), *data.items()]
    return {
        int(key): _acceptable(given.split(",") if isinstance(given, str) else map(str, given))
        for key, given in pairs
        if key.isdecimal() and len(key) < _MAX_DIGITS and isinstance(given, str | list)
    }


def _acceptable(words: Iterable[str]) -> list[str]:
    """Return the words that a memory takes. Small models repeat themselves, and write sentences."""
    distinct = dict.fromkeys(word.strip() for word in words if len(word) <= KEYWORD_LENGTH)
    return list(distinct)[:KEYWORDS_GIVEN]


def _in_time(rows: list[Memory], target: ModelTarget, *, owner: str) -> tuple[list[Memory], dict[int, list[str]]]:
    """Return the memories that were asked about, and their words. If the answer takes too long, only a quarter is
    asked about, since a slow model would never finish the batch; the claims of the others are released."""
    while True:
        try:
            return rows, _words_of(rows, target, owner=owner)
        except UpstreamTimeout as timeout:
            if isinstance(timeout, UpstreamSilent) or len(rows) == 1:
                raise
            quarter = max(1, len(rows) // 4)
            keywords_release(rows[quarter:])
            rows = rows[:quarter]


def _words_of(rows: list[Memory], target: ModelTarget, *, owner: str) -> dict[int, list[str]]:
    """Return the words of a batch. If a server refuses the batch because of its content, or cuts the answer off, the
    halves are requested separately, so that one memory does not affect the others. Raises DomainErrors, ValueError."""
    prompt = keyword_generation_prompt([(row.number, row.content) for row in rows])
    messages, seconds = ({"role": "user", "content": prompt},), settings.COMPACTION_SECONDS
    answer = None
    try:
        answer = run_async(ask(target, messages, seconds=seconds, owner=owner, request_id="keyword-generation"))
        return parse_answer(answer.visible_text)
    except RequestRefused as refusal:
        if refusal.upstream_code not in _CONTENT_CODES:
            raise
    except ValueError:
        if answer is None or answer.finish_reason != "length":
            raise
    if len(rows) == 1:
        return {}
    middle = len(rows) // 2
    return _words_of(rows[:middle], target, owner=owner) | _words_of(rows[middle:], target, owner=owner)


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
    return Memory.objects.filter(live_condition(), keywords_wanted(), scan_rule="", keywords=[])
