"""A request repeated while the first is being answered: one run, one model call, two equal answers"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from gateway import upstream
from gateway.api import v1_turn
from gateway.errors import RequestRefused
from gateway.keys import api_key_revoke
from gateway.limits import watchers
from gateway.models import Agent, Run, Session
from gateway.runs.active import StoppedBy, stop
from gateway.runs.context import TurnContext
from gateway.runs.matching import Continuation
from gateway.runs.requested import SameTurnRunning, V1Request
from gateway.runs.v1 import open_v1
from gateway.turns import joined
from gateway.upstream import Chunk, ModelRequest
from memories.database.access import in_thread
from memories.errors import RateLimited, UpstreamTimeout
from memories.models import Owner
from tests.conftest import Api
from tests.factories import caller_make, key_make
from tests.gateway import messages
from tests.gateway.client_tools import ADD, FIRST, LOOKUP, SECOND, USER, results
from tests.gateway.v1 import Answer, Chat, ask, stream, user
from tests.overlapping import only_postgresql, overlap
from tests.queries import statements
from tests.scripted_model import Says, ScriptedModel, calls
from tests.waiting import eventually_async


class GatedModel(ScriptedModel):
    """A scripted model that, after `be_slow`, waits for `may_answer`."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    def be_slow(self) -> None:
        self.called.clear()
        self.may_answer.clear()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        chunks = super().stream(request)
        self.called.set()
        await self.may_answer.wait()
        async for chunk in chunks:
            yield chunk

    async def complete(self, request: ModelRequest) -> dict[str, Any]:
        try:
            return await super().complete(request)
        finally:
            self.called.set()
            await self.may_answer.wait()


@pytest.fixture
def model() -> Iterator[GatedModel]:
    gated = GatedModel()
    upstream.install(gated)
    yield gated
    gated.assert_complete()


@pytest.fixture
def chat(alice_api: Api, agent: Agent, model: GatedModel) -> Chat:
    return Chat(alice_api, model)


async def send_twice(model: GatedModel, first: Any, second: Any) -> list[Any]:
    """Send the second request while the first is being answered, and return both responses."""
    waits, wait = asyncio.Event(), v1_turn._answers

    async def noted(context: TurnContext) -> bool:
        waits.set()
        return await wait(context)

    first_task = await begun(model, first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(v1_turn, "_answers", noted)
        second_task = asyncio.create_task(second)
        await asyncio.wait_for(waits.wait(), 20)
        model.may_answer.set()
        return [await first_task, await second_task]


async def begun(model: GatedModel, request: Any) -> "asyncio.Task[Any]":
    """Send a request, and return its task while the model waits with the answer."""
    model.be_slow()
    task = asyncio.create_task(request)
    await model.called.wait()
    return task


async def second_message(chat: Chat, *answers: str | Says | Exception) -> list[Any]:
    """Have a first turn, script the answers to the next one, and return the messages of its request."""
    await chat.say("hi", "Hello.")
    chat.model.script(*answers)
    return [*chat.messages, user("How are you?")]


async def results_of_response(api: Api) -> dict[str, Any]:
    """Ask for a response that calls a tool, and return the request with the tool's result."""
    tool = {"type": "function", **LOOKUP["function"]}
    _, called = await api.post("/v1/responses", {"model": "assistant", "input": "Look it up", "tools": [tool]})
    output = {"type": "function_call_output", "call_id": called["output"][-1]["call_id"], "output": "found"}
    return {"model": "assistant", "input": [output], "previous_response_id": called["id"]}


async def counts() -> tuple[int, int, int]:
    """Return the numbers of sessions, of runs, and of turns since the last memory review."""
    session = await in_thread(Session.objects.earliest, "id")
    return (
        await in_thread(Session.objects.count),
        await in_thread(Run.objects.count),
        session.turns_since_memory_review,
    )


async def test_both_requests_get_the_answer_of_one_run(chat: Chat, model: GatedModel) -> None:
    request = await second_message(chat, "Fine.")
    first, second = await send_twice(model, ask(chat.api, *request), ask(chat.api, *request))
    assert (first.status, second.status, second.text) == (200, 200, "Fine.")
    assert (second.run, second.session, second.json["usage"]) == (first.run, first.session, first.json["usage"])
    assert second.json["choices"][0]["finish_reason"] == "stop"
    assert await counts() == (1, 2, 2)
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (RequestRefused("Too long.", upstream_code="context_length_exceeded", param="messages", status=400), 400),
        (RateLimited("Later.", status=429, retry_after=7), 429),
        (UpstreamTimeout("Silent."), 504),
        (RuntimeError("unexpected"), 500),
    ],
)
async def test_a_request_that_waits_gets_the_error_of_the_first_one(
    chat: Chat, model: GatedModel, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: int
) -> None:
    monkeypatch.setattr(v1_turn, "JOIN_SECONDS", 0)  # the run would be repeated if it failed sooner
    request = await second_message(chat, failure)
    first, second = await send_twice(model, ask(chat.api, *request), ask(chat.api, *request))
    assert (first.status, second.status, len(model.calls)) == (status, status, 2)
    run_id = second.json["error"]["details"].pop("run_id")
    assert (second.json["error"], run_id) == (first.json["error"], first.run)


async def test_the_repeated_request_may_be_streamed(chat: Chat, model: GatedModel) -> None:
    request = await second_message(chat, "Fine.")
    first, second = await send_twice(model, ask(chat.api, *request), stream(chat.api, *request))
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in second)
    assert (first.text, text, second[-1]["choices"][0]["finish_reason"]) == ("Fine.", "Fine.", "stop")
    assert await counts() == (1, 2, 2)


async def test_a_long_answer_is_polled_for(chat: Chat, model: GatedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v1_turn, "JOIN_SECONDS", 0.05)
    monkeypatch.setattr(joined, "_POLL_SECONDS", 0.02)
    request = await second_message(chat, "Fine.")
    first, second = await send_twice(model, ask(chat.api, *request), ask(chat.api, *request))
    assert (second.text, second.run) == ("Fine.", first.run)
    assert await counts() == (1, 2, 2)


async def test_too_many_waiting_requests_are_refused(
    chat: Chat, model: GatedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(v1_turn, "JOIN_SECONDS", 0.05)
    monkeypatch.setattr(watchers, "WATCHERS", 1)
    request = await second_message(chat, "Fine.")
    first = await begun(model, ask(chat.api, *request))
    waiting = asyncio.create_task(ask(chat.api, *request))
    await eventually_async(lambda: bool(watchers._open), within=10)
    refused = await ask(chat.api, *request)
    assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limited")
    model.may_answer.set()
    assert [(await task).text for task in (first, waiting)] == ["Fine.", "Fine."]
    assert not watchers._open


async def test_a_waiting_request_ends_when_its_key_is_revoked(
    chat: Chat, alice: Owner, model: GatedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(v1_turn, "JOIN_SECONDS", 0.05)
    monkeypatch.setattr(joined, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(joined, "RECHECK_SECONDS", 0.02)
    request = await second_message(chat, "Fine.")
    key, plain = await in_thread(key_make, alice)
    first_task = await begun(model, ask(chat.api, *request))
    second_task = asyncio.create_task(ask(Api(plain), *request))
    await asyncio.sleep(0.2)
    await in_thread(api_key_revoke, key)
    refused = await asyncio.wait_for(second_task, 10)
    model.may_answer.set()
    assert (refused.status, (await first_task).text) == (401, "Fine.")


async def test_both_requests_get_the_tool_calls(chat: Chat, model: GatedModel) -> None:
    request = await second_message(chat, calls(FIRST))
    first, second = await send_twice(
        model, ask(chat.api, *request, tools=[LOOKUP]), ask(chat.api, *request, tools=[LOOKUP])
    )
    assert second.json["choices"][0]["message"]["tool_calls"] == first.json["choices"][0]["message"]["tool_calls"]
    assert second.json["choices"][0]["finish_reason"] == "tool_calls"
    assert await counts() == (1, 2, 1)


async def test_repeated_results_of_tools_get_the_answer_to_them_alone(chat: Chat, model: GatedModel) -> None:
    model.script(Says(pieces=("I look.",), calls=(FIRST,)), "Fine.")
    called = await ask(chat.api, USER, tools=[LOOKUP])
    request = [USER, *results(called, "found")]
    first, second = await send_twice(model, ask(chat.api, *request), ask(chat.api, *request))
    assert (first.text, second.text, second.run) == ("Fine.", "Fine.", first.run)
    assert second.json["usage"] == first.json["usage"]
    assert await counts() == (1, 1, 1)


async def test_repeated_results_of_tools_get_the_same_response(alice_api: Api, agent: Agent, model: GatedModel) -> None:
    model.script(Says(pieces=("I look.",), calls=(FIRST,)), "Fine.")
    request = await results_of_response(alice_api)
    one, two = await send_twice(
        model, alice_api.post("/v1/responses", request), alice_api.post("/v1/responses", request)
    )
    assert (two[1]["id"], two[1]["output"], two[1]["usage"]) == (one[1]["id"], one[1]["output"], one[1]["usage"])
    assert (one[1]["id"], await counts()) == (f"{request['previous_response_id']}_1", (1, 1, 1))


async def test_text_that_was_sent_before_the_repetition_is_part_of_its_answer(chat: Chat, model: GatedModel) -> None:
    model.script(Says(pieces=("I look.",), calls=(FIRST,)), "Fine.")
    request = [USER, *results(await ask(chat.api, USER, tools=[LOOKUP]), "found")]

    async def again() -> Answer:
        await in_thread(Run.objects.update, text="I look.\n\nFi")  # as it is stored while the answer is streamed
        return await ask(chat.api, *request)

    async with statements() as executed:
        first, second = await send_twice(model, ask(chat.api, *request), again())
    assert (first.text, second.text) == ("Fine.", "Fine.")
    reads = [sql for sql in executed if sql.startswith("SELECT") and '"parts"' in sql]
    assert len(reads) == 1, "only the run that is resumed needs all of its messages"


async def test_repeated_requests_are_joined_in_the_messages_api(
    alice_api: Api, agent: Agent, model: GatedModel
) -> None:
    model.script("Hello.", "Fine.")
    await messages.send(alice_api, "hi")
    request = ("hi", "Hello.", "How are you?")
    first, second = await send_twice(model, messages.send(alice_api, *request), messages.send(alice_api, *request))
    assert (second.text, second.run) == (first.text, first.run) == ("Fine.", first.run)
    assert await counts() == (1, 2, 2)


async def test_repeated_requests_are_joined_in_the_responses_api(
    alice_api: Api, agent: Agent, model: GatedModel
) -> None:
    model.script("Hello.", "Fine.")
    first = await alice_api.post("/v1/responses", {"model": "assistant", "input": "hi"})
    request = {"model": "assistant", "input": "How are you?", "previous_response_id": first[1]["id"]}
    one, two = await send_twice(
        model, alice_api.post("/v1/responses", request), alice_api.post("/v1/responses", request)
    )
    assert one[1]["output"][0]["content"][0]["text"] == two[1]["output"][0]["content"][0]["text"] == "Fine."
    assert (one[1]["id"], one[1]["status"]) == (two[1]["id"], two[1]["status"])
    assert await counts() == (1, 2, 2)


async def test_identical_first_messages_are_separate_requests_by_default(chat: Chat, model: GatedModel) -> None:
    model.script("Hello.", "Good day.")
    model.be_slow()
    two = [asyncio.create_task(ask(chat.api, "hi")) for _ in range(2)]
    await asyncio.sleep(0.3)
    model.may_answer.set()
    one, other = [await task for task in two]
    assert one.session != other.session
    assert await counts() == (2, 2, 1)


@pytest.mark.parametrize(
    "headers", [{"x_stainless_retry_count": "1"}, {"idempotency_key": "k1"}, {"x_session_id": "s1"}]
)
async def test_a_first_message_marked_as_repeated_is_joined(
    chat: Chat, model: GatedModel, headers: dict[str, str]
) -> None:
    model.script("Hello.")
    first, second = await send_twice(model, ask(chat.api, "hi", headers=headers), ask(chat.api, "hi", headers=headers))
    assert (second.text, second.run) == ("Hello.", first.run)
    assert await counts() == (1, 1, 1)


async def test_the_turn_runs_again_if_the_first_client_disconnects(chat: Chat, model: GatedModel) -> None:
    request = await second_message(chat, "Nobody hears this.", "Fine.")
    first = await begun(model, ask(chat.api, *request))
    second = asyncio.create_task(ask(chat.api, *request))
    await asyncio.sleep(0.2)
    running = await in_thread(Run.objects.get, state="running")
    stop(running.pk, StoppedBy.REQUEST)
    model.may_answer.set()
    assert (await first).status == 409
    answer = await second
    assert (answer.status, answer.text) == (200, "Fine.")
    assert answer.run != str(running.pk)
    assert await counts() == (1, 3, 2)


async def expect_one_result_before(response: str, alice_api: Api, model: GatedModel) -> None:
    """Expect that a response, and a conversation that continues after it, contain the call with its result once."""
    _, given = await alice_api.get(f"/v1/responses/{response}/input_items?order=asc")
    kinds = ["message", "message", "function_call", "function_call_output"]
    assert ([item["type"] for item in given["data"]], given["data"][-1]["output"]) == (kinds, "found")
    following = {"model": "assistant", "input": "And for tea?", "previous_response_id": response}
    assert (await alice_api.post("/v1/responses", following))[0] == 200
    roles = [message["role"] for message in model.calls[-1].messages if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_results_repeated_after_a_stop_stay_in_the_conversation_of_their_response(
    alice_api: Api, agent: Agent, model: GatedModel
) -> None:
    model.script(Says(pieces=("I look.",), calls=(FIRST,)), "Nobody", "hears this.", "Fine.", "Tea.")
    request = await results_of_response(alice_api)
    for _ in range(2):
        unheard = await begun(model, alice_api.post("/v1/responses", request))
        stop((await in_thread(Run.objects.get, state="running")).pk, StoppedBy.REQUEST)
        model.may_answer.set()
        assert (await unheard)[0] == 409
    _, answer = await alice_api.post("/v1/responses", request)
    await expect_one_result_before(answer["id"], alice_api, model)


@pytest.mark.any_database
@pytest.mark.parametrize("unseen", [calls(SECOND), calls(ADD, SECOND)])
async def test_a_call_that_the_client_never_saw_is_not_in_the_conversation_of_a_repeated_response(
    alice_api: Api, agent: Agent, model: GatedModel, unseen: Any
) -> None:
    model.script(Says(pieces=("I look.",), calls=(FIRST,)), unseen, "Fine.", "Tea.")
    request = {**await results_of_response(alice_api), "tools": [{"type": "function", **LOOKUP["function"]}]}
    await alice_api.post("/v1/responses", request)  # its answer, the second call, is lost
    status, answer = await alice_api.post("/v1/responses", request)
    assert status == 200
    await expect_one_result_before(answer["id"], alice_api, model)


async def test_another_message_is_not_joined(chat: Chat, model: GatedModel) -> None:
    first = await begun(model, ask(chat.api, *await second_message(chat, "Fine.", "Tea.")))
    second = asyncio.create_task(ask(chat.api, *chat.messages, "What is for tea?"))
    await asyncio.sleep(0.1)
    model.may_answer.set()
    assert [(await first).text, (await second).text] == ["Fine.", "Tea."]


@only_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", [(), (user("hi"), {"role": "assistant", "content": "Hello."})])
def test_two_first_requests_with_one_key_at_the_same_time_open_one_run(
    alice: Owner, agent: Agent, before: tuple[Any, ...]
) -> None:
    messages = (*before, user("How are you?"))
    key = {"idempotency_key": "k1", "request_id": "r"}
    request = V1Request(caller=caller_make(alice), agent="assistant", messages=messages, client_system="", **key)

    def send() -> TurnContext | SameTurnRunning:
        try:
            return open_v1(request, continuation=Continuation())
        except SameTurnRunning as running:
            return running

    first, second = overlap(send, send, pause_after="INSERT gateway_run")
    assert isinstance(first, TurnContext)
    assert isinstance(second, SameTurnRunning)
    assert second.context.run_id == first.run_id
    assert Run.objects.count() == 1
