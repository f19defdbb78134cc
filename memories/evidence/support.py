"""Find the sentences of a conversation that support a memory: by shared terms and, for paraphrases and other languages,
by meaning, with the static vectors that the search ships with."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from search.tokens import tokens_of
from search.vectors import Floats, static_vectors, unit

_SENTENCE = re.compile(r"[^.!?;\n。！？；]+[.!?;\n。！？；]*")
_MAX_SENTENCE_CHARS = 400
_MIN_SENTENCE_CHARS = 2
_MAX_PARTS = 8
_MIN_PART_TERMS = 2
_MIN_BASIC_LETTERS = 0.75  # share of a to z among a text's letters; Czech has 0.8, Vietnamese 0.65


@dataclass(frozen=True, slots=True)
class Window:
    """A sentence of a passage: the index of the passage, the span in it, and the search terms."""

    passage: int
    start: int
    end: int
    terms: frozenset[str]


@dataclass(frozen=True)
class Windows:
    """Sentences in their order, with the indexes of those that contain each term. Their texts are needed for `vectors`
    only."""

    rows: Sequence[Window]
    by_term: Mapping[str, Sequence[int]]
    texts: Sequence[str]

    @classmethod
    def of(cls, rows: Sequence[Window], texts: Sequence[str] = ()) -> "Windows":
        """Return the sentences with their index."""
        by_term: defaultdict[str, list[int]] = defaultdict(list)
        for at, row in enumerate(rows):
            for term in row.terms:
                by_term[term].append(at)
        return cls(rows, by_term, texts)

    @cached_property
    def vectors(self) -> Floats:
        """The vectors of the sentences, one row each."""
        return vectors_of(self.texts)

    def sharing(self, asked: Set[str]) -> Iterator[Window]:
        """Yield each sentence with one of these terms, then joined with the next one if that adds another."""
        for at in sorted({at for term in asked for at in self.by_term.get(term, ())}):
            window = self.rows[at]
            yield window
            following = self.rows[at + 1] if at + 1 < len(self.rows) else None
            if following and following.passage == window.passage and following.terms & asked - window.terms:
                yield Window(window.passage, window.start, following.end, window.terms | following.terms)


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """The search terms of a memory in their order, with their weights, 0 to 1. `names` are terms that hardly match by
    chance, and `spelled` the same by the word as it is written: a word in another language has two."""

    weights: Mapping[str, float]
    names: frozenset[str]
    spelled: Mapping[str, Set[str]]

    @classmethod
    def of(cls, content: str) -> "MemoryTerms":
        """Return the weighted terms of a memory's content."""
        found = tokens_of(content)
        tokens = {token.term: token for token in found}
        importance = static_vectors().importance([token.surface for token in tokens.values()])
        weights = {term: max(float(value), 0.2) for term, value in zip(tokens, importance, strict=True)}
        spelled: defaultdict[str, set[str]] = defaultdict(set)
        for token in found:
            if token.is_name:
                spelled[token.surface].add(token.term)
        return cls(weights, frozenset(term for term, token in tokens.items() if token.is_name), spelled)

    def has_other_names(self, said: Sequence[Container[str]]) -> bool:
        """Return True if a name or number of the memory is in none of the collections of terms `said`."""
        return not all(any(term in found for term in terms for found in said) for terms in self.spelled.values())

    def coverage(self, terms: Collection[str]) -> float:
        """Return the weighted share of the memory's terms that are among `terms`, 0 to 1."""
        total = sum(self.weights.values())
        return sum(self.weights[term] for term in self.weights.keys() & terms) / total if total else 0.0


def terms_of(text: str) -> frozenset[str]:
    """Return the search terms of a text, without function words."""
    return frozenset(token.term for token in tokens_of(text))


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text. Long ones are split after every _MAX_SENTENCE_CHARS characters."""
    for match in _SENTENCE.finditer(text):
        for start in range(match.start(), match.end(), _MAX_SENTENCE_CHARS):
            end = min(start + _MAX_SENTENCE_CHARS, match.end())
            if len(text[start:end].strip()) >= _MIN_SENTENCE_CHARS:
                yield start, end


def windows_of(passage: int, text: str, terms: Callable[[str], frozenset[str]] = terms_of) -> Iterator[Window]:
    """Yield the sentences of a passage with their terms."""
    for start, end in sentence_spans(text):
        yield Window(passage, start, end, terms(text[start:end]))


def parts_of(content: str) -> list[str]:
    """Return the sentences of a memory, joined with their neighbours if there are more than _MAX_PARTS."""
    sentences = [match[0] for match in _SENTENCE.finditer(content) if len(terms_of(match[0])) >= _MIN_PART_TERMS]
    size = -(-len(sentences) // _MAX_PARTS) or 1
    return ["".join(sentences[at : at + size]) for at in range(0, len(sentences), size)]


def closest_by_terms(
    memory_terms: MemoryTerms, windows: Windows, without: Collection[str] = frozenset()
) -> tuple[float, Window | None]:
    """Return the highest coverage of a memory by a window, alone or joined with the next one, and that window. The
    window is None if the only matches are single terms that are not names. Terms in `without` do not count."""
    asked = memory_terms.weights.keys() - without
    best: tuple[float, Window | None] = 0.0, None
    for candidate in windows.sharing(asked):
        terms = candidate.terms & asked
        coverage = memory_terms.coverage(terms) if len(terms) > 1 or terms & memory_terms.names else 0.0
        shorter = best[1] and candidate.end - candidate.start < best[1].end - best[1].start
        if coverage > best[0] or (coverage == best[0] and shorter):
            best = coverage, candidate
    return best


def longest_run(memory_terms: MemoryTerms, windows: Windows, without: Collection[str]) -> tuple[int, Window | None]:
    """Return the greatest number of successive terms of a memory that are in one window, alone or joined with the next
    one, and that window. Terms in `without` do not count."""
    asked = memory_terms.weights.keys() - without
    best: tuple[int, Window | None] = 0, None
    for candidate in windows.sharing(asked):
        shared = candidate.terms & asked
        if len(shared) > best[0]:
            runs = (len(list(run)) for known, run in groupby(memory_terms.weights, shared.__contains__) if known)
            if (longest := max(runs)) > best[0]:
                best = longest, candidate
    return best


def has_known_meaning(text: str) -> bool:
    """Return True if the static vectors can tell what a text means. In other scripts, and in Vietnamese, they make any
    two texts similar."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(map(str.isascii, letters)) >= _MIN_BASIC_LETTERS * len(letters)


def vectors_of(texts: Sequence[str]) -> Floats:
    """Return the vectors of texts, normalised to length 1."""
    return unit(static_vectors().embed(texts))


def closest_by_meaning(content: str, rows: Floats) -> tuple[float, int]:
    """Return the highest cosine of a memory's vector with the rows, and the index of that row (-1 without rows)."""
    if not len(rows):
        return 0.0, -1
    found = np.vecdot(rows, vectors_of([content]))
    place = int(found.argmax())
    return float(found[place]), place
