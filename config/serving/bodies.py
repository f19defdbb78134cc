"""Reads the bodies of requests, with limits on size, time and memory.

Small bodies are read as they arrive. For a body above SMALL_BYTES the key or login is looked up first, so that a client
without one cannot make this process hold it in memory, and all large bodies together have a budget."""

import asyncio
import io
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest

from gateway.authentication import UNKNOWN_TOKEN, find_caller, find_caller_by_cookie, given_key, known_caller
from gateway.keys import key_hash
from gateway.oauth.connections import token_find
from gateway.oauth.tokens import is_access_token
from gateway.requests import OPEN, OPERATIONS, is_api
from memories.database.access import in_read_thread, working_for
from memories.errors import DomainError, Overloaded, TooLarge, Unauthorized

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

SMALL_BYTES = 64_000
# JSON of the native API and of /mcp. A conversation (/v1, ingest), a turn with images and an import have
# DAYBOOK_MAX_BODY.
JSON_BYTES = 4_000_000
_LARGE = re.compile(r"/v1/|/api/import|/api/memories/ingest/?$|/api/sessions/[^/]+/turns(/[^/]+/results)?/?$")
_BYTES_PER_CHARACTER = 12  # in JSON that escapes everything
# How much of a body that is too large is read and discarded, as a multiple of DAYBOOK_MAX_BODY: a client that is
# disconnected while it sends never reads the response.
DRAINED = 4
# A body may take BODY_SECONDS plus the time for its size at this rate.
_MIN_BYTES_PER_SECOND = 50_000
_RETRY_SECONDS = 2


class Disconnected(Exception):
    """The client disconnected before its body was complete."""


class TooSlow(DomainError):
    """The body did not arrive in time."""

    code, http_status = "request_timeout", 408


class _Budget:
    """The bytes of large bodies that this process holds in memory. One owner has half of it, or a single body."""

    def __init__(self) -> None:
        self.held = 0
        self.by_owner: Counter[UUID] = Counter()

    def take(self, count: int, owner_id: UUID) -> None:
        """Take bytes from the budget. Raises Overloaded if it, or the owner's share, is exhausted."""
        share = max(settings.DAYBOOK_MAX_BODY, settings.BODY_BUDGET // 2)
        if self.held + count > settings.BODY_BUDGET or self.by_owner[owner_id] + count > share:
            raise Overloaded(
                "Too many large requests are being read. Try again in a moment.", retry_after=_RETRY_SECONDS
            )
        self.held += count
        self.by_owner[owner_id] += count

    def give_back(self, count: int, owner_id: UUID) -> None:
        self.held -= count
        self.by_owner[owner_id] -= count
        self.by_owner += Counter()  # without zeros


_budget = _Budget()


def has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() not in {b"", b"0"})
        for name, value in scope["headers"]
    )


@asynccontextmanager
async def body_of(scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
    """Yield the complete body of a request; a large one counts towards the budget until the block ends. Raises
    Disconnected, TooLarge, TooSlow, Overloaded, and Unauthorized if the API requires a key and there is none."""
    reading = _Reading(scope, receive)
    try:
        yield await reading.whole()
    finally:
        if reading.owner_id is not None:
            _budget.give_back(reading.counted, reading.owner_id)


def _size_limit(path: str) -> int:
    if not is_api(path) or _LARGE.match(path):
        return settings.DAYBOOK_MAX_BODY
    return min(settings.DAYBOOK_MAX_BODY, max(JSON_BYTES, _BYTES_PER_CHARACTER * settings.DAYBOOK_MAX_MESSAGE))


class _Reading:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope, self._receive = scope, receive
        self._headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
        self._api = is_api(scope["path"])
        self._limit = _size_limit(scope["path"])
        self._drained = settings.DAYBOOK_MAX_BODY * DRAINED
        self._begun = time.monotonic()
        self.owner_id: UUID | None = None  # the sender of a large body
        self.counted = 0

    async def whole(self) -> bytes:
        if not has_body(self._scope):
            return b""
        announced = self._announced()
        if announced is not None and announced > self._drained:
            raise self._too_large()
        self._need_credentials()
        body: bytearray | bytes = bytearray()
        size, more = 0, True
        if announced is not None and announced > SMALL_BYTES:
            await self._admit()
        while more and size <= self._drained:
            message = await self._next(size)
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(piece)
            if size > SMALL_BYTES:
                owner_id = await self._admit()
                growth = min(size, self._limit) - self.counted
                _budget.take(growth, owner_id)
                self.counted += growth
            if not more and not body:
                body = piece  # most bodies arrive in one piece
            elif size <= self._limit:
                body += piece
            else:
                body = bytearray()
        if size > self._limit:
            raise self._too_large()
        return bytes(body)

    def _announced(self) -> int | None:
        """Return the length in the headers, or None for a chunked body."""
        text = self._headers.get("content-length", "").strip()
        if "transfer-encoding" in self._headers or not text.isdecimal():
            return None
        return int(text) if len(text) < 18 else self._drained + 1

    def _need_credentials(self) -> None:
        if not self._api or self._scope["path"].startswith((*OPERATIONS, *OPEN)):
            return
        if not given_key(self._headers.get) and not self._cookie():
            raise Unauthorized("An API key is needed: send it as Authorization: Bearer dbk_….")

    async def _admit(self) -> UUID:
        """Authenticate the sender of a large body, once, and return the owner, who waits for its parsing. On pages,
        only logged-in users may send one."""
        if self.owner_id is not None:
            return self.owner_id
        try:
            self.owner_id = await self._sender()
        except Unauthorized:
            if self._api and not self._scope["path"].startswith((*OPERATIONS, *OPEN)):
                raise
            self._limit = SMALL_BYTES
            raise self._too_large() from None
        working_for.set(self.owner_id)
        return self.owner_id

    async def _sender(self) -> UUID:
        key = given_key(self._headers.get)
        if self._scope["path"].startswith(OPEN):
            raise Unauthorized("This address needs no login.")
        if self._api and is_access_token(key):
            if (token := await in_read_thread(token_find, key)) is None:
                raise Unauthorized(UNKNOWN_TOKEN)
            return token.key.owner_id
        if self._api and key:
            if (known := known_caller(self._headers.get)) is not None:
                return known.owner_id
            return (await in_read_thread(find_caller, key_hash(key))).owner_id
        if not self._cookie() or self._scope["path"].startswith(OPERATIONS):
            raise Unauthorized("Sign in first.")
        return (await in_read_thread(find_caller_by_cookie, ASGIRequest(self._scope, io.BytesIO()))).owner_id

    def _cookie(self) -> bool:
        return f"{settings.SESSION_COOKIE_NAME}=" in self._headers.get("cookie", "")

    def _too_large(self) -> TooLarge:
        return TooLarge(f"A request has at most {self._limit} bytes.", limit=self._limit)

    async def _next(self, size: int) -> dict[str, Any]:
        """Return the client's next message. Raises TooSlow at the time limit of the body or between messages."""
        left = self._begun + settings.BODY_SECONDS + size / _MIN_BYTES_PER_SECOND - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, min(left, settings.BODY_SILENCE_SECONDS))):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow("The body of the request did not arrive in time.") from None
        if message["type"] == "http.disconnect":
            raise Disconnected
        return message
