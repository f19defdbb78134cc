"""Refusals that name a parameter: answered by changing it, kept where that helped, passed on where it must be"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway.agents.model_choice import ModelTarget
from gateway.errors import RequestRefused
from gateway.model_call import ask as ask_model
from gateway.models import Agent, LearnedChange, Session
from gateway.services import agent_save, learned_changes_forget
from gateway.sweep import accounts_sweep
from gateway.upstream import ModelRequest, OpenAIModel
from gateway.upstream import cache as cache_module
from gateway.upstream.cache import UpstreamCache, upstream_cache
from gateway.upstream.learned import MAX_PER_MODEL, change_of
from gateway.upstream.refusals import changes_for
from memories.database.access import in_thread
from memories.errors import DomainError
from reviews.frozen import FrozenConversation
from reviews.runner import ReviewAttempt, run_attempt
from reviews.staged import StagedBook
from tests.conftest import Api
from tests.gateway.v1 import ask, stream
from tests.upstreams.refusals import CASES, HI, LOOKUP, PASSED_ON, Case, has, openai
from tests.upstreams.server import KEY, Objection, RuledServer, Step

Serve = Callable[[str], RuledServer]
SEED = Objection(says=openai("Unknown parameter: 'seed'.", "seed", "unknown_parameter"), holds=has("seed"))


@pytest.fixture
def agent(db: None) -> Agent:
    """An agent that adds nothing to what a client sends."""
    return agent_save("assistant", {})


@pytest.fixture
def server(serve: Serve, settings: Settings) -> RuledServer:
    found = serve("openai")
    # No dialect knows these refusals: nothing is dropped before it was refused.
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": KEY, "dialect": "vllm"}}
    return found


def request(**parameters: Any) -> ModelRequest:
    tools = tuple(parameters.pop("tools", ()))
    return ModelRequest(upstream="default", model="m", messages=(HI,), tools=tools, parameters=parameters)


async def said(asked: ModelRequest, *, streamed: bool, knows: UpstreamCache = upstream_cache) -> Any:
    """What a model says, by either way."""
    model = OpenAIModel(knows)
    try:
        if streamed:
            return [chunk async for chunk in model.stream(asked)]
        return await model.complete(asked)
    finally:
        await model.close()


def learned() -> list[str]:
    return sorted(str(change_of(row)) for row in LearnedChange.objects.all())


def ways(cases: dict[str, Case]) -> list[Any]:
    """Every case, streamed and whole."""
    found = []
    for name, case in cases.items():
        for streamed in (False, True) if case.streamed == "any" else (case.streamed,):
            found.append(pytest.param(case, streamed, id=f"{name}, {'streamed' if streamed else 'whole'}"))
    return found


@pytest.mark.parametrize(("case", "streamed"), ways(CASES))
async def test_a_refusal_is_answered_and_what_helped_is_kept(
    case: Case, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.objections.append(case.objection())
    server.script(Step(text="Hello."), Step(text="Again."))
    for turn, text in enumerate(("Hello.", "Again.")):
        if streamed:
            chunks = await stream(alice_api, *case.messages, **case.asked)
            got = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        else:
            got = (await ask(alice_api, *case.messages, **case.asked)).text
        assert got == text
        assert {name: server.bodies[-1].get(name) for name in case.sent} == case.sent
        assert len(server.bodies) == 2 + turn, "the second request is right at once"
    assert await in_thread(learned) == case.learned


BODY = {"model": "m", "messages": [{**HI, "name": "alice"}], "tools": [LOOKUP], "stream": True} | dict.fromkeys(
    ("seed", "top_k", "user", "temperature", "presence_penalty", "reasoning_effort", "stop", "max_tokens"), 1
)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("Malformed input request: #: extraneous key [seed] is not permitted, please reformat", ["seed is left out"]),
        ('Bad request: json: unknown field "top_k"', ["top_k is left out"]),
        ("Extra inputs are not permitted, field: 'top_k', value: 1", ["top_k is left out"]),
        ("unknown field: parameter 'seed' is not a valid field", ["seed is left out"]),
        ("Unsupported parameters: `top_k`, `presence_penalty`", ["top_k is left out", "presence_penalty is left out"]),
        ("Unsupported parameter: 'seed' with this model. Unsupported parameter: 'top_k' with this model.",
         ["seed is left out", "top_k is left out"]),
        ("Unrecognized request arguments supplied: top_k, presence_penalty",
         ["top_k is left out", "presence_penalty is left out"]),
        ("Additional properties are not allowed ('seed' was unexpected)", ["seed is left out"]),
        ("seed is not supported by this model", ["seed is left out"]),
        ("messages.0.user.name: Extra inputs are not permitted", ["messages.name is left out"]),
        ("body.seed: Extra inputs are not permitted", ["seed is left out"]),
        ("`temperature` may only be set to 0.5 when thinking is enabled.", ["temperature is set to 0.5"]),
        ("Unsupported parameter: 'seed'. Use 'random_seed' instead.", ["seed is sent as random_seed"]),
        ("Unsupported parameter: 'top_k'. Use 'presence_penalty' instead.", ["top_k is left out"]),
        ("Unsupported parameter: 'top_k'. Use 'temperature_scale' instead.", ["top_k is left out"]),
        ("The user messages must not be empty", []),
        ("This user is not allowed to use the model m", []),
        ("The seed must be an integer", []),
        ("temperature must be set to 0, 0.5 or 1", []),
        ("Unsupported content type in messages", []),
        ("tools.0.function.parameters: Extra inputs are not permitted", []),
        ("messages.0.content: Extra inputs are not permitted", []),
        ("'stop' and 'seed' are not supported", []),
    ],
)  # fmt: skip
def test_a_refusal_is_read_however_it_is_worded(words: str, changes: list[str]) -> None:
    refusal = RequestRefused("", server_message=words, status=400)
    assert [str(change) for change in changes_for(refusal, BODY)] == changes


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", PASSED_ON)
async def test_what_changes_the_meaning_of_an_answer_is_refused_to_the_client(
    name: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    asked, says = PASSED_ON[name]
    server.objections.append(Objection(says=says, holds=lambda body: True))
    answer = await ask(alice_api, "Hi", stream=streamed, **asked)
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    wants_no_stream = streamed and "stream" in str(says)
    assert len(server.bodies) == (2 if wants_no_stream else 1)
    assert {field: value for field, value in server.bodies[-1].items() if field in asked} == asked
    assert not await in_thread(learned)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_three_refusals_are_answered_and_the_fourth_is_the_client_s(
    streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    names = ["seed", "service_tier", "top_k", "min_p"]
    server.objections += [
        Objection(says=openai(f"Unknown parameter: '{name}'.", name, "unknown_parameter"), holds=has(name))
        for name in names
    ]
    answer = await ask(alice_api, "Hi", stream=streamed, **dict.fromkeys(names, 1))
    assert (answer.status, answer.json["error"]["param"]) == (400, "min_p")
    assert len(server.bodies) == 4
    assert not await in_thread(learned), "nothing helped"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_change_that_does_not_help_is_made_once_and_not_kept(
    streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.objections.append(Objection(says=SEED.says, holds=lambda body: True))
    answer = await ask(alice_api, "Hi", stream=streamed, seed=7)
    assert (answer.status, answer.code) == (400, "unknown_parameter")
    assert len(server.bodies) == 2
    assert not await in_thread(learned)


async def test_a_limit_that_no_name_makes_right_is_refused(server: RuledServer, alice_api: Api, agent: Agent) -> None:
    server.objections += [
        Objection(says=openai(f"Unsupported parameter: '{name}'", name, "unsupported_parameter"), holds=has(name))
        for name in ("max_tokens", "max_completion_tokens")
    ]
    answer = await ask(alice_api, "Hi", max_tokens=50)
    assert answer.status == 400
    assert [body.keys() & {"max_tokens", "max_completion_tokens"} for body in server.bodies] == [
        {"max_tokens"},
        {"max_completion_tokens"},
    ]
    assert not await in_thread(learned)


async def test_a_change_before_an_error_of_another_kind_is_not_kept(server: RuledServer, db: None) -> None:
    server.objections += [SEED, Objection(says=openai("Overloaded"), holds=lambda body: True, status=503)]
    with pytest.raises(DomainError) as fault:
        await said(request(seed=7), streamed=False)
    assert (fault.value.code, len(server.bodies)) == ("upstream_error", 2)
    assert not await in_thread(learned)


async def test_nothing_is_asked_again_once_something_was_said(server: RuledServer, db: None) -> None:
    told = '{"choices": [{"index": 0, "delta": {"content": "Well"}}]}'
    refused = '{"error": {"message": "Unknown parameter: seed", "param": "seed", "code": 400}}'
    server.answers(200, f"data: {told}\n\ndata: {refused}\n\n")
    with pytest.raises(RequestRefused):
        await said(request(seed=7), streamed=True)
    assert len(server.bodies) == 1


async def test_what_is_kept_says_when_why_and_for_how_long(server: RuledServer, alice_api: Api, agent: Agent) -> None:
    words = f"Unknown parameter: 'safety_identifier' with {KEY} at http://10.0.0.7/v1: 'alice@example.org'"
    server.objections.append(
        Objection(says=openai(words, "safety_identifier", "unknown_parameter"), holds=has("safety_identifier"))
    )
    server.script(Step(text="Hello."))
    with time_machine.travel("2026-11-22T10:00:00Z", tick=False):
        assert (await ask(alice_api, "Hi", safety_identifier="alice@example.org")).text == "Hello."
        now = timezone.now()
    row = await in_thread(LearnedChange.objects.get)
    assert (row.upstream, row.model, row.learned_at) == ("default", "gpt-4o-mini", now)
    assert row.expires_at - now == timedelta(days=30)
    assert row.words.startswith("Unknown parameter: 'safety_identifier' with ")
    assert not [secret for secret in (KEY, "10.0.0.7", "alice@example.org") if secret in row.words]


async def test_it_is_learned_of_one_model_of_one_upstream(server: RuledServer, settings: Settings, db: None) -> None:
    server.objections.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    settings.DAYBOOK_UPSTREAMS = {**settings.DAYBOOK_UPSTREAMS, "other": settings.DAYBOOK_UPSTREAMS["default"]}
    for upstream, model in (("default", "m"), ("default", "other"), ("other", "m")):
        asked = ModelRequest(upstream=upstream, model=model, messages=(HI,), parameters={"seed": 7})
        await said(asked, streamed=False)
    assert ["seed" in body for body in server.bodies] == [True, False] * 3


async def test_a_change_is_for_requests_like_the_refused_one(server: RuledServer, db: None) -> None:
    names = (
        "openai: tools want the effort none",
        "openai: an effort that a model does not have",
        "dashscope: no thinking in one piece",
    )
    server.objections += [CASES[name].objection() for name in names]
    server.script(*[Step(text="Hello.")] * 4)
    await said(request(tools=[LOOKUP], reasoning_effort="high"), streamed=True)
    await said(request(reasoning_effort="minimal"), streamed=False)
    assert len(await in_thread(learned)) == 3
    server.bodies.clear()
    await said(request(reasoning_effort="high"), streamed=True)
    await said(request(), streamed=False)
    sent = [(body.get("reasoning_effort"), body.get("enable_thinking"), body["stream"]) for body in server.bodies]
    assert sent == [("high", None, True), (None, None, True)]


@pytest.mark.parametrize(
    ("words", "asked", "name", "sent"),
    [
        ("Unsupported parameter: 'top_p' is not supported with 'reasoning_effort'.", {"top_p": 0.9}, "top_p", None),
        ("`top_k` may only be set to 1 when thinking is enabled.", {"top_k": 5, "enable_thinking": True}, "top_k", 1),
        ("`top_k` is deprecated if you enable thinking. Sorry.", {"top_k": 5, "enable_thinking": True}, "top_k", None),
    ],
)
async def test_what_another_parameter_is_the_reason_of_is_not_kept(
    words: str, asked: dict[str, Any], name: str, sent: Any, server: RuledServer, db: None
) -> None:
    server.objections.append(Objection(says=openai(words), holds=lambda body: body.get(name) == asked[name]))
    server.script(Step(text="Hello."))
    await said(request(reasoning_effort="high", **asked), streamed=False)
    assert server.bodies[-1].items() >= {"reasoning_effort": "high"}.items()
    assert server.bodies[-1].get(name) == sent
    assert not await in_thread(learned), "it holds for requests that have both"


async def test_a_name_of_somebody_is_left_out_and_not_kept(server: RuledServer, db: None) -> None:
    words = "Unsupported value: 'safety_identifier' does not support 'alice' with this model."
    server.objections.append(Objection(says=openai(words, "safety_identifier"), holds=has("safety_identifier")))
    server.script(Step(text="Hello."))
    await said(request(safety_identifier="alice"), streamed=False)
    assert not await in_thread(learned)


async def test_what_an_administrator_set_stays(server: RuledServer, settings: Settings, db: None) -> None:
    server.objections.append(SEED)
    settings.DAYBOOK_UPSTREAMS = {"default": {**settings.DAYBOOK_UPSTREAMS["default"], "options": {"set": {"seed": 1}}}}
    with pytest.raises(RequestRefused):
        await said(request(), streamed=False)
    assert len(server.bodies) == 1


async def test_without_a_key_no_word_of_a_refusal_is_hidden(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": ""}}
    monkeypatch.setattr("tests.upstreams.server.KEY", "")
    server.objections.append(CASES["openai: tools want the effort none"].objection())
    server.script(Step(text="Hello."))
    await said(request(tools=[LOOKUP]), streamed=True)
    assert server.bodies[-1]["reasoning_effort"] == "none"


@pytest.mark.parametrize("where", ["value", "name"])
async def test_nobody_words_what_is_learned_for_everybody(where: str, server: RuledServer, db: None) -> None:
    phrase = "low' set temperature to 0"
    asked: dict[str, Any] = {"verbosity": phrase} if where == "value" else {"verbosity": 1, phrase: 1}
    words = f"Unsupported value: 'verbosity' does not support '{phrase}' with this model."
    server.objections.append(
        Objection(says=openai(f"Sorry. {words}", "verbosity"), holds=lambda body: len(server.bodies) == 1)
    )
    server.objections.append(Objection(says=openai(words, "verbosity"), holds=has("verbosity")))
    server.script(Step(text="Hello."))
    await said(request(**asked), streamed=False)
    assert not [body for body in server.bodies if "temperature" in body]
    assert not [change for change in await in_thread(learned) if "temperature" in change]


async def test_of_two_changes_only_the_one_that_helped_is_kept(server: RuledServer, db: None) -> None:
    answers = iter(["id 7f3a", "id 99c1"])

    def refuses(body: dict[str, Any]) -> bool:
        words = f"Please set reasoning_effort to 'none'. Unsupported parameter: 'top_k' (request {next(answers, '')})"
        server.objections[0] = Objection(says=openai(words, "top_k"), holds=refuses)
        return "top_k" in body

    server.objections.append(Objection(says=openai("set reasoning_effort to 'none'"), holds=refuses))
    server.objections[0].holds({})
    server.script(Step(text="Hello."))
    await said(request(top_k=20), streamed=False)
    assert server.bodies[-1].keys() & {"top_k", "reasoning_effort"} == set()
    assert await in_thread(learned) == ["top_k is left out"]


async def test_a_later_refusal_corrects_what_was_learned(server: RuledServer, db: None) -> None:
    asks = openai("set reasoning_effort to 'none'", "reasoning_effort")
    server.objections.append(Objection(says=asks, holds=lambda body: body.get("reasoning_effort") != "none"))
    server.script(*[Step(text="Hello.")] * 3)
    await said(request(), streamed=False)
    server.objections[:] = [
        Objection(
            says=openai("Unknown parameter: 'reasoning_effort'", "reasoning_effort"), holds=has("reasoning_effort")
        )
    ]
    await said(request(), streamed=False)
    server.bodies.clear()
    await said(request(), streamed=False)
    assert ["reasoning_effort" in body for body in server.bodies] == [False]


async def test_it_expires(server: RuledServer, db: None) -> None:
    server.objections.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await said(request(seed=7), streamed=False)
        clock.shift(timedelta(days=30, seconds=-1))
        await said(request(seed=7), streamed=False)
        assert len(server.bodies) == 3
        clock.shift(timedelta(seconds=1))
        await in_thread(accounts_sweep)
        assert not await in_thread(LearnedChange.objects.exists)
        await said(request(seed=7), streamed=False)
        assert len(server.bodies) == 5, "it is learned again"
        assert await in_thread(learned) == ["seed is left out"]


async def test_other_processes_learn_it_and_forget_it_within_a_minute(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    settings.UPSTREAM_READ_SECONDS = 30
    here, there = UpstreamCache(), UpstreamCache()
    server.objections.append(SEED)
    server.script(*[Step(text="Hello.")] * 5)
    await said(request(), streamed=False, knows=there)  # it has looked, and found nothing
    await said(request(seed=7), streamed=False, knows=here)
    clock[0] += 31
    server.bodies.clear()
    await said(request(seed=7), streamed=False, knows=there)
    assert ["seed" in body for body in server.bodies] == [False]
    await in_thread(lambda: learned_changes_forget(LearnedChange.objects.all()))
    server.objections.clear()
    clock[0] += 31
    await said(request(seed=7), streamed=False, knows=there)
    assert ["seed" in body for body in server.bodies] == [False, True]


async def test_a_request_asks_the_database_for_nothing(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    settings.UPSTREAM_READ_SECONDS = 30
    later: list[Callable[[], object]] = []
    monkeypatch.setattr(cache_module, "write_later", later.append)
    server.objections.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    for _ in range(3):
        await said(request(seed=7), streamed=False)
    assert len(later) == 2, "one look, and one thing learned"
    assert not await in_thread(learned)
    await in_thread(later[1])
    assert await in_thread(learned) == ["seed is left out"]


async def test_a_database_that_is_busy_fails_no_turn_and_gets_it_later(
    server: RuledServer, alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(found: object) -> None:
        raise OperationalError("database is locked")

    server.objections.append(SEED)
    server.script(Step(text="Hello."), Step(text="Again."))
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "daybook.upstreams"):
        patch.setattr(cache_module, "learned_store", busy)
        assert (await ask(alice_api, "Hi", seed=7)).text == "Hello."
        assert "not stored or read: OperationalError" in caplog.text
        assert (await ask(alice_api, "Hi", seed=7)).text == "Again."
    assert len(server.bodies) == 3, "this process knows it"
    assert not await in_thread(learned)
    await in_thread(upstream_cache.sync)
    assert await in_thread(learned) == ["seed is left out"]


async def test_of_a_model_the_latest_changes_are_kept(server: RuledServer, db: None) -> None:
    names = [f"x_{number}" for number in range(MAX_PER_MODEL + 5)]
    server.objections += [
        Objection(says=openai(f"Unknown parameter: '{name}'", name, "unknown_parameter"), holds=has(name))
        for name in names
    ]
    server.script(*[Step(text="Hello.")] * len(names))
    for name in names:
        await said(request(**{name: 1}), streamed=False)
    assert await in_thread(learned) == sorted(f"{name} is left out" for name in names[5:])


@pytest.mark.parametrize("asks", ["review", "consolidation", "native"])
async def test_everything_that_asks_a_model_learns(
    asks: str, server: RuledServer, alice_api: Api, session: Session
) -> None:
    effort = openai("To use tools set reasoning_effort to 'none'.", "reasoning_effort")
    server.objections.append(Objection(says=effort, holds=lambda body: body.get("reasoning_effort") != "none"))
    server.script(Step(text="Done."))
    if asks == "review":
        told = (HI, {"role": "assistant", "content": "Good."})
        attempt = ReviewAttempt(
            book=StagedBook.of([], {}, max_writes=3),
            conversation=FrozenConversation(messages=told, has_news=True),
            target=ModelTarget("default", "m"),
        )
        await run_attempt(attempt, asyncio.get_running_loop().time() + 60)
    elif asks == "consolidation":
        assert (await ask_model(ModelTarget("default", "m"), (HI,), seconds=60)).text == "Done."
    else:
        assert (await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"}))[0] == 200
    assert len(server.bodies) == 2
    assert [change.partition(" where ")[0] for change in await in_thread(learned)] == [
        'reasoning_effort is set to "none"'
    ]
