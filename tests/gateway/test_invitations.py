"""Invitations: created in the admin, accepted once at /invitation/TOKEN/"""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.test import Client
from django.utils import timezone

from gateway.accounts import invitations
from gateway.accounts.invitations import invitation_accept, invitation_find, invitation_mail, invitations_purge
from gateway.models import Invitation
from memories.audit.auditors import AUDITORS
from memories.errors import Conflict
from memories.models import AuditEntry, Owner
from tests.admin_rows import staff_client, user_make
from tests.gateway.test_password_reset import SERVER
from tests.pages import client_of, html_of, text_of

pytestmark = pytest.mark.django_db
CHOSEN = {"username": "dora", "password1": "quite a long one", "password2": "quite a long one"}


def invite(client: Client | None = None, *, email: str = "", role: str = "user", days: int = 7) -> str:
    """Create an invitation in the admin and return the path of its link."""
    page = (client or staff_client(superuser=True)).post(
        "/admin/gateway/invitation/add/", {"email": email, "role": role, "days": days}
    )
    found = re.search(r"<code>http://testserver(/invitation/[\w-]+/)</code>", page.content.decode())
    assert found, text_of(page.content.decode())[-600:]
    return found[1]


def test_the_link_creates_an_account_once(client: Client) -> None:
    path = invite(email="dora@example.org")
    assert "dora@example.org" in html_of(client, path)
    answer = client.post(path, CHOSEN)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    user = User.objects.get(username="dora")
    assert (user.email, user.is_staff, user.check_password("quite a long one")) == ("dora@example.org", False, True)
    assert Owner.objects.filter(user=user).exists()
    assert "dora" in html_of(client, "/account/")
    assert "no longer works" in html_of(Client(), path, 404)
    assert Client().post(path, CHOSEN | {"username": "eve"}).status_code == 404
    assert not User.objects.filter(username="eve").exists()
    entries = AuditEntry.objects.filter(kind="invitation").order_by("pk").values_list("action", "actor")
    assert list(entries) == [("invite", "bob"), ("invite_accept", "dora")]


def test_of_two_simultaneous_uses_one_creates_an_account() -> None:
    row = invitation_find(invite().split("/")[2])
    assert row is not None
    forms = [UserCreationForm(CHOSEN), UserCreationForm(CHOSEN | {"username": "eve"})]
    assert all(form.is_valid() for form in forms)
    invitation_accept(row, forms[0])
    with pytest.raises(Conflict):
        invitation_accept(row, forms[1])
    assert not User.objects.filter(username="eve").exists()


def test_a_password_is_hashed_before_the_transaction(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing waits for its turn, and the transaction keeps all other writers waiting."""
    row = invitation_find(invite().split("/")[2])
    assert row is not None
    form, in_transaction = UserCreationForm(CHOSEN), []
    assert form.is_valid()
    monkeypatch.setattr(User, "set_password", lambda *given: in_transaction.append(connection.in_atomic_block))
    invitation_accept(row, form)
    assert in_transaction == [False]


def test_a_user_name_taken_meanwhile_is_refused_and_keeps_the_invitation() -> None:
    client = staff_client(superuser=True)
    rows = [invitation_find(invite(client).split("/")[2]) for _ in range(2)]
    assert rows[0] is not None
    assert rows[1] is not None
    forms = [UserCreationForm(CHOSEN), UserCreationForm(CHOSEN)]
    assert all(form.is_valid() for form in forms)
    invitation_accept(rows[0], forms[0])
    with pytest.raises(Conflict, match="name"):
        invitation_accept(rows[1], forms[1])
    rows[1].refresh_from_db()
    assert (rows[1].accepted_at, rows[1].user) == (None, None)


def test_only_the_hash_of_the_token_is_stored(client: Client) -> None:
    token = invite(email="dora@example.org").split("/")[2]
    stored = [*Invitation.objects.values(), *AuditEntry.objects.values()]
    assert token not in str(stored)


def test_an_invitation_expires_after_its_days(client: Client) -> None:
    path = invite(days=2)
    with time_machine.travel(timezone.now() + timedelta(days=2, minutes=1)):
        assert client.get(path).status_code == 404
    assert client.get(path).status_code == 200


def test_an_administrator_revokes_an_invitation(client: Client) -> None:
    root = staff_client(superuser=True)
    path = invite(root)
    row = Invitation.objects.get()
    assert root.post(f"/admin/gateway/invitation/{row.pk}/action/", {"verb": "revoke"}).status_code == 302
    assert client.post(path, CHOSEN).status_code == 404
    assert AuditEntry.objects.filter(action="invite_revoke", object_id=str(row.pk)).count() == 1
    assert "Revoked" in html_of(root, "/admin/gateway/invitation/")


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("role", "staff", "superuser", "auditor"),
    [("auditor", True, False, True), ("staff", True, False, False), ("administrator", True, True, False)],
)
def test_the_account_has_the_role(client: Client, role: str, staff: bool, superuser: bool, auditor: bool) -> None:
    client.post(invite(role=role), CHOSEN)
    user = User.objects.get(username="dora")
    assert (user.is_staff, user.is_superuser) == (staff, superuser)
    assert user.groups.filter(name=AUDITORS).exists() == auditor


def test_only_an_administrator_invites_with_a_role() -> None:
    staff = staff_client(may=("gateway.add_invitation", "gateway.view_invitation"))
    refused = staff.post("/admin/gateway/invitation/add/", {"role": "administrator", "days": 7})
    assert "Only an administrator can invite people with a role" in refused.content.decode()
    assert not Invitation.objects.exists()
    assert invite(staff)


def test_the_form_says_what_each_role_may_do() -> None:
    page = text_of(html_of(staff_client(superuser=True), "/admin/gateway/invitation/add/"))
    assert "Auditor. Also sees and corrects everybody's memories" in page.replace("&#x27;", "'")
    assert "Administrator. May do everything" in page


def test_an_address_with_an_account_is_not_invited(alice: Owner) -> None:
    User.objects.filter(pk=alice.user_id).update(email="alice@example.org")
    answer = staff_client(superuser=True).post(
        "/admin/gateway/invitation/add/", {"email": "Alice@Example.org", "role": "user", "days": 7}
    )
    assert "An account with this address already exists." in answer.content.decode()


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"username": "ALICE"}, "already exists"),
        ({"username": "a/b"}, "valid username"),
        ({"password1": "short", "password2": "short"}, "at least 10 characters"),
        ({"password2": "another long one"}, "match"),
    ],
)
def test_a_refused_form_says_why_and_keeps_the_invitation(
    client: Client, alice: Owner, changed: dict[str, str], said: str
) -> None:
    path = invite()
    answer = client.post(path, CHOSEN | changed)
    assert (answer.status_code, said in answer.content.decode()) == (400, True)
    assert client.post(path, CHOSEN).status_code == 302


def test_a_signed_in_visitor_cannot_accept_an_invitation(alice: Owner) -> None:
    path = invite()
    assert "You are already signed in as alice." in html_of(client_of(alice), path)
    assert client_of(alice).post(path, CHOSEN).status_code == 200
    assert not User.objects.filter(username="dora").exists()


def test_an_invitation_is_mailed_if_mail_is_configured(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MAIL = SERVER
    queued: list[tuple[object, ...]] = []
    monkeypatch.setattr(invitations, "enqueue_kept", lambda task, *arguments: queued.append(arguments))
    path = invite(email="dora@example.org")
    [job] = [tuple(map(str, arguments)) for arguments in queued]
    assert path.split("/")[2] not in job
    assert invitation_mail(*job)
    [message] = mail.outbox
    assert (message.to, f"http://testserver{path}" in message.body) == (["dora@example.org"], True)
    assert not invitation_mail(*job), "mailed twice"
    assert Invitation.objects.get().mailed_at is not None


def test_invitations_are_off_without_passwords(settings: Any, client: Client) -> None:
    path = invite()
    settings.PASSWORDS = False
    assert client.get(path).status_code == 404
    root = Client()
    root.force_login(user_make("root", is_staff=True, is_superuser=True))
    assert root.get("/admin/gateway/invitation/add/").status_code == 403


def test_old_invitations_are_deleted_after_a_month_or_with_their_account(client: Client) -> None:
    path = invite()
    client.post(path, CHOSEN)
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        invitations_purge()
    assert Invitation.objects.count() == 1
    User.objects.get(username="dora").delete()
    assert not Invitation.objects.exists()
    root = Client()
    root.force_login(User.objects.get(username="bob"))
    invite(root)
    with time_machine.travel(timezone.now() + timedelta(days=38)):
        invitations_purge()
    assert not Invitation.objects.exists()
