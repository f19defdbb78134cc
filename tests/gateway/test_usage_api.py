"""GET /api/usage: totals by day, key, agent and model."""

from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest
import time_machine

from gateway.limits.spending import ModelUse, Spender, spending_store
from gateway.models import Agent, ApiKey, UsageDay
from gateway.services import configuration_save
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db
DAY = date(2026, 11, 20)


def usage_make(owner: Owner, day: date = DAY, **more: Any) -> None:
    fields = {"agent": "assistant", "model": "fine", "turns": 1, "requests": 2, "input_tokens": 70,
              "output_tokens": 30, "cached_tokens": 20, "cost": 0.5, **more}  # fmt: skip
    UsageDay.objects.create(owner=owner, day=day, **fields)


async def test_usage_by_day_is_listed_newest_first(alice: Owner, alice_api: Api, charlie: Owner) -> None:
    await in_thread(
        lambda: [usage_make(alice), usage_make(alice, model="other"), usage_make(alice, DAY + timedelta(days=1))]
    )
    await in_thread(usage_make, charlie)
    status, listed = await alice_api.get("/api/usage?from=2026-11-01&to=2026-11-30")
    assert (status, listed["object"], listed["by"], listed["has_more"]) == (200, "list", "day", False)
    assert [row["day"] for row in listed["data"]] == ["2026-11-21", "2026-11-20"]
    assert (listed["first_id"], listed["last_id"]) == ("2026-11-21", "2026-11-20")
    assert listed["data"][1] == {
        "id": "2026-11-20", "object": "usage", "day": "2026-11-20", "turns": 2, "requests": 4, "input_tokens": 140,
        "output_tokens": 60, "cached_tokens": 40, "unpriced_requests": 0, "cost": 1.0,
    }  # fmt: skip
    _, one = await alice_api.get("/api/usage?from=2026-11-21&to=2026-11-21")
    assert [row["turns"] for row in one["data"]] == [1]


async def test_usage_by_model_has_a_cost_only_with_a_price(alice: Owner, alice_api: Api) -> None:
    await in_thread(
        lambda: [usage_make(alice), usage_make(alice, model="free", unpriced_requests=2, cost=0, input_tokens=900)]
    )
    _, listed = await alice_api.get("/api/usage?from=2026-11-20&to=2026-11-20&by=model")
    assert [(row["model"], row["cost"]) for row in listed["data"]] == [("free", None), ("fine", 0.5)]


async def test_usage_by_key_and_by_agent(alice: Owner, alice_api: Api) -> None:
    own: ApiKey = await in_thread(ApiKey.objects.get)
    gone = UUID(int=7)
    await in_thread(
        lambda: [usage_make(alice, key_id=own.pk), usage_make(alice, key_id=gone), usage_make(alice, agent="coder")]
    )
    _, by_key = await alice_api.get("/api/usage?from=2026-11-20&to=2026-11-20&by=key")
    assert {(row["key"], row["name"]) for row in by_key["data"]} == {
        (str(own.pk), "test"), (str(gone), None), (None, None),
    }  # fmt: skip
    _, by_agent = await alice_api.get("/api/usage?from=2026-11-20&to=2026-11-20&by=agent")
    assert [(row["agent"], row["turns"]) for row in by_agent["data"]] == [("assistant", 2), ("coder", 1)]


async def test_a_limited_key_sees_the_usage_of_its_agents_only(alice: Owner, agent: Agent) -> None:
    _, plain = await in_thread(lambda: key_make(alice, agents=["assistant"]))
    await in_thread(
        lambda: [usage_make(alice), usage_make(alice, agent="coder"), usage_make(alice, agent="", model="vectors")]
    )
    _, listed = await Api(plain).get("/api/usage?from=2026-11-20&to=2026-11-20&by=agent")
    assert [row["agent"] for row in listed["data"]] == ["assistant"]


async def test_the_default_is_the_last_thirty_days(alice: Owner, alice_api: Api) -> None:
    await in_thread(lambda: [usage_make(alice, DAY - timedelta(days=before)) for before in (0, 29, 30)])
    with time_machine.travel("2026-11-20T23:59:00Z"):
        _, listed = await alice_api.get("/api/usage")
    assert (listed["from"], listed["to"], len(listed["data"])) == ("2026-10-22", "2026-11-20", 2)


@pytest.mark.parametrize(
    "query",
    [
        "from=2026-11-02&to=2026-11-01", "from=2025-01-01&to=2026-11-01", "from=yesterday", "to=2026-13-01",
        "by=owner", "from=0001-01-01", "from=%00",
    ],
)  # fmt: skip
async def test_invalid_parameters_are_refused(alice_api: Api, query: str) -> None:
    status, answer = await alice_api.get(f"/api/usage?{query}")
    assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_the_usage_of_a_turn_is_shown(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    await in_thread(configuration_save, "prices", {"scripted": {"input": 1.0, "output": 10.0}})
    model.script("Hello.")
    await ask(alice_api, "hi")
    _, listed = await alice_api.get("/api/usage?by=agent")
    (row,) = listed["data"]
    assert (row["turns"], row["requests"], row["input_tokens"], row["output_tokens"]) == (1, 1, 7, 3)
    assert row["cost"] == pytest.approx(0.000037)


def test_the_usage_of_all_models_of_an_answer_takes_one_statement(alice: Owner, django_assert_num_queries: Any) -> None:
    spender = Spender(owner_id=alice.pk, key_id=None, agent="assistant", prices={})
    usage = {"total_tokens": 12, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    other = ModelUse(requested="two", messages=[{"content": "x" * 40}], text="y" * 40)
    uses = [ModelUse(requested="one", usage=usage), other]
    for _ in range(2):
        with django_assert_num_queries(1):
            spending_store(spender, uses, turns=1)
    one, two = UsageDay.objects.order_by("model")
    assert (one.turns, one.requests, one.input_tokens, one.output_tokens, one.cached_tokens) == (0, 2, 20, 4, 8)
    assert (two.turns, two.input_tokens, two.output_tokens) == (2, 32, 20)


def test_nothing_is_stored_for_a_deleted_owner(alice: Owner) -> None:
    spending_store(Spender(owner_id=UUID(int=5), key_id=None, agent="a", prices={}), [ModelUse(requested="one")])
    assert not UsageDay.objects.exists()
