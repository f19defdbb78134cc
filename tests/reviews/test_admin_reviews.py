"""/admin/reviews/reviewrun/: each review's input, writes, and cost"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import TextChoices
from django.test import Client
from django.urls import reverse

from gateway.models import Run, Session
from memories.admin.badges import LOOK_OF
from memories.models import AuditEntry, ChangeSet, Memory, Revision, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from reviews.models import ConsolidationRun, Extraction, ReviewRun
from reviews.writes import WriteState
from tests import factories
from tests.admin_pages import count_queries
from tests.admin_rows import (
    agent_make,
    bob,
    book_make,
    listed,
    memory_make,
    object_action,
    owner_make,
    row_url,
    session_make,
    staff_client,
)
from tests.reviews.talk import saves

pytestmark = pytest.mark.django_db
LIST = "/admin/reviews/reviewrun/"


def review_make(session: Session | None = None, **fields: Any) -> ReviewRun:
    session = session or session_make(turns=2)
    writes = [{"action": "add", "after": "Prefers <b>tea</b>."}]
    values = {"writes": writes, "usage": {"total_tokens": 1480}, **fields}
    return factories.review_make(book_make(session.owner), session=session, **values)


def test_the_list_shows_state_trigger_session_writes_usage_and_times(root: Client) -> None:
    review_make()
    page = root.get(LIST).content.decode()
    assert all(word in page for word in ("Saved", "After every few turns", "Tea", "alice", "1,480", "assistant"))


def test_reviews_are_filtered_by_state_trigger_session_and_title(root: Client) -> None:
    saved = review_make()
    failed = review_make(
        session_make(owner_make("charlie"), title="Trip"),
        state="failed",
        trigger="idle",
        error={"code": "upstream_error"},
    )
    assert listed(root, LIST, state="failed") == [failed]
    assert listed(root, LIST, trigger="interval") == [saved]
    assert listed(root, LIST, session=str(saved.session_id)) == [saved]
    assert listed(root, LIST, owner__id__exact=str(failed.owner_id)) == [failed]
    assert listed(root, LIST, q="trip") == [failed]
    assert listed(root, LIST, q=str(saved.pk)) == [saved]
    assert listed(root, LIST, q=str(failed.session_id)) == [failed]


def test_the_page_shows_writes_error_and_the_frozen_conversation(root: Client) -> None:
    review = review_make(
        state="failed",
        error={"code": "upstream_error", "message": "The model server does not know this model."},
        dropped_calls={"shell": 2},
    )
    page = root.get(row_url(review)).content.decode()
    assert "Prefers &lt;b&gt;tea&lt;/b&gt;." in page
    assert "The model server does not know this model." in page
    assert "answered with an error" not in page, "the stored message is more specific"
    assert "shell" in page
    assert "Question 1" in page
    assert "Question 2" not in page


def test_the_result_of_a_review_is_described_in_words(root: Client) -> None:
    review = review_make(
        state="timed_out",
        writes=[],
        settings={"memory_review_timeout": 20, "memory_review_max_writes": 1, "memory_review_model": "small"},
        error={"code": "timed_out", "message": "No result within 20 seconds."},
        usage={"prompt_tokens": 1200, "completion_tokens": 280, "total_tokens": 1480},
        dropped_calls={"web_search": 1, "shell": 2, "open": 5},
    )
    page = root.get(row_url(review)).content.decode()
    for words in (
        "The model server took longer than 20 seconds.",
        "timed_out: No result within 20 seconds.",
        "1,480 tokens: 1,200 read, 280 written",
        "open 5 times, shell twice, web_search once",
        "At most 1 write by small, 20 seconds for an attempt; its writes are saved at once, the owner is not told.",
        "1 to 2 of the session",
    ):
        assert words in page
    assert "{&quot;" not in page


def test_a_retry_shows_when_it_begins(root: Client) -> None:
    review = review_make(state="scheduled", error={"code": "rate_limited", "message": "429"}, writes=[])
    page = root.get(row_url(review)).content.decode()
    assert "The model server had too much to do. The next attempt begins " in page


def test_each_write_shows_its_action_and_state(root: Client) -> None:
    writes = [
        {"index": 0, "action": "update", "state": "applied", "before": "Lives in Leeds.", "after": "Lives in York."},
        {"index": 1, "action": "delete", "state": "undone", "before": "Likes tea.", "after": None, "key": "2"},
        {"index": 2, "action": "add", "state": "refused", "after": None, "key": "new", "reason": "No room."},
    ]
    review = review_make(writes=writes)
    writes[0]["memory_id"] = str(memory_make("Lives in York.").number)
    ReviewRun.objects.filter(pk=review.pk).update(writes=writes)
    page = root.get(row_url(review)).content.decode()
    assert "Lives in <del>Leeds</del><ins>York</ins>." in page
    assert "<del>Likes tea.</del>" in page
    assert row_url(Memory.objects.get()) in page
    for words in ("Changed", "Deleted memory 2", "Undone", "Refused", "No room."):
        assert words in page


def test_a_review_of_a_deleted_session_is_shown(root: Client) -> None:
    review = review_make()
    ReviewRun.objects.filter(pk=review.pk).update(session=None)
    assert root.get(row_url(review)).status_code == 200
    assert "Deleted" in root.get(LIST).content.decode()


def test_reviews_cannot_be_edited_or_deleted(root: Client) -> None:
    review = review_make()
    page = row_url(review)
    assert root.post(page, {"state": "failed"}).status_code == 403
    assert root.post(reverse("admin:reviews_reviewrun_delete", args=[review.pk]), {"post": "yes"}).status_code == 403
    review.refresh_from_db()
    assert review.state == "saved"


@pytest.mark.any_database
def test_a_longer_list_needs_no_more_queries_and_counts_nothing(root: Client) -> None:
    for number in range(3):
        review_make(session_make(owner_make(f"first{number}")))
    expected = count_queries(root, LIST)
    for number in range(6):
        review_make(session_make(owner_make(f"second{number}")))
    assert count_queries(root, LIST) == expected


def saved_review() -> ReviewRun:
    """Create a review that wrote a memory."""
    return saves(review_make(), "Prefers tea.")


@pytest.mark.any_database
def test_an_undo_reverts_memories_and_names_the_administrator(root: Client) -> None:
    review = saved_review()
    assert "Undone. 1 memory was changed back." in object_action(root, review, "undo").content.decode()
    review.refresh_from_db()
    assert (review.state, Memory.objects.get().deleted_at is not None) == ("undone", True)
    assert Revision.objects.latest("created_at").actor == bob()


@pytest.mark.parametrize("of_review", [True, False], ids=["review", "change set"])
def test_an_undo_that_changed_nothing_back_says_so_in_the_audit_log(root: Client, of_review: bool) -> None:
    review = saved_review()
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    with book_writing(review.book, source) as writer:
        writer.update(Memory.objects.get().number, MemoryFields(content="Prefers coffee."))
    row = review if of_review else ChangeSet.objects.get(pk=review.change_set)
    path = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_object_action", args=[row.pk])
    assert "Left alone, because it was changed since" in root.post(path, {"verb": "undo"}, follow=True).content.decode()
    entry = AuditEntry.objects.get(action="undo")
    assert (entry.object_id, entry.note) == (str(row.pk), "Not undone: all of it was changed since.")


@pytest.mark.any_database
def test_an_undo_of_what_is_undone_is_not_recorded(root: Client) -> None:
    review = saved_review()
    path = reverse("admin:memories_changeset_object_action", args=[review.change_set])
    root.post(path, {"verb": "undo"})
    assert "There was nothing to undo." in root.post(path, {"verb": "undo"}, follow=True).content.decode()
    assert AuditEntry.objects.filter(action="undo").count() == 1


def test_an_auditor_can_undo_a_review() -> None:
    review = saved_review()
    object_action(staff_client(auditor=True), review, "undo")
    assert Memory.objects.get().deleted_at is not None


def test_a_viewer_cannot_undo_a_review() -> None:
    review = saved_review()
    client = staff_client(may=("reviews.view_reviewrun",))
    page = client.get(row_url(review)).content.decode()
    assert 'value="undo"' not in page
    assert object_action(client, review, "undo").status_code == 403
    assert Memory.objects.get().deleted_at is None


def test_undoing_a_review_without_writes_shows_a_message(root: Client) -> None:
    review = review_make(state="nothing_to_save", writes=[])
    assert "This review wrote nothing that could be undone." in object_action(root, review, "undo").content.decode()


def test_a_scheduled_review_is_cancelled_once(root: Client) -> None:
    review = review_make(state="scheduled")
    assert "Cancelled." in object_action(root, review, "cancel").content.decode()
    review.refresh_from_db()
    assert review.state == "cancelled"
    assert "It has already finished." in object_action(root, review, "cancel").content.decode()
    assert AuditEntry.objects.filter(object_id=review.pk, note="Cancelled.").count() == 1


def test_a_failed_review_is_repeated_as_a_new_one(root: Client) -> None:
    agent_make(memory_review_interval=3)
    session = session_make(turns=2)
    review = review_make(session, state="failed")
    assert "A new review is scheduled." in object_action(root, review, "again").content.decode()
    again = ReviewRun.objects.latest("created_at")
    assert (again.state, again.trigger, again.last_seq) == ("scheduled", "request", 4)


def test_no_review_of_a_deactivated_account_is_scheduled(root: Client) -> None:
    agent_make(memory_review_interval=3)
    review = review_make(session_make(turns=2), state="failed")
    User.objects.filter(pk=review.owner.user_id).update(is_active=False)
    assert "This account is deactivated." in object_action(root, review, "again").content.decode()
    assert ReviewRun.objects.get() == review


def test_a_session_can_be_reviewed_from_its_page(root: Client) -> None:
    session = session_make(turns=2)
    path = reverse("admin:reviews_reviewrun_now", args=[session.pk])
    assert path in root.get(row_url(session)).content.decode()
    Session.objects.filter(pk=session.pk).update(reviewed_through=4)
    refused = root.post(path, follow=True).content.decode()
    assert "Nothing was said in this session since its last review." in refused
    Session.objects.filter(pk=session.pk).update(reviewed_through=0)
    assert root.post(path).headers["Location"] == row_url(ReviewRun.objects.get())


def test_a_change_set_can_be_undone_and_redone(root: Client) -> None:
    saved_review()
    first = ChangeSet.objects.get()
    object_action(root, first, "undo")
    assert Memory.objects.get().deleted_at is not None
    second = ChangeSet.objects.get(undoes=first)
    assert second.actor == bob()
    object_action(root, second, "undo")
    assert Memory.objects.get().deleted_at is None


@pytest.mark.parametrize("states", [ReviewRun.State, ConsolidationRun.State, Extraction.State, WriteState, Run.State])
def test_every_state_has_a_badge(states: type[TextChoices]) -> None:
    assert set(states.values) - {WriteState.STAGED} <= LOOK_OF.keys()
