"""What is attached to a message: every content part but the text it begins with. The chat page sends text files as text
parts with a first line of their own."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_FILE_LINE = re.compile(r"\[File ([^\n\]]{1,200})\]\n")  # static/gateway/attachments.js writes it
_DATA = re.compile(r"data:[^,;]{0,100}(?:;[^,;]{0,100}){0,3};base64,", re.ASCII)
# What a browser shows, by the bytes it begins with. SVG is not among them: it can hold scripts.
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image that came with a message, of a type that browsers show."""

    data: bytes
    media_type: str


def attached_parts(parts: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the parts of a message without the text it begins with."""
    return parts[1:] if parts and parts[0].get("type") == "text" and not _file_name(parts[0]) else parts


def first_text(parts: Sequence[dict[str, Any]]) -> str:
    """Return the text that a message begins with: what the person typed."""
    return "" if len(attached_parts(parts)) == len(parts) else str(parts[0].get("text") or "")


def name_of(part: dict[str, Any]) -> str:
    """Return what an attachment is called, for people."""
    if name := _file_name(part):
        return name
    described = part.get("file")
    if isinstance(described, dict) and isinstance(described.get("filename"), str):
        return str(described["filename"])[:200]
    return {"text": "Text", "image_url": "Image", "input_audio": "Sound"}.get(str(part.get("type")), "File")


def image_of(part: dict[str, Any]) -> Image | None:
    """Return the image that a part holds itself, None for anything else and for what no browser shows."""
    described = part.get("image_url")
    url = described.get("url") if isinstance(described, dict) else described
    head = _DATA.match(url) if isinstance(url, str) else None
    if not isinstance(url, str) or head is None:
        return None
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = next((kind for beginning, kind in _IMAGES if beginning.match(data)), None)
    return Image(data, kind) if kind else None


def _file_name(part: dict[str, Any]) -> str:
    found = _FILE_LINE.match(part["text"]) if isinstance(part.get("text"), str) else None
    return found[1] if found else ""
