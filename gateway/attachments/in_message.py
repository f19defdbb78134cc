"""The attachments of a message: all content parts but the text at its beginning. The chat page sends a text file as a
text part that begins with a file line."""

import re
from collections.abc import Sequence
from typing import Any

_FILE_LINE = re.compile(r"\[File ([^\n\]]{1,200})\]\n")  # static/gateway/attachments.js writes it


def attached_parts(parts: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the parts of a message without the text at its beginning."""
    return parts[1:] if parts and parts[0].get("type") == "text" and not _file_name(parts[0]) else parts


def first_text(parts: Sequence[dict[str, Any]]) -> str:
    """Return the text at the beginning of a message, which the person typed."""
    return "" if len(attached_parts(parts)) == len(parts) else str(parts[0].get("text") or "")


def text_without_files(parts: Sequence[dict[str, Any]]) -> str:
    """Return the text of a message without attached files."""
    texts = (part.get("text") for part in parts if part.get("type") == "text" and not _file_name(part))
    return "\n".join(text for text in texts if isinstance(text, str))


def name_of(part: dict[str, Any]) -> str:
    """Return the display name of an attachment."""
    if name := _file_name(part):
        return name
    described = part.get("file")
    if isinstance(described, dict) and isinstance(described.get("filename"), str):
        return str(described["filename"])[:200]
    return {"text": "Text", "image_url": "Image", "input_audio": "Sound"}.get(str(part.get("type")), "File")


def _file_name(part: dict[str, Any]) -> str:
    found = _FILE_LINE.match(part["text"]) if isinstance(part.get("text"), str) else None
    return found[1] if found else ""
