"""`memory://` can be read in every client: beside a client's own tool named `read` ours has another name, and the
Memory Guidance names that one."""

from typing import Any

import pytest

from gateway.models import Agent, Message
from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.models import Owner, WriteOrigin
from memories.services import Source, book_get_or_create
from memories.tools import free_read_name
from tests.conftest import Api
from tests.factories import agent_make
from tests.gateway.test_client_tools import results
from tests.gateway.v1 import ask
from tests.reviews.consolidation.rows import settings_make
from tests.scripted_model import ScriptedModel, calls

USER = {"role": "user", "content": "What do you know about harbours?"}
HANDBOOK = '{"path": "memory://root/MEMORY.md"}'


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@pytest.fixture
def harbours(alice: Owner) -> Agent:
    settings_make()
    book, source = book_get_or_create(alice.pk, "main"), Source(actor="user:1", origin=WriteOrigin.USER)
    artifact_put(book, "memory_summary.md", "Works on harbours.", source)
    artifact_put(book, "MEMORY.md", "Harbour Nine has two cranes.", source)
    return agent_make(inject_memories=False, tools=[])


def offered(model: ScriptedModel) -> list[str]:
    return [tool["function"]["name"] for tool in model.calls[-1].tools]


def named(model: ScriptedModel) -> str:
    """The tool that the guidance of the newest request names."""
    return str(model.calls[-1].messages[0]["content"].split("use the `")[1].split("`")[0])


async def test_without_such_a_tool_it_is_read(alice_api: Api, harbours: Agent, model: ScriptedModel) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[tool("lookup")])
    assert (offered(model), named(model)) == (["lookup", "read"], "read")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(["read"], "read_memory"), (["read", "read_memory"], "read_memory_2"), (["read_memory"], "read")],
)
async def test_a_taken_name_gives_another_one_and_the_guidance_names_it(
    alice_api: Api, harbours: Agent, model: ScriptedModel, theirs: list[str], ours: str
) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[tool(name) for name in theirs])
    assert (offered(model), named(model)) == ([*theirs, ours], ours)


async def test_tools_of_other_types_take_names_too(alice_api: Api, harbours: Agent, model: ScriptedModel) -> None:
    model.script("Some.")
    await ask(alice_api, USER, tools=[{"type": "custom", "custom": {"name": "read"}}])
    assert named(model) == model.calls[-1].tools[-1]["function"]["name"] == "read_memory"


async def test_both_tools_work_in_one_turn(alice_api: Api, harbours: Agent, model: ScriptedModel) -> None:
    model.script(calls(("read_memory", HANDBOOK)), calls(("read", '{"file": "a.txt"}')), "Two cranes.")
    first = await ask(alice_api, USER, tools=[tool("read")])
    assert [call["function"]["name"] for call in first.json["choices"][0]["message"]["tool_calls"]] == ["read"]
    assert "Harbour Nine has two cranes." in model.calls[1].messages[-1]["content"]
    last = await ask(alice_api, USER, *results(first, "a file"), tools=[tool("read")])
    assert last.text == "Two cranes."
    stored = await in_thread(lambda: list(Message.objects.exclude(tool_calls=None).order_by("seq")))
    assert [row.tool_calls[0]["function"]["name"] for row in stored] == ["read_memory", "read"]


async def test_the_name_stays_in_a_run_whose_client_sends_its_tools_no_more(
    alice_api: Api, harbours: Agent, model: ScriptedModel
) -> None:
    model.script(calls(("read", "{}")), "Some.")
    first = await ask(alice_api, USER, tools=[tool("read")])
    await ask(alice_api, USER, *results(first, "a file"))
    assert (offered(model), named(model)) == (["read_memory"], "read_memory")
    assert model.calls[0].messages[0] == model.calls[1].messages[0]


async def test_the_guidance_of_a_name_is_the_same_bytes_in_every_turn(
    alice_api: Api, harbours: Agent, model: ScriptedModel
) -> None:
    model.script("Some.", "Some.", "Some.")
    headers = {"x_daybook_session": "chat"}
    for theirs in ([tool("read")], [], [tool("read")]):
        await ask(alice_api, USER, tools=theirs, headers=headers)
    first, second, third = (call.messages[0]["content"] for call in model.calls)
    assert first == third
    assert second == first.replace("`read_memory`", "`read`")


async def test_other_names_of_ours_stay_the_client_s(alice_api: Api, model: ScriptedModel, agent: Agent) -> None:
    model.script("Yes.")
    await ask(alice_api, USER, tools=[tool("add_memory")])
    assert offered(model).count("add_memory") == 1
    assert "read" in offered(model)


async def test_without_the_client_s_tool_the_other_name_is_unknown(
    alice_api: Api, harbours: Agent, model: ScriptedModel
) -> None:
    model.script(calls(("read_memory", HANDBOOK)), "Sorry.")
    answer = await ask(alice_api, USER)
    assert answer.text == "Sorry."
    assert "unknown_tool" in model.calls[1].messages[-1]["content"]


def test_a_free_name_is_found_however_many_are_taken() -> None:
    taken = {"read", "read_memory", *(f"read_memory_{number}" for number in range(2, 50))}
    assert free_read_name(taken) == "read_memory_50"
