"""A conservative estimate of token counts, the same for every model: 4 ASCII characters or 1.5 other characters per
token, since other scripts take more tokens per character."""

from collections.abc import Iterable

CHARS_PER_TOKEN = 4
_NON_ASCII_PER_TOKEN = 1.5
_CUT = "\n[…]"


def text_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return round(plain / CHARS_PER_TOKEN + (len(text) - plain) / _NON_ASCII_PER_TOKEN)


def characters_within(characters: Iterable[str], limit: float) -> int:
    """Return the length of the longest prefix that takes at most `limit` tokens."""
    count, cost = 0, 0.0
    for character in characters:
        cost += 1 / CHARS_PER_TOKEN if character.isascii() else 1 / _NON_ASCII_PER_TOKEN
        if cost > limit:
            break
        count += 1
    return count


def cut_to_tokens(text: str, limit: int) -> str:
    """Return the text truncated to `limit` tokens, at a line end if there is one in the second half."""
    if text_tokens(text) <= limit:
        return text
    kept = text[: characters_within(text, limit - text_tokens(_CUT) - 1)]
    line_end = kept.rfind("\n")
    return (kept[:line_end] if line_end > len(kept) // 2 else kept).rstrip() + _CUT
