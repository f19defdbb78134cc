"""Refusals that name a parameter: worked around by changing it, learned if that helped, forwarded if necessary."""

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

from gateway.errors import RequestRefused
from gateway.models import Agent, LearnedChange, Session
from gateway.services import agent_save, learned_changes_forget
from gateway.steps import ask as ask_model
from gateway.sweep import accounts_sweep
from gateway.upstream import ModelRequest, OpenAIModel
from gateway.upstream import cache as cache_module
from gateway.upstream.cache import MAX_PER_MODEL, UpstreamCache, upstream_cache
from gateway.upstream.refusals import changes_for
from gateway.upstream.request import ModelTarget
from memories.database.access import in_thread
from memories.errors import DomainError
from reviews.runner import run_attempt
from tests.conftest import Api
from tests.gateway.v1 import answer_text, ask, streamed_and_not
from tests.reviews.talk import attempt_make
from tests.upstreams.refusals import CASES, FORWARDED, HI, LOOKUP, Case, has, openai
from tests.upstreams.server import KEY, Refusal, RuledServer, Step, learned_changes

pytestmark = pytest.mark.usefixtures("undescribed_server")


def unknown(name: str) -> Refusal:
    """Return the refusal of a parameter that the server does not know."""
    return Refusal(body=openai(f"Unknown parameter: '{name}'.", name, "unknown_parameter"), when=has(name))


SEED = unknown("seed")


@pytest.fixture
def agent(db: None) -> Agent:
    """An agent that adds nothing to the client's requests."""
    return agent_save("assistant", {})


def request(**parameters: Any) -> ModelRequest:
    tools = tuple(parameters.pop("tools", ()))
    return ModelRequest(upstream="default", model="m", messages=(HI,), tools=tools, parameters=parameters)


async def call_model(asked: ModelRequest, *, streamed: bool, knows: UpstreamCache = upstream_cache) -> Any:
    """Call the model, streaming or not; return the answer."""
    model = OpenAIModel(knows)
    try:
        if streamed:
            return [chunk async for chunk in model.stream(asked)]
        return await model.complete(asked)
    finally:
        await model.close()


def each_way(cases: dict[str, Case]) -> list[Any]:
    """Return a parameter for every case, streamed and not."""
    params = []
    for name, case in cases.items():
        for streamed in (False, True) if case.streamed == "either" else (case.streamed,):
            params.append(pytest.param(case, streamed, id=f"{name}, {'streamed' if streamed else 'whole'}"))
    return params


@pytest.mark.parametrize(("case", "streamed"), each_way(CASES))
async def test_a_refusal_is_worked_around_and_the_change_is_learned(
    case: Case, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.refusals.append(case.scripted())
    server.script(Step(text="Hello."), Step(text="Again."))
    for turn, text in enumerate(("Hello.", "Again.")):
        assert await answer_text(alice_api, *case.messages, streamed=streamed, **case.parameters) == text
        assert {name: server.bodies[-1].get(name) for name in case.sent} == case.sent
        assert len(server.bodies) == 2 + turn, "the second turn needs no second attempt"
    assert await in_thread(learned_changes) == case.learned


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
def test_refusals_are_understood_in_many_wordings(words: str, changes: list[str]) -> None:
    refusal = RequestRefused("", server_message=words, status=400)
    assert [str(change) for change in changes_for(refusal, BODY)] == changes


@streamed_and_not
@pytest.mark.parametrize("name", FORWARDED)
async def test_a_refusal_is_forwarded_if_a_change_would_alter_the_answer(
    name: str, streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    asked, body = FORWARDED[name]
    server.refusals.append(Refusal(body=body, when=lambda body: True))
    answer = await ask(alice_api, "Hi", stream=streamed, **asked)
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    wants_no_stream = streamed and "stream" in str(body)
    assert len(server.bodies) == (2 if wants_no_stream else 1)
    assert {field: value for field, value in server.bodies[-1].items() if field in asked} == asked
    assert not await in_thread(learned_changes)


@streamed_and_not
async def test_three_refusals_are_worked_around_and_the_fourth_is_forwarded(
    streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    names = ["seed", "service_tier", "top_k", "min_p"]
    server.refusals += map(unknown, names)
    answer = await ask(alice_api, "Hi", stream=streamed, **dict.fromkeys(names, 1))
    assert (answer.status, answer.json["error"]["param"]) == (400, "min_p")
    assert len(server.bodies) == 4
    assert not await in_thread(learned_changes), "no change helped"


@streamed_and_not
async def test_a_change_that_does_not_help_is_tried_once_and_not_learned(
    streamed: bool, server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.refusals.append(Refusal(body=SEED.body, when=lambda body: True))
    answer = await ask(alice_api, "Hi", stream=streamed, seed=7)
    assert (answer.status, answer.code) == (400, "unknown_parameter")
    assert len(server.bodies) == 2
    assert not await in_thread(learned_changes)


async def test_a_token_limit_refused_under_both_names_is_an_error(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    server.refusals += [
        Refusal(body=openai(f"Unsupported parameter: '{name}'", name, "unsupported_parameter"), when=has(name))
        for name in ("max_tokens", "max_completion_tokens")
    ]
    answer = await ask(alice_api, "Hi", max_tokens=50)
    assert answer.status == 400
    assert [body.keys() & {"max_tokens", "max_completion_tokens"} for body in server.bodies] == [
        {"max_tokens"},
        {"max_completion_tokens"},
    ]
    assert not await in_thread(learned_changes)


async def test_a_change_followed_by_another_kind_of_error_is_not_learned(server: RuledServer, db: None) -> None:
    server.refusals += [SEED, Refusal(body=openai("Overloaded"), when=lambda body: True, status=503)]
    with pytest.raises(DomainError) as fault:
        await call_model(request(seed=7), streamed=False)
    assert (fault.value.code, len(server.bodies)) == ("upstream_error", 2)
    assert not await in_thread(learned_changes)


async def test_nothing_is_retried_once_the_answer_has_begun(server: RuledServer, db: None) -> None:
    text_chunk = '{"choices": [{"index": 0, "delta": {"content": "Well"}}]}'
    refused = '{"error": {"message": "Unknown parameter: seed", "param": "seed", "code": 400}}'
    server.always_answer(200, f"data: {text_chunk}\n\ndata: {refused}\n\n")
    with pytest.raises(RequestRefused):
        await call_model(request(seed=7), streamed=True)
    assert len(server.bodies) == 1


async def test_a_learned_change_records_when_why_and_for_how_long(
    server: RuledServer, alice_api: Api, agent: Agent
) -> None:
    words = f"Unknown parameter: 'safety_identifier' with {KEY} at http://10.0.0.7/v1: 'alice@example.org'"
    server.refusals.append(
        Refusal(body=openai(words, "safety_identifier", "unknown_parameter"), when=has("safety_identifier"))
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


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [("'input': {text!r}", ""), ("'input': {{'content': 'She likes tuna.'}}", ""), ('given "{text:.40}…"', 'given "')],
)
async def test_what_is_learned_does_not_quote_the_conversation(
    quoted: str, shown: str, alice_api: Api, agent: Agent, server: RuledServer
) -> None:
    """vLLM's messages contain the input that they are about. It would outlive an account that is deleted."""
    text = "My cat is called Tibbles.\nShe likes tuna."
    start = "[{'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', "
    words = f"{start}{quoted.format(text=text)}"
    server.refusals.append(Refusal(body=openai(words, "seed"), when=has("seed")))
    server.script(Step(text="Hello."))
    assert (await ask(alice_api, text, seed=7)).text == "Hello."
    row = await in_thread(LearnedChange.objects.get)
    assert row.words == f"{start}{shown}…"


async def test_a_change_is_learned_per_model_and_upstream(server: RuledServer, settings: Settings, db: None) -> None:
    server.refusals.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    settings.DAYBOOK_UPSTREAMS = {**settings.DAYBOOK_UPSTREAMS, "other": settings.DAYBOOK_UPSTREAMS["default"]}
    for upstream, model in (("default", "m"), ("default", "other"), ("other", "m")):
        asked = ModelRequest(upstream=upstream, model=model, messages=(HI,), parameters={"seed": 7})
        await call_model(asked, streamed=False)
    assert ["seed" in body for body in server.bodies] == [True, False] * 3


async def test_a_change_applies_only_to_requests_like_the_refused_one(server: RuledServer, db: None) -> None:
    names = (
        "openai: tools want the effort none",
        "openai: an effort that a model does not have",
        "dashscope: no thinking in one piece",
    )
    server.refusals += [CASES[name].scripted() for name in names]
    server.script(*[Step(text="Hello.")] * 4)
    await call_model(request(tools=[LOOKUP], reasoning_effort="high"), streamed=True)
    await call_model(request(reasoning_effort="minimal"), streamed=False)
    assert len(await in_thread(learned_changes)) == 3
    server.bodies.clear()
    await call_model(request(reasoning_effort="high"), streamed=True)
    await call_model(request(), streamed=False)
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
async def test_a_change_that_depends_on_another_parameter_is_not_learned(
    words: str, asked: dict[str, Any], name: str, sent: Any, server: RuledServer, db: None
) -> None:
    server.refusals.append(Refusal(body=openai(words), when=lambda body: body.get(name) == asked[name]))
    server.script(Step(text="Hello."))
    await call_model(request(reasoning_effort="high", **asked), streamed=False)
    assert server.bodies[-1].items() >= {"reasoning_effort": "high"}.items()
    assert server.bodies[-1].get(name) == sent
    assert not await in_thread(learned_changes), "it depends on another parameter"


async def test_a_change_that_depends_on_a_persons_name_is_not_learned(server: RuledServer, db: None) -> None:
    words = "Unsupported value: 'safety_identifier' does not support 'alice' with this model."
    server.refusals.append(Refusal(body=openai(words, "safety_identifier"), when=has("safety_identifier")))
    server.script(Step(text="Hello."))
    await call_model(request(safety_identifier="alice"), streamed=False)
    assert not await in_thread(learned_changes)


async def test_a_parameter_set_by_an_administrator_is_not_changed(
    server: RuledServer, settings: Settings, db: None
) -> None:
    server.refusals.append(SEED)
    settings.DAYBOOK_UPSTREAMS = {"default": {**settings.DAYBOOK_UPSTREAMS["default"], "options": {"set": {"seed": 1}}}}
    with pytest.raises(RequestRefused):
        await call_model(request(), streamed=False)
    assert len(server.bodies) == 1


async def test_without_a_key_no_part_of_a_refusal_is_masked(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": ""}}
    monkeypatch.setattr("tests.upstreams.server.KEY", "")
    server.refusals.append(CASES["openai: tools want the effort none"].scripted())
    server.script(Step(text="Hello."))
    await call_model(request(tools=[LOOKUP]), streamed=True)
    assert server.bodies[-1]["reasoning_effort"] == "none"


@pytest.mark.parametrize("where", ["value", "name"])
async def test_a_persons_text_in_a_refusal_teaches_nothing(where: str, server: RuledServer, db: None) -> None:
    phrase = "low' set temperature to 0"
    asked: dict[str, Any] = {"verbosity": phrase} if where == "value" else {"verbosity": 1, phrase: 1}
    words = f"Unsupported value: 'verbosity' does not support '{phrase}' with this model."
    server.refusals.append(
        Refusal(body=openai(f"Sorry. {words}", "verbosity"), when=lambda body: len(server.bodies) == 1)
    )
    server.refusals.append(Refusal(body=openai(words, "verbosity"), when=has("verbosity")))
    server.script(Step(text="Hello."))
    await call_model(request(**asked), streamed=False)
    assert not [body for body in server.bodies if "temperature" in body]
    assert not [change for change in await in_thread(learned_changes) if "temperature" in change]


async def test_of_two_changes_only_the_helpful_one_is_learned(server: RuledServer, db: None) -> None:
    answers = iter(["id 7f3a", "id 99c1"])

    def refuses(body: dict[str, Any]) -> bool:
        words = f"Please set reasoning_effort to 'none'. Unsupported parameter: 'top_k' (request {next(answers, '')})"
        server.refusals[0] = Refusal(body=openai(words, "top_k"), when=refuses)
        return "top_k" in body

    server.refusals.append(Refusal(body=openai("set reasoning_effort to 'none'"), when=refuses))
    server.refusals[0].when({})
    server.script(Step(text="Hello."))
    await call_model(request(top_k=20), streamed=False)
    assert server.bodies[-1].keys() & {"top_k", "reasoning_effort"} == set()
    assert await in_thread(learned_changes) == ["top_k is left out"]


async def test_a_later_refusal_corrects_what_was_learned(server: RuledServer, db: None) -> None:
    message = openai("set reasoning_effort to 'none'", "reasoning_effort")
    server.refusals.append(Refusal(body=message, when=lambda body: body.get("reasoning_effort") != "none"))
    server.script(*[Step(text="Hello.")] * 3)
    await call_model(request(), streamed=False)
    server.refusals[:] = [unknown("reasoning_effort")]
    await call_model(request(), streamed=False)
    server.bodies.clear()
    await call_model(request(), streamed=False)
    assert ["reasoning_effort" in body for body in server.bodies] == [False]


async def test_a_learned_change_expires(server: RuledServer, db: None) -> None:
    server.refusals.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await call_model(request(seed=7), streamed=False)
        clock.shift(timedelta(days=30, seconds=-1))
        await call_model(request(seed=7), streamed=False)
        assert len(server.bodies) == 3
        clock.shift(timedelta(seconds=1))
        await in_thread(accounts_sweep)
        assert not await in_thread(LearnedChange.objects.exists)
        await call_model(request(seed=7), streamed=False)
        assert len(server.bodies) == 5, "it is learned again"
        assert await in_thread(learned_changes) == ["seed is left out"]


async def test_other_processes_learn_and_forget_a_change_within_a_minute(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    settings.UPSTREAM_READ_SECONDS = 30
    here, there = UpstreamCache(), UpstreamCache()
    server.refusals.append(SEED)
    server.script(*[Step(text="Hello.")] * 5)
    await call_model(request(), streamed=False, knows=there)  # it reads the table, which is empty
    await call_model(request(seed=7), streamed=False, knows=here)
    clock[0] += 31
    server.bodies.clear()
    await call_model(request(seed=7), streamed=False, knows=there)
    assert ["seed" in body for body in server.bodies] == [False]
    await in_thread(lambda: learned_changes_forget(LearnedChange.objects.all()))
    server.refusals.clear()
    clock[0] += 31
    await call_model(request(seed=7), streamed=False, knows=there)
    assert ["seed" in body for body in server.bodies] == [False, True]


async def test_a_request_does_not_query_the_database(
    server: RuledServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    settings.UPSTREAM_READ_SECONDS = 30
    later: list[Callable[[], object]] = []
    monkeypatch.setattr(cache_module, "write_later", later.append)
    server.refusals.append(SEED)
    server.script(*[Step(text="Hello.")] * 3)
    for _ in range(3):
        await call_model(request(seed=7), streamed=False)
    assert len(later) == 2, "one read and one learned change"
    assert not await in_thread(learned_changes)
    await in_thread(later[1])
    assert await in_thread(learned_changes) == ["seed is left out"]


async def test_a_busy_database_fails_no_turn_and_gets_the_change_later(
    server: RuledServer, alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(found: object) -> None:
        raise OperationalError("database is locked")

    server.refusals.append(SEED)
    server.script(Step(text="Hello."), Step(text="Again."))
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "daybook.upstreams"):
        patch.setattr(cache_module, "learned_store", busy)
        assert (await ask(alice_api, "Hi", seed=7)).text == "Hello."
        assert "not stored or read: OperationalError" in caplog.text
        assert (await ask(alice_api, "Hi", seed=7)).text == "Again."
    assert len(server.bodies) == 3, "this process has learned it"
    assert not await in_thread(learned_changes)
    await in_thread(upstream_cache.sync)
    assert await in_thread(learned_changes) == ["seed is left out"]


@pytest.mark.any_database
async def test_only_the_latest_changes_of_a_model_are_kept(server: RuledServer, db: None) -> None:
    names = [f"x_{number}" for number in range(MAX_PER_MODEL + 5)]
    server.refusals += map(unknown, names)
    server.script(*[Step(text="Hello.")] * len(names))
    for name in names:
        await call_model(request(**{name: 1}), streamed=False)
    assert await in_thread(learned_changes) == sorted(f"{name} is left out" for name in names[5:])


@pytest.mark.parametrize("caller", ["review", "consolidation", "native"])
async def test_every_kind_of_model_call_learns(
    caller: str, server: RuledServer, alice_api: Api, session: Session
) -> None:
    effort = openai("To use tools set reasoning_effort to 'none'.", "reasoning_effort")
    server.refusals.append(Refusal(body=effort, when=lambda body: body.get("reasoning_effort") != "none"))
    server.script(Step(text="Done."))
    if caller == "review":
        attempt = attempt_make(ModelTarget("default", "m"))
        await run_attempt(attempt, asyncio.get_running_loop().time() + 60)
    elif caller == "consolidation":
        assert (await ask_model(ModelTarget("default", "m"), (HI,), seconds=60)).text == "Done."
    else:
        assert (await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "Hi"}))[0] == 200
    assert len(server.bodies) == 2
    assert [change.partition(" where ")[0] for change in await in_thread(learned_changes)] == [
        'reasoning_effort is set to "none"'
    ]
