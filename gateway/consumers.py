"""The notification websocket. It sends the rows of an owner's outbox in order, each once. A hint from the channel layer
wakes it; it also polls the table for rows whose hint was lost, and to check that its login is still valid."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import Error as DatabaseError

from gateway.authentication import caller_of_key, end_user, given_key, is_same_caller
from gateway.keys import key_hash
from gateway.metrics import open_websockets
from gateway.models import Session
from gateway.sessions.changes import session_changes, session_deleted
from gateway.sockets import login_group, login_valid
from memories.caller import UNLIMITED, KeyLimits
from memories.database.access import in_read_thread, in_thread
from memories.errors import DomainError
from memories.ids import parse_uuid
from memories.limits import SOCKETS
from memories.messaging.outbox import PAGE, current_number, notifications_after, owner_group
from memories.open_counts import OpenCounts
from memories.pagination import parse_number
from memories.services import owner_for_user

logger = logging.getLogger("daybook.push")
_UNAUTHORIZED = 4401
_TOO_MANY = 4429
_open = OpenCounts[UUID]()  # sockets


@dataclass(frozen=True, slots=True)
class _Admission:
    """The owner of a socket, a synchronous check that its login is still valid (one query), and its channel groups."""

    owner_id: UUID
    limits: KeyLimits
    still_valid: Callable[[], bool]
    groups: tuple[str, ...]


class NotificationConsumer(AsyncJsonWebsocketConsumer):
    """`/ws/notifications/?after=N`: sends rows after number N, then new ones; without `after` only new ones. With
    `session=ID` it also sends that session, at first and whenever it has changed."""

    admission: _Admission | None = None
    _counted_owner: UUID | None = None
    _tasks: "list[asyncio.Task[None]] | None" = None

    async def __call__(self, *connection: Any) -> None:
        try:
            await super().__call__(*connection)
        finally:  # `disconnect` is not called if the server stops or something fails
            await self._stop_tasks()
            if self._counted_owner is not None:
                _open.leave(self._counted_owner)

    async def connect(self) -> None:
        self.admission = admission = await self._admit()
        if admission is None:
            await self.close(code=_UNAUTHORIZED)
            return
        if not _open.enter(admission.owner_id, limit=SOCKETS):
            await self.close(code=_TOO_MANY)
            return
        self._counted_owner = admission.owner_id
        self._sending = asyncio.Lock()
        # Join before reading, so that rows committed in between send a hint.
        for group in admission.groups:
            await self.channel_layer.group_add(group, self.channel_name)
        given = parse_qs(self.scope["query_string"].decode("latin1"))
        self.sent = await in_read_thread(current_number, admission.owner_id)
        if (after := parse_number(given.get("after", [""])[0])) is not None:
            self.sent = min(after, self.sent)  # a larger number would hold back later rows
        session_id = parse_uuid(given.get("session", [""])[0])
        is_known = await in_read_thread(_is_visible, admission, session_id) if session_id else False
        await self.accept()
        open_websockets.inc()
        self._tasks = [asyncio.create_task(self._poll())]
        if session_id and is_known:
            self._tasks.append(asyncio.create_task(self._send_changes(admission.owner_id, session_id)))
        elif session_id:
            await self.send_json(session_deleted(session_id))
        await self._send_rows(admission)

    async def close(self, code: int | bool | None = None, reason: str | None = None) -> None:
        """Close the socket. Nothing is sent after that."""
        for task in self._tasks or ():
            if task != asyncio.current_task():
                task.cancel()
        await super().close(code, reason)

    async def disconnect(self, code: int) -> None:
        await self._stop_tasks()
        for group in self.admission.groups if self.admission else ():
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Ignore what clients send: this socket only sends."""

    async def outbox_hint(self, message: dict[str, Any]) -> None:
        """Send new rows of the outbox."""
        if self.admission is not None:
            await self._send_rows(self.admission)

    async def session_closed(self, message: dict[str, Any]) -> None:
        """Close the socket: the login has ended."""
        await self.close(code=_UNAUTHORIZED)

    async def session_check(self, message: dict[str, Any]) -> None:
        """Close the socket if its login is no longer valid."""
        if self.admission is not None and not await in_read_thread(self.admission.still_valid):
            await self.close(code=_UNAUTHORIZED)

    async def _send_rows(self, admission: _Admission) -> None:
        async with self._sending:
            while True:
                rows = await in_read_thread(notifications_after, admission.owner_id, self.sent, limits=admission.limits)
                for row in rows:
                    await self.send_json(row)
                    self.sent = int(row["id"])
                if len(rows) < PAGE:
                    return

    async def _stop_tasks(self) -> None:
        """Cancel the socket's tasks and wait for their end."""
        tasks, self._tasks = self._tasks, None
        if not tasks:
            return
        open_websockets.dec()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _send_changes(self, owner_id: UUID, session_id: UUID) -> None:
        """Send a session now and whenever it has changed."""
        async with aclosing(session_changes(owner_id, session_id)) as changes:
            async for change in changes:
                await self.send_json(change)

    async def _poll(self) -> None:
        while self.admission is not None:
            # Jitter, so that thousands of sockets do not poll at the same time.
            await asyncio.sleep(settings.PUSH_POLL_SECONDS * random.uniform(0.75, 1.25))  # noqa: S311 - no secret
            try:
                if not await in_read_thread(self.admission.still_valid):
                    await self.close(code=_UNAUTHORIZED)
                    return
                await self._send_rows(self.admission)
                for group in self.admission.groups:  # a restarted Redis has lost this socket's groups
                    await self.channel_layer.group_add(group, self.channel_name)
            except DatabaseError:
                logger.warning("a websocket could not read the outbox; it tries again", exc_info=True)

    async def _admit(self) -> _Admission | None:
        user = self.scope.get("user") or AnonymousUser()
        headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in self.scope["headers"]}
        if key := given_key(headers.get):
            try:
                credentials = (key_hash(key), *end_user(headers.get))
                caller = await caller_of_key(*credentials)
            except DomainError:
                return None  # a wrong key never falls back to the cookie
            still_valid, group = partial(is_same_caller, caller, *credentials), owner_group(caller.owner_id)
            return _Admission(caller.owner_id, caller.limits, still_valid, (group,)) if caller.remembers else None
        if not (user.is_authenticated and user.is_active):
            return None
        owner_id = (await in_thread(owner_for_user, user)).pk
        login: str = self.scope["session"].session_key or ""
        valid = partial(login_valid, user.pk, login, user.get_session_auth_hash())
        return _Admission(owner_id, UNLIMITED, valid, (owner_group(owner_id), login_group(login)))


def _is_visible(admission: _Admission, session_id: UUID) -> bool:
    """Return True if the caller may see a session, or could until it was deleted."""
    rows = Session.with_deleted.filter(owner_id=admission.owner_id, pk=session_id)
    return admission.limits.filter(rows, agent="agent__name").exists()
