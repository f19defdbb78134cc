"""Splits a long message into parts that are searched separately. Otherwise, the words of a question would not count
among those of a long text pasted with it. docs/search.md has the measurements."""

from __future__ import annotations

import re
from typing import Final

PART_CHARS: Final = 200
"""Minimum size of a part. A message up to this length is only searched as a whole."""
MAX_PARTS: Final = 12
"""Approximate maximum number of parts; longer messages have longer parts."""
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_SENTENCES: Final = re.compile(r"\n|(?<=[.!?…])\s+|(?<=[。！？])")


def parts_of(text: str) -> list[str]:
    """Return the parts of a long message: sentences of a paragraph are combined, a question ends its part. Return []
    for a short message or a single part."""
    if len(text) <= PART_CHARS:
        return []
    max_chars = max(PART_CHARS, len(text) // MAX_PARTS)
    parts: list[str] = []
    for paragraph in _PARAGRAPHS.split(text):
        part = ""
        for sentence in filter(None, map(str.strip, _SENTENCES.split(paragraph))):
            is_question = sentence.endswith(("?", "？"))
            if part and (is_question or len(part) + len(sentence) >= max_chars):
                parts.append(part)
                part = ""
            part = f"{part} {sentence}" if part else sentence
            if is_question:
                parts.append(part)
                part = ""
        if part:
            parts.append(part)
    return parts if len(parts) > 1 else []
