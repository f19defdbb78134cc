"""The weights of the ranked search in one place, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Weights of evidence. Graded evidence is counted in standard deviations over the book."""

    words: float = 0.6
    """Shared words: in the entry, in its keywords and, fading with distance, around it."""
    near_words: float = 0.2
    """Each query word's closest word in the entry itself."""
    meaning: float = 0.65
    """Cosine of static embeddings, entry and surroundings."""
    session: float = 0.3
    """Shared words in the whole session: the talk was about this."""
    speaker: float = 2.7
    """Said by the one person whom the message names."""
    asks: float = 0.7
    """Taken off entries that end in a question: questions rarely hold the answer."""
    answers: float = 0.25
    """Added to an entry that follows a question."""
    time: float = 2.3
    """The message asks when, and the entry says when."""
    date: float = 4.8
    """Said on, or within days after, a day which the message names."""
    upstream: float = 0.8
    """Cosine of vectors from an upstream embedding model, when there are any."""
    session_repeat: float = 0.07
    """Taken off per hit already listed from the same session, so that one talk does not fill the list."""


DEFAULT: Tuning = Tuning()
