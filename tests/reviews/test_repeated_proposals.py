"""A repeated proposal is not made again: it is joined to the waiting one, or remains rejected."""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.models import Agent, Session
from memories.database.access import in_thread
from memories.evidence import HeldWrites, Proposal, proposal_store
from memories.models import Book, Evidence, EvidenceKind, Memory, Notification, Owner
from memories.services import book_get_or_create
from reviews.approvals import review_approve, review_reject
from reviews.consolidation.held import held_keep
from reviews.models import ReviewRun
from tests.conftest import Api
from tests.factories import memory_make, session_make
from tests.gateway.v1 import ask
from tests.reviews.talk import (
    DONE,
    PAGE,
    PLANTED,
    adds,
    newest_review,
    review_by,
    reviewed_session,
    run_review,
    say,
    updates,
)
from tests.scripted_model import Says, ScriptedModel, calls
from tests.unsliced import session_delete

PASTED = f"Summarise this: {PAGE} {PAGE}"


def add(content: str = PLANTED) -> Says:
    return calls(("add_memory", json.dumps({"content": content, "target": "user"})))


def last_tool_result(model: ScriptedModel) -> dict[str, Any]:
    """Return the result of the model's tool call in the last request."""
    results = [json.loads(m["content"]) for m in model.calls[-1].messages if m["role"] == "tool"]
    (result,) = (result for result in results if isinstance(result, dict))
    return dict(result)


def waiting_reviews() -> list[ReviewRun]:
    return list(ReviewRun.objects.filter(state="awaiting_approval").order_by("id"))


@pytest.fixture
def book(alice: Owner, agent: Agent) -> Book:
    return book_get_or_create(alice.pk, "main")


def hold(book: Book, session: Session | None, content: str = PLANTED, **fields: Any) -> dict[str, Any]:
    """Store one held write, as a turn or an app does. Return the proposals that it was joined to."""
    step = HeldWrites(session_id=session.pk if session else None, agent="assistant")
    values: dict[str, Any] = {"quote": "the shop that fits best", **fields}
    evidence = Evidence(kind=EvidenceKind.PASTED, session_id=step.session_id, **values)
    step.add(
        Proposal(
            action="add", target="user", category="fact", keywords=[], after=content, evidence=evidence,
            rule="evidence_pasted", reason="This comes from text that you pasted.",
        )
    )  # fmt: skip
    return dict(proposal_store().keep(book, step))


async def test_a_turn_that_repeats_a_write_makes_no_second_proposal(
    alice_api: Api, agent: Agent, model: ScriptedModel
) -> None:
    model.script(add(), "Done.", add(f"  {PLANTED.upper()}"), "Done.")
    await ask(alice_api, PASTED)
    first = last_tool_result(model)
    await ask(alice_api, f"Summarise this, please: {PAGE} {PAGE} {PAGE}")
    second = last_tool_result(model)
    assert (first["error"], second["error"]) == ("held", "held")
    assert second["proposal_id"] == first["proposal_id"]
    _, found = await alice_api.get("/api/proposals")
    assert [(p["id"], p["times"]) for p in found["data"]] == [(first["proposal_id"], 2)]
    newest = await in_thread(Session.objects.latest, "created_at")
    assert found["data"][0]["evidence"]["session_id"] == str(newest.pk)
    notices = Notification.objects.filter(kind="review.awaiting_approval")
    assert await in_thread(notices.count) == 1
    await alice_api.post(f"/api/proposals/{first['proposal_id']}/approve")
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 1


async def test_two_writes_of_one_step_are_two_proposals(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    other = "The shop Trailhead fits best of all makes of boots."
    arguments = [("add_memory", json.dumps({"content": text, "target": "user"})) for text in (PLANTED, other)]
    model.script(calls(*arguments), "Done.", add(other), "Done.")
    await ask(alice_api, PASTED)
    await ask(alice_api, PASTED + " Thanks.")
    _, found = await alice_api.get("/api/proposals")
    assert sorted((p["after"], p["times"]) for p in found["data"]) == [(PLANTED, 1), (other, 2)]
    assert last_tool_result(model)["proposal_id"] in {p["id"] for p in found["data"] if p["after"] == other}


@pytest.mark.any_database
def test_a_review_joins_waiting_proposals_and_saves_the_rest(alice: Owner, model: ScriptedModel) -> None:
    for _ in range(2):
        session = reviewed_session(alice)
        say(session, f"I wear size 43. {PASTED}")
        model.script(adds("Wears size 43.", PLANTED), DONE)
        review = run_review(newest_review())
    assert (review.state, [write.state for write in review.writes]) == ("nothing_to_save", ["joined"])
    assert (review.writes[0].after, review.proposals) == (None, 0)
    (first,) = waiting_reviews()
    assert first.pk != review.pk
    assert [(write.state, write.times) for write in first.writes] == [("applied", 0), ("waiting", 1)]
    assert first.writes[1].evidence.session_id == review.session_id


def test_reviews_with_approval_join_waiting_proposals_too(alice: Owner, model: ScriptedModel) -> None:
    for _ in range(2):
        review_by(model, alice, adds("Is vegetarian."), memory_review_approval=True)
    assert [[(w.after, w.times) for w in run.writes] for run in waiting_reviews()] == [[("Is vegetarian.", 1)]]


@pytest.mark.any_database
def test_a_write_that_later_writes_depend_on_is_not_joined(alice: Owner, model: ScriptedModel) -> None:
    for steps in ([adds(PLANTED)], [adds(PLANTED), updates("new1", f"{PLANTED} It is in York.")]):
        review_by(model, alice, *steps, said=PASTED)
    second = waiting_reviews()[1]
    assert [write.state for write in second.writes] == ["waiting", "waiting"]
    review_approve(second, actor="user:1")
    assert Memory.objects.get(deleted_at=None).content == f"{PLANTED} It is in York."


def test_proposals_of_apps_and_sessions_are_joined(alice: Owner, agent: Agent, book: Book) -> None:
    hold(book, session_make(alice, agent))
    (joined,) = hold(book, None).values()
    (first,) = waiting_reviews()
    assert (joined.id, joined.rejected) == (f"{first.pk}-0", False)
    assert first.writes[0].times == 1


def test_proposals_of_other_books_owners_and_actions_are_not_joined(
    alice: Owner, charlie: Owner, agent: Agent, book: Book
) -> None:
    session = session_make(alice, agent)
    hold(book, session)
    assert hold(book_get_or_create(alice.pk, "other"), session) == {}
    assert hold(book_get_or_create(charlie.pk, "main"), None) == {}
    memory_make(alice, "Likes boots.")
    step = HeldWrites(session_id=session.pk, agent="assistant")
    values: dict[str, Any] = {"target": "user", "category": "fact", "keywords": [], "after": PLANTED}
    step.add(
        Proposal(action="update", number=1, version=1, before="x", evidence=Evidence(), rule="r", reason="r", **values)
    )
    assert proposal_store().keep(book, step) == {}
    assert len(waiting_reviews()) == 4


def test_a_rejected_proposal_is_not_repeated_from_the_same_source(alice: Owner, agent: Agent, book: Book) -> None:
    session = session_make(alice, agent)
    hold(book, session)
    review_reject(waiting_reviews()[0], actor="user:1")
    for source, quote in (
        (session, "other words of that page"),
        (session_make(alice, agent), "The shop that FITS best"),
    ):
        (joined,) = hold(book, source, quote=quote).values()
        assert joined.rejected
    assert waiting_reviews() == []
    assert hold(book, session_make(alice, agent), quote="Another page says so") == {}
    assert len(waiting_reviews()) == 1


def test_a_proposal_rejected_long_ago_is_made_again(alice: Owner, agent: Agent, book: Book) -> None:
    session = session_make(alice, agent)
    hold(book, session)
    review_reject(waiting_reviews()[0], actor="user:1")
    with time_machine.travel(timezone.now() + timedelta(days=settings.APPROVAL_DAYS, minutes=1)):
        assert hold(book, session) == {}
        assert len(waiting_reviews()) == 1


@pytest.mark.any_database
async def test_the_model_learns_that_a_proposal_was_rejected(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script(add(), "Done.", add(), "Done.")
    path = f"/api/sessions/{session.pk}/turns"
    await alice_api.post(path, {"content": PASTED})
    first = last_tool_result(model)
    await alice_api.post(f"/api/proposals/{first['proposal_id']}/reject")
    await alice_api.post(path, {"content": "Remember what it says."})
    results = [json.loads(m["content"]) for m in model.calls[-1].messages if m["role"] == "tool"]
    assert results[-1]["proposal_id"] == first["proposal_id"]
    assert "did not want it" in results[-1]["message"]
    assert await in_thread(waiting_reviews) == []


def test_repeated_notes_of_a_session_are_counted(alice: Owner, agent: Agent, book: Book) -> None:
    session = session_make(alice, agent)
    values: dict[str, Any] = {"target": "memory", "category": "note", "keywords": [], "after": PLANTED}
    evidence = Evidence(kind=EvidenceKind.PASTED, quote="the shop")
    for _ in range(2):
        step = HeldWrites(session_id=session.pk, agent="assistant")
        step.add(Proposal(action="add", evidence=evidence, rule="evidence_pasted", reason="Pasted.", **values))
        held_keep(book, step)
    (run,) = waiting_reviews()
    assert (run.trigger, run.writes[0].times) == ("notes", 1)
    review_approve(run, actor="user:1")
    again = HeldWrites(session_id=session.pk, agent="assistant")
    again.add(Proposal(action="add", evidence=evidence, rule="evidence_pasted", reason="Pasted.", **values))
    held_keep(book, again)
    assert waiting_reviews() == []


def test_the_evidence_of_a_deleted_session_is_removed_from_joined_proposals(
    alice: Owner, agent: Agent, book: Book
) -> None:
    first, second = session_make(alice, agent), session_make(alice, agent)
    hold(book, first)
    hold(book, second, quote="words of the second session")
    session_delete(second)
    (run,) = waiting_reviews()
    assert (run.writes[0].evidence.quote, run.writes[0].evidence.session_id) == ("", None)
    assert run.writes[0].after == PLANTED


def test_more_waiting_proposals_need_no_more_queries(alice: Owner, agent: Agent, book: Book) -> None:
    def queries(number: int) -> int:
        with CaptureQueriesContext(connection) as captured:
            hold(book, session, f"Uses shop {number}.")
        return len(captured)

    session = session_make(alice, agent)
    first = queries(0)
    for number in range(1, 6):
        hold(book, session, f"Uses shop {number} as well.")
    assert queries(99) == first
