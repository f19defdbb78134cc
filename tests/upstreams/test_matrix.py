"""Every kind of model server in every situation in which the gateway calls a model."""

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx2
import pytest
from pytest_django.fixtures import Settings

from gateway import upstream as upstreams
from gateway.models import Agent, Run, Session
from gateway.upstream import ModelTarget, OpenAIModel, ResilientModel
from memories.database.access import in_thread
from memories.models import Memory, Owner
from reviews.consolidation.runner import work
from reviews.consolidation.runs import ConsolidationClaim
from reviews.consolidation.runs import claim as claim_run
from reviews.models import ConsolidationRun
from reviews.runner import run_attempt
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.v1 import ask, stream, streamed_and_not, streamed_text
from tests.reviews.consolidation.answering_model import extraction, synthesis
from tests.reviews.consolidation.rows import document, request, settings_make, talk
from tests.reviews.talk import attempt_make
from tests.upstreams.rules import RULES, error_body
from tests.upstreams.server import KEY, Serve, Step, connect_to

pytestmark = pytest.mark.any_database

kinds = pytest.mark.parametrize("kind", RULES)

LOOKUP = {"type": "function", "function": {"name": "lookup", "strict": True, "parameters": {"type": "object"}}}
ADD = ("add_memory", {"content": "Is vegetarian.", "target": "user"})
PARAMETERS = {
    "max_completion_tokens": 50,
    "seed": 7,
    "temperature": 0.2,
    "frequency_penalty": 0.1,
    "stop": None,
    "user": "u-1",
    "prompt_cache_key": "k-1",
    "metadata": {"session_id": "s-1", "project": "tea"},
}
USER_MESSAGE = {"role": "user", "content": "I'm vegetarian", "name": "alice"}
STREAM_FIELDS = {"stream", "stream_options"}
CALLS = (("lookup", {"q": "a"}), ("lookup", {"q": "b"}))


@kinds
async def test_a_plain_turn(kind: str, serve: Serve, alice: Owner, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    server.script(Step(text="Hello.", thought="Hm."), Step(text="Fine."))
    first = await ask(alice_api, {"role": "system", "content": "Be kind."}, USER_MESSAGE, **PARAMETERS)
    assert (server.refused, first.text) == ([], "Hello.")
    history = [USER_MESSAGE, {"role": "assistant", "content": "Hello."}, {"role": "system", "content": "Be brief."}]
    second = await ask(alice_api, *history, {"role": "user", "content": "How are you?"}, **PARAMETERS)
    assert (server.refused, second.text, second.session) == ([], "Fine.", first.session)


@kinds
@streamed_and_not
async def test_a_turn_with_memory_tools(kind: str, streamed: bool, serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    server.script(
        Step(text="One moment.", thought="They told me what they eat.", calls=(ADD,)),
        Step(thought="There is more.", calls=(("add_memory", {"content": "Cooks.", "target": "user"}),)),
        Step(text="Noted."),
    )
    if streamed:
        chunks = await stream(alice_api, USER_MESSAGE, stream_options={"include_usage": True}, **PARAMETERS)
        text, usage = streamed_text(chunks), chunks[-1]["usage"]
        assert chunks[-1].items() >= dict(server.rules.extra_fields).items()
    else:
        answer = await ask(alice_api, USER_MESSAGE, **PARAMETERS)
        assert answer.status == 200, answer.json
        text, usage = answer.text, answer.json["usage"]
    assert server.refused == []
    assert text == "One moment.\n\nNoted."
    assert (usage["total_tokens"], usage["cost"]) == (30, 0.75)
    assert await in_thread(Memory.objects.count) == 2


@kinds
async def test_a_client_s_tool_loop(kind: str, serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    server.script(
        Step(text="One moment.", thought="Two at once.", calls=(*CALLS, ADD)),
        Step(thought="Two more.", calls=CALLS),
        Step(thought="And one.", calls=CALLS[:1]),
        Step(text="Found.", thought="Done."),
        Step(text="You are welcome."),
    )
    messages: list[dict[str, Any]] = [USER_MESSAGE]
    for _ in range(3):
        answer = await ask(alice_api, *messages, tools=[LOOKUP], **PARAMETERS)
        assert (server.refused, answer.status) == ([], 200), answer.json
        message = answer.json["choices"][0]["message"]
        plain = {"role": "assistant", "content": message["content"], "tool_calls": message["tool_calls"]}
        content = [{"type": "text", "text": "Yes."}]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": content} for call in message["tool_calls"]]
        for call in plain["tool_calls"]:
            call.pop("extra_content", None)
        messages.extend([plain, *reversed(results)])
    answer = await ask(alice_api, *messages, tools=[LOOKUP], **PARAMETERS)
    assert (server.refused, answer.text) == ([], "Found.")
    messages.extend([{"role": "assistant", "content": "Found."}, {"role": "user", "content": "Thanks"}])
    last = await ask(alice_api, *messages, tools=[LOOKUP], **PARAMETERS)
    assert (server.refused, last.text) == ([], "You are welcome.")
    assert last.session == answer.session


@kinds
async def test_a_client_s_tool_loop_in_a_stream(kind: str, serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    server.script(Step(text="One moment.", thought="Two at once.", calls=(*CALLS, ADD)), Step(text="Found."))
    chunks = await stream(alice_api, USER_MESSAGE, tools=[LOOKUP], **PARAMETERS)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [(call["index"], call["function"]["name"]) for call in calls] == [(0, "lookup"), (1, "lookup")]
    assert (server.refused, chunks[-1]["choices"][0]["finish_reason"]) == ([], "tool_calls")
    message = {"role": "assistant", "content": "One moment.", "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "Yes."} for call in calls]
    answer = await ask(alice_api, USER_MESSAGE, message, *results, tools=[LOOKUP], **PARAMETERS)
    assert (server.refused, answer.text) == ([], "Found.")


@kinds
async def test_a_new_message_instead_of_the_tool_results(kind: str, serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    server.script(Step(thought="Two at once.", calls=CALLS), Step(text="As you like."))
    answer = await ask(alice_api, USER_MESSAGE, tools=[LOOKUP])
    message = answer.json["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "Cut off."} for call in message["tool_calls"]]
    plain = {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]}
    last = await ask(
        alice_api, USER_MESSAGE, plain, *results, {"role": "user", "content": "Never mind"}, tools=[LOOKUP]
    )
    assert (server.refused, last.status) == ([], 200), last.json
    assert last.text == "As you like."


@kinds
async def test_a_turn_with_recall(kind: str, serve: Serve, alice: Owner, alice_api: Api) -> None:
    await in_thread(agent_make, frozen_char_limit=0, recall_role="user")
    await in_thread(memory_make, alice, "Likes green tea.")
    server = serve(kind)
    server.script(Step(text="Green tea."))
    answer = await ask(alice_api, "Hi", "Hello.", "Which tea do I like?")
    assert (server.refused, answer.text) == ([], "Green tea.")
    messages = server.bodies[0]["messages"]
    assert "Likes green tea." in str(messages)
    assert messages[-1]["content"].endswith("Which tea do I like?")
    assert (len(messages), "<memories>" in messages[-1]["content"]) == (
        (4, True) if server.rules.system_first else (5, False)
    )


@kinds
async def test_a_session_of_the_native_api(kind: str, serve: Serve, alice_api: Api, session: Session) -> None:
    server = serve(kind)
    server.script(
        Step(thought="Worth keeping.", calls=(ADD,)), Step(text="Noted.", thought="Done."), Step(text="Fine.")
    )
    path = f"/api/sessions/{session.pk}/turns"
    assert (await alice_api.post(path, {"content": "I'm vegetarian"}))[0] == 200
    status, turn = await alice_api.post(path, {"content": "And you?"})
    assert (server.refused, status) == ([], 200), turn
    assert len(server.bodies) == 3


@kinds
async def test_the_same_request_through_both_apis(kind: str, serve: Serve, alice_api: Api, session: Session) -> None:
    """Only the first turn is compared, since on later turns a /v1 client resends less than is stored."""
    server = serve(kind)
    server.script(*[Step(thought="Worth keeping.", calls=(ADD,)), Step(text="Noted.")] * 2)
    assert (await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "I'm vegetarian"}))[0] == 200
    assert (await ask(alice_api, "I'm vegetarian")).text == "Noted."
    native, v1 = server.bodies[:2], server.bodies[2:]
    assert (server.refused, len(v1)) == ([], 2)
    for native_body, v1_body in zip(native, v1, strict=True):
        assert native_body.keys() - STREAM_FIELDS == v1_body.keys() - STREAM_FIELDS
        assert (native_body["tools"], roles(native_body)) == (v1_body["tools"], roles(v1_body))


def roles(body: dict[str, Any]) -> list[str]:
    """Return the roles of a request's messages."""
    return [message["role"] for message in body["messages"]]


@kinds
async def test_a_review(kind: str, serve: Serve) -> None:
    server = serve(kind)
    server.script(Step(thought="Worth keeping.", calls=(ADD,)), Step(text="Done."))
    attempt = attempt_make(ModelTarget("default", "m"))
    await run_attempt(attempt, asyncio.get_running_loop().time() + 60)
    assert server.refused == []
    assert (attempt.outcome.steps, attempt.outcome.usage["total_tokens"]) == (2, 20)


@kinds
async def test_a_consolidation(kind: str, serve: Serve, alice: Owner, agent: Agent) -> None:
    server = serve(kind)
    server.script(
        Step(text=extraction("- Is vegetarian.", "About food."), thought="Hm."),
        Step(text=synthesis("# Memory\n- Is vegetarian.", "Eats no meat."), thought="Done."),
    )
    run_id = await in_thread(_create_run, alice, agent)
    await work(await in_thread(_claim, run_id))
    run = await in_thread(lambda: ConsolidationRun.objects.get(pk=run_id))
    assert (server.refused, run.state, run.error) == ([], "completed", None)
    assert await in_thread(document, alice, "MEMORY.md") == "# Memory\n- Is vegetarian."
    assert "m vegetarian" in str(server.bodies[0]["messages"])
    assert "- Is vegetarian." in str(server.bodies[1]["messages"])


def _create_run(owner: Owner, agent: Agent) -> UUID:
    settings_make()
    talk(owner, agent, "I'm vegetarian")
    return request(owner).pk


def _claim(run_id: UUID) -> ConsolidationClaim:
    claim = claim_run(run_id)
    assert claim is not None
    return claim


@kinds
async def test_a_fallback(
    kind: str, serve: Serve, alice_api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(kind)
    server.script(Step(text="Answered."))
    settings.DAYBOOK_UPSTREAMS["full"] = {**settings.DAYBOOK_UPSTREAMS["default"], "url": "http://127.0.0.1:2/v1"}
    full = httpx2.MockTransport(
        lambda _: httpx2.Response(503, json=error_body(server.rules.error_form, 503, "Too busy."))
    )
    ports: dict[int | None, httpx2.AsyncBaseTransport] = {1: server, 2: full}

    class ByPort(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return await ports[request.url.port].handle_async_request(request)

    connect_to(ByPort(), monkeypatch)
    upstreams.install(ResilientModel(OpenAIModel(), sleep=lambda _: asyncio.sleep(0)))
    await in_thread(agent_make, "assistant", model=["m-1", "m-2"], upstream=["full", "default"])
    answer = await ask(alice_api, USER_MESSAGE, **PARAMETERS)
    assert (server.refused, answer.text) == ([], "Answered.")
    attempts = (await in_thread(Run.objects.get)).trace["attempts"]
    seen = [(entry["upstream"], entry["fault"]) for entry in attempts]
    assert seen == [*[("full", "overload")] * 3, ("default", "")]


@kinds
@streamed_and_not
async def test_a_context_that_is_too_long(
    kind: str, streamed: bool, serve: Serve, alice_api: Api, agent: Agent
) -> None:
    server = serve(kind)
    server.script(Step(refused=f"This model's maximum context length is 8 tokens. http://10.0.0.7/v1 {KEY}"))
    answer = await ask(alice_api, USER_MESSAGE, stream=streamed)
    error = answer.json["error"]
    assert (answer.status, error["type"], error["code"]) == (400, "invalid_request_error", "context_length_exceeded")
    assert "maximum context length is 8 tokens" in error["message"]
    assert KEY not in str(error)
    assert "10.0.0.7" not in str(error)


# The server's status and code, in its own form; the status and the code that the client gets.
ERRORS = [
    (400, "content_filter", 400, "content_filter"),
    (401, None, 502, "upstream_error"),
    (402, None, 502, "upstream_error"),
    (403, None, 502, "upstream_error"),
    (404, None, 502, "upstream_error"),
    (429, None, 429, "rate_limited"),
    (500, None, 502, "upstream_error"),
    (503, None, 502, "upstream_error"),
]


@kinds
@streamed_and_not
async def test_errors_of_each_kind(kind: str, streamed: bool, serve: Serve, alice_api: Api, agent: Agent) -> None:
    server = serve(kind)
    text = f"No, not at http://10.0.0.7/v1 with {KEY}."
    for status, code, client_status, client_code in ERRORS:
        server.always_answer(status, json.dumps(error_body(RULES[kind].error_form, status, text, code=code)))
        answer = await ask(alice_api, USER_MESSAGE, stream=streamed)
        error = answer.json["error"]
        assert answer.status == client_status, (status, error)
        assert error["code"] == client_code or (RULES[kind].error_form not in {"openai", "azure"} and status == 400), (
            status,
            error,
        )
        assert KEY not in str(error)
        assert "10.0.0.7" not in str(error)
        run = await in_thread(Run.objects.order_by("id").last)
        assert (status, run and run.state) == (status, Run.State.FAILED)
