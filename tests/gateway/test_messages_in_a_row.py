"""Several new messages of a person in a row: each is stored, once, with the turn that answers all of them."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from gateway.chat.transcript import conversation, turn_of_run
from gateway.models import Agent, Message, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from tests.conftest import Api
from tests.gateway.attachments import LARGE, picture
from tests.gateway.client_tools import LOOKUP, results
from tests.gateway.messages import send
from tests.gateway.native import turns_path
from tests.gateway.v1 import Chat, ask, assistant, user
from tests.reviews.talk import DONE, adds, contents, newest_review, reviewing_agent, run_review
from tests.scripted_model import ScriptedModel, calls

HOME, QUESTION = user("I live in Bergen."), user("What is the weather?")
STORED = ["hi", "Hello.", "I live in Bergen.", "What is the weather?", "Rain."]
Ask = Callable[..., Awaitable[str]]


async def by_completions(api: Api, *messages: Any) -> str:
    return (await ask(api, *messages)).session


async def by_messages(api: Api, *messages: Any) -> str:
    return (await send(api, *messages)).session


async def by_responses(api: Api, *messages: Any) -> str:
    response = await api.raw("POST", "/v1/responses", {"model": "assistant", "input": list(messages)})
    assert response.status_code == 200, response.content
    return str(response.headers["x-daybook-session"])


@pytest.fixture
def chat(alice_api: Api, agent: Agent, model: ScriptedModel) -> Chat:
    return Chat(alice_api, model)


async def shown(session_id: str = "") -> list[str]:
    """Return the texts of the shown branch, in their order."""
    rows = Message.objects.exclude(run__superseded=True).order_by("seq").values_list("text", flat=True)
    return await in_thread(lambda: list(rows.filter(session_id=session_id) if session_id else rows))


@pytest.mark.parametrize("asks", [by_completions, by_messages, by_responses])
async def test_every_new_message_is_stored(alice_api: Api, agent: Agent, model: ScriptedModel, asks: Ask) -> None:
    model.script("Hello.", "Rain.", "Yes.")
    begun = [user("hi"), assistant("Hello.")]
    first = await asks(alice_api, user("hi"))
    second = await asks(alice_api, *begun, HOME, QUESTION)
    third = await asks(alice_api, *begun, HOME, QUESTION, assistant("Rain."), user("Again?"))
    assert first == second == third
    assert await shown() == [*STORED, "Again?", "Yes."]
    assert (await in_thread(Session.objects.get)).turns == 3
    owned = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("run__turn", flat=True)))
    assert owned == [1, 1, 2, 2, 2, 3, 3]


async def test_they_follow_a_previous_response(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.", "Rain.", "Yes.")
    _, first = await alice_api.post("/v1/responses", {"model": "assistant", "input": "hi"})
    body = {"model": "assistant", "input": [HOME, QUESTION], "previous_response_id": first["id"]}
    _, second = await alice_api.post("/v1/responses", body)
    body = {"model": "assistant", "input": "Again?", "previous_response_id": second["id"]}
    await alice_api.post("/v1/responses", body)
    assert await shown() == [*STORED, "Again?", "Yes."]
    assert [message["content"] for message in model.calls[-1].messages[-6:]] == [*STORED, "Again?"]
    _, items = await alice_api.get(f"/v1/responses/{second['id']}/input_items?order=asc")
    assert [item["content"][0]["text"] for item in items["data"]] == STORED[:4]


async def test_they_are_shown_found_and_exported(alice_api: Api, chat: Chat) -> None:
    session_id = (await chat.say("hi", "Hello.")).session
    chat.messages.append(HOME)
    await chat.say("What is the weather?", "Rain.")
    _, page = await alice_api.get(f"/api/sessions/{session_id}/messages")
    assert [row["content"] for row in page["data"]] == STORED
    _, found = await alice_api.get("/api/sessions?search=Bergen")
    assert [row["id"] for row in found["data"]] == [session_id]
    exported = await alice_api.raw("GET", f"/api/sessions/{session_id}/export?format=json")
    content = b"".join([piece async for piece in exported.streaming_content])
    assert [row["content"] for row in json.loads(content)["messages"]] == STORED


async def test_the_page_shows_them_as_one_turn(chat: Chat) -> None:
    session_id = (await chat.say("hi", "Hello.")).session
    chat.messages.append(HOME)
    answer = await chat.say("What is the weather?", "Rain.")
    session = await in_thread(Session.objects.get, pk=session_id)
    utc = ZoneInfo("UTC")
    shown_page = await in_thread(conversation, session, utc)
    turn = await in_thread(turn_of_run, session, UUID(answer.run), utc)
    assert turn is not None
    assert [(shown.said, shown.answer) for shown in shown_page.turns] == [
        ("hi", "Hello."),
        ("I live in Bergen.\n\nWhat is the weather?", "Rain."),
    ]
    assert (turn.said, turn.last) == (shown_page.turns[1].said, True)
    rest = await in_thread(conversation, session, utc, before=turn.seq)
    assert (shown_page.earlier, [shown.said for shown in rest.turns]) == (0, ["hi"])


async def test_the_page_counts_turns(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, turns in {"PAGE_TURNS": 1, "AROUND_TURNS": 2, "AROUND_BEFORE": 1}.items():
        monkeypatch.setattr(f"gateway.chat.transcript.{name}", turns)
    for number in range(4):
        chat.messages.append(user(f"Fact {number}."))
        session_id = (await chat.say(f"Question {number}?", f"Answer {number}.")).session
    session = await in_thread(Session.objects.get, pk=session_id)
    newest = await in_thread(conversation, session, ZoneInfo("UTC"))
    assert (newest.earlier, [turn.answer for turn in newest.turns]) == (4, ["Answer 3."])
    around = await in_thread(conversation, session, ZoneInfo("UTC"), at=4)
    assert (around.earlier, around.later, len(around.turns)) == (2, 1, 2)


async def test_a_review_reads_them_as_the_persons_own_words(alice: Owner, chat: Chat) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    await chat.say("hi", "Hello.")
    chat.messages.append(HOME)
    await chat.say("What is the weather?", "Rain.")
    chat.model.script(adds("Lives in Bergen.", evidence="I live in Bergen."), DONE)
    before = len(chat.model.calls)
    review = await in_thread(newest_review)
    await in_thread(run_review, review)
    assert await in_thread(contents) == ["Lives in Bergen."]
    assert [message["content"] for message in chat.model.calls[before].messages[:-1]] == STORED


async def test_a_message_that_was_not_answered_is_stored_once(alice_api: Api, chat: Chat) -> None:
    await chat.say("hi", "Hello.")
    chat.model.script(UpstreamError("no"), UpstreamError("no"))
    assert (await ask(alice_api, *chat.messages, HOME)).status == 502
    assert (await ask(alice_api, *chat.messages, HOME, user("Hello?"))).status == 502
    chat.messages += [HOME, user("Hello?"), user("Are you there?")]
    await chat.say("What is the weather?", "Rain.")
    assert await shown() == ["hi", "Hello.", "I live in Bergen.", "Hello?", "Are you there?", *STORED[3:]]


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_message_that_repeats_an_unanswered_one_is_stored(alice_api: Api, chat: Chat, failures: int) -> None:
    await chat.say("hi", "Hello.")
    for count in range(1, failures + 1):
        chat.model.script(UpstreamError("no"))
        assert (await ask(alice_api, *chat.messages, *[user("ok")] * count)).status == 502
    chat.messages += [user("ok"), user("ok"), user("ok")]
    await chat.say("And now?", "Rain.")
    assert await shown() == ["hi", "Hello.", "ok", "ok", "ok", "And now?", "Rain."]


@pytest.mark.parametrize("outcomes", [["Rain."], [UpstreamError("no"), "Rain."], ["", "Rain."]])
async def test_a_repeated_request_stores_them_again_for_the_new_answer(
    alice_api: Api, chat: Chat, outcomes: list[Any]
) -> None:
    await chat.say("hi", "Hello.")
    chat.model.script("Snow.", *outcomes)
    for _ in range(1 + len(outcomes)):
        await ask(alice_api, *chat.messages, HOME, QUESTION)
    assert await shown() == STORED


@pytest.mark.parametrize("begun", [[], [user("hi"), assistant("Hello.")]], ids=["first", "after-examples"])
async def test_an_answer_after_an_unanswered_first_message_is_generated_again(
    alice_api: Api, agent: Agent, model: ScriptedModel, begun: list[Any]
) -> None:
    model.script(UpstreamError("no"), "Snow.", "Rain.", "Yes.")
    assert (await ask(alice_api, *begun, HOME)).status == 502
    first = await ask(alice_api, *begun, HOME, QUESTION)
    again = await ask(alice_api, *begun, HOME, QUESTION)
    assert again.session == first.session
    assert await shown(first.session) == [*(row["content"] for row in begun), *STORED[2:]]
    assert (await in_thread(Session.objects.get)).turns == 1
    await ask(alice_api, *begun, HOME, user("Is it cold?"))  # edited
    assert await shown(first.session) == [*(row["content"] for row in begun), *STORED[2:]]


async def test_the_first_messages_of_a_session_are_stored_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Rain.", "Sun.", "Yes.")
    named = {"x_daybook_session": "weather"}
    await ask(alice_api, HOME, QUESTION, headers=named)
    await ask(alice_api, HOME, QUESTION, headers=named)
    await ask(alice_api, HOME, QUESTION, assistant("Sun."), user("Again?"), headers=named)
    assert await shown() == ["I live in Bergen.", "What is the weather?", "Sun.", "Again?", "Yes."]


async def test_a_message_that_repeats_an_answered_one_is_stored(alice_api: Api, chat: Chat) -> None:
    await chat.say("Yes.", "Hello.")
    chat.messages.append(user("Yes."))
    await chat.say("What is the weather?", "Rain.")
    assert await shown() == ["Yes.", "Hello.", "Yes.", "What is the weather?", "Rain."]


async def test_a_client_that_names_its_session_may_send_only_new_messages(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Hello.", "Rain.")
    named = {"x_daybook_session": "weather"}
    await ask(alice_api, user("hi"), headers=named)
    await ask(alice_api, HOME, QUESTION, headers=named)
    assert await shown() == STORED


async def test_a_repeated_message_hides_none_before_it(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Hello.", "Rain.")
    named = {"x_daybook_session": "weather"}
    await ask(alice_api, user("ok"), headers=named)
    await ask(alice_api, HOME, user("ok"), QUESTION, headers=named)
    assert await shown() == ["ok", *STORED[1:]]


async def test_a_message_is_said_again_to_a_client_that_changes_answers(chat: Chat) -> None:
    await chat.say("Yes.", "Hello.")
    await chat.say("Which trees grow in Norway?", "Spruces, pines, birches and many others grow there.")
    chat.messages[-1]["content"] = "<p>Spruces, pines, birches and many others grow there.</p>"
    chat.messages.append(user("Yes."))
    await chat.say("What is the weather?", "Rain.")
    assert (await shown())[4:] == ["Yes.", "What is the weather?", "Rain."]


async def test_a_client_that_resends_only_the_persons_messages_stores_each_once(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Rain.", "Sun.")
    facts = [user(f"Fact {number}.") for number in range(250)]
    named = {"x_daybook_session": "weather"}
    await ask(alice_api, *facts, headers=named)
    await ask(alice_api, *facts, QUESTION, headers=named)
    assert (await shown())[249:] == ["Fact 249.", "Rain.", "What is the weather?", "Sun."]


async def test_a_clients_own_messages_are_not_stored(alice_api: Api, chat: Chat) -> None:
    await chat.say("hi", "Hello.")
    chat.messages += [
        user("<environment_context>\n  <cwd>/home</cwd>\n</environment_context>"),
        user("[Request interrupted by user]"),
        user("<documents><document>The sun shines.</document></documents>"),
        user("<system-reminder>It is Monday.</system-reminder>\nI live in Bergen."),
    ]
    await chat.say("What is the weather?", "Rain.")
    texts = await shown()
    assert len(texts) == 5
    assert texts[2].endswith("I live in Bergen.")


async def test_pictures_of_a_tool_are_not_stored(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script(calls(("lookup", "{}")), "A cat.")
    called = await ask(alice_api, user("Look"), tools=[LOOKUP])
    loop = [user("Look"), *results(called, "seen"), user([picture()]), HOME, QUESTION]
    await ask(alice_api, *loop, tools=[LOOKUP])
    assert await shown() == ["Look", "", "seen", "I live in Bergen.", "What is the weather?", "A cat."]


async def test_a_picture_before_its_question_is_stored_once(alice_api: Api, chat: Chat) -> None:
    await chat.say("hi", "Hello.")
    chat.model.script(UpstreamError("no"))
    shot = user([picture(LARGE)])
    assert (await ask(alice_api, *chat.messages, shot, user("What is it?"))).status == 502
    chat.messages += [shot, user("What is it?")]
    await chat.say("Do you see it?", "A cat.")
    assert await shown() == ["hi", "Hello.", "What is it?", "Do you see it?", "A cat."]


async def test_what_a_client_kept_when_it_summarised_is_not_stored_again(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    named = {"x_daybook_session": "weather"}
    model.script("Hello.", "Noted.", "Rain.")
    await ask(alice_api, user("hi"), headers=named)
    await ask(alice_api, user("hi"), assistant("Hello."), HOME, headers=named)
    summary = user("Another language model started to solve this problem and produced a summary: they live somewhere.")
    await ask(alice_api, user("hi"), user("I live … (cut)"), summary, user("I am back."), QUESTION, headers=named)
    assert await shown() == [*STORED[:3], "Noted.", "I am back.", *STORED[3:]]


async def test_they_disappear_and_return_with_their_branch(alice_api: Api, chat: Chat) -> None:
    session_id = (await chat.say("hi", "Hello.")).session
    chat.messages.append(HOME)
    answer = await chat.say("What is the weather?", "Rain.")
    session = await in_thread(Session.objects.get, pk=session_id)
    first = await in_thread(Run.objects.earliest, "id")
    chat.model.script("Good day.", "More rain.", "Yes.")
    status, _ = await alice_api.post(
        turns_path(session), {"replaces": str(first.pk), "content": "hello", "stream": False}
    )
    assert status == 200
    assert await shown() == ["hello", "Good day."]
    status, _ = await alice_api.post(f"{turns_path(session)}/{answer.run}/choose", {})
    assert status == 200
    assert await shown() == STORED
    status, _ = await alice_api.post(turns_path(session), {"replaces": answer.run, "stream": False})
    assert status == 200
    assert await shown() == [*STORED[:4], "More rain."]
    assert [message["content"] for message in chat.model.calls[-1].messages[-2:]] == STORED[2:4]
    continued = await ask(alice_api, *chat.messages[:-1], assistant("More rain."), user("Again?"))
    assert continued.session == session_id


async def test_the_number_of_messages_is_limited(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.runs.requested.INGEST_MESSAGES", 2)
    await chat.say("hi", "Hello.")
    chat.messages += [user(f"Fact {number}.") for number in range(4)]
    await chat.say("What is the weather?", "Rain.")
    assert await shown() == ["hi", "Hello.", "Fact 2.", "Fact 3.", "What is the weather?", "Rain."]


async def test_a_stopped_message_is_stored_once(alice_api: Api, chat: Chat) -> None:
    """Its answer so far may be resent or not."""
    await chat.say("hi", "Hello.")
    chat.messages.append(HOME)
    await chat.say("And in winter?", "In winter it")
    newest = await in_thread(Run.objects.latest, "id")
    await in_thread(Run.objects.filter(pk=newest.pk).update, state="stopped")
    begun = {"history_hash": newest.history_hash_before, "last_pair": "", "turns": 1}
    await in_thread(Session.objects.update, **begun)
    without = [message for message in chat.messages if message["content"] != "In winter it"]
    chat.model.script("Rain.")
    await ask(alice_api, *without, user("Are you there?"), QUESTION)
    stored = ["hi", "Hello.", "I live in Bergen.", "And in winter?", "In winter it", "Are you there?", *STORED[3:]]
    assert await shown() == stored
