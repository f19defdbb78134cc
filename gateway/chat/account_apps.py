"""The connected apps on the account page."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from gateway.models import ApiKey
from gateway.oauth.addresses import resource_of
from gateway.oauth.connections import app_disconnect
from gateway.oauth.consent import redirect_words
from memories.audit.log import actor_of
from memories.viewers import Viewer, form_view


@form_view
def app_end(request: HttpRequest, viewer: Viewer, key_id: UUID) -> HttpResponse:
    """Disconnect one of the viewer's apps; 404 for another owner's."""
    app_disconnect(get_object_or_404(_rows(viewer), pk=key_id), by=actor_of(request.user))
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
                "used": used_words(viewer, key),
                "made": f"connected {viewer.day(key.created_at)}",
            }
            for key in _rows(viewer)
        ],
    }


def used_words(viewer: Viewer, key: ApiKey) -> str:
    """Return a phrase that says when a key or a connected app was last used."""
    return f"Last used {viewer.near_day(key.last_used_at)}" if key.last_used_at else "Never used"


def _places(uris: str) -> str:
    return ", ".join(dict.fromkeys(map(redirect_words, uris.split())))


def _rows(viewer: Viewer) -> Any:
    rows = ApiKey.objects.filter(owner=viewer.owner, client__isnull=False, revoked_at=None)
    return rows.select_related("client", "owner").order_by("-created_at")
