"""Clients of /v1 that keep the versions of a conversation, and return to one"""

from typing import Any

import pytest

from gateway.api import v1_turn
from gateway.models import Agent, Run, Session
from gateway.runs import branches
from gateway.runs.leases import lease_end
from memories.database.access import in_thread
from memories.errors import UpstreamError
from tests.conftest import Api
from tests.gateway.client_tools import FIRST, LOOKUP, results
from tests.gateway.test_branches import Talk, shown_texts
from tests.gateway.v1 import Chat, ask, user
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.any_database

CAPITAL = ("What is the capital?", "Stockholm is the capital.")
SEE = ("What should I see there?", "Visit the Vasa museum and take a boat.")
OTHER = "Try the gallery, then drink coffee."


@pytest.fixture
async def chat(alice_api: Api, agent: Agent, model: ScriptedModel) -> Chat:
    """A chat without an id, after two turns."""
    chat = Chat(alice_api, model)
    await chat.say(*CAPITAL)
    await chat.say(*SEE)
    return chat


@pytest.mark.parametrize("newest", ["four", "three"])
async def test_a_client_that_returns_to_another_version_continues_its_branch(
    alice_api: Api, agent: Agent, model: ScriptedModel, newest: str
) -> None:
    chat = Chat(alice_api, model, headers={"x-openwebui-chat-id": "mine"})
    for text in ("one", "two", "three"):
        await chat.say(text, f"Answer to {text}.")
    first, edited = chat.messages, chat.messages[:2]
    chat.messages = edited
    await chat.say("zwei", "Antwort.")
    chat.messages = first if newest == "four" else first[:4]
    returned = await chat.say(newest, "Here.")
    session = await in_thread(Session.objects.get)
    assert returned.session == str(session.pk)
    expected = {"four": ["one", "two", "three", "four"], "three": ["one", "two", "three"]}[newest]
    assert (await shown_texts(session), session.turns) == (expected, len(expected))
    chat.messages = edited
    await chat.say("drei", "Dort.")
    session = await in_thread(Session.objects.get)
    assert (await shown_texts(session), session.turns) == (["one", "zwei", "drei"], 3)


@pytest.mark.parametrize("message", ["one", "eins"], ids=["regenerated", "edited"])
async def test_the_first_turn_of_a_chat_may_be_replaced(
    alice_api: Api, agent: Agent, model: ScriptedModel, message: str
) -> None:
    chat = Chat(alice_api, model, headers={"x-openwebui-chat-id": "mine"})
    await chat.say("one", "Answer to one.")
    await chat.say("two", "Answer to two.")
    first, chat.messages = list(chat.messages), []
    await chat.say(message, "Antwort.")
    await chat.say("zwei", "Noch eine.")
    session = await in_thread(Session.objects.get)
    assert (await shown_texts(session), session.turns) == ([message, "zwei"], 2)
    chat.messages = first
    await chat.say("three", "Answer to three.")
    session = await in_thread(Session.objects.get)
    assert (await shown_texts(session), session.turns) == (["one", "two", "three"], 3)


async def test_the_only_turn_of_a_chat_may_be_edited(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    chat = Chat(alice_api, model, headers={"x-openwebui-chat-id": "mine"})
    await chat.say("What is the capital of Sweeden?", CAPITAL[1])
    chat.messages = []
    await chat.say(edited := "What is the capital of Sweden?", CAPITAL[1])
    await chat.say(*SEE)
    session = await in_thread(Session.objects.get)
    assert (await shown_texts(session), session.turns) == ([edited, SEE[0]], 2)


async def test_a_program_with_an_id_of_its_own_may_send_only_its_new_message(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    chat = Chat(alice_api, model, headers={"x-daybook-session": "mine"})
    await chat.say("one", "Answer to one.")
    await chat.say("two", "Answer to two.")
    chat.messages = []
    await chat.say("three", "Answer to three.")
    session = await in_thread(Session.objects.get)
    assert (await shown_texts(session), session.turns) == (["one", "two", "three"], 3)


async def test_a_client_that_resends_less_than_it_sent_may_return_to_another_version(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    chat = Chat(alice_api, model, headers={"x-openwebui-chat-id": "mine"})

    async def say(text: str, answer: str) -> None:
        await chat.say(f"{text} <context>What a search of documents found for this message.</context>", answer)
        chat.messages[-2] = user(text)

    await say(*CAPITAL)
    await say(*SEE)
    first, chat.messages = list(chat.messages), chat.messages[:2]
    await say("What should I eat there?", OTHER)
    edited, chat.messages = list(chat.messages), list(first)
    await say("How long is the boat ride?", "The boat ride takes about fifty minutes.")
    chat.messages = edited
    await say("Where is it?", "It is in the old town, near the water.")
    chat.messages = first
    await say("How long is it?", "Fifty minutes, as I said.")
    session = await in_thread(Session.objects.get)
    shown = Run.objects.filter(superseded=False).order_by("turn").values_list("text", flat=True)
    answers = [CAPITAL[1], SEE[1], "Fifty minutes, as I said."]
    assert (await in_thread(lambda: list(shown)), session.turns) == (answers, 3)


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("headers", [{}, {"x-openwebui-chat-id": "mine"}], ids=["unnamed", "named"])
async def test_an_answer_that_could_not_be_generated_again_remains(
    alice_api: Api, agent: Agent, model: ScriptedModel, headers: dict[str, str], turns: int
) -> None:
    chat = Chat(alice_api, model, headers=headers)
    for exchange in (CAPITAL, SEE)[:turns]:
        await chat.say(*exchange)
    model.script(UpstreamError("no"))
    again = await ask(alice_api, *chat.messages[:-1], headers=headers | {"x-stainless-retry-count": "1"})
    assert again.status == 502
    await chat.say("How long is the boat ride?", "The boat ride takes about fifty minutes.")
    session = await in_thread(Session.objects.get)
    shown = Run.objects.filter(superseded=False, session=session).order_by("turn").values_list("text", flat=True)
    answers = [CAPITAL[1], SEE[1]][:turns]
    assert await in_thread(lambda: list(shown)) == [*answers, "The boat ride takes about fifty minutes."]
    assert session.turns == turns + 1


async def test_a_client_without_an_id_may_return_to_an_earlier_answer(chat: Chat) -> None:
    earlier = list(chat.messages)
    again = await chat.again(OTHER)
    chat.messages = earlier
    returned = await chat.say("How long is the boat ride?", "An hour.")
    assert returned.session == again.session
    rows = Run.objects.filter(superseded=False).order_by("turn").values_list("text", flat=True)
    assert await in_thread(lambda: list(rows)) == [CAPITAL[1], SEE[1], "An hour."]


async def test_another_message_after_an_earlier_answer_begins_a_session_without_an_id(chat: Chat) -> None:
    earlier = list(chat.messages)
    await chat.say("How long is the boat ride?", "An hour.")
    chat.messages = list(earlier)
    again = await chat.again(OTHER)
    chat.messages = list(earlier)
    edited = await chat.say("Is the museum free?", "No.")
    session, fork = await in_thread(lambda: list(Session.objects.order_by("pk")))
    assert (again.session, edited.session, fork.parent_id) == (str(session.pk), str(fork.pk), session.pk)
    shown = await in_thread(lambda: Run.objects.filter(session=session, superseded=False).latest("id").text)
    assert (shown, session.turns) == (OTHER, 2)
    chat.messages = list(earlier)
    repeated = await chat.say("How long is the boat ride?", "Fifty minutes.")
    session = await in_thread(Session.objects.get, pk=repeated.session)
    assert (await shown_texts(session), session.turns) == ([CAPITAL[0], SEE[0], "How long is the boat ride?"], 3)


async def test_an_earlier_answer_of_two_sessions_identifies_none(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    for _ in range(2):
        await Chat(alice_api, model).say(*CAPITAL)
    sessions = await in_thread(lambda: list(Session.objects.all()))
    for session in sessions:
        talk = Talk(alice_api, session, model)
        await talk.say(SEE[0], "Do as you like.", replaces=await talk.say(*SEE))
    chat = Chat(alice_api, model, messages=[*CAPITAL, *SEE])
    answer = await chat.say("How long is the boat ride?", "An hour.")
    assert answer.session not in {str(session.pk) for session in sessions}
    assert await in_thread(Run.objects.filter(superseded=True, text=SEE[1]).count) == 2


async def test_results_of_a_call_return_to_its_branch(chat: Chat, alice_api: Api, model: ScriptedModel) -> None:
    earlier = list(chat.messages)
    await chat.again(OTHER)
    asked = [*chat.messages, user("Is it open?")]
    model.script(calls(FIRST))
    called = await ask(alice_api, *asked, tools=[LOOKUP])
    chat.messages = earlier
    await chat.say("How long is the boat ride?", "An hour.")
    model.script("It is open.")
    answer = await ask(alice_api, *asked, *results(called, "Open."), tools=[LOOKUP])
    session = await in_thread(Session.objects.get)
    assert (answer.text, session.turns) == ("It is open.", 3)
    assert await shown_texts(session) == [CAPITAL[0], SEE[0], "Is it open?"]


@pytest.mark.parametrize("busy", ["before", "meanwhile"])
async def test_a_session_that_is_busy_with_another_version_is_forked(
    busy: str, alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(v1_turn, "BUSY_SECONDS", 0)
    chat = Chat(alice_api, model, headers={"x-openwebui-chat-id": "mine"})
    await chat.say("one", "1.")
    await chat.say("two", "2.")
    first, chat.messages = chat.messages, chat.messages[:2]
    await chat.say("zwei", "Zwei.")
    newest = await in_thread(Run.objects.latest, "id")
    choose = branches._choose

    def begin() -> None:
        Run.objects.filter(pk=newest.pk).update(state="running", lease_expires_at=lease_end())

    def begin_and_choose(*args: Any, **options: Any) -> Any:
        begin()
        return choose(*args, **options)

    if busy == "before":
        await in_thread(begin)
    else:
        monkeypatch.setattr(branches, "_choose", begin_and_choose)
    chat.messages = first
    fork = await chat.say("three", "3.")
    session = await in_thread(Session.objects.get, pk=fork.session)
    assert session.parent_id == newest.session_id
