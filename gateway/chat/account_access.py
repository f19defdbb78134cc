"""What has access to an account: its API keys, connected apps and logins, as lists on the account page, with buttons
that end each of them."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from gateway.accounts.logins import login_seen, logins_end, logins_of, other_logins
from gateway.authentication import forget_keys
from gateway.keys import api_key_revoke, plain_keys, rate_words
from gateway.models import ApiKey, Login
from gateway.oauth.addresses import resource_of
from gateway.oauth.connections import app_disconnect
from gateway.oauth.consent import redirect_words
from memories.audit.log import actor_of
from memories.bidi import isolated
from memories.viewers import Viewer, form_view

_MAX_LOGINS = 50


def user_of(request: HttpRequest) -> Any:
    """Return the signed-in user; the view decorators have checked that there is one."""
    return request.user


@form_view
def key_revoke(request: HttpRequest, viewer: Viewer, key_id: UUID) -> HttpResponse:
    """Revoke one of the viewer's keys; 404 for another owner's."""
    api_key_revoke(get_object_or_404(plain_keys(), owner=viewer.owner, pk=key_id), by=actor_of(request.user))
    forget_keys()
    return redirect("/account/?done=revoked")


def keys(viewer: Viewer) -> dict[str, Any]:
    """Return the context of gateway/account_keys.html."""
    rows = plain_keys().filter(owner=viewer.owner, revoked_at__isnull=True).order_by("-created_at")
    return {
        "keys": [
            {
                "key": key,
                "may": _permissions_text(key),
                "used": _used_words(viewer, key),
                "name": isolated(key.name),
                "made": f"created {viewer.day(key.created_at)}" + _expiry_text(viewer, key),
            }
            for key in rows
        ]
    }


def _expiry_text(viewer: Viewer, key: ApiKey) -> str:
    if key.expires_at is None:
        return ""
    return f" · {'expired' if key.expires_at <= timezone.now() else 'expires'} {viewer.day(key.expires_at)}"


def _permissions_text(key: ApiKey) -> str:
    parts = ["May read" if key.read_only else "May read and write"]
    parts += [f"only {', '.join(key.agents)}"] if key.agents else []
    parts += ["may name end users"] if key.trusted else []
    return ", ".join(parts + rate_words(key))


@form_view
def app_end(request: HttpRequest, viewer: Viewer, key_id: UUID) -> HttpResponse:
    """Disconnect one of the viewer's apps; 404 for another owner's."""
    app_disconnect(get_object_or_404(_apps(viewer), pk=key_id), by=actor_of(request.user))
    return redirect("/account/?done=disconnected")


def apps(request: HttpRequest, viewer: Viewer) -> dict[str, Any]:
    """Return the context of gateway/account_apps.html."""
    return {
        "mcp_address": resource_of(request),
        "apps": [
            {
                "key": key,
                "may": f"May {'read' if key.read_only else 'read and write'} the book {key.books[0]}",
                "place": _places(key.client.redirect_uris) if key.client else "",
                "used": _used_words(viewer, key),
                "name": isolated(key.name),
                "made": f"connected {viewer.day(key.created_at)}",
            }
            for key in _apps(viewer)
        ],
    }


def _used_words(viewer: Viewer, key: ApiKey) -> str:
    return f"last used {viewer.near_day(key.last_used_at)}" if key.last_used_at else "never used"


def _places(uris: str) -> str:
    return ", ".join(dict.fromkeys(map(redirect_words, uris.split())))


def _apps(viewer: Viewer) -> Any:
    rows = ApiKey.objects.filter(owner=viewer.owner, client__isnull=False, revoked_at=None)
    return rows.select_related("client", "owner").order_by("-created_at")


@form_view
def login_end(request: HttpRequest, viewer: Viewer, login_id: UUID) -> HttpResponse:
    """Sign one of the viewer's browsers out; 404 for another user's."""
    user = user_of(request)
    if not logins_end(user, logins_of(user).filter(pk=login_id), by=actor_of(user)):
        raise Http404
    return redirect("/account/?done=signed-out")


@form_view
def others_end(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Sign the viewer out of all other browsers."""
    user = user_of(request)
    logins_end(user, other_logins(request, user), by=actor_of(user))
    return redirect("/account/?done=signed-out-others")


def logins(request: HttpRequest, viewer: Viewer) -> dict[str, Any]:
    """Return the context of gateway/account_logins.html."""
    login_seen(request)
    here = request.session.session_key
    rows = [
        {"login": row, "here": row.session_id == here, "said": _description(viewer, row, here=row.session_id == here)}
        for row in logins_of(user_of(request))[:_MAX_LOGINS]
    ]
    return {"logins": rows, "other_logins": any(not row["here"] for row in rows)}


def _description(viewer: Viewer, row: Login, *, here: bool) -> str:
    seen = "This browser" if here else f"Last seen {viewer.minute(row.seen_at)}"
    return f"{seen} · signed in {viewer.day(row.started_at)}"
