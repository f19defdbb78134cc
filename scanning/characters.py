"""Properties of characters: which are invisible, which look like Latin letters, which script they belong to.
Used to fold texts (views.py) and to find hidden characters (hidden.py)."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

TAG_FIRST, TAG_LAST = 0xE0000, 0xE007F
BLACK_FLAG = "\U0001f3f4"

# Invisible characters. Tag characters and variation selectors are ranges in is_invisible.
INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f"
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2065\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f"
    "\ufeff\ufff9\ufffa\ufffb\U0001d173\U0001d174\U0001d175\U0001d176\U0001d177\U0001d178\U0001d179\U0001d17a"
)
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


def is_invisible(char: str) -> bool:
    """Return True if the character is invisible and has no width."""
    if char in INVISIBLE:
        return True
    point = ord(char)
    return TAG_FIRST <= point <= TAG_LAST or 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF


def is_blank(text: str) -> bool:
    """Return True if the text has only white space and invisible characters, or nothing."""
    return all(char.isspace() or is_invisible(char) for char in text)


def is_accent(char: str) -> bool:
    """Return True if the character is a mark that can be removed without changing the word for a reader."""
    point = ord(char)
    return (
        0x0300 <= point <= 0x036F
        or 0x0483 <= point <= 0x0489
        or 0x1AB0 <= point <= 0x1AFF
        or 0x1DC0 <= point <= 0x1DFF
        or 0x20D0 <= point <= 0x20FF
        or 0xFE20 <= point <= 0xFE2F
        or 0x0591 <= point <= 0x05C7  # Hebrew points
        or 0x064B <= point <= 0x065F  # Arabic vowels and hamza marks
        or point in (0x0640, 0x0670, 0x093C)  # Arabic stretch and small alef, Devanagari dot
    )


@lru_cache(maxsize=8192)
def cleaned(char: str) -> str:
    """Return the character with width and style normalised, but case and accents unchanged; "" if it is invisible."""
    return "" if is_invisible(char) else unicodedata.normalize("NFKC", char)


@lru_cache(maxsize=8192)
def folded(char: str) -> str:
    """Return the character without case, accents, width and style; "" if it is invisible or an accent."""
    if char in BLANKS:
        return " "
    if is_invisible(char) or is_accent(char):
        return ""
    if unicodedata.category(char) == "Cs":
        return "\ufffd"
    # Case folding may add accents (the Turkish capital I with a dot), so accents are removed last.
    lowered = unicodedata.normalize("NFKC", char).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", lowered) if not is_accent(c))
    return unicodedata.normalize("NFKC", plain).translate(_ARABIC_VARIANTS)


@lru_cache(maxsize=8192)
def script_of(char: str) -> str:
    """Return the script of a letter as the first word of its Unicode name (LATIN, CYRILLIC, …); "" for other
    characters."""
    if not char.isalpha():
        return ""
    name = unicodedata.name(char, "")
    return name.split(" ", 1)[0].split("-", 1)[0]
