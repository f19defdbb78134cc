"""The viewer of a page, and the view decorators of every app."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from memories.database.access import release_connection
from memories.errors import NotFound, Overloaded
from memories.models import Owner
from memories.services import owner_for_user

PAGES_AT_ONCE = 4
"""Pages of one owner that a process renders at once. One of a long conversation takes 30 MB and a second."""


@dataclass(slots=True)
class _Places:
    """The places of one owner, and the number of requests that have one or wait for one."""

    free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(PAGES_AT_ONCE))
    users: int = 0


_places: dict[UUID, _Places] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Viewer:
    """The signed-in owner, and the time zone in which times are shown."""

    owner: Owner
    zone: ZoneInfo

    @property
    def actor(self) -> str:
        return f"user:{self.owner.user_id}"

    def local(self, moment: datetime) -> datetime:
        """Return a moment in the viewer's time zone."""
        return moment.astimezone(self.zone)

    def day(self, moment: datetime) -> str:
        """`20 Nov`, with the year if it is not the current one."""
        there, now = self.local(moment), self.local(timezone.now())
        year = "" if there.year == now.year else f" {there.year}"
        return f"{there.day} {there:%b}{year}"

    def near_day(self, moment: datetime) -> str:
        """`today`, `yesterday`, else the same as day()."""
        there, now = self.local(moment).date(), self.local(timezone.now()).date()
        return near_day_word(there, now) or self.day(moment)

    def minute(self, moment: datetime) -> str:
        """`20 Nov, 09:41`."""
        return f"{self.day(moment)}, {self.local(moment):%H:%M}"

    def near_minute(self, moment: datetime) -> str:
        """`today, 18:41`, else the same as minute()."""
        return f"{self.near_day(moment)}, {self.local(moment):%H:%M}"


def near_day_word(day: date, today: date) -> str:
    """Return `today`, `yesterday`, or "" for any other day."""
    return {0: "today", 1: "yesterday"}.get((today - day).days, "")


View = Callable[..., HttpResponse]


def zone_of(owner: Owner) -> ZoneInfo:
    """Return the owner's time zone, or UTC if the stored name is unknown on this system."""
    try:
        return ZoneInfo(owner.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


@contextmanager
def _place(owner_id: UUID) -> Iterator[None]:
    """Hold one of the owner's PAGES_AT_ONCE places. Raises Overloaded after waiting for DB_BUSY_SECONDS."""
    with _lock:
        places = _places.setdefault(owner_id, _Places())
        places.users += 1
    try:
        if not places.free.acquire(blocking=False):
            release_connection()
            if not places.free.acquire(timeout=settings.DB_BUSY_SECONDS):
                raise Overloaded("You have opened many pages at once. Try again in a moment.", retry_after=2)
        try:
            yield
        finally:
            places.free.release()
    finally:
        with _lock:
            places.users -= 1
            if not places.users:
                del _places[owner_id]


def _for_viewer(view: View) -> View:
    """Pass the viewer to the view and activate the viewer's time zone. NotFound becomes a 404 response."""

    @wraps(view)
    def with_viewer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return HttpResponse(status=401)
        owner = owner_for_user(request.user)
        zone = zone_of(owner)
        with _place(owner.pk), timezone.override(zone):
            try:
                return view(request, Viewer(owner, zone), *args, **kwargs)
            except NotFound:
                return HttpResponse(status=404)

    return with_viewer


def _view(*decorators: Callable[[View], View]) -> Callable[[View], View]:
    """Return a decorator for views that take a viewer, which applies `decorators`, the first one outermost."""

    def decorate(view: View) -> View:
        for decorator in (_for_viewer, *reversed(decorators)):
            view = decorator(view)
        return never_cache(view)

    return decorate


def _redirect_to_form_page(view: View) -> View:
    """Redirect anonymous users to the sign-in page, and from there to the page with the form, since the form's own URL
    accepts only POST. A form submitted by htmx gets status 401 instead."""

    @wraps(view)
    def signed_in(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or "HX-Request" in request.headers:
            return view(request, *args, **kwargs)
        page = request.headers.get("Referer", "")
        ours = url_has_allowed_host_and_scheme(page, {request.get_host()})
        return redirect_to_login(urlsplit(page).path if ours else "/")

    return signed_in


page_view = _view(require_safe, login_required)  # for pages; anonymous users are redirected to sign in
form_view = _view(require_POST, _redirect_to_form_page)  # for the target of a form on another page
dialog_view = _view(require_http_methods(["GET", "POST"]), login_required)  # for a page whose form posts to itself
# For a fragment of a page, and for a write by a page's script. Anonymous users get status 401, since a fragment cannot
# show the sign-in page.
fragment_view, action_view = _view(require_safe), _view(require_POST)
