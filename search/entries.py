"""What the search reads: one remembered fact or one turn of a conversation, without database or web."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One thing that can be found.

    The position in the sequence given to the index is the insertion order. Entries that share a
    `session_id` are neighbours, in that order.
    """

    number: int
    """The id that results name."""
    content: str
    keywords: tuple[str, ...] = ()
    """Words written so that the entry is found; searched, never shown to a model."""
    category: str = "general"
    target: str = "memory"
    """`user` or `memory`."""
    session_id: str | None = None
    speaker: str | None = None
    said_at: datetime | None = None
    """Aware. A date in a query may match it, and among facts that disagree the later one wins."""

    @property
    def joined_keywords(self) -> str:
        """The keywords as one text."""
        return ", ".join(self.keywords)

    @cached_property
    def words_key(self) -> bytes:
        """A hash of content and keywords, which keeps no forgotten text alive where it stands for them."""
        text = f"{len(self.content)} {self.content}{self.joined_keywords}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
