"""GET /metrics"""

import re
from collections.abc import Generator
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.test import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from config import metrics
from gateway.models import Session
from gateway.routing import websocket_application
from memories.database.access import in_thread
from memories.errors import BlockedByScan, UpstreamError
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make, memory_make, review_make
from tests.scripted_model import ScriptedModel

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def measured(settings: Any) -> Generator[None]:
    settings.METRICS = True
    metrics._last = None
    yield
    metrics._last = None


async def scrape() -> Samples:
    response = await AsyncClient().get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


async def scrape_uncached() -> Samples:
    metrics._last = None
    return await scrape()


async def test_metrics_are_off_by_default(db: None, settings: Any) -> None:
    settings.METRICS = False
    response = await AsyncClient().get("/metrics")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


async def test_a_turn_is_counted_with_its_duration_and_tokens(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    before = await scrape()
    model.script("Hello.")
    await alice_api.stream(f"/api/sessions/{session.pk}/turns", {"content": "Hi", "stream": True})
    after = await scrape()

    def increase(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert increase("daybook_turns_total", state="completed") == 1
    assert increase("daybook_turn_seconds_count", state="completed") == 1
    assert increase("daybook_first_token_seconds_count") == 1
    tokens = increase("daybook_model_tokens_total", kind="prompt") + increase(
        "daybook_model_tokens_total", kind="completion"
    )
    assert tokens == 10


async def test_a_failed_turn_is_counted_as_failed(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    before = await scrape()
    model.script(UpstreamError("The model server answered with an error (500)."))
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    after = await scrape()
    failed = {"name": "daybook_turns_total", "state": "failed"}
    assert value(after, **failed) - value(before, **failed) == 1


async def test_scan_blocks_are_counted(alice: Owner) -> None:
    before = sum(count for (name, _), count in (await scrape()).items() if name == "daybook_scan_blocks_total")
    with pytest.raises(BlockedByScan):
        await in_thread(memory_make, alice, "The password of the router is Tr0ub4dor-9x!k.")
    after = sum(count for (name, _), count in (await scrape()).items() if name == "daybook_scan_blocks_total")
    assert after - before == 1


@pytest.mark.any_database
async def test_recall_lanes_are_counted_by_outcome(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    for number in range(30):
        await in_thread(memory_make, alice, f"Fact {number}: likes harbour walks on day {number}. " + "Long. " * 20)
    before = value(await scrape(), "daybook_recall_lanes_total", lane="long_term", state="ok")
    model.script("Yes.")
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Do I like harbour walks?"})
    assert value(await scrape(), "daybook_recall_lanes_total", lane="long_term", state="ok") - before == 1


async def test_writes_and_reviews_of_all_processes_are_read_from_the_database(alice: Owner, session: Session) -> None:
    memory = await in_thread(memory_make, alice, "Likes tea.")
    await in_thread(review_make, memory.book, "scheduled", session=session, usage={"total_tokens": 42})
    samples = await scrape_uncached()
    assert value(samples, "daybook_recent_memory_writes", origin="user") == 1
    assert value(samples, "daybook_open_reviews", state="scheduled") == 1
    assert value(samples, "daybook_recent_reviews", state="scheduled") == 1
    assert value(samples, "daybook_recent_review_tokens") == 42
    assert value(samples, "daybook_database_up") == 1


async def test_an_open_websocket_is_counted_while_it_is_connected(alice: Owner) -> None:
    before = value(await scrape(), "daybook_open_websockets")
    plain = (await in_thread(key_make, alice))[1]
    headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {plain}".encode())]
    socket = WebsocketCommunicator(websocket_application, "/ws/notifications/", headers=headers)
    assert (await socket.connect(timeout=10))[0]
    assert value(await scrape(), "daybook_open_websockets") - before == 1
    await socket.disconnect()
    assert value(await scrape(), "daybook_open_websockets") == before


async def test_the_database_is_not_queried_at_every_scrape(alice: Owner) -> None:
    before = value(await scrape_uncached(), "daybook_recent_memory_writes", origin="user")
    await in_thread(memory_make, alice, "Likes tea.")
    assert value(await scrape(), "daybook_recent_memory_writes", origin="user") == before
    assert value(await scrape_uncached(), "daybook_recent_memory_writes", origin="user") == before + 1


async def test_labels_contain_no_owner_and_no_memory_text(alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea in Lisbon.")
    labels = {label for _, pairs in await scrape_uncached() for label, _ in pairs}
    values = " ".join(text for _, pairs in await scrape_uncached() for _, text in pairs)
    known = {"state", "kind", "lane", "rule", "provider", "origin", "le", "generation", "upstream", "model", "outcome"}
    assert labels <= known
    assert not re.search(r"alice|Lisbon", values)
    assert str(alice.pk) not in values
