"""The viewer of a page: the owner and their time zone. Decorators for the views of every app."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memories.errors import NotFound
from memories.models import Owner
from memories.services import owner_for_user


@dataclass(frozen=True, slots=True)
class Viewer:
    """The owner, and the zone their times are shown in."""

    owner: Owner
    zone: ZoneInfo

    @property
    def actor(self) -> str:
        return f"user:{self.owner.user_id}"

    def local(self, moment: datetime) -> datetime:
        """Return a moment in the viewer's time zone."""
        return moment.astimezone(self.zone)

    def day(self, moment: datetime) -> str:
        """`20 Nov`, with the year when it is another one."""
        there, now = self.local(moment), self.local(timezone.now())
        year = "" if there.year == now.year else f" {there.year}"
        return f"{there.day} {there:%b}{year}"

    def near_day(self, moment: datetime) -> str:
        """`today`, `yesterday`, else like day()."""
        there, now = self.local(moment).date(), self.local(timezone.now()).date()
        if there == now:
            return "today"
        return "yesterday" if now - there == timedelta(days=1) else self.day(moment)

    def minute(self, moment: datetime) -> str:
        """`20 Nov, 09:41`."""
        return f"{self.day(moment)}, {self.local(moment):%H:%M}"


View = Callable[..., HttpResponse]


def zone_of(owner: Owner) -> ZoneInfo:
    """Return the owner's time zone; UTC when the stored name is unknown here."""
    try:
        return ZoneInfo(owner.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def _for_viewer(view: View) -> View:
    """Pass the view its viewer, and render the page in the viewer's time zone. What the view does not find is answered
    404."""

    @wraps(view)
    def with_viewer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return HttpResponse(status=401)
        owner = owner_for_user(request.user)
        zone = zone_of(owner)
        with timezone.override(zone):
            try:
                return view(request, Viewer(owner, zone), *args, **kwargs)
            except NotFound:
                return HttpResponse(status=404)

    return with_viewer


def _view(*decorators: Callable[[View], View]) -> Callable[[View], View]:
    """Return a decorator of views that are given their viewer; the first of `decorators` is the outermost."""

    def decorate(view: View) -> View:
        for decorator in (_for_viewer, *reversed(decorators)):
            view = decorator(view)
        return never_cache(view)

    return decorate


def _form_of_a_page(view: View) -> View:
    """Lead whoever is not signed in to the sign-in page, and from there to the page that the form is on, since the
    form's own address is for POST only. A form that a script sent, to replace a part of the page, gets status 401."""

    @wraps(view)
    def signed_in(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or "HX-Request" in request.headers:
            return view(request, *args, **kwargs)
        page = request.headers.get("Referer", "")
        ours = url_has_allowed_host_and_scheme(page, {request.get_host()})
        return redirect_to_login(urlsplit(page).path if ours else "/")

    return signed_in


page_view = _view(require_GET, login_required)  # of a page; who is not signed in is redirected to sign in
form_view = _view(require_POST, _form_of_a_page)  # that a form of a page is sent to
dialog_view = _view(require_http_methods(["GET", "POST"]), login_required)  # of a page whose form is sent back to it
# Of a part of a page, and of a write that a page's script asks for. Who was signed out gets status 401, since the
# sign-in page does not fit into a part.
fragment_view, action_view = _view(require_GET), _view(require_POST)
