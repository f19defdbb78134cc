"""JSON encoding of long texts and long lists, such as base64 files and conversations, and of parts that never change;
JSON on one line; and times in JSON.

`json.dumps` encodes a whole value while it holds the GIL: 50 ms for 12 MB, during which no other request proceeds. Here
long values are encoded in slices, between which other threads may run. Checking that a slice needs no escaping takes a
fifth of the time; such a slice is copied verbatim."""

import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

LONG = 20_000
"""The characters of a slice of a text, and the length from which a text is encoded in slices."""
MANY = 100
"""The items of a slice of a list."""
_NUMBERS = frozenset({int, float, bool, type(None)})
_ESCAPED = (*map(chr, range(32)), '"', "\\", "\x7f")
_LINE_ENDS = [(character, f"\\u{ord(character):04x}") for character in "\x85\u2028\u2029"]


class ConstantDict(dict[str, Any]):
    """A dict that is never modified: LongTextEncoder caches its JSON. A copy is an ordinary dict."""

    __slots__ = ("written",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written: dict[tuple[Any, ...], str] = {}


class LongTextEncoder(json.JSONEncoder):
    """Produces the same output as JSONEncoder, but encodes long texts and lists in slices, and a ConstantDict once."""

    def encode(self, o: Any) -> str:
        return "".join(self.pieces(o))

    def pieces(self, value: Any) -> list[str]:
        """Return the JSON in pieces. They are joined once: long lists in long lists would be copied at each level."""
        token, written = secrets.token_hex(16), list[list[str]]()
        text = super().encode(self.shortened(value, token, written))
        if not written:
            return [text]
        first, *rest = text.split(f'"{token}"')
        return [first, *chain.from_iterable((*found, end) for found, end in zip(written, rest, strict=True))]

    def shortened(self, value: Any, token: str, written: list[list[str]]) -> Any:
        """Return a value with `token` in place of each long text, long list and ConstantDict, whose JSON is appended to
        `written` in order of appearance."""
        items: Iterable[tuple[Any, Any]]
        if isinstance(value, ConstantDict):
            written.append([self._constant_json(value)])
            return token
        if isinstance(value, dict):
            items = sorted(value.items()) if self.sort_keys else value.items()
        elif isinstance(value, (list, tuple)):
            if len(value) > MANY:
                written.append(self._list_json(value))
                return token
            items = enumerate(value)
        elif isinstance(value, str) and len(value) >= LONG:
            written.append(self._text_json(value))
            return token
        else:
            return value
        changed = {
            place: short
            for place, item in items
            if (type(item) is not str or len(item) >= LONG)
            and type(item) not in _NUMBERS
            and (short := self.shortened(item, token, written)) is not item
        }
        if not changed:
            return value
        return {**value, **changed} if isinstance(value, dict) else [changed.get(*place) for place in enumerate(value)]

    def _list_json(self, items: list[Any] | tuple[Any, ...]) -> list[str]:
        found = ["["]
        for start in range(0, len(items), MANY):
            pieces = self.pieces([*items[start : start + MANY]])
            pieces[0] = (self.item_separator if start else "") + pieces[0].removeprefix("[")
            pieces[-1] = pieces[-1].removesuffix("]")
            found += pieces
        return [*found, "]"]

    def _text_json(self, text: str) -> list[str]:
        escape = encode_basestring_ascii if self.ensure_ascii else encode_basestring
        slices = (text[start : start + LONG] for start in range(0, len(text), LONG))
        return ['"', *[piece if _is_plain(piece) else escape(piece)[1:-1] for piece in slices], '"']

    def _constant_json(self, value: ConstantDict) -> str:
        options = (self.sort_keys, self.ensure_ascii, self.allow_nan, self.item_separator, self.key_separator)
        text = value.written.get(options)
        if text is None:
            text = value.written[options] = super().encode(value)
        return text


def json_line(data: Any, **options: Any) -> str:
    """Return JSON on one line, without escapes for other scripts; `options` are those of `json.dumps`. The ends of
    lines that JSON allows in a text are escaped: JSON Lines and server-sent events end a line only with a newline, but
    many clients also split lines at these characters."""
    text = json.dumps(data, ensure_ascii=False, **options)
    for character, escaped in _LINE_ENDS:
        text = text.replace(character, escaped)
    return text


def _is_plain(text: str) -> bool:
    return text.isascii() and not any(escaped in text for escaped in _ESCAPED)


def json_time(moment: datetime) -> str:
    """Return a time in UTC as all APIs write it, such as 2026-11-22T09:30:00.250Z."""
    return str(DjangoJSONEncoder().default(moment))
