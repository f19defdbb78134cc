"""Views of encoded passages: base64, hex, percent, HTML entities, backslash escapes, rot13, reversed text.
Decoding is limited in depth and in size, so that a scan stays linear in the text."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import unquote

from scanning.views import View

MAX_DEPTH = 2
MAX_ENCODED = 8_000  # characters of one encoded passage
_MIN_READABLE_SHARE = 0.85

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_\-=])[A-Za-z0-9+/_\-]{14,8000}={0,2}(?![A-Za-z0-9+/_])")
# What must not precede these is checked behind the first character, so that `re` can skip to it.
_HEX = re.compile(r"[0-9a-fA-F](?<![0-9a-fA-F]{2})[0-9a-fA-F][ :]?(?:[0-9a-fA-F]{2}[ :]?){7,3999}(?![0-9a-fA-F])")
_HEX_CODES = re.compile(
    r"\\x[0-9a-fA-F]{2}(?:\\x[0-9a-fA-F]{2}){5,1999}"
    r"|0x[0-9a-fA-F]{2}[ ,]{1,2}(?:0x[0-9a-fA-F]{2}[ ,]{1,2}){5,1999}"
)
_PERCENT = re.compile(r"[^\s%]{0,80}+(?:%[0-9a-fA-F]{2}[^\s%]{0,40}+){3,2000}")
_ENTITIES = re.compile(r"(?:&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});[^&\n]{0,20}){2,2000}")
_ESCAPES = re.compile(r"(?:\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|u\{[0-9a-fA-F]{1,6}\})[^\\\n]{0,20}){3,1500}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|u\{([0-9a-fA-F]{1,6})\})")
_DECIMALS = re.compile(r"\d(?<!\d\d)(?:(?<=1)\d)?\d[ ,]{1,2}(?:1?\d\d[ ,]{1,2}){8,399}1?\d\d(?!\d)")
_BINARY = re.compile(r"[01](?<![01]{2})[01]{7} ?(?:[01]{8} ?){5,499}(?![01])")
_ROT13 = re.compile(r"\b(?:rot-?13|caesar|rot)\b")
_TAG_RUN = re.compile("[\U000e0020-\U000e007e]{4,}")
_BACKWARDS = re.compile(
    r"backwards?|reversed?\b|right to left|\u202e|erongi|snoitcurtsni|tpmorp|yreve|drawrof|laever"
    r"|tnatsissa|revoc|yebo|drocer|rückwärts|à l'envers|al revés|наоборот|задом наперед"
)


def decoded_views(view: View, depth: int = MAX_DEPTH) -> Iterator[View]:
    """Yield views of the encoded passages in this view, one view per depth, up to `depth` levels of nesting.
    Each character is mapped to the proportional position in its encoded passage."""
    pieces: list[str] = []
    origin: list[int] = []
    for start, end, text in _passages(view.text):
        first, last = view.located(start, end)
        pieces.append(text + "\n")
        origin.extend(first + place * (last - first) // len(text) for place in range(len(text)))
        origin.append(max(last - 1, first))
    if pieces:
        inner = View("".join(pieces), [*origin, view.origin[-1]], decoded=True)
        yield inner
        if depth > 1:
            yield from decoded_views(inner, depth - 1)
    unescaped = _unescaped_view(view)
    if unescaped is not None:
        yield unescaped
    lower = view.text.lower()  # several times faster than IGNORECASE
    if _ROT13.search(lower):
        yield View(codecs.encode(view.text, "rot13"), view.origin, decoded=True)
    if _BACKWARDS.search(lower):
        yield View(view.text[::-1], [*reversed(view.origin[:-1]), view.origin[-1]], decoded=True)


def _unescaped_view(view: View) -> View | None:
    """Return the whole text with JSON escapes decoded (a single one may be a disguise: "ign\\u006fre"), or None if no
    escape hides a printable ASCII character."""
    escapes = [(*escape.span(), _from_escapes(escape.group())) for escape in _ESCAPE.finditer(view.text)]
    if not any(" " < plain < "\x7f" for _, _, plain in escapes):
        return None
    return replace(view.edited(escapes), decoded=True)


def _passages(text: str) -> Iterator[tuple[int, int, str]]:
    if not text.isascii():
        for match in _TAG_RUN.finditer(text):
            yield match.start(), match.end(), "".join(chr(ord(c) - 0xE0000) for c in match.group())
    for pattern, decode, hint in _CODECS:
        if hint and hint not in text:
            continue
        for match in pattern.finditer(text):
            plain = decode(match.group()[:MAX_ENCODED])
            if plain and plain != match.group() and _readable(plain):
                yield match.start(), match.end(), plain


def _readable(text: str) -> bool:
    readable = sum(1 for char in text if char.isalnum() or char in " \n.,:;!?'\"-_/@()<>=#&%$*+[]{}")
    return len(text) >= 4 and readable >= _MIN_READABLE_SHARE * len(text)


def _from_base64(text: str) -> str:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        body = body[:-1]
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _from_hex(text: str) -> str:
    digits = re.sub(r"\\x|0x|[ :,]", "", text)
    try:
        return bytes.fromhex(digits).decode("utf-8")
    except (ValueError, UnicodeDecodeError):
        return ""


def _from_escapes(text: str) -> str:
    def char(match: re.Match[str]) -> str:
        point = int(next(filter(None, match.groups())), 16)
        return chr(point) if point < 0x110000 and not 0xD800 <= point <= 0xDFFF else "\ufffd"

    return _ESCAPE.sub(char, text)


def _from_decimals(text: str) -> str:
    points = [int(number) for number in re.findall(r"\d+", text)]
    return "".join(map(chr, points)) if all(32 <= point < 127 for point in points) else ""


def _from_binary(text: str) -> str:
    bits = text.replace(" ", "")
    return "".join(chr(int(bits[i : i + 8], 2)) for i in range(0, len(bits) - 7, 8))


_CODECS: tuple[tuple[re.Pattern[str], Callable[[str], str], str], ...] = (
    (_BASE64, _from_base64, ""),
    (_HEX, _from_hex, ""),
    (_HEX_CODES, _from_hex, "x"),
    (_PERCENT, unquote, "%"),
    (_ENTITIES, html.unescape, "&"),
    (_ESCAPES, _from_escapes, "\\"),
    (_DECIMALS, _from_decimals, ""),
    (_BINARY, _from_binary, ""),
)
