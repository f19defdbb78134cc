"""Remove spans from texts."""

from collections.abc import Iterable


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without these spans, which are sorted."""
    rest, at = [], 0
    for start, end in spans:
        rest.append(text[at:start])
        at = end
    return "".join([*rest, text[at:]]).strip()
