"""The ranking of two small fixed books, which an optimisation or a simplification must not change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from search import AnalysisCache, BookIndex, Entry
from tests.search.books import FACTS, START, facts, talk


def curated_book() -> list[Entry]:
    """Return facts in several languages, some with keywords, and one that supersedes another."""
    book = facts(
        *FACTS,
        "Rent is 700 euros, due on the 5th",
        "Verträgt keine Erdnüsse",
        "每周四晚上练习大提琴",
        "Order NK-25-004471 was rerouted",
        "Rent is 910 euros, due on the 1st",
        "Order NK-25-004417 is blocked",
    )
    book[0] = replace(book[0], keywords=("pet", "bird", "cage"))
    book[4] = replace(book[4], keywords=("postgres", "connection string"))
    book[6] = replace(book[6], keywords=("family", "siblings", "Geschwister"))
    return book


def conversation() -> list[Entry]:
    """Return two sessions between two people, a month apart."""
    return talk(
        ("Ana", "Good morning, how was the weekend?"),
        ("Ben", "We finally adopted a dog from the shelter!"),
        ("Ana", "What did you call him?"),
        ("Ben", "Biscuit, after his colour."),
        ("Ana", "I started painting lessons on Tuesday."),
    ) + talk(
        ("Ben", "Biscuit chewed my running shoes."),
        ("Ana", "Did you get new ones before the marathon?"),
        ("Ben", "Yes, yesterday. And your paintings?"),
        ("Ana", "Two of them hang in the library in Graz now."),
        session="s2",
        first=10,
        day=START + timedelta(days=31),
    )


CURATED = {
    "What is my parrot called?": [1, 10],
    "How much rent do I pay now?": [15, 11, 14, 8, 13],
    "How much rent did I pay before?": [15, 11, 14, 8],
    "Which port does the staging database listen on?": [5, 3, 12],
    "What about my order NK-25-004417?": [16, 14, 13],
    "Was ist mit Erdnüssen, vertrage ich die?": [12],
    "我什么时候练习大提琴?": [13, 15, 5, 14, 3, 11],
    "Where does my brother live?": [7, 13, 15, 11, 1],
    "Who painted the Mona Lisa?": [],
    "what should I drink on Thursday": [9, 3, 2],
    "peanut butter recipe for my bird": [2, 1, 9],
}
CONVERSATION = {
    "What is the name of Ben's dog?": [2, 4, 10],
    "When did Ana start painting?": [5, 1, 13, 12],
    "What did Ana say on 1 April 2025?": [13, 11, 12, 10],
    "Where can I see Ana's paintings?": [5, 13, 11, 12],
    "running shoes": [10, 11, 13, 12],
    "How deep is the ocean?": [],
}


@pytest.mark.parametrize("query", CURATED)
def test_curated_facts_are_ranked_as_before(query: str) -> None:
    index = BookIndex.build(curated_book(), analysis=AnalysisCache())
    assert [hit.number for hit in index.search(query, limit=6)] == CURATED[query]


@pytest.mark.parametrize("query", CONVERSATION)
def test_turns_of_a_conversation_are_ranked_as_before(query: str) -> None:
    index = BookIndex.build(conversation(), analysis=AnalysisCache())
    assert [hit.number for hit in index.search(query, limit=6)] == CONVERSATION[query]
