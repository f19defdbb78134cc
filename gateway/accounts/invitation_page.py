"""`/invitation/TOKEN/`: the page where an invited person chooses a name and a password."""

from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import UserCreationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from gateway.accounts.invitations import invitation_accept, invitation_find
from gateway.accounts.sign_in import PASSWORD_BACKEND
from memories.errors import Conflict, Overloaded


class AccountForm(UserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """A name and a password, twice."""


@never_cache
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show the form, or create the account and sign the person in. 404 if the invitation is no longer open."""
    row = invitation_find(token) if settings.PASSWORDS else None
    if row is None:
        return _page(request, status=404, over=True)
    if request.user.is_authenticated:
        return _page(request, somebody=request.user)
    form = AccountForm(request.POST or None)
    if not form.is_valid():
        return _page(request, status=400 if form.is_bound else 200, form=form, invited=row)
    try:
        user = invitation_accept(row, form)
    except (Conflict, Overloaded) as refusal:
        return _page(request, status=refusal.http_status, form=form, invited=row, refusal=str(refusal))
    login(request, user, backend=PASSWORD_BACKEND)
    return redirect("/")


def _page(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "gateway/invitation.html", context, status=status)
