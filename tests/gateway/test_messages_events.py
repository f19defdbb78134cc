"""/v1/messages: content blocks and events from streamed pieces in any order"""

import json
from typing import Any

import pytest

from gateway.api.anthropic_answer import assemble
from tests.conftest import Api
from tests.gateway.messages import send, stream, tool_result
from tests.gateway.played import Plays, piece, plays

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

LOOKUP = {"name": "lookup", "input_schema": {"type": "object"}}
__all__ = ["plays"]  # a fixture


async def blocks(api: Api, **body: Any) -> list[dict[str, Any]]:
    """Return the blocks assembled from a stream."""
    content: list[dict[str, Any]] = assemble(await stream(api, "hi", **body))["content"]
    return content


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thinking_is_a_block_with_a_signature(alice_api: Api, plays: Plays, name: str) -> None:
    plays([{name: "Let me "}, {name: "see."}, "\n\n", "Yes."], usage={"prompt_tokens": 7})
    events = await stream(alice_api, "hi")
    assert [event["delta"] for event in events if event["type"] == "content_block_delta"] == [
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "see."},
        {"type": "signature_delta", "signature": "daybook"},
        {"type": "text_delta", "text": "\n\nYes."},
    ]
    assert events[1]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}


async def test_an_unstreamed_answer_has_the_same_blocks(alice_api: Api, plays: Plays) -> None:
    plays([{"reasoning_content": "Hm."}, "Yes."])
    answer = await send(alice_api, "hi")
    assert answer.json["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "daybook"},
        {"type": "text", "text": "Yes."},
    ]


async def test_an_unstreamed_answer_has_the_thinking_of_each_step(alice_api: Api, plays: Plays) -> None:
    search = piece(0, '{"query": "tea"}', name="search_memories")
    plays([{"reasoning_content": "I look."}, search], [{"reasoning_content": "Hm."}, "Yes."])
    answer = await send(alice_api, "hi")
    assert [block.get("thinking", block.get("text")) for block in answer.json["content"]] == ["I look.Hm.", "Yes."]


async def test_thinking_after_text_is_a_separate_block(alice_api: Api, plays: Plays) -> None:
    plays(["Yes", {"reasoning": "Really?"}, " indeed."])
    assert [block["type"] for block in await blocks(alice_api)] == ["text", "thinking", "text"]


async def test_whitespace_before_a_call_is_not_a_block(alice_api: Api, plays: Plays) -> None:
    plays(["", "\n\n", piece(0, "{}", name="lookup")])
    (call,) = await blocks(alice_api, tools=[LOOKUP])
    assert (call["type"], call["input"]) == ("tool_use", {})


async def test_pieces_of_several_calls_are_sorted_into_blocks(alice_api: Api, plays: Plays) -> None:
    plays(
        [
            "So:",
            piece(0, '{"q": ', name="lookup"),
            piece(1, '{"q": ', name="lookup"),
            piece(0, '"a"}'),
            piece(1, '"b"}'),
            piece(2, name="lookup"),
            "There.",
        ],
        finish_reason="tool_calls",
    )
    found = await blocks(alice_api, tools=[LOOKUP])
    assert [block.get("input", block.get("text")) for block in found] == ["So:", {"q": "a"}, {"q": "b"}, {}, "There."]
    assert len({block["id"] for block in found if "id" in block}) == 3


async def test_a_complete_call_does_not_hold_back_the_next(alice_api: Api, plays: Plays) -> None:
    plays([piece(0, '{"q": "a"}', name="lookup"), piece(1, '{"q": ', name="lookup"), piece(1, '"b"}')])
    events = await stream(alice_api, "hi", tools=[LOOKUP])
    arguments = [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"]
    assert arguments == ['{"q": "a"}', '{"q": ', '"b"}']


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["nu", "ll"], {}),
        ([" ", "\n"], {}),
        (["[1", ", 2]"], {"arguments": [1, 2]}),
        (["'x", "'"], {"arguments": "'x'"}),
        (['"{\\"a\\"', ': 1}"'], {"a": 1}),
        ([" {", '"a": 1}'], {"a": 1}),
        (
            ['{"a": [N', "a", "N, -Infi", "nity,1e9", '99], "b": "NaN', "\\", '" NaN"', "}"],
            {"a": [None] * 3, "b": 'NaN" NaN'},
        ),
    ],
)
async def test_a_stream_and_a_whole_answer_agree_on_the_arguments(
    alice_api: Api, plays: Plays, pieces: list[str], expected: dict[str, Any]
) -> None:
    deltas = [piece(0, name="lookup"), *(piece(0, text) for text in pieces)]
    plays(deltas, [piece(0, "".join(pieces), "lookup")])
    events = await stream(alice_api, "hi", tools=[LOOKUP])
    text = "".join(event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta")
    assert json.loads(text or "{}") == expected
    whole = (await send(alice_api, "hello", tools=[LOOKUP])).json
    assert [block["input"] for block in whole["content"]] == [expected]


@pytest.mark.parametrize(
    ("arguments", "expected"), [("[1", {"arguments": "[1"}), ('{"a": NaN, "b": 1e999}', {"a": None, "b": None})]
)
async def test_arguments_that_are_not_a_json_object_become_one(
    alice_api: Api, plays: Plays, arguments: str, expected: dict[str, Any]
) -> None:
    plays([piece(0, arguments, name="lookup")])
    (call,) = (await send(alice_api, "hi", tools=[LOOKUP])).json["content"]
    assert call["input"] == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ({"finish_reason": "length"}, ("max_tokens", None)),
        ({"finish_reason": "content_filter"}, ("refusal", None)),
        ({"stop_reason": "END"}, ("stop_sequence", "END")),
        ({"matched_stop": "END"}, ("stop_sequence", "END")),
        ({"stop_reason": 128009}, ("end_turn", None)),
        ({"finish_reason": "tool_calls"}, ("end_turn", None)),
    ],
)
async def test_the_stop_reason_is_translated(
    alice_api: Api, plays: Plays, end: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    plays(["Yes."], ["Yes."], **end)
    stop = (await stream(alice_api, "hi", stop_sequences=["END"]))[-2]["delta"]
    assert (stop["stop_reason"], stop["stop_sequence"]) == expected
    answer = (await send(alice_api, "hello", stop_sequences=["END"])).json
    assert (answer["stop_reason"], answer["stop_sequence"]) == expected


async def test_a_refusal_sets_the_stop_reason(alice_api: Api, plays: Plays) -> None:
    plays([{"refusal": "I will not "}, {"refusal": "do that."}], [{"refusal": "I will not do that."}])
    assert (await stream(alice_api, "hi"))[-2]["delta"]["stop_reason"] == "refusal"
    answer = (await send(alice_api, "hello")).json
    assert (answer["stop_reason"], answer["content"][0]["text"]) == ("refusal", "I will not do that.")


async def test_cached_tokens_are_counted_separately(alice_api: Api, plays: Plays) -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    plays(["Yes."], usage={"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": details})
    assert (await stream(alice_api, "hi"))[-2]["usage"] == {
        "input_tokens": 10,
        "output_tokens": 3,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
    }


async def test_reasoning_sent_with_a_call_is_returned_to_the_server(alice_api: Api, plays: Plays) -> None:
    """This does not depend on the thinking block that the client sends back."""
    requests = plays([{"reasoning_content": "Hm."}, piece(0, "{}", name="lookup")], ["Found."])
    events = await stream(alice_api, "hi", tools=[LOOKUP])
    content = json.loads(json.dumps(assemble(events)["content"]))
    message = {"role": "assistant", "content": content}
    await stream(alice_api, "hi", message, {"role": "user", "content": [tool_result(content[-1])]}, tools=[LOOKUP])
    sent = requests[1].body(stream=True)["messages"][-2]
    assert (sent["reasoning_content"], sent["tool_calls"][0]["id"]) == ("Hm.", "up_0")
