"""Vectors of an embedding model: how they combine with words and static embeddings, and when nothing is returned."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from search import AnalysisCache, BookIndex, Entry
from search.book import build_arrays
from search.tokens import language_of
from search.upstream import UpstreamVectors, upstream_vectors
from tests.search.books import FACTS, START, facts, talk

CACHE = AnalysisCache()
WIDTH = 32
Vectors = dict[int, NDArray[np.float64]]


def random_vectors(count: int, seed: int = 3) -> NDArray[np.float64]:
    """Return unit vectors that differ from each other but, like those of real models, share one direction."""
    rows = np.random.default_rng(seed).normal(size=(count, WIDTH)) + 2
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def book_with_vectors(*more: str) -> tuple[list[Entry], Vectors]:
    book = facts(*FACTS, *more)
    return book, {entry.number: row for entry, row in zip(book, random_vectors(len(book)), strict=True)}


def search(
    book: list[Entry], vectors: Vectors, query: str, vector: NDArray[np.float64], **options: object
) -> list[int]:
    index = BookIndex.build(book, analysis=CACHE, vectors=vectors)
    return [hit.number for hit in index.search(query, query_vector=vector, limit=5, **options)]  # type: ignore[arg-type]


def prepared(book: list[Entry], vectors: Vectors) -> UpstreamVectors:
    """Return the vectors of a book as an index has them."""
    found = upstream_vectors(book, build_arrays(book, CACHE), vectors)
    assert found is not None
    return found


def closeness(found: UpstreamVectors, query: NDArray[np.float64], language: str) -> NDArray[np.float32]:
    """Return how close each entry is to a message that can be compared."""
    near = found.closeness(query, language)
    assert near is not None
    return near.values


def towards(vector: NDArray[np.float64], share: float, seed: int = 9) -> NDArray[np.float64]:
    return share * vector + (1 - share) * random_vectors(1, seed)[0]


def test_a_fact_that_only_the_embedding_model_matches_is_found() -> None:
    book, vectors = book_with_vectors()
    query = "anything forbidden on the menu?"
    index = BookIndex.build(book, analysis=CACHE)
    assert 2 not in [hit.number for hit in index.search(query, limit=5)]
    assert search(book, vectors, query, towards(vectors[2], 0.8))[0] == 2


def test_a_message_that_is_close_to_no_entry_has_no_hits() -> None:
    book, vectors = book_with_vectors()
    assert search(book, vectors, "Who painted the Mona Lisa?", random_vectors(1, seed=40)[0]) == []


def test_the_closeness_threshold_is_calibrated_per_book() -> None:
    """A model whose vectors all point in similar directions works as well as one whose vectors are spread out."""
    book, vectors = book_with_vectors()
    narrow = {number: vector + 3 * np.ones(WIDTH) / WIDTH**0.5 for number, vector in vectors.items()}
    near, far = towards(vectors[2], 0.8), random_vectors(1, seed=40)[0]
    for known, shift in ((vectors, 0.0), (narrow, 3 / WIDTH**0.5)):
        assert search(book, known, "anything forbidden on the menu?", near + shift)[0] == 2
        assert search(book, known, "Who painted the Mona Lisa?", far + shift) == []


def test_an_entry_without_a_vector_is_found_by_its_words() -> None:
    book, vectors = book_with_vectors()
    del vectors[1]
    assert search(book, vectors, "what is my parrot called", random_vectors(1, seed=40)[0])[0] == 1


def test_too_few_vectors_do_not_add_hits() -> None:
    book, vectors = book_with_vectors()
    two = {number: vectors[number] for number in (8, 9)}
    plain = [hit.number for hit in BookIndex.build(book, analysis=CACHE).search("Who painted it?", limit=5)]
    assert search(book, two, "Who painted it?", vectors[8]) == plain == []


def test_a_shared_language_does_not_count_as_closeness() -> None:
    """What all German texts have in common says nothing about a single one."""
    german = [f"Isst keinen Fisch und kein Fleisch am {day}. Tag" for day in range(8)]
    book, vectors = book_with_vectors(*german)
    accent = 2 * random_vectors(1, seed=77)[0]
    for number in range(len(FACTS) + 1, len(book) + 1):
        vectors[number] = vectors[number] + accent
    found, query = prepared(book, vectors), vectors[2] + accent
    assert np.argmax(closeness(found, query, "german")) == 1
    assert np.argmax(closeness(found, query, "")) >= len(FACTS)


@pytest.mark.parametrize(
    ("text", "language"),
    [("Has a grey parrot", "english"), ("Isst keinen Fisch und kein Fleisch", "german"), ("Живёт в Алматы", "cyrillic"),
     ("我什么时候练习", "cjk"), ("4417", "english"), ("", "english")],
)  # fmt: skip
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language


def test_turns_share_the_meaning_of_their_neighbours() -> None:
    turns = [("Ana", f"Line {at} of the talk") for at in range(12)]
    book = talk(*turns)
    vectors = dict(zip(range(1, 13), random_vectors(12), strict=True))
    near = closeness(prepared(book, vectors), vectors[6], "english")
    assert near[4:7].min() > np.delete(near, [3, 4, 5, 6, 7]).max()
    apart = [Entry(number=entry.number, content=entry.content, said_at=START) for entry in book]
    assert np.argmax(closeness(prepared(apart, vectors), vectors[6], "english")) == 5


def test_vectors_of_another_length_count_as_missing() -> None:
    book, vectors = book_with_vectors()
    found = prepared(book, vectors | {1: np.ones(5)})
    assert found.known.tolist() == [False] + [True] * 9
    assert found.closeness(np.ones(5), "english") is None


def test_vectors_of_zeros_count_as_missing() -> None:
    book, vectors = book_with_vectors()
    assert upstream_vectors(book, build_arrays(book, CACHE), {number: np.zeros(5) for number in vectors}) is None
