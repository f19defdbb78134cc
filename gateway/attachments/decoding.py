"""Decodes the base64 of content parts and detects the media type from the first bytes, regardless of what the client
says. Pure functions. Large texts are decoded in slices, since decoding holds the interpreter lock."""

import base64
import binascii
import re

_HEAD = re.compile(r"(?:data:[^,;]{0,100}(?:;[^,;]{0,100}){0,3};base64,)?", re.ASCII)
_SLICE = 262_144  # characters, a multiple of four
_SLICE_BYTES = _SLICE // 4 * 3
# Formats that browsers show as a picture. Without SVG, which can contain scripts.
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_KINDS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"ID3|\xff[\xf2\xf3\xfb]"), "audio/mpeg"),
    (re.compile(rb"OggS"), "audio/ogg"),
    (re.compile(rb"fLaC"), "audio/flac"),
)
UNKNOWN = "application/octet-stream"


def split_data(text: str) -> tuple[str, bytes] | None:
    """Return the text before the base64 and the decoded bytes, or None if encoding them would not restore the text."""
    match = _HEAD.match(text)
    head = match[0] if match else ""
    chunks = []
    for start in range(len(head), len(text), _SLICE):
        chunk = text[start : start + _SLICE]
        try:
            data = binascii.a2b_base64(chunk)
        except (binascii.Error, ValueError):
            return None
        is_last = start + _SLICE >= len(text)
        if binascii.b2a_base64(data, newline=False).decode() != chunk or not (is_last or len(data) == _SLICE_BYTES):
            return None
        chunks.append(data)
    return head, b"".join(chunks)


def bytes_in(text: str) -> bytes | None:
    """Decode a base64 text or data URL; return None for any other text."""
    match = _HEAD.match(text)
    try:
        return base64.b64decode(text[match.end() if match else 0 :], validate=True)
    except (binascii.Error, ValueError):
        return None


def joined_data(head: str, data: bytes) -> str:
    """Reverse `split_data`."""
    slices = range(0, len(data), _SLICE_BYTES)
    encoded = (binascii.b2a_base64(data[start : start + _SLICE_BYTES], newline=False).decode() for start in slices)
    return head + "".join(encoded)


def media_type(data: bytes) -> str:
    """Return the media type of the bytes, or `application/octet-stream` if it is unknown."""
    return next((kind for signature, kind in _KINDS if signature.match(data)), UNKNOWN)
