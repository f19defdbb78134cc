"""/admin/auth/user/: at least one active administrator stays, and who is deleted is forgotten"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from gateway.models import Session
from memories.admin.users import ONLY_ADMINISTRATOR
from memories.forgetting import forgetting_sweep
from memories.models import AuditEntry, Erasure, Memory, Owner
from tests.admin_rows import session_make, staff_client, user_make
from tests.factories import memory_make

pytestmark = pytest.mark.django_db
FORM = {"username": "bob", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
STAYS = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}


@pytest.fixture
def root() -> Client:
    return staff_client(superuser=True)


def bob() -> User:
    return User.objects.get(username="bob")


def change(client: Client, user: User, **form: Any) -> Any:
    return client.post(f"/admin/auth/user/{user.pk}/change/", {**FORM, "username": user.username, **form})


@pytest.mark.parametrize("gone", ["is_active", "is_superuser"])
def test_the_only_administrator_is_not_deactivated_or_demoted(root: Client, gone: str) -> None:
    kept = {name: value for name, value in STAYS.items() if name != gone}
    answer = change(root, bob(), **kept)
    assert (answer.status_code, ONLY_ADMINISTRATOR in answer.content.decode()) == (200, True)
    assert (bob().is_active, bob().is_superuser) == (True, True)


def test_beside_another_administrator_it_is_allowed(root: Client) -> None:
    other = user_make("root", is_staff=True, is_superuser=True)
    assert change(root, other, is_active="on").status_code == 302
    other.refresh_from_db()
    assert not other.is_superuser


def test_an_administrator_who_is_not_active_does_not_count(root: Client) -> None:
    user_make("root", is_staff=True, is_superuser=True, is_active=False)
    assert change(root, bob()).status_code == 200
    assert bob().is_active


def test_the_only_administrator_is_not_deleted(root: Client) -> None:
    assert root.post(f"/admin/auth/user/{bob().pk}/delete/", {"post": "yes"}).status_code == 403
    form = {"action": "delete_selected", "_selected_action": [bob().pk], "post": "yes"}
    assert root.post("/admin/auth/user/", form).status_code == 403
    assert User.objects.filter(username="bob").exists()


def deleted_alone(client: Client, user: User, **form: Any) -> Any:
    return client.post(f"/admin/auth/user/{user.pk}/delete/", form)


def deleted_with_others(client: Client, user: User, **form: Any) -> Any:
    return client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [user.pk], **form})


@pytest.mark.parametrize("delete", [deleted_alone, deleted_with_others])
def test_deleting_a_user_asks_first_and_erases_everything_of_theirs(
    root: Client, alice: Owner, charlie: Owner, delete: Any, django_capture_on_commit_callbacks: Any
) -> None:
    for owner in (alice, charlie):
        memory_make(owner)
        session_make(owner)
    user = User.objects.get(username="alice")
    asked = root.get(f"/admin/auth/user/{user.pk}/delete/") if delete is deleted_alone else delete(root, user)
    assert "everything of alice: conversations, memories, keys and all history" in asked.content.decode()
    assert Memory.objects.filter(owner=alice).exists()
    with django_capture_on_commit_callbacks(execute=True):
        assert delete(root, user, post="yes").status_code == 302
    assert not User.objects.filter(username="alice").exists()
    assert list(Owner.objects.filter(user__username__in=["alice", "charlie"])) == [charlie]
    assert [memory.owner for memory in Memory.objects.all()] == [charlie]
    assert [session.owner for session in Session.objects.all()] == [charlie]
    assert list(AuditEntry.objects.filter(action="forget").values_list("actor", "owner")) == [("bob", "alice")]


def test_a_deletion_that_was_interrupted_is_finished_by_the_sweep(root: Client, alice: Owner) -> None:
    memory_make(alice)
    assert deleted_alone(root, alice.user, post="yes").status_code == 302  # its transaction is the test's: not over
    assert not User.objects.get(username="alice").is_active
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert not User.objects.filter(username="alice").exists()
    assert not Memory.objects.exists()


def test_a_user_who_never_had_anything_is_deleted(root: Client) -> None:
    user = user_make("root", is_staff=True, is_superuser=True)
    assert deleted_alone(root, user, post="yes").status_code == 302
    assert not User.objects.filter(username="root").exists()
