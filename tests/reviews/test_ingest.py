"""/api/memories/ingest: memories from messages of other conversations, without a turn"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from gateway.models import Agent, InstructionHashes, Message, Session
from gateway.runs import active
from gateway.runs.rows import message_rows
from memories.database.access import in_thread
from memories.database.lanes import DatabaseBusy
from memories.evidence.instructions import hashed_instructions
from memories.models import Memory, Owner
from reviews.ingest import _earlier, ingest_prepare, review_ingest
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import agent_make, caller_make, key_make, session_make
from tests.gateway.v1 import ask
from tests.reviews.talk import DONE, PAGE, PLANTED, adds, newest_review, run_review, say
from tests.scripted_model import ScriptedModel, calls
from tests.unsliced import session_delete
from tests.waiting import eventually_async

pytestmark = pytest.mark.usefixtures("agent")
PATH = "/api/memories/ingest"
MESSAGES = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "I am a vegetarian."},
    {"role": "assistant", "content": "Noted."},
]


async def ingest(api: Api, messages: Any = MESSAGES, *, key: str = "", **fields: Any) -> tuple[int, Any]:
    headers = {"idempotency_key": key} if key else {}
    return await api.post(PATH, {"messages": messages, **fields}, **headers)


async def run_newest_review(model: ScriptedModel, *steps: Any) -> ReviewRun:
    """Execute the newest review as a worker does."""
    model.script(*(steps or (DONE,)))
    return await in_thread(run_review, await in_thread(newest_review))


async def wait_for_review() -> None:
    """Wait until the request that was just sent has created its review."""
    await eventually_async(lambda: in_thread(ReviewRun.objects.exists), within=5)


async def session_of(review: dict[str, Any]) -> Session:
    return await in_thread(Session.objects.select_related("agent").get, pk=review["session_id"])


def messages_sent(model: ScriptedModel, number: int = 0) -> list[tuple[str, str]]:
    """Return the messages of the conversation that the model was sent."""
    return [(message["role"], message["content"]) for message in model.calls[number].messages[:-1]]


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 5)


# ---- Messages and memories -------------------------------------------------------------------------------------------


async def test_messages_become_memories_that_can_be_undone(alice_api: Api, model: ScriptedModel) -> None:
    status, review = await ingest(alice_api)
    assert status == 202
    assert (review["object"], review["state"], review["trigger"]) == ("review", "scheduled", "ingest")
    await run_newest_review(model, adds("Is vegetarian."), DONE)
    assert messages_sent(model) == [("user", "I am a vegetarian."), ("assistant", "Noted.")]
    _, found = await alice_api.get(f"/api/memories?review={review['id']}")
    assert [(row["content"], row["write_origin"]) for row in found["data"]] == [("Is vegetarian.", "background_review")]
    status, undone = await alice_api.post(f"/api/reviews/{review['id']}/undo")
    assert (status, undone["undone"]) == (200, ["1"])


async def test_ingested_messages_can_be_searched_at_once(alice_api: Api) -> None:
    _, review = await ingest(alice_api)
    _, sessions = await alice_api.get("/api/sessions?search=vegetarian")
    assert [row["id"] for row in sessions["data"]] == [review["session_id"]]


async def test_stored_messages_are_confirmed_if_the_database_is_busy_while_they_are_indexed(
    alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(owner_id: UUID) -> Iterator[None]:
        raise DatabaseBusy("The database is busy.")
        yield

    monkeypatch.setattr("reviews.api.ingest.history_index", refuse)
    status, review = await ingest(alice_api)
    assert (status, review["state"]) == (202, "scheduled")


COMMANDS = [
    {"role": "user", "content": "/memory view"},
    {"role": "assistant", "content": "You are given nothing."},
    {"role": "user", "content": [{"type": "text", "text": " /memory clear "}]},
    {"role": "assistant", "content": "Send /memory clear confirm abcd."},
]


async def test_commands_and_their_answers_are_neither_stored_nor_reviewed(alice_api: Api, model: ScriptedModel) -> None:
    about = {"role": "user", "content": "What does /memory view do?"}
    status, review = await ingest(alice_api, [*COMMANDS, *MESSAGES, *COMMANDS, about])
    assert status == 202
    await run_newest_review(model)
    expected = [("user", "I am a vegetarian."), ("assistant", "Noted."), ("user", about["content"])]
    assert messages_sent(model) == expected
    _, messages = await alice_api.get(f"/api/sessions/{review['session_id']}/messages")
    assert [(row["role"], row["content"]) for row in messages["data"]] == expected


async def test_commands_alone_are_refused(alice_api: Api) -> None:
    status, answer = await ingest(alice_api, COMMANDS)
    assert (status, answer["error"]["param"]) == (400, "messages")
    assert "command" in answer["error"]["message"]
    assert not await in_thread(ReviewRun.objects.exists)


async def test_ingested_messages_are_not_a_turn_and_their_session_has_ended(alice_api: Api) -> None:
    _, review = await ingest(alice_api)
    _, session = await alice_api.get(f"/api/sessions/{review['session_id']}")
    assert (session["title"], session["state"], session["turns"]) == ("From messages", "ended", 0)
    assert session["turns_since_memory_review"] == 0
    _, messages = await alice_api.get(f"/api/sessions/{review['session_id']}/messages")
    assert [(row["role"], row["kind"], row["turn_id"]) for row in messages["data"]] == [
        ("user", "history", None),
        ("assistant", "history", None),
    ]


async def test_text_parts_are_read_and_tool_results_only_mentioned(alice_api: Api, model: ScriptedModel) -> None:
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
    await run_newest_review(model)
    assert messages_sent(model) == [
        ("user", "Look at my cat."),
        ("assistant", "[tool result, 22 characters]"),
        ("assistant", "A fine one."),
    ]
    assert not await in_thread(Message.objects.filter(text__contains="jazz").exists)


async def test_another_participant_of_a_group_chat_does_not_speak_for_the_person(
    alice_api: Api, model: ScriptedModel
) -> None:
    told = {"role": "user", "content": "I am a vegetarian.", "name": "user"}
    other = {"role": "user", "content": "The Minster Inn is the best hotel in York.", "name": "researcher"}
    await ingest(alice_api, [told, other])
    await run_newest_review(model, adds("Is vegetarian.", "The Minster Inn is the best hotel in York."), DONE)
    assert [memory.content for memory in await in_thread(lambda: list(Memory.objects.all()))] == ["Is vegetarian."]
    _, proposals = await alice_api.get("/api/proposals?state=waiting")
    assert [row["evidence"]["kind"] for row in proposals["data"]] == ["tool"]


async def test_the_token_limit_of_reviews_applies(alice_api: Api, model: ScriptedModel, settings: Settings) -> None:
    settings.REVIEW_TOKENS = 60
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"Fact number {n}."} for n in range(40)]
    await ingest(alice_api, messages)
    await run_newest_review(model)
    assert messages_sent(model)[-1] == ("assistant", "Fact number 39.")
    assert len(messages_sent(model)) < len(messages)


@pytest.mark.any_database
async def test_writes_wait_for_approval_if_the_agent_requires_it(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(agent_make, memory_review_approval=True)
    _, review = await ingest(alice_api)
    await run_newest_review(model, adds("Is vegetarian."), DONE)
    status, _ = await alice_api.post(f"/api/reviews/{review['id']}/approve")
    assert status == 200
    assert await in_thread(Memory.objects.filter(content="Is vegetarian.").exists)


async def test_deleting_the_session_cancels_its_review(alice_api: Api) -> None:
    _, review = await ingest(alice_api)
    await alice_api.call("DELETE", f"/api/sessions/{review['session_id']}")
    assert (await alice_api.get(f"/api/reviews/{review['id']}"))[1]["state"] == "cancelled"


# ---- Agent and book --------------------------------------------------------------------------------------------------


async def test_the_first_agent_of_the_book_reviews_with_its_model(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(agent_make, "assistant")
    await in_thread(agent_make, "later", book="code")
    await in_thread(agent_make, "coder", book="code", memory_review_model="careful")
    _, review = await ingest(alice_api, book="code")
    assert (await session_of(review)).agent.name == "coder"
    review_run = await run_newest_review(model, adds("Uses tabs."), DONE)
    assert model.calls[0].model == "careful"
    assert await in_thread(Memory.objects.filter(book__name="code", review_id=review_run.pk).exists)


async def test_a_book_without_an_agent_is_a_conflict_with_an_explanation(alice_api: Api) -> None:
    status, refused = await ingest(alice_api, book="diary")
    assert (status, refused["error"]["code"], refused["error"]["param"]) == (409, "conflict", "book")
    assert "No agent uses the book diary" in refused["error"]["message"]
    assert not await in_thread(Session.objects.exists)


@pytest.mark.any_database
async def test_a_limited_key_can_use_only_its_agents_and_their_books(alice: Owner) -> None:
    await in_thread(agent_make, "assistant")
    await in_thread(agent_make, "builder", book="code")
    await in_thread(agent_make, "coder", book="code")
    limited = Api((await in_thread(key_make, alice, agents=["coder"]))[1])
    status, review = await ingest(limited)
    assert (status, (await session_of(review)).agent.name) == (202, "coder")
    assert (await ingest(limited, book="main"))[0] == 404
    other = await in_thread(session_make, alice, await in_thread(Agent.objects.get, name="builder"))
    assert (await ingest(limited, session_id=str(other.pk)))[0] == 404


async def test_each_end_user_of_a_trusted_key_is_a_separate_owner(alice: Owner) -> None:
    trusted = Api((await in_thread(key_make, alice, trusted=True))[1])
    body = {"messages": MESSAGES}
    _, one = await trusted.post(PATH, body, x_daybook_user="one", idempotency_key="k")
    _, two = await trusted.post(PATH, body, x_daybook_user="two", idempotency_key="k")
    owners = {(await session_of(review)).owner_id for review in (one, two)}
    assert len(owners | {alice.pk}) == 3


async def test_a_key_shared_by_several_people_cannot_ingest(alice: Owner) -> None:
    shared = Api((await in_thread(key_make, alice))[1])
    for user in ("one", "two"):
        await shared.raw("GET", "/api/memories", x_openwebui_user_id=user)
    status, _ = await shared.post(PATH, {"messages": MESSAGES}, x_openwebui_user_id="two")
    assert status == 403
    assert not await in_thread(ReviewRun.objects.exists)


# ---- Sessions --------------------------------------------------------------------------------------------------------


async def test_messages_are_added_to_a_session_and_only_new_ones_are_reviewed(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    await in_thread(say, session, "I live in York.", "Nice.")
    status, first = await ingest(alice_api, session_id=str(session.pk))
    assert (status, first["session_id"]) == (202, str(session.pk))
    await run_newest_review(model)
    assert messages_sent(model)[0] == ("user", "I live in York.")
    await ingest(alice_api, [{"role": "user", "content": "I play chess."}], session_id=str(session.pk))
    later = await run_newest_review(model)
    assert (later.first_seq, later.last_seq) == (5, 5)
    await in_thread(session.refresh_from_db)
    assert (session.turns, session.state, session.reviewed_through) == (1, "active", 5)


async def test_a_session_named_by_the_client_can_continue_as_a_chat(alice_api: Api, model: ScriptedModel) -> None:
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


async def test_temporary_and_ended_sessions_accept_no_messages(alice: Owner, alice_api: Api, session: Session) -> None:
    temporary = await in_thread(session_make, alice, session.agent, temporary=True)
    assert (await ingest(alice_api, session_id=str(temporary.pk)))[0] == 400
    await alice_api.post(f"/api/sessions/{session.pk}/end")
    assert (await ingest(alice_api, session_id=str(session.pk)))[0] == 409
    assert not await in_thread(Message.objects.exists)


async def test_a_session_with_a_running_turn_is_a_conflict(
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


async def test_another_owners_session_is_not_found(charlie_api: Api, session: Session) -> None:
    _, review = await ingest(charlie_api, session_id=str(session.pk))
    assert review["session_id"] != str(session.pk)
    assert not await in_thread(Message.objects.filter(session=session).exists)


# ---- Waiting ---------------------------------------------------------------------------------------------------------


async def test_with_wait_the_response_is_the_finished_review(alice_api: Api, model: ScriptedModel) -> None:
    response = asyncio.create_task(ingest(alice_api, wait=True))
    await wait_for_review()
    await run_newest_review(model, adds("Is vegetarian."), DONE)
    status, review = await response
    assert (status, review["state"], review["writes"][0]["after"]) == (200, "saved", "Is vegetarian.")


async def test_waiting_has_a_time_limit(alice_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 0.05)
    status, review = await ingest(alice_api, wait=True)
    assert (status, review["state"]) == (202, "scheduled")


async def test_a_client_that_disconnects_stops_only_the_waiting(alice_api: Api, model: ScriptedModel) -> None:
    response = asyncio.create_task(ingest(alice_api, wait=True))
    await wait_for_review()
    response.cancel()
    with pytest.raises(asyncio.CancelledError):
        await response
    assert (await run_newest_review(model)).state == "nothing_to_save"


async def test_waiting_ends_when_the_server_shuts_down(alice_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the connection is closed and the client never learns which review it was."""
    monkeypatch.setattr("reviews.api.ingest.WAIT_SECONDS", 600)
    response = asyncio.create_task(ingest(alice_api, wait=True))
    await wait_for_review()
    await active.shut_down()
    try:
        async with asyncio.timeout(30):
            status, review = await response
    finally:
        active.reset()
    assert (status, review["state"]) == (202, "scheduled")


# ---- Idempotency -----------------------------------------------------------------------------------------------------


async def test_the_same_idempotency_key_returns_the_same_review(alice_api: Api, model: ScriptedModel) -> None:
    _, first = await ingest(alice_api, key="batch-1")
    status, again = await ingest(alice_api, key="batch-1")
    assert (status, again["id"]) == (202, first["id"])
    await run_newest_review(model)
    status, again = await ingest(alice_api, key="batch-1", wait=True)
    assert (status, again["id"], again["state"]) == (200, first["id"], "nothing_to_save")
    assert await in_thread(Message.objects.count) == 2
    _, other = await ingest(alice_api, key="batch-2")
    assert other["id"] != first["id"]


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": [{"role": "user", "content": "I eat meat."}]},
        {"messages": [{"role": "system", "content": "Offer boots."}, *MESSAGES[1:]]},
        {"book": "code"},
        {"session_id": "kitchen"},
    ],
)
async def test_the_same_idempotency_key_with_another_body_is_a_conflict(
    alice_api: Api, changed: dict[str, Any]
) -> None:
    await ingest(alice_api, key="batch-1")
    status, refused = await ingest(alice_api, **{"messages": MESSAGES, **changed}, key="batch-1")
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert "Idempotency-Key" in refused["error"]["message"]
    assert await in_thread(ReviewRun.objects.count) == 1


async def test_only_one_of_two_concurrent_requests_with_the_same_key_ingests(
    alice_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = await ingest(alice_api, key="batch-1")
    lookups: list[ReviewRun | None] = []

    def find_earlier_late(*args: Any) -> ReviewRun | None:
        lookups.append(_earlier(*args) if lookups else None)
        return lookups[-1]

    monkeypatch.setattr("reviews.ingest._earlier", find_earlier_late)
    status, again = await ingest(alice_api, key="batch-1")
    assert (status, again["id"], len(lookups)) == (202, first["id"], 2)
    assert await in_thread(Message.objects.count) == 2


async def test_idempotency_keys_are_separate_per_owner(alice_api: Api, charlie_api: Api) -> None:
    _, one = await ingest(alice_api, key="batch-1")
    status, two = await ingest(charlie_api, key="batch-1")
    assert (status, two["id"] == one["id"]) == (202, False)


# ---- Limits ----------------------------------------------------------------------------------------------------------


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
        ([*MESSAGES, {"role": "assistant", "content": "x" * 200_001}], 413),
        ([*MESSAGES, *[{"role": "assistant", "content": "x" * 200_000}] * 10], 413),
    ],
)
async def test_invalid_messages_are_refused(alice_api: Api, messages: Any, status: int) -> None:
    actual, refused = await ingest(alice_api, messages)
    assert (actual, refused["error"]["code"]) == (status, {400: "invalid_request", 413: "too_large"}[status])
    assert not await in_thread(Session.objects.exists)


@pytest.mark.parametrize("fields", [{"key": "k" * 256}, {"session_id": "s" * 191}, {"more": 1}])
async def test_invalid_fields_are_refused(alice_api: Api, fields: dict[str, Any]) -> None:
    assert (await ingest(alice_api, **fields))[0] == 400


async def test_a_read_only_key_cannot_ingest(alice: Owner) -> None:
    reader = Api((await in_thread(key_make, alice, read_only=True))[1])
    assert (await ingest(reader))[0] == 403
    assert not await in_thread(ReviewRun.objects.exists)


@pytest.mark.django_db(transaction=True)
async def test_messages_are_prepared_outside_the_transaction(alice_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await in_thread(agent_make)
    in_transaction: list[bool] = []

    def watch(where: str, prepare: Callable[..., Any]) -> None:
        def watched(*args: Any, **kwargs: Any) -> Any:
            in_transaction.append(connection.in_atomic_block)
            return prepare(*args, **kwargs)

        monkeypatch.setattr(where, watched)

    watch("reviews.ingest.message_rows", message_rows)
    watch("gateway.runs.instructions.hashed_instructions", hashed_instructions)
    for _ in range(2):
        assert (await ingest(alice_api, session_id="chat"))[0] == 202
    assert in_transaction == [False] * 4


async def test_repeated_instructions_of_a_session_are_stored_once(alice_api: Api) -> None:
    def sizes() -> list[int]:
        return [len(row.hashes) for row in InstructionHashes.objects.order_by("pk")]

    for _ in range(2):
        await ingest(alice_api, session_id="chat")
    assert len(first := await in_thread(sizes)) == 1
    system = {"role": "system", "content": "You are terse. Offer boots."}
    await ingest(alice_api, [system, *MESSAGES[1:]], session_id="chat")
    assert await in_thread(sizes) == [*first, 4 * len(["its text", "offer", "boot", "its end"])]


async def test_a_session_that_is_replaced_meanwhile_has_all_hashes(alice: Owner, alice_api: Api) -> None:
    caller = caller_make(alice)
    dialogue = MESSAGES[1:]

    def replaced_meanwhile() -> bytes:
        first = review_ingest(caller, ingest_prepare(caller, dialogue, instructions=[PAGE], session_ref="chat"))
        prepared = ingest_prepare(caller, dialogue, instructions=[PAGE], session_ref="chat")
        session_delete(Session.objects.get(pk=first.session_id))
        review_ingest(caller, prepared)
        return bytes(InstructionHashes.objects.get().hashes)

    assert await in_thread(replaced_meanwhile)


@pytest.mark.any_database
@pytest.mark.parametrize(("leading", "rule"), [(True, "evidence_tool"), (False, "evidence_assistant")])
async def test_what_a_system_message_says_is_not_the_persons(
    leading: bool, rule: str, alice_api: Api, model: ScriptedModel
) -> None:
    """Some clients send pages and the results of their tools as system messages."""
    system, asked = {"role": "system", "content": PAGE}, {"role": "user", "content": "Which boots?"}
    messages = [system, asked] if leading else [asked, system]
    await ingest(alice_api, [*messages, {"role": "assistant", "content": PLANTED}])
    review = await run_newest_review(model, adds(PLANTED), DONE)
    assert [(write.state, write.rule) for write in review.writes] == [("waiting", rule)]
