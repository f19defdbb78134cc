"""The parts of a long message, each searched by itself: among the words of a text that somebody brought, those of the
question beside it would weigh nothing. docs/search.md has the figures."""

from __future__ import annotations

import re
from typing import Final

PART: Final = 200
"""Characters of a part. A message that is no longer is searched as a whole only."""
MOST_PARTS: Final = 12
"""Parts of one message; those of a longer one are longer."""
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_SENTENCES: Final = re.compile(r"\n|(?<=[.!?…])\s+|(?<=[。！？])")


def parts_of(text: str) -> list[str]:
    """Return the parts of a long message: sentences of one paragraph together, a question by itself. Empty where there
    is only one."""
    if len(text) <= PART:
        return []
    most = max(PART, len(text) // MOST_PARTS)
    parts: list[str] = []
    for paragraph in _PARAGRAPHS.split(text):
        part = ""
        for sentence in filter(None, map(str.strip, _SENTENCES.split(paragraph))):
            asks = sentence.endswith(("?", "？"))
            if part and (asks or len(part) + len(sentence) >= most):
                parts.append(part)
                part = ""
            part = f"{part} {sentence}" if part else sentence
            if asks:
                parts.append(part)
                part = ""
        if part:
            parts.append(part)
    return parts if len(parts) > 1 else []
