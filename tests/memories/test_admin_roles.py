"""/admin/: who may open and do what. Rows are roles, columns are pages and deeds."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from gateway.keys import api_key_create
from gateway.models import Session
from memories.artifacts import artifact_put
from memories.auditors import AUDITORS, auditors_make, auditors_unmake
from memories.models import Artifact, Memory, Revision, WriteOrigin
from memories.services import Source
from reviews.models import ReviewRun
from tests.admin_rows import memory_make, owner_make, session_make, staff_client, user_make

pytestmark = pytest.mark.django_db
VIEWS = (
    "memories.view_memory",
    "memories.view_owner",
    "gateway.view_session",
    "gateway.view_apikey",
    "gateway.view_agent",
)
# What a page answers to each role: superuser, memory auditor, staff that may view, staff without permissions.
PAGES = {
    "/admin/memories/memory/": (200, 200, 200, 403),
    "/admin/memories/memory/add/": (200, 403, 403, 403),
    "/admin/memories/revision/": (200, 200, 403, 403),
    "/admin/memories/changeset/": (200, 200, 403, 403),
    "/admin/memories/owner/": (200, 200, 200, 403),
    "/admin/reviews/reviewrun/": (200, 200, 403, 403),
    "/admin/reviews/consolidationrun/": (200, 200, 403, 403),
    "/admin/reviews/extraction/": (200, 200, 403, 403),
    "/admin/memories/artifact/": (200, 200, 403, 403),
    "/admin/memories/artifact/add/": (403, 403, 403, 403),
    "/admin/memories/lease/": (200, 403, 403, 403),
    "/admin/gateway/session/": (200, 403, 200, 403),
    "/admin/gateway/run/": (200, 403, 403, 403),
    "/admin/gateway/apikey/": (200, 403, 200, 403),
    "/admin/gateway/apikey/add/": (200, 403, 403, 403),
    "/admin/gateway/agent/": (200, 403, 200, 403),
    "/admin/gateway/agent/add/": (200, 403, 403, 403),
    "/admin/gateway/configuration/memories/change/": (200, 403, 403, 403),
    "/admin/auth/user/": (200, 403, 403, 403),
    "/admin/auth/user/add/": (200, 403, 403, 403),
    "/admin/auth/group/": (200, 403, 403, 403),
    "/admin/admin/logentry/": (200, 403, 403, 403),
}
ROLES = ("superuser", "auditor", "viewer", "nobody")


def client_of(role: str) -> Client:
    return staff_client(superuser=role == "superuser", auditor=role == "auditor", may=VIEWS if role == "viewer" else ())


@pytest.mark.parametrize("role", ROLES)
def test_each_role_opens_its_pages_and_no_others(role: str) -> None:
    client = client_of(role)
    answers = {path: client.get(path).status_code for path in PAGES}
    assert answers == {path: expected[ROLES.index(role)] for path, expected in PAGES.items()}


@pytest.mark.parametrize(("role", "status"), [("superuser", 302), ("auditor", 302), ("viewer", 403), ("nobody", 403)])
@pytest.mark.parametrize("verb", ["delete", "restore", "allow"])
def test_deeds_on_a_memory_are_for_superusers_and_auditors(role: str, status: int, verb: str) -> None:
    memory = memory_make()
    answer = client_of(role).post(reverse("admin:memories_memory_deed", args=[memory.pk]), {"verb": verb})
    assert answer.status_code == status
    assert Memory.objects.filter(deleted_at__isnull=False).exists() == (verb == "delete" and status == 302)


def test_an_auditor_edits_a_memory_and_the_revision_names_them() -> None:
    memory, client = memory_make("Likes tea."), client_of("auditor")
    form = {
        "content": "Likes milk.",
        "target": "memory",
        "category": "general",
        "keywords": "",
        "version": "1",
    }
    answer = client.post(
        reverse("admin:memories_memory_change", args=[memory.pk]),
        {**form, "expires_at_0": "", "expires_at_1": ""},
    )
    assert answer.status_code == 302
    assert Revision.objects.latest("created_at").actor.startswith("staff:")


@pytest.mark.parametrize(("role", "status"), [("superuser", 302), ("auditor", 302), ("viewer", 403), ("nobody", 403)])
def test_a_document_is_removed_by_superusers_and_auditors(role: str, status: int) -> None:
    artifact = artifact_put(memory_make().book, "MEMORY.md", "Words.", Source(actor="user:1", origin=WriteOrigin.USER))
    answer = client_of(role).post(reverse("admin:memories_artifact_deed", args=[artifact.pk]), {"verb": "remove"})
    assert answer.status_code == status
    assert Artifact.objects.filter(deleted_at__isnull=False).exists() == (status == 302)


@pytest.mark.parametrize(("role", "status"), [("superuser", 200), ("auditor", 403), ("viewer", 403), ("nobody", 403)])
def test_consolidations_are_started_by_superusers_only(role: str, status: int) -> None:
    answer = client_of(role).get(reverse("admin:memories_book_consolidate"), {"book": str(memory_make().book_id)})
    assert answer.status_code == status


def test_a_viewer_sees_a_memory_and_no_buttons() -> None:
    memory = memory_make("Likes tea.")
    page = client_of("viewer").get(reverse("admin:memories_memory_change", args=[memory.pk])).content.decode()
    assert "Likes tea." in page
    assert 'value="delete"' not in page
    assert 'name="_save"' not in page


def test_a_viewer_is_offered_no_action_that_writes() -> None:
    memory, client = memory_make(), client_of("viewer")
    page = client.get("/admin/memories/memory/").content.decode()
    assert "delete_memories" not in page
    client.post("/admin/memories/memory/", {"action": "delete_memories", "_selected_action": [str(memory.pk)]})
    assert Memory.objects.get().deleted_at is None


def test_an_auditor_sees_a_review_without_the_conversation() -> None:
    session = session_make(turns=1)
    review = review_make(session)
    path = reverse("admin:reviews_reviewrun_change", args=[review.pk])
    page = client_of("auditor").get(path).content.decode()
    assert "Prefers tea." in page
    assert "Question 1" not in page


def test_a_key_is_revoked_by_a_superuser_only() -> None:
    key, _ = api_key_create(owner=owner_make(), name="laptop")
    path = reverse("admin:gateway_apikey_deed", args=[key.pk])
    assert client_of("viewer").post(path, {"verb": "revoke"}).status_code == 403
    key.refresh_from_db()
    assert key.revoked_at is None


def test_people_without_staff_status_are_sent_to_sign_in() -> None:
    client = Client()
    client.force_login(user_make("charlie"))
    memory = memory_make()
    for path in (
        "/admin/",
        "/admin/memories/memory/",
        reverse("admin:memories_memory_change", args=[memory.pk]),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["Location"].startswith("/admin/login/")) == (302, True)
    assert client.post(reverse("admin:memories_memory_deed", args=[memory.pk]), {"verb": "delete"}).status_code == 302
    assert Memory.objects.get().deleted_at is None


def test_a_deed_needs_the_csrf_token() -> None:
    memory, signed_in = memory_make(), client_of("superuser")
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in.cookies
    assert client.post(reverse("admin:memories_memory_deed", args=[memory.pk]), {"verb": "delete"}).status_code == 403


def test_the_group_of_auditors_is_made_once_and_can_be_taken_away() -> None:
    auditors_make()
    auditors_make()
    group = Group.objects.get(name=AUDITORS)
    assert {p.codename for p in group.permissions.all()} == {
        "view_memory",
        "change_memory",
        "delete_memory",
        "view_revision",
        "view_changeset",
        "view_book",
        "view_owner",
        "view_artifact",
        "change_artifact",
        "view_reviewrun",
        "change_reviewrun",
        "view_consolidationrun",
        "view_extraction",
    }
    auditors_unmake()
    assert not Group.objects.filter(name=AUDITORS).exists()


def review_make(session: Session) -> ReviewRun:
    return ReviewRun.objects.create(
        owner=session.owner,
        book=memory_make().book,
        session=session,
        state="saved",
        trigger="interval",
        first_seq=1,
        last_seq=2,
        agent_name="assistant",
        book_epoch=1,
        writes=[{"action": "add", "after": "Prefers tea."}],
    )
