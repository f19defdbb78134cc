"""Properties of characters: which are invisible, which look like Latin letters, which script they belong to.
Used to fold texts (views.py) and to find hidden characters (hidden.py)."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

BLACK_FLAG = "\U0001f3f4"


def _characters(*ranges: str) -> frozenset[str]:
    """Return all characters from the first to the last one of each range."""
    return frozenset(chr(point) for ends in ranges for point in range(ord(ends[0]), ord(ends[-1]) + 1))


# Characters without a width, such as variation selectors and tag characters.
INVISIBLE = _characters(
    "\u00ad", "\u034f", "\u061c", "\u115f\u1160", "\u17b4\u17b5", "\u180b\u180f", "\u200b\u200f", "\u202a\u202e",
    "\u2060\u206f", "\ufe00\ufe0f", "\ufeff", "\ufff9\ufffb", "\U0001d173\U0001d17a", "\U000e0000\U000e007f",
    "\U000e0100\U000e01ef",
)  # fmt: skip
# Marks that can be removed without changing the word for a reader.
ACCENTS = _characters(
    "\u0300\u036f", "\u0483\u0489", "\u1ab0\u1aff", "\u1dc0\u1dff", "\u20d0\u20ff", "\ufe20\ufe2f",
    "\u0591\u05c7",  # Hebrew points
    "\u064b\u065f", "\u0640", "\u0670",  # Arabic vowels and hamza marks, stretch, small alef
    "\u093c",  # Devanagari dot
)  # fmt: skip
# Invisible but with a width, like a space.
BLANKS = frozenset("\u3164\uffa0\u2800\u3000\u00a0")

# Letters of other scripts that look like Latin letters. Only lower case, since folding comes first.
LOOKALIKES: dict[str, str] = {
    **dict(zip("абвгԁеёһіјкӏмнопрԛгѕтуѵԝхзьч", "abbrdeehijklmhonpqrstuvwxzb4", strict=True)),
    **dict(zip("αβγδεζηθικλμνξοπρςστυφχψω", "abydezn0iklmv3onpcstuoxww", strict=True)),
    **dict(zip("աեօսոհցզյիռրտպֆաԁ", "wtounhgqjhnrshfwd", strict=True)),
    "ѡ": "w", "ԍ": "g", "ϲ": "c", "ϳ": "j", "ɑ": "a", "ɡ": "g", "ɩ": "i", "ı": "i", "ʟ": "l", "ɴ": "n",
    "ɪ": "i", "ʀ": "r", "ʏ": "y", "ʜ": "h", "ʙ": "b", "ɢ": "g", "ᴀ": "a", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e",
    "ᴊ": "j", "ᴋ": "k", "ᴍ": "m", "ᴏ": "o", "ᴘ": "p", "ꜱ": "s", "ᴛ": "t", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w",
    "ᴢ": "z", "ꮪ": "s", "ꭺ": "a", "ꮯ": "c", "ꭼ": "e", "ꮋ": "h", "ꮢ": "r", "ꭲ": "i", "ꮖ": "i", "ß": "ss",
    "с": "c", "р": "p", "о": "o", "п": "n", "г": "r", "ғ": "f", "ѳ": "o", "ү": "y", "ҡ": "k", "ø": "o",
    "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ǀ": "l", "ƒ": "f", "ɛ": "e", "ɔ": "o", "ʋ": "u", "ʌ": "v",
}  # fmt: skip

# Arabic and Persian use different code points for these letters.
_ARABIC_VARIANTS = str.maketrans("يىكةھ", "ییکهه")


def is_blank(text: str) -> bool:
    """Return True if the text has only white space and invisible characters, or nothing."""
    return all(char.isspace() or char in INVISIBLE for char in text)


@lru_cache(maxsize=8192)
def cleaned(char: str) -> str:
    """Return the character with width and style normalised, but case and accents unchanged; "" if it is invisible."""
    return "" if char in INVISIBLE else unicodedata.normalize("NFKC", char)


@lru_cache(maxsize=8192)
def folded(char: str) -> str:
    """Return the character without case, accents, width and style; "" if it is invisible or an accent."""
    if char in BLANKS:
        return " "
    if char in INVISIBLE or char in ACCENTS:
        return ""
    if unicodedata.category(char) == "Cs":
        return "\ufffd"
    # Case folding may add accents (the Turkish capital I with a dot), so accents are removed last.
    lowered = unicodedata.normalize("NFKC", char).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", lowered) if c not in ACCENTS)
    return unicodedata.normalize("NFKC", plain).translate(_ARABIC_VARIANTS)


@lru_cache(maxsize=8192)
def script_of(char: str) -> str:
    """Return the script of a letter as the first word of its Unicode name (LATIN, CYRILLIC, …); "" for other
    characters."""
    if not char.isalpha():
        return ""
    name = unicodedata.name(char, "")
    return name.split(" ", 1)[0].split("-", 1)[0]
