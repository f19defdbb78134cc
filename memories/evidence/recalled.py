"""The words in what a model was given from memory, without what is put around them: tags of blocks, and the JSON of our
tools' results. A quote of them is shown to people."""

from collections.abc import Iterator
from typing import Any

from memories.errors import InvalidRequest
from memories.json_input import read_json
from prompts.memory import texts_in_blocks

_SAID = frozenset({"content", "text"})  # members of results that hold what is remembered


def recalled_words(text: str) -> list[str]:
    """Return the words in a block, or in the result of one of our tools, each memory by itself; of any other text the
    text."""
    if text.startswith("{"):
        try:
            result = read_json(text)
        except InvalidRequest:
            return [text]
        if isinstance(result, dict) and "ok" in result:
            return list(_said(result))
    return texts_in_blocks(text) or [text]


def _said(value: Any) -> Iterator[str]:
    """Yield the remembered texts in a result. Our results are flat: a list of memories, or a document."""
    for entry in (value, *(row for member in value.values() if isinstance(member, list) for row in member)):
        if isinstance(entry, dict):
            yield from (entry[name] for name in _SAID & entry.keys() if isinstance(entry[name], str))
