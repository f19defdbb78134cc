"""/admin/auth/user/: at least one active administrator stays"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memories.admin.users import ONLY_ADMINISTRATOR
from tests.admin_rows import staff_client, user_make

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
