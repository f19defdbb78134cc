"""Messages as chat completions have them, and their text."""

from collections.abc import Sequence
from typing import Any

ChatMessage = dict[str, Any]
"""A message of a chat completion. Clients and model servers send it, so any field may be missing or malformed."""
SYSTEM_ROLES = frozenset({"system", "developer"})
PARAGRAPH = "\n\n"


def content_text(content: Any, *, gap: str = "") -> str:
    """Return the text of a message's or delta's content. Text in several parts is joined with the gap."""
    if isinstance(content, list):
        texts = (content_text(part.get("text"), gap=gap) for part in content if isinstance(part, dict))
        return gap.join(text for text in texts if text)
    return content if isinstance(content, str) else ""


def text_of(content: Any) -> str:
    """Return the text of a message's content without parts that are not text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            [str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text"]
        )
    return ""


def has_media(content: Any) -> bool:
    """Return True if a message's content has parts that are not text, such as a picture."""
    return bool(other_parts(content))


def other_parts(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message's content that are not text."""
    parts = content if isinstance(content, list) else ()
    return [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]


def joined_content(*contents: Any, gap: str = PARAGRAPH) -> Any:
    """Join the contents of messages, as text with a gap, or as parts if any of them has parts. Pass all of them in one
    call, since each call copies the text."""
    given = [content for content in contents if content]
    if len(given) < 2:
        return given[0] if given else contents[-1]
    if all(isinstance(content, str) for content in given):
        return gap.join(given)
    return [part for content in given for part in content_parts(content)]


def content_parts(content: Any) -> list[Any]:
    """Return the parts of a message's content, which may be a text."""
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def last_user_index(messages: Sequence[ChatMessage]) -> int:
    """Return the index of the last user message, or -1."""
    return next((at for at in reversed(range(len(messages))) if messages[at].get("role") == "user"), -1)
