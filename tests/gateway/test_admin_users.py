"""/admin/auth/user/: one active administrator always remains, and deleting a user erases all their data"""

import re
from functools import partial
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.hashers import get_hasher
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.admin.users import ONLY_ADMINISTRATOR
from gateway.models import ApiKey, Session
from memories.forgetting import forgetting_sweep
from memories.models import AuditEntry, Erasure, Memory, Owner
from memories.services import owner_for_user
from tests.admin_rows import session_make, user_make
from tests.factories import memory_make
from tests.overlapping import only_postgresql, overlap
from tests.pages import client_of

pytestmark = pytest.mark.django_db
FORM = {"username": "bob", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
ADMINISTRATOR = {"is_active": "on", "is_staff": "on", "is_superuser": "on"}


def bob() -> User:
    return User.objects.get(username="bob")


def change(client: Client, user: User, **form: Any) -> Any:
    return client.post(f"/admin/auth/user/{user.pk}/change/", {**FORM, "username": user.username, **form})


@pytest.mark.any_database
@pytest.mark.parametrize("removed", ["is_active", "is_superuser"])
def test_the_only_administrator_cannot_be_deactivated_or_demoted(root: Client, removed: str) -> None:
    remaining = {name: value for name, value in ADMINISTRATOR.items() if name != removed}
    answer = change(root, bob(), **remaining)
    assert (answer.status_code, ONLY_ADMINISTRATOR in answer.content.decode()) == (200, True)
    assert (bob().is_active, bob().is_superuser) == (True, True)


@pytest.mark.any_database
def test_an_outdated_form_does_not_activate_a_user_again(root: Client, charlie: Owner) -> None:
    user = User.objects.get(username="charlie")
    opened = root.get(f"/admin/auth/user/{user.pk}/change/").context["adminform"].form["state"].value()
    User.objects.filter(pk=user.pk).update(last_login=timezone.now())
    assert change(root, user, is_active="", state=opened).status_code == 302
    answer = change(root, user, is_active="on", email="c@example.org", state=opened)
    assert "changed in the meantime" in answer.context["adminform"].form.non_field_errors()[0]
    assert "c@example.org" in answer.content.decode()
    assert not User.objects.get(pk=user.pk).is_active


def test_an_outdated_form_of_a_group_does_not_overwrite_it(root: Client) -> None:
    group = Group.objects.create(name="helpers")
    path = f"/admin/auth/group/{group.pk}/change/"
    opened = root.get(path).context["adminform"].form["state"].value()
    granted, other = Permission.objects.filter(content_type__app_label="memories").order_by("pk")[:2]
    assert root.post(path, {"name": "helpers", "permissions": [granted.pk], "state": opened}).status_code == 302
    answer = root.post(path, {"name": "helpers", "permissions": [other.pk], "state": opened})
    assert "changed in the meantime" in answer.context["adminform"].form.non_field_errors()[0]
    assert list(group.permissions.all()) == [granted]


def test_a_page_of_a_user_with_many_permissions_takes_no_query_for_each(root: Client) -> None:
    user = user_make("root")
    page = f"/admin/auth/user/{user.pk}/change/"
    root.get(page)
    with CaptureQueriesContext(connection) as without:
        root.get(page)
    user.user_permissions.set(Permission.objects.all())
    with CaptureQueriesContext(connection) as with_all:
        root.get(page)
    assert len(with_all) <= len(without)


def test_an_administrator_can_be_demoted_if_there_is_another(root: Client) -> None:
    other = user_make("root", is_staff=True, is_superuser=True)
    assert change(root, other, is_active="on").status_code == 302
    other.refresh_from_db()
    assert not other.is_superuser


@pytest.mark.any_database
def test_an_inactive_administrator_does_not_count(root: Client) -> None:
    user_make("root", is_staff=True, is_superuser=True, is_active=False)
    assert change(root, bob()).status_code == 200
    assert bob().is_active


@only_postgresql
@pytest.mark.parametrize("path", ["{}/change/", "{}/delete/", ""], ids=["demoted", "deleted", "deleted in the list"])
def test_two_administrators_cannot_remove_each_other_at_the_same_moment(
    transactional_db: None, root: Client, path: str
) -> None:
    rita = user_make("rita", is_staff=True, is_superuser=True)
    for user in (bob(), rita):
        owner_for_user(user)
    other = client_of(owner_for_user(rita))

    root.raise_request_exception = False  # Bob, whose request ends last, may be deleted by then

    def remove(client: Client, user: User) -> Any:
        form = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
        form |= {**FORM, "username": user.username, "is_active": "on", "is_staff": "on"}
        return client.post(f"/admin/auth/user/{path.format(user.pk)}", form)

    checked = "SELECT auth_user is_superuser ORDER"
    overlap(partial(remove, root, rita), partial(remove, other, bob()), pause_after=checked)
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


def test_the_only_administrator_cannot_be_deleted(root: Client) -> None:
    assert root.post(f"/admin/auth/user/{bob().pk}/delete/", {"post": "yes"}).status_code == 403
    form = {"action": "delete_selected", "_selected_action": [bob().pk], "post": "yes"}
    assert root.post("/admin/auth/user/", form).status_code == 403
    assert User.objects.filter(username="bob").exists()


def test_a_deletion_of_all_administrators_is_refused_and_not_recorded(root: Client) -> None:
    rita = user_make("rita", is_staff=True, is_superuser=True)
    form = {"action": "delete_selected", "_selected_action": [bob().pk, rita.pk], "post": "yes"}
    assert root.post("/admin/auth/user/", form).status_code == 403
    assert User.objects.filter(is_active=True).count() == 2
    recorded = AuditEntry.objects.filter(action="delete").values_list("object_id", flat=True)
    assert not recorded
    root.post("/admin/auth/user/", {**form, "_selected_action": [rita.pk]})
    assert list(recorded.all()) == [str(rita.pk)]


@pytest.mark.parametrize("usable", ["true", "false"])
def test_a_new_users_password_is_hashed_before_the_pages_transaction(
    transactional_db: None, root: Client, monkeypatch: pytest.MonkeyPatch, usable: str
) -> None:
    hasher, within = type(get_hasher()), []
    encode = hasher.encode

    def noted(*given: Any) -> str:
        within.append(connection.in_atomic_block)
        return encode(*given)

    monkeypatch.setattr(hasher, "encode", noted)
    password = "a long one, twice" if usable == "true" else ""
    form = {"username": "dora", "password1": password, "password2": password, "usable_password": usable}
    assert root.post("/admin/auth/user/add/", form).status_code == 302
    assert within == [False] * (usable == "true")  # others would wait for the transaction
    dora = User.objects.get(username="dora")
    assert (dora.has_usable_password(), dora.check_password("a long one, twice")) == (usable == "true",) * 2


def test_a_new_user_needs_the_same_password_twice(root: Client) -> None:
    form = {"username": "dora", "password1": "a long one, twice", "password2": "another", "usable_password": "true"}
    assert "didn’t match" in root.post("/admin/auth/user/add/", form).content.decode()
    assert not User.objects.filter(username="dora").exists()


def delete_one(client: Client, user: User, **form: Any) -> Any:
    return client.post(f"/admin/auth/user/{user.pk}/delete/", form)


def delete_in_list(client: Client, user: User, **form: Any) -> Any:
    return client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [user.pk], **form})


@pytest.mark.parametrize("delete", [delete_one, delete_in_list])
def test_deleting_a_user_asks_for_confirmation_and_erases_all_their_data(
    root: Client, alice: Owner, charlie: Owner, delete: Any, django_capture_on_commit_callbacks: Any
) -> None:
    for owner in (alice, charlie):
        memory_make(owner)
        session_make(owner)
    user = User.objects.get(username="alice")
    confirmation = root.get(f"/admin/auth/user/{user.pk}/delete/") if delete is delete_one else delete(root, user)
    assert "all data of alice: conversations, memories, keys and all history" in confirmation.content.decode()
    assert Memory.objects.filter(owner=alice).exists()
    with django_capture_on_commit_callbacks(execute=True):
        assert delete(root, user, post="yes").status_code == 302
    assert not User.objects.filter(username="alice").exists()
    assert list(Owner.objects.filter(user__username__in=["alice", "charlie"])) == [charlie]
    assert [memory.owner for memory in Memory.objects.all()] == [charlie]
    assert [session.owner for session in Session.objects.all()] == [charlie]
    assert list(AuditEntry.objects.filter(action="forget").values_list("actor", "owner")) == [("bob", "alice")]


def test_an_interrupted_deletion_is_finished_by_the_sweep(root: Client, alice: Owner) -> None:
    memory_make(alice)
    assert delete_one(root, alice.user, post="yes").status_code == 302  # on_commit callbacks do not run in the test
    assert not User.objects.get(username="alice").is_active
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert not User.objects.filter(username="alice").exists()
    assert not Memory.objects.exists()


def test_a_user_without_data_can_be_deleted(root: Client) -> None:
    user = user_make("root", is_staff=True, is_superuser=True)
    assert delete_one(root, user, post="yes").status_code == 302
    assert not User.objects.filter(username="root").exists()


@pytest.fixture
def staff() -> Client:
    """Return a client of a staff member who manages users, groups and keys, but is not an administrator."""
    names = [f"{verb}_{model}" for verb in ("view", "add", "change", "delete") for model in ("user", "group", "apikey")]
    user = user_make("sue", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(user)
    return client


def sue() -> User:
    return User.objects.get(username="sue")


def test_staff_cannot_assign_roles(staff: Client, charlie: Owner) -> None:
    group = Group.objects.create(name="readers")
    roles = {**ADMINISTRATOR, "groups": [group.pk], "user_permissions": [Permission.objects.first().pk]}  # type: ignore[union-attr]
    assert change(staff, charlie.user, **roles, first_name="Charles").status_code == 302
    user = User.objects.get(username="charlie")
    assert (user.first_name, user.is_staff, user.is_superuser) == ("Charles", False, False)
    assert not user.groups.exists()
    assert not user.user_permissions.exists()


@pytest.mark.any_database
@pytest.mark.parametrize("name", ["sue", "root", "auditor"])
def test_staff_cannot_change_users_with_a_role(staff: Client, name: str) -> None:
    user = sue() if name == "sue" else user_make(name, is_staff=True, is_superuser=name == "root")
    page = f"/admin/auth/user/{user.pk}"
    assert change(staff, user, **ADMINISTRATOR).status_code == 403
    new = {"usable_password": "true", "password1": "a-new-password-1", "password2": "a-new-password-1"}
    assert staff.post(f"{page}/password/", new).status_code == 403
    assert staff.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    assert delete_in_list(staff, user, post="yes").status_code == 403
    user.refresh_from_db()
    assert (user.is_superuser, user.has_usable_password()) == (name == "root", False)


@pytest.mark.parametrize(("name", "remaining_attempts"), [("charlie", 0), ("root", 1)])
def test_staff_cannot_unlock_users_with_a_role(staff: Client, name: str, remaining_attempts: int) -> None:
    user = user_make(name, is_staff=remaining_attempts == 1, is_superuser=remaining_attempts == 1)
    AccessAttempt.objects.create(username=name, failures_since_start=10)
    answer = staff.post("/admin/auth/user/", {"action": "unlock_sign_in", "_selected_action": [user.pk]})
    assert (answer.status_code, AccessAttempt.objects.count()) == (
        403 if remaining_attempts else 302,
        remaining_attempts,
    )


def test_deleting_a_group_lists_its_name_only(root: Client) -> None:
    group = Group.objects.create(name="readers")
    group.permissions.add(*Permission.objects.all()[:2])
    bob().groups.add(group)
    html = root.get(f"/admin/auth/group/{group.pk}/delete/").content.decode()
    assert "readers" in html
    assert "Group_permissions object" not in html
    assert "relationship" not in html
    assert root.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Group.objects.filter(pk=group.pk).exists()


def test_staff_cannot_change_groups(staff: Client) -> None:
    group = Group.objects.create(name="readers")
    sue().groups.add(group)
    form = {"name": "readers", "permissions": [Permission.objects.first().pk]}  # type: ignore[union-attr]
    assert staff.get(f"/admin/auth/group/{group.pk}/change/").status_code == 200
    assert staff.post(f"/admin/auth/group/{group.pk}/change/", form).status_code == 403
    assert staff.post("/admin/auth/group/add/", {"name": "writers"}).status_code == 403
    assert staff.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert not group.permissions.exists()


def test_staff_cannot_create_keys_for_users_with_a_role(staff: Client, charlie: Owner) -> None:
    root = owner_for_user(user_make("root", is_staff=True, is_superuser=True))
    form = {"name": "mine", "requests_per_minute": "0"}
    refused = staff.post("/admin/gateway/apikey/add/", {**form, "owner": str(root.pk)})
    assert "Only an administrator can create keys" in refused.content.decode()
    assert not ApiKey.objects.exists()
    assert staff.post("/admin/gateway/apikey/add/", {**form, "owner": str(charlie.pk)}).status_code == 200
    assert ApiKey.objects.get().owner == charlie


@pytest.mark.parametrize("model", ["user", "agent"])
def test_staff_who_may_only_add_rows_are_offered_no_page_that_refuses_them(model: str) -> None:
    user = user_make("sue", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename=f"add_{model}"))
    client = Client()
    client.force_login(user)
    app = "auth" if model == "user" else "gateway"
    home = client.get("/admin/").content.decode()
    links = set(re.findall(rf'href="(/admin/{app}/{model}/[^"]*)"', home))
    for link in tuple(links):
        links |= set(re.findall(rf'href="(/admin/{app}/{model}/[^"]*)"', client.get(link).content.decode()))
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)
    assert links == (set() if model == "user" else {"/admin/gateway/agent/add/"})
