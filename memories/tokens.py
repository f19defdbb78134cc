"""How many tokens a text takes: one estimate for every model, on the safe side. Four ASCII characters are a
token, and one and a half others: scripts beyond ASCII take more tokens per character."""

from collections.abc import Iterable

CHARS_PER_TOKEN = 4
_OTHERS_PER_TOKEN = 1.5
_CUT = "\n[…]"


def text_tokens(text: str) -> int:
    """Return about how many tokens a text is."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return round(plain / CHARS_PER_TOKEN + (len(text) - plain) / _OTHERS_PER_TOKEN)


def characters_within(characters: Iterable[str], limit: float) -> int:
    """Return how many of the first characters take at most `limit` tokens together."""
    count, cost = 0, 0.0
    for character in characters:
        cost += 1 / CHARS_PER_TOKEN if character.isascii() else 1 / _OTHERS_PER_TOKEN
        if cost > limit:
            break
        count += 1
    return count


def cut_to_tokens(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` tokens long, cut at the end of a line where there is one."""
    if text_tokens(text) <= limit:
        return text
    kept = text[: characters_within(text, limit - text_tokens(_CUT) - 1)]
    line_end = kept.rfind("\n")
    return (kept[:line_end] if line_end > len(kept) // 2 else kept).rstrip() + _CUT
