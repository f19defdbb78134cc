"""Small books with invented content for the search tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from search import Entry, Hit
from search.keywords import fold

START = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)

FACTS = (
    "Has a grey parrot named Momo",
    "Allergic to peanuts",
    "Plays the cello in the town orchestra on Thursdays",
    "Deploys run through the pipeline file release.yml",
    "Staging database listens on port 6543",
    "Prefers short answers with a table",
    "Sister Ilse lives in Graz and works as a baker",
    "Rides a folding bicycle to the station",
    "Drinks only decaffeinated coffee",
    "Learning Finnish with a teacher called Outi",
)


def facts(*contents: str, **common: object) -> list[Entry]:
    """Return one fact per text, numbered from 1, each a day after the one before."""
    return [
        Entry(number=at + 1, content=content, said_at=START + timedelta(days=at), **common)  # type: ignore[arg-type]
        for at, content in enumerate(contents)
    ]


def talk(*turns: tuple[str, str], session: str = "s1", first: int = 1, day: datetime = START) -> list[Entry]:
    """Return the turns of one session as entries, from (speaker, text) pairs."""
    return [
        Entry(number=first + at, content=text, speaker=speaker, session_id=session, said_at=day)
        for at, (speaker, text) in enumerate(turns)
    ]


def explained(hits: Sequence[Hit]) -> list[tuple[int, float, str]]:
    """Return all that is known of hits, to compare them."""
    return [(hit.number, hit.score, hit.why) for hit in hits]


def match_all(
    entries: Sequence[Entry], keywords: Sequence[str], *, limit: int, category: str | None = None
) -> list[Entry]:
    """Return what the strict search should find, with a simple loop."""
    of_category = [entry for entry in entries if category is None or entry.category == category]
    return [entry for entry in of_category if holds_all(entry.content, keywords)][:limit]


def holds_all(content: str, keywords: Sequence[str]) -> bool:
    """Return True if every keyword is a substring of the content, both folded."""
    return all(fold(keyword) in fold(content) for keyword in keywords)
