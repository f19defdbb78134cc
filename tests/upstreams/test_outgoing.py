"""What a dialect does to a request: roles, ids, stand-ins, fields"""

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


def sent(messages: list[dict[str, Any]], dialect: Dialect = DIALECTS["openai"], **body: Any) -> dict[str, Any]:
    return request_body({"model": "m", "messages": messages, **body}, dialect, upstream="default")


def messages_sent(messages: list[dict[str, Any]], dialect: str = "openai") -> list[dict[str, Any]]:
    return list(sent(messages, DIALECTS[dialect])["messages"])


def called(*ids: str, **more: Any) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "Yes.") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def none_for(call_id: str) -> dict[str, Any]:
    return result(call_id, "No result: the conversation went on without one.")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([USER, called("a"), USER], [USER, called("a"), none_for("a"), USER]),
        ([USER, called("a")], [USER, called("a"), none_for("a")]),
        ([called("a", "b"), result("b")], [called("a", "b"), none_for("a"), result("b")]),
        ([called("a", "b"), result("a"), USER], [called("a", "b"), result("a"), none_for("b"), USER]),
        ([called("a", "b"), USER], [called("a", "b"), none_for("a"), none_for("b"), USER]),
    ],
)
def test_a_call_without_a_result_is_given_one(given: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert messages_sent(given) == expected


def test_a_call_is_given_its_own_result_where_ids_repeat() -> None:
    made, results = ids(messages_sent([called("a"), USER, called("a"), result("a", "Mine.")]))
    assert (len(set(made)), results) == (2, made)


def test_a_result_that_comes_late_is_not_doubled() -> None:
    given = [called("a"), {"role": "system", "content": "Be brief."}, result("a")]
    assert messages_sent(given) == given


def ids(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    made = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    return made, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize("own", ["call_a", "functions.look:0", "x" * 40])
def test_an_id_that_a_server_takes_goes_back_as_it_is(own: str) -> None:
    assert ids(messages_sent([USER, called(own), result(own)])) == ([own], [own])


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
def test_an_id_that_a_server_refuses_is_replaced_in_call_and_result(given: str, dialect: str) -> None:
    (made,), (answered,) = ids(messages_sent([USER, called(given), result(given)], dialect))
    assert made == answered
    assert re.fullmatch("[A-Za-z0-9]{9}", made)
    longer = messages_sent([USER, called(given), result(given), {"role": "assistant", "content": "So."}, USER], dialect)
    assert ids(longer) == ([made], [made]), "a request that grows begins with the same bytes"


def test_ids_that_are_repeated_are_told_apart() -> None:
    made, answered = ids(messages_sent([USER, called("a", "a"), result("a"), result("a"), called("a"), result("a")]))
    assert made == answered
    assert made[0] == "a"
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    ("written", "expected"),
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
def test_arguments_that_no_server_could_read_are_sent_as_an_object(written: Any, expected: Any) -> None:
    given = called("a")
    given["tool_calls"][0]["function"]["arguments"] = written
    found = messages_sent([USER, given, result("a")])
    assert json.loads(found[1]["tool_calls"][0]["function"]["arguments"]) == expected
    assert given["tool_calls"][0]["function"]["arguments"] == written, "what was given is not changed"


@pytest.mark.parametrize("written", ['{"a":1}', ' {\n"ä" : [1, {}]}\n', "{}"])
def test_arguments_that_are_an_object_go_back_as_they_were_written(written: str) -> None:
    given = called("a")
    given["tool_calls"][0]["function"]["arguments"] = written
    assert messages_sent([USER, given, result("a")])[1] == given


def test_a_call_whose_type_its_client_left_out_has_one() -> None:
    given = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "look"}}]}
    (call,) = messages_sent([USER, given, result("a")])[1]["tool_calls"]
    assert call == {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_the_model_s_own_id_goes_back_under_which_a_client_never_knew_it() -> None:
    kept = KeptFields(upstream="default", model="m", calls={"call_ours_0": {"id": "functions.look:0"}})
    messages = [USER, with_kept(called("call_ours_0"), kept), result("call_ours_0")]
    assert ids(messages_sent(messages, "kimi")) == (["functions.look:0"], ["functions.look:0"])


@pytest.mark.parametrize(("upstream", "model"), [("other", "m"), ("default", "other")])
def test_another_upstream_or_model_is_given_nothing_of_what_was_kept(upstream: str, model: str) -> None:
    kept = KeptFields(upstream=upstream, model=model, fields={"reasoning": "Hm."}, calls={"a": {"id": "a", "extra": 1}})
    _, message, answered = messages_sent([USER, with_kept(called("a"), kept), result("a")])
    (call,) = message["tool_calls"]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert call.keys() == {"id", "type", "function"}
    assert call["id"] == answered["tool_call_id"] != "a"


def test_results_stand_in_the_order_of_their_calls() -> None:
    messages = messages_sent(
        [USER, called("a", "b", "c"), result("c"), result("a"), result("b"), called("d"), result("d")]
    )
    assert ids(messages)[1] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "message", [{"content": ""}, {"content": None, "refusal": None}, {"content": "", "tool_calls": []}]
)
def test_a_message_that_says_nothing_is_left_out(message: dict[str, Any]) -> None:
    assert messages_sent([USER, {"role": "assistant", **message}, USER]) == [USER, USER]


def test_what_is_demanded_and_was_lost_has_a_stand_in() -> None:
    history = [USER, called("a"), result("a"), {"role": "assistant", "content": "So."}, USER, called("b"), result("b")]
    deepseek = [message for message in messages_sent(history, "deepseek") if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in deepseek] == [" ", " ", " "]
    kimi = [message for message in messages_sent(history, "kimi") if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in kimi] == [" ", None, " "]
    gemini = [message for message in messages_sent(history, "gemini") if message.get("tool_calls")]
    assert [call.keys() & {"extra_content"} for message in gemini for call in message["tool_calls"]] == [
        set(),
        {"extra_content"},
    ], "only of the current turn"


def test_reasoning_that_a_client_sends_again_is_kept_where_it_is_taken() -> None:
    history = [USER, {"role": "assistant", "content": "So.", "reasoning_content": "Hm."}, USER]
    assert messages_sent(history, "deepseek")[1]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in messages_sent(history, "groq")[1]
    without = request_body({"model": "m", "messages": history}, Dialect(replay_reasoning=False), upstream="default")
    assert "reasoning_content" not in without["messages"][1]


def test_strict_templates_get_one_system_message_and_roles_in_turn() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "user", "content": "What is it?"},
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "A cat."},
        {"role": "assistant", "content": "It sleeps."},
        USER,
        called("a"),
        result("a", [{"type": "text", "text": "Yes."}]),
        USER,
    ]
    found = messages_sent(messages, "strict")
    assert [message["role"] for message in found] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "tool", "assistant", "user"
    ]  # fmt: skip
    assert found[0]["content"] == "Be kind.\n\nBe brief."
    assert [part["type"] for part in found[3]["content"]] == ["image_url", "text"]
    assert found[4]["content"] == "A cat.\n\nIt sleeps."
    assert found[7]["content"] == "Yes."


def test_fields_are_renamed_set_and_dropped_wherever_they_stand() -> None:
    dialect = Dialect(
        rename={"max_completion_tokens": "max_tokens"},
        set={"reasoning_effort": "none"},
        drop=("seed", "messages.name", "tools.function.strict"),
        stream_options=False,
    )
    tools = [{"type": "function", "function": {"name": "look", "strict": True}}]
    given = {"max_completion_tokens": 5, "seed": 1, "stop": None, "stream_options": {}, "tools": tools}
    body = sent([{**USER, "name": "alice"}], dialect, **given)
    assert body == {
        "model": "m",
        "messages": [USER],
        "max_tokens": 5,
        "reasoning_effort": "none",
        "tools": [{"type": "function", "function": {"name": "look"}}],
    }
    assert tools[0]["function"] == {"name": "look", "strict": True}, "what was given is not changed"


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_what_a_tool_shows_follows_the_results_of_its_message_as_the_users() -> None:
    shown = [{"type": "text", "text": "A map."}, IMAGE]
    found = messages_sent([USER, called("a", "b"), result("b", "Cold."), result("a", shown), USER])
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [message["content"] for message in found[2:4]] == [[{"type": "text", "text": "A map."}], "Cold."]
    assert found[4]["content"] == [{"type": "text", "text": MEDIA_OF_TOOL}, IMAGE]


@pytest.mark.parametrize("dialect", ["openai", "strict", "ollama", "mistral"])
def test_a_picture_alone_is_a_result_and_reaches_every_server(dialect: str) -> None:
    found = messages_sent([USER, called("a"), result("a", [IMAGE])], dialect)
    (answered,) = [message for message in found if message["role"] == "tool"]
    assert answered["content"] == MEDIA_FOLLOWS
    assert IMAGE in found[-1]["content"]
    assert refusal(RULES[dialect], {"model": "m", "messages": found, "tools": [{"function": {}}]}) is None


def test_a_result_whose_call_was_cut_away_is_text_of_the_users() -> None:
    found = messages_sent([result("lost", "21 C"), USER, called("a"), result("gone", [IMAGE]), result("a", "Yes.")])
    assert [message["role"] for message in found] == ["user", "user", "assistant", "tool", "user"]
    assert found[0]["content"] == [{"type": "text", "text": f"{ORPHANED_RESULT}\n\n21 C"}]
    assert found[-1]["content"] == [{"type": "text", "text": ORPHANED_RESULT}, IMAGE]
