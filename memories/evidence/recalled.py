"""Extract the remembered texts from an injected block or the result of a memory tool, without tags and JSON. Quotes of
them are shown to people. The entries of another memory provider are in the same blocks, but are not ours."""

from collections.abc import Iterator
from typing import Any

from memories.errors import InvalidRequest
from memories.json_input import read_json
from prompts.memory import texts_in_blocks

_TEXT_FIELDS = frozenset({"content", "text"})  # fields of tool results that contain remembered text


def recalled_words(text: str) -> list[tuple[str, bool]]:
    """Return each memory's text in an injected block or the result of a memory tool, and whether it is ours. Any other
    text is returned whole."""
    if text.startswith("{"):
        try:
            result = read_json(text)
        except InvalidRequest:
            return [(text, True)]
        if isinstance(result, dict) and "ok" in result:
            return [(words, True) for words in _remembered_texts(result)]
    return texts_in_blocks(text) or [(text, True)]


def _remembered_texts(value: Any) -> Iterator[str]:
    """Yield the remembered texts in a tool result, which is a flat list of memories or a document."""
    for entry in (value, *(row for member in value.values() if isinstance(member, list) for row in member)):
        if isinstance(entry, dict):
            yield from (entry[name] for name in _TEXT_FIELDS & entry.keys() if isinstance(entry[name], str))
