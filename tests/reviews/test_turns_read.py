"""reviews.selectors: the turns that a review read, as shown on the memories page"""

import pytest

from gateway.models import Run
from memories.models import Owner
from reviews.models import ReviewRun
from reviews.selectors import turns_of
from tests.pages import client_of
from tests.reviews.talk import DONE, adds, newest_review, reviewed_session, run_review, say
from tests.scripted_model import ScriptedModel


def review_of_turns(owner: Owner, model: ScriptedModel) -> ReviewRun:
    """Execute a review of the second and third turn that saves a memory."""
    session = reviewed_session(owner, memory_review_interval=2)
    say(session)
    session.reviewed_through = session.message_seq
    session.turns_since_memory_review = 0
    session.save()
    for words in ("I like tea.", "And milk."):
        say(session, words)
    model.script(adds("Likes tea."), DONE)
    return run_review(newest_review())


def test_a_review_has_the_turns_of_its_messages(alice: Owner, charlie: Owner, model: ScriptedModel) -> None:
    review = review_of_turns(alice, model)
    turns = turns_of(alice.pk, [review.pk])[review.pk]
    assert (turns.first, turns.last, turns.words) == (2, 3, "turns 2 to 3")
    assert turns.run_id == Run.objects.get(turn=2).pk
    assert turns_of(charlie.pk, [review.pk]) == {}


@pytest.mark.any_database
def test_a_memory_of_a_review_links_to_its_turns(alice: Owner, model: ScriptedModel) -> None:
    review = review_of_turns(alice, model)
    client = client_of(alice)
    first = Run.objects.get(turn=2).pk
    link = f'<a href="/c/{review.session_id}/#turn-{first}">from “I am a vegetarian.”, turns 2 to 3</a>'
    assert link in client.get("/memories/").content.decode()
    assert f"/c/{review.session_id}/#turn-{first}" in client.get("/fragments/memories/1/history/").content.decode()
