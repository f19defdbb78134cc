"""The stored form of `Run.recalled`.

Most items are frozen memories with the same reason, and their API representation would be two thirds of a run's row. In
the database, successive memories of one lane with the same reason are one entry that lists their numbers. Rows from
before this form are read as they are. Pure functions."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

_NUMBERS = "memories"
_NUMBER = re.compile("0|[1-9][0-9]{0,18}")
_ITEM_KEYS = {"memory_id", "turn_id", "lane", "why"}


class RecalledEncoder(json.JSONEncoder):
    """Encodes recalled items for the database."""

    def encode(self, o: Any) -> str:
        return super().encode([*_shortened(o)] if isinstance(o, list) else o)


class RecalledDecoder(json.JSONDecoder):
    """Decodes recalled items from the database."""

    def decode(self, s: str, *args: Any) -> Any:
        stored = super().decode(s, *args)
        return [*_expanded(stored)] if isinstance(stored, list) else stored


def _shortened(items: Iterable[Any]) -> Iterator[Any]:
    for shared, group in groupby(items, _shared):
        if shared is None:
            yield from group
            continue
        lane, why = shared
        yield {"lane": lane, "why": why, _NUMBERS: [int(item["memory_id"]) for item in group]}


def _shared(item: Any) -> tuple[str, str] | None:
    """Return the lane and the reason of an item that is a memory of the book; None for any other."""
    if not isinstance(item, dict) or item.keys() != _ITEM_KEYS or item["turn_id"] is not None:
        return None
    number = item["memory_id"]
    return (item["lane"], item["why"]) if isinstance(number, str) and _NUMBER.fullmatch(number) else None


def _expanded(stored: Iterable[Any]) -> Iterator[Any]:
    for entry in stored:
        if isinstance(entry, dict) and _NUMBERS in entry:
            for number in entry[_NUMBERS]:
                yield {"memory_id": str(number), "turn_id": None, "lane": entry["lane"], "why": entry["why"]}
        else:
            yield entry
