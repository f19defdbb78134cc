"""/v1/responses with the openai package: whole answers, streams, and stored responses"""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel

from config.asgi import application
from gateway.models import Agent, Message, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.limits import TOOLS
from tests.conftest import Api
from tests.gateway.attachments import LARGE, picture
from tests.scripted_model import Says, ScriptedModel, calls, says

PATH = "/v1/responses"
LOOKUP: Any = {"type": "function", "name": "lookup", "parameters": {"type": "object"}, "strict": None}
ADD = ("add_memory", '{"content": "Is vegetarian.", "target": "user"}')


@pytest_asyncio.fixture
async def sdk(alice_api: Api, agent: Agent) -> AsyncGenerator[openai.AsyncOpenAI]:
    """Yield the official client, connected to the application in this process."""
    http = openai.DefaultAsyncHttpxClient(transport=httpx2.ASGITransport(app=application))
    key = alice_api.headers["authorization"].removeprefix("Bearer ")
    async with openai.AsyncOpenAI(
        base_url="http://127.0.0.1/v1", api_key=key, http_client=http, max_retries=0
    ) as client:
        yield client


async def runs() -> list[Run]:
    return await in_thread(lambda: list(Run.objects.order_by("pk")))


async def create(sdk: openai.AsyncOpenAI, given: Any, after: Any = None, **more: Any) -> Any:
    """Return the response to `given`, which may continue the response `after`."""
    if after is not None:
        more["previous_response_id"] = after.id
    return await sdk.responses.create(model="assistant", input=given, **more)


def roles(request: Any) -> list[str]:
    """Return the roles of the messages of a model request, after those of the agent's instructions."""
    return [message["role"] for message in request.messages[1:]]


def contents(request: Any) -> list[str]:
    return [message["content"] for message in request.messages[1:]]


def outputs(response: Any, *texts: str) -> Any:
    made = [item for item in response.output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": text}
        for call, text in zip(made, texts, strict=True)
    ]


async def test_a_response_is_returned_and_can_be_retrieved(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    answer = await create(sdk, "Hi", metadata={"project": "tea"}, temperature=0.5)
    (run,) = await runs()
    assert (answer.id, answer.status, answer.output_text) == (f"resp_{run.pk.hex}", "completed", "Hello.")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (7, 3, 10)
    assert answer.usage.output_tokens_details.reasoning_tokens == 0
    assert (answer.metadata, answer.temperature, answer.model) == ({"project": "tea"}, 0.5, "assistant")
    assert await sdk.responses.retrieve(answer.id) == answer


@pytest.mark.any_database
async def test_a_stream_gives_the_same_response(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    async with sdk.responses.stream(model="assistant", input="Hi") as stream:
        text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
        final = await stream.get_final_response()
    assert (text, final.output_text, final.status) == ("Hello.", "Hello.", "completed")
    retrieved = await sdk.responses.retrieve(final.id)
    assert retrieved.model_dump() == {**final.model_dump(), "output": retrieved.model_dump()["output"]}
    assert [item.id for item in retrieved.output] == [item.id for item in final.output]


async def test_a_structured_answer_is_parsed(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    class Dish(BaseModel):
        name: str

    model.script('{"name": "Dal"}')
    answer = await sdk.responses.parse(model="assistant", input="A dish", text_format=Dish)
    assert answer.output_parsed == Dish(name="Dal")
    asked = model.calls[0].parameters["response_format"]
    assert (asked["type"], asked["json_schema"]["name"], asked["json_schema"]["strict"]) == (
        "json_schema",
        "Dish",
        True,
    )


@pytest.mark.any_database
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_with_previous_response_id(
    sdk: openai.AsyncOpenAI, model: ScriptedModel, streamed: bool
) -> None:
    async def step(**asked: Any) -> Any:
        if not streamed:
            return await sdk.responses.create(model="assistant", tools=[LOOKUP], **asked)
        async with sdk.responses.stream(model="assistant", tools=[LOOKUP], **asked) as stream:
            return await stream.get_final_response()

    made = [("lookup", '{"q": "a"}'), ("lookup", "")]
    model.script(Says(pieces=("One moment.",), calls=tuple(made)), calls(ADD), "Found it.", "Yes.")
    first = await step(input="Look it up")
    assert [item.type for item in first.output] == ["message", "function_call", "function_call"]
    assert [item.arguments for item in first.output[1:]] == ['{"q": "a"}', "{}"]
    second = await step(input=outputs(first, "A", "B"), previous_response_id=first.id)
    assert (second.output_text, second.id, second.previous_response_id) == ("Found it.", f"{first.id}_1", first.id)
    assert [item.type for item in second.output] == ["message"]  # our own call is hidden
    assert second.usage.total_tokens == 20
    third = await step(input="Sure?", previous_response_id=second.id)
    sent = model.calls[3].messages[1:]
    roles = ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"]
    assert [message["role"] for message in sent] == roles
    assert [run.state for run in await runs()] == ["completed", "completed"]
    assert await in_thread(Session.objects.count) == 1
    for answer in (first, second, third):
        retrieved = await sdk.responses.retrieve(answer.id)
        assert (retrieved.output_text, retrieved.usage, retrieved.previous_response_id) == (
            answer.output_text,
            answer.usage,
            answer.previous_response_id,
        )
        assert [item.id for item in retrieved.output] == [item.id for item in answer.output]


async def test_what_a_client_sends_again_with_each_step_is_left_out(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    """Semantic Kernel sends the person's message and all outputs so far with the newest response's id."""
    model.script(calls(("lookup", '{"q": "a"}')), calls(("lookup", '{"q": "b"}')), "Found it.", "Again.")
    said: Any = [{"role": "user", "content": "Look it up"}]
    first = await create(sdk, said, tools=[LOOKUP])
    one = outputs(first, "A")
    second = await create(sdk, said + one, first, tools=[LOOKUP])
    two = outputs(second, "B")
    third = await create(sdk, said + one + two, second, tools=[LOOKUP])
    assert third.output_text == "Found it."
    assert roles(model.calls[2]) == ["user", "assistant", "tool", "assistant", "tool"]
    assert [(run.state, run.turn) for run in await runs()] == [("completed", 1)]
    again: Any = [*one, *two, {"role": "user", "content": "Look it up"}]  # the same words in a turn of their own
    await create(sdk, again, third)
    assert [message["role"] for message in model.calls[3].messages[-2:]] == ["assistant", "user"]
    assert len(await runs()) == 2


async def test_a_message_after_the_outputs_is_a_turn_even_with_the_same_words(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    model.script(calls(("lookup", "{}")), "Next.")
    first = await create(sdk, "continue", tools=[LOOKUP])
    said: Any = [*outputs(first, "A"), {"role": "user", "content": "continue"}]
    await create(sdk, said, first, tools=[LOOKUP])
    assert [message["role"] for message in model.calls[1].messages[-2:]] == ["tool", "user"]
    assert len(await runs()) == 2


async def test_the_whole_conversation_may_be_resent(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=(("lookup", "{}"),)), "Found it.", "Yes.")
    conversation: Any = [{"role": "user", "content": "Look it up"}]
    first = await create(sdk, conversation, tools=[LOOKUP], store=False)
    conversation += [item.model_dump(exclude_none=True) for item in first.output] + outputs(first, "A")
    second = await create(sdk, conversation, tools=[LOOKUP], store=False)
    assert second.output_text == "Found it."
    conversation += [item.model_dump(exclude_none=True) for item in second.output] + [
        {"role": "user", "content": "Sure?"}
    ]
    await create(sdk, conversation, store=False)
    (call_id,) = [item.call_id for item in first.output if item.type == "function_call"]
    assert roles(model.calls[2]) == ["user", "assistant", "tool", "assistant", "user"]
    assert model.calls[2].messages[3]["tool_call_id"] == call_id
    assert [run.turn for run in await runs()] == [1, 2]
    for answer in (first, second):
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.retrieve(answer.id)
    with pytest.raises(openai.BadRequestError) as refused:
        await create(sdk, "And?", second)
    assert refused.value.code == "previous_response_not_found"


async def test_encrypted_reasoning_is_resent_and_reaches_the_model(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    model.script(Says(thinks=("Let me look.",), calls=(("lookup", "{}"),)), "Found it.")
    asked: Any = {"model": "assistant", "tools": [LOOKUP], "store": False, "include": ["reasoning.encrypted_content"]}
    conversation: Any = [{"role": "user", "content": "Look it up"}]
    async with sdk.responses.stream(input=conversation, **asked) as stream:
        async for _ in stream:
            pass
        first = await stream.get_final_response()
    reasoning = first.output[0]
    assert (reasoning.type, reasoning.encrypted_content) == ("reasoning", f"daybook.1.{reasoning.id}")
    conversation += [item.model_dump(exclude_none=True) for item in first.output] + outputs(first, "A")
    second = await sdk.responses.create(input=conversation, **asked)
    assert (second.output_text, [run.turn for run in await runs()]) == ("Found it.", [1])
    assert model.calls[1].body(stream=False)["messages"][2]["reasoning_content"] == "Let me look."


async def test_a_command_after_an_older_response_keeps_its_conversation(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    """Like another message there, the command begins a new session."""
    model.script("A1", "A2", "A3", "A4")

    first = await create(sdk, "U1")
    second = await create(sdk, "U2", first)
    command = await create(sdk, "/memory help", await create(sdk, "/memory view", first))
    assert (await create(sdk, "U3", command)).output_text == "A3"
    assert contents(model.calls[2]) == ["U1", "A1", "U3"]
    await create(sdk, "U4", second)
    assert contents(model.calls[3]) == ["U1", "A1", "U2", "A2", "U4"]
    session = await in_thread(lambda: Session.objects.get(parent_id__isnull=False))
    assert session.reviewed_through == 2, "the other session's reviews read these"


async def test_a_command_after_an_older_response_adds_no_other_messages(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    """A transcript has no system messages; and what comes with a command is not stored, such as a large picture."""
    model.script("A1", "A2", "A3")
    first = await create(sdk, "U1")
    given: Any = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "U2"}]
    second = await create(sdk, given, first)
    await create(sdk, "U3", second)
    image = {"type": "input_image", "image_url": picture(LARGE)["image_url"]["url"]}
    look = {"role": "user", "content": [image, {"type": "input_text", "text": "Look"}]}
    beside: Any = [look, {"role": "user", "content": "/memory view"}]
    await create(sdk, beside, second)
    history = Message.objects.filter(kind="history").order_by("seq")
    stored = await in_thread(lambda: list(history.values_list("role", "text")))
    assert stored == [("user", "U1"), ("assistant", "A1"), ("user", "U2"), ("assistant", "A2")]


async def test_instructions_apply_to_one_request(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script("Arr.", "Yes.")
    first = await create(sdk, "Hi", instructions="Talk like a pirate.")
    await create(sdk, "Tea?", first)
    assert model.calls[0].messages[0]["content"] == "You are terse.\n\nTalk like a pirate."
    assert model.calls[1].messages == (
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Arr."},
        {"role": "user", "content": "Tea?"},
    )


@pytest.mark.any_database
async def test_continuing_an_older_response_creates_a_fork(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script("One.", "Two.", "Two, again.", "Three.", "Four.")

    one = await create(sdk, "Count")
    two = await create(sdk, "On", one)
    other = await create(sdk, "On and on", one)
    await create(sdk, "Go on", two)
    await create(sdk, "Go on", other)
    assert [contents(call) for call in model.calls[3:]] == [
        ["Count", "One.", "On", "Two.", "Go on"],
        ["Count", "One.", "On and on", "Two, again.", "Go on"],
    ]
    sessions = await in_thread(lambda: list(Session.objects.order_by("pk")))
    assert [(session.turns, session.parent_id) for session in sessions] == [(3, None), (2, sessions[0].pk)]


async def test_a_superseded_response_can_still_be_continued(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script("One.", "Two.", "Two!", "Three.", "Three?")

    one = await create(sdk, "Count")
    two = await create(sdk, "On", one)
    again = await create(sdk, "On", one)
    await create(sdk, "Go on", again)
    await create(sdk, "Go on", two)
    assert contents(model.calls[3]) == ["Count", "One.", "On", "Two!", "Go on"]
    assert contents(model.calls[4]) == ["Count", "One.", "On", "Two.", "Go on"]


@pytest.mark.any_database
async def test_input_items(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(calls(ADD, ("lookup", "{}")), "Found it.")
    first = await create(sdk, "I'm vegetarian", tools=[LOOKUP])
    second = await create(sdk, outputs(first, "A"), first, tools=[LOOKUP])
    listed = [item async for item in sdk.responses.input_items.list(second.id, order="asc", limit=2)]
    assert [item.type for item in listed] == ["message", "function_call", "function_call_output"]
    newest = await sdk.responses.input_items.list(second.id, limit=1)
    assert ([item.id for item in newest.data], newest.has_more) == ([listed[-1].id], True)
    assert [item.type async for item in sdk.responses.input_items.list(first.id)] == ["message"]


@pytest.mark.any_database
async def test_input_items_of_a_fork_hide_our_calls(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(calls(ADD, ("lookup", "{}")), "One.", "Two.", "Two, again.")
    first = await create(sdk, "I'm vegetarian", tools=[LOOKUP])
    one = await create(sdk, outputs(first, "A"), first)
    await create(sdk, "On", one)
    fork = await create(sdk, "On and on", one)
    listed = [item async for item in sdk.responses.input_items.list(fork.id, order="asc")]
    assert [item.type for item in listed] == ["message", "function_call", "function_call_output", "message", "message"]
    assert roles(model.calls[1]) == ["user", "assistant", "tool", "tool"]
    assert roles(model.calls[3]) == ["user", "assistant", "tool", "tool", "assistant", "user"]


async def test_input_items_refuse_an_unknown_order(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("One.")
    _, made = await alice_api.post(PATH, {"model": "assistant", "input": "Count"})
    status, answer = await alice_api.get(f"{PATH}/{made['id']}/input_items?order=zz")
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "order")


async def test_a_finished_response_cannot_be_cancelled(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("One.")
    _, made = await alice_api.post(PATH, {"model": "assistant", "input": "Count"})
    status, answer = await alice_api.post(f"{PATH}/{made['id']}/cancel")
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert answer["error"]["message"] == "Cannot cancel a completed response."


async def test_a_deleted_response_is_not_found_and_its_session_stays(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    model.script("One.")
    one = await create(sdk, "Count")
    await sdk.responses.delete(one.id)
    for gone in (sdk.responses.retrieve, sdk.responses.delete, sdk.responses.cancel, sdk.responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            await gone(one.id)
    assert await in_thread(Message.objects.count) == 2


async def test_item_references_are_resolved(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment.",), calls=(("lookup", "{}"),)), "Found it.")
    first = await create(sdk, "Look it up", tools=[LOOKUP])
    conversation: Any = [{"role": "user", "content": "Look it up"}, {"type": "item_reference", "id": "rs_whatever"}]
    conversation += [{"type": "item_reference", "id": item.id} for item in first.output] + outputs(first, "A")
    await create(sdk, conversation, tools=[LOOKUP])
    assert roles(model.calls[1]) == ["user", "assistant", "tool"]
    with pytest.raises(openai.BadRequestError, match="is not stored"):
        await create(sdk, [{"type": "item_reference", "id": "msg_1"}])


@pytest.mark.any_database
async def test_a_command_is_answered_and_can_be_continued(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script("One.", "Two.")
    one = await create(sdk, "Count")
    command = await create(sdk, "/memory help", one)
    assert "/memory view" in command.output_text
    async with sdk.responses.stream(model="assistant", input="/memory help", previous_response_id=command.id) as stream:
        again = await stream.get_final_response()
    await create(sdk, "On", again)
    assert contents(model.calls[1]) == ["Count", "One.", "On"]
    session = await in_thread(Session.objects.get)
    assert session.turns == 2


async def test_background_tasks_of_a_client_are_not_stored(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script("Tea", Says(pieces=("Te", "a")))
    asked: Any = {"model": "assistant", "input": "Hi", "metadata": {"task": "title_generation"}}
    assert (await sdk.responses.create(**asked)).output_text == "Tea"
    async with sdk.responses.stream(**asked) as stream:
        final = await stream.get_final_response()
    assert (final.output_text, final.usage and final.usage.total_tokens) == ("Tea", 10)
    assert await runs() == []


async def test_an_error_before_the_stream_has_a_status_and_is_stored(
    sdk: openai.AsyncOpenAI, model: ScriptedModel
) -> None:
    model.script(UpstreamError("no"))
    with pytest.raises(openai.InternalServerError) as failed:
        await create(sdk, "Hi", stream=True)
    assert failed.value.code == "upstream_error"
    (run,) = await runs()
    retrieved = await sdk.responses.retrieve(f"resp_{run.pk.hex}")
    assert (retrieved.status, retrieved.error.code) == ("failed", "upstream_error")


async def test_a_truncated_answer_is_incomplete(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    model.script(Says(pieces=("Hel",), finish_reason="length"))
    answer = await create(sdk, "Hi", max_output_tokens=1)
    assert model.calls[0].parameters["max_completion_tokens"] == 1
    for response in (answer, await sdk.responses.retrieve(answer.id)):
        assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


async def test_the_input_tokens_of_a_request_are_counted(sdk: openai.AsyncOpenAI, model: ScriptedModel) -> None:
    async def counted(**asked: Any) -> int:
        count = await sdk.responses.input_tokens.count(model="assistant", **asked)
        assert count.object == "response.input_tokens"
        return count.input_tokens

    long = "Tell me of the tea that grows on the hills. " * 40
    model.script("Very well.")
    first = await create(sdk, long)
    short, whole = await counted(input="Hi"), await counted(input=long)
    assert 0 < short < whole
    assert whole < await counted(input="And then?", previous_response_id=first.id)
    assert short < await counted(input="Hi", tools=[LOOKUP])
    assert len(await runs()) == 1


async def test_compacting_is_not_supported(sdk: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not supported"):
        await sdk.responses.compact(model="assistant", input="Hi")


@pytest.mark.any_database
async def test_too_many_calls_in_one_answer_are_refused_at_the_first_excess_call(sdk: openai.AsyncOpenAI) -> None:
    calls: Any = [
        {"type": "function_call", "call_id": f"c{number}", "name": "lookup", "arguments": "{}"}
        for number in range(TOOLS + 1)
    ]
    with pytest.raises(openai.BadRequestError, match=rf"input\[{TOOLS}\]: an answer has at most"):
        await create(sdk, [*calls, {"role": "user", "content": "Hi"}])
