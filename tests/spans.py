"""Texts without some of their parts."""

from collections.abc import Iterable


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return what is left of a text when spans, in order, are taken out."""
    left, at = [], 0
    for start, end in spans:
        left.append(text[at:start])
        at = end
    return "".join([*left, text[at:]]).strip()
