"""Whose the messages at the end of a request are: the person's own, or written by the client, which may add some after
the results of its tools and between the person's."""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from gateway.messages import SYSTEM_ROLES, ChatMessage, text_of
from gateway.runs.wrappers import is_wrapping
from memories.evidence.client_texts import begins_with_summary

_NOTE_ROLES = SYSTEM_ROLES | {"user"}


def split_client_notes(messages: tuple[ChatMessage, ...]) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
    """Split off messages after the last tool results that are not the user's own words: system messages, and user
    messages that contain only text of the client itself (editor state, a reminder) or pictures (those that the tool
    returned: a tool message cannot hold them). If the user's own words are among them they are a new turn, and nothing
    is split off."""
    notes = list(at_end(messages))
    end = len(messages) - len(notes)
    if end and messages[end - 1].get("role") == "tool" and not any(map(_is_own, notes)):
        return messages[:end], messages[end:]
    return messages, ()


def own_messages(messages: Sequence[ChatMessage], limit: int) -> list[ChatMessage]:
    """Return the person's own messages at the end, after any summary, the latest first. The latest `limit` messages are
    examined. Reading many long ones is slow."""
    latest = islice(at_end(messages), limit)
    since_summary = takewhile(lambda message: not begins_with_summary(text_of(message.get("content"))), latest)
    return list(filter(_is_own, since_summary))


def at_end(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the user and system messages at the end, the latest first."""
    return takewhile(lambda message: message.get("role") in _NOTE_ROLES, reversed(messages))


def _is_own(message: ChatMessage) -> bool:
    """Return True if a user message is not only the client's wrapping, or has a part other than text and pictures."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    has_other = any(part.get("type") not in ("text", "image_url") for part in parts)
    return message["role"] == "user" and (has_other or not is_wrapping(text_of(content)))
