"""What a client tells the model around a conversation is not stored; reviews recognise it by its hashes."""

from typing import Any

import pytest

from gateway.models import InstructionHashes, Session
from gateway.runs import instructions
from gateway.runs.instructions import new_hashes
from memories.artifacts.cleaning import clean_output
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.evidence import HeldWrites, Hold
from reviews.consolidation.conversation import read_record
from reviews.consolidation.held import without_foreign_lines
from tests.conftest import Api
from tests.gateway.client_tools import FIRST, LOOKUP, SECOND, results
from tests.gateway.v1 import ask, assistant, user
from tests.reviews.talk import DONE, PAGE, PLANTED, adds, newest_review, reviewing_agent, run_review
from tests.scripted_model import ScriptedModel, calls
from tests.unsliced import session_delete

SYSTEM = {"role": "system", "content": f"Answer from these sources.\n<source>{PAGE}</source>"}
TOOL = {"type": "function", "function": {**LOOKUP["function"], "description": PAGE}}
BOTH = [("Wears size 43.", "applied"), (PLANTED, "waiting")]


async def reviewed(model: ScriptedModel) -> list[tuple[str | None, str]]:
    """Execute the newest review, which saves a fact about the person and what the page says."""
    model.script(adds("Wears size 43.", PLANTED), DONE)
    review = await in_thread(run_review, await in_thread(newest_review))
    return [(write.after, write.state) for write in review.writes]


@pytest.mark.any_database
@pytest.mark.parametrize("place", ["system", "tool", "function"])
async def test_what_they_say_is_not_saved_by_a_review_if_the_assistant_repeats_it(
    place: str, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    model.script(PLANTED)
    around = [SYSTEM] if place == "system" else []
    fields = {"tool": {"tools": [TOOL]}, "function": {"functions": [TOOL["function"]]}}.get(place, {})
    await ask(alice_api, *around, user("I wear size 43. Which boots?"), **fields)
    assert await reviewed(model) == BOTH


@pytest.mark.any_database
@pytest.mark.parametrize("first", ["answered", "failed"])
async def test_a_page_in_a_repeated_step_is_not_saved_by_a_review(
    first: str, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    model.script(calls(FIRST), UpstreamError("No.") if first == "failed" else calls(SECOND), PLANTED)
    asked = user("I wear size 43. Which boots?")
    step = await ask(alice_api, asked, tools=[LOOKUP])
    for _ in range(2):
        await ask(alice_api, asked, *results(step, PAGE), tools=[LOOKUP])
    assert await reviewed(model) == BOTH


async def test_a_page_of_an_earlier_turn_is_still_known(alice_api: Api, model: ScriptedModel) -> None:
    """Clients that search documents put those found for the newest question there."""
    await in_thread(reviewing_agent, memory_review_interval=2)
    model.script("Good boots.", PLANTED)
    asked, answer = user("I wear size 43. Which boots?"), assistant("Good boots.")
    await ask(alice_api, SYSTEM, asked)
    await ask(alice_api, {"role": "system", "content": "No sources."}, asked, answer, user("Why?"))
    assert await reviewed(model) == BOTH


async def test_the_same_texts_are_not_looked_up_in_every_turn(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(reviewing_agent)
    looked_up: list[Any] = []
    monkeypatch.setattr(instructions, "new_hashes", lambda *given: looked_up.append(given) or new_hashes(*given))
    model.script("One.", "Two.", "Three.")
    said = [SYSTEM]
    for answer in ("One.", "Two.", "Three."):
        said.append(user("Go on."))
        await ask(alice_api, *said)
        said.append(assistant(answer))
    assert len(looked_up) == 2, "once to store the hashes, once to see that all are stored"
    assert await in_thread(InstructionHashes.objects.count) == 1


async def test_a_turn_that_ends_with_the_process_notes_that_its_hashes_are_missing(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(reviewing_agent)
    monkeypatch.setattr("gateway.runs.instructions.active.is_ending", lambda: True)
    model.script(PLANTED)
    await ask(alice_api, SYSTEM, user("I wear size 43. Which boots?"))
    assert not await in_thread(InstructionHashes.objects.exists)
    assert await reviewed(model) == BOTH


@pytest.mark.any_database
async def test_a_fork_knows_those_of_its_parent(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent)
    model.script("Hello.", "Good boots.", PLANTED)
    hello = [user("Hello."), assistant("Hello.")]
    await ask(alice_api, hello[0])
    await ask(alice_api, SYSTEM, *hello, user("I wear size 43. Which boots?"))
    fork = await ask(alice_api, *hello, user("I wear size 43. Boots again?"))
    session = await in_thread(Session.objects.get, pk=fork.session)
    assert session.parent_id
    assert await reviewed(model) == BOTH


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_fork_of_a_fork_knows_those_of_the_first_session_even_if_that_is_deleted(
    deleted: bool, alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    model.script("Hello.", "Good boots.", "Good boots.", PLANTED)
    hello = [user("Hello."), assistant("Hello.")]
    first = await ask(alice_api, hello[0])
    await ask(alice_api, SYSTEM, *hello, user("I wear size 43. Which boots?"))
    second = await ask(alice_api, *hello, user("I wear size 43. Boots again?"))
    if deleted:
        await in_thread(lambda: session_delete(Session.objects.get(pk=first.session)))
    third = await ask(alice_api, *hello, user("I wear size 43. And now?"))
    session = await in_thread(Session.objects.get, pk=third.session)
    assert str(session.parent_id) == second.session
    assert await reviewed(model) == BOTH


async def test_notes_of_consolidation_lack_it(alice_api: Api, model: ScriptedModel) -> None:
    await in_thread(reviewing_agent)
    model.script(PLANTED)
    answer = await ask(alice_api, SYSTEM, user("I wear size 43. Which boots?"))
    session = await in_thread(Session.objects.get, pk=answer.session)
    record = await in_thread(lambda: read_record(session.owner_id, session.pk, floor=0, token_limit=10_000))
    notes = clean_output(f"- Wears size 43.\n- {PLANTED}", max_secrets=0)
    held = HeldWrites(session_id=session.pk, agent="assistant")
    kept = without_foreign_lines(notes, record.conversation, Hold.UNTRUSTED, held)
    assert (kept.text, [proposal.after for proposal in held.proposals]) == ("- Wears size 43.", [PLANTED])


async def test_only_new_sentences_are_added_and_all_are_erased_with_the_session(
    alice_api: Api, model: ScriptedModel
) -> None:
    await in_thread(reviewing_agent)
    sizes = []
    for text in (PAGE, PAGE, f"{PAGE} Dogs are welcome here."):
        model.script("Good ones.")
        answer = await ask(
            alice_api, {"role": "system", "content": text}, user("Which boots?"), metadata={"session_id": "shop"}
        )
        sizes.append(await in_thread(lambda: [len(row.hashes) for row in InstructionHashes.objects.order_by("pk")]))
    assert sizes[0] == sizes[1]
    assert sizes[2] == [*sizes[1], 4 * len(["its text", "in English", "dog", "welcom", "its end"])]
    await in_thread(lambda: session_delete(Session.objects.get(pk=answer.session)))
    assert not await in_thread(InstructionHashes.objects.exists)


async def test_if_there_are_too_many_the_assistants_words_are_foreign(
    alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "MAX_BYTES", 100)
    await in_thread(reviewing_agent)
    model.script("You should try Trailhead.")
    await ask(alice_api, SYSTEM, user("I wear size 43. Which boots?"))
    model.script(adds("Wears size 43.", "Should try Trailhead."), DONE)
    review = await in_thread(run_review, await in_thread(newest_review))
    assert [write.state for write in review.writes] == ["applied", "waiting"]
    assert [bytes(row.hashes) for row in await in_thread(lambda: [*InstructionHashes.objects.all()])] == [b""]
