"""Decodes the base64 of content parts and finds the media type of the bytes by their beginning, whatever the client
says. Pure functions. Large texts are decoded in slices, since decoding holds the interpreter lock."""

import base64
import binascii
import re

_HEAD = re.compile(r"(?:data:[^,;]{0,100}(?:;[^,;]{0,100}){0,3};base64,)?", re.ASCII)
_SLICE = 262_144  # characters, a multiple of four
_SLICE_BYTES = _SLICE // 4 * 3
# Formats that browsers show as a picture, without SVG, which can contain scripts.
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
    """Return the text before the base64, and the bytes; None for a text that encoding the bytes would not restore
    exactly."""
    found = _HEAD.match(text)
    head = found[0] if found else ""
    pieces = []
    for at in range(len(head), len(text), _SLICE):
        piece = text[at : at + _SLICE]
        try:
            data = binascii.a2b_base64(piece)
        except (binascii.Error, ValueError):
            return None
        is_last = at + _SLICE >= len(text)
        if binascii.b2a_base64(data, newline=False).decode() != piece or not (is_last or len(data) == _SLICE_BYTES):
            return None
        pieces.append(data)
    return head, b"".join(pieces)


def bytes_in(text: str) -> bytes | None:
    """Return the bytes of a text in base64; None for any other text."""
    found = _HEAD.match(text)
    try:
        return base64.b64decode(text[found.end() if found else 0 :], validate=True)
    except (binascii.Error, ValueError):
        return None


def joined_data(head: str, data: bytes) -> str:
    """Return the text that `split_data` split."""
    slices = range(0, len(data), _SLICE_BYTES)
    encoded = (binascii.b2a_base64(data[at : at + _SLICE_BYTES], newline=False).decode() for at in slices)
    return head + "".join(encoded)


def media_type(data: bytes) -> str:
    """Return the media type of the bytes; `application/octet-stream` if it is unknown."""
    return next((kind for beginning, kind in _KINDS if beginning.match(data)), UNKNOWN)
