"""Models that only stream: a client that does not stream gets the collected answer."""

import json
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from gateway.models import Agent, Run
from gateway.upstream import ModelRequest, OpenAIModel
from gateway.upstream.collected import CompletionBuilder
from memories.database.access import in_thread
from memories.errors import DomainError
from tests.conftest import Api
from tests.gateway.v1 import ask
from tests.upstreams.refusals import CASES, HI, LOOKUP
from tests.upstreams.rules import RULES
from tests.upstreams.server import KEY, Serve, Step

ANSWER = Step(text="Hello.", thought="They greet me.", calls=(("lookup", {"q": "a"}), ("lookup", {"q": "b"})))


async def complete(parameters: dict[str, Any]) -> dict[str, Any]:
    request = ModelRequest(upstream="default", model="m", messages=(HI,), tools=(LOOKUP,), parameters=parameters)
    model = OpenAIModel()
    try:
        return await model.complete(request)
    finally:
        await model.close()


@pytest.mark.parametrize("kind", RULES)
async def test_a_collected_answer_equals_one_that_was_not_streamed(kind: str, serve: Serve, db: None) -> None:
    answers = []
    for streams_only in (False, True):
        server = serve(kind)
        server.script(ANSWER)
        if streams_only:
            server.refusals.append(CASES["dashscope: a model that only streams"].scripted())
        answers.append(await complete({}))
    whole, collected = answers
    for answer in answers:  # some servers give no ids, and then Daybook makes them up
        for call in answer["choices"][0]["message"]["tool_calls"]:
            call["id"] = bool(call["id"]) if RULES[kind].id_format else True
    assert collected.pop("choices")[0].items() >= whole.pop("choices")[0].items()
    assert collected == whole


async def test_a_client_gets_the_collected_answer_with_its_usage(
    serve: Serve, settings: Settings, alice_api: Api, agent: Agent
) -> None:
    server = serve("openai")
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": KEY, "dialect": "dashscope"}}
    server.refusals.append(CASES["dashscope: no thinking in one piece"].scripted())
    server.script(Step(calls=(("add_memory", {"content": "Is vegetarian.", "target": "user"}),)), Step(text="Noted."))
    answer = await ask(alice_api, "I'm vegetarian")
    assert (answer.text, answer.json["choices"][0]["finish_reason"]) == ("Noted.", "stop")
    assert answer.json["usage"]["total_tokens"] == 20
    assert [body.get("stream") for body in server.bodies] == [None, True, True]
    assert not [body for body in server.bodies if "enable_thinking" in body], "thinking stays enabled"
    assert (await in_thread(Run.objects.get)).state == "completed"


async def test_an_aborted_stream_is_an_error(serve: Serve, db: None) -> None:
    server = serve("dashscope")
    server.refusals.append(CASES["dashscope: a model that only streams"].scripted())
    server.script(Step(text="Hello."))
    await complete({})
    server.always_answer(200, 'data: {"choices": [{"index": 0, "delta": {"content": "Well"}}]}\n\n')
    with pytest.raises(DomainError, match="in the middle of its answer"):
        await complete({})


def collect(*chunks: Any) -> dict[str, Any]:
    builder = CompletionBuilder()
    for chunk in chunks:
        builder.add(chunk)
    return json.loads(json.dumps(builder.completion()))


def test_choices_log_probabilities_and_call_fragments_are_joined() -> None:
    def logprob(token: str) -> dict[str, Any]:
        return {"content": [{"token": token, "logprob": -0.5, "top_logprobs": []}], "refusal": None}

    def fragment(arguments: str, **more: Any) -> dict[str, Any]:
        return {"index": 0, "id": "", "type": "function", "function": {"arguments": arguments, **more}}

    answer = collect(
        {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": []},
        {"choices": [{"index": 1, "delta": {"role": "assistant", "content": "B"}, "logprobs": logprob("B")}]},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None, "reasoning_content": "H"}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "m."}, "finish_reason": None}]},
        {"choices": [{"index": 1, "delta": {"content": "!"}, "logprobs": logprob("!"), "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{**fragment("", name="look"), "id": "c1"}]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [fragment('{"q":')]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [fragment(' "a"}')]}, "finish_reason": "tool_calls"}]},
        {"id": "1", "choices": [], "usage": {"total_tokens": 10}},
    )
    first, second = answer.pop("choices")
    assert answer == {"id": "1", "object": "chat.completion", "model": "m", "usage": {"total_tokens": 10}}
    assert first == {
        "index": 0,
        "message": {
            "role": "assistant",
            "reasoning_content": "Hm.",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "a"}'}},
            ],
        },
        "logprobs": None,
        "finish_reason": "tool_calls",
    }
    assert (second["message"]["content"], second["finish_reason"]) == ("B!", "length")
    assert [entry["token"] for entry in second["logprobs"]["content"]] == ["B", "!"]


def test_the_number_of_choices_is_limited() -> None:
    with pytest.raises(DomainError, match="more than 128 answers"):
        collect(*({"choices": [{"index": at, "delta": {}}]} for at in range(129)))


def test_pieces_of_a_signed_thought_are_one_block() -> None:
    """LiteLLM streams a thought of Claude in blocks without an index; Anthropic refuses one that is not signed."""
    redacted = {"type": "redacted_thinking", "data": "sealed"}
    blocks = [
        {"type": "thinking", "thinking": "They greet ", "signature": ""},
        {"type": "thinking", "thinking": "me.", "signature": None},
        {"type": "thinking", "thinking": "", "signature": "signed-1"},
        redacted,
        {"type": "thinking", "thinking": "I greet.", "signature": "signed-2"},
        {"type": "thinking", "thinking": "Or not.", "signature": "signed-3"},
    ]
    answer = collect(*({"choices": [{"index": 0, "delta": {"thinking_blocks": [block]}}]} for block in blocks))
    assert answer["choices"][0]["message"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "They greet me.", "signature": "signed-1"}, redacted, *blocks[4:],
    ]  # fmt: skip
