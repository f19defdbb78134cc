"""Where people are signed in. Logins are recorded when people sign in and open pages, listed on their account page, and
ended there, by a new password, or by an administrator. Synchronous; uses the database."""

import logging
import threading
import time
from collections import OrderedDict

from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.models import Session as LoginSession
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from gateway.accounts.devices import device_words
from gateway.models import Login
from gateway.sockets import close_sockets
from memories.audit.log import Action, Actor, audit_record
from memories.database.access import write_later
from memories.models import Owner
from memories.number_words import counted

logger = logging.getLogger("daybook.sign_in")
SEEN_SECONDS = 300.0
"""How exactly it is known when a browser was seen last."""
_MOST_NOTED = 10_000
_lock = threading.Lock()
_noted: "OrderedDict[str, float]" = OrderedDict()


def login_begin(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Record that the user is signed in with the browser of a request."""
    if request.session.session_key is None:
        request.session.save()
    key = request.session.session_key or ""
    _note(key)
    _store(key, user.pk, device_words(request.headers.get("User-Agent", "")))


def login_seen(request: HttpRequest) -> None:
    """Record that the browser was used, at most every SEEN_SECONDS. It is written later, so that no page waits for
    it."""
    key = request.session.session_key
    if key is None or not _note(key):
        return
    user_id, device = request.user.pk or 0, device_words(request.headers.get("User-Agent", ""))

    def store() -> None:
        try:
            _store(key, user_id, device)
        except DatabaseError:
            logger.info("When a browser was last seen was not stored: the database is busy.")

    write_later(store)


def forget_noted() -> None:
    """Forget which browsers were recorded lately (tests)."""
    with _lock:
        _noted.clear()


def logins_of(user: AbstractBaseUser) -> "QuerySet[Login]":
    """Return a user's logins, the last used first."""
    return Login.objects.filter(user_id=user.pk, session__expire_date__gt=timezone.now()).order_by("-seen_at")


def other_logins(request: HttpRequest, user: AbstractBaseUser) -> "QuerySet[Login]":
    """Return a user's logins, without the browser of this request."""
    return logins_of(user).exclude(session_id=request.session.session_key)


@transaction.atomic
def logins_end(user: AbstractBaseUser, rows: "QuerySet[Login]", *, by: Actor) -> int:
    """Sign a user out of these browsers, and close their sockets. Returns how many there were."""
    keys = list(rows.values_list("session_id", flat=True))
    LoginSession.objects.filter(pk__in=keys).delete()
    for key in keys:
        close_sockets(key)
    if keys:
        owner = Owner.objects.filter(user_id=user.pk).select_related("user").first()
        note = f"From {counted(len(keys), 'browser')}."
        audit_record(Action.LOGINS_END, actor=by, kind="user", object_id=user.pk, owner=owner, note=note)
    return len(keys)


def _note(key: str) -> bool:
    """Return True if this browser is to be recorded now."""
    now = time.monotonic()
    with _lock:
        if now - _noted.get(key, -SEEN_SECONDS) < SEEN_SECONDS:
            return False
        _noted[key] = now
        _noted.move_to_end(key)
        if len(_noted) > _MOST_NOTED:
            _noted.popitem(last=False)
    return True


def _store(key: str, user_id: int, device: str) -> None:
    now = timezone.now()
    mine = Login.objects.filter(session_id=key, user_id=user_id)
    if mine.update(seen_at=now, device=device) or not LoginSession.objects.filter(pk=key).exists():
        return
    Login.objects.update_or_create(
        session_id=key, defaults={"user_id": user_id, "device": device, "started_at": now, "seen_at": now}
    )
