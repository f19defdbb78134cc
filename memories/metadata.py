"""The metadata of a memory: validation, and its texts for the scan. It is for programs: it can be shown, exported and
filtered by, and is never sent to a model. Pure functions."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from memories.errors import InvalidRequest
from memories.limits import METADATA_KEY, METADATA_KEYS, METADATA_VALUE
from memories.storable import storable_text


def clean_metadata(given: Any) -> dict[str, str]:
    """Return metadata in its stored form, sorted by key. Raises InvalidRequest for anything but an object of at most 16
    strings within the limits; the message repeats nothing of the input."""
    if not isinstance(given, Mapping):
        raise _refusal("metadata is an object whose values are strings.")
    if len(given) > METADATA_KEYS:
        raise _refusal(f"metadata has at most {METADATA_KEYS} keys; this one has {len(given)}.")
    return dict(sorted((_key(key), _value(value)) for key, value in given.items()))


def metadata_words(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts to scan: each pair, since a key may reveal that its value is a secret, and each value alone,
    since it may begin like an instruction or a message. (With a colon, a key `user` would make the pair look like
    one.)"""
    words: list[str] = []
    for key, value in sorted(metadata.items()):
        words += (f"{key} = {value}", value)
    return tuple(words)


def _key(key: Any) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= METADATA_KEY or not key.isprintable() or key != key.strip():
        raise _refusal(f"A key of metadata has 1 to {METADATA_KEY} printable characters, without spaces around them.")
    return key


def _value(value: Any) -> str:
    if not isinstance(value, str):
        raise _refusal("Each value of metadata is a string. Write numbers and lists as text.")
    if len(value) > METADATA_VALUE:
        raise _refusal(f"A value of metadata has at most {METADATA_VALUE} characters.")
    return storable_text(value)


def _refusal(why: str) -> InvalidRequest:
    return InvalidRequest(why, param="metadata")


Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=METADATA_KEY)],
        Annotated[str, StringConstraints(max_length=METADATA_VALUE)],
    ],
    Field(max_length=METADATA_KEYS),  # after the validator it would be declared as the length of a text
    BeforeValidator(clean_metadata),
]
"""Metadata in a request body. Invalid metadata raises InvalidRequest: pydantic's message would repeat the keys."""
