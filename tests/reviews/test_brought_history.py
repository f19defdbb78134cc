"""History that a client brings is reviewed once: with the first review of the session in which it is first seen."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from gateway.models import Agent, Message, Session
from memories.database.access import in_thread
from memories.models import Memory, Owner
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.gateway.v1 import ask
from tests.reviews.talk import DONE, adds, newest_review, reviewing_agent, run_review
from tests.scripted_model import ScriptedModel

BROUGHT = [text for n in range(1, 9) for text in (f"Fact {n} of mine.", f"Noted {n}.")]


@pytest.fixture
async def every_turn(alice: Owner) -> None:
    await in_thread(reviewing_agent, memory_review_interval=1)


async def turn(api: Api, model: ScriptedModel, *said: Any, **more: Any) -> Session:
    model.script("Fine.")
    got = await ask(api, *said, **more)
    assert got.status == 200, got.json
    return await in_thread(Session.objects.get, pk=got.session)


async def read_by_review(model: ScriptedModel, *steps: Any) -> list[str]:
    """The messages that the newest review was given, as the model saw them."""
    review = await in_thread(newest_review)
    before = len(model.calls)
    model.script(*(steps or (DONE,)))
    await in_thread(run_review, review)
    return [message["content"] for message in model.calls[before].messages[:-1]]


async def test_the_first_review_reads_what_was_said_before_and_the_next_ones_do_not(
    alice_api: Api, every_turn: None, model: ScriptedModel
) -> None:
    session = await turn(alice_api, model, *BROUGHT, "Hello here.")
    assert session.turns_since_memory_review == 0
    assert await read_by_review(model, adds("Fact 1."), DONE) == [*BROUGHT, "Hello here.", "Fine."]
    assert await in_thread(Memory.objects.filter(content="Fact 1.").exists)
    again = await turn(alice_api, model, *BROUGHT, "Hello here.", "Fine.", "And on.")
    assert again.pk == session.pk
    read = await read_by_review(model)
    assert read[-2:] == ["And on.", "Fine."]
    assert "Fact 1 of mine." not in read


async def test_the_turns_before_do_not_count_towards_the_interval(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    session = await turn(alice_api, model, *BROUGHT, "One.")
    assert (session.turns, session.turns_since_memory_review) == (1, 1)
    assert not await in_thread(ReviewRun.objects.exists)
    await turn(alice_api, model, *BROUGHT, "One.", "Fine.", "Two.")
    assert (await in_thread(newest_review)).first_seq == 1


@pytest.mark.usefixtures("every_turn")
async def test_the_review_reads_no_more_than_its_limit_and_nothing_is_read_later(
    alice_api: Api, model: ScriptedModel, settings: Settings
) -> None:
    settings.REVIEW_TOKENS = 60
    session = await turn(alice_api, model, *BROUGHT, "Hello here.")
    read = await read_by_review(model)
    assert read[-2:] == ["Hello here.", "Fine."]
    assert 2 < len(read) < len(BROUGHT)
    await in_thread(session.refresh_from_db)
    assert session.reviewed_through == session.message_seq


@pytest.mark.usefixtures("every_turn")
async def test_a_fork_does_not_read_again_what_its_parent_holds(alice_api: Api, model: ScriptedModel) -> None:
    parent = await turn(alice_api, model, *BROUGHT, "Hello here.")
    await read_by_review(model)
    await turn(alice_api, model, *BROUGHT, "Hello here.", "Fine.", "One way.")
    fork = await turn(alice_api, model, *BROUGHT, "Hello here.", "Fine.", "Another way.")
    assert (fork.parent_id, fork.reviewed_through) == (parent.pk, len(BROUGHT) + 2)
    read = await read_by_review(model)
    assert read[-2:] == ["Another way.", "Fine."]
    assert BROUGHT[0] not in read


@pytest.mark.usefixtures("every_turn")
async def test_a_session_that_is_not_found_again_reads_only_what_no_other_one_holds(
    alice_api: Api, model: ScriptedModel
) -> None:
    one = await turn(alice_api, model, "I am a vegetarian.")
    await turn(alice_api, model, "I am a vegetarian.", "Fine.", "I live in York.")
    altered = ["I am a vegetarian.", "Tell me more.", "I live in York.", "A town.", "I was born in Leeds.", "Oh."]
    other = await turn(alice_api, model, *altered, "Hello.")
    assert other.pk != one.pk
    assert other.reviewed_through == 4
    read = await read_by_review(model)
    assert read[-4:] == ["I was born in Leeds.", "Oh.", "Hello.", "Fine."]


@pytest.mark.usefixtures("every_turn")
async def test_another_owners_session_says_nothing_about_it(
    alice_api: Api, charlie_api: Api, model: ScriptedModel
) -> None:
    await turn(charlie_api, model, "I am a vegetarian.")
    brought = await turn(alice_api, model, "I am a vegetarian.", "Noted.", "Hello.")
    assert brought.reviewed_through == 0


@pytest.mark.usefixtures("every_turn")
async def test_tool_results_of_the_history_are_only_mentioned(alice_api: Api, model: ScriptedModel) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "web", "parameters": "{}", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The person likes jazz."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    await turn(alice_api, model, *said)
    read = await read_by_review(model)
    assert read == ["Look it up.", "[tool result, 22 characters]", "Done.", "Thanks.", "Fine."]


async def test_a_temporary_session_with_history_is_never_reviewed(
    alice_api: Api, every_turn: None, model: ScriptedModel
) -> None:
    await turn(alice_api, model, *BROUGHT, "Hello.", metadata={"temporary": "true"})
    assert not await in_thread(ReviewRun.objects.exists)
    assert await in_thread(Message.objects.filter(kind="history").count) == len(BROUGHT)


async def test_of_a_very_long_history_the_newest_messages_are_kept(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.runs.v1.INGEST_MESSAGES", 4)
    model.script("Yes.")
    said = [{"role": ("user", "assistant")[n % 2], "content": f"number {n}"} for n in range(9)]
    status, _ = await alice_api.post("/v1/chat/completions", {"model": "assistant", "messages": said})
    assert status == 200
    assert [message["content"] for message in model.calls[0].messages[-9:]] == [f"number {n}" for n in range(9)]
    texts = await in_thread(list, Message.objects.order_by("seq").values_list("text", flat=True))
    assert texts == [*(f"number {n}" for n in range(4, 9)), "Yes."]
