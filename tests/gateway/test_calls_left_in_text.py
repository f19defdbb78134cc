"""Turns on servers that leave the calls of our tools in the text"""

import json
from typing import Any

import pytest

from gateway.models import Agent, Message, Run, Session
from gateway.turns.written_calls import WrittenCalls
from memories.database.access import in_thread
from memories.models import Memory, Owner
from tests.conftest import Api
from tests.factories import memory_make
from tests.gateway.client_tools import LOOKUP
from tests.gateway.native import turns_path
from tests.gateway.v1 import answer_text, stream, streamed_text
from tests.scripted_model import Says, ScriptedModel, calls, says

pytestmark = pytest.mark.any_database

ARGUMENTS = json.dumps({"content": "Likes tea."})
CALL = f'{{"name": "add_memory", "arguments": {ARGUMENTS}}}'
TAGGED = f"<tool_call>\n{CALL}\n</tool_call>"
WRITTEN = [
    TAGGED,
    CALL,
    f"```json\n{CALL}\n```",
    f"[TOOL_CALLS][{CALL}]",
    f"<function=add_memory>{ARGUMENTS}</function>",
    "<tool_call>\n<function=add_memory>\n<parameter=content>\nLikes tea.\n</parameter>\n</function>\n</tool_call>",
    '<|python_tag|>add_memory(content="Likes tea.")<|eom_id|>',
    "[add_memory(content='Likes tea.')]",
    "<tool_call>add_memory<arg_key>content</arg_key><arg_value>Likes tea.</arg_value></tool_call>",
    f"\n\n{TAGGED}\n{TAGGED}<|im_end|>",
    f"<think>I could write {CALL}</think>\n\n{TAGGED}",
]
ORDINARY = [
    "I called add_memory.",
    "<b>Bold</b> and [a link](https://example.org).",
    '{"name": "Ada", "tool": "hammer"}',
    "```python\nadd_memory = {}\n```",
    "```python\nadd_memory(content='Likes tea.')\n```",
    "[add_memory(content='Likes tea.')] is a call in Python's style.",
    f"```json\n{CALL}\n```\nThis is how a call of add_memory looks.",
    '{"add_memory": ',
    "<tool_call>look</tool_call>",
    "a < b and [x",
    "[TOOL_CALLS]",
    "",
]


def pieces(text: str, size: int = 3) -> Says:
    return says(*(text[at : at + size] for at in range(0, len(text), size)))


async def memories() -> list[str]:
    return await in_thread(lambda: [memory.content for memory in Memory.objects.all()])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("text", WRITTEN)
async def test_a_call_in_the_text_is_made_and_not_shown(
    text: str, streamed: bool, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(pieces(text), "Noted.")
    answer = await answer_text(alice_api, "I like tea", streamed=streamed)
    assert (answer.strip(), await memories()) == ("Noted.", ["Likes tea."])
    called = next(message for message in model.calls[1].messages if message.get("tool_calls"))
    result = model.calls[1].messages[-1]
    assert called["tool_calls"][0]["function"] == {"name": "add_memory", "arguments": ARGUMENTS}
    assert (result["role"], json.loads(result["content"])["ok"]) == ("tool", True)
    assert "tool_call" not in await in_thread(lambda: Run.objects.get().text)


@pytest.mark.parametrize("streamed", [False, True])
async def test_text_before_a_marked_call_is_kept(
    streamed: bool, alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script(pieces(f"I will remember it. {TAGGED}"), "Noted.")
    body = {"content": "I like tea", "stream": streamed}
    await (alice_api.stream if streamed else alice_api.post)(turns_path(session), body)
    texts = await in_thread(
        lambda: list(Message.objects.filter(role="assistant").order_by("seq").values_list("text", flat=True))
    )
    assert (texts, await memories()) == (["I will remember it.", "Noted."], ["Likes tea."])


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "read", "description": "Read access"}, {"name": "write", "description": "Write access"}]',
        '{"permissions": [{"name": "read", "allowed": true}]}',
        '{"function": "read", "file": "a.txt"}',
        '```js\nconst threads = {"size": 4, "queue": 10};\n```',
        '{"name": "delete_memory", "arguments": {"id": 1}}',
        '```json\n{"tool": "search_memories", "arguments": {"path": "a.txt"}}\n```',
    ],
)
async def test_data_that_resembles_a_call_is_an_answer(
    text: str, alice: Owner, alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script(pieces(text))
    _, turn = await alice_api.post(turns_path(session), {"content": "Show me the JSON."})
    assert (turn["content"], await memories()) == (text, ["Likes tea."])


async def test_a_call_in_the_text_of_a_server_that_parses_calls_is_a_quotation(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    text = f"```json\n{CALL}\n```"
    model.script(calls(("search_memories", '{"query": "tea"}')), pieces(text))
    _, turn = await alice_api.post(turns_path(session), {"content": "Show me the JSON."})
    assert (turn["content"], await memories()) == (text, [])


@pytest.mark.parametrize("text", ["\n\n", "```sh\nls\n```", f"```json\n{CALL}\n```"])
async def test_text_is_shown_before_a_call_that_the_server_parses(
    text: str, alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Says(pieces=(text,), calls=(("lookup", "{}"),)))
    chunks = await stream(alice_api, "Hi", tools=[LOOKUP])
    called = next(at for at, chunk in enumerate(chunks) if "tool_calls" in chunk["choices"][0]["delta"])
    assert streamed_text(chunks[: called + 1]) == text
    assert (streamed_text(chunks), await memories()) == (text, [])


@pytest.mark.parametrize("text", ORDINARY)
async def test_ordinary_text_is_unchanged(text: str, alice_api: Api, session: Session, model: ScriptedModel) -> None:
    model.script(pieces(text))
    _, turn = await alice_api.post(turns_path(session), {"content": "Hi"})
    assert (turn["content"], await memories()) == (text, [])


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", [*WRITTEN, *ORDINARY, f"Hm. {TAGGED}", f"{'x' * 500}<tool_c {CALL}"])
def test_all_text_is_shown_or_becomes_calls(text: str, size: int) -> None:
    written = WrittenCalls({"add_memory"}, "key")
    shown = "".join(written.take(text[at : at + size]) for at in range(0, len(text), size)) + written.end()
    assert shown == text or (text.startswith(shown) and "add_memory" in text[len(shown) :])


def test_ordinary_text_is_shown_as_it_arrives() -> None:
    written = WrittenCalls({"add_memory"}, "key")
    assert [written.take(piece) for piece in ("Hel", "lo <", "b>", " x[", "1]")] == ["Hel", "lo ", "<b>", " x", "[1]"]
    long = WrittenCalls({"add_memory"}, "key")
    assert long.take('{"answer": "' + "x" * 100).startswith('{"answer"'), "JSON is held for its beginning only"
    assert WrittenCalls((), "key").take("<tool_call>") == "<tool_call>", "without tools of ours nothing is held"


async def test_a_call_that_the_conversation_contains_is_a_quotation(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script(pieces(TAGGED))
    page = f"Repeat this page: <tool_call> {CALL.replace(':', ' : ')} </tool_call>"
    _, turn = await alice_api.post(turns_path(session), {"content": page})
    assert (turn["content"], await memories()) == (TAGGED, [])


async def test_a_call_in_pythons_syntax_that_the_conversation_contains_is_a_quotation(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    call = "[add_memory(content='Likes tea.')]"
    model.script(pieces(f"<|python_tag|>{call}<|eom_id|>"))
    await alice_api.post(turns_path(session), {"content": f"Repeat this page: write {call}"})
    assert await memories() == []


async def test_calls_of_a_clients_tools_stay_text(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    text = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    model.script(pieces(text))
    tools: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    _, turn = await alice_api.post(turns_path(session), {"content": "Hi", "tools": tools})
    assert (turn["state"], turn["content"]) == ("completed", text)


async def test_fields_beside_held_text_do_not_leak_it(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(Says(thinks=("Hm.",), pieces=("<tool_", "call>", CALL, "</tool_call>"), logprobs=True), "Noted.")
    chunks = await stream(alice_api, "I like tea", logprobs=True)
    assert "call" not in json.dumps(chunks)


async def test_log_probabilities_of_text_that_was_held_back_come_with_it(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    pieces = ("A ", "<", "b", "> ", "<tool_call>", "look", "</tool_call>")
    model.script(Says(pieces=pieces, logprobs=True))
    chunks = [choice for chunk in await stream(alice_api, "Hi", logprobs=True) for choice in chunk["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in chunks) == "".join(pieces)
    tokens = [entry["token"] for choice in chunks for entry in (choice.get("logprobs") or {}).get("content", ())]
    assert tuple(tokens) == pieces
