"""/admin/reviews/reviewrun/: permissions by role, and the number of queries"""

from typing import Any

import pytest
from django.test import Client

from memories.models import AuditEntry, Memory, Owner, Revision
from reviews.models import ReviewRun
from reviews.writes import ReviewWrite
from tests.admin_pages import count_queries
from tests.admin_rows import row_url, staff_client
from tests.factories import owner_make
from tests.reviews.talk import due_review, newest_review, saves

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
LIST = "/admin/reviews/reviewrun/"
MAY = [("superuser", True), ("auditor", True), ("viewer", False), ("nobody", False)]
# The status codes of a page, and of a POST that changes something.
STATUS = {"superuser": (200, 302), "auditor": (200, 302), "viewer": (200, 403), "nobody": (403, 403)}
ACTIONS = {
    "approve_reviews": "saved",
    "reject_reviews": "cancelled",
    "undo_reviews": "undone",
    "cancel_reviews": "cancelled",
    "review_again": "scheduled",
}


def client_of(role: str) -> Client:
    may = ("reviews.view_reviewrun",) if role == "viewer" else ()
    return staff_client(superuser=role == "superuser", auditor=role == "auditor", may=may)


def write(index: int, state: str, **fields: Any) -> dict[str, Any]:
    content = f"Fact number {index}."
    made = {"index": index, "action": "add", "key": f"new{index + 1}", "version": 0, "target": "user"}
    return {**made, "category": "general", "keywords": [], "before": None, "after": content, "state": state, **fields}


def review_make(owner: Owner, state: str, writes: list[dict[str, Any]]) -> ReviewRun:
    review = due_review(owner)
    review.state, review.writes = state, [ReviewWrite.from_json(row) for row in writes]
    review.save()
    return review


def waiting(owner: Owner, number: int = 2) -> ReviewRun:
    return review_make(owner, "awaiting_approval", [write(index, "waiting") for index in range(number)])


def saved(owner: Owner, number: int = 1) -> ReviewRun:
    """Create a review that wrote `number` memories."""
    return saves(review_make(owner, "saved", []), *(f"Fact number {index}." for index in range(number)))


def live() -> int:
    return Memory.objects.filter(deleted_at=None).count()


@pytest.mark.parametrize("role", STATUS)
def test_pages_need_the_view_permission(alice: Owner, role: str) -> None:
    review, client = saved(alice), client_of(role)
    assert {client.get(path).status_code for path in (LIST, row_url(review))} == {STATUS[role][0]}


@pytest.mark.parametrize(("role", "may"), MAY)
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_only_superusers_and_auditors_can_decide(alice: Owner, role: str, may: bool, verb: str) -> None:
    review, client = waiting(alice), client_of(role)
    data = {"verb": verb, "write": ["0", "1"]}
    answer = client.post(row_url(review, "object_action"), data)
    review.refresh_from_db()
    decided = {"approve": ("saved", 2), "reject": ("cancelled", 0)}[verb]
    assert answer.status_code == STATUS[role][1]
    assert (review.state, live()) == (decided if may else ("awaiting_approval", 0))


def test_a_viewer_sees_writes_without_buttons(alice: Owner) -> None:
    client = client_of("viewer")
    for review in (waiting(alice), saved(alice)):
        page = client.get(row_url(review)).content.decode()
        assert "Fact number 0." in page
        assert not [word for word in ('name="write"', 'name="verb"', "<textarea", "/action/") if word in page]


def test_an_auditor_sees_the_decision_form(alice: Owner) -> None:
    page = client_of("auditor").get(row_url(waiting(alice))).content.decode()
    assert page.count('name="write"') == 2
    assert 'value="approve"' in page


@pytest.mark.parametrize(("role", "may"), MAY)
@pytest.mark.parametrize("action", ACTIONS)
def test_only_superusers_and_auditors_can_use_list_actions(alice: Owner, role: str, may: bool, action: str) -> None:
    makers = {"undo_reviews": saved, "review_again": lambda owner: review_make(owner, "failed", [])}
    review = makers.get(action, waiting)(alice)
    before = review.state
    client = client_of(role)
    if role != "nobody":
        assert (f'value="{action}"' in client.get(LIST).content.decode()) == may
    client.post(LIST, {"action": action, "_selected_action": [str(review.pk)]})
    assert newest_review().state == (ACTIONS[action] if may else before)


@pytest.mark.parametrize(("role", "may"), MAY)
def test_only_superusers_and_auditors_can_redo(alice: Owner, role: str, may: bool) -> None:
    review, client = saved(alice), client_of(role)
    object_action = row_url(review, "object_action")
    if not may:
        assert client.post(object_action, {"verb": "put_back"}).status_code == 403
        return
    assert 'value="put_back"' not in client.get(row_url(review)).content.decode()
    client.post(object_action, {"verb": "undo"})
    undone = client.get(row_url(review)).content.decode()
    assert ('value="put_back"' in undone, 'value="undo"' in undone, live()) == (True, False, 0)
    back = client.post(object_action, {"verb": "put_back"}, follow=True).content.decode()
    assert ("Restored. 1 memory is as it was before the undo." in back, live()) == (True, 1)
    review.refresh_from_db()
    assert review.state == "saved"


def test_restoring_what_was_changed_since_is_not_recorded_as_restored(alice: Owner) -> None:
    review, client = saved(alice), client_of("superuser")
    object_action = row_url(review, "object_action")
    client.post(object_action, {"verb": "undo"})
    Revision.objects.filter(action="add").update(version=3)
    Memory.objects.update(version=3)  # as after somebody restored it alone
    back = client.post(object_action, {"verb": "put_back"}, follow=True).content.decode()
    assert "Left alone, because it was changed since, or another memory says the same: memory 1." in back
    notes = list(AuditEntry.objects.filter(object_id=review.pk).values_list("note", flat=True))
    assert "Not restored: all of it was changed since." in notes
    assert not [note for note in notes if note.startswith("Restore")]


def test_users_without_staff_status_are_redirected_to_sign_in(alice: Owner) -> None:
    review, client = waiting(alice), Client()
    assert alice.user is not None
    client.force_login(alice.user)
    path = row_url(review, "object_action")
    answer = client.post(path, {"verb": "approve", "write": ["0"]})
    assert (answer.status_code, answer.headers["Location"].startswith("/admin/login/"), live()) == (302, True, 0)


@pytest.mark.parametrize("role", ["superuser", "auditor", "viewer"])
def test_a_longer_list_needs_no_more_queries(alice: Owner, role: str) -> None:
    client = client_of(role)
    saved(alice)
    expected = count_queries(client, LIST)
    for number in range(6):
        (saved if number % 2 else waiting)(owner_make(f"owner{number}"))
    assert len(client.get(LIST).context["cl"].result_list) == 7
    assert count_queries(client, LIST) == expected


@pytest.mark.parametrize("role", ["superuser", "auditor", "viewer"])
@pytest.mark.parametrize("make", [saved, waiting])
def test_a_page_with_more_writes_needs_no_more_queries(alice: Owner, role: str, make: Any) -> None:
    client = client_of(role)
    few, many = make(alice, 1), make(owner_make("charlie"), 6)
    assert client.get(row_url(many)).content.decode().count("Fact number") == 6
    assert count_queries(client, row_url(many)) == count_queries(client, row_url(few))
