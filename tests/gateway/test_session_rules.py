"""Rules for choosing a session: the trace of the run names the rule, and an ID sent by the client takes precedence"""

from typing import Any

import pytest

from gateway.models import Agent, Message, Run, Session
from memories.database.access import in_thread
from tests.conftest import Api
from tests.gateway.client_tools import FIRST, LOOKUP, results
from tests.gateway.v1 import Chat, ask, user
from tests.scripted_model import Says, ScriptedModel

LONG = "Fry the onion first, then add the lentils and the stock, and let everything simmer for twenty minutes."
REMINDER = "<system-reminder>Be brief.</system-reminder>"
STATE = {"role": "user", "content": "<environment_details>\n# Time\n9:00\n</environment_details>"}


@pytest.fixture
def chat(alice_api: Api, agent: Agent, model: ScriptedModel) -> Chat:
    return Chat(alice_api, model)


async def session_rule() -> Any:
    """Return the rule recorded in the trace of the newest run."""
    run = await in_thread(Run.objects.latest, "id")
    return run.trace["session"]


@pytest.mark.any_database
async def test_the_trace_names_the_rule(chat: Chat, alice_api: Api) -> None:
    await chat.say("How do I cook lentils?", LONG)
    assert await session_rule() == {"rule": "new"}
    await chat.say("And carrots?", "Boil them.")
    assert await session_rule() == {"rule": "same_history", "common": {"turns": 1}}
    await chat.again("Steam them.")
    assert await session_rule() == {"rule": "same_turn", "common": {"turns": 1}}
    chat.messages[0]["content"] += f"\n{REMINDER}"
    await chat.say("And beets?", "Roast them.")
    found = await session_rule()
    assert found["rule"] == "alike"
    assert found["common"].items() >= {"turns": 2, "answers": 2, "in_a_row": 4}.items()
    assert found["common"]["characters"] > len(LONG) / 2
    del chat.messages[-4:]
    await chat.say("And leek?", "Braise it.")
    assert (await session_rule())["rule"] == "edited"
    chat.headers = {"x_daybook_session": "mine"}
    await chat.say("Thanks", "Welcome.")
    assert (await session_rule())["rule"] == "id"


async def test_the_trace_contains_no_text(chat: Chat) -> None:
    await chat.say("How do I cook lentils?", LONG)
    chat.messages[0]["content"] += f"\n{REMINDER}"
    await chat.say("And carrots?", "Boil them.")
    run = await in_thread(Run.objects.latest, "id")
    assert not any(word in str(run.trace) for word in ("lentils", "carrots", "onion", "brief"))


async def test_editor_state_after_results_belongs_to_the_step(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(Says(pieces=("One moment.",), calls=(FIRST,)), "Found it.")
    first = await ask(alice_api, user("Look it up"), tools=[LOOKUP])
    second = await ask(alice_api, user("Look it up"), *results(first, "A"), STATE, tools=[LOOKUP])
    assert (second.run, second.text) == (first.run, "Found it.")
    assert model.calls[-1].messages[-1] == STATE
    assert (await in_thread(Session.objects.get)).turns == 1
    texts = await in_thread(lambda: list(Message.objects.filter(role="user").values_list("text", flat=True)))
    assert texts == ["Look it up"]


@pytest.mark.parametrize("header", ["x_session_id", "x_session_affinity", "thread_id", "x_goose_session_id"])
async def test_a_client_session_id_takes_precedence(chat: Chat, header: str) -> None:
    chat.headers = {header: "ses_1"}
    first = await chat.say("hi", "Hello.")
    chat.messages.clear()
    assert (await chat.say("Something else", "Yes.")).session == first.session
    assert (await in_thread(Session.objects.get)).external_id == "ses_1"


async def test_a_too_long_session_id_is_ignored(chat: Chat) -> None:
    chat.headers = {"x_session_id": "x" * 191}
    await chat.say("hi", "Hello.")
    assert (await in_thread(Session.objects.get)).external_id is None


async def test_an_edit_in_a_named_session_is_recognised_although_reminders_moved(chat: Chat) -> None:
    chat.headers = {"x_session_id": "ses_1"}
    await chat.say(f"How do I cook lentils?\n{REMINDER}", LONG)
    await chat.say(f"And carrots?\n{REMINDER}", "Boil them.")
    chat.messages[0]["content"] = "How do I cook lentils?"
    del chat.messages[-2:]
    await chat.say(f"And beets?\n{REMINDER}", "Roast them.")
    rows = Run.objects.order_by("id").values_list("turn", "superseded")
    assert await in_thread(lambda: list(rows)) == [(1, False), (2, True), (2, False)]


async def test_a_command_joins_the_altered_conversation(chat: Chat) -> None:
    first = await chat.say(f"How do I cook lentils?\n{REMINDER}", LONG)
    chat.messages[0]["content"] = "How do I cook lentils?"
    command = await ask(chat.api, *chat.messages, user("/memory help"))
    assert command.session == first.session


async def test_sessions_of_other_owners_are_never_considered(
    chat: Chat, charlie_api: Api, model: ScriptedModel
) -> None:
    own = await chat.say(f"How do I cook lentils?\n{REMINDER}", LONG)
    theirs = Chat(charlie_api, model, messages=[user("How do I cook lentils?"), chat.messages[1]])
    assert (await theirs.say("And carrots?", "Boil them.")).session != own.session
    assert await session_rule() == {"rule": "new"}


async def test_an_altered_temporary_conversation_stays_temporary(chat: Chat) -> None:
    chat.body = {"metadata": {"temporary": "true"}}
    first = await chat.say(f"How do I cook lentils?\n{REMINDER}", LONG)
    chat.messages[0]["content"] = "How do I cook lentils?"
    assert (await chat.say("And carrots?", "Boil them.")).session == first.session
    chat.body, chat.messages[0]["content"] = {}, "How do I cook the lentils?"
    assert (await chat.say("And beets?", "Roast them.")).session != first.session


async def test_only_the_newest_conversations_with_the_same_message_are_searched_for_an_answer(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.runs.repeated.MAX_ALIKE", 2)
    answers = ["One.", "Two.", "Three."]
    model.script(*answers, *["More."] * 3)
    begun = [(await ask(alice_api, "Count")).session for _ in answers]
    continued = [(await ask(alice_api, "Count", answer)).session for answer in reversed(answers)]
    assert [one == other for one, other in zip(reversed(begun), continued, strict=True)] == [True, True, False]
