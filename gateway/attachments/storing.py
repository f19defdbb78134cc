"""Stores a request's attachments as files, before the transaction that stores its messages. Decoding, hashing and
writing run outside of the event loop and of the database threads. Some data stays in its message: short texts, base64
that would not round-trip exactly, data whose file is being deleted, and everything while the storage fails."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
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
    part_digest,
    with_data,
)
from gateway.attachments.uses import uses_cancel, uses_reserve
from gateway.messages import ChatMessage, other_parts
from memories.database.access import in_thread
from memories.errors import DomainError

MIN_CHARS = 2_000
"""Shorter texts are not worth a file."""
STORE_SECONDS = 20.0
logger = logging.getLogger("daybook.attachments")


def large_texts(content: Any) -> Iterator[str]:
    """Return the texts in a message's content that can be stored as files and are not yet."""
    return (data_of(part) or "" for part in other_parts(content) if _is_large(part))


def has_large(content: Any) -> bool:
    """Return True if a message's content has such texts."""
    return isinstance(content, list) and any(large_texts(content))


class AttachmentStore:
    """Stores the attachments of one request. An async context manager for the opening of its run: if the request is
    refused (DomainError), its files are released at once, so that refused requests do not fill the disk."""

    def __init__(self, owner_id: UUID) -> None:
        self._owner_id = owner_id
        self._uses: set[UUID] = set()

    async def messages(self, messages: Sequence[ChatMessage], *, first: int = 0) -> tuple[ChatMessage, ...]:
        """Store the attachments of the messages from index `first` on, and return all messages with references. The
        large parts of all are hashed here, so that this need not be done in a transaction."""
        if not any(has_large(message.get("content")) for message in messages):
            return tuple(messages)
        found, data = await asyncio.to_thread(_read, messages, first)
        uses = await _store(self._owner_id, data) if data else {}
        self._uses.update(uses.values())
        return tuple(_with_uses(message, uses) for message in found)

    async def content(self, content: Any) -> Any:
        """Store the attachments of a message's content and return it with references."""
        [message] = await self.messages([{"content": content}])
        return message["content"]

    async def release(self) -> None:
        """Release the files that no stored message uses."""
        if self._uses:
            await in_thread(uses_cancel, self._uses)

    async def __aenter__(self) -> "AttachmentStore":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DomainError):
            await self.release()


def content_store(owner_id: UUID, content: Any) -> Any:
    """Store a content's attachments synchronously and return it with references. Raises the storage's errors."""
    [message], data = _read([{"content": content}], 0)
    uses = _reserve(owner_id, data) if data else {}
    _write(owner_id, data, uses)
    return _with_uses(message, uses)["content"]


def _reserve(owner_id: UUID, data: Mapping[str, bytes]) -> Mapping[str, UUID]:
    return uses_reserve(owner_id, {sha256: (len(content), media_type(content)) for sha256, content in data.items()})


async def _store(owner_id: UUID, data: Mapping[str, bytes]) -> Mapping[str, UUID]:
    """Store all files and return the ids of their uses by hash; return no uses if the storage fails."""
    uses = await in_thread(_reserve, owner_id, data)
    try:
        await asyncio.wait_for(asyncio.to_thread(_write, owner_id, data, uses), STORE_SECONDS)
    except Exception:  # each storage has its own errors
        logger.exception("attachments could not be stored as files; they stay in their message")
        return {}
    return uses


def _write(owner_id: UUID, data: Mapping[str, bytes], uses: Mapping[str, UUID]) -> None:
    for sha256 in uses:
        file_store(owner_id, sha256, data[sha256])


def _read(messages: Sequence[ChatMessage], first: int) -> tuple[list[ChatMessage], dict[str, bytes]]:
    """Return the messages with hashed large parts, and the bytes by hash of those from index `first` on."""
    data: dict[str, bytes] = {}

    def of_part(part: Part, *, to_store: bool) -> Hashed:
        text = data_of(part) or ""
        digest = text.digest if isinstance(text, Hashed) else part_digest(part)
        split = split_data(text) if to_store else None
        if split is None:
            return hashed(text, digest)
        head, found = split
        sha256 = sha256_of(found)
        data[sha256] = found
        return attached(Reference(sha256, len(found), head, digest), text)

    found = []
    for place, message in enumerate(messages):
        content = message.get("content") or ()
        if has_large(content):
            parts = [
                with_data(part, of_part(part, to_store=place >= first)) if _is_large(part) else part for part in content
            ]
            message = {**message, "content": parts}
        found.append(message)
    return found, data


def _with_uses(message: ChatMessage, uses: Mapping[str, UUID]) -> ChatMessage:
    """Return a message whose attachments have their uses. Texts without a use keep their data in the message."""
    content = message.get("content") or ()
    if next(attached_in(content), None) is None:
        return message
    parts = []
    for part in content:
        if isinstance(text := data_of(part), Attached):
            text.use = text.use or uses.get(text.reference.sha256)
            if text.is_loaded and not text.use:
                part = with_data(part, hashed(text, text.digest))
        parts.append(part)
    return {**message, "content": parts}


def _is_large(part: Part) -> bool:
    text = data_of(part)
    return text is not None and len(text) > MIN_CHARS and not isinstance(text, Attached)
