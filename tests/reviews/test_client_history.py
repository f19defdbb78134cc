"""History that a client sends is reviewed once, with the first review of the session that first contains it."""

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

HISTORY = [text for n in range(1, 9) for text in (f"Fact {n} of mine.", f"Noted {n}.")]


@pytest.fixture
async def every_turn(alice: Owner) -> None:
    await in_thread(reviewing_agent, memory_review_interval=1)


async def turn(api: Api, model: ScriptedModel, *messages: Any, **more: Any) -> Session:
    model.script("Fine.")
    response = await ask(api, *messages, **more)
    assert response.status == 200, response.json
    return await in_thread(Session.objects.get, pk=response.session)


async def read_by_review(model: ScriptedModel, *steps: Any) -> list[str]:
    """Execute the newest review, and return the messages that the model was sent."""
    review = await in_thread(newest_review)
    before = len(model.calls)
    model.script(*(steps or (DONE,)))
    await in_thread(run_review, review)
    return [message["content"] for message in model.calls[before].messages[:-1]]


@pytest.mark.any_database
async def test_only_the_first_review_reads_the_history(alice_api: Api, every_turn: None, model: ScriptedModel) -> None:
    session = await turn(alice_api, model, *HISTORY, "Hello here.")
    assert session.turns_since_memory_review == 0
    assert await read_by_review(model, adds("Fact 1."), DONE) == [*HISTORY, "Hello here.", "Fine."]
    assert await in_thread(Memory.objects.filter(content="Fact 1.").exists)
    again = await turn(alice_api, model, *HISTORY, "Hello here.", "Fine.", "And on.")
    assert again.pk == session.pk
    read = await read_by_review(model)
    assert read[-2:] == ["And on.", "Fine."]
    assert "Fact 1 of mine." not in read


async def test_turns_of_the_history_do_not_count_towards_the_interval(
    alice: Owner, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent, memory_review_interval=2)
    session = await turn(alice_api, model, *HISTORY, "One.")
    assert (session.turns, session.turns_since_memory_review) == (1, 1)
    assert not await in_thread(ReviewRun.objects.exists)
    await turn(alice_api, model, *HISTORY, "One.", "Fine.", "Two.")
    assert (await in_thread(newest_review)).first_seq == 1


@pytest.mark.usefixtures("every_turn")
async def test_history_beyond_the_token_limit_is_never_read(
    alice_api: Api, model: ScriptedModel, settings: Settings
) -> None:
    settings.REVIEW_TOKENS = 60
    session = await turn(alice_api, model, *HISTORY, "Hello here.")
    read = await read_by_review(model)
    assert read[-2:] == ["Hello here.", "Fine."]
    assert 2 < len(read) < len(HISTORY)
    await in_thread(session.refresh_from_db)
    assert session.reviewed_through == session.message_seq


@pytest.mark.usefixtures("every_turn")
async def test_the_review_of_a_fork_skips_the_messages_of_its_parent(alice_api: Api, model: ScriptedModel) -> None:
    parent = await turn(alice_api, model, *HISTORY, "Hello here.")
    await read_by_review(model)
    await turn(alice_api, model, *HISTORY, "Hello here.", "Fine.", "One way.")
    fork = await turn(alice_api, model, *HISTORY, "Hello here.", "Fine.", "Another way.")
    assert (fork.parent_id, fork.reviewed_through) == (parent.pk, len(HISTORY) + 2)
    read = await read_by_review(model)
    assert read[-2:] == ["Another way.", "Fine."]
    assert HISTORY[0] not in read


@pytest.mark.usefixtures("every_turn")
async def test_history_that_another_session_contains_is_not_read_again(alice_api: Api, model: ScriptedModel) -> None:
    known = await turn(alice_api, model, "I am a vegetarian.")
    await turn(alice_api, model, "I am a vegetarian.", "Fine.", "I live in York.")
    altered = ["I am a vegetarian.", "Tell me more.", "I live in York.", "A town.", "I was born in Leeds.", "Oh."]
    other = await turn(alice_api, model, *altered, "Hello.")
    assert other.pk != known.pk
    assert other.reviewed_through == 4
    read = await read_by_review(model)
    assert read[-4:] == ["I was born in Leeds.", "Oh.", "Hello.", "Fine."]


@pytest.mark.usefixtures("every_turn")
async def test_another_owners_session_does_not_matter(alice_api: Api, charlie_api: Api, model: ScriptedModel) -> None:
    await turn(charlie_api, model, "I am a vegetarian.")
    session = await turn(alice_api, model, "I am a vegetarian.", "Noted.", "Hello.")
    assert session.reviewed_through == 0


@pytest.mark.usefixtures("every_turn")
async def test_tool_results_in_the_history_are_only_mentioned(alice_api: Api, model: ScriptedModel) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "web", "parameters": "{}", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The person likes jazz."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    await turn(alice_api, model, *messages)
    read = await read_by_review(model)
    assert read == ["Look it up.", "[tool result, 22 characters]", "Done.", "Thanks.", "Fine."]


async def test_a_temporary_session_with_history_is_never_reviewed(
    alice_api: Api, every_turn: None, model: ScriptedModel
) -> None:
    await turn(alice_api, model, *HISTORY, "Hello.", metadata={"temporary": "true"})
    assert not await in_thread(ReviewRun.objects.exists)
    assert await in_thread(Message.objects.filter(kind="history").count) == len(HISTORY)


async def test_the_newest_messages_of_a_very_long_history_are_stored(
    alice_api: Api, agent: Agent, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.runs.v1.INGEST_MESSAGES", 4)
    model.script("Yes.")
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"number {n}"} for n in range(9)]
    status, _ = await alice_api.post("/v1/chat/completions", {"model": "assistant", "messages": messages})
    assert status == 200
    assert [message["content"] for message in model.calls[0].messages[-9:]] == [f"number {n}" for n in range(9)]
    texts = await in_thread(list, Message.objects.order_by("seq").values_list("text", flat=True))
    assert texts == [*(f"number {n}" for n in range(4, 9)), "Yes."]
