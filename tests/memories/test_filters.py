"""Filters of lists and searches: metadata, times, and all books, within a key's limits and with full pages"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from gateway.models import Agent
from memories.database.access import in_thread
from memories.filters import MemoryFilters, contains_text
from memories.limits import QueryMoment
from memories.models import Memory, Owner
from memories.services import book_limits_set
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make
from tests.growth import cost_ratio
from tests.overlapping import only_postgresql

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ODD_KEYS = [
    "2024",
    "0",
    'a"b',
    "a'b",
    "a.b",
    "$",
    "a]b",
    "ü",
    "😀",
    "a\\u00fcb",
    "%s",
    "a b",
    "contains",
    "has_key",
    "__",
]


async def listed(api: Api, **query: str) -> list[str]:
    status, answer = await api.get(f"/api/memories?{urlencode(query)}")
    assert status == 200, answer
    return [memory["content"] for memory in answer["data"]]


async def found(api: Api, query: str = "drink", **body: Any) -> list[str]:
    status, answer = await api.post("/api/memories/search", {"query": query, "search": "match_all", **body})
    assert status == 200, answer
    return [memory["content"] for memory in answer["data"]]


def drinks_make(owner: Owner) -> None:
    """Create four memories in two books, an hour apart."""
    memory_make(owner, "Drink: tea.", metadata={"source": "crm", "lang": "en"})
    memory_make(owner, "Drink: rum.", metadata={"source": "crm", "lang": "de"})
    memory_make(owner, "Drink: milk.", metadata={"source": "shop"}, book="work")
    memory_make(owner, "Drink: water.")
    for hour, content in enumerate(["Drink: tea.", "Drink: rum.", "Drink: milk.", "Drink: water."]):
        Memory.objects.filter(content=content).update(created_at=NOON + timedelta(hours=hour))


async def test_the_list_is_filtered_by_metadata_pairs_combined_with_and(alice: Owner, alice_api: Api) -> None:
    await in_thread(drinks_make, alice)
    assert await listed(alice_api, **{"metadata.source": "crm"}) == ["Drink: rum.", "Drink: tea."]
    assert await listed(alice_api, **{"metadata.source": "crm", "metadata.lang": "de"}) == ["Drink: rum."]
    assert await listed(alice_api, **{"metadata.source": "CRM"}) == []
    assert await listed(alice_api, **{"metadata.source": "crm", "book": "work"}) == []


async def test_the_list_is_filtered_by_time_exclusively(alice: Owner, alice_api: Api) -> None:
    await in_thread(drinks_make, alice)
    assert await listed(alice_api, created_after="2026-03-01T13:00:00Z") == ["Drink: water.", "Drink: milk."]
    assert await listed(alice_api, created_before="2026-03-01T13:00:00Z") == ["Drink: tea."]
    between = {"created_after": "2026-03-01T13:00:00+01:00", "created_before": "2026-03-01T14:00:00"}
    assert await listed(alice_api, **between) == ["Drink: rum."]
    # An unescaped "+" in a URL is decoded as a space, but people write it anyway.
    plain = "created_after=2026-03-01T13:00:00+01:00&created_before=2026-03-01T19:29:59.5+0530"
    status, answer = await alice_api.get(f"/api/memories?{plain}")
    assert (status, [row["content"] for row in answer["data"]]) == (200, ["Drink: rum."])


def test_many_times_in_one_filter_take_linear_time() -> None:
    def refuse(size: int) -> None:
        with pytest.raises(ValidationError):
            TypeAdapter(QueryMoment).validate_python("T77:77" * size)

    assert cost_ratio(refuse, 1_300) < 20


@pytest.mark.parametrize("query", ["МОСКВЕ", "москве", "в москве (сейчас)", "МоСкВе"])
async def test_the_text_filter_ignores_case_in_any_script(alice: Owner, alice_api: Api, query: str) -> None:
    for content in ("Живёт в Москве (сейчас).", "Живёт в Минске."):
        await in_thread(memory_make, alice, content)
    assert await listed(alice_api, q=query) == ["Живёт в Москве (сейчас)."]


@only_postgresql
@pytest.mark.django_db
def test_a_text_that_almost_matches_everywhere_takes_no_longer_to_find(alice: Owner) -> None:
    book_limits_set({"main": (0, 0)})
    for number in range(10):
        memory_make(alice, f"{number}{'a' * 3_900}")

    def seconds(text: str) -> float:
        began = time.perf_counter()
        assert not Memory.objects.filter(contains_text(text, "content")).exists()
        return time.perf_counter() - began

    ordinary, hostile = (min(seconds(text) for _ in range(3)) for text in ("b" * 2_000, "b" + "a" * 1_999))
    assert hostile < 20 * ordinary  # compared character by character, a hundred times as long


async def test_a_time_copied_from_a_response_excludes_its_memory(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        for content, microseconds in (("Drink: tea.", 405_000), ("Drink: rum.", 405_678), ("Drink: milk.", 406_000)):
            memory_make(alice, content)
            Memory.objects.filter(content=content).update(created_at=NOON.replace(microsecond=microseconds))

    await in_thread(make)
    _, answer = await alice_api.get("/api/memories")
    assert answer["data"][1]["created_at"] == "2026-03-01T12:00:00.405Z"
    assert await listed(alice_api, created_after="2026-03-01T12:00:00.405Z") == ["Drink: milk."]
    assert await found(alice_api, created_after="2026-03-01T12:00:00.405Z") == ["Drink: milk."]
    assert await listed(alice_api, created_before="2026-03-01T12:00:00.405Z") == []


async def test_a_star_means_all_books(alice: Owner, alice_api: Api) -> None:
    await in_thread(drinks_make, alice)
    assert len(await listed(alice_api, book="*")) == 4
    assert await found(alice_api) == ["Drink: tea.", "Drink: rum.", "Drink: water."]
    assert await found(alice_api, book="*") == ["Drink: tea.", "Drink: rum.", "Drink: milk.", "Drink: water."]


async def test_the_search_has_the_same_filters(alice: Owner, alice_api: Api) -> None:
    await in_thread(drinks_make, alice)
    assert await found(alice_api, metadata={"source": "crm", "lang": "de"}) == ["Drink: rum."]
    assert await found(alice_api, metadata={"source": "crm"}, limit=1) == ["Drink: tea."]
    assert await found(alice_api, metadata={"source": "shop"}) == []
    assert await found(alice_api, metadata={"source": "shop"}, book="*") == ["Drink: milk."]
    times = {"created_after": "2026-03-01T12:30:00Z", "created_before": "2026-03-01T14:30:00Z"}
    assert await found(alice_api, book="*", **times) == ["Drink: rum.", "Drink: milk."]
    assert await found(alice_api, book="*", created_after="2027-01-01T00:00:00Z") == []


async def test_a_ranked_search_over_all_books_returns_the_best_hit_first(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        for number in range(12):
            memory_make(alice, f"Room {number} has a green door.", book="work")
        memory_make(alice, "Plays the violin in an orchestra on Thursdays.", book="music")
        memory_make(alice, "Likes tea.")

    await in_thread(make)
    _, answer = await alice_api.post(
        "/api/memories/search", {"query": "When do I play the violin in my orchestra?", "book": "*"}
    )
    assert answer["data"][0]["content"].startswith("Plays the violin")
    assert answer["data"][0]["book"] == "music"
    scores = [memory["score"] for memory in answer["data"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.any_database
async def test_a_filter_is_applied_before_the_limit_of_a_ranked_search(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        for number in range(25):
            memory_make(alice, f"Plays the violin in orchestra number {number}.")
        memory_make(alice, "Owns a violin.", metadata={"source": "crm"})

    await in_thread(make)
    body = {"query": "In which orchestra do I play the violin?", "metadata": {"source": "crm"}, "limit": 3}
    _, answer = await alice_api.post("/api/memories/search", body)
    assert [memory["content"] for memory in answer["data"]] == ["Owns a violin."]


async def test_pages_of_a_filtered_list_are_full(alice: Owner, alice_api: Api) -> None:
    def make() -> None:
        for number in range(25):
            metadata = {"odd": str(number % 2)}
            memory_make(alice, f"Note {number}.", metadata=metadata, book="work" if number % 3 else "main")

    await in_thread(make)
    seen: list[str] = []
    query = {"metadata.odd": "1", "book": "*", "limit": "5"}
    while True:
        _, page = await alice_api.get(f"/api/memories?{urlencode(query)}")
        seen += [memory["content"] for memory in page["data"]]
        if not page["has_more"]:
            break
        assert len(page["data"]) == 5
        query["after"] = page["last_id"]
    assert seen == [f"Note {number}." for number in range(23, 0, -2)]


@pytest.mark.parametrize("key", ODD_KEYS)
async def test_unusual_metadata_keys_are_found(alice: Owner, alice_api: Api, key: str) -> None:
    await in_thread(memory_make, alice, "Likes tea.", metadata={key: key, "other": "x"})
    await in_thread(memory_make, alice, "Likes rum.", metadata={"other": key})
    assert await listed(alice_api, **{f"metadata.{key}": key}) == ["Likes tea."]
    assert await listed(alice_api, **{f"metadata.{key}": "x"}) == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("metadata.=x", "metadata"),
        (f"metadata.{'k' * 65}=x", "metadata"),
        (f"metadata.k={'v' * 257}", "metadata"),
        ("metadata.k=x&metadata.k=y", "metadata"),
        ("&".join(f"metadata.k{number}=x" for number in range(17)), "metadata"),
        ("created_after=yesterday", "created_after"),
        ("created_before=9999-12-31T23:59:59-10:00", "created_before"),
        ("created_after=0001-01-01T00:00:00%2B10:00", "created_after"),
    ],
)
async def test_invalid_filters_are_refused(alice_api: Api, query: str, param: str) -> None:
    status, answer = await alice_api.get(f"/api/memories?{query}")
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", param)


async def test_a_limited_key_gets_its_own_books_only(alice: Owner, agent: Agent) -> None:
    def make() -> Api:
        agent_make("clerk", book="office")
        for book in ("main", "office", "work"):
            memory_make(alice, f"Drink in {book}.", book=book, metadata={"source": "crm"})
        return Api(key_make(alice, agents=["clerk"])[1])

    clerk = await in_thread(make)
    assert await listed(clerk, book="*", **{"metadata.source": "crm"}) == ["Drink in office."]
    assert await found(clerk, book="*", metadata={"source": "crm"}) == ["Drink in office."]
    status, _ = await clerk.post("/api/memories/search", {"query": "Drink", "book": "work"})
    assert status == 404


async def test_memories_of_other_owners_are_not_found(alice: Owner, charlie_api: Api) -> None:
    await in_thread(drinks_make, alice)
    assert await listed(charlie_api, book="*", **{"metadata.source": "crm"}) == []
    assert await found(charlie_api, book="*") == []


async def test_a_deleted_memory_is_not_found(alice: Owner, alice_api: Api) -> None:
    await in_thread(drinks_make, alice)
    await alice_api.call("DELETE", "/api/memories/1")
    assert await found(alice_api, book="*", metadata={"source": "crm"}) == ["Drink: rum."]
    assert await listed(alice_api, **{"metadata.source": "crm"}) == ["Drink: rum."]


async def test_a_memory_is_not_listed_from_the_moment_it_expires(alice: Owner, alice_api: Api) -> None:
    await in_thread(memory_make, alice, "Tomorrow.", expires_at=timezone.now() + timedelta(days=1))
    await in_thread(memory_make, alice, "Yesterday.", expires_at=timezone.now() - timedelta(seconds=1))
    assert await listed(alice_api) == ["Tomorrow."]


@pytest.mark.any_database
async def test_the_openapi_document_describes_the_parameters(alice_api: Api) -> None:
    _, document = await alice_api.get("/api/openapi.json")
    parameters = {row["name"]: row for row in document["paths"]["/api/memories"]["get"]["parameters"]}
    assert {"metadata", "created_after", "created_before", "book"} <= parameters.keys()
    assert parameters["metadata"]["explode"] is True
    assert await listed(alice_api, **{quote("metadata.source"): "crm"}) == []


def test_any_number_of_pairs_takes_one_query(alice: Owner) -> None:
    drinks_make(alice)
    with CaptureQueriesContext(connection) as queries:
        filters = MemoryFilters(metadata={"source": "crm", "lang": "en"}, created_after=NOON - timedelta(days=1))
        assert [row.number for row in filters.of(Memory.objects.filter(owner=alice))] == [1]
    assert len(queries) == 1


@pytest.mark.parametrize("review", ["nope", "5", "00000000-0000-7000-8000-000000000000"])
async def test_an_unknown_review_matches_no_memory(alice: Owner, alice_api: Api, review: str) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    assert await listed(alice_api, review=review) == []
