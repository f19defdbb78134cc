"""The short-term lane quotes messages of the session that are missing in the request"""

import re
from typing import Any

import pytest

from gateway.models import Agent, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner, ThreadRecord
from memories.recall.snapshot import snapshots
from memories.recall.threads import thread_cache, thread_reader
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.gateway.client_tools import FIRST, LOOKUP, USER, results
from tests.gateway.v1 import ask, assistant, user
from tests.scripted_model import Says, ScriptedModel, says

SEARCH = ("search_memories", '{"query": "door"}')
STATEMENT = "The gate code is written on the blue door of the shed."
QUESTION = "What was written on the blue door?"
NAMED = {"x_daybook_session": "door"}


def quoted(model: ScriptedModel) -> list[tuple[int, str]]:
    """Return (turn number, text) of each snippet in the last model call."""
    found = re.findall(r'<snippet turn="(\d+)">([^<]*)</snippet>', str(model.calls[-1].messages))
    return [(int(turn), text) for turn, text in found]


# ---- messages still in the request -----------------------------------------------------------------------------------


async def test_a_native_turn_with_text_before_a_tool_call_is_not_quoted(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script(Says(pieces=("Let me look at the blue door.",), calls=(SEARCH,)), "The blue door, noted.", "Blue.")
    await alice_api.post(path, {"content": STATEMENT})
    await alice_api.post(path, {"content": QUESTION})
    assert quoted(model) == []


@pytest.mark.parametrize("cached", [True, False])
async def test_a_v1_turn_with_our_tools_is_not_quoted(
    alice_api: Api, agent: Agent, model: ScriptedModel, cached: bool
) -> None:
    model.script(Says(pieces=("Let me look at the blue door.",), calls=(SEARCH,)), "The blue door, noted.", "Blue.")
    first = await ask(alice_api, STATEMENT)
    assert first.text == "Let me look at the blue door.\n\nThe blue door, noted."
    if not cached:
        thread_cache.clear()
    await ask(alice_api, STATEMENT, first.text, QUESTION)
    assert quoted(model) == []


@pytest.mark.any_database
@pytest.mark.parametrize("resent", ["as it came", "joined", "only the answer"])
async def test_a_client_tool_loop_is_not_quoted_however_it_is_resent(
    alice_api: Api, agent: Agent, model: ScriptedModel, resent: str
) -> None:
    model.script(Says(pieces=("I look it up.",), calls=(FIRST,)), "It is on the blue door.", "Blue.", "Blue.")
    first = await ask(alice_api, USER, tools=[LOOKUP])
    tail = results(first, "A")
    await ask(alice_api, USER, *tail, tools=[LOOKUP])
    said: dict[str, list[Any]] = {
        "as it came": [*tail, assistant("It is on the blue door.")],
        "joined": [assistant("I look it up. It is on the blue door.")],
        "only the answer": [assistant("It is on the blue door.")],
    }
    question = user("What did you look up, what is on the blue door?")
    await ask(alice_api, USER, *said[resent], question, headers={"x_daybook_session": first.session})
    assert quoted(model) == []
    thread_cache.clear()  # the same when the record is read from the database
    await ask(alice_api, USER, *said[resent], question, headers={"x_daybook_session": first.session})
    assert quoted(model) == []


async def test_only_the_missing_message_of_a_turn_is_quoted(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("I wrote down: the blue door has the code.", "Blue.", "Blue.")
    await ask(alice_api, STATEMENT, headers=NAMED)
    await ask(alice_api, STATEMENT, "(answer removed)", QUESTION, headers=NAMED)
    assert quoted(model) == [(1, "I wrote down: the blue door has the code.")]
    await ask(alice_api, "(removed)", "I wrote down: the blue door has the code.", QUESTION, headers=NAMED)
    assert STATEMENT in [text for _, text in quoted(model)]
    assert "I wrote down" not in str(quoted(model))


async def test_identical_text_in_another_turn_does_not_hide_a_turn(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Noted.", "Noted.", "Blue.")
    await ask(alice_api, STATEMENT, headers=NAMED)
    await ask(alice_api, "Lunch is at noon.", headers=NAMED)
    await ask(alice_api, "Lunch is at noon.", "Noted.", QUESTION, headers=NAMED)
    assert quoted(model) == [(1, STATEMENT)]


# ---- a message without content words ---------------------------------------------------------------------------------


@pytest.mark.any_database
@pytest.mark.parametrize("content", ["ok", "go on", "👍"])
async def test_without_content_words_the_newest_turns_are_quoted(
    alice_api: Api, agent: Agent, model: ScriptedModel, content: str
) -> None:
    model.script(*[f"Answer {number}." for number in range(4)])
    for number in range(3):
        await ask(alice_api, f"Chapter {number} of the story, please.", headers=NAMED)
    await ask(alice_api, content, headers=NAMED)
    assert [turn for turn, _ in quoted(model)] == [3, 3, 2, 2, 1, 1]
    assert quoted(model)[:2] == [(3, "Chapter 2 of the story, please."), (3, "Answer 2.")]


@pytest.mark.any_database
async def test_the_newest_turns_are_kept_when_space_runs_out(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(*["Fine."] * 13)
    for number in range(12):
        await ask(alice_api, f"Chapter {number}. " + "word " * 120, headers=NAMED)
    await ask(alice_api, "ok", headers=NAMED)
    turns = [turn for turn, _ in quoted(model)]
    assert turns[0] == 12
    assert 1 not in turns


# ---- the cached record -----------------------------------------------------------------------------------------------


async def cached_words(alice: Owner, session: Session) -> list[str]:
    """Return the user messages of the cached record, which equals what is read from the database."""
    cached = thread_cache.peek(session.pk)
    assert cached is not None
    assert cached.turns == tuple(await in_thread(thread_reader(), alice.pk, session.pk))
    return [turn.user for turn in cached.turns]


@pytest.mark.any_database
async def test_the_cache_equals_the_database(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3", "II", "III", "I")
    ids = [(await alice_api.post(path, {"content": text}))[1]["id"] for text in ("one", "two", "three")]
    assert await cached_words(alice, session) == ["one", "two", "three"]
    await alice_api.post(path, {"content": "zwei", "replaces": ids[1]})
    await alice_api.post(path, {"content": "drei"})
    assert await cached_words(alice, session) == ["one", "zwei", "drei"]
    await alice_api.post(path, {"content": "eins", "replaces": ids[0]})
    assert await cached_words(alice, session) == ["eins"]


async def test_records_of_another_process_are_included(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", "3")
    await alice_api.post(path, {"content": "one"})
    thread_cache.clear()  # as in another process
    await alice_api.post(path, {"content": "two"})
    await alice_api.post(path, {"content": "three"})
    assert await cached_words(alice, session) == ["one", "two", "three"]


@pytest.mark.any_database
async def test_a_session_whose_last_turn_was_replaced_is_read_once(
    alice_api: Api, alice: Owner, session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/api/sessions/{session.pk}/turns"
    model.script("1", "2", UpstreamError("down"), UpstreamError("down"), UpstreamError("down"), "II", "III")
    await alice_api.post(path, {"content": "one"})
    second = (await alice_api.post(path, {"content": "two"}))[1]["id"]
    status, _ = await alice_api.post(path, {"content": "zwei", "replaces": second})
    assert status == 502
    thread_cache.clear()  # as in another process: the newest record is of a superseded run
    reads: list[int] = []
    read = thread_cache.read
    monkeypatch.setattr(type(thread_cache), "read", lambda self, *args: reads.append(1) or read(*args))
    for content in ("drei", "drei", "zwei", "three"):
        await alice_api.post(path, {"content": content})
    assert len(reads) == 1
    monkeypatch.undo()
    assert await cached_words(alice, session) == ["one", "zwei", "three"]


async def test_a_superseded_turn_in_the_cache_is_not_quoted(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Noted.", "Noted again.", UpstreamError("down"), "Blue.")
    await ask(alice_api, "Good morning.", headers=NAMED)
    await ask(alice_api, "The code is on the red door.", headers=NAMED)
    run = await in_thread(Run.objects.latest, "id")
    path = f"/api/sessions/{run.session_id}/turns"
    await alice_api.post(path, {"content": "The code is on the blue door.", "replaces": str(run.pk)})
    await ask(alice_api, "Which door has the code?", headers=NAMED)
    assert "red door" not in str(model.calls[-1].messages)


# ---- a turn across a compaction --------------------------------------------------------------------------------------


async def test_a_compacted_turn_is_quoted_and_the_summary_sent_once(
    alice_api: Api, alice: Owner, model: ScriptedModel
) -> None:
    agent = await in_thread(agent_make, "long", context_token_limit=2000, tools=[{"type": "memory"}])
    session = await in_thread(session_make, alice, agent)
    path, filler = f"/api/sessions/{session.pk}/turns", "word " * 300
    model.script(Says(pieces=("I look at the shed.",), calls=(SEARCH,)), says("Noted: the blue door."))
    await alice_api.post(path, {"content": STATEMENT})
    model.script("A.", "B.", f"C {filler}", "They spoke of a shed.", "Blue.", "Still blue.")
    for letter in "ABC":
        await alice_api.post(path, {"content": f"{letter} {filler}"})
    status, turn = await alice_api.post(path, {"content": QUESTION})
    assert (status, turn["content"]) == (200, "Blue.")
    sent = model.calls[-1].messages
    assert str(sent).count("<earlier_conversation>") == str(sent).count("They spoke of a shed.") == 1
    assert (1, STATEMENT) in quoted(model)
    shown = [message["content"] for message in sent if message["role"] == "user"]
    assert STATEMENT not in shown
    assert {turn for turn, _ in quoted(model)}.isdisjoint(range(5 - len(shown), 5))

    cached = thread_cache.peek(session.pk)
    assert cached is not None
    records = await in_thread(lambda: list(ThreadRecord.objects.order_by("id").values_list("pk", flat=True)))
    assert [known.record_id for known in cached.turns] == records
    assert cached.newest == records[-1]
    assert cached.turns == await in_thread(thread_cache.read, alice.pk, session.pk, cached.newest)

    snapshots.clear()
    await alice_api.post(path, {"content": "And what is it that stood on the blue door?"})
    sent = model.calls[-1].messages
    assert str(sent).count("<earlier_conversation>") == 1
    assert (1, STATEMENT) in quoted(model)
    assert await in_thread(lambda: Session.objects.get(pk=session.pk).compaction_epoch) == 1
