"""The list of logins on the account page, with buttons that end one login or all others."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from gateway.accounts.logins import login_seen, logins_end, logins_of, other_logins
from gateway.models import Login
from memories.audit.log import actor_of
from memories.viewers import Viewer, form_view

_MAX_SHOWN = 50


def user_of(request: HttpRequest) -> Any:
    """Return the signed-in user; the view decorators have checked that there is one."""
    return request.user


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
        for row in logins_of(user_of(request))[:_MAX_SHOWN]
    ]
    return {"logins": rows, "other_logins": any(not row["here"] for row in rows)}


def _description(viewer: Viewer, row: Login, *, here: bool) -> str:
    seen = "This browser" if here else f"Last seen {viewer.minute(row.seen_at)}"
    return f"{seen} · signed in {viewer.day(row.started_at)}"
