"""Fast JSON encoding of values with very long texts, such as base64 files, or with parts that never change; JSON on one
line; and times in JSON.

`json.dumps` examines every character while it holds the GIL: 25 ms for 8 MB, during which no other request proceeds.
Checking that a text needs no escaping takes a tenth of that time; such a text is copied verbatim."""

import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

LONG = 50_000
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
    """Produces the same output as JSONEncoder, but encodes long plain texts and each ConstantDict faster."""

    def encode(self, o: Any) -> str:
        token, plain = secrets.token_hex(16), list[tuple[str, ...]]()
        text = super().encode(self.shortened(o, token, plain))
        if not plain:
            return text
        first, *rest = text.split(f'"{token}"')
        return "".join((first, *chain.from_iterable((*found, after) for found, after in zip(plain, rest, strict=True))))

    def shortened(self, value: Any, token: str, plain: list[tuple[str, ...]]) -> Any:
        """Return a value with `token` in place of each long plain text and each ConstantDict, whose JSON is appended to
        `plain` in order of appearance."""
        items: Iterable[tuple[Any, Any]]
        if isinstance(value, ConstantDict):
            plain.append((self._written(value),))
            return token
        if isinstance(value, dict):
            items = sorted(value.items()) if self.sort_keys else value.items()
        elif isinstance(value, (list, tuple)):
            items = enumerate(value)
        elif isinstance(value, str) and len(value) >= LONG and _is_plain(value):
            plain.append(('"', value, '"'))
            return token
        else:
            return value
        changed = {
            place: short
            for place, item in items
            if (type(item) is not str or len(item) >= LONG)
            and type(item) not in _NUMBERS
            and (short := self.shortened(item, token, plain)) is not item
        }
        if not changed:
            return value
        return {**value, **changed} if isinstance(value, dict) else [changed.get(*place) for place in enumerate(value)]

    def _written(self, value: ConstantDict) -> str:
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
