"""The websocket of notifications: sends an owner's outbox, in order, each row once.
A hint from the channel layer wakes it; a slow look at the table finds what a lost hint left."""

import asyncio
import random
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AnonymousUser

from gateway.authentication import find_caller
from gateway.keys import key_hash
from memories.database import in_thread
from memories.errors import DomainError
from memories.outbox import PAGE, current_number, notifications_after, owner_group
from memories.services import owner_for_user

_UNAUTHORIZED = 4401


class NotificationConsumer(AsyncJsonWebsocketConsumer):
    """`/ws/notifications/?after=N`: rows above N, then new ones as they come; without `after` only new ones."""

    owner_id: UUID | None = None

    async def connect(self) -> None:
        self.owner_id = await self._owner()
        if self.owner_id is None:
            await self.close(code=_UNAUTHORIZED)
            return
        given = parse_qs(self.scope["query_string"].decode()).get("after", [""])[0]
        # Join first, read after: what is committed in between wakes us.
        await self.channel_layer.group_add(owner_group(self.owner_id), self.channel_name)
        self.sent = int(given) if given.isdecimal() else await in_thread(current_number, self.owner_id)
        self._sending = asyncio.Lock()
        await self.accept()
        self._looking = asyncio.create_task(self._look_again())
        await self._send_rows()

    async def disconnect(self, code: int) -> None:
        if self.owner_id is None:
            return
        if looking := getattr(self, "_looking", None):
            looking.cancel()
        await self.channel_layer.group_discard(owner_group(self.owner_id), self.channel_name)

    async def outbox_hint(self, message: dict[str, Any]) -> None:
        """There may be something to read."""
        await self._send_rows()

    async def session_closed(self, message: dict[str, Any]) -> None:
        """Logout, a new password or a deactivation: this socket is no longer theirs."""
        await self.close(code=_UNAUTHORIZED)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """Clients have nothing to say here."""

    async def _send_rows(self) -> None:
        assert self.owner_id is not None
        async with self._sending:
            while True:
                rows = await in_thread(notifications_after, self.owner_id, self.sent)
                for row in rows:
                    await self.send_json(row)
                    self.sent = int(row["id"])
                if len(rows) < PAGE:
                    return

    async def _look_again(self) -> None:
        while True:
            # Spread out, so that thousands of sockets do not look at once.
            await asyncio.sleep(settings.PUSH_POLL_SECONDS * random.uniform(0.75, 1.25))
            await self._send_rows()

    async def _owner(self) -> UUID | None:
        user = self.scope.get("user") or AnonymousUser()
        if user.is_authenticated and user.is_active:
            return (await in_thread(owner_for_user, user)).pk
        headers = {name.decode().lower(): value.decode() for name, value in self.scope.get("headers", [])}
        scheme, _, token = headers.get("authorization", "").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not key:
            return None
        try:
            return (await in_thread(find_caller, key_hash(key), "", "")).owner_id
        except DomainError:
            return None
