"""The strings of a JSON value, and its fields by path. Paths descend into lists: `messages.name` is the name of every
message."""

from collections.abc import Iterator, Sequence
from typing import Any


def without(value: Any, path: Sequence[str]) -> Any:
    """Return a copy of a JSON value without the fields at a path."""
    if isinstance(value, list):
        return [without(item, path) for item in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: item for name, item in value.items() if name != path[0]}
    return {**value, path[0]: without(value[path[0]], path[1:])}


def found_at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path."""
    if isinstance(value, list):
        for item in value:
            yield from found_at(item, path)
    elif not path:
        yield value
    elif isinstance(value, dict) and path[0] in value:
        yield from found_at(value[path[0]], path[1:])


def texts_in(value: Any) -> Iterator[str]:
    """Yield every string within a JSON value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
