"""/v1/messages: translation of requests for the model server"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.anthropic_body import read_messages, session_in
from gateway.models import Agent, Session
from memories.database.access import in_thread
from memories.errors import DomainError
from tests.conftest import Api
from tests.gateway.messages import send
from tests.properties import BOUNDED, odd_object
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database

CACHED = {"cache_control": {"type": "ephemeral"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def use(call_id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "lookup", "input": {"q": "ä"}}


def tool_result(call_id: str = "toolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **more}


async def sent(api: Api, model: ScriptedModel, *messages: Any, **body: Any) -> list[dict[str, Any]]:
    """Return the messages that are sent upstream after our system message."""
    model.script("Yes.")
    response = await send(api, *messages, **body)
    assert response.status == 200, response.json
    return list(model.calls[-1].messages[1:])


async def test_cache_control_is_kept(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    billing = text("x-anthropic-billing-header: v=2; cch=12345;")
    (asked,) = await sent(
        alice_api, model, user(text("hi", **CACHED)), system=[billing, text("Be kind."), text("Be terse.", **CACHED)]
    )
    assert asked["content"] == [text("hi", **CACHED)]
    assert model.calls[0].messages[0]["content"] == [
        text("You are terse."),
        text("Be kind."),
        text("Be terse.", **CACHED),
    ]


async def test_images_and_documents_are_translated(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    (asked,) = await sent(
        alice_api,
        model,
        user(
            text("Look:"),
            text(""),
            PNG,
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": pdf, "title": "a.pdf"},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words."}},
            {"type": "search_result", "title": "T", "source": "https://example.org", "content": [text("Found.")]},
            {"type": "container_upload", "file_id": "f"},
        ),
    )
    assert asked["content"] == [
        text("Look:"),
        PNG_PART,
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        text("[File document]\nWords."),
        text("[File T]\nhttps://example.org\n\nFound."),
    ]


async def test_the_context_of_a_document_precedes_it(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Yes.")
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    document = {"type": "document", "source": pdf, "title": "a.pdf", "context": "The report of 2026."}
    await send(alice_api, {"role": "user", "content": [document, {"type": "text", "text": "What is it?"}]})
    parts = model.calls[0].messages[-1]["content"]
    assert [part["type"] for part in parts] == ["text", "file", "text"]
    assert parts[0]["text"] == "[File a.pdf]\nThe report of 2026."


async def test_a_session_title_ignores_documents(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    attached = {"type": "document", "title": "a.txt", "source": {"type": "text", "data": "Words."}}
    await sent(alice_api, model, user(attached, text("What is it?")))
    assert (await in_thread(Session.objects.get)).title == "What is it?"


async def test_calls_and_results_from_elsewhere_are_translated(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    """Calls that Daybook did not make, in a conversation that began elsewhere."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "of somebody else"}
    server = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
    asked = await sent(
        alice_api,
        model,
        "hi",
        {
            "role": "assistant",
            "content": [
                thinking,
                {"type": "redacted_thinking", "data": "x"},
                text("One moment."),
                server,
                use("a"),
                use("b"),
                use("c"),
            ],
        },
        user(
            tool_result("a", content=[text("No"), text("good")], is_error=True),
            tool_result("b"),
            tool_result("c", content=[text("Seen:"), PNG], **CACHED),
            text("And?"),
        ),
    )
    call = {"type": "function", "function": {"name": "lookup", "arguments": '{"q": "ä"}'}}
    assert asked == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [{"id": name, **call} for name in ("a", "b", "c")],
        },
        {"role": "tool", "tool_call_id": "a", "content": "Error:\n\nNo\n\ngood"},
        {"role": "tool", "tool_call_id": "b", "content": " "},
        {"role": "tool", "tool_call_id": "c", "content": [text("Seen:"), {**PNG_PART, **CACHED}]},
        {"role": "user", "content": "And?"},
    ]


async def test_the_tools_that_a_search_found_are_named(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    """Claude Code answers its ToolSearch with references, and offers the tools in the same request."""
    found = [{"type": "tool_reference", "tool_name": "weather"}, {"type": "tool_reference", "tool_name": "map"}]
    asked = await sent(
        alice_api, model, "hi", {"role": "assistant", "content": [use()]}, user(tool_result(content=found))
    )
    assert asked[-1]["content"] == "You can now call `weather`.\n\nYou can now call `map`."


async def test_system_messages_keep_their_place_but_never_separate_call_and_result(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    def system(words: str) -> dict[str, Any]:
        return {"role": "system", "content": words}

    asked = await sent(
        alice_api,
        model,
        "hi",
        {"role": "assistant", "content": "Hello."},
        system("One."),
        user(text("Look it up")),
        {"role": "assistant", "content": [use()]},
        system("Two."),
        user(tool_result(content="42")),
        system("Three."),
        user(text("And?")),
    )
    assert [(message["role"], message["content"]) for message in asked] == [
        ("user", "hi"),
        ("assistant", "Hello."),
        ("system", "One."),
        ("user", "Look it up"),
        ("system", "Two."),
        ("assistant", None),
        ("tool", "42\n\nThree."),
        ("user", "And?"),
    ]


def parameters(**body: Any) -> dict[str, Any]:
    """Return the parameters and tools of a request."""
    asked = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}], **body}
    read = read_messages(json.dumps(asked).encode())
    return {**read.parameters, **({"tools": list(read.tools)} if read.tools else {})}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "lookup"}, {"tool_choice": {"type": "function", "function": {"name": "lookup"}}}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"tool_choice": "auto", "parallel_tool_calls": False}),
    ],
)
def test_tool_choice_is_translated(choice: dict[str, Any], expected: dict[str, Any]) -> None:
    assert parameters(tool_choice=choice) == expected


def test_tools_may_be_added_and_removed_in_the_conversation() -> None:
    """The SDK's tool runner does so with `addTools()` and `removeTools()`, which leave `tools` as it was."""
    added = {"type": "custom", "name": "lookup", "description": "Looks up", "input_schema": {"type": "object"}}
    server_tool = {"type": "web_search_20250305", "name": "web_search"}

    def change(kind: str, **tool: Any) -> dict[str, Any]:
        return {"type": f"tool_{kind}", "tool": tool}

    def offered(*changes: dict[str, Any]) -> list[str]:
        messages = [user(text("hi")), {"role": "system", "content": list(changes)}]
        body = {"model": "assistant", "max_tokens": 1, "tools": [{"name": "a"}, {"name": "b"}], "messages": messages}
        completion = read_messages(json.dumps(body).encode())
        assert [message["content"] for message in completion.messages] == ["hi"]
        return [tool["function"]["name"] for tool in completion.tools]

    def by_name(name: str) -> dict[str, str]:
        return {"type": "tool_reference", "name": name}

    assert offered(change("addition", type="tool_definition", definition=added)) == ["a", "b", "lookup"]
    assert offered(change("addition", type="tool_definition", definition=server_tool)) == ["a", "b"]
    assert offered(change("removal", **by_name("a")), change("removal", **by_name("c"))) == ["b"]
    assert offered(change("removal", **by_name("a")), change("addition", **by_name("a"))) == ["b", "a"]
    with pytest.raises(DomainError, match="tool_addition"):
        offered(change("addition", type="tool_definition", definition={}))


async def test_the_summary_that_replaced_earlier_messages_is_kept(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    summary = {"type": "compaction", "content": "The person is called Ada.", "signature": "s", "tool_changes": []}
    failed = {"type": "compaction", "content": None}
    asked = await sent(alice_api, model, {"role": "assistant", "content": [failed, summary]}, user(text("And?")))
    assert asked == [{"role": "assistant", "content": "The person is called Ada."}, {"role": "user", "content": "And?"}]


def test_anthropic_defined_tools_are_not_offered() -> None:
    custom = {"type": "custom", "name": "lookup", "input_schema": {"type": "object"}, **CACHED}
    search = {"type": "web_search_20260101", "name": "web_search"}
    function = {"name": "lookup", "parameters": {"type": "object"}}
    assert parameters(tools=[search, custom]) == {"tools": [{"type": "function", "function": function}]}
    assert parameters(tools=None) == {}


@pytest.mark.parametrize(
    ("asked", "effort"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 31_999}}, "high"),
        ({"thinking": {"type": "enabled", "budget_tokens": 31_999}, "output_config": {"effort": "low"}}, "low"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, "high"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, "none"),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"output_config": {"effort": "medium"}}, "medium"),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"thinking": {"type": "enabled"}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": True}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": "much"}}, None),
        ({"thinking": "yes", "output_config": {"effort": "much"}}, None),
    ],
)
def test_thinking_becomes_the_reasoning_effort(asked: dict[str, Any], effort: str | None) -> None:
    assert parameters(**asked) == ({"reasoning_effort": effort} if effort else {})


async def test_thinking_is_sent_upstream_as_an_effort_only(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    await sent(alice_api, model, user(text("hi")), thinking={"type": "enabled", "budget_tokens": 8_000})
    parameters = dict(model.calls[-1].parameters)
    assert (parameters["reasoning_effort"], "thinking" in parameters) == ("medium", False)


def test_fields_without_a_counterpart_are_dropped() -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    assert parameters(
        thinking={"type": "adaptive"},
        context_management={"edits": []},
        service_tier="auto",
        metadata={"user_id": "somebody"},
        output_config={"effort": "max", "format": form},
    ) == {
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        },
    }


_TYPES = st.sampled_from(["text", "image", "document", "tool_use", "tool_result", "search_result", "custom", "base64"])
_BLOCK = odd_object(
    type=_TYPES,
    text=st.just("hi"),
    content=st.just([{"type": "text", "text": "hi"}]),
    source=odd_object(type=_TYPES, data=st.just("aGk="), content=st.just("hi")),
    id=st.just("a"),
    name=st.just("lookup"),
)
_MESSAGES = st.lists(
    odd_object(role=st.sampled_from(["user", "assistant", "system"]), content=st.lists(_BLOCK, max_size=2)),
    min_size=1,
    max_size=3,
)
_REST = odd_object(
    system=st.lists(_BLOCK, max_size=2),
    tools=st.lists(_BLOCK, max_size=2),
    tool_choice=_BLOCK,
    output_config=odd_object(effort=st.just("low"), format=_BLOCK),
    thinking=odd_object(type=st.sampled_from(["enabled", "adaptive", "disabled"]), budget_tokens=st.just(2048)),
    metadata=odd_object(user_id=st.just("{}")),
    stop_sequences=st.just(["END"]),
)


@BOUNDED
@given(_MESSAGES, _REST)
def test_any_request_is_read_or_refused(messages: list[Any], rest: dict[str, Any]) -> None:
    raw = json.dumps({**rest, "model": "assistant", "messages": messages}).encode()
    try:
        body = read_messages(raw)
    except DomainError:
        return
    assert isinstance(session_in(body.metadata), str)
    assert json.dumps([body.messages, body.parameters, body.tools])
