"""Vectors of an embedding model: how they join words and static embeddings, and what they say about being silent."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from search import AnalysisCache, BookIndex, Entry
from search.book import build_arrays
from search.tokens import language_of
from search.upstream import upstream_vectors
from tests.search.books import FACTS, START, facts, talk

CACHE = AnalysisCache()
WIDTH = 32
Vectors = dict[int, NDArray[np.float64]]


def unlike(count: int, seed: int = 3) -> NDArray[np.float64]:
    """Return unit vectors that have little to do with each other, and much with one direction, as models make them."""
    rows = np.random.default_rng(seed).normal(size=(count, WIDTH)) + 2
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def book_with_vectors(*more: str) -> tuple[list[Entry], Vectors]:
    book = facts(*FACTS, *more)
    return book, {entry.number: row for entry, row in zip(book, unlike(len(book)), strict=True)}


def asked(book: list[Entry], vectors: Vectors, query: str, vector: NDArray[np.float64], **options: object) -> list[int]:
    index = BookIndex.build(book, analysis=CACHE, vectors=vectors)
    return [hit.number for hit in index.search(query, query_vector=vector, limit=5, **options)]  # type: ignore[arg-type]


def towards(vector: NDArray[np.float64], share: float, seed: int = 9) -> NDArray[np.float64]:
    return share * vector + (1 - share) * unlike(1, seed)[0]


def test_a_fact_that_only_the_model_sees_is_found_and_not_kept_silent() -> None:
    book, vectors = book_with_vectors()
    query = "anything forbidden on the menu?"
    index = BookIndex.build(book, analysis=CACHE)
    assert 2 not in [hit.number for hit in index.search(query, limit=5)]
    assert asked(book, vectors, query, towards(vectors[2], 0.8))[0] == 2


def test_a_message_that_is_near_to_nothing_gets_nothing() -> None:
    book, vectors = book_with_vectors()
    assert asked(book, vectors, "Who painted the Mona Lisa?", unlike(1, seed=40)[0]) == []


def test_how_close_is_close_is_learnt_from_the_book() -> None:
    """A model whose vectors all lie in one narrow direction says as much as one whose vectors are spread out."""
    book, vectors = book_with_vectors()
    narrow = {number: vector + 3 * np.ones(WIDTH) / WIDTH**0.5 for number, vector in vectors.items()}
    near, far = towards(vectors[2], 0.8), unlike(1, seed=40)[0]
    for known, shift in ((vectors, 0.0), (narrow, 3 / WIDTH**0.5)):
        assert asked(book, known, "anything forbidden on the menu?", near + shift)[0] == 2
        assert asked(book, known, "Who painted the Mona Lisa?", far + shift) == []


def test_an_entry_without_a_vector_is_found_by_its_words() -> None:
    book, vectors = book_with_vectors()
    del vectors[1]
    assert asked(book, vectors, "what is my parrot called", unlike(1, seed=40)[0])[0] == 1


def test_few_vectors_cannot_tell_when_to_be_silent() -> None:
    book, vectors = book_with_vectors()
    two = {number: vectors[number] for number in (8, 9)}
    plain = [hit.number for hit in BookIndex.build(book, analysis=CACHE).search("Who painted it?", limit=5)]
    assert asked(book, two, "Who painted it?", vectors[8]) == plain == []


def test_a_language_of_its_own_is_no_nearness() -> None:
    """What all German texts have in common says nothing about one of them."""
    german = [f"Isst keinen Fisch und kein Fleisch am {day}. Tag" for day in range(8)]
    book, vectors = book_with_vectors(*german)
    accent = 2 * unlike(1, seed=77)[0]
    for number in range(len(FACTS) + 1, len(book) + 1):
        vectors[number] = vectors[number] + accent
    found = upstream_vectors(book, build_arrays(book, CACHE), vectors)
    assert found is not None
    query = vectors[2] + accent
    taken, told = found.closeness(query, "german"), found.closeness(query, "")
    assert taken is not None
    assert told is not None
    assert np.argmax(taken.values) == 1
    assert np.argmax(told.values) >= len(FACTS)


@pytest.mark.parametrize(
    ("text", "language"),
    [("Has a grey parrot", "english"), ("Isst keinen Fisch und kein Fleisch", "german"), ("Живёт в Алматы", "cyrillic"),
     ("我什么时候练习", "cjk"), ("4417", "english"), ("", "english")],
)  # fmt: skip
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language


def test_turns_share_the_meaning_of_those_around() -> None:
    turns = [("Ana", f"Line {at} of the talk") for at in range(12)]
    book = talk(*turns)
    vectors = dict(zip(range(1, 13), unlike(12), strict=True))
    arrays = build_arrays(book, CACHE)
    found = upstream_vectors(book, arrays, vectors)
    assert found is not None
    near = found.closeness(vectors[6], "english")
    assert near is not None
    assert near.values[4:7].min() > np.delete(near.values, [3, 4, 5, 6, 7]).max()
    apart = [Entry(number=entry.number, content=entry.content, said_at=START) for entry in book]
    alone = upstream_vectors(apart, build_arrays(apart, CACHE), vectors)
    assert alone is not None
    closest = alone.closeness(vectors[6], "english")
    assert closest is not None
    assert np.argsort(-closest.values)[0] == 5


def test_vectors_of_another_length_count_as_missing() -> None:
    book, vectors = book_with_vectors()
    short = vectors | {1: np.ones(5)}
    found = upstream_vectors(book, build_arrays(book, CACHE), short)
    assert found is not None
    assert found.known.tolist() == [False] + [True] * 9
    assert found.closeness(np.ones(5), "english") is None
