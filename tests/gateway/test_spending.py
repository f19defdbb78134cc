"""Spending of keys, spending limits, and rate-limit headers"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

import psycopg
import pytest
import time_machine
from django.conf import settings as configured
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.client import Pipeline

from gateway import upstream
from gateway.authentication import find_caller, forget_keys
from gateway.keys import key_hash
from gateway.limits import rates, under_way
from gateway.limits.rate_headers import TOKENS, Window, duration, rate_headers, record_window, windows
from gateway.limits.rates import count_request
from gateway.limits.spending import ModelUse, Spender, seconds_to_midnight, spending_store, spent_today
from gateway.models import Agent, ApiKey, Run, Session, UsageDay
from gateway.passthrough import PlainRequest, open_plain, plain_chunks, usage_in
from gateway.runs import closing
from gateway.services import configuration_save
from gateway.upstream.usage import usage_of
from memories.database.access import in_thread
from memories.errors import RateLimited
from memories.messaging import redis_clients
from memories.messaging.background import redis_calls
from memories.models import Owner
from tests.admin_rows import staff_client
from tests.conftest import Api
from tests.factories import agent_make, key_make
from tests.gateway.v1 import ask, stream
from tests.pages import client_of, html_of, text_of
from tests.scripted_model import Hangs, Says, ScriptedModel, calls
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db
USAGE = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
TASK = {"task": "title_generation"}


async def limited_api(owner: Owner, **limits: Any) -> Api:
    return Api((await in_thread(key_make, owner, **limits))[1])


async def totals() -> list[tuple[str, int, int, int, int]]:
    rows = await in_thread(lambda: list(UsageDay.objects.order_by("agent", "model")))
    return [(row.model, row.turns, row.requests, row.input_tokens, row.output_tokens) for row in rows]


def says_with_usage(text: str = "Hello.", **usage: int) -> Says:
    return Says(pieces=(text,), usage=USAGE | usage)


async def test_each_step_of_a_turn_is_counted_for_its_key(
    alice: Owner, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(calls(("get_memories", "{}")), "Hello.")
    await ask(alice_api, "hi")
    assert await totals() == [("scripted", 1, 2, 14, 6)]
    row = await in_thread(UsageDay.objects.get)
    own = await in_thread(ApiKey.objects.get)
    assert (row.owner_id, row.key_id, row.agent) == (alice.pk, own.pk, "assistant")
    assert (row.unpriced_requests, row.cost) == (2, 0)


async def test_requests_outside_turns_are_counted_too(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "vectors"
    model.script("A title", "Another", "A third", "A fourth")
    await ask(alice_api, "hi", metadata=TASK)
    await stream(alice_api, "hi", metadata=TASK)
    anthropic = {"model": "assistant", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]}
    assert (await alice_api.post("/v1/messages", anthropic))[0] == 200
    response = {"model": "assistant", "input": "hi", "metadata": TASK}
    assert (await alice_api.post("/v1/responses", response))[0] == 200
    assert (await alice_api.post("/v1/embeddings", {"model": "assistant", "input": "tea"}))[0] == 200
    rows = await totals()
    assert ("scripted", 0, 4, 28, 12) in rows
    assert [row[:3] for row in rows if row[0] != "scripted"] == [("vectors", 0, 1)]


async def test_the_usage_of_an_interrupted_step_is_estimated(
    alice_api: Api, agent: Agent, model: ScriptedModel, settings: Any
) -> None:
    settings.RUN_SECONDS = 0.2
    model.script(Hangs(("x" * 400,)))
    await alice_api.stream("/v1/chat/completions", _body("hi") | {"stream": True})
    ((_, turns, requests, input_tokens, output_tokens),) = await totals()
    assert (turns, requests, input_tokens > 0, output_tokens) == (0, 1, True, 100)


async def test_the_usage_of_a_run_that_was_given_up_is_counted_once(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = closing.close

    def close_too_late(*args: Any, **state: Any) -> int:
        Run.objects.update(lease_token=uuid4())
        return close(*args, **state)

    monkeypatch.setattr(closing, "close", close_too_late)
    model.script(says_with_usage())
    assert (await ask(alice_api, "Hi")).status == 409
    assert await totals() == [("scripted", 0, 1, 70, 30)]


async def test_a_commit_that_the_database_does_not_confirm_is_counted_once_and_stays(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = closing.close

    def close_unconfirmed(*args: Any, **state: Any) -> int:
        close(*args, **state)
        raise OperationalError("the server closed the connection") from psycopg.OperationalError()

    monkeypatch.setattr(closing, "close", close_unconfirmed)
    model.script(says_with_usage())
    assert (await ask(alice_api, "Hi")).status == 503
    assert await totals() == [("scripted", 1, 1, 70, 30)]
    run = await in_thread(Run.objects.get)
    assert (run.state, run.superseded, run.text) == ("completed", False, "Hello.")


async def test_cost_uses_the_price_at_the_time_of_the_request(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(says_with_usage(), says_with_usage())
    await ask(alice_api, "hi")
    await in_thread(configuration_save, "prices", {"scripted": {"input": 1.0, "output": 10.0}})
    await ask(alice_api, "hi there")
    row = await in_thread(UsageDay.objects.get)
    assert (row.requests, row.unpriced_requests) == (2, 1)
    assert row.cost == pytest.approx(0.00037)


async def test_a_run_that_waits_for_its_client_counts_as_one_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    model.script(calls(("look", "{}")), "Done.")
    first = await ask(alice_api, "hi", tools=[tool])
    message = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "seen"}
    second = await ask(alice_api, "hi", message, result, tools=[tool])
    assert (first.run, second.text) == (second.run, "Done.")
    assert await totals() == [("scripted", 1, 2, 14, 6)]


async def test_totals_outlive_their_session(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.")
    answer = await ask(alice_api, "hi")
    assert (await alice_api.call("DELETE", f"/api/sessions/{answer.session}"))[0] == 204
    assert not await in_thread(Run.objects.exists)
    assert await totals() == [("scripted", 1, 1, 7, 3)]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"tokens_per_day": 150}, "tokens_per_day"), ({"money_per_day": 0.0005}, "money_per_day")],
)
async def test_a_daily_limit_applies_until_midnight_utc(
    alice: Owner, agent: Agent, model: ScriptedModel, limits: dict[str, Any], reason: str
) -> None:
    await in_thread(configuration_save, "prices", {"scripted": {"input": 1.0, "output": 10.0}})
    api = await limited_api(alice, **limits)
    model.script(says_with_usage(), says_with_usage(), says_with_usage())
    noon = timezone.now().replace(hour=12, minute=0, second=0, microsecond=0)
    with time_machine.travel(noon, tick=False):
        assert (await ask(api, "one")).status == 200
        assert (await ask(api, "two")).status == 200  # passes the limit
        response = await api.raw("POST", "/v1/chat/completions", _body("three"))
        error = json.loads(response.content)["error"]
        assert (response.status_code, error["code"], error["type"]) == (429, "rate_limited", "rate_limit_error")
        assert (error["details"]["reason"], response["retry-after"]) == (reason, str(12 * 3600))
    with time_machine.travel(noon + timedelta(hours=12, seconds=1), tick=False):
        assert (await ask(api, "four")).status == 200


async def test_over_the_limit_every_model_endpoint_is_closed(
    alice: Owner, session: Session, model: ScriptedModel
) -> None:
    api = await limited_api(alice, tokens_per_day=50)
    model.script(says_with_usage())
    await ask(api, "one")
    user = {"messages": [{"role": "user", "content": "hi"}]}
    for path, body in (
        ("/v1/chat/completions", {"model": "assistant", **user}),
        ("/v1/chat/completions", {"model": "assistant", **user, "metadata": TASK}),
        ("/v1/chat/completions", {"model": "assistant", **user, "stream": True}),
        ("/v1/responses", {"model": "assistant", "input": "hi"}),
        ("/v1/responses", {"model": "assistant", "input": "hi", "metadata": TASK}),
        ("/v1/completions", {"model": "assistant", "prompt": "hi"}),
        ("/v1/embeddings", {"model": "default/vectors", "input": "hi"}),
        (f"/api/sessions/{session.pk}/turns", {"content": "hi"}),
    ):
        status, answer = await api.post(path, body)
        assert (status, answer["error"]["code"]) == (429, "rate_limited"), path
    for more in ({}, {"stream": True}):
        response = await api.raw("POST", "/v1/messages", {"model": "assistant", "max_tokens": 9, **user, **more})
        error = json.loads(response.content)
        assert (response.status_code, error["type"], error["error"]["type"]) == (429, "error", "rate_limit_error")
        assert "retry-after" in response
    assert (await api.get("/v1/models"))[0] == 200
    status, answer = await api.post("/v1/chat/completions", _body("/memory help"))
    assert status == 200, answer
    assert not under_way._slots


async def test_simultaneous_answers_per_key_are_limited(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    api = await limited_api(alice, streams_at_once=2)
    may_continue = asyncio.Event()

    class WaitingModel(ScriptedModel):
        async def complete(self, request: Any) -> dict[str, Any]:
            await may_continue.wait()
            return await super().complete(request)

    waiting = WaitingModel()
    waiting.script("One.", "Two.", "Four.")
    upstream.install(waiting)
    tasks = [asyncio.create_task(ask(api, f"hello {number}")) for number in range(2)]
    await eventually_async(lambda: len(next(iter(under_way._slots.values()), {})) == 2, within=5)
    refused = await ask(api, "three")
    assert (refused.status, refused.json["error"]["details"]["reason"]) == (429, "streams_at_once")
    may_continue.set()
    assert [answer.status for answer in await asyncio.gather(*tasks)] == [200, 200]
    assert (await ask(api, "four")).status == 200
    assert not under_way._slots


async def test_simultaneous_requests_near_the_limit_are_restricted(
    alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    """With 90% spent ten requests may run at once, with 99% only one."""
    key, plain = await in_thread(lambda: key_make(alice, tokens_per_day=1000))
    places = [await under_way.enter(key.pk) for _ in range(10)]
    await in_thread(_usage_make, alice, key, 899)
    model.script("Hello.", "Hello.")
    assert (await ask(Api(plain), "hi")).status == 200
    await in_thread(_usage_make, alice, key, 1)
    refused = await ask(Api(plain), "hi")
    assert (refused.status, refused.json["error"]["details"]["retry_after"]) == (429, 2)
    for place, _ in places:
        under_way.leave(key.pk, place)
    assert (await ask(Api(plain), "hi")).status == 200


async def test_a_request_that_fails_to_open_frees_its_place(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    api = await limited_api(alice, streams_at_once=1)
    for _ in range(2):
        assert (await ask(api, "hi", model="nobody")).status == 404
    assert (await api.post("/v1/embeddings", {"model": "nobody/x", "input": "hi"}))[0] == 404
    model.script(ValueError("broken"))
    assert (await ask(api, "hi")).status >= 500
    assert not under_way._slots


async def test_an_abandoned_place_expires(alice: Owner, settings: Any) -> None:
    settings.REDIS_URL = ""
    key, _ = await in_thread(key_make, alice)
    left, _ = await under_way.enter(key.pk)
    place, others = await under_way.enter(key.pk)
    assert others == 1
    under_way.leave(key.pk, place)
    under_way._slots[key.pk][left] = 0.0  # an expired place
    place, others = await under_way.enter(key.pk)
    assert others == 0
    under_way.leave(key.pk, place)


@pytest.mark.skipif(not configured.REDIS_URL, reason="there is no Redis")
async def test_with_redis_requests_of_all_processes_are_counted(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    key, _ = await in_thread(key_make, alice)
    elsewhere, _ = await under_way.enter(key.pk)
    places_elsewhere, here = under_way._slots, {}
    monkeypatch.setattr(under_way, "_slots", here)  # as in another process
    place, others = await under_way.enter(key.pk)
    assert others == 1
    under_way.leave(key.pk, place)
    monkeypatch.setattr(under_way, "_slots", places_elsewhere)
    under_way.leave(key.pk, elsewhere)
    monkeypatch.setattr(under_way, "_slots", here)
    place, others = await under_way.enter(key.pk)
    assert others == 0
    under_way.leave(key.pk, place)


@pytest.mark.skipif(not configured.REDIS_URL, reason="there is no Redis")
async def test_many_simultaneous_requests_are_all_counted_in_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """redis-py refuses the 101st connection, which must not count as a Redis that does not answer."""
    pools: list[BlockingConnectionPool] = []

    def waiting_pool() -> BlockingConnectionPool:
        pools.append(redis_clients.waiting_pool())
        return pools[-1]

    for module in (rates, under_way):
        monkeypatch.setattr(module, "waiting_pool", waiting_pool)
        monkeypatch.setattr(module, "_backoff_until", 0.0)
    monkeypatch.setattr(rates, "_limiters", WeakKeyDictionary())
    monkeypatch.setattr(under_way, "_clients", WeakKeyDictionary())
    name, key = str(uuid4()), uuid4()
    answers = await asyncio.gather(*(count_request(name, 5) for _ in range(250)), return_exceptions=True)
    slots = await asyncio.gather(*(under_way.enter(key) for _ in range(250)))
    for slot, _ in slots:
        under_way.leave(key, slot)
    for pool in pools:
        await pool.disconnect()
    assert sum(isinstance(answer, RateLimited) for answer in answers) == 245
    assert (rates._backoff_until, under_way._backoff_until) == (0.0, 0.0)


@pytest.mark.skipif(not configured.REDIS_URL, reason="there is no Redis")
async def test_a_place_that_redis_was_not_told_of_is_free(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is told after the answer. The next request of a client comes sooner, or Redis did not answer."""
    key, _ = await in_thread(key_make, alice)
    place, _ = await under_way.enter(key.pk)
    with monkeypatch.context() as redis_away:
        redis_away.setattr(redis_calls, "submit", lambda *call: None)
        under_way.leave(key.pk, place)
    place, others = await under_way.enter(key.pk)
    assert others == 0
    under_way.leave(key.pk, place)
    assert not under_way._slots
    await eventually_async(lambda: not under_way._released.get(key.pk), within=5)


@pytest.mark.skipif(not configured.REDIS_URL, reason="there is no Redis")
async def test_a_place_that_is_released_between_two_requests_is_free(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request has begun before the place was released, and reaches Redis after the first one."""
    key, _ = await in_thread(key_make, alice)
    execute, may_continue = Pipeline.execute, asyncio.Event()

    async def execute_later(pipeline: Pipeline) -> Any:
        monkeypatch.setattr(Pipeline, "execute", execute)
        await may_continue.wait()
        return await execute(pipeline)

    monkeypatch.setattr(redis_calls, "submit", lambda *call: None)
    monkeypatch.setattr(Pipeline, "execute", execute_later)
    second = asyncio.create_task(under_way.enter(key.pk))
    await eventually_async(lambda: Pipeline.execute is execute, within=5)
    first, _ = await under_way.enter(key.pk)
    under_way.leave(key.pk, first)
    may_continue.set()
    under_way.leave(key.pk, (await second)[0])
    place, others = await under_way.enter(key.pk)
    assert others == 0
    under_way.leave(key.pk, place)


async def test_without_a_reachable_redis_this_process_is_counted(
    alice: Owner, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(under_way, "_backoff_until", 0.0)
    monkeypatch.setattr(under_way, "_clients", WeakKeyDictionary())
    key, _ = await in_thread(key_make, alice)
    places = [await under_way.enter(key.pk) for _ in range(3)]
    assert [others for _, others in places] == [0, 1, 2]
    settings.REDIS_URL = ""
    for place, _ in places:
        under_way.leave(key.pk, place)
    assert not under_way._slots


@pytest.mark.django_db(transaction=True)
def test_concurrent_answers_lose_no_count(alice: Owner) -> None:
    spender = Spender(owner_id=alice.pk, key_id=UUID(int=3), agent="assistant", prices={})

    def store(_: int) -> None:
        try:
            spending_store(spender, [ModelUse(requested=name, usage=USAGE) for name in ("one", "two")], turns=1)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(store, range(40)))
    assert spent_today(UUID(int=3)) == (8000, 0.0)
    assert sorted(UsageDay.objects.values_list("model", "turns", "requests")) == [("one", 0, 40), ("two", 40, 40)]


def test_the_account_page_and_the_command_show_the_limits(alice: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    key_make(alice, tokens_per_day=5000, money_per_day=2.5, streams_at_once=3)
    words = "5000 tokens a day, 2.5 a day in money, 3 answers at once"
    assert words in text_of(html_of(client_of(alice), "/account/"))
    call_command("apikey", "list")
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limits", "stored"),
    [
        ({"tokens_per_day": "9", "money_per_day": "0.5", "streams_at_once": "1"}, (9, 0.5, 1)),
        ({"tokens_per_day": "", "money_per_day": ""}, (0, 0.0, 0)),
        ({"money_per_day": "-1"}, None),
        ({"money_per_day": "nan"}, None),
    ],
)
def test_limits_can_be_set_in_the_admin(alice: Owner, limits: dict[str, str], stored: Any) -> None:
    root = staff_client(superuser=True)
    form = {"owner": str(alice.pk), "name": "laptop", "requests_per_minute": "0", **limits}
    page = root.post("/admin/gateway/apikey/add/", form).content.decode()
    key = ApiKey.objects.first()
    assert (key and (key.tokens_per_day, key.money_per_day, key.streams_at_once)) == stored
    assert ("dbk_" in page) is (stored is not None)


async def test_responses_have_rate_limit_headers(alice: Owner, session: Session, model: ScriptedModel) -> None:
    api = await limited_api(alice, requests_per_minute=60, tokens_per_day=1000)
    model.script(says_with_usage(), "Hi.")
    await ask(api, "hi")
    for method, path, body in (
        ("POST", f"/api/sessions/{session.pk}/turns", {"content": "hi"}),
        ("GET", "/v1/models", None),
    ):
        response = await api.raw(method, path, body)
        assert response["x-ratelimit-limit-requests"] == "60"
        assert int(response["x-ratelimit-remaining-requests"]) < 60
        assert response["x-ratelimit-reset-requests"].endswith("s")
        assert response["x-ratelimit-limit-tokens"] == "1000"
        assert response["x-ratelimit-remaining-tokens"] in {"900", "890"}
        assert response["x-ratelimit-reset-tokens"].endswith("s")


async def test_the_messages_api_uses_anthropics_rate_limit_headers(
    alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    api = await limited_api(alice, requests_per_minute=60, tokens_per_day=1000)
    model.script("Hi.")
    body = {"model": "assistant", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    response = await api.raw("POST", "/v1/messages", body)
    assert response["anthropic-ratelimit-requests-limit"] == "60"
    assert response["anthropic-ratelimit-requests-remaining"] == "59"
    assert response["anthropic-ratelimit-tokens-limit"] == "1000"
    assert response["anthropic-ratelimit-tokens-reset"].endswith("T00:00:00Z")
    assert not [name for name in response.headers if name.lower().startswith("x-ratelimit")]


def test_reset_headers_are_correct_however_long_the_answer_takes() -> None:
    token = windows.set({})
    with time_machine.travel(datetime(2026, 5, 1, 23, 59, 30, 900_000, UTC), tick=False) as clock:
        record_window(TOKENS, Window.resetting_in(seconds_to_midnight(), limit=10, remaining=4))
        clock.shift(20.2)
        said = dict(rate_headers(anthropic=True)) | dict(rate_headers(anthropic=False))
    windows.reset(token)
    assert said["anthropic-ratelimit-tokens-reset"] == "2026-05-02T00:00:00Z"
    assert said["x-ratelimit-reset-tokens"] == "9s"


async def test_a_key_without_limits_gets_no_rate_limit_headers(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Hi.")
    response = await alice_api.raw("POST", "/v1/chat/completions", _body("hi"))
    assert not [name for name in response.headers if "ratelimit" in name.lower()]


def test_durations_are_formatted_like_openais() -> None:
    assert [duration(seconds) for seconds in (1, 59, 60, 360, 3600, 86399)] == [
        "1s", "59s", "1m0s", "6m0s", "1h0m0s", "23h59m59s",
    ]  # fmt: skip


async def test_limits_can_be_set_through_the_api(alice: Owner, alice_api: Api) -> None:
    limits = {"tokens_per_day": 5, "money_per_day": 0.5, "streams_at_once": 2}
    status, key = await alice_api.post("/api/keys", {"name": "laptop", **limits})
    assert (status, {name: key[name] for name in limits}) == (201, limits)
    _, unlimited = await alice_api.post("/api/keys", {"name": "phone"})
    assert repr(unlimited["money_per_day"]) == "0.0", "as lists show it"
    status, key = await alice_api.call("PATCH", f"/api/keys/{key['id']}", {"tokens_per_day": 0})
    assert (status, key["tokens_per_day"], key["streams_at_once"]) == (200, 0, 2)
    for wrong in ({"tokens_per_day": -1}, {"money_per_day": -0.1}, {"streams_at_once": "many"}):
        status, answer = await alice_api.call("PATCH", f"/api/keys/{key['id']}", wrong)
        assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_the_limit_of_a_trusted_key_covers_all_its_end_users(
    alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    await in_thread(agent_make, inject_memories=False)
    _, plain = await in_thread(lambda: key_make(alice, trusted=True, tokens_per_day=50))
    api = Api(plain)
    model.script(says_with_usage())
    assert (await ask(api, "hi", headers={"x_daybook_user": "one"})).status == 200
    forget_keys()
    assert (await ask(api, "hi", headers={"x_daybook_user": "two"})).status == 429


def _body(text: str) -> dict[str, Any]:
    return {"model": "assistant", "messages": [{"role": "user", "content": text}]}


def _usage_make(owner: Owner, key: ApiKey, tokens: int) -> None:
    UsageDay.objects.create(
        owner=owner, day=timezone.now().date(), key_id=key.pk, agent="a", model=str(tokens), input_tokens=tokens
    )


@pytest.mark.parametrize(
    ("answer", "usage"),
    [
        (b'{"data": [' + b"0.1, " * 9_000 + b'0], "usage": {"prompt_tokens": 5, "total_tokens": 5}}', 5),
        (b'{"usage": {"prompt_tokens": 6}, "data": [' + b"0.1, " * 9_000 + b"0]}", 6),
        (b'{"data": [], "usage": null}', None),
        (b'{"usage": null, "data": [{"index": 0, "prompt_tokens": 7}]}', None),
        (b'{"data": [], "usage": {"prompt_tokens": ', None),
        (b'{"usage": {"a": ' + b"[" * 1_900, None),
        (b"", None),
    ],
)
def test_the_usage_of_embeddings_is_found_without_parsing_the_vectors(answer: bytes, usage: int | None) -> None:
    assert usage_of({"usage": usage_in(answer)}).get("prompt_tokens") == usage


async def test_a_rate_limit_error_says_that_nothing_remains(alice: Owner, agent: Agent) -> None:
    api = await limited_api(alice, requests_per_minute=1)
    assert (await api.get("/v1/models"))[0] == 200
    response = await api.raw("GET", "/v1/models")
    assert (response.status_code, response["x-ratelimit-remaining-requests"]) == (429, "0")
    assert response["x-ratelimit-limit-requests"] == "1"


async def test_an_abandoned_plain_stream_counts_its_text(alice: Owner, agent: Agent, model: ScriptedModel) -> None:
    _, plain = await in_thread(lambda: key_make(alice, streams_at_once=1))
    caller = await in_thread(find_caller, key_hash(plain), "", "")
    model.script(Says(pieces=("x" * 400, "more"), usage=USAGE))
    messages = ({"role": "user", "content": "A title, please."},)
    request = PlainRequest(agent="assistant", messages=messages, parameters={})
    call = await open_plain(caller, request)
    async with aclosing(plain_chunks(call)) as chunks:
        await anext(chunks)
    ((_, turns, requests, input_tokens, output_tokens),) = await totals()
    assert (turns, requests, input_tokens > 0, output_tokens) == (0, 1, True, 100)
    assert not under_way._slots
