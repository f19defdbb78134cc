"""When a model server fails: what is retried, which model answers instead, what the client sees and what is stored."""

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from prometheus_client import generate_latest
from pytest_django.fixtures import Settings

from config.environment import ConfigurationError, load_environment
from config.upstreams import upstreams as environment_upstreams
from gateway import upstream as upstreams
from gateway.admin.transcript import transcript
from gateway.chat.labels import answered_words
from gateway.chat.transcript import turn_of_run
from gateway.metrics import registry
from gateway.models import Message, Run, Session
from gateway.upstream import EMBEDDINGS, ModelRequest, ModelTarget, OpenAIModel, ResilientModel
from gateway.upstream.attempts import outcomes
from gateway.upstream.breakers import Breaker
from gateway.upstream.kept import KeptFields, with_kept
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Memory, Owner
from reviews.runner import run_attempt
from tests.conftest import Api, free_port
from tests.factories import agent_make, memory_make
from tests.gateway.v1 import PATH, answer_text, ask, streamed_and_not
from tests.reviews.talk import attempt_make
from tests.upstreams.failing_servers import (
    DISCONNECTS,
    HANGS,
    OVERLOADED,
    REFUSES,
    UPSTREAMS,
    URL,
    Clock,
    Servers,
    Step,
    rate_limited,
    says,
)
from tests.upstreams.server import connect_to
from tests.waiting import eventually_async

ADD = ("add_memory", {"content": "Is vegetarian.", "target": "user"})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def servers(settings: Settings, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Servers]:
    """Scripted servers for the upstreams a and b. An unused step fails the test."""
    scripted = Servers()
    settings.DAYBOOK_UPSTREAMS = {
        name: {"url": URL.format(port=port), "key": "sk-upstream-123"} for name, port in UPSTREAMS.items()
    }
    connect_to(scripted, monkeypatch)
    model = ResilientModel(OpenAIModel(), sleep=clock.sleep, clock=clock, jitter=lambda most: most)
    upstreams.install(model)
    yield scripted
    assert not any(scripted.steps.values()), f"unused: {dict(scripted.steps)}"


@pytest.fixture
def two_models(db: None) -> None:
    """An agent with two models on two upstreams."""
    agent_make("assistant", model=["m-a", "m-b"], upstream=["a", "b"])


@pytest.fixture
def single_model(db: None) -> None:
    """An agent with one model."""
    agent_make("assistant", model="m-a", upstream="a")


async def last_run() -> Run:
    return await in_thread(lambda: Run.objects.latest("id"))


async def faults() -> list[tuple[str, str]]:
    """Return the attempts in the last run's trace as (upstream, fault)."""
    return [(entry["upstream"], entry["fault"]) for entry in (await last_run()).trace.get("attempts", [])]


FAULTS: dict[str, tuple[list[Step], list[str], list[float]]] = {
    "refuses": ([REFUSES] * 3, ["connect"] * 3, [0.5, 1.0]),
    "overloaded": ([OVERLOADED] * 3, ["overload"] * 3, [0.5, 1.0]),
    "overloaded, then available": ([OVERLOADED, says("From a.")], ["overload"], [0.5]),
    "rate-limited": ([rate_limited()] * 3, ["rate"] * 3, [0.5, 1.0]),
    "rate-limited, for a second": ([rate_limited("1")] * 3, ["rate"] * 3, [1.5, 2.0]),
    "rate-limited, in milliseconds": (
        [rate_limited("60", **{"Retry-After-Ms": "250"}), says("From a.")],
        ["rate"],
        [0.75],
    ),
    "rate-limited, for a minute": ([rate_limited("60")], ["rate"], []),
    "hangs": ([HANGS], ["silence"], []),
    "disconnects before any text": ([DISCONNECTS] * 3, ["network"] * 3, [0.5, 1.0]),
    "no credit": ([Step(status=429, code="insufficient_quota")], ["locked"], []),
    "wrong key": ([Step(status=401)], ["locked"], []),
    "no such model": ([Step(status=404)], ["locked"], []),
    "too long": ([Step(status=400, code="context_length_exceeded")], ["context"], []),
}


@pytest.mark.parametrize("fault", FAULTS)
@streamed_and_not
async def test_the_next_model_answers_after_the_safe_retries(
    servers: Servers, clock: Clock, two_models: None, alice_api: Api, settings: Settings, fault: str, streamed: bool
) -> None:
    steps, faults_seen, slept = FAULTS[fault]
    if fault == "hangs" and streamed:
        settings.DAYBOOK_UPSTREAMS["a"]["options"] = {"first_byte_seconds": 0.1}
    elif fault == "hangs":  # an answer that is not streamed begins when it is complete, and has half of the time
        settings.RUN_SECONDS = 0.6
    servers.script("a", *steps)
    by_b = len(faults_seen) == len(steps)
    if by_b:
        servers.script("b", says("From b."))
    assert await answer_text(alice_api, "Hi", streamed=streamed) == ("From b." if by_b else "From a.")
    assert await faults() == [("a", fault) for fault in faults_seen] + [("b" if by_b else "a", "")]
    assert clock.slept == slept
    run = await last_run()
    assert (run.state, run.model) == ("completed", "m-b" if by_b else "m-a")
    assert run.usage["total_tokens"] == 10


@streamed_and_not
@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        (Step(status=400), 400, "invalid_request"),
        (Step(status=422, code="odd"), 400, "odd"),
        (Step(status=400, code="content_filter"), 400, "content_filter"),
    ],
)
async def test_the_clients_own_errors_are_reported_without_retries(
    servers: Servers, clock: Clock, two_models: None, alice_api: Api, step: Step, status: int, code: str, streamed: bool
) -> None:
    servers.script("a", step)
    answer = await ask(alice_api, "Hi", stream=streamed)
    assert (answer.status, answer.code) == (status, code)
    assert (servers.order, clock.slept) == ("a", [])
    assert await faults() == [("a", "refusal")]


@pytest.mark.any_database
async def test_an_error_without_an_end_is_read_in_part(servers: Servers, two_models: None, alice_api: Api) -> None:
    servers.script("a", *[Step(status=500, endless=True)] * 3)
    servers.script("b", says("From b."))
    assert (await asyncio.wait_for(ask(alice_api, "Hi"), 20)).text == "From b."


def test_the_end_of_a_probe_changes_nothing_that_happened_since_it_began(clock: Clock) -> None:
    breaker = Breaker(clock)
    breaker.hold(5)
    clock.now += 6
    assert breaker.enter()
    breaker.begin()
    breaker.hold(300)  # another request was told to wait
    breaker.leave(ok=True, probe=True, begun=True)
    assert breaker.seconds() == 300


async def test_a_malformed_tool_call_is_retried_once(servers: Servers, two_models: None, alice_api: Api) -> None:
    malformed = Step(status=400, code="tool_use_failed")
    servers.script("a", malformed, malformed)
    answer = await ask(alice_api, "Hi")
    assert (answer.status, answer.code, servers.order) == (400, "tool_use_failed", "aa")


async def test_an_answer_that_has_begun_is_not_retried(servers: Servers, two_models: None, alice_api: Api) -> None:
    servers.script("a", says("Half of it", disconnects=True))
    status, body = await alice_api.stream(
        PATH, {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    )
    assert status == 200
    assert "Half of it" in body
    assert '"upstream_error"' in body
    assert servers.order == "a"
    run = await last_run()
    assert (run.state, run.text, run.trace["attempts"][0]["fault"]) == ("failed", "Half of it", "network")


async def test_an_aborted_answer_that_was_not_streamed_is_retried(
    servers: Servers, two_models: None, alice_api: Api
) -> None:
    servers.script("a", says("Half of it", disconnects=True), says("All of it"))
    assert await answer_text(alice_api, "Hi", streamed=False) == "All of it"
    assert servers.order == "aa"


@streamed_and_not
async def test_a_server_that_fails_between_two_steps_is_replaced_by_the_next(
    servers: Servers, two_models: None, alice_api: Api, streamed: bool
) -> None:
    servers.script("a", says("Noting it. ", calls=(ADD,), thought="They told me."), *[REFUSES] * 3)
    servers.script("b", Step(calls=(("list_memories", {}),)), says("Noted."))
    assert await answer_text(alice_api, "Hi", streamed=streamed) == "Noting it. Noted."
    assert servers.order == "aaaabb", "the model that answered continues"
    assert await in_thread(Memory.objects.count) == 1, "the tool ran once"
    sent = servers.requests[4][1]["messages"]
    assert '"ok": true' in sent[-1]["content"]
    assert "They told me." not in json.dumps(sent), "reasoning is sent only to its own model"
    run = await last_run()
    assert (run.state, run.text, run.model) == ("completed", "Noting it. Noted.", "m-b")
    stored = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("role", "kept")))
    kept = [(row["upstream"], row["model"]) for role, row in stored if role == "assistant" and row]
    assert kept == [("a", "m-a"), ("b", "m-b"), ("b", "m-b")]


async def test_a_run_that_waited_for_its_client_continues_with_the_same_upstream(
    servers: Servers, two_models: None, alice_api: Api
) -> None:
    servers.script("a", *[REFUSES] * 3)
    servers.script("b", Step(calls=(("lookup", {}),), thought="Hm."), says("Found."))
    lookup = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
    first = await ask(alice_api, "Hi", tools=[lookup])
    message = first.json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Yes."}
    last = await ask(alice_api, {"role": "user", "content": "Hi"}, message, result, tools=[lookup])
    assert (last.text, servers.order) == ("Found.", "aaabb")
    assert [fault for _, fault in await faults()] == ["connect"] * 3 + [""]


async def test_if_all_models_fail_the_client_gets_the_last_error(
    servers: Servers, two_models: None, alice_api: Api
) -> None:
    servers.script("a", *[OVERLOADED] * 3)
    servers.script("b", rate_limited("60"))
    answer = await ask(alice_api, "Hi")
    assert (answer.status, answer.code) == (429, "rate_limited")
    run = await last_run()
    assert (run.state, run.error["code"]) == ("failed", "rate_limited")
    assert await faults() == [("a", "overload")] * 3 + [("b", "rate")]
    visible = json.dumps(run.trace) + json.dumps(answer.json)
    assert not any(secret in visible for secret in ("127.0.0.1", "sk-upstream", "Hi"))


@pytest.mark.parametrize(("after", "slept", "order"), [("7", [7.5], "aa"), ("", [0.5], "aa"), ("60", [], "a")])
async def test_the_only_server_is_waited_for_unless_it_takes_long(
    servers: Servers, clock: Clock, single_model: None, alice_api: Api, after: str, slept: list[float], order: str
) -> None:
    servers.script("a", rate_limited(after), *[says("From a.")] * (len(order) - 1))
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    response = await alice_api.raw("POST", PATH, body)
    assert (response.status_code, response.headers.get("retry-after")) == ((200, None) if slept else (429, "60"))
    assert (clock.slept, servers.order) == (slept, order)


async def test_an_overload_with_a_retry_after_is_waited_for(
    servers: Servers, clock: Clock, single_model: None, alice_api: Api
) -> None:
    servers.script("a", Step(status=503, headers={"Retry-After": "3"}), says("From a."))
    assert await answer_text(alice_api, "Hi", streamed=True) == "From a."
    assert clock.slept == [3.5]


async def test_no_pause_exceeds_the_remaining_time(
    servers: Servers, clock: Clock, single_model: None, alice_api: Api, settings: Settings
) -> None:
    settings.RUN_SECONDS = 5
    servers.script("a", rate_limited("10"))
    assert (await ask(alice_api, "Hi")).status == 429
    assert clock.slept == []


async def test_a_silent_server_is_retried_only_if_nothing_is_paid_twice(
    servers: Servers, single_model: None, alice_api: Api, settings: Settings
) -> None:
    settings.DAYBOOK_UPSTREAMS["a"]["options"] = {"first_byte_seconds": 0.3}
    servers.script("a", HANGS, says("From a."))
    assert await answer_text(alice_api, "Hi", streamed=True) == "From a."
    settings.RUN_SECONDS = 0.1
    servers.script("a", HANGS)
    assert (await ask(alice_api, "Hi")).code == "upstream_timeout"


async def test_a_review_falls_back_to_the_next_model_and_stays_with_it(servers: Servers) -> None:
    servers.script("a", *[OVERLOADED] * 3)
    servers.script("b", Step(calls=(ADD,), thought="Worth keeping."), says("Done."))
    attempt = attempt_make(ModelTarget("a", "m-a", (ModelTarget("b", "m-b"),)))
    await run_attempt(attempt, asyncio.get_running_loop().time() + 60)
    assert (servers.order, attempt.outcome.model, len(attempt.book.writes)) == ("aaabb", "m-b", 1)
    assert "Worth keeping." in json.dumps(servers.requests[-1][1]["messages"])


async def test_a_client_task_uses_the_agents_fallbacks_but_not_its_parameters(
    servers: Servers, alice_api: Api, db: None
) -> None:
    await in_thread(agent_make, model=["m-a", "m-b"], upstream=["a", "b"], parameters={"temperature": 0.1})
    servers.script("a", rate_limited("60"))
    servers.script("b", says("A title"))
    answer = await ask(alice_api, "Hi", metadata={"task": "title_generation"})
    assert (answer.text, servers.requests[-1][1].get("temperature")) == ("A title", None)


async def test_a_rate_limited_model_is_skipped_for_as_long_as_it_said(
    servers: Servers, clock: Clock, two_models: None, alice_api: Api
) -> None:
    servers.script("a", rate_limited("60"), says("From a."))
    servers.script("b", says("From b."), says("From b."))
    for _ in range(2):
        assert await answer_text(alice_api, "Hi", streamed=True) == "From b."
    assert await faults() == [("a", "open"), ("b", "")]
    clock.now += 61
    assert await answer_text(alice_api, "Hi", streamed=True) == "From a."
    assert await faults() == []


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_probe_that_answers_lets_others_pass_before_its_end(
    servers: Servers, clock: Clock, goes_on: bool
) -> None:
    request = ModelRequest(
        upstream="a", model="m", fallbacks=(ModelTarget("b", "m"),), messages=({"role": "user", "content": "Hi"},)
    )
    servers.script("a", rate_limited("60"), says("Hello."), says("From a."))
    servers.script("b", says("From b."))
    await upstreams.model().complete(request)
    clock.now += 61
    async with aclosing(upstreams.model().stream(request)) as chunks:
        await anext(chunks)
        if not goes_on:  # its client leaves
            await chunks.aclose()
        await upstreams.model().complete(request)
    assert servers.order == "abaa"


async def test_the_next_model_answered_also_if_its_stream_was_left(servers: Servers) -> None:
    """Its price and its name count, not those of the model that failed."""
    request = ModelRequest(upstream="a", model="m-a", fallbacks=(ModelTarget("b", "m-b"),))
    servers.script("a", Step(status=404))
    servers.script("b", says("From b."))
    async with aclosing(upstreams.model().stream(request)) as chunks:
        await anext(chunks)
    assert request.answered_by == ("b", "m-b")


@pytest.mark.any_database
async def test_the_only_server_is_skipped_only_if_it_is_unreachable(
    servers: Servers, clock: Clock, single_model: None, alice_api: Api
) -> None:
    servers.script("a", *[OVERLOADED] * 9, *[REFUSES] * 15)
    for _ in range(3):
        assert (await ask(alice_api, "Hi")).status == 502
    assert len(servers.requests) == 9
    while servers.steps["a"]:
        last = await ask(alice_api, "Hi")
        if await faults() == [("a", "open")]:
            break
    assert (last.status, last.json["error"]["details"]) == (502, {"retry_after": 5})
    clock.now += 5
    servers.steps["a"].clear()
    servers.script("a", says("From a."), says("From a."))
    for streamed in (True, False):
        assert await answer_text(alice_api, "Hi", streamed=streamed) == "From a."


async def test_the_demo_model_is_never_a_fallback(alice_api: Api, db: None, settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {}
    await in_thread(agent_make, model=["m-a", "m-b"], upstream=["a", "default"])
    upstreams.install(ResilientModel(OpenAIModel()))
    answer = await ask(alice_api, "Hi")
    assert answer.status == 400
    assert "No upstream is called a" in answer.json["error"]["message"]


async def test_an_unconfigured_upstream_is_skipped(servers: Servers, alice_api: Api, db: None) -> None:
    await in_thread(agent_make, model="m", upstream=["gone", "b"])
    servers.script("b", says("From b."))
    assert await answer_text(alice_api, "Hi", streamed=False) == "From b."


async def test_kept_fields_are_not_sent_to_another_model_of_the_same_upstream(servers: Servers) -> None:
    servers.script("a", *[OVERLOADED] * 3, says("Fine."))
    kept = KeptFields(upstream="a", model="m-1", fields={"reasoning_content": "Hm."})
    messages = ({"role": "user", "content": "Hi"}, with_kept({"role": "assistant", "content": "Hello."}, kept))
    request = ModelRequest(upstream="a", model="m-1", fallbacks=(ModelTarget("a", "m-2"),), messages=messages)
    await upstreams.model().complete(request)
    reasoning = [body["messages"][1].get("reasoning_content") for _, body in servers.requests]
    assert reasoning == ["Hm.", "Hm.", "Hm.", None]
    assert request.answered_by == ("a", "m-2")


async def test_a_closed_port_is_a_connection_fault(settings: Settings, clock: Clock) -> None:
    settings.DAYBOOK_UPSTREAMS = {"a": {"url": f"http://127.0.0.1:{free_port()}/v1", "key": ""}}
    model = ResilientModel(OpenAIModel(), sleep=clock.sleep, clock=clock)
    request = ModelRequest(upstream="a", model="m", messages=({"role": "user", "content": "Hi"},))
    with pytest.raises(UpstreamError):
        await model.complete(request)
    await model.close()
    assert [entry["fault"] for entry in request.log.attempts] == ["connect"] * 3
    assert all(0 <= pause <= most for pause, most in zip(clock.slept, (0.5, 1.0), strict=True)), "pauses have jitter"


async def test_the_agents_parameters_are_defaults(servers: Servers, alice_api: Api, session: Session) -> None:
    parameters = {"temperature": 0.1, "top_p": 0.5, "max_tokens": 9, "seed": 1}
    await in_thread(agent_make, model="m-a", upstream="a", parameters=parameters)
    servers.script("a", says("One."), says("Two."))
    await ask(alice_api, "Hi", temperature=0.9, max_completion_tokens=5, seed=None)
    sent = servers.requests[-1][1]
    assert (sent["temperature"], sent["top_p"], sent["max_completion_tokens"]) == (0.9, 0.5, 5)
    assert not {"max_tokens", "seed"} & sent.keys()
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"})
    assert servers.requests[-1][1].items() >= parameters.items()


async def test_requests_beyond_an_upstreams_limit_wait_or_use_a_fallback(
    servers: Servers, two_models: None, alice_api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DAYBOOK_UPSTREAMS["a"]["at_once"] = 1
    servers.released = asyncio.Event()
    servers.script("a", says("One."), says("Two."))
    alone = ModelRequest(upstream="a", model="m", messages=({"role": "user", "content": "Hi"},))
    both = [asyncio.create_task(upstreams.model().complete(alone)) for _ in range(2)]
    await eventually_async(lambda: servers.requests, within=5)
    monkeypatch.setattr("gateway.upstream.attempts.MAX_WAIT_WITH_FALLBACK", 0.01)
    servers.script("b", says("From b."))
    elsewhere: Any = ModelRequest(upstream="a", model="m", fallbacks=(ModelTarget("b", "m"),), messages=alone.messages)
    third = asyncio.create_task(upstreams.model().complete(elsewhere))
    await eventually_async(lambda: servers.order == "ab", within=5)
    servers.released.set()
    assert [answer["choices"][0]["message"]["content"] for answer in await asyncio.gather(*both, third)] == [
        "One.", "Two.", "From b."
    ]  # fmt: skip
    assert elsewhere.log.attempts[0]["fault"] == "queue"
    assert servers.order == "aba", "the second waited for the first"


async def test_embeddings_do_not_wait_for_the_answers_of_an_upstream_with_a_limit(
    servers: Servers, settings: Settings
) -> None:
    settings.DAYBOOK_UPSTREAMS["a"]["at_once"] = 1
    servers.script("a", says("One."), Step(calls=(("data", {}),)))  # its name is all that is read of vectors
    async with aclosing(upstreams.model().stream(ModelRequest(upstream="a", model="m"))) as chunks:
        await anext(chunks)
        async with asyncio.timeout(5):
            await upstreams.model().embeddings(ModelRequest(upstream="a", model="e", path=EMBEDDINGS))
    assert servers.order == "aa"


@pytest.mark.any_database
async def test_the_chat_and_the_admin_show_which_model_answered(
    servers: Servers, two_models: None, alice: Owner, alice_api: Api
) -> None:
    servers.script("a", *[OVERLOADED] * 3)
    servers.script("b", says("From b."))
    created = await alice_api.post("/api/sessions", {"agent": "assistant"})
    status, turn = await alice_api.post(f"/api/sessions/{created[1]['id']}/turns", {"content": "Hi"})
    assert (status, "attempts" in turn, "trace" in turn) == (200, False, False)

    def shown() -> tuple[str, str, list[str]]:
        session = Session.objects.get()
        client = Client()
        client.force_login(alice.user)
        view = turn_of_run(session, Run.objects.get().pk, ZoneInfo("UTC"))
        notes = [line["note"] for line in transcript(session)["lines"]]
        return (
            view.answered if view else "",
            client.get(reverse("chat-session", args=[session.pk])).content.decode(),
            notes,
        )

    words, page, notes = await in_thread(shown)
    assert words == "Answered by m-b; m-a was overloaded."
    assert words in page
    assert notes == ["", words]


async def test_attempts_are_counted(servers: Servers, two_models: None, alice_api: Api) -> None:
    outcomes.clear()
    servers.script("a", rate_limited("60"))
    servers.script("b", says("From b."), says("Again."))
    await answer_text(alice_api, "Hi", streamed=True)
    await answer_text(alice_api, "Hi", streamed=False)
    served = generate_latest(registry).decode()
    for line in (
        'daybook_upstream_attempts_total{model="m-a",outcome="rate",upstream="a"} 1.0',
        'daybook_upstream_attempts_total{model="m-a",outcome="open",upstream="a"} 1.0',
        'daybook_upstream_attempts_total{model="m-b",outcome="ok",upstream="b"} 2.0',
        'daybook_upstream_open{model="m-a",upstream="a"} 1.0',
        'daybook_upstream_open{model="m-b",upstream="b"} 0.0',
    ):
        assert line in served


def entry(name: str, fault: str = "") -> dict[str, Any]:
    upstream, _, model = name.partition("/")
    return {"upstream": upstream, "model": model, "fault": fault, "seconds": 0.1}


@pytest.mark.parametrize(
    ("attempts", "words"),
    [
        ([], ""),
        ([entry("x/a", "overload"), entry("x/a")], ""),
        ([entry("x/a", "overload"), entry("x/b", "rate")], ""),
        ([entry("x/a", "connect"), entry("x/b")], "Answered by b; a could not be reached."),
        ([entry("x/a", "connect"), entry("y/a")], "Answered by y; x could not be reached."),
        (
            [entry("x/a", "rate"), entry("x/b", "silence"), entry("x/b", "new"), entry("x/c")],
            "Answered by c; a received too many requests, b failed.",
        ),
    ],
)
def test_answered_words(attempts: list[dict[str, Any]], words: str) -> None:
    assert answered_words(attempts) == words


def test_the_concurrency_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "DAYBOOK_UPSTREAM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_AT_ONCE", "4")
    monkeypatch.setenv("DAYBOOK_UPSTREAM_LOCAL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("DAYBOOK_UPSTREAM_LOCAL_AT_ONCE", "1")
    read = environment_upstreams(load_environment())
    assert {name: upstream["at_once"] for name, upstream in read.items()} == {"default": 4, "local": 1}
    monkeypatch.setenv("DAYBOOK_UPSTREAM_LOCAL_AT_ONCE", "many")
    with pytest.raises(ConfigurationError, match="_AT_ONCE is 'many'; allowed are numbers from 1 to 10000"):
        environment_upstreams(load_environment())


async def test_recalled_memories_are_placed_where_every_model_of_the_agent_accepts_them(
    servers: Servers, alice: Owner, alice_api: Api, settings: Settings
) -> None:
    settings.DAYBOOK_UPSTREAMS["b"]["dialect"] = "strict"
    await in_thread(agent_make, model="m", upstream=["a", "b"], frozen_char_limit=0, recall_role="user")
    await in_thread(memory_make, alice, "Likes green tea.")
    servers.script("a", rate_limited("60"))
    servers.script("b", says("Green tea."))
    await ask(alice_api, "Which tea do I like?")
    for _, body in servers.requests:
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert "Likes green tea." in body["messages"][-1]["content"]


async def test_a_probe_that_breaks_off_opens_the_breaker_for_longer(servers: Servers, clock: Clock) -> None:
    request = ModelRequest(
        upstream="a", model="m", fallbacks=(ModelTarget("b", "m"),), messages=({"role": "user", "content": "Hi"},)
    )

    async def ask_once() -> None:
        with contextlib.suppress(UpstreamError):
            async with aclosing(upstreams.model().stream(request)) as chunks:
                async for _ in chunks:
                    pass

    servers.script("a", *[says("Half", disconnects=True)] * 7)
    servers.script("b", says("From b."))
    for _ in range(5):
        await ask_once()
    clock.now += 6
    await ask_once()  # the probe breaks off
    clock.now += 6
    await ask_once()  # the rest is 10 seconds now
    assert servers.order == "aaaaaab"
    servers.steps["a"].clear()
