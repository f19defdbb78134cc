"""Loads the bytes of attachments back into messages, for a model, a client or an export. A short text replaces a file
that cannot be read."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from gateway.attachments.decoding import bytes_in, joined_data
from gateway.attachments.files import ReadFailure, file_load
from gateway.attachments.in_message import name_of
from gateway.attachments.references import Attached, Part, attached, attached_in, data_of, with_data
from gateway.messages import ChatMessage

READ_SECONDS = 20.0

_Load = Callable[[UUID, str, int], bytes | ReadFailure]


def content_read(owner_id: UUID, content: Any, load: _Load = file_load) -> Any:
    """Return a stored message's content as its client sent it. May call the storage, by `load`."""
    if not _is_incomplete(content):
        return content
    return [_part_read(owner_id, part, load) for part in content]


async def contents_read(
    owner_id: UUID, holders: Sequence[ChatMessage], *, name: str = "content"
) -> Sequence[ChatMessage]:
    """Return messages, or other objects with a content under `name`, with their attachments loaded; `holders` itself if
    there is nothing to load. The storage is called in a separate thread, for READ_SECONDS at most."""
    if not any(_is_incomplete(holder.get(name)) for holder in holders):
        return holders

    def loaded(load: _Load) -> list[ChatMessage]:
        return [{**holder, name: content_read(owner_id, holder.get(name), load)} for holder in holders]

    try:
        return await asyncio.wait_for(asyncio.to_thread(loaded, file_load), READ_SECONDS)
    except TimeoutError:
        return loaded(lambda *_: ReadFailure.UNAVAILABLE)


def bytes_of(owner_id: UUID, part: Part) -> bytes | ReadFailure | None:
    """Return the bytes of a content part of a stored message, or None if it has none. May call the storage."""
    text = data_of(part)
    if isinstance(text, Attached):
        return file_load(owner_id, text.reference.sha256, text.reference.size)
    return None if text is None else bytes_in(text)


def _is_incomplete(content: Any) -> bool:
    return isinstance(content, list) and any(not text.is_loaded for text in attached_in(content))


def _part_read(owner_id: UUID, part: Any, load: _Load) -> Any:
    text = next(attached_in([part]), None)
    if text is None or text.is_loaded:
        return part
    data = load(owner_id, text.reference.sha256, text.reference.size)
    if isinstance(data, ReadFailure):
        return {"type": "text", "text": f"[{name_of(part)}] {data}"}
    return with_data(part, attached(text.reference, joined_data(text.reference.head, data)))
