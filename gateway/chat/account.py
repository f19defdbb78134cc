"""The account page: password, logins, API keys, connected apps, time zone, export, and deletion of all data.

Forms redirect to the page on success and show their errors in it. A new key is shown once, in the response."""

import logging
from functools import cache
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from gateway.accounts.logins import login_begin, logins_end, other_logins
from gateway.accounts.sign_in import has_password, password_is_correct, signed_in_recently
from gateway.authentication import forget_keys
from gateway.chat.account_access import apps, keys, logins, user_of
from gateway.keys import own_key_create
from gateway.models import Session
from gateway.sockets import recheck_logins
from memories.audit.log import Action, actor_of, audit_record
from memories.database.batches import run_slices_within
from memories.errors import Conflict, InvalidRequest, Overloaded, RateLimited
from memories.forgetting import DELETE_SECONDS, erasure_begin, erasure_slices
from memories.models import Artifact, Erasure, Memory
from memories.password_forms import PasswordOnly
from memories.selectors import live_condition
from memories.services import is_only_administrator, owner_time_zone_set
from memories.storable import storable_text
from memories.viewers import Viewer, form_view, page_view
from scanning import is_blank

logger = logging.getLogger("daybook.account")
DELETE_LINE = "delete everything"
_DONE = {
    "password": "Password changed. Every other browser has to sign in again.",
    "signed-out": "That browser is signed out.",
    "signed-out-others": "Every other browser is signed out.",
    "zone": "Time zone saved.",
    "disconnected": "App disconnected. It is refused from now on.",
    "revoked": "Key revoked. Clients that use it are refused from now on.",
}
# The kinds that a deletion receipt lists; all others are summed up.
_RECEIPT_LABELS = {
    "memories": "memories",
    "revisions": "revisions",
    "artifact": "documents",
    "session": "sessions",
    "message": "messages",
    "reviewrun": "reviews",
    "consolidationrun": "consolidations",
    "apikey": "API keys",
    "notifications": "notices",
    "owner": "owners",
}


class _PasswordForm(PasswordOnly, PasswordChangeForm):
    """The current password, and the new one twice."""

    error_messages = {
        **PasswordChangeForm.error_messages,
        "password_incorrect": "The current password is not correct.",
    }


class _PasswordChanged(HttpResponseRedirect):
    """A redirect to the account page that makes open sockets check their login after the response was sent. Earlier,
    this browser would not have the cookie of its new login yet, and its own tabs would go to the sign-in page."""

    def __init__(self, owner_id: UUID) -> None:
        super().__init__("/account/?done=password")
        self._owner_id = owner_id

    def close(self) -> None:
        super().close()
        recheck_logins(self._owner_id)


@page_view
def account(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/account/`"""
    return _page(request, viewer, done=_DONE.get(request.GET.get("done", ""), ""))


@form_view
def password(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Change the password and end the user's other logins. 404 for accounts without a password."""
    if not has_password(user_of(request)):
        raise Http404
    try:
        password_is_correct(request, user_of(request), request.POST.get("old_password", ""))
        form = _PasswordForm(user_of(request), request.POST)
        valid = form.is_valid()
    except (RateLimited, Overloaded) as refusal:
        return _page(request, viewer, status=refusal.http_status, password_refusal=str(refusal))
    if not valid:
        return _page(request, viewer, status=400, password_form=form)
    user = form.save()
    update_session_auth_hash(request, user)
    login_begin(request, user)  # the browser's session has a new key
    logins_end(user, other_logins(request, user), by=actor_of(user))
    audit_record(Action.PASSWORD_CHANGE, actor=actor_of(user), kind="user", object_id=user.pk, owner=viewer.owner)
    return _PasswordChanged(viewer.owner.pk)


@form_view
def time_zone(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Set the time zone for displayed times."""
    try:
        owner_time_zone_set(viewer.owner.pk, request.POST.get("time_zone", ""))
    except InvalidRequest as error:
        return _page(request, viewer, status=400, zone_error=str(error))
    return redirect("/account/?done=zone")


@form_view
def key_create(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Create an API key. Its plain text is shown only in this response."""
    name = " ".join(storable_text(request.POST.get("name", "")).split())
    read_only = request.POST.get("read_only") == "on"
    try:
        if is_blank(name) or len(name) > 80:
            raise InvalidRequest("A key needs a name of 1 to 80 characters.")
        key, plain = own_key_create(owner=viewer.owner, name=name, read_only=read_only, by=actor_of(request.user))
        status, context = 200, {"new_key": key, "plain": plain}
    except (InvalidRequest, Conflict) as refusal:
        status, context = 400, {"key_error": str(refusal)}
    if request.headers.get("HX-Request"):
        return render(request, "gateway/account_keys.html", keys(viewer) | context)
    return _page(request, viewer, status=status, **context)


@form_view
def delete(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Erase all data of the viewer, who confirms with a typed phrase and the password. Sign them out and show the
    receipt, or the progress if it takes long."""
    user = user_of(request)
    try:
        _require_confirmation(request, user)
    except (InvalidRequest, RateLimited, Overloaded) as refusal:
        return _page(request, viewer, status=refusal.http_status, delete_error=str(refusal))
    erasure = erasure_begin(viewer.owner.pk, Erasure.Scope.ACCOUNT, by=actor_of(user))
    logout(request)
    forget_keys()
    recheck_logins(viewer.owner.pk)
    try:
        run_slices_within(erasure_slices(erasure), DELETE_SECONDS)
    except DatabaseError as error:
        logger.warning("Deletion %s continues in the background: %s", erasure.pk, error)
    # The page deletes the person's drafts in the browser.
    return render(request, "gateway/account_deleted.html", _progress(erasure) | {"former_owner": viewer.owner.pk})


def _require_confirmation(request: HttpRequest, user: Any) -> None:
    """Raise InvalidRequest unless the phrase was typed, and the password or a recent sign-in proves who it is. Raises
    RateLimited, Overloaded."""
    if request.POST.get("line", "").strip() != DELETE_LINE:
        raise InvalidRequest(f"Type “{DELETE_LINE}” exactly, without the quotes.")
    if not has_password(user):
        if not signed_in_recently(user):
            raise InvalidRequest("Sign out, sign in again, and come back within 15 minutes.")
    elif not password_is_correct(request, user, request.POST.get("password", "")):
        raise InvalidRequest("The password is not correct. Nothing was deleted.")


@never_cache
@require_safe
def deleting(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """The progress and the receipt of a deletion. The login is gone by then, so anyone with the URL may see this page,
    which shows only numbers."""
    erasure = get_object_or_404(Erasure.objects.exclude(scope=Erasure.Scope.MEMORIES), pk=erasure_id)
    return render(request, "gateway/account_deleted.html", _progress(erasure))


def _progress(erasure: Erasure) -> dict[str, Any]:
    return {
        "erasure": erasure,
        "receipt": receipt_rows(erasure.erased),
        "keeps_login": erasure.scope == Erasure.Scope.OWNER,
    }


def receipt_rows(erased: dict[str, int]) -> list[tuple[str, int]]:
    """Return the (label, count) rows of a deletion receipt."""
    rows = [(label, erased.get(name, 0)) for name, label in _RECEIPT_LABELS.items()]
    other = sum(count for name, count in erased.items() if name not in _RECEIPT_LABELS)
    return [(label, count) for label, count in [*rows, ("other entries", other)] if count]


def _page(request: HttpRequest, viewer: Viewer, *, status: int = 200, **extra: Any) -> HttpResponse:
    user, owner_id = user_of(request), viewer.owner.pk
    context = {
        "tab": "account",
        "password_form": _PasswordForm(user),
        "zone": viewer.zone.key,
        "zones": _zones(),
        "has_password": has_password(user),
        "delete_line": DELETE_LINE,
        "keeps_login": is_only_administrator(user),
        "memories": Memory.objects.filter(live_condition(), owner_id=owner_id).count(),
        "documents": Artifact.objects.filter(owner_id=owner_id, deleted_at__isnull=True).count(),
        "sessions": Session.objects.filter(owner_id=owner_id).count(),
    }
    parts = keys(viewer) | apps(request, viewer) | logins(request, viewer)
    return render(request, "gateway/account.html", context | parts | extra, status=status)


@cache
def _zones() -> tuple[str, ...]:
    """Return the time zones to choose from."""
    excluded = ("Etc/", "SystemV/", "US/", "posix/", "right/")
    places = (name for name in available_timezones() if "/" in name and not name.startswith(excluded))
    return ("UTC", *sorted(places))
