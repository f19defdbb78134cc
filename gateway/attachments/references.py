"""The references of messages to the bytes of attachments; no other module knows their form.

In memory a content part holds the text of its request (a data URL, or base64) as an `Attached`. In the database a
reference stands in its place: an object with one key, which `PartsEncoder` writes and `PartsDecoder` reads. A client
cannot forge one, since only an `Attached` is written as a reference; a client's key that looks like ours is written
with a mark, which the decoder removes. Pure functions."""

import json
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

from memories.json_output import LONG, LongTextEncoder

_KEY = "daybook.attachment"
_MARK = "~"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORDS = frozenset({"type", "text"})
_PLACES = ("url", "file_data", "data", "image_url")

Part = dict[str, Any]


class Hashed(str):
    """A long text of a content part. `digest` identifies the whole part for fingerprints. It is computed once, and
    stays the same when the bytes are stored elsewhere."""

    digest: str


@dataclass(frozen=True, slots=True)
class Reference:
    """Stored bytes. The text is `head` and the base64 of the bytes."""

    sha256: str
    size: int
    head: str
    digest: str

    @property
    def length(self) -> int:
        """The length of the text in characters."""
        return len(self.head) + 4 * -(-self.size // 3)


class Attached(Hashed):
    """A text whose bytes are stored. It is only the head of the text until the bytes are read. `use` is the row that
    keeps the file until the message is stored."""

    reference: Reference
    use: Any = None

    @property
    def is_read(self) -> bool:
        return len(self) == self.reference.length


def hashed(text: str, digest: str) -> Hashed:
    """Return a text with the digest of its part."""
    made = Hashed(text)
    made.digest = digest
    return made


def attached(reference: Reference, text: str | None = None) -> Attached:
    """Return a text whose bytes are stored; without `text` it is not read yet."""
    made = Attached(reference.head if text is None else text)
    made.reference, made.digest = reference, reference.digest
    return made


def data_of(part: Part) -> str | None:
    """Return the text with the data of a part that is not text; None if it has none."""
    place = _place(part)
    return place[0][place[1]] if place else None


def with_data(part: Part, text: str) -> Part:
    """Return the part with another text as its data."""
    place = _place(part)
    if place is None:
        return part
    container, name = place
    changed = {**container, name: text}
    return changed if container is part else {**part, str(part["type"]): changed}


def attached_in(content: Any) -> Iterator[Attached]:
    """Yield the attachments in a message's content."""
    for part in other_parts(content):
        if isinstance(data := data_of(part), Attached):
            yield data


def other_parts(content: Any) -> Iterator[Part]:
    """Yield the parts of a message's content that are not text."""
    if isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and part.get("type") != "text":
                yield part


def _place(part: Part) -> tuple[Part, str] | None:
    kind = part.get("type")
    if not isinstance(kind, str) or kind == "text":
        return None
    for container in (part.get(kind), part):
        if isinstance(container, dict):
            for name in _PLACES:
                if isinstance(container.get(name), str):
                    return container, name
    return None


class PartsEncoder(LongTextEncoder):
    """Writes content parts for the database."""

    def encode(self, o: Any) -> str:
        """Return JSON. Parts that are all text, of which a message may hold thousands, are not searched."""
        return json.JSONEncoder.encode(self, o) if _is_words(o) else super().encode(o)

    def shortened(self, value: Any, token: str, plain: list[tuple[str, ...]]) -> Any:
        """Return the value with references in place of stored texts."""
        if isinstance(value, dict):
            if _holds_ours(value):
                value = {name + _MARK if _is_ours(name) else name: one for name, one in value.items()}
        elif isinstance(value, Attached):
            return {_KEY: list(astuple(value.reference))}
        return super().shortened(value, token, plain)


class PartsDecoder(json.JSONDecoder):
    """Reads content parts from the database."""

    def __init__(self, **options: Any) -> None:
        super().__init__(object_hook=_read, **options)


def _is_words(parts: Any) -> bool:
    return isinstance(parts, list) and all(
        type(part) is dict
        and part.keys() == _WORDS
        and type(part["type"]) is str
        and type(part["text"]) is str
        and len(part["text"]) < LONG
        for part in parts
    )


def _holds_ours(value: dict[Any, Any]) -> bool:
    # This runs for every stored object, and calling a function for each name takes three times as long.
    return bool([name for name in value if type(name) is str and name.startswith(_KEY)])


def _is_ours(name: Any) -> bool:
    return isinstance(name, str) and name.startswith(_KEY)


def _read(value: dict[str, Any]) -> Any:
    if not _holds_ours(value):
        return value
    match value:
        case {"daybook.attachment": [str(sha256), int(size), str(head), str(digest)]} if len(value) == 1:
            if _SHA256.fullmatch(sha256):
                return attached(Reference(sha256, size, head, digest))
    return {name.removesuffix(_MARK) if _is_ours(name) else name: one for name, one in value.items()}
