"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One cause for which an entry was found."""

    kind: str
    """`words`, `keywords`, `near_words`, `neighbour`, `meaning`, `speaker`, `date`, `time`, `all_keywords`,
    `no_keywords` or `rest`."""
    words: tuple[str, ...] = ()
    """The words meant; for `speaker` the name, for `date` the day."""
    number: int | None = None
    """The neighbouring entry meant, for `neighbour`."""
    side: str = "before"
    """Where that neighbour is: `before` or `after`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One found entry."""

    number: int
    score: float
    """Only the order within one search means something; never rises down the list."""
    why: str
    """One sentence for a person; it may quote keywords, so it is never given to a model."""
    reasons: tuple[Reason, ...] = ()
