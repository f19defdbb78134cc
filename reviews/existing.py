"""What a review is shown of the book: all of it where that is reasonable, else what bears on the conversation."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from memories.tokens import text_tokens
from prompts.review import ExistingMemory
from reviews.staged import StagedEntry
from search.entries import Entry
from search.index import BookIndex


def choose_existing(entries: Sequence[StagedEntry], conversation: Sequence[dict[str, Any]]) -> Sequence[ExistingMemory]:
    """Return the entries in their order. Where they take more than settings.REVIEW_TOKENS: first those that the
    conversation is about, then the newest, until that is full."""
    if sum(text_tokens(entry.content) for entry in entries) <= settings.REVIEW_TOKENS:
        return [_shown(entry) for entry in entries]
    index = BookIndex.build([Entry(number=int(e.key), content=e.content, keywords=tuple(e.keywords)) for e in entries])
    said = [message["content"] for message in conversation if message["role"] == "user"]
    hits = [hit.number for text in said for hit in index.search(text, limit=20)]
    newest = sorted((int(entry.key) for entry in entries), reverse=True)
    by_number = {int(entry.key): entry for entry in entries}
    left, chosen = settings.REVIEW_TOKENS, set()
    for number in dict.fromkeys([*hits, *newest]):
        left -= text_tokens(by_number[number].content)
        if left < 0:
            break
        chosen.add(number)
    return [_shown(by_number[number]) for number in sorted(chosen)]


def _shown(entry: StagedEntry) -> ExistingMemory:
    return ExistingMemory(number=int(entry.key), target=entry.target, category=entry.category, content=entry.content)
