"""Invitations: links, created by an administrator, with which one person can create an account; and the page
`/invitation/TOKEN/`, where that person chooses a name and a password.

The token of a link is derived from the signing key, as webhook secrets are, so it need not be stored for a mail that is
sent later. The row is found by the token's hash, even after the signing key was replaced."""

import base64
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from gateway.accounts.mails import Outcome, mail_configured, mail_try
from gateway.accounts.roles import USER, role_set
from gateway.accounts.settings import ROLES
from gateway.accounts.sign_in import PASSWORD_BACKEND
from gateway.jobs import enqueue_again, enqueue_kept
from gateway.keys import key_hash
from gateway.models import Invitation
from memories.audit.log import Action, Actor, actor_of, audit_record
from memories.errors import Conflict, Forbidden, InvalidRequest, Overloaded
from memories.ids import uuid7
from memories.services import owner_for_user

TASK = "gateway.accounts.invitations.invitation_mail"
MAX_DAYS = 90
RETENTION = timedelta(days=30)
"""How long a closed invitation stays listed."""
_KIND = "invitation"


@transaction.atomic
def invitation_create(*, email: str, role: str, days: int, by: User, origin: str) -> tuple[Invitation, str]:
    """Create an invitation and return it with its link. It is mailed if mail is configured and there is an address.
    Raises InvalidRequest if the address has an account, Forbidden for a role that only administrators may assign."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidRequest(f"An invitation is valid for 1 to {MAX_DAYS} days.", param="days")
    if role not in ROLES or (role != USER and not by.is_superuser):
        raise Forbidden("Only an administrator can invite people with a role in the administration.")
    if email and User.objects.filter(email__iexact=email).exists():
        raise InvalidRequest("An account with this address already exists.", param="email")
    row = Invitation(pk=uuid7(), email=email, role=role, invited_by=by)
    token = _token(row.pk)
    row.sha256, row.expires_at = key_hash(token), timezone.now() + timedelta(days=days)
    row.save(force_insert=True)
    audit_record(Action.INVITE, actor=actor_of(by), kind=_KIND, object_id=row.pk, note=f"Role: {role}.")
    if email and mail_configured():
        enqueue_kept(TASK, str(row.pk), origin)
    return row, f"{origin}{_path(token)}"


@transaction.atomic
def invitation_revoke(row: Invitation, *, by: Actor) -> None:
    """Revoke an open invitation, so that its link is refused."""
    if _open().filter(pk=row.pk).update(revoked_at=timezone.now()):
        audit_record(Action.INVITE_REVOKE, actor=by, kind=_KIND, object_id=row.pk)


def invitation_find(token: str) -> Invitation | None:
    """Return the open invitation of a token, or None if it was used or revoked, or has expired."""
    return _open().filter(sha256=key_hash(token[:200])).first()


def invitation_accept(row: Invitation, form: "UserCreationForm[User]") -> User:
    """Create the account from a valid form. Raises Conflict if the invitation or name was just taken, Overloaded."""
    user: User = form.save(commit=False)  # hashes the password, so outside the transaction
    with transaction.atomic():
        if not _open().filter(pk=row.pk).update(accepted_at=timezone.now()):
            raise Conflict("This invitation was already used. Ask for a new one.")
        if not User.objects.filter(email__iexact=row.email).exists():
            user.email = row.email
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError as error:  # another request took the name after the form was validated
            raise Conflict("This name has just been taken. Choose another one.") from error
        role_set(user, row.role)
        Invitation.objects.filter(pk=row.pk).update(user=user)
        owner = owner_for_user(user)
        audit_record(Action.INVITE_ACCEPT, actor=actor_of(user), kind=_KIND, object_id=row.pk, owner=owner)
    return user


def invitation_mail(invitation_id: str, origin: str, attempt: str = "0") -> bool:
    """Job: mail an invitation. Return True if the mail was sent."""
    row = _open().filter(pk=UUID(invitation_id), mailed_at=None).exclude(email="").first()
    if row is None or key_hash(token := _token(row.pk)) != row.sha256:
        return False
    address = f"{origin}{_path(token)}"
    outcome = mail_try(row.email, "Your invitation", "invitation", address=address, expires=row.expires_at)
    if outcome is Outcome.SENT:
        Invitation.objects.filter(pk=row.pk).update(mailed_at=timezone.now())
    if outcome is Outcome.LATER:
        enqueue_again(TASK, invitation_id, origin, attempt=attempt)
    return outcome is Outcome.SENT


def invitation_state(row: Invitation) -> str:
    """Return `open`, `accepted`, `revoked` or `expired`."""
    if row.accepted_at:
        return "accepted"
    if row.revoked_at:
        return "revoked"
    return "open" if row.expires_at > timezone.now() else "expired"


def invitations_purge() -> None:
    """Delete invitations that were closed more than RETENTION ago; their entries in the audit log remain."""
    cut_off = timezone.now() - RETENTION
    over = Q(expires_at__lt=cut_off) | Q(accepted_at__lt=cut_off) | Q(revoked_at__lt=cut_off)
    Invitation.objects.filter(over).delete()


def _open() -> QuerySet[Invitation]:
    return Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())


def _token(invitation_id: UUID) -> str:
    digest = salted_hmac("daybook.invitation", str(invitation_id), algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _path(token: str) -> str:
    return reverse("invitation", args=[token])


@never_cache
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show the form, or create the account and sign the person in. 404 if the invitation is no longer open."""
    row = invitation_find(token) if settings.PASSWORDS else None
    if row is None:
        return _invitation_page(request, status=404, over=True)
    if request.user.is_authenticated:
        return _invitation_page(request, somebody=request.user)
    form: UserCreationForm[User] = UserCreationForm(request.POST or None)
    if not form.is_valid():
        return _invitation_page(request, status=400 if form.is_bound else 200, form=form, invited=row)
    try:
        user = invitation_accept(row, form)
    except (Conflict, Overloaded) as refusal:
        return _invitation_page(request, status=refusal.http_status, form=form, invited=row, refusal=str(refusal))
    login(request, user, backend=PASSWORD_BACKEND)
    return redirect("/")


def _invitation_page(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "gateway/invitation.html", context, status=status)
