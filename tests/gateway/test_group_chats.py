"""User messages of group chats: those of other participants are not the person's own words"""

from typing import Any

import pytest

from gateway.models import Agent, Message
from gateway.runs.participants import other_participants
from gateway.runs.utterances import unread_and_unstored, utterances_of
from memories.database.access import in_thread
from memories.evidence import Speaker
from memories.models import Memory
from tests.conftest import Api
from tests.gateway.test_held_writes import add, results
from tests.gateway.v1 import ask
from tests.queries import statements
from tests.scripted_model import ScriptedModel

TASK = "Plan my trip to York. I am allergic to nuts."
FOUND = "The Minster Inn is the best hotel in York."


def said(text: str, name: Any = None) -> dict[str, Any]:
    return {"role": "user", "content": text, **({} if name is None else {"name": name})}


@pytest.mark.parametrize(
    ("names", "others"),
    [
        ([None, None], set()),
        (["Alice", "Alice"], set()),  # a client that names its only person
        (["MagenticOneOrchestrator", "writer"], {"MagenticOneOrchestrator", "writer"}),  # a team without a person
        (["user", "critic", "user"], {"critic"}),  # AutoGen
        ([None, "researcher"], {"researcher"}),  # LangGraph
        (["critic", "coder", "User"], {"critic", "coder"}),  # the task comes last
        (["Alice", "Bob", "Carol"], {"Bob", "Carol"}),
        (["user_proxy", "user", "coder"], {"coder"}),
        ([None, "", 7], set()),
        ([None, "x" * 70], {"x" * 64}),
    ],
)
def test_the_person_is_who_has_no_name_or_spoke_first(names: list[Any], others: set[str]) -> None:
    messages = [{"role": "assistant", "content": "Hello.", "name": "writer"}, *(said("Hello.", name) for name in names)]
    assert other_participants(messages) == others


@pytest.mark.parametrize("person", ["user", None], ids=["AutoGen", "LangGraph"])
async def test_what_another_participant_wrote_is_held(
    alice_api: Api, agent: Agent, model: ScriptedModel, person: str | None
) -> None:
    model.script(add("The best hotel in York is the Minster Inn."), add("Is allergic to nuts."), "Noted.")
    await ask(alice_api, said(TASK, person), said(FOUND, "researcher"))
    assert [result.get("error") for result in results(model)] == ["held", None]
    _, proposals = await alice_api.get("/api/proposals?state=waiting")
    assert [(row["after"], row["evidence"]["kind"]) for row in proposals["data"]] == [
        ("The best hotel in York is the Minster Inn.", "tool")
    ]
    memory = await in_thread(Memory.objects.get)
    assert (memory.content, memory.evidence_kind) == ("Is allergic to nuts.", "own_words")


async def test_stored_messages_keep_who_wrote_them(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Well.", "A plan.")
    first = await ask(alice_api, said(TASK, "user"), said(FOUND, "researcher"))
    path = f"/api/sessions/{first.session}/turns"
    await alice_api.post(path, {"content": "Go on."})

    rows = await in_thread(lambda: list(Message.objects.order_by("seq")))
    speakers = [(speaker.speaker, speaker.text) for speaker in utterances_of(rows)]
    assert speakers[:2] == [(Speaker.PERSON, TASK), (Speaker.TOOL, FOUND)]
    assert speakers[3] == (Speaker.PERSON, "Go on.")
    assert (await in_thread(lambda: unread_and_unstored(rows)))[1], "the answers may repeat what was not stored"
    sent = [message for message in model.calls[-1].messages if message["role"] == "user"]
    assert [message.get("name") for message in sent] == [None, "researcher", None]


async def test_a_participant_of_the_session_is_known_when_the_client_sends_only_the_last_messages(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Well.", add("Stays at the Minster Inn in York."), "Noted.")
    named = {"X-Daybook-Session": "trip"}
    await ask(alice_api, said(TASK, "user"), said(FOUND, "researcher"), headers=named)
    await ask(alice_api, said("You stay at the Minster Inn in York.", "researcher"), headers=named)
    assert [result["error"] for result in results(model)] == ["held"]


async def test_another_participant_who_writes_before_the_person_in_a_later_turn_is_held(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Well.", add("The best hotel in York is the Minster Inn."), "Noted.")
    await ask(alice_api, said(TASK, "user"))
    answer = {"role": "assistant", "content": "Well."}
    await ask(alice_api, said(TASK, "user"), answer, said(FOUND, "researcher"), said("Go on.", "user"))
    assert [result["error"] for result in results(model)] == ["held"]
    rows = await in_thread(lambda: list(Message.objects.filter(role="user").order_by("seq")))
    speakers = [(row.speaker, row.text) for row in await in_thread(utterances_of, rows)]
    assert speakers == [(Speaker.PERSON, TASK), (Speaker.TOOL, FOUND), (Speaker.PERSON, "Go on.")]


async def test_a_name_of_the_assistant_costs_no_query(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Well.", "Yes.")
    await ask(alice_api, said(TASK))
    async with statements() as queries:
        await ask(alice_api, said(TASK), {"role": "assistant", "content": "Well.", "name": "writer"}, said("Go on."))
    assert not [query for query in queries if 'SELECT "gateway_message"."participant"' in query]
