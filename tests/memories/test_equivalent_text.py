"""Searches find text whatever its composition, case and width"""

from urllib.parse import quote

import pytest

from gateway.sessions.search import _pattern, query_words, snippet
from search.keywords import fold
from tests.conftest import Api

pytestmark = pytest.mark.django_db

CAFE, CAFE_COMPOSED = "cafe\u0301", "caf\u00e9"
FOUND = [
    (f"Owns the {CAFE} Bleu.", CAFE_COMPOSED),
    (f"Owns the {CAFE_COMPOSED} Bleu.", CAFE.upper()),
    ("Tuổi Việt Nam".replace("ệ", "e\u0323\u0302"), "Vi\u00ea\u0323t"),
    ("Wohnt in der Straße Nord.", "STRASSE"),
    ("Wohnt in der Strasse Nord.", "straße"),
    ("Plays ＧＯ often.", "go often"),
    ("Plays go often.", "ＧＯ"),
    ("Reads ΣΊΣΥΦΟΣ daily.", "σίσυφος"),
    ("Had 100% of_it.", "100% of_it"),
]


@pytest.mark.any_database
@pytest.mark.parametrize(("content", "query"), FOUND)
async def test_a_memory_is_found_in_any_form(alice_api: Api, content: str, query: str) -> None:
    _, memory = await alice_api.post("/api/memories", {"content": content})
    await alice_api.post("/api/memories", {"content": "Had 1000 ofxit."})
    _, listed = await alice_api.get(f"/api/memories?q={quote(query)}")
    _, found = await alice_api.post("/api/memories/search", {"query": query, "search": "match_all"})
    assert [row["id"] for row in listed["data"]] == [row["id"] for row in found["data"]] == [memory["id"]]


@pytest.mark.parametrize("strategy", ["ranked", "match_all"])
@pytest.mark.parametrize("query", ["U2", "u2?", "42"])
async def test_short_words_are_searched_if_a_query_has_no_others(alice_api: Api, query: str, strategy: str) -> None:
    await alice_api.post("/api/memories", {"content": "Likes tea and violins."})
    _, memory = await alice_api.post("/api/memories", {"content": "Saw U2 in row 42."})
    _, found = await alice_api.post("/api/memories/search", {"query": query, "search": strategy})
    assert [row["id"] for row in found["data"]] == [memory["id"]]
    _, found = await alice_api.post("/api/memories/search", {"query": "of the", "search": strategy})
    assert len(found["data"]) == 2


def test_folding_is_stable() -> None:
    for text, query in FOUND:
        assert fold(query) in fold(text)
        assert fold(fold(text)) == fold(text)


def test_a_decomposed_message_is_highlighted() -> None:
    shown = snippet(f"The re\u0301sume\u0301 of the {CAFE}", _pattern(query_words("résumé")))
    assert [text for text, marked in shown.pieces() if marked] == ["résumé"]
