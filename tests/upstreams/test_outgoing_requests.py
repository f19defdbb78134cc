"""How a dialect changes a request: roles, ids, placeholders, fields."""

import json
import re
from typing import Any

import pytest

from gateway.upstream.dialects import DIALECTS, Dialect
from gateway.upstream.kept import KeptFields, with_kept
from gateway.upstream.outgoing import request_body
from prompts.conversation import MEDIA_FOLLOWS, MEDIA_OF_TOOL, ORPHANED_RESULT
from tests.upstreams.rules import RULES, refusal

USER = {"role": "user", "content": "Hi"}


def converted_body(
    messages: list[dict[str, Any]], dialect: Dialect = DIALECTS["openai"], **body: Any
) -> dict[str, Any]:
    return request_body({"model": "m", "messages": messages, **body}, dialect, upstream="default")


def converted(messages: list[dict[str, Any]], dialect: str = "openai") -> list[dict[str, Any]]:
    return list(converted_body(messages, DIALECTS[dialect])["messages"])


def calling(*ids: str, **more: Any) -> dict[str, Any]:
    """Return an assistant message that calls tools under these ids."""
    calls = [{"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "Yes.") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def no_result(call_id: str) -> dict[str, Any]:
    return result(call_id, "No result: the conversation went on without one.")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER, calling("a"), USER], [USER, calling("a"), no_result("a"), USER]),
        ([USER, calling("a")], [USER, calling("a"), no_result("a")]),
        ([calling("a", "b"), result("b")], [calling("a", "b"), no_result("a"), result("b")]),
        ([calling("a", "b"), result("a"), USER], [calling("a", "b"), result("a"), no_result("b"), USER]),
        ([calling("a", "b"), USER], [calling("a", "b"), no_result("a"), no_result("b"), USER]),
    ],
)
def test_a_call_without_a_result_gets_a_placeholder(
    messages: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    assert converted(messages) == expected


def test_a_call_gets_its_own_result_if_ids_repeat() -> None:
    calls, results = ids(converted([calling("a"), USER, calling("a"), result("a", "Mine.")]))
    assert (len(set(calls)), results) == (2, calls)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([calling("a"), USER, result("a")], [calling("a"), result("a"), USER]),
        ([calling("a", "b"), result("b"), USER, result("a")], [calling("a", "b"), result("a"), result("b"), USER]),
        (
            [calling("a"), calling("b"), result("a"), result("b")],
            [calling("a"), result("a"), calling("b"), result("b")],
        ),
    ],
)
def test_a_late_result_is_moved_behind_its_call(messages: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Servers refuse a conversation with anything in between."""
    assert converted(messages) == expected


def ids(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    return calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize("own", ["call_a", "functions.look:0", "x" * 40])
def test_an_id_that_the_server_accepts_is_unchanged(own: str) -> None:
    assert ids(converted([USER, calling(own), result(own)])) == ([own], [own])


@pytest.mark.parametrize(
    ("given", "dialect"),
    [
        ("x" * 41, "openai"),
        ("", "openai"),
        ("call_a", "mistral"),
        ("functions.look:0", "anthropic"),
        ("x" * 129, "vllm"),
    ],
)
def test_an_id_that_the_server_refuses_is_replaced_in_call_and_result(given: str, dialect: str) -> None:
    (call_id,), (result_id,) = ids(converted([USER, calling(given), result(given)], dialect))
    assert call_id == result_id
    assert re.fullmatch("[A-Za-z0-9]{9}", call_id)
    longer = converted([USER, calling(given), result(given), {"role": "assistant", "content": "So."}, USER], dialect)
    assert ids(longer) == ([call_id], [call_id]), "a longer conversation begins with the same bytes"


def test_repeated_ids_are_made_unique() -> None:
    calls, results = ids(converted([USER, calling("a", "a"), result("a"), result("a"), calling("a"), result("a")]))
    assert calls == results
    assert calls[0] == "a"
    assert len(set(calls)) == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        (" ", {}),
        (None, {}),
        ("null", {}),
        ('{"a": 1', {"arguments": '{"a": 1'}),
        ("{'a': 1}", {"arguments": "{'a': 1}"}),
        ('{"a": 1}{"a": 1}', {"arguments": '{"a": 1}{"a": 1}'}),
        ("[1]", {"arguments": [1]}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("[" * 100_000, {"arguments": "[" * 100_000}),
    ],
)
def test_unreadable_arguments_are_sent_as_an_object(arguments: Any, expected: Any) -> None:
    given = calling("a")
    given["tool_calls"][0]["function"]["arguments"] = arguments
    outgoing = converted([USER, given, result("a")])
    assert json.loads(outgoing[1]["tool_calls"][0]["function"]["arguments"]) == expected
    assert given["tool_calls"][0]["function"]["arguments"] == arguments, "the input is not changed"


@pytest.mark.parametrize("arguments", ['{"a":1}', ' {\n"ä" : [1, {}]}\n', "{}"])
def test_arguments_that_are_an_object_are_unchanged(arguments: str) -> None:
    given = calling("a")
    given["tool_calls"][0]["function"]["arguments"] = arguments
    assert converted([USER, given, result("a")])[1] == given


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("multi_tool_use.parallel", "multi_tool_use_parallel"),
        ("add_memory<|channel|>commentary", "add_memory__channel__commentary"),
        ("look" * 1000, ("look" * 1000)[:64]),
        ("", "unknown"),
        ("look-up_2", "look-up_2"),
    ],
)
def test_a_name_that_a_model_invented_is_made_acceptable(name: str, sent: str) -> None:
    """A server refuses the whole conversation because of it."""
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}
    custom = {"id": "b", "type": "custom", "custom": {"name": name, "input": "x"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, custom]}
    _, called, *_ = converted([USER, message, result("a"), result("b")])
    assert [part["function" if "function" in part else "custom"]["name"] for part in called["tool_calls"]] == [sent] * 2
    assert call["function"] == {"name": name, "arguments": "{}"}, "the stored call is unchanged"


def test_the_name_of_an_offered_tool_is_sent_as_it_is() -> None:
    tools = [{"type": "function", "function": {"name": "files.look", "parameters": {}}}]
    call = {"id": "a", "type": "function", "function": {"name": "files.look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = converted_body([USER, message, result("a")], tools=tools)
    assert body["messages"][1]["tool_calls"] == [call]


def test_a_missing_call_type_is_filled_in() -> None:
    given = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "look"}}]}
    (call,) = converted([USER, given, result("a")])[1]["tool_calls"]
    assert call == {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_the_models_own_call_id_is_restored_from_the_kept_fields() -> None:
    kept = KeptFields(upstream="default", model="m", calls={"call_ours_0": {"id": "functions.look:0"}})
    messages = [USER, with_kept(calling("call_ours_0"), kept), result("call_ours_0")]
    assert ids(converted(messages, "kimi")) == (["functions.look:0"], ["functions.look:0"])


@pytest.mark.parametrize(("upstream", "model"), [("other", "m"), ("default", "other")])
def test_another_upstream_or_model_gets_no_kept_fields(upstream: str, model: str) -> None:
    kept = KeptFields(upstream=upstream, model=model, fields={"reasoning": "Hm."}, calls={"a": {"id": "a", "extra": 1}})
    _, message, result_message = converted([USER, with_kept(calling("a"), kept), result("a")])
    (call,) = message["tool_calls"]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert call.keys() == {"id", "type", "function"}
    assert call["id"] == result_message["tool_call_id"] != "a"


def test_results_are_put_in_the_order_of_their_calls() -> None:
    messages = converted(
        [USER, calling("a", "b", "c"), result("c"), result("a"), result("b"), calling("d"), result("d")]
    )
    assert ids(messages)[1] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "message", [{"content": ""}, {"content": None, "refusal": None}, {"content": "", "tool_calls": []}]
)
def test_an_empty_message_is_left_out(message: dict[str, Any]) -> None:
    assert converted([USER, {"role": "assistant", **message}, USER]) == [USER, USER]


def test_lost_fields_that_the_server_requires_get_placeholders() -> None:
    history = [
        USER,
        calling("a"),
        result("a"),
        {"role": "assistant", "content": "So."},
        USER,
        calling("b"),
        result("b"),
    ]
    deepseek = [message for message in converted(history, "deepseek") if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in deepseek] == [" ", " ", " "]
    kimi = [message for message in converted(history, "kimi") if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in kimi] == [" ", None, " "]
    gemini = [message for message in converted(history, "gemini") if message.get("tool_calls")]
    assert [call.keys() & {"extra_content"} for message in gemini for call in message["tool_calls"]] == [
        set(),
        {"extra_content"},
    ], "only in the current turn"


def test_resent_reasoning_is_kept_if_the_server_accepts_it() -> None:
    history = [USER, {"role": "assistant", "content": "So.", "reasoning_content": "Hm."}, USER]
    assert converted(history, "deepseek")[1]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in converted(history, "groq")[1]
    without = request_body({"model": "m", "messages": history}, Dialect(replay_reasoning=False), upstream="default")
    assert "reasoning_content" not in without["messages"][1]


def test_strict_templates_get_one_system_message_and_alternating_roles() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "user", "content": "What is it?"},
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "A cat."},
        {"role": "assistant", "content": "It sleeps."},
        USER,
        calling("a"),
        result("a", [{"type": "text", "text": "Yes."}]),
        USER,
    ]
    outgoing = converted(messages, "strict")
    assert [message["role"] for message in outgoing] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "tool", "assistant", "user"
    ]  # fmt: skip
    assert outgoing[0]["content"] == "Be kind.\n\nBe brief."
    assert [part["type"] for part in outgoing[3]["content"]] == ["image_url", "text"]
    assert outgoing[4]["content"] == "A cat.\n\nIt sleeps."
    assert outgoing[7]["content"] == "Yes."


def test_fields_are_renamed_set_and_dropped_at_any_depth() -> None:
    dialect = Dialect(
        rename={"max_completion_tokens": "max_tokens"},
        set={"reasoning_effort": "none"},
        drop=["seed", "messages.name", "tools.function.strict"],
        stream_options=False,
    )
    tools = [{"type": "function", "function": {"name": "look", "strict": True}}]
    given = {"max_completion_tokens": 5, "seed": 1, "stop": None, "stream_options": {}, "tools": tools}
    body = converted_body([{**USER, "name": "alice"}], dialect, **given)
    assert body == {
        "model": "m",
        "messages": [USER],
        "max_tokens": 5,
        "reasoning_effort": "none",
        "tools": [{"type": "function", "function": {"name": "look"}}],
    }
    assert tools[0]["function"] == {"name": "look", "strict": True}, "the input is not changed"


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_images_in_tool_results_follow_as_a_user_message() -> None:
    content = [{"type": "text", "text": "A map."}, IMAGE]
    outgoing = converted([USER, calling("a", "b"), result("b", "Cold."), result("a", content), USER])
    assert [message["role"] for message in outgoing] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [message["content"] for message in outgoing[2:4]] == [[{"type": "text", "text": "A map."}], "Cold."]
    assert outgoing[4]["content"] == [{"type": "text", "text": MEDIA_OF_TOOL}, IMAGE]


@pytest.mark.parametrize("dialect", ["openai", "strict", "ollama", "mistral"])
def test_a_result_with_only_an_image_reaches_every_server(dialect: str) -> None:
    outgoing = converted([USER, calling("a"), result("a", [IMAGE])], dialect)
    (result_message,) = [message for message in outgoing if message["role"] == "tool"]
    assert result_message["content"] == MEDIA_FOLLOWS
    assert IMAGE in outgoing[-1]["content"]
    assert refusal(RULES[dialect], {"model": "m", "messages": outgoing, "tools": [{"function": {}}]}) is None


def test_an_orphaned_result_becomes_a_user_message() -> None:
    outgoing = converted([result("lost", "21 C"), USER, calling("a"), result("gone", [IMAGE]), result("a", "Yes.")])
    assert [message["role"] for message in outgoing] == ["user", "user", "assistant", "tool", "user"]
    assert outgoing[0]["content"] == [{"type": "text", "text": f"{ORPHANED_RESULT}\n\n21 C"}]
    assert outgoing[-1]["content"] == [{"type": "text", "text": ORPHANED_RESULT}, IMAGE]
