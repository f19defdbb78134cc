"""/admin/: opening another person's conversations or memories is recorded in the audit log, without their content"""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from gateway.models import Message, Session
from memories.models import AuditEntry, Memory
from tests.admin_pages import Rows, list_of, page_of
from tests.admin_rows import book_make, memory_make, owner_make, session_make, staff_client

pytestmark = pytest.mark.django_db
# Alice's own texts in any of the rows: memory, title, question, document, note, review.
WORDS = ("Likes tea.", "Prefers tea.", "Question 1", "Question 2")
MEMORIES = "/admin/memories/memory/"


@pytest.fixture
def root(rows: Rows) -> Client:
    return staff_client(superuser=True)


def new_entries(client: Client, path: str, form: dict[str, Any] | None = None) -> tuple[str, list[AuditEntry]]:
    """Return the page that a request shows, and the audit entries that it added."""
    before = list(AuditEntry.objects.values_list("pk", flat=True))
    answer = client.get(path, follow=True) if form is None else client.post(path, form)
    return answer.content.decode(), list(AuditEntry.objects.exclude(pk__in=before).order_by("pk"))


@pytest.mark.any_database
def test_every_page_that_shows_a_persons_words_is_recorded_without_them_when_opened(root: Client, rows: Rows) -> None:
    seen = []
    for name, row in rows.items():
        for path, kind, key in ((list_of(name), "list", ""), (page_of(name, row), "view", str(row.pk))):
            page, entries = new_entries(root, path)
            if any(words in page for words in WORDS):
                seen.append(path)
                assert [(entry.action, entry.object_id) for entry in entries] == [(kind, key)], path
    for name in ("memories.memory", "gateway.session", "memories.revision", "reviews.extraction", "memories.artifact"):
        assert page_of(name, rows[name]) in seen, f"{name} shows none of the words, so the test proves nothing"
    # The audit log itself never contains the words.
    review = str(rows["reviews.reviewrun"].pk)
    root.post("/admin/reviews/reviewrun/", {"action": "cancel_reviews", "_selected_action": [review]})
    assert AuditEntry.objects.count() > 10
    for entry in AuditEntry.objects.values():
        assert not any(words in str(entry) for words in (*WORDS, "Tea")), entry


@pytest.mark.any_database
def test_djangos_own_admin_log_stays_empty(root: Client, rows: Rows) -> None:
    root.post("/admin/auth/group/add/", {"name": "Friends of tea"})
    assert AuditEntry.objects.get(action="add").kind == "group"
    assert not LogEntry.objects.exists()


def test_an_entry_has_the_administrator_the_row_its_owner_and_the_request(root: Client, rows: Rows) -> None:
    memory = Memory.objects.get()
    answer = root.get(page_of("memories.memory", memory))
    entry = AuditEntry.objects.get(action="view")
    assert (entry.actor, entry.kind, entry.object_id) == ("bob", "memory", str(memory.pk))
    assert (entry.owner, entry.owner_id) == ("alice", str(memory.owner_id))
    assert (entry.address, entry.request_id) == ("127.0.0.1", answer.headers["x-request-id"])


def test_a_list_is_recorded_once_per_owner(root: Client, rows: Rows) -> None:
    memory_make("Likes milk.")
    memory_make("Likes rum.", book=book_make(owner_make("charlie")))
    _, entries = new_entries(root, MEMORIES)
    assert {(entry.owner, entry.count) for entry in entries} == {("alice", 2), ("charlie", 1)}


def test_each_page_of_a_long_transcript_is_recorded(root: Client, rows: Rows) -> None:
    session = Session.objects.get()
    Message.objects.create(owner=session.owner, session=session, seq=300, role="user", text="Much later.")
    page, entries = new_entries(root, f"{page_of('gateway.session', session)}?from=200")
    assert "Much later." in page
    assert [entry.object_id for entry in entries] == [str(session.pk)]


def test_a_rejected_form_shows_the_memory_again_and_is_recorded(root: Client, rows: Rows) -> None:
    memory = rows["memories.memory"]
    page, entries = new_entries(root, page_of("memories.memory", memory), {"content": ""})
    assert "Likes tea." in page
    assert [(entry.action, entry.object_id) for entry in entries] == [("view", str(memory.pk))]


def test_a_list_requested_by_post_is_recorded(root: Client, rows: Rows) -> None:
    page, entries = new_entries(root, MEMORIES, {"anything": "else"})
    assert "Likes tea." in page
    assert [(entry.action, entry.count) for entry in entries] == [("list", 1)]


def test_an_export_is_recorded_for_each_memory(root: Client, rows: Rows) -> None:
    memories = [Memory.objects.get(), memory_make("Works nights.")]
    form = {"action": "export_memories", "_selected_action": [str(memory.pk) for memory in memories]}
    exported, entries = new_entries(root, MEMORIES, form)
    assert "Works nights." in exported
    assert {(entry.action, entry.object_id) for entry in entries} == {("export", str(m.pk)) for m in memories}


@pytest.mark.any_database
def test_opening_ones_own_pages_is_not_recorded(root: Client) -> None:
    bob = owner_make("bob")
    memory, session = memory_make("Mine.", book=book_make(bob)), session_make(bob, turns=1)
    for path in (page_of("memories.memory", memory), page_of("gateway.session", session)):
        assert new_entries(root, path)[1] == []


@pytest.mark.any_database
def test_a_refused_page_is_not_recorded(rows: Rows) -> None:
    nobody = staff_client()
    for name, row in rows.items():
        assert new_entries(nobody, page_of(name, row))[1] == [], name
