"""References from messages to the bytes of attachments; no other module knows their format.

In memory, a content part holds the text of its request (a data URL, or base64) as an `Attached`. In the database it is
replaced by a reference: an object with one reserved key, which `PartsEncoder` writes and `PartsDecoder` reads. A client
cannot forge a reference, since only an `Attached` is written as one; reserved keys of clients are escaped. Pure
functions."""

import json
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

from gateway.digests import digest
from gateway.messages import other_parts
from memories.json_output import LONG, MANY, LongTextEncoder

_KEY = "daybook.attachment"
_ESCAPE = "~"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXT_KEYS = frozenset({"type", "text"})
_DATA_KEYS = ("url", "file_data", "data", "image_url")

Part = dict[str, Any]


class Hashed(str):
    """A long text of a content part. `digest` identifies the whole part in fingerprints. It is computed once and stays
    the same when the bytes are stored as a file."""

    digest: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to stored bytes. The text of the part is `head` followed by their base64."""

    sha256: str
    size: int
    head: str
    digest: str

    @property
    def length(self) -> int:
        """The length of the text in characters."""
        return len(self.head) + 4 * -(-self.size // 3)


class Attached(Hashed):
    """A text whose bytes are stored. Until they are loaded, it is only the head. `use` is the id of the row that
    protects the file until the message is stored."""

    reference: Reference
    use: Any = None

    @property
    def is_loaded(self) -> bool:
        return len(self) == self.reference.length


def hashed(text: str, digest: str) -> Hashed:
    """Return a text annotated with the digest of its part."""
    result = Hashed(text)
    result.digest = digest
    return result


def attached(reference: Reference, text: str | None = None) -> Attached:
    """Return a text whose bytes are stored; without `text` it is not loaded."""
    result = Attached(reference.head if text is None else text)
    result.reference, result.digest = reference, reference.digest
    return result


def data_of(part: Part) -> str | None:
    """Return the data of a content part as text, or None for text parts and parts without data."""
    place = _data_place(part)
    return place[0][place[1]] if place else None


def part_digest(part: Part) -> str:
    """Return the hash of a part that is not text. Stored attachments carry their hash, so it is computed only once."""
    known = data_of(part) if isinstance(part, dict) else None
    if isinstance(known, Hashed):
        return known.digest
    return digest(json.dumps(part, sort_keys=True, cls=LongTextEncoder))


def with_data(part: Part, text: str) -> Part:
    """Return a copy of the part with `text` as its data."""
    place = _data_place(part)
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


def _data_place(part: Part) -> tuple[Part, str] | None:
    kind = part.get("type")
    if not isinstance(kind, str) or kind == "text":
        return None
    for container in (part.get(kind), part):
        if isinstance(container, dict):
            for name in _DATA_KEYS:
                if isinstance(container.get(name), str):
                    return container, name
    return None


class PartsEncoder(LongTextEncoder):
    """Encodes content parts for the database."""

    def pieces(self, value: Any) -> list[str]:
        """Return JSON. A message may have thousands of text parts, so slices with nothing else are not searched."""
        return [json.JSONEncoder.encode(self, value)] if _is_all_text(value) else super().pieces(value)

    def shortened(self, value: Any, token: str, written: list[list[str]]) -> Any:
        """Return the value with stored texts replaced by references."""
        if isinstance(value, dict):
            if _has_reserved_key(value):
                value = {name + _ESCAPE if _is_reserved(name) else name: item for name, item in value.items()}
        elif isinstance(value, Attached):
            return {_KEY: list(astuple(value.reference))}
        return super().shortened(value, token, written)


class PartsDecoder(json.JSONDecoder):
    """Decodes content parts from the database."""

    def __init__(self, **options: Any) -> None:
        super().__init__(object_hook=_read, **options)


def _is_all_text(parts: Any) -> bool:
    return (
        isinstance(parts, list)
        and len(parts) <= MANY
        and all(
            type(part) is dict
            and part.keys() == _TEXT_KEYS
            and type(part["type"]) is str
            and type(part["text"]) is str
            and len(part["text"]) < LONG
            for part in parts
        )
    )


def _has_reserved_key(value: dict[Any, Any]) -> bool:
    # This runs for every stored object, and calling _is_reserved for each name would take three times as long.
    return bool([name for name in value if type(name) is str and name.startswith(_KEY)])


def _is_reserved(name: Any) -> bool:
    return isinstance(name, str) and name.startswith(_KEY)


def _read(value: dict[str, Any]) -> Any:
    if not _has_reserved_key(value):
        return value
    match value:
        case {"daybook.attachment": [str(sha256), int(size), str(head), str(digest)]} if len(value) == 1:
            if _SHA256.fullmatch(sha256):
                return attached(Reference(sha256, size, head, digest))
    return {name.removesuffix(_ESCAPE) if _is_reserved(name) else name: item for name, item in value.items()}
