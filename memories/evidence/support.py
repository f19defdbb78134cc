"""Which words of a conversation say what a memory says: closest in words, and where words do not carry (another
language, a paraphrase) in meaning, by the static vectors that the search ships with."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from search.tokens import tokens_of
from search.vectors import Floats, static_vectors, unit

_SENTENCE = re.compile(r"[^.!?;\n。！？；]+[.!?;\n。！？；]*")
_LONGEST_SENTENCE = 400
_SHORTEST_SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Window:
    """A sentence of a passage: its place there, and its terms."""

    passage: int
    start: int
    end: int
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The terms of a memory, each with how much it says, 0 to 1; `names` are those that nobody meets by chance."""

    weights: Mapping[str, float]
    names: frozenset[str]

    @classmethod
    def of(cls, content: str) -> "Wanted":
        """Return what the words of a memory ask for."""
        tokens = {token.term: token for token in tokens_of(content)}
        says = static_vectors().importance([token.surface for token in tokens.values()])
        weights = {term: max(float(value), 0.2) for term, value in zip(tokens, says, strict=True)}
        return cls(weights, frozenset(term for term, token in tokens.items() if token.is_name))

    def share(self, terms: Collection[str]) -> float:
        """Return how much of the memory these terms say, 0 to 1."""
        total = sum(self.weights.values())
        return sum(self.weights[term] for term in self.weights.keys() & terms) / total if total else 0.0


def terms_of(text: str) -> frozenset[str]:
    """Return the search terms of a text, without function words."""
    return frozenset(token.term for token in tokens_of(text))


def windows_of(passage: int, text: str) -> Iterator[Window]:
    """Yield the sentences of a passage. One without an end is cut."""
    for match in _SENTENCE.finditer(text):
        for start in range(match.start(), match.end(), _LONGEST_SENTENCE):
            end = min(start + _LONGEST_SENTENCE, match.end())
            if len(text[start:end].strip()) >= _SHORTEST_SENTENCE:
                yield Window(passage, start, end, terms_of(text[start:end]))


def closest_in_words(
    wanted: Wanted, windows: Sequence[Window], without: Collection[str] = frozenset()
) -> tuple[float, Window | None]:
    """Return the largest share of a memory that a window says, alone or with the one behind it, and that window; None
    if none says anything that is not met by chance. Terms of `without` do not count."""
    asked = wanted.weights.keys() - without
    best: tuple[float, Window | None] = 0.0, None
    for window, following in zip_longest(windows, windows[1:]):
        pair = window
        if following is not None and following.passage == window.passage and following.terms & asked - window.terms:
            pair = Window(window.passage, window.start, following.end, window.terms | following.terms)
        for one in (window, pair):
            terms = one.terms & asked
            share = wanted.share(terms) if len(terms) > 1 or terms & wanted.names else 0.0
            if share > best[0] or (share == best[0] and best[1] and one.end - one.start < best[1].end - best[1].start):
                best = share, one
    return best


def vectors_of(texts: Sequence[str]) -> Floats:
    """Return the vectors of texts, of length one."""
    return unit(static_vectors().embed(texts))


def closest_in_meaning(content: str, rows: Floats) -> tuple[float, int]:
    """Return the largest cosine of a memory's vector with rows, and which row it is; -1 where there are none."""
    if not len(rows):
        return 0.0, -1
    found = np.vecdot(rows, vectors_of([content]))
    place = int(found.argmax())
    return float(found[place]), place
