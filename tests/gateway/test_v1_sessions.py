"""Matching requests to /v1 that resend their conversation to sessions"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django.fixtures import Settings

from gateway.api import v1_turn
from gateway.models import Agent, Message, Run, Session
from gateway.runs.leases import lease_end
from gateway.runs.summaries import may_contain_summary
from gateway.services import session_end
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.gateway.native import turns_path
from tests.gateway.v1 import Chat, ask, assistant, user
from tests.scripted_model import ScriptedModel, says


@pytest.fixture
def chat(alice_api: Api, agent: Agent, model: ScriptedModel) -> Chat:
    return Chat(alice_api, model)


@pytest.fixture
def other_chat(alice_api: Api, model: ScriptedModel) -> Chat:
    return Chat(alice_api, model)


async def session_of(session_id: str) -> Session:
    return await in_thread(Session.objects.get, pk=session_id)


async def states() -> list[tuple[int, str, bool, bool]]:
    rows = Run.objects.order_by("id").values_list("turn", "state", "counted", "superseded")
    return await in_thread(lambda: list(rows))


async def update_newest_run(**fields: Any) -> None:
    """Update the newest run, as another process or a crash would have left it."""
    newest = await in_thread(Run.objects.latest, "id")
    await in_thread(Run.objects.filter(pk=newest.pk).update, **fields)


async def test_a_conversation_continues_in_its_session(chat: Chat) -> None:
    first = await chat.say("hi", "Hello.")
    second = await chat.say("How are you?", "Fine.")
    third = await chat.say("Good.", "Yes.")
    assert first.session == second.session == third.session
    session = await session_of(first.session)
    assert (session.turns, session.turns_since_memory_review) == (3, 3)
    texts = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("text", flat=True)))
    assert texts == ["hi", "Hello.", "How are you?", "Fine.", "Good.", "Yes."]


async def test_whitespace_parts_and_system_messages_do_not_matter(chat: Chat, alice_api: Api) -> None:
    first = await chat.say("hi  there", "Hello,\n\nyou.")
    chat.model.script("Fine.")
    second = await ask(
        alice_api,
        {"role": "system", "content": "Other instructions today."},
        {"role": "user", "content": [{"type": "text", "text": "hi there "}]},
        {"role": "assistant", "content": " Hello, you."},
        {"role": "system", "content": "It is Monday."},
        {"role": "user", "content": "And?"},
    )
    assert second.session == first.session


async def test_two_chats_that_open_with_hi_stay_separate(chat: Chat, other_chat: Chat) -> None:
    one, two = await chat.say("hi", "Hello."), await other_chat.say("hi", "Good day.")
    assert one.session != two.session
    assert (await chat.say("more", "Yes.")).session == one.session
    assert (await other_chat.say("more", "No.")).session == two.session


async def test_a_conversation_of_another_owner_is_a_separate_session(
    chat: Chat, charlie_api: Api, model: ScriptedModel
) -> None:
    own = await chat.say("hi", "Hello.")
    theirs = Chat(charlie_api, model, messages=list(chat.messages))
    assert (await theirs.say("more", "Yes.")).session != own.session


async def test_a_conversation_with_another_agent_is_a_separate_session(chat: Chat, alice_api: Api) -> None:
    await in_thread(agent_make, "other")
    own = await chat.say("hi", "Hello.")
    other = Chat(alice_api, chat.model, messages=list(chat.messages), body={"model": "other"})
    assert (await other.say("more", "Yes.")).session != own.session


async def test_regenerating_does_not_count_a_turn_twice(chat: Chat) -> None:
    await chat.say("hi", "Hello.")
    first = await chat.say("A joke?", "Knock, knock.")
    again = await chat.again("A horse walks in.")
    once_more = await chat.again("Why the long face?")
    assert first.session == again.session == once_more.session
    assert [row[0] for row in await states()] == [1, 2, 2, 2]
    assert [row[3] for row in await states()] == [False, True, True, False]
    session = await session_of(first.session)
    assert (session.turns, session.turns_since_memory_review) == (2, 2)
    assert (await chat.say("Ha.", "Ha.")).session == first.session


async def test_regenerating_an_earlier_turn_drops_the_later_ones(chat: Chat) -> None:
    first = await chat.say("one", "1")
    await chat.say("two", "2")
    await chat.say("three", "3")
    del chat.messages[-2:]
    assert (await chat.again("II")).session == first.session
    assert [row[3] for row in await states()] == [False, True, True, False]
    assert (await session_of(first.session)).turns == 2
    after = await chat.say("three", "III")
    assert after.session == first.session
    session = await session_of(first.session)
    assert (session.turns, session.turns_since_memory_review) == (3, 3)


async def test_a_failed_regeneration_does_not_count_the_turn_again(chat: Chat, alice_api: Api) -> None:
    first = await chat.say("hi", "Hello.")
    await chat.say("more", "Yes.")
    chat.model.script(UpstreamError("no"))
    failed = await ask(alice_api, *chat.messages[:-1])
    assert failed.status == 502
    again = await chat.again("Certainly.")
    assert again.session == first.session
    assert (await session_of(first.session)).turns_since_memory_review == 2


async def test_another_message_at_an_earlier_place_creates_a_fork(chat: Chat, alice_api: Api) -> None:
    first = await chat.say("hi", "Hello.")
    fork = Chat(alice_api, chat.model, messages=list(chat.messages))
    await chat.say("left", "Left it is.")
    forked = await fork.say("right", "Right it is.")
    assert forked.session != first.session
    assert str((await session_of(forked.session)).parent_id) == first.session
    # Both can be continued, and the original can still be regenerated.
    assert (await fork.say("more", "Yes.")).session == forked.session
    assert (await chat.again("Left, then.")).session == first.session
    stored = Message.objects.filter(session_id=forked.session).order_by("seq")
    kinds = await in_thread(lambda: list(stored.values_list("text", "kind")))
    assert kinds[:3] == [("hi", "history"), ("Hello.", "history"), ("right", "chat")]


async def test_a_client_that_drops_older_messages_stays_in_its_session(chat: Chat) -> None:
    first = await chat.say("one", "1")
    for number in range(2, 5):
        await chat.say(f"number {number}", f"It is {number}")
        chat.messages = chat.messages[-4:]
    assert (await chat.say("last", "Done.")).session == first.session
    assert (await session_of(first.session)).turns == 5


async def test_a_truncated_history_that_fits_two_sessions_is_a_new_one(chat: Chat, other_chat: Chat) -> None:
    sessions = set()
    for each in (chat, other_chat):
        await each.say(f"I am {each is chat}", "Hello.")
        sessions.add((await each.say("continue", "Go on.")).session)
        each.messages = each.messages[-2:]
    assert (await chat.say("more", "Yes.")).session not in sessions


async def test_an_old_exchange_is_no_longer_recognised_after_a_month(chat: Chat) -> None:
    await chat.say("one", "1")
    first = await chat.say("continue", "Go on.")
    chat.messages = chat.messages[-2:]
    with time_machine.travel(timezone.now() + timedelta(days=31), tick=False):
        assert (await chat.say("more", "Yes.")).session != first.session


@pytest.mark.parametrize("received", ["Hel", "Hello, th", "Hello, there my"])
@pytest.mark.parametrize("state", ["stopped", "failed"])
async def test_an_aborted_answer_is_matched_by_its_beginning(chat: Chat, received: str, state: str) -> None:
    first = await chat.say("hi", "Hello, there")
    await update_newest_run(state=state)
    await in_thread(Session.objects.update, history_hash="", last_pair="", turns=0)
    chat.messages[-1]["content"] = received
    second = await chat.say("more", "Yes.")
    assert second.session == first.session
    assert (await chat.say("and more", "No.")).session == first.session


async def test_a_different_aborted_answer_is_another_conversation(chat: Chat) -> None:
    first = await chat.say("hi", "Hello, there")
    await update_newest_run(state="stopped")
    await in_thread(Session.objects.update, history_hash="", last_pair="", turns=0)
    chat.messages[-1]["content"] = "Good day"
    assert (await chat.say("more", "Yes.")).session != first.session


async def test_an_unanswered_message_stays_in_the_session(chat: Chat, alice_api: Api) -> None:
    chat.model.script(UpstreamError("no"), "Fine.", "Good.")
    failed = await ask(alice_api, "hi")
    assert failed.status == 502
    second = await ask(alice_api, {"role": "user", "content": "hi"}, {"role": "user", "content": "Are you there?"})
    run = await in_thread(Run.objects.earliest, "id")
    assert second.session == str(run.session_id)
    third = await ask(
        alice_api,
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "Are you there?"},
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": "Good."},
    )
    assert third.session == second.session
    assert (await session_of(second.session)).turns == 2


async def test_an_unanswered_message_stays_in_the_session_if_only_the_newest_messages_are_sent(
    chat: Chat, alice_api: Api
) -> None:
    """LangGraph's agents do so after a summary, and send a message that was aborted together with the next one."""
    first = await chat.say("Where is the kettle?", "On the shelf in the kitchen, behind the tea.")
    await chat.say("And where are the cups?", "In the cupboard above the sink, next to the plates.")
    newest = [*chat.messages[2:], user("And the spoons?")]
    chat.model.script(UpstreamError("no"), "In the drawer.", "In the left drawer.")
    assert (await ask(alice_api, *newest)).status == 502
    newest.append(user("Are you there?"))
    assert (await ask(alice_api, *newest)).session == first.session
    assert (await ask(alice_api, *newest)).session == first.session
    assert (await session_of(first.session)).turns == 3


@pytest.mark.parametrize("answers", [("", "Fine."), ("Hello.", "", "Fine."), ("Hello.", "\n\n", "")])
async def test_an_empty_answer_does_not_end_the_session(chat: Chat, answers: tuple[str, ...]) -> None:
    """Models give some after a call of a memory tool."""
    said = [await chat.say(f"Message {number}", answer) for number, answer in enumerate(answers)]
    said.append(await chat.say("And now?", "Good."))
    assert {answer.session for answer in said} == {said[0].session}
    again = await chat.again("Better.")
    stored = await session_of(again.session)
    assert (str(stored.pk), stored.turns) == (said[0].session, len(answers) + 1)


@pytest.mark.parametrize("answer", ["Right it is.", ""])
async def test_another_message_in_place_of_one_with_an_empty_answer_creates_a_fork(
    chat: Chat, alice_api: Api, answer: str
) -> None:
    first = await chat.say("hi", "Hello.")
    fork = Chat(alice_api, chat.model, messages=list(chat.messages))
    await chat.say("left", "")
    forked = await fork.say("right", answer)
    assert str((await session_of(forked.session)).parent_id) == first.session != forked.session
    assert (await fork.again("Right, then.")).session == forked.session
    assert (await chat.say("more", "Yes.")).session == first.session
    assert (await fork.say("more", "Yes.")).session == forked.session
    texts = Message.objects.filter(session_id=first.session).order_by("seq").values_list("text", flat=True)
    assert await in_thread(lambda: list(texts)) == ["hi", "Hello.", "left", "more", "Yes."]


async def test_a_message_with_an_empty_answer_is_edited_in_a_named_session(chat: Chat, alice_api: Api) -> None:
    named = {"x_openwebui_chat_id": "c1"}
    chat.model.script("Hello.", "", "Fine.")
    said = [user("hi"), assistant("Hello.")]
    await ask(alice_api, "hi", headers=named)
    for text in ("left", "right"):
        await ask(alice_api, *said, user(text), headers=named)
    shown = Message.objects.filter(run__superseded=False).order_by("seq").values_list("text", flat=True)
    assert await in_thread(lambda: list(shown)) == ["hi", "Hello.", "right", "Fine."]


async def test_a_failed_first_message_may_be_sent_again(chat: Chat, alice_api: Api) -> None:
    chat.model.script(UpstreamError("no"))
    await ask(alice_api, "hi")
    again = await chat.say("hi", "Hello.")
    run = await in_thread(Run.objects.earliest, "id")
    assert again.session == str(run.session_id)
    assert await states() == [(1, "failed", True, True), (1, "completed", True, False)]


@pytest.mark.parametrize("text", ["hi", "Plan a trip to Norway"])
@pytest.mark.parametrize("named", [{"x_openwebui_chat_id": "c1"}, {}])
async def test_a_failed_first_message_of_another_client_is_not_answered(
    chat: Chat, alice_api: Api, session: Session, named: dict[str, str], text: str
) -> None:
    """That client named its session, by an id of its own or in the native API; this one names none."""
    chat.model.script(UpstreamError("no"))
    if named:
        await ask(alice_api, text, headers=named)
    else:
        await alice_api.post(turns_path(session), {"content": text})
    other = await in_thread(Run.objects.get)
    assert (await chat.say(text, "Hello.")).session != str(other.session_id)
    chat.messages = [user(text)]
    assert (await chat.say("Are you there?", "Yes.")).session != str(other.session_id)


@pytest.mark.parametrize("header", [{"idempotency_key": "k1"}, {"x_stainless_retry_count": "1"}])
async def test_a_retry_of_a_first_message_is_the_same_turn(chat: Chat, header: dict[str, str]) -> None:
    chat.headers = header
    first = await chat.say("hi", "Hello.")
    again = await chat.again("Good day.")
    assert again.session == first.session
    assert (await session_of(first.session)).turns_since_memory_review == 1


async def test_another_idempotency_key_is_another_chat(chat: Chat, other_chat: Chat) -> None:
    chat.headers, other_chat.headers = {"idempotency_key": "k1"}, {"idempotency_key": "k2"}
    assert (await chat.say("hi", "Hello.")).session != (await other_chat.say("hi", "Hello.")).session


async def test_an_old_first_message_is_not_a_retry(chat: Chat, other_chat: Chat) -> None:
    first = await chat.say("hi", "Hello.")
    other_chat.headers = {"x_stainless_retry_count": "1"}  # as if the first attempt had not arrived
    with time_machine.travel(timezone.now() + timedelta(hours=1), tick=False):
        assert (await other_chat.say("hi", "Hello.")).session != first.session


@pytest.mark.parametrize("by", ["header", "metadata", "chat id"])
async def test_an_explicit_id_creates_and_finds_a_session(chat: Chat, by: str) -> None:
    if by == "metadata":
        chat.body = {"metadata": {"session_id": "mine"}}
    else:
        chat.headers = {"x_daybook_session" if by == "header" else "x_openwebui_chat_id": "mine"}
    first = await chat.say("hi", "Hello.")
    chat.messages.clear()
    second = await chat.say("Something else entirely", "Yes.")
    assert first.session == second.session
    session = await session_of(first.session)
    assert (session.external_id, session.turns) == ("mine", 2)


async def test_the_header_takes_precedence_over_metadata_and_chat_id(chat: Chat) -> None:
    chat.headers = {"x_daybook_session": "a", "x_openwebui_chat_id": "c"}
    chat.body = {"metadata": {"session_id": "b"}}
    assert (await session_of((await chat.say("hi", "Hello.")).session)).external_id == "a"


@pytest.mark.parametrize("given", [True, False, 1.5, {"id": "a"}], ids=str)
async def test_a_session_id_that_is_no_id_is_ignored(chat: Chat, other_chat: Chat, given: Any) -> None:
    """Two conversations would otherwise share the session of that name."""
    chat.body = other_chat.body = {"metadata": {"session_id": given}}
    one, two = await chat.say("hi", "Hello."), await other_chat.say("Good day", "Good day.")
    assert one.session != two.session
    assert (await session_of(one.session)).external_id is None
    assert (await chat.say("more", "Yes.")).session == one.session


async def test_a_session_id_may_be_a_number(chat: Chat, other_chat: Chat) -> None:
    chat.body, other_chat.body = {"metadata": {"session_id": 7}}, {"metadata": {"session_id": "7"}}
    assert (await chat.say("hi", "Hello.")).session == (await other_chat.say("Good day", "Good day.")).session


async def test_a_session_header_in_utf_8_names_the_session_of_the_metadata(chat: Chat, other_chat: Chat) -> None:
    chat.headers = {"x_daybook_session": "küche".encode().decode("latin-1")}
    other_chat.body = {"metadata": {"session_id": "küche"}}
    assert (await chat.say("hi", "Hello.")).session == (await other_chat.say("Good day", "Good day.")).session


async def test_a_daybook_session_id_names_a_session(chat: Chat, session: Session) -> None:
    chat.headers = {"x_daybook_session": str(session.pk)}
    assert (await chat.say("hi", "Hello.")).session == str(session.pk)


async def test_a_session_id_of_another_owner_is_unknown(chat: Chat, charlie: Owner, agent: Agent) -> None:
    theirs = await in_thread(session_make, charlie, agent)
    chat.headers = {"x_daybook_session": str(theirs.pk)}
    response = await chat.say("hi", "Hello.")
    assert response.session != str(theirs.pk)
    assert (await session_of(response.session)).owner_id != charlie.pk


async def test_a_named_session_counts_messages_sent_alone(chat: Chat) -> None:
    chat.headers = {"x_daybook_session": "mine"}
    for text in ("yes", "no", "yes"):
        chat.messages.clear()
        response = await chat.say(text, "Good.")
    assert (await session_of(response.session)).turns == 3


async def test_a_named_session_supports_regenerating_and_editing(chat: Chat) -> None:
    chat.headers = {"x_openwebui_chat_id": "mine"}
    await chat.say("one", "1")
    await chat.say("two", "2")
    response = await chat.again("II")
    assert (await session_of(response.session)).turns_since_memory_review == 2
    del chat.messages[-2:]
    edited = await chat.say("deux", "2!")
    assert edited.session == response.session
    assert [row[3] for row in await states()] == [False, True, True, False]
    session = await session_of(response.session)
    assert (session.turns, session.turns_since_memory_review) == (2, 2)


async def test_a_first_message_that_is_repeated_after_a_failed_one_is_counted_once(
    chat: Chat, alice_api: Api, model: ScriptedModel
) -> None:
    chat.headers = {"x_daybook_session": "mine"}
    await chat.say("one", "1")
    model.script(UpstreamError("down"))
    await ask(alice_api, *chat.messages, user("two"), headers=chat.headers)
    response = await chat.again("I")
    assert (await session_of(response.session)).turns == 1
    assert [row[1:] for row in await states()] == [
        ("completed", True, True),
        ("failed", True, True),
        ("completed", True, False),
    ]


async def test_a_new_message_that_equals_the_one_before_a_failed_one_is_another_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("1", "2", UpstreamError("down"), "3")
    for text in ("begin", "yes", "more", "yes"):  # the client sends only its new message
        await ask(alice_api, text, headers={"x_daybook_session": "mine"})
    assert (await in_thread(Session.objects.get)).turns == 3


async def test_a_session_id_with_another_agent_is_refused(chat: Chat, session: Session) -> None:
    await in_thread(agent_make, "other")
    response = await ask(chat.api, "hi", model="other", headers={"x_daybook_session": str(session.pk)})
    assert (response.status, response.code) == (400, "invalid_request")


async def test_a_chat_may_use_several_agents(chat: Chat) -> None:
    await in_thread(agent_make, "other")
    chat.headers = {"x_openwebui_chat_id": "mine"}
    one = await chat.say("hi", "Hello.")
    chat.body = {"model": "other"}
    two, three = await chat.say("hi", "Hello."), await chat.say("more", "Yes.")
    assert one.session != two.session == three.session


async def test_a_too_long_session_id_is_refused(chat: Chat) -> None:
    response = await ask(chat.api, "hi", headers={"x_daybook_session": "x" * 191})
    assert (response.status, response.json["error"]["param"]) == (400, "session_id")


async def test_an_ended_session_is_a_conflict_by_id_and_a_new_session_by_content(chat: Chat) -> None:
    first = await chat.say("hi", "Hello.")
    await in_thread(session_end, await session_of(first.session))
    named = await ask(chat.api, *chat.messages, "more", headers={"x_daybook_session": first.session})
    assert (named.status, named.code) == (409, "conflict")
    second = await chat.say("more", "Yes.")
    assert second.session != first.session
    assert (await chat.say("more", "Yes.")).session == second.session


async def test_a_request_waits_for_a_busy_session(chat: Chat, settings: Settings) -> None:
    first = await chat.say("hi", "Hello.")
    await update_newest_run(state="running", lease_expires_at=lease_end())

    async def finish() -> None:
        await asyncio.sleep(0)
        await update_newest_run(state="completed")

    chat.messages.append({"role": "user", "content": "more"})
    chat.model.script("Yes.")
    response, _ = await asyncio.gather(ask(chat.api, *chat.messages), finish())
    assert response.session == first.session


async def test_a_session_that_stays_busy_is_forked(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v1_turn, "BUSY_SECONDS", 0.05)
    first = await chat.say("hi", "Hello.")
    await update_newest_run(state="running", lease_expires_at=lease_end())
    second = await chat.say("more", "Yes.")
    assert second.session != first.session
    assert str((await session_of(second.session)).parent_id) == first.session


async def test_a_run_of_a_dead_process_does_not_block_its_session(chat: Chat) -> None:
    first = await chat.say("hi", "Hello.")
    await update_newest_run(state="running", lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert (await chat.say("more", "Yes.")).session == first.session
    assert [row[1] for row in await states()] == ["stopped", "completed"]


async def test_a_temporary_conversation_is_a_temporary_session(chat: Chat) -> None:
    chat.body = {"metadata": {"temporary": "true"}}
    first = await chat.say("hi", "Hello.")
    second = await chat.say("more", "Yes.")
    session = await session_of(first.session)
    assert first.session == second.session
    assert (session.temporary, session.turns_since_memory_review) == (True, 0)
    chat.body = {}
    assert (await chat.say("and more", "No.")).session != first.session


async def test_a_temporary_chat_of_open_webui_is_a_temporary_session(chat: Chat) -> None:
    """Open WebUI does not store such chats and names them after the browser tab."""
    chat.headers = {"X-OpenWebUI-Chat-Id": "local:aXb9"}
    first = await chat.say("hi", "Hello.")
    assert (await chat.say("I moved to York.", "Noted.")).session == first.session
    session = await session_of(first.session)
    assert (session.temporary, session.external_id, session.turns_since_memory_review) == (True, None, 0)


async def test_a_temporary_request_in_a_lasting_session_leaves_no_trace(chat: Chat) -> None:
    chat.headers = {"x_daybook_session": "mine"}
    first = await chat.say("hi", "Hello.")
    chat.body = {"metadata": {"temporary": "true"}}
    second = await chat.say("I am vegetarian", "Noted?")
    assert second.session == first.session
    runs = await in_thread(lambda: list(Run.objects.order_by("id").values_list("temporary", flat=True)))
    assert runs == [False, True]
    assert (await session_of(first.session)).turns_since_memory_review == 1
    assert "tools" not in chat.model.calls[1].body(stream=False)


async def test_history_from_elsewhere_is_stored_but_not_counted(alice_api: Api, chat: Chat) -> None:
    chat.model.script(says("Fine."))
    response = await ask(alice_api, "hi", "Hello from elsewhere.", "How are you?")
    session = await session_of(response.session)
    assert (session.turns, session.turns_since_memory_review, session.reviewed_through) == (1, 1, 0)


SUMMARY = (
    "The person plans a week of hiking in Tyrol with two friends and a dog. They want huts that take dogs, and no day "
    "of more than six hours. They have not decided between July and September yet."
)


def test_long_system_messages_are_searched_for_a_summary_at_both_ends() -> None:
    long, announced = "Answer politely. " * 5_000, f"Summary of the conversation so far: {SUMMARY}"
    assert may_contain_summary(f"{announced}\n{long}")
    assert may_contain_summary(f"{long}\n{announced}")
    assert not may_contain_summary(f"{long}\n{announced}\n{long}")


async def test_a_first_message_continues_only_the_session_whose_summary_is_in_its_system_message(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Which month?", SUMMARY, *["Fine."] * 5)
    words = "We plan a week of hiking."
    first = await ask(alice_api, words)
    await ask(alice_api, words, "Which month?", "Create a summary of the conversation above:")
    system = {"role": "system", "content": f"Summary of the conversation so far: {SUMMARY}"}
    july = {"role": "user", "content": "July, then."}
    assert {(await ask(alice_api, system, july)).session for _ in range(2)} == {first.session}
    runs = Run.objects.filter(session_id=first.session, superseded=False)
    assert await in_thread(runs.count) == 2  # the second request replaced its turn
    able = {"role": "system", "content": "You can summarize chats and texts."}
    quoting = {"role": "user", "content": f"Elsewhere I noted: {SUMMARY} Write a song."}
    background = {"role": "system", "content": f"What the person told another assistant: {SUMMARY}"}
    for messages in ((able, quoting), (system, quoting), (background, july)):
        found = await ask(alice_api, *messages)
        assert (found.session == first.session) == (messages[0] is system)
