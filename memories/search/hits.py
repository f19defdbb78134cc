"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One cause for which an entry was found."""

    kind: str
    """`words`, `near_words`, `keywords`, `neighbour`, `meaning`, `speaker`, `date`, `all_keywords` or `no_keywords`."""
    words: tuple[str, ...] = ()
    number: int | None = None
    """The neighbouring entry meant, for `neighbour`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One found entry."""

    number: int
    score: float
    why: str
    """One sentence for a person; never given to a model."""
    reasons: tuple[Reason, ...] = ()
