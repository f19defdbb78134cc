"""POST /v1/chat/completions: the requests to the model and the answers"""

from typing import Any

import pytest

from gateway.api.openai_body import completion_body
from gateway.models import Message, Run
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.client_tools import ADD
from tests.gateway.v1 import PATH, ask, stream
from tests.scripted_model import Hangs, Says, ScriptedModel, calls, says

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]


async def test_an_answer_is_returned(alice_api: Api, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    response = await ask(alice_api, "Hi")
    assert (response.status, response.text) == (200, "Hello.")
    assert response.json["object"] == "chat.completion"
    assert response.json["model"] == "assistant"
    assert response.json["choices"][0]["finish_reason"] == "stop"
    assert response.json["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    run = await in_thread(Run.objects.get)
    assert (response.run, response.session) == (str(run.pk), str(run.session_id))


async def test_a_client_cannot_set_the_kind_of_a_message(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hello.")
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi", "kind": "command"}]}
    assert (await alice_api.post(PATH, body))[0] == 200
    kinds = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("kind", flat=True)))
    assert kinds == ["chat", "chat"]


async def test_a_stream_ends_after_the_commit(alice_api: Api, model: ScriptedModel) -> None:
    model.script(says("Hel", "lo."))
    chunks = await stream(alice_api, "Hi")
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["delta"].get("content") for choice in choices] == ["", "Hel", "lo.", None]
    assert choices[0]["delta"]["role"] == "assistant"
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "stop"]
    assert {(chunk["object"], chunk["model"], chunk["id"]) for chunk in chunks} == {
        ("chat.completion.chunk", "assistant", chunks[0]["id"])
    }
    assert (await in_thread(Run.objects.get)).state == "completed"


async def test_usage_is_streamed_on_request(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hello.", "Hello.")
    chunks = await stream(alice_api, "Hi", stream_options={"include_usage": True})
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 10)
    assert all(chunk["choices"] for chunk in await stream(alice_api, "Hi there"))


async def test_without_memory_only_instructions_and_transcript_are_sent(
    alice_api: Api, alice: Owner, model: ScriptedModel
) -> None:
    await in_thread(agent_make, tools=[], inject_memories=False)
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Fine.")
    await ask(alice_api, "Hi", "Hello.", "Tea?")
    assert model.calls[0].body(stream=False) == {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Tea?"},
        ],
    }


async def test_leading_system_messages_are_joined_with_the_instructions(
    alice_api: Api, alice: Owner, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Fine.")
    await ask(
        alice_api,
        {"role": "system", "content": "Talk like a pirate."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "developer", "content": "It is Monday."},
        {"role": "user", "content": "Well?"},
    )
    system, *others = model.calls[0].messages
    assert system["content"].startswith("You are terse.\n\nTalk like a pirate.\n\nBe brief.\n\n")
    assert "<memories>" in system["content"]
    assert [message["role"] for message in others] == ["user", "assistant", "developer", "user"]


async def test_non_text_parts_are_passed_through(alice_api: Api, model: ScriptedModel) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    model.script("A dot.", "Nothing.")
    await ask(alice_api, {"role": "user", "content": parts})
    assert model.calls[0].messages[-1]["content"] == parts
    stored = await in_thread(Message.objects.get, role="user")
    assert (stored.text, stored.parts) == ("What is this?", parts)
    only = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    assert (await ask(alice_api, {"role": "user", "content": only})).status == 200


async def test_a_picture_in_a_message_of_its_own_belongs_to_the_text_before_it(
    alice_api: Api, model: ScriptedModel
) -> None:
    """Microsoft's Agent Framework sends each part of a message as a message."""
    text = {"role": "user", "content": "What is on this picture of a harbour?"}
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    model.script("A boat.", "Red.")
    first = await ask(alice_api, text, {"role": "user", "content": [picture]})
    given = [{"type": "text", "text": text["content"]}, picture]
    assert model.calls[0].messages[-1] == {"role": "user", "content": given}
    run = await in_thread(Run.objects.select_related("session").get)
    assert run.session.title == text["content"]
    stored = await in_thread(Message.objects.get, role="user")
    assert (stored.text, stored.parts) == (text["content"], given)
    later = [{"role": "assistant", "content": "A boat."}, {"role": "user", "content": "What colour?"}]
    second = await ask(alice_api, text, {"role": "user", "content": [picture]}, *later)
    assert second.session == first.session


async def test_a_picture_in_a_message_of_its_own_belongs_to_the_text_after_it_if_none_is_before(
    alice_api: Api, model: ScriptedModel
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    alone, text = {"role": "user", "content": [picture]}, {"role": "user", "content": "What is on this picture?"}
    both = [picture, {"type": "text", "text": text["content"]}]
    model.script("A boat.", "Still a boat.", "Two boats.")
    first = await ask(alice_api, alone, text)
    assert model.calls[0].messages[-1] == {"role": "user", "content": both}
    stored = await in_thread(Message.objects.get, role="user")
    assert (stored.text, stored.parts) == (text["content"], both)
    again = [alone, text, {"role": "assistant", "content": "A boat."}, alone, text]
    assert (await ask(alice_api, *again)).session == first.session
    again += [{"role": "assistant", "content": "Still a boat."}, alone, alone, text]
    assert (await ask(alice_api, *again)).session == first.session
    last = await in_thread(Message.objects.filter(role="user").last)
    assert (last.text, last.parts) == (text["content"], [picture, *both])


def test_a_picture_after_a_tools_result_belongs_to_the_tool() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Done."},
        {"role": "user", "content": [picture]},
        {"role": "user", "content": "And what is it?"},
    ]
    assert list(completion_body({"model": "assistant", "messages": messages}).messages) == messages


async def test_malformed_parameters_are_ignored(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Fine.")
    malformed: dict[str, Any] = {
        "stream_options": "yes",
        "metadata": [],
        "tools": None,
        "stream": None,
        "colour": "green",
    }
    assert (await ask(alice_api, "Hi", **malformed)).status == 200


async def test_our_tools_are_executed_and_hidden(alice_api: Api, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment. ",), calls=(ADD,)), "Noted.")
    response = await ask(alice_api, "I'm vegetarian")
    assert response.text == "One moment. Noted."
    assert "tool_calls" not in response.json["choices"][0]["message"]
    assert response.json["choices"][0]["finish_reason"] == "stop"
    assert response.json["usage"]["total_tokens"] == 20
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)


async def test_our_tools_are_executed_within_a_stream(alice_api: Api, model: ScriptedModel) -> None:
    model.script(Says(pieces=("One moment. ",), calls=(ADD,)), "Noted.")
    chunks = await stream(alice_api, "I'm vegetarian", stream_options={"include_usage": True})
    choices = [chunk["choices"][0] for chunk in chunks[:-1]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == "One moment. Noted."
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    assert chunks[-1]["usage"]["total_tokens"] == 20


async def test_a_client_tool_replaces_our_tool_of_the_same_name(alice_api: Api, model: ScriptedModel) -> None:
    theirs = {"type": "function", "function": {"name": "add_memory", "description": "The client's own."}}
    model.script(calls(ADD))
    response = await ask(alice_api, "I'm vegetarian", tools=[theirs])
    offered = [tool["function"]["name"] for tool in model.calls[0].tools]
    assert offered.count("add_memory") == 1
    assert theirs in model.calls[0].tools
    assert response.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "add_memory"
    assert not await in_thread(Memory.objects.exists)


async def test_with_several_choices_no_tools_are_offered(
    alice_api: Api, model: ScriptedModel, monkeypatch: Any
) -> None:
    offered: list[Any] = []

    async def two(request: Any) -> Any:
        offered.append(request.tools)
        for index in (0, 1):
            yield {"choices": [{"index": index, "delta": {"content": f"answer {index}"}, "finish_reason": None}]}
        for index in (0, 1):
            yield {"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}

    monkeypatch.setattr(model, "stream", two)
    chunks = await stream(alice_api, "Hi", n=2)
    assert offered == [()]
    second = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == 1]
    assert [(choice["delta"].get("content"), choice["finish_reason"]) for choice in second] == [
        ("answer 1", None),
        (None, "stop"),
    ]
    assert (await in_thread(Run.objects.get)).text == "answer 0"


async def test_unstorable_characters_are_cleaned(alice_api: Api, model: ScriptedModel) -> None:
    model.script(says("A\x00B", "\ud83d"))
    chunks = await stream(alice_api, "with\x00nul")
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "AB?"
    texts = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("text", flat=True)))
    assert texts == ["withnul", "AB?"]


async def test_an_error_before_the_first_chunk_has_a_status(alice_api: Api, model: ScriptedModel) -> None:
    model.script(UpstreamError("no"))
    response = await ask(alice_api, "Hi", stream=True)
    assert (response.status, response.code) == (502, "upstream_error")
    assert (await in_thread(Run.objects.get)).state == "failed"


async def test_a_stream_that_is_never_read_stops_its_run(alice_api: Api, model: ScriptedModel) -> None:
    model.script(Hangs(pieces=("Hel",)))
    body = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    response = await alice_api.raw("POST", PATH, body)
    await response.source.aclose()
    assert await in_thread(Run.objects.filter(state="stopped").exists)


async def test_agents_are_listed_as_models(alice_api: Api) -> None:
    status, listed = await alice_api.get("/v1/models")
    assert (status, [row["id"] for row in listed["data"]]) == (200, ["assistant"])
    for path in ("/v1/models/assistant", "/v1/models/assistant/"):
        status, one = await alice_api.get(path)
        assert (status, one) == (200, listed["data"][0])
    assert one["object"] == "model"


async def test_every_path_accepts_a_trailing_slash(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Hello.")
    assert (await alice_api.get("/v1/models/"))[0] == 200
    status, _ = await alice_api.post(
        PATH + "/", {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    )
    assert status == 200
    assert (await alice_api.get("/api/sessions/"))[0] == 200
