"""The metadata of a memory: what it may be, and its words for the scan. Programs keep it for themselves: it is shown,
exported and filtered by, and never given to a model. Pure functions."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from memories.errors import InvalidRequest
from memories.limits import METADATA_KEY, METADATA_KEYS, METADATA_VALUE
from memories.storable import storable_text


def clean_metadata(given: Any, *, param: str = "metadata") -> dict[str, str]:
    """Return metadata as it is stored, ordered by key. Raises InvalidRequest for anything but an object of at most 16
    strings within the bounds; its message repeats nothing of what was given."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"{param} is an object whose values are strings.", param=param)
    if len(given) > METADATA_KEYS:
        raise InvalidRequest(f"{param} has at most {METADATA_KEYS} keys; this one has {len(given)}.", param=param)
    found = {_key(key, param): _value(value, param) for key, value in given.items()}
    return dict(sorted(found.items()))


def metadata_words(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts that are scanned: each pair, since a key may say that its value is a secret, and each value by
    itself, since it may begin like an order or a message. (A colon between them would make a message of `user`.)"""
    words: list[str] = []
    for key, value in sorted(metadata.items()):
        words += (f"{key} = {value}", value)
    return tuple(words)


def _key(key: Any, param: str) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= METADATA_KEY or not key.isprintable() or key != key.strip():
        raise InvalidRequest(
            f"A key of {param} has 1 to {METADATA_KEY} printable characters, without spaces around them.", param=param
        )
    return key


def _value(value: Any, param: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"Each value of {param} is a string. Write numbers and lists as text.", param=param)
    if len(value) > METADATA_VALUE:
        raise InvalidRequest(f"A value of {param} has at most {METADATA_VALUE} characters.", param=param)
    return storable_text(value)


Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=METADATA_KEY)],
        Annotated[str, StringConstraints(max_length=METADATA_VALUE)],
    ],
    BeforeValidator(clean_metadata),
    Field(max_length=METADATA_KEYS),
]
"""Metadata in a body. What is not one raises InvalidRequest itself: pydantic's message would repeat the keys."""
