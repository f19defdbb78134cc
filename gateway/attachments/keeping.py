"""Stores what comes with a request as files, before the transaction that stores its messages. Decoding, hashing and
writing happen outside of the event loop and of the threads that use the database. Some texts stay in their message:
short ones, base64 that decoding and encoding would change, those whose file is being deleted, and all of them while the
storage fails."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from gateway.attachments.decoding import media_type, split_data
from gateway.attachments.files import file_store, sha256_of
from gateway.attachments.references import (
    Attached,
    Hashed,
    Part,
    Reference,
    attached,
    attached_in,
    data_of,
    hashed,
    other_parts,
    with_data,
)
from gateway.attachments.uses import uses_give_up, uses_reserve
from gateway.runs.fingerprint import part_digest
from memories.database.access import in_thread
from memories.errors import DomainError

LEAST = 2_000
"""How many characters a text has that is worth a file."""
STORE_SECONDS = 20.0
logger = logging.getLogger("daybook.attachments")

Message = dict[str, Any]


def large_texts(content: Any) -> Iterator[str]:
    """Return the texts of a message's content that can be stored as files and are not yet."""
    return (data_of(part) or "" for part in other_parts(content) if _is_large(part))


def holds_large(content: Any) -> bool:
    """Return True if a message's content holds a text that can be stored as a file and is not yet."""
    return isinstance(content, list) and next(large_texts(content), None) is not None


class Keeping:
    """Stores what one request brings: use `async with Keeping(owner_id) as keeping` around the opening of its run. If
    the request is refused, its files are released at once, so that refused requests do not fill the disk."""

    def __init__(self, owner_id: UUID) -> None:
        self._owner_id = owner_id
        self._uses: set[UUID] = set()

    async def messages(self, messages: Sequence[Message], *, first: int = 0) -> tuple[Message, ...]:
        """Return the messages as `messages_keep` does."""
        kept = await messages_keep(self._owner_id, messages, first=first)
        if kept is not messages:
            self._uses |= {text.use for message in kept for text in attached_in(message.get("content")) if text.use}
        return kept

    async def content(self, content: Any) -> Any:
        """Return a message's content with its attachments stored."""
        [message] = await self.messages([{"content": content}])
        return message["content"]

    async def give_up(self) -> None:
        """Release the files that no stored message uses."""
        if self._uses:
            await in_thread(uses_give_up, self._uses)

    async def __aenter__(self) -> "Keeping":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DomainError):
            await self.give_up()


async def messages_keep(owner_id: UUID, messages: Sequence[Message], *, first: int = 0) -> tuple[Message, ...]:
    """Return the messages; from the `first` on, their attachments are stored as files. All large parts are hashed here,
    so that this need not be done in a transaction."""
    if not any(holds_large(message.get("content")) for message in messages):
        return tuple(messages)
    found, data = await asyncio.to_thread(_read, messages, first)
    uses = await _store(owner_id, data) if data else {}
    return tuple(_changed(message, lambda text: _with_use(text, uses)) for message in found)


def content_keep_in_worker(owner_id: UUID, content: Any) -> Any:
    """Return a content with its attachments stored, for a worker. Raises what the storage raises."""
    [message], data = _read([{"content": content}], 0)
    uses = _reserve(owner_id, data) if data else {}
    _write(owner_id, data, uses)
    return _changed(message, lambda text: _with_use(text, uses))["content"]


def _reserve(owner_id: UUID, data: Mapping[str, bytes]) -> Mapping[str, UUID]:
    return uses_reserve(owner_id, {sha256: (len(one), media_type(one)) for sha256, one in data.items()})


async def _store(owner_id: UUID, data: Mapping[str, bytes]) -> Mapping[str, UUID]:
    """Store all or nothing, and return the uses of the files by hash."""
    uses = await in_thread(_reserve, owner_id, data)
    try:
        await asyncio.wait_for(asyncio.to_thread(_write, owner_id, data, uses), STORE_SECONDS)
    except Exception:  # each storage has its own errors
        logger.exception("attachments cannot be stored as files; they stay in their message")
        return {}
    return uses


def _write(owner_id: UUID, data: Mapping[str, bytes], uses: Mapping[str, UUID]) -> None:
    for sha256 in uses:
        file_store(owner_id, sha256, data[sha256])


def _read(messages: Sequence[Message], first: int) -> tuple[list[Message], dict[str, bytes]]:
    """Return the messages with the hashes of their large parts, and the bytes of those from the `first` message on."""
    data: dict[str, bytes] = {}

    def of_part(part: Part, *, is_kept: bool) -> Hashed:
        text = data_of(part) or ""
        digest = text.digest if isinstance(text, Hashed) else part_digest(part)
        split = split_data(text) if is_kept else None
        if split is None:
            return hashed(text, digest)
        head, found = split
        sha256 = sha256_of(found)
        data[sha256] = found
        return attached(Reference(sha256, len(found), head, digest), text)

    found = []
    for place, message in enumerate(messages):
        content = message.get("content") or ()
        if holds_large(content):
            parts = [
                with_data(part, of_part(part, is_kept=place >= first)) if _is_large(part) else part for part in content
            ]
            message = {**message, "content": parts}
        found.append(message)
    return found, data


def _with_use(text: Attached, uses: Mapping[str, UUID]) -> Hashed:
    text.use = text.use or uses.get(text.reference.sha256)
    return text if text.use or not text.is_read else hashed(text, text.digest)


def _changed(message: Message, change: Callable[[Attached], Hashed]) -> Message:
    content = message.get("content") or ()
    if next(attached_in(content), None) is None:
        return message
    parts = [with_data(part, change(text)) if isinstance(text := data_of(part), Attached) else part for part in content]
    return {**message, "content": parts}


def _is_large(part: Part) -> bool:
    text = data_of(part)
    return text is not None and len(text) > LEAST and not isinstance(text, Attached)
