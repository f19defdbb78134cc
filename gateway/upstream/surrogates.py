"""Characters that a model server splits over two chunks of a stream."""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.tool_calls import calls_in

_MAX_HALVES = 32  # characters of one answer whose second half is awaited
_TextKey = tuple[int, str, str]  # choice, field, call


class SurrogateJoiner:
    """Joins characters that a model server sends in halves: JSON can escape a character as a surrogate pair, and a
    server that cuts its text by UTF-16 units sends one half at the end of a chunk and the other at the beginning of the
    next. The first half is held back until the chunk with the second arrives. A half that stays alone is passed on as
    it is, at the latest with the end of its choice."""

    def __init__(self) -> None:
        self._held: dict[_TextKey, str] = {}

    def join(self, choices: Sequence[dict[str, Any]]) -> None:
        """Change the deltas of a chunk's choices in place."""
        for choice in choices:
            ends = bool(choice.get("finish_reason"))
            for key, texts, name in _texts(choice):
                text = self._held.pop(key, "") + texts[name]
                if not ends and len(self._held) < _MAX_HALVES and "\ud800" <= text[-1:] <= "\udbff":
                    self._held[key], text = text[-1], text[:-1]
                if text != texts[name]:
                    texts[name] = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            if ends and self._held:
                self._release(choice)

    def _release(self, choice: dict[str, Any]) -> None:
        """Add what is held of a choice that ends, of fields that its last delta does not have."""
        for key in [key for key in self._held if key[0] == _index(choice) and not key[2]]:
            choice["delta"] = {**(choice.get("delta") or {}), key[1]: self._held.pop(key)}


def _index(item: dict[str, Any]) -> int:
    index = item.get("index", 0)
    return index if isinstance(index, int) else 0


def _texts(choice: dict[str, Any]) -> Iterator[tuple[_TextKey, dict[str, Any], str]]:
    """Yield a key, the object and the name of each text in a delta: its fields, and the arguments of its calls."""
    delta, index = choice.get("delta") or {}, _index(choice)
    for name, value in delta.items():
        if isinstance(value, str):
            yield (index, name, ""), delta, name
    for call in calls_in(delta):
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            yield (index, "arguments", f"call {_index(call)}"), function, "arguments"
