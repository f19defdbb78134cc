"""What remains of reviews after a session is deleted or everything is forgotten, and how they are exported"""

import json

import pytest

from gateway.models import Session
from memories.api.export import export_lines
from memories.models import Memory, Owner
from reviews.frozen import read_frozen
from reviews.models import ReviewRun
from tests.reviews.talk import adds, newest_review, review_by, reviewed_session, say
from tests.scripted_model import ScriptedModel
from tests.unsliced import forget_memories, session_delete


def saved(owner: Owner, model: ScriptedModel, **settings: object) -> ReviewRun:
    return review_by(model, owner, adds("Is vegetarian."), said="I'm a vegetarian.", **settings)


@pytest.mark.parametrize("state", ["scheduled", "running", "awaiting_approval"])
def test_a_deleted_session_cancels_its_open_reviews_at_once(alice: Owner, state: str) -> None:
    say(reviewed_session(alice))
    ReviewRun.objects.update(state=state, writes=[{"index": 0, "after": "Is vegetarian.", "state": "waiting"}])
    session_delete(Session.objects.get())
    review = newest_review()
    assert (review.state, review.writes, review.session_id) == ("cancelled", [], None)


def test_memories_saved_by_reviews_survive_their_session(alice: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    session_delete(Session.objects.get())
    review.refresh_from_db()
    assert (review.state, len(review.writes), Memory.objects.count()) == ("saved", 1, 1)


@pytest.mark.parametrize("approval", [False, True])
def test_forgetting_everything_deletes_writes_and_keeps_the_usage(
    alice: Owner, model: ScriptedModel, approval: bool
) -> None:
    review = saved(alice, model, memory_review_approval=approval)
    assert forget_memories(alice.pk).erased["reviews"] == 1
    review.refresh_from_db()
    assert (review.writes, review.change_set, review.usage["total_tokens"]) == ([], None, 20)
    assert review.state == ("cancelled" if approval else "saved")


def test_messages_before_forgetting_are_not_reviewed_again(alice: Owner, model: ScriptedModel) -> None:
    session = reviewed_session(alice, memory_review_interval=2)
    say(session, "I'm a vegetarian.")
    forget_memories(alice.pk)
    say(session, "Hello.")
    say(session, "Hello again.")
    review = newest_review()
    session.refresh_from_db()
    found = read_frozen(review, reviewed_through=session.reviewed_through)
    assert (review.first_seq, session.reviewed_through) == (3, 2)
    assert found.has_news


def test_reviews_of_another_owner_are_kept(alice: Owner, charlie: Owner, model: ScriptedModel) -> None:
    review = saved(charlie, model)
    forget_memories(alice.pk)
    review.refresh_from_db()
    assert len(review.writes) == 1


def test_an_export_has_only_the_owners_reviews(alice: Owner, charlie: Owner, model: ScriptedModel) -> None:
    review = saved(alice, model)
    lines = [json.loads(line) for line in export_lines(alice.pk)]
    (found,) = [line for line in lines if line["type"] == "review"]
    assert (found["id"], found["state"], found["writes"][0]["after"]) == (str(review.pk), "saved", "Is vegetarian.")
    assert not [line for line in map(json.loads, export_lines(charlie.pk)) if line["type"] == "review"]
