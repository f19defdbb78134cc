"""The searchable unit: a remembered fact or one turn of a conversation, independent of the database."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A searchable text.

    The insertion order is the position in the sequence given to the index. Entries with the same `session_id` are
    neighbours in that order.
    """

    number: int
    """The id in results."""
    content: str
    keywords: tuple[str, ...] = ()
    """Additional search words; searched, never shown to a model."""
    category: str = "general"
    target: str = "memory"
    """`user` or `memory`."""
    session_id: str | None = None
    speaker: str | None = None
    said_at: datetime | None = None
    """Timezone-aware. Matched by dates in a query; of two facts about the same subject, the later one ranks first."""

    @property
    def joined_keywords(self) -> str:
        """The keywords as a single text."""
        return ", ".join(self.keywords)

    @cached_property
    def words_key(self) -> bytes:
        """A hash of content and keywords, used as a cache key so that no forgotten text stays in memory."""
        text = f"{len(self.content)} {self.content}{self.joined_keywords}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
