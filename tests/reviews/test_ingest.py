"""/api/memories/ingest: memories from messages that were said elsewhere, without a turn"""

import asyncio
from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from gateway.models import Agent, Message, Session
from gateway.runs import active
from gateway.runs.rows import message_rows
from memories.database.access import in_thread
from memories.models import Memory, Owner
from reviews.ingest import _earlier
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import agent_make, key_make, session_make
from tests.gateway.v1 import ask
from tests.reviews.talk import DONE, adds, newest_review, run_review, say
from tests.scripted_model import ScriptedModel, calls
from tests.waiting import eventually_async

PATH = "/api/memories/ingest"
SAID = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "I am a vegetarian."},
    {"role": "assistant", "content": "Noted."},
]


async def ingest(api: Api, messages: Any = SAID, *, key: str = "", **fields: Any) -> tuple[int, Any]:
    headers = {"idempotency_key": key} if key else {}
    return await api.post(PATH, {"messages": messages, **fields}, **headers)


async def reviewed(model: ScriptedModel, *steps: Any) -> ReviewRun:
    """Execute the newest review as a worker does."""
    model.script(*(steps or (DONE,)))
    return await in_thread(run_review, await in_thread(newest_review))


async def scheduled() -> None:
    """Wait until the request that was just sent has made its review."""
    await eventually_async(lambda: in_thread(ReviewRun.objects.exists), within=5)


async def session_of(review: dict[str, Any]) -> Session:
    return await in_thread(Session.objects.select_related("agent").get, pk=review["session_id"])


def seen(model: ScriptedModel, number: int = 0) -> list[tuple[str, str]]:
    """What the model was shown of the conversation."""
    return [(message["role"], message["content"]) for message in model.calls[number].messages[:-1]]


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 5)


# ---- What it does ----------------------------------------------------------------------------------------------------


async def test_messages_become_memories_that_can_be_undone(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    status, review = await ingest(alice_api)
    assert status == 202
    assert (review["object"], review["state"], review["trigger"]) == ("review", "scheduled", "ingest")
    await reviewed(model, adds("Is vegetarian."), DONE)
    assert seen(model) == [("user", "I am a vegetarian."), ("assistant", "Noted.")]
    _, found = await alice_api.get(f"/api/memories?review={review['id']}")
    assert [(row["content"], row["write_origin"]) for row in found["data"]] == [("Is vegetarian.", "background_review")]
    status, undone = await alice_api.post(f"/api/reviews/{review['id']}/undo")
    assert (status, undone["undone"]) == (200, ["1"])


COMMANDS = [
    {"role": "user", "content": "/memory view"},
    {"role": "assistant", "content": "You are given nothing."},
    {"role": "user", "content": [{"type": "text", "text": " /memory clear "}]},
    {"role": "assistant", "content": "Send /memory clear confirm abcd."},
]


async def test_commands_and_their_answers_are_neither_stored_nor_reviewed(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    about = {"role": "user", "content": "What does /memory view do?"}
    status, review = await ingest(alice_api, [*COMMANDS, *SAID, *COMMANDS, about])
    assert status == 202
    await reviewed(model)
    said = [("user", "I am a vegetarian."), ("assistant", "Noted."), ("user", about["content"])]
    assert seen(model) == said
    _, messages = await alice_api.get(f"/api/sessions/{review['session_id']}/messages")
    assert [(row["role"], row["content"]) for row in messages["data"]] == said


async def test_commands_alone_are_refused(alice_api: Api, agent: Agent) -> None:
    status, answer = await ingest(alice_api, COMMANDS)
    assert (status, answer["error"]["param"]) == (400, "messages")
    assert "command" in answer["error"]["message"]
    assert not await in_thread(ReviewRun.objects.exists)


async def test_it_is_no_turn_and_its_session_is_no_chat(alice_api: Api, agent: Agent) -> None:
    _, review = await ingest(alice_api)
    _, session = await alice_api.get(f"/api/sessions/{review['session_id']}")
    assert (session["title"], session["state"], session["turns"]) == ("From messages", "ended", 0)
    assert session["turns_since_memory_review"] == 0
    _, messages = await alice_api.get(f"/api/sessions/{review['session_id']}/messages")
    assert [(row["role"], row["kind"], row["turn_id"]) for row in messages["data"]] == [
        ("user", "history", None),
        ("assistant", "history", None),
    ]


async def test_words_of_parts_are_read_and_results_of_tools_only_mentioned(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    parts = [
        {"type": "text", "text": "Look at my cat."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUFB"}},
    ]
    call = {"id": "c1", "type": "function", "function": {"name": "web", "arguments": "{}"}}
    status, _ = await ingest(
        alice_api,
        [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "The person likes jazz."},
            {"role": "assistant", "content": "A fine one."},
        ],
    )
    assert status == 202
    await reviewed(model)
    assert seen(model) == [
        ("user", "Look at my cat."),
        ("assistant", "[tool result, 22 characters]"),
        ("assistant", "A fine one."),
    ]
    assert not await in_thread(Message.objects.filter(text__contains="jazz").exists)


async def test_the_limits_of_reviews_hold(
    alice_api: Api, model: ScriptedModel, settings: Settings, agent: Agent
) -> None:
    settings.REVIEW_TOKENS = 60
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Fact number {n}."} for n in range(40)]
    await ingest(alice_api, said)
    await reviewed(model)
    assert seen(model)[-1] == ("assistant", "Fact number 39.")
    assert len(seen(model)) < len(said)


async def test_writes_wait_for_approval_where_the_agent_says_so(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(agent_make, memory_review_approval=True)
    _, review = await ingest(alice_api)
    await reviewed(model, adds("Is vegetarian."), DONE)
    status, _ = await alice_api.post(f"/api/reviews/{review['id']}/approve")
    assert status == 200
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)


async def test_deleting_the_session_ends_its_review(alice_api: Api, agent: Agent) -> None:
    _, review = await ingest(alice_api)
    await alice_api.call("DELETE", f"/api/sessions/{review['session_id']}")
    assert (await alice_api.get(f"/api/reviews/{review['id']}"))[1]["state"] == "cancelled"


# ---- Which agent and which book --------------------------------------------------------------------------------------


async def test_the_first_agent_of_the_book_reviews_with_its_model(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(agent_make, "assistant")
    await in_thread(agent_make, "later", book="code")
    await in_thread(agent_make, "coder", book="code", memory_review_model="careful")
    _, review = await ingest(alice_api, book="code")
    assert (await session_of(review)).agent.name == "coder"
    done = await reviewed(model, adds("Uses tabs."), DONE)
    assert model.calls[0].model == "careful"
    assert await in_thread(Memory.objects.filter(book__name="code", review_id=done.pk).exists)


async def test_a_book_of_no_agent_is_a_conflict_that_says_what_to_do(alice_api: Api, agent: Agent) -> None:
    status, refused = await ingest(alice_api, book="diary")
    assert (status, refused["error"]["code"], refused["error"]["param"]) == (409, "conflict", "book")
    assert "No agent uses the book diary" in refused["error"]["message"]
    assert not await in_thread(Session.objects.exists)


async def test_a_limited_key_uses_only_its_agents_and_their_books(alice: Owner) -> None:
    await in_thread(agent_make, "assistant")
    await in_thread(agent_make, "builder", book="code")
    await in_thread(agent_make, "coder", book="code")
    limited = Api((await in_thread(key_make, alice, agents=["coder"]))[1])
    status, review = await ingest(limited)
    assert (status, (await session_of(review)).agent.name) == (202, "coder")
    assert (await ingest(limited, book="main"))[0] == 404
    other = await in_thread(session_make, alice, await in_thread(Agent.objects.get, name="builder"))
    assert (await ingest(limited, session_id=str(other.pk)))[0] == 404


async def test_each_end_user_of_a_trusted_key_is_an_owner_of_their_own(alice: Owner, agent: Agent) -> None:
    trusted = Api((await in_thread(key_make, alice, trusted=True))[1])
    body = {"messages": SAID}
    _, one = await trusted.post(PATH, body, x_daybook_user="one", idempotency_key="k")
    _, two = await trusted.post(PATH, body, x_daybook_user="two", idempotency_key="k")
    owners = {(await session_of(review)).owner_id for review in (one, two)}
    assert len(owners | {alice.pk}) == 3


async def test_a_key_that_several_people_share_remembers_nothing(alice: Owner, agent: Agent) -> None:
    shared = Api((await in_thread(key_make, alice))[1])
    for user in ("one", "two"):
        await shared.raw("GET", "/api/memories", x_openwebui_user_id=user)
    status, _ = await shared.post(PATH, {"messages": SAID}, x_openwebui_user_id="two")
    assert status == 403
    assert not await in_thread(ReviewRun.objects.exists)


# ---- In a session ----------------------------------------------------------------------------------------------------


async def test_messages_join_a_session_and_only_what_is_new_is_reviewed(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    await in_thread(say, session, "I live in York.", "Nice.")
    status, first = await ingest(alice_api, session_id=str(session.pk))
    assert (status, first["session_id"]) == (202, str(session.pk))
    await reviewed(model)
    assert seen(model)[0] == ("user", "I live in York.")
    await ingest(alice_api, [{"role": "user", "content": "I play chess."}], session_id=str(session.pk))
    later = await reviewed(model)
    assert (later.first_seq, later.last_seq) == (5, 5)
    await in_thread(session.refresh_from_db)
    assert (session.turns, session.state, session.reviewed_through) == (1, "active", 5)


async def test_a_session_has_the_clients_own_name_and_goes_on_as_a_chat(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    _, first = await ingest(alice_api, session_id="kitchen")
    _, again = await ingest(alice_api, session_id="kitchen")
    assert first["session_id"] == again["session_id"]
    model.script("Hello.")
    turn = await ask(alice_api, "Hi there", headers={"x_daybook_session": "kitchen"})
    assert (turn.status, turn.session) == (200, first["session_id"])


async def test_a_session_keeps_its_book(alice_api: Api, session: Session) -> None:
    await in_thread(agent_make, "coder", book="code")
    status, refused = await ingest(alice_api, session_id=str(session.pk), book="code")
    assert (status, refused["error"]["param"]) == (400, "book")
    assert (await ingest(alice_api, session_id=str(session.pk), book="main"))[0] == 202


async def test_temporary_and_ended_sessions_take_none(alice: Owner, alice_api: Api, session: Session) -> None:
    temporary = await in_thread(session_make, alice, session.agent, temporary=True)
    assert (await ingest(alice_api, session_id=str(temporary.pk)))[0] == 400
    await alice_api.post(f"/api/sessions/{session.pk}/end")
    assert (await ingest(alice_api, session_id=str(session.pk)))[0] == 409
    assert not await in_thread(Message.objects.exists)


async def test_a_session_whose_turn_is_under_way_is_busy(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script(calls(("weather", "{}")))
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    path = f"/api/sessions/{session.pk}/turns"
    _, turn = await alice_api.post(path, {"content": "Is it sunny?", "tools": [tool]})
    assert turn["state"] == "awaiting_client_tools"
    status, refused = await ingest(alice_api, session_id=str(session.pk))
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert not await in_thread(Message.objects.filter(kind="history").exists)


async def test_the_session_of_another_owner_is_not_found(charlie_api: Api, session: Session) -> None:
    _, review = await ingest(charlie_api, session_id=str(session.pk))
    assert review["session_id"] != str(session.pk)
    assert not await in_thread(Message.objects.filter(session=session).exists)


# ---- Waiting ---------------------------------------------------------------------------------------------------------


async def test_with_wait_the_answer_is_the_finished_review(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    asked = asyncio.create_task(ingest(alice_api, wait=True))
    await scheduled()
    await reviewed(model, adds("Is vegetarian."), DONE)
    status, review = await asked
    assert (status, review["state"], review["writes"][0]["after"]) == (200, "saved", "Is vegetarian.")


async def test_a_wait_is_bounded(alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 0.05)
    status, review = await ingest(alice_api, wait=True)
    assert (status, review["state"]) == (202, "scheduled")


async def test_a_client_that_leaves_stops_only_the_waiting(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    asked = asyncio.create_task(ingest(alice_api, wait=True))
    await scheduled()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (await reviewed(model)).state == "nothing_to_save"


async def test_a_wait_ends_when_the_server_does(alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the connection is cut, and nobody knows which review it was."""
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 600)
    asked = asyncio.create_task(ingest(alice_api, wait=True))
    await scheduled()
    await active.shut_down()
    try:
        async with asyncio.timeout(30):
            status, review = await asked
    finally:
        active.reset()
    assert (status, review["state"]) == (202, "scheduled")


# ---- The same again --------------------------------------------------------------------------------------------------


async def test_the_same_key_answers_the_same_review(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    _, first = await ingest(alice_api, key="batch-1")
    status, again = await ingest(alice_api, key="batch-1")
    assert (status, again["id"]) == (202, first["id"])
    await reviewed(model)
    status, again = await ingest(alice_api, key="batch-1", wait=True)
    assert (status, again["id"], again["state"]) == (200, first["id"], "nothing_to_save")
    assert await in_thread(Message.objects.count) == 2
    _, other = await ingest(alice_api, key="batch-2")
    assert other["id"] != first["id"]


@pytest.mark.parametrize(
    "changed", [{"messages": [{"role": "user", "content": "I eat meat."}]}, {"book": "code"}, {"session_id": "kitchen"}]
)
async def test_the_same_key_with_another_body_is_a_conflict(
    alice_api: Api, agent: Agent, changed: dict[str, Any]
) -> None:
    await ingest(alice_api, key="batch-1")
    status, refused = await ingest(alice_api, **{"messages": SAID, **changed}, key="batch-1")
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert "Idempotency-Key" in refused["error"]["message"]
    assert await in_thread(ReviewRun.objects.count) == 1


async def test_of_two_requests_with_one_key_at_the_same_moment_one_wins(
    alice_api: Api, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = await ingest(alice_api, key="batch-1")
    looks: list[ReviewRun | None] = []

    def too_early(*args: Any) -> ReviewRun | None:
        looks.append(_earlier(*args) if looks else None)
        return looks[-1]

    monkeypatch.setattr("reviews.ingest._earlier", too_early)
    status, again = await ingest(alice_api, key="batch-1")
    assert (status, again["id"], len(looks)) == (202, first["id"], 2)
    assert await in_thread(Message.objects.count) == 2


async def test_a_key_of_another_owner_is_another_key(alice_api: Api, charlie_api: Api, agent: Agent) -> None:
    _, one = await ingest(alice_api, key="batch-1")
    status, two = await ingest(charlie_api, key="batch-1")
    assert (status, two["id"] == one["id"]) == (202, False)


# ---- Bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([], 400),
        ([{"role": "assistant", "content": "Hello."}], 400),
        ([{"role": "user", "content": "  "}], 400),
        ([{"role": "system", "content": "I am a vegetarian."}], 400),
        ([{"role": "wizard", "content": "Hello."}], 400),
        ([{"role": "user", "content": [{"text": "no type"}]}], 400),
        ([{"role": "user", "content": 7}], 400),
        ("I am a vegetarian.", 400),
        ([{"role": "user", "content": "Hello."}] * 501, 400),
        ([{"role": "user", "content": "x" * 200_001}], 413),
        ([*SAID, {"role": "assistant", "content": "x" * 200_001}], 413),
        ([*SAID, *[{"role": "assistant", "content": "x" * 200_000}] * 10], 413),
    ],
)
async def test_what_is_no_conversation_is_refused(alice_api: Api, agent: Agent, messages: Any, status: int) -> None:
    got, refused = await ingest(alice_api, messages)
    assert (got, refused["error"]["code"]) == (status, {400: "invalid_request", 413: "too_large"}[status])
    assert not await in_thread(Session.objects.exists)


@pytest.mark.parametrize("fields", [{"key": "k" * 256}, {"session_id": "s" * 191}, {"more": 1}])
async def test_a_request_that_says_too_much_is_refused(alice_api: Api, agent: Agent, fields: dict[str, Any]) -> None:
    assert (await ingest(alice_api, **fields))[0] == 400


async def test_a_key_that_may_only_read_ingests_nothing(alice: Owner, agent: Agent) -> None:
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await ingest(reader))[0] == 403
    assert not await in_thread(ReviewRun.objects.exists)


@pytest.mark.django_db(transaction=True)
async def test_messages_are_made_ready_before_the_writing_thread_is_taken(
    alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(agent_make)
    open_then: list[bool] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        open_then.append(connection.in_atomic_block)
        return message_rows(*args, **kwargs)

    monkeypatch.setattr("reviews.ingest.message_rows", watched)
    status, _ = await alice_api.post("/api/memories/ingest", {"messages": [{"role": "user", "content": "I like tea."}]})
    assert (status, open_then) == (202, [False])
