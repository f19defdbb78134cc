"""The active logins of users. A login is recorded at sign-in and when pages are opened, listed on the account page, and
ended there, by a password change, or by an administrator. Synchronous; uses the database."""

import logging
import threading

from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.models import Session as LoginSession
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from gateway.models import Login
from gateway.sockets import close_sockets
from memories.audit.log import Action, Actor, audit_record
from memories.database.access import write_later
from memories.lru_cache import LRUCache
from memories.models import Owner
from memories.number_words import counted

logger = logging.getLogger("daybook.sign_in")
SEEN_SECONDS = 300.0
"""How often the time of a browser's last use is updated."""
_MAX_RECENT = 10_000
# The first match counts, since browsers also claim to be the ones they derive from.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
_MAX_HEADER_CHARS = 1_000
_lock = threading.Lock()
_recent: LRUCache[str, bool] = LRUCache()


def login_begin(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Record a login of the user with the browser of a request."""
    if request.session.session_key is None:
        request.session.save()
    key = request.session.session_key or ""
    _mark_seen(key)
    _store(key, user.pk, device_words(request.headers.get("User-Agent", "")))


def login_seen(request: HttpRequest) -> None:
    """Record that the browser was used, at most every SEEN_SECONDS, with a deferred write that no page waits for."""
    key = request.session.session_key
    if key is None or not _mark_seen(key):
        return
    user_id, device = request.user.pk or 0, device_words(request.headers.get("User-Agent", ""))

    def store() -> None:
        try:
            _store(key, user_id, device)
        except DatabaseError:
            logger.info("The last use of a browser was not recorded: the database is busy.")

    write_later(store)


def logins_of(user: AbstractBaseUser) -> "QuerySet[Login]":
    """Return a user's logins, most recently used first."""
    return Login.objects.filter(user_id=user.pk, session__expire_date__gt=timezone.now()).order_by("-seen_at")


def other_logins(request: HttpRequest, user: AbstractBaseUser) -> "QuerySet[Login]":
    """Return a user's logins, except the one of this request."""
    return logins_of(user).exclude(session_id=request.session.session_key)


@transaction.atomic
def logins_end(user: AbstractBaseUser, rows: "QuerySet[Login]", *, by: Actor) -> int:
    """End these logins of a user and close their sockets. Return their number."""
    keys = list(rows.values_list("session_id", flat=True))
    LoginSession.objects.filter(pk__in=keys).delete()
    for key in keys:
        close_sockets(key)
    if keys:
        owner = Owner.objects.filter(user_id=user.pk).select_related("user").first()
        note = f"From {counted(len(keys), 'browser')}."
        audit_record(Action.LOGINS_END, actor=by, kind="user", object_id=user.pk, owner=owner, note=note)
    return len(keys)


def _mark_seen(key: str) -> bool:
    """Remember that the login is being recorded. Return False if it already was within SEEN_SECONDS."""
    with _lock:
        _recent.trim(SEEN_SECONDS, _MAX_RECENT)
        if key in _recent:
            return False
        _recent.put(key, True)
    return True


def _store(key: str, user_id: int, device: str) -> None:
    now = timezone.now()
    existing = Login.objects.filter(session_id=key, user_id=user_id)
    if existing.update(seen_at=now, device=device) or not LoginSession.objects.filter(pk=key).exists():
        return
    Login.objects.update_or_create(
        session_id=key, defaults={"user_id": user_id, "device": device, "started_at": now, "seen_at": now}
    )


def device_words(user_agent: str) -> str:
    """Return a description of a User-Agent header; “A browser” if it is not recognised."""
    header = user_agent[:_MAX_HEADER_CHARS]
    browser = next((name for token, name in _BROWSERS.items() if token in header), "A browser")
    system = next((name for token, name in _SYSTEMS.items() if token in header), "")
    return f"{browser} on {system}" if system else browser
