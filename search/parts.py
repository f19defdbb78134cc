"""Splits a long message into parts that are searched separately. Otherwise, the words of a question would not count
among those of a long text pasted with it. docs/search.md has the measurements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

PART_CHARS: Final = 200
"""Minimum size of a part. A message up to this length is only searched as a whole."""
MAX_PARTS: Final = 12
"""Approximate maximum number of parts; longer messages have longer parts."""
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_SENTENCES: Final = re.compile(r"\n|(?<=[.!?…])\s+|(?<=[。！？])")


def parts_of(text: str) -> list[str]:
    """Return the parts of a long message: sentences of a paragraph are combined, a question is a part by itself. If
    that gives far too many parts, neighbouring paragraphs are combined, too, and then questions. Return [] for a short
    message or a single part."""
    if len(text) <= PART_CHARS:
        return []
    max_chars = max(PART_CHARS, len(text) // MAX_PARTS)
    paragraphs = (filter(None, map(str.strip, _SENTENCES.split(paragraph))) for paragraph in _PARAGRAPHS.split(text))
    parts = [part for sentences in paragraphs for part in _combined(sentences, max_chars, questions_apart=True)]
    for questions_apart in (True, False):
        if len(parts) > 2 * MAX_PARTS:
            parts = list(_combined(parts, max_chars, questions_apart=questions_apart))
    return parts if len(parts) > 1 else []


def _combined(texts: Iterable[str], max_chars: int, *, questions_apart: bool) -> Iterator[str]:
    """Yield consecutive texts, combined up to `max_chars`."""
    part = ""
    for text in texts:
        is_question = questions_apart and text.endswith(("?", "？"))
        if part and (is_question or len(part) + len(text) >= max_chars):
            yield part
            part = ""
        part = f"{part} {text}" if part else text
        if is_question:
            yield part
            part = ""
    if part:
        yield part
