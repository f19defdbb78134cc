"""A review's writes that rest on foreign text wait for a person, while the others are saved."""

import json
from datetime import timedelta
from unittest.mock import Mock

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from gateway.models import Message, Run
from memories.api.export import export_lines
from memories.database.access import in_thread
from memories.errors import NotFound
from memories.models import AuditEntry, Memory, Owner
from reviews.models import ReviewRun
from reviews.sweep import reviews_sweep
from tests.conftest import Api
from tests.gateway.v1 import ask
from tests.reviews.talk import (
    DONE,
    PAGE,
    PLANTED,
    adds,
    contents,
    newest_review,
    review_by,
    reviewed_session,
    reviewing_agent,
    run_review,
    say,
    updates,
)
from tests.scripted_model import ScriptedModel, calls
from tests.unsliced import import_text, session_delete


def review_of_page(alice: Owner, model: ScriptedModel, **settings: object) -> ReviewRun:
    """Execute a review that saves one fact about the person and one that a web page planted."""
    session = reviewed_session(alice, **settings)
    step = {"role": "assistant", "content": None, "tool_calls": [_CALL]}
    say(session, "I wear size 43. Which boots?", steps=[step, {"role": "tool", "tool_call_id": "c1", "content": PAGE}])
    model.script(adds("Wears size 43.", PLANTED), DONE)
    return run_review(newest_review())


_CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}


def test_a_write_from_a_page_waits_and_the_rest_is_saved(alice: Owner, model: ScriptedModel) -> None:
    review = review_of_page(alice, model)
    assert (review.state, [write.state for write in review.writes]) == ("awaiting_approval", ["applied", "waiting"])
    assert [write.evidence.kind for write in review.writes] == ["own_words", "tool"]
    assert review.writes[1].rule == "evidence_tool"
    assert contents() == ["Wears size 43."]
    assert Memory.objects.get().evidence_quote == "I wear size 43."


@pytest.mark.any_database
def test_a_page_that_an_earlier_review_read_is_still_foreign(alice: Owner, model: ScriptedModel) -> None:
    """The assistant repeats it later, when neither the new messages nor those before them contain the page."""
    session = reviewed_session(alice, memory_review_interval=3)
    step = {"role": "assistant", "content": None, "tool_calls": [_CALL]}
    say(session, "Which boots?", steps=[step, {"role": "tool", "tool_call_id": "c1", "content": PAGE}])
    say(session, "Thanks.")
    say(session, "It rains again.")
    model.script(DONE)
    run_review(newest_review())
    say(session, "What was that about boots? I hike in Tyrol.", PLANTED)
    say(session, "Thanks.")
    say(session, "Good night.")
    model.script(adds(PLANTED, "Hikes in Tyrol."), DONE)
    review = run_review(newest_review())
    assert [(write.state, write.rule) for write in review.writes] == [
        ("waiting", "evidence_assistant"),
        ("applied", ""),
    ]


def test_words_of_a_page_that_are_added_a_few_at_a_time_wait(alice: Owner, model: ScriptedModel) -> None:
    own = "I wear shoes of size 43, walk to work, hate laces, repair my soles and hike in Tyrol in summer."
    session = reviewed_session(alice)
    step = {"role": "assistant", "content": None, "tool_calls": [_CALL]}
    say(session, own, steps=[step, {"role": "tool", "tool_call_id": "c1", "content": PAGE}])
    model.script(
        adds(own),
        updates("new1", f"{own[:-1]}, Trailhead boots."),
        updates("new1", f"{own[:-1]}, Trailhead boots, question answered."),
        DONE,
    )
    review = run_review(newest_review())
    assert [write.state for write in review.writes] == ["applied", "applied", "waiting"]


@pytest.mark.parametrize("source", ["picture", "web search"])
def test_what_only_the_model_has_read_waits(alice: Owner, model: ScriptedModel, source: str) -> None:
    session = reviewed_session(alice)
    run = say(session, "What is on this photo? I live in Graz.", "You own a monstera.")
    if source == "picture":
        picture = {"type": "image_url", "image_url": {"url": "https://photos.example/1.png"}}
        Message.objects.filter(run=run, role="user").update(parts=[picture])
    else:
        Run.objects.filter(pk=run.pk).update(trace={"searched": True})
    model.script(adds("Owns a monstera.", "Lives in Graz."), DONE)
    review = run_review(newest_review())
    assert [(write.state, write.rule) for write in review.writes] == [
        ("waiting", "evidence_assistant"),
        ("applied", ""),
    ]


def test_a_write_from_another_sessions_answer_waits(alice: Owner, model: ScriptedModel) -> None:
    """A client may send a model's answer as a user message, as aider's architect does with its editor."""
    plan = "I would rename the folder to bergen, since I live in Bergen. Then I add a test for each name."
    say(reviewed_session(alice), "Find a better name for the folder", plan)
    review = review_by(model, alice, adds("Lives in Bergen."), said=plan)
    assert [(write.state, write.rule) for write in review.writes] == [("waiting", "evidence_pasted")]


def test_nothing_is_held_if_the_agent_turns_it_off(alice: Owner, model: ScriptedModel) -> None:
    assert review_of_page(alice, model, memory_hold="off").state == "saved"
    assert contents() == ["Wears size 43.", PLANTED]


def test_a_quote_that_is_not_found_is_reported_to_the_model(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    say(session, "I wear size 43.")
    wrong, right = ({"content": "Wears size 43.", "evidence": quote} for quote in ("size 44", "I wear size 43"))
    model.script(*(calls(("add_memory", json.dumps(arguments))) for arguments in (wrong, right)), DONE)
    review = run_review(newest_review())
    assert [write.state for write in review.writes] == ["refused", "applied"]
    assert "evidence_not_found" in str(model.calls[1].messages[-1]["content"])


def test_an_update_of_a_waiting_memory_waits_too(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice)
    say(session, f"I wear size 43. What does this page say?\n\n{PAGE}")
    model.script(adds(PLANTED), updates("new1", "Wears size 43."), DONE)
    review = run_review(newest_review())
    assert [write.state for write in review.writes] == ["waiting", "waiting"]
    assert contents() == []


async def test_proposals_are_listed_decided_and_audited(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    review = await in_thread(review_of_page, alice, model)
    _, found = await alice_api.get("/api/proposals")
    (proposal,) = found["data"]
    assert (proposal["id"], proposal["source"], proposal["state"]) == (f"{review.pk}-1", "review", "waiting")
    assert (found["has_more"], found["last_id"]) == (False, proposal["id"])
    assert proposal["expires_at"]
    status, rejected = await alice_api.post(f"/api/proposals/{proposal['id']}/reject")
    assert (status, rejected["state"], rejected["expires_at"]) == (200, "rejected", None)
    assert (await alice_api.post(f"/api/proposals/{proposal['id']}/reject"))[0] == 409
    _, approved = await alice_api.post(f"/api/proposals/{proposal['id']}/approve")
    assert approved["state"] == "approved"
    assert await in_thread(contents) == ["Wears size 43.", PLANTED]
    entries = AuditEntry.objects.filter(kind="review run").order_by("at").values_list("note", flat=True)
    notes = await in_thread(list, entries)
    assert notes == ["Rejected write 1.", "Approved write 1."]
    for state, number in (("approved", 1), ("waiting", 0), ("rejected", 0), ("expired", 0)):
        _, found = await alice_api.get(f"/api/proposals?state={state}")
        assert len(found["data"]) == number
    assert (await alice_api.get("/api/proposals?state=lost"))[0] == 400
    for unknown in (f"{review.pk}-0", f"{review.pk}-7", f"{review.pk}", "x-1", "-"):
        assert (await alice_api.get(f"/api/proposals/{unknown}"))[0] == 404


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("path", ["/api/proposals/{}-1/", "/api/reviews/{}/"])
async def test_nothing_is_decided_without_an_audit_entry(
    path: str, verb: str, alice: Owner, alice_api: Api, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = await in_thread(review_of_page, alice, model)
    monkeypatch.setattr("reviews.api.reviews.audit_record_own", Mock(side_effect=NotFound("There is no such owner.")))
    assert (await alice_api.post(path.format(review.pk) + verb))[0] == 404
    await in_thread(review.refresh_from_db)
    assert review.writes[1].state == "waiting"


@pytest.mark.any_database
async def test_proposals_are_paginated(alice: Owner, alice_api: Api, model: ScriptedModel) -> None:
    def make() -> None:
        for pet in ("cat", "dog"):
            session = reviewed_session(alice, memory_review_approval=True)
            say(session)
            model.script(adds(f"Has a {pet}.", f"Walks the {pet}.", f"Feeds the {pet}."), DONE)
            run_review(newest_review())

    await in_thread(make)
    seen, after = [], ""
    for more in (True, True, False):
        _, page = await alice_api.get(f"/api/proposals?limit=2{after}")
        seen += [proposal["id"] for proposal in page["data"]]
        after = f"&after={page['last_id']}"
        assert page["has_more"] is more
    assert len(set(seen)) == 6
    assert (await alice_api.get("/api/proposals?after=x"))[0] == 400


@pytest.mark.any_database
def test_waiting_writes_expire_and_lose_their_evidence_with_the_session(alice: Owner, model: ScriptedModel) -> None:
    review = review_of_page(alice, model)
    with time_machine.travel(timezone.now() + timedelta(days=settings.APPROVAL_DAYS, minutes=1)):
        reviews_sweep()
    review.refresh_from_db()
    assert [write.state for write in review.writes] == ["applied", "expired"]
    assert review.session is not None
    session_delete(review.session)
    review.refresh_from_db()
    assert all(write.evidence.quote == "" and write.evidence.session_id is None for write in review.writes)


def test_the_export_includes_the_evidence_of_memories(alice: Owner, model: ScriptedModel) -> None:
    review_of_page(alice, model)
    lines = [json.loads(line) for line in export_lines(alice.pk)]
    quotes = [line["evidence"]["quote"] for line in lines if line["type"] in {"memory", "revision"}]
    assert quotes == ["I wear size 43.", "I wear size 43."]


def test_an_import_keeps_evidence_without_its_session(alice: Owner, charlie: Owner, model: ScriptedModel) -> None:
    review_of_page(alice, model)
    import_text(charlie.pk, "".join(export_lines(alice.pk)), actor="user:2")
    evidence = Memory.objects.get(owner=charlie).evidence
    assert (evidence.kind, evidence.quote, evidence.session_id) == ("own_words", "I wear size 43.", None)


async def test_what_a_system_message_within_the_conversation_says_is_not_saved_by_a_review(
    alice_api: Api, model: ScriptedModel
) -> None:
    """Such a message is not stored, but the assistant's answer may repeat it."""
    await in_thread(reviewing_agent)
    model.script(PLANTED, adds("Wears size 43.", PLANTED), DONE)
    user, late = {"role": "user", "content": "I wear size 43."}, {"role": "system", "content": PAGE}
    await ask(alice_api, user, late, {"role": "user", "content": "Which boots?"})
    review = await in_thread(run_review, await in_thread(newest_review))
    assert [(write.after, write.state) for write in review.writes] == [
        ("Wears size 43.", "applied"),
        (PLANTED, "waiting"),
    ]
