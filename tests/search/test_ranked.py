"""Edge cases of the ranked search."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search import AnalysisCache, BookIndex, Entry, extract_keywords
from search.query import is_personal
from tests.search.books import FACTS, START, facts, match_all, talk

CACHE = AnalysisCache()


def found(entries: list[Entry], query: str, *, limit: int = 5, **options: object) -> list[int]:
    """Return the numbers of the entries that the ranked search finds."""
    index = BookIndex.build(entries, analysis=CACHE)
    return [hit.number for hit in index.search(query, limit=limit, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("Which port does the staging database listen on?", 5),
        ("what is my parrot called", 1),
        ("Can I eat peanut butter?", 2),
        ("I play which instrument in the orchestras?", 3),
        ("where is release.yml used in our setup", 4),
        ("6543", 5),
    ],
)
def test_the_entry_that_answers_comes_first(query: str, number: int) -> None:
    assert found(facts(*FACTS), query)[0] == number


def test_a_word_with_the_same_meaning_is_enough() -> None:
    assert found(facts(*FACTS), "Where does my sibling live?", limit=3)[0] == 7


def test_a_general_question_has_no_hits() -> None:
    assert found(facts(*FACTS), "Who painted the Mona Lisa?") == []
    assert len(found(facts(*FACTS), "Who painted the Mona Lisa?", threshold=False)) == 5


def test_a_general_question_has_no_hits_in_a_large_book_either() -> None:
    """In a large book, some entries are close to any message by chance."""
    people = ("aunt", "teacher", "neighbour", "dentist", "captain", "painter", "singer", "banker")
    places = ("Lisbon", "Rome", "the museum", "the harbour", "a gallery", "the theatre", "the market", "the school")
    habits = ("sells prints", "restores frames", "tells jokes", "collects stamps", "bakes bread", "draws portraits")
    texts = [f"The {person} from {place} {habit}" for person in people for place in places for habit in habits]
    assert found(facts(*FACTS), "Who painted the Mona Lisa?") == []
    assert found(facts(*FACTS, *texts), "Who painted the Mona Lisa?") == []


def test_asking_to_be_told_something_does_not_make_a_message_personal() -> None:
    assert found(facts(*FACTS), "Tell me a riddle about volcanoes") == []


@pytest.mark.parametrize(
    ("message", "personal"),
    [
        ("cuándo viajo? tengo que saber", True),
        ("posso comer isso hoje", True),
        ("im late again", True),
        ("je sais plus quand j'arrive", True),
        ("what can mum eat", True),
        ("wie erreicht man Opa", True),
        ("когда папа приедет", True),
        ("妈妈喜欢什么", True),
        ("why does a mum kangaroo have a pouch", False),
        ("draw your dad as a cartoon", False),
        ("what is a mamba", False),
        ("Wie hoch ist der Eiffelturm", False),
    ],
)
def test_a_message_is_personal_by_a_verb_form_or_a_family_word(message: str, personal: bool) -> None:
    assert is_personal(message) is personal


def test_without_keywords_all_entries_are_returned_up_to_the_limit() -> None:
    assert found(facts(*FACTS), "of the", limit=4) == [1, 2, 3, 4]
    assert found(facts(*FACTS), "parrot", limit=4, keywords=[]) == [1, 2, 3, 4]


def test_given_keywords_are_searched_in_addition_to_the_message() -> None:
    assert found(facts(*FACTS), "mmm?", keywords=["bicycle"])[0] == 8


def test_excluded_entries_and_other_categories_are_never_returned() -> None:
    book = facts(*FACTS)
    assert 1 not in found(book, "what is my parrot called", exclude={1}, limit=10, threshold=False)
    food = [replace(e, category="food") if e.number == 9 else e for e in book]
    assert found(food, "what is my parrot called", category="food", threshold=False) == [9]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_gives_no_hits(limit: int) -> None:
    assert found(facts(*FACTS), "parrot", limit=limit) == []


def test_an_empty_book_has_no_hits() -> None:
    assert found([], "anything at all") == []


def test_the_only_entry_of_a_book_is_found_only_when_it_is_relevant() -> None:
    book = facts("Has a grey parrot named Momo")
    assert found(book, "what is my parrot called") == [1]
    assert found(book, "How deep is the ocean?") == []


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="ranked"):
        found(facts(*FACTS), "parrot", strategy="best")


def test_an_entry_is_found_by_its_keywords() -> None:
    book = facts(*FACTS)
    book[1] = replace(book[1], keywords=("anaphylaxis", "epipen", "nut butter"))
    assert found(book, "where is the epipen")[0] == 2


def test_stuffed_keywords_never_beat_a_content_match() -> None:
    query = "Which port does the staging database listen on?"
    words = ["staging", "database", "listen", "port"] * 2
    stuffed = (*(" ".join(pair) for pair in pairwise(words)), query)
    book = [*facts(*FACTS), Entry(number=99, content="Likes yellow tulips", keywords=stuffed)]
    order = found(book, query, limit=3)
    assert order.index(5) < order.index(99)


def test_a_newer_fact_ranks_above_the_one_it_supersedes() -> None:
    book = facts("Rent is 700 euros, due on the 5th", *FACTS, "Rent is 910 euros, due on the 1st")
    order = found(book, "How much rent do I pay now?")
    assert order.index(12) < order.index(1)
    earlier = [replace(book[0], said_at=START + timedelta(days=90)), *book[1:]]
    assert found(earlier, "How much rent do I pay now?")[0] == 1


def test_a_name_in_the_message_decides_between_parallel_facts() -> None:
    book = facts("Parking at Westpier costs 4 euros a day", *FACTS, "Parking at Ostpier costs 7 euros a day")
    assert found(book, "What does parking at Westpier cost me?")[0] == 1


def test_the_neighbours_of_a_matching_turn_are_found() -> None:
    book = talk(
        ("Ana", "Good morning, how was the weekend?"),
        ("Ben", "We finally adopted a dog from the shelter!"),
        ("Ana", "What did you call him?"),
        ("Ben", "Biscuit, after his colour."),
        ("Ana", "Sounds lovely."),
    ) + talk(
        *[("Ana", f"Talking about the budget, part {at}") for at in range(9)], session="s2", first=20
    )  # fmt: skip
    assert 4 in found(book, "What is the name of Ben's dog?", limit=3)


def test_turns_of_a_named_person_rank_first() -> None:
    book = talk(("Ana", "I play the violin."), ("Ben", "I play the violin."), ("Ana", "Nice.")) + talk(
        ("Ana", "The weather is grey."), ("Ben", "Yes, rain again."), session="s2", first=10
    )
    assert found(book, "Which instrument does Ben play?")[0] == 2
    assert found(book, "Which instrument does Ana play?")[0] == 1


def test_a_date_in_the_message_finds_turns_of_that_day() -> None:
    late = START + timedelta(days=60)
    book = talk(("Ana", "I cooked soup."), ("Ben", "Great.")) + talk(
        ("Ana", "I cooked soup."), ("Ben", "Great."), session="s2", first=10, day=late
    )
    assert found(book, f"What did Ana cook on {late.day} {late:%B %Y}?")[0] == 10
    assert found(book, f"What did Ana cook on {START:%Y-%m-%d}?")[0] == 1


def test_hits_are_sorted_by_score() -> None:
    hits = BookIndex.build(facts(*FACTS), analysis=CACHE).search("my coffee and my bicycle", limit=10)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


WORDS = st.sampled_from(
    ["red", "blue", "apple", "Москва", "猫", "v2.1", "née", "port", "ship", "tea", "a", "the", "42", "x_y"]
)
SENTENCES = st.lists(WORDS, max_size=6).map(" ".join)


@settings(max_examples=75)
@given(st.lists(SENTENCES, max_size=12), SENTENCES, st.integers(1, 8), st.booleans())
def test_the_threshold_never_removes_what_match_all_returns(
    contents: list[str], query: str, limit: int, in_session: bool
) -> None:
    book = talk(*(("Ana", text) for text in contents)) if in_session else facts(*contents)
    strict = [entry.number for entry in match_all(book, extract_keywords(query), limit=len(book) + 1)]
    hits = found(book, query, limit=limit)
    assert len(hits) == len(set(hits)) <= limit
    if len(strict) <= limit:
        assert set(strict) <= set(hits)
    else:
        assert len(hits) == limit


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60))
def test_no_text_breaks_building_or_searching(contents: list[str], query: str) -> None:
    book = facts(*contents)
    numbers = found(book, query, limit=4, threshold=False)
    assert set(numbers) <= {entry.number for entry in book}


def test_a_very_long_message_is_searched_by_its_rarest_words() -> None:
    query = "parrot " + " ".join(f"filler{at}" for at in range(3000))
    assert found(facts(*FACTS), query, limit=1, threshold=False) == [1]
