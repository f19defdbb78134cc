"""/v1/messages with the anthropic package: whole answers, streams, tool loops and errors"""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from config.asgi import application
from gateway.models import Agent, Session
from memories.database.access import in_thread
from memories.models import Owner
from tests.factories import key_make
from tests.lazy_module import LazyModule
from tests.scripted_model import Says, ScriptedModel, calls

pytestmark = pytest.mark.any_database

anthropic: Any = LazyModule("anthropic")
LOOKUP = {"name": "lookup", "input_schema": {"type": "object"}}
FIRST = ("lookup", '{"q": "a"}')
BODY: dict[str, Any] = {"model": "assistant", "max_tokens": 100, "tools": [LOOKUP]}


@pytest_asyncio.fixture
async def client(alice: Owner, agent: Agent) -> AsyncGenerator[Any]:
    """Yield the SDK's client, connected to this process with a key of alice."""
    key = (await in_thread(key_make, alice))[1]
    transport = httpx2.ASGITransport(app=application)  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport) as http:
        yield anthropic.AsyncAnthropic(base_url="http://localhost", api_key=key, max_retries=0, http_client=http)


async def test_the_sdk_runs_a_tool_loop(client: Any, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One ", "moment."), calls=(FIRST,)), "Found it.", "Yes.")
    messages: list[Any] = [{"role": "user", "content": "Look it up"}]
    async with client.messages.stream(messages=messages, **BODY) as stream:
        said = [text async for text in stream.text_stream]
        first = await stream.get_final_message()
    assert said == ["One ", "moment."]
    assert (first.stop_reason, first.content[1].input, first.usage.output_tokens) == ("tool_use", {"q": "a"}, 3)
    results = [{"type": "tool_result", "tool_use_id": first.content[1].id, "content": "42"}]
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = await client.messages.create(messages=messages, **BODY)
    assert (second.content[0].text, second.stop_reason) == ("Found it.", "end_turn")
    messages += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Sure?"}]
    assert (await client.messages.create(messages=messages, **BODY)).content[0].text == "Yes."
    assert (await in_thread(Session.objects.get)).turns == 2


async def test_thinking_is_sent_upstream_as_an_effort(client: Any, model: ScriptedModel) -> None:
    model.script(Says(thinks=("Hm.",), pieces=("Yes.",)), "Still yes.")
    messages: list[Any] = [{"role": "user", "content": "Really?"}]
    body = {**BODY, "max_tokens": 20_000, "thinking": {"type": "enabled", "budget_tokens": 10_000}}
    first = await client.messages.create(messages=messages, **body)
    assert [block.type for block in first.content] == ["thinking", "text"]
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "Sure?"}]
    await client.messages.create(messages=messages, **{**body, "thinking": {"type": "disabled"}})
    assert [dict(call.parameters)["reasoning_effort"] for call in model.calls] == ["medium", "none"]


async def test_the_tool_runner_of_the_sdk_works_without_threads(client: Any, model: ScriptedModel) -> None:
    """With threads the SDK would send new messages only, without instructions and tools."""

    @anthropic.beta_async_tool
    async def lookup(q: str) -> str:
        """Look it up."""
        return f"{q} is 42"

    model.script(calls(FIRST), calls(FIRST), "Found it.")
    body = {**BODY, "tools": [lookup], "system": "Be brief.", "messages": [{"role": "user", "content": "Look it up"}]}
    last = await client.beta.messages.tool_runner(**body).until_done()
    assert last.content[0].text == "Found it."
    assert [call.messages[-1]["content"] for call in model.calls[1:]] == ["a is 42"] * 2
    assert all("Be brief." in call.messages[0]["content"] for call in model.calls)
    assert all("lookup" in {tool["function"]["name"] for tool in call.tools} for call in model.calls)
    assert (await in_thread(Session.objects.get)).turns == 1


async def test_threads_are_refused_unless_the_client_may_continue_without(client: Any, model: ScriptedModel) -> None:
    said: list[Any] = [{"role": "user", "content": "My cat is called Biscuit."}, {"role": "user", "content": "And?"}]
    with pytest.raises(anthropic.BadRequestError, match="thread"):
        await client.beta.messages.thread(model="assistant", max_tokens=100).send(said[0])
    model.script("Noted.", "Biscuit.")
    thread = client.beta.messages.thread(
        model="assistant", max_tokens=100, unsupported_request_behavior="continue_unthreaded"
    )
    for message in said:
        await thread.send(message)
    assert [message["content"] for message in model.calls[1].messages][-3:] == [said[0]["content"], "Noted.", "And?"]
    assert (await in_thread(Session.objects.get)).turns == 2


async def test_errors_and_token_counts_are_understood_by_the_sdk(client: Any, model: ScriptedModel) -> None:
    messages = [{"role": "user", "content": "hi"}]
    with pytest.raises(anthropic.NotFoundError) as missing:
        await client.messages.create(**{**BODY, "model": "claude"}, messages=messages)
    assert missing.value.request_id == missing.value.body["request_id"]
    with pytest.raises(anthropic.AuthenticationError):
        await client.with_options(api_key="nobody's").messages.create(**BODY, messages=messages)
    assert (await client.messages.count_tokens(model="assistant", messages=messages)).input_tokens > 0


async def test_agents_are_listed_as_models(client: Any) -> None:
    page = await client.models.list(limit=1000)
    assert [(row.id, row.type, row.display_name) for row in page.data] == [("assistant", "model", "assistant")]
    assert page.data[0].created_at.tzinfo
    assert (page.has_more, page.first_id, page.last_id) == (False, "assistant", "assistant")
    assert (await client.models.retrieve("assistant")).id == "assistant"
