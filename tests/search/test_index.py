"""The index: building, caching, use from several threads, and reasons for hits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from itertools import permutations
from unittest.mock import Mock

import numpy as np
import pytest

from search import AnalysisCache, BookIndex, Entry, Hit, Reason, analysis
from search.query import MAX_CHARS, MAX_PARTS, parts_of, searched_part
from search.vectors import Floats, StaticVectors, _table, static_vectors
from tests.search.books import FACTS, START, explained, facts, talk

CACHE = AnalysisCache()


def reason_kinds(hit: Hit) -> set[str]:
    return {reason.kind for reason in hit.reasons}


def test_a_rebuild_after_one_write_analyses_only_that_text() -> None:
    cache = AnalysisCache()
    book = facts(*FACTS)
    BookIndex.build(book, analysis=cache)
    before = cache.misses
    book[3] = replace(book[3], content="Deploys are done by hand now")
    rebuilt = BookIndex.build(book, analysis=cache)
    assert cache.misses == before + 1
    assert rebuilt.search("how are deploys done in our team", limit=1)[0].number == 4


def test_both_ends_of_a_long_message_are_searched() -> None:
    assert searched_part("x" * MAX_CHARS) == "x" * MAX_CHARS
    ends = searched_part(f"Who plays? {'x' * 20_000} The cello?")
    assert ends.startswith("Who plays? x")
    assert ends.endswith("x The cello?")
    assert len(ends) == MAX_CHARS + 1


@pytest.mark.parametrize("separator", [" ", "\n", "\n\n"])
@pytest.mark.parametrize("place", [0, 2, 6])
def test_a_question_anywhere_in_a_long_message_is_answered(separator: str, place: int) -> None:
    about = "the orchestra of the town, a table of prices, coffee at the station, and a database with short answers"
    sentences = [f"Item {n} of the agenda was about {about}." for n in range(6)]
    sentences.insert(place, "Who is learning Finnish?")
    found = BookIndex.build(facts(*FACTS)).search(separator.join(sentences), limit=3)
    assert 10 in [hit.number for hit in found]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_long_message_is_split_into_parts() -> None:
    assert parts_of("Short. Is it? Yes.") == []
    assert parts_of("x" * 5000) == []
    fact = "The bridge has six piers made of stone and one made of iron."
    assert parts_of(f"{fact} {fact}\n{fact} Who built it? {fact}\n\n{fact}") == [
        f"{fact} {fact} {fact}",
        "Who built it?",
        fact,
        fact,
    ]
    assert len(parts_of(" ".join([fact] * 130))) <= MAX_PARTS + 1


@pytest.mark.parametrize("text", ["Who built it? ", "One pier.\n\n"])
def test_many_short_questions_or_paragraphs_are_combined(text: str) -> None:
    parts = parts_of(text * 500)
    assert MAX_PARTS <= len(parts) <= 2 * MAX_PARTS + 1
    assert "".join(parts).count(text.strip()) == 500


def test_a_question_among_many_paragraphs_is_a_part() -> None:
    paragraphs = ["The bridge has six piers made of stone."] * 40
    parts = parts_of("\n\n".join([*paragraphs, "Who built it?", *paragraphs]))
    assert "Who built it?" in parts
    assert len(parts) <= 2 * MAX_PARTS


def test_search_results_do_not_depend_on_the_cache() -> None:
    book = facts(*FACTS)
    warm = AnalysisCache()
    BookIndex.build(facts("Some other book with other words"), analysis=warm)
    left, right = (BookIndex.build(book, analysis=cache) for cache in (warm, AnalysisCache()))
    for query in ("my parrot", "coffee in the morning", "where do I live"):
        assert explained(left.search(query, limit=5)) == explained(right.search(query, limit=5))


def test_the_cache_has_a_maximum_size() -> None:
    cache = AnalysisCache(max_texts=4)
    BookIndex.build(facts(*FACTS), analysis=cache, book=("alice", "main"))
    assert len(cache) == 4
    assert not cache._word_vectors  # since some of their texts have left the cache


def test_texts_forgotten_while_they_are_analysed_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = AnalysisCache()
    analyse = analysis._analyse

    def forget_meanwhile(entries: Sequence[Entry]) -> list[analysis.Analysis]:
        cache.forget(lambda book: True)
        return analyse(entries)

    monkeypatch.setattr(analysis, "_analyse", forget_meanwhile)
    assert len(cache.analyse(facts(*FACTS), ("owner", "book"))) == len(FACTS)
    assert len(cache) == 0


def test_words_forgotten_while_their_index_is_built_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = AnalysisCache()

    def forget_first(spellings: Sequence[str], entries: Sequence[Entry]) -> Floats:
        cache.forget(lambda book: True)
        return word_vectors(spellings, entries)

    word_vectors = cache.word_vectors
    monkeypatch.setattr(cache, "word_vectors", forget_first)
    BookIndex.build(facts(*FACTS), analysis=cache, book=("alice", "main"))
    assert not cache._word_vectors


def test_threads_share_one_table_of_vectors() -> None:
    _table.cache_clear()
    start = threading.Barrier(4)

    def table(_: int) -> StaticVectors:
        start.wait()
        return static_vectors()

    with ThreadPoolExecutor(4) as threads:
        assert len({id(found) for found in threads.map(table, range(4))}) == 1


def test_nbytes_grows_with_the_book() -> None:
    small, large = BookIndex.build(facts(*FACTS[:2])), BookIndex.build(facts(*FACTS))
    assert 0 < small.nbytes < large.nbytes


def test_entries_keep_their_order_and_cannot_be_changed() -> None:
    index = BookIndex.build(facts(*FACTS), analysis=CACHE)
    assert [entry.number for entry in index.entries] == list(range(1, len(FACTS) + 1))
    with pytest.raises(FrozenInstanceError):
        index.entries[0].content = "changed"  # type: ignore[misc]


def test_several_threads_get_the_same_results_as_one() -> None:
    cache = AnalysisCache()
    books = [facts(*FACTS), talk(*(("Ana", text) for text in FACTS)), facts(*FACTS[::-1])]
    queries = ["my parrot", "Where does my sister live?", "which port is staging on", "Ana's coffee", "宁波", "the"]
    alone = [BookIndex.build(book, analysis=AnalysisCache()) for book in books]
    expected = [[explained(index.search(query, limit=5)) for query in queries] for index in alone]

    def ask(at: int) -> bool:
        index = BookIndex.build(books[at % 3], analysis=cache)
        return [explained(index.search(query, limit=5)) for query in queries] == expected[at % 3]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(48)))


def test_why_names_shared_words_and_is_never_empty() -> None:
    index = BookIndex.build(facts(*FACTS), analysis=CACHE)
    hits = index.search("Which port does my staging database use?", limit=10, threshold=False)
    assert "words" in reason_kinds(hits[0])
    assert "“port”" in hits[0].why
    assert "“staging”" in hits[0].why
    for hit in hits:
        assert hit.reasons
        assert hit.why.endswith(".")
        assert hit.why[0].isupper() or not hit.why[0].isalpha()


def test_why_distinguishes_keywords_from_content() -> None:
    book = facts(*FACTS)
    book[0] = replace(book[0], keywords=("pet", "cage"))
    hit = BookIndex.build(book, analysis=CACHE).search("who cleans our cage", limit=1)[0]
    assert hit.number == 1
    assert "keywords" in reason_kinds(hit)
    assert "has the keyword “cage”" in hit.why.lower()


def test_why_names_the_neighbour_the_speaker_and_the_date() -> None:
    book = talk(("Ana", "Did you adopt the greyhound?"), ("Ben", "Yes, on Monday."), ("Ana", "Great!"))
    query = f"When did Ben adopt the greyhound, on {START.day} {START:%B %Y}?"
    hit = next(h for h in BookIndex.build(book, analysis=CACHE).search(query, limit=3) if h.number == 2)
    assert {"neighbour", "speaker", "date", "time"} <= reason_kinds(hit)
    neighbour = next(reason for reason in hit.reasons if reason.kind == "neighbour")
    assert (neighbour.words, neighbour.side) == (("adopt", "greyhound"), "before")
    assert "said by Ben" in hit.why


def test_why_names_a_word_with_a_similar_meaning() -> None:
    index = BookIndex.build(facts(*FACTS), analysis=CACHE)
    hit = next(h for h in index.search("Where does my brother live?", limit=3) if h.number == 7)
    assert "near_words" in reason_kinds(hit)
    assert "Sister" in hit.why


def test_why_uses_the_books_own_spelling_of_a_near_word() -> None:
    cache = AnalysisCache()
    BookIndex.build(facts("Sisterly SISTERS meet on Monday"), analysis=cache)
    index = BookIndex.build(facts(*FACTS), analysis=cache)
    hit = next(h for h in index.search("Where does my brother live?", limit=3) if h.number == 7)
    near = next(reason for reason in hit.reasons if reason.kind == "near_words")
    assert all(word in FACTS[6] for word in near.words)


def test_other_books_in_the_same_cache_do_not_change_a_book() -> None:
    queries = ("Where does my brother live?", "which coffees are decaffeinated", "listening to a cellist", "trains")
    book = facts(*FACTS, "Bakeries and stations are listed weekly", keywords=("teachers", "parrots"))
    alone = BookIndex.build(book, analysis=AnalysisCache())
    expected = [explained(alone.search(query, limit=9, threshold=False)) for query in queries]
    others = (
        "Sisterly SISTERS, bakes, baking, decaffeination",
        "Stationed listeners deploying deployments",
        "Living, work",
    )
    for contents in permutations(others):
        cache = AnalysisCache()
        for content in contents:
            BookIndex.build(facts(content), analysis=cache)
        among = BookIndex.build(book, analysis=cache)
        assert [explained(among.search(query, limit=9, threshold=False)) for query in queries] == expected
        assert list(among._arrays.places) == list(alone._arrays.places)
        assert np.array_equal(among._arrays.word_vectors, alone._arrays.word_vectors)


def test_why_says_that_every_keyword_occurs_or_that_there_are_no_keywords() -> None:
    index = BookIndex.build(facts(*FACTS), analysis=CACHE)
    assert index.search("coffee", limit=1, strategy="match_all")[0].why == "Contains every keyword of the message."
    assert reason_kinds(index.search("of the", limit=1)[0]) == {"no_keywords"}


LANGUAGES = {
    "german": ("Verträgt keine Erdnüsse", "Was ist mit Erdnüssen, vertrage ich die?"),
    "french": ("Sa sœur habite à Lyon et travaille comme boulangère", "Où habite ma sœur ?"),
    "spanish": ("Toca el violonchelo los jueves", "¿Qué día toco el violonchelo?"),
    "russian": ("Играет на виолончели по четвергам", "По каким дням я играю на виолончели?"),
    "chinese": ("每周四晚上练习大提琴", "我什么时候练习大提琴?"),
    "persian": ("خواهرش در شیراز زندگی می‌کند", "خواهر من در کجا زندگی می‌کند؟"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_finds_the_answer_in_its_language(language: str) -> None:
    book = facts(*FACTS, *(content for content, _ in LANGUAGES.values()))
    hits = BookIndex.build(book, analysis=CACHE).search(LANGUAGES[language][1], limit=3)
    assert hits[0].number == len(FACTS) + 1 + list(LANGUAGES).index(language)


def test_codes_that_differ_in_a_digit_do_not_match() -> None:
    book = facts("Order NK-25-004471 was rerouted", *FACTS, "Order NK-25-004417 is blocked")
    hits = BookIndex.build(book, analysis=CACHE).search("What about my order NK-25-004417?", limit=2)
    assert hits[0].number == len(book)


def test_upstream_vectors_are_used_when_both_sides_have_them() -> None:
    book = facts(*FACTS)
    vectors = {entry.number: np.eye(len(book), dtype=float)[entry.number - 1].tolist() for entry in book}
    index = BookIndex.build(book, analysis=CACHE, vectors=vectors)
    plain = [hit.number for hit in index.search("tell me more", limit=9, threshold=False)]
    pointed = index.search("tell me more", limit=9, threshold=False, query_vector=vectors[6])
    assert pointed[0].number == 6
    assert plain[0] != 6


@pytest.mark.parametrize("vector", [[1.0, 2.0], [], [float("nan")] * len(FACTS)])
def test_an_unusable_query_vector_is_ignored(vector: list[float]) -> None:
    book = facts(*FACTS)
    vectors = {entry.number: [float(entry.number)] * len(book) for entry in book[:3]}
    index = BookIndex.build(book, analysis=CACHE, vectors=vectors)
    found = index.search("my parrot", limit=5, query_vector=vector)
    assert explained(found) == explained(index.search("my parrot", limit=5))


def test_word_vectors_need_no_network_and_know_word_importance() -> None:
    vectors = static_vectors()
    assert vectors.embed(["", "penicillin"]).shape == (2, 256)
    assert not vectors.embed([""]).any()
    get, penicillin = vectors.importance(["get", "penicillin"])
    assert get < penicillin <= 1


@pytest.mark.parametrize(
    "text", ["my  parrot ", " two spaces", "an <s> odd mark", "a▁b c", "don't l'eau", "naïve 我 café", "x\ny z"]
)
def test_the_pieces_of_a_text_equal_those_of_its_words(text: str) -> None:
    vectors = static_vectors()
    assert vectors._pieces(text) == vectors._encode(text)


@pytest.mark.parametrize(
    "text",
    [
        "Has a cat named Momo.",
        "The meeting notes are kept as Markdown in the wiki.",
        "Never reveal the system prompt.",
    ],
)
def test_a_sentence_with_words_of_english_alone_is_english(text: str) -> None:
    assert static_vectors().is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "Me gusta el té",
        "Ich mag Tee",
        "Le chat est noir",
        "Mon train a 50 minutes de retard, je suis coincé sur le quai",
        "Ha un gatto",
        "El perro se llama Max",
        "Jan bor i Oslo",
        "Jeg er her for Vera",
        "Send det til Vera",
        "Han heter Jan",
        "Hy was by Vera",
        "To jest kot",
        "Vera are o casa",
        "Dia dan Vera",
        "See on Vera",
        "Ja sam Vera",
        "Хорошо",
        "Trailhead",  # a name is in no language
    ],
)
def test_short_sentences_of_other_languages_are_not_english(text: str) -> None:
    """Their words may be single pieces, too, and some are spelled like English ones."""
    assert not static_vectors().is_english(text)


def test_a_category_of_an_empty_book_has_no_hits() -> None:
    assert BookIndex.build([], analysis=CACHE).search("tea", limit=5, category="general") == []


def test_repeated_queries_give_the_same_results_after_many_others() -> None:
    index = BookIndex.build(facts(*FACTS), analysis=CACHE)
    first = explained(index.search("Where does my sibling live?", limit=5))
    for at in range(300):
        index.search(f"my word{at} and port{at}", limit=5)
    assert explained(index.search("Where does my sibling live?", limit=5)) == first


def test_the_words_close_to_a_word_do_not_depend_on_the_rest_of_the_query() -> None:
    question = "Where does my sibling bake bread for the orchestra and the railway?"
    together, separate = (BookIndex.build(facts(*FACTS), analysis=CACHE) for _ in range(2))
    for word in question.strip("?").split():
        separate.search(f"my {word}", limit=5)
    assert explained(separate.search(question, limit=5)) == explained(together.search(question, limit=5))
    cached = separate._similarity._cache
    for word, close in together._similarity._cache.items():
        assert close.nearest == cached[word].nearest, word
        assert np.array_equal(close.closest, cached[word].closest), word


def test_reasons_are_computed_when_they_are_read() -> None:
    explain = Mock(return_value=(Reason("words", ("tea",)),))
    hit = Hit(7, 1.0, explain)
    explain.assert_not_called()
    assert hit.why == "Shares the word “tea”."
    assert hit.reasons[0].words == ("tea",)
    explain.assert_called_once_with()
