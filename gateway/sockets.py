"""Closes websockets whose login ends. A logout closes them immediately; after a password change or a deactivation they
are closed when the consumer checks the login, which it does every few seconds and on a hint."""

import hashlib
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.db import transaction
from django.db.models import Exists
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from memories.messaging.outbox import owner_group, send_hint


def login_group(session_key: str) -> str:
    """Return the channel group of a login's sockets. A hash keeps the session key out of messages between processes."""
    return f"login.{hashlib.sha256(session_key.encode()).hexdigest()[:40]}"


def close_login(sender: Any, request: HttpRequest | None, **kwargs: Any) -> None:
    """Close the sockets of a login that ends. A receiver of `user_logged_out`."""
    session = getattr(request, "session", None)
    if session is not None and session.session_key:
        close_sockets(session.session_key)


def close_sockets(session_key: str) -> None:
    group = login_group(session_key)
    transaction.on_commit(lambda: send_hint(group, {"type": "session.closed"}), robust=True)


def recheck_logins(owner_id: UUID) -> None:
    """Make every socket of an owner check its login now, after a password change, a deactivation or a revoked key."""
    transaction.on_commit(lambda: send_hint(owner_group(owner_id), {"type": "session.check"}), robust=True)


def login_valid(user_id: int, session_key: str, auth_hash: str) -> bool:
    """Return True if a login is still valid: user active, same password, not logged out. One query."""
    alive = LoginSession.objects.filter(session_key=session_key, expire_date__gt=timezone.now())
    user = User.objects.filter(pk=user_id, is_active=True).annotate(logged_in=Exists(alive)).first()
    return user is not None and user.logged_in and constant_time_compare(user.get_session_auth_hash(), auth_hash)
