"""Views of a text: the same words with case, accents, disguise and spacing taken away.
Each view keeps, for every character, where it came from, so that findings point into the original.
`plain_views` gives the readable views, `decoding.py` adds those of encoded passages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scanning.characters import LOOKALIKES, cleaned, folded


@dataclass(frozen=True, slots=True)
class View:
    """A text to look at. `origin[i]` is the position in the scanned text of character `i`;
    `origin` has one more item than the text, the end."""

    name: str
    text: str
    origin: Sequence[int]
    decoded: bool = False  # its characters do not stand in the scanned text

    def located(self, start: int, end: int) -> tuple[int, int]:
        """Positions in the scanned text of a span of this view; the end is exclusive."""
        first = self.origin[min(start, len(self.text))]
        last = self.origin[max(end - 1, start)] + 1 if end > start else first
        return first, max(first, min(last, self.origin[-1]))


def raw_view(text: str) -> View:
    """Return the text as it is."""
    return View("raw", text, range(len(text) + 1))


def folded_view(view: View) -> View:
    """Without case, accents, width, style and invisible characters; same length for plain ASCII."""
    if view.text.isascii():
        return View("folded", view.text.lower(), view.origin, view.decoded)
    letters: list[str] = []
    origin: list[int] = []
    after_latin = False
    for position, char in enumerate(view.text):
        plain = folded(char)
        # A mark of another script says nothing on a Latin letter; it only hides the word.
        if after_latin and plain and char > "\x7f" and unicodedata.category(char) in {"Mn", "Me"}:
            plain = ""
        elif plain:
            after_latin = "a" <= plain[-1] <= "z"
        letters.append(plain)
        origin.extend([view.origin[position]] * len(plain))
    origin.append(view.origin[-1])
    return View("folded", "".join(letters), origin, view.decoded)


def cleaned_view(view: View) -> View | None:
    """Width and style normalised and invisible characters taken out, case kept; None if nothing changes."""
    if view.text.isascii():
        return None
    letters: list[str] = []
    origin: list[int] = []
    for position, char in enumerate(view.text):
        plain = cleaned(char)
        letters.append(plain)
        origin.extend([view.origin[position]] * len(plain))
    origin.append(view.origin[-1])
    text = "".join(letters)
    return View("cleaned", text, origin, view.decoded) if text != view.text else None


def lookalike_view(view: View) -> View | None:
    """Letters of other scripts turned into the Latin letters they look like; None if there are none."""
    if view.text.isascii():
        return None
    text = "".join(LOOKALIKES.get(char, char)[0] for char in view.text)
    return View("lookalike", text, view.origin, view.decoded) if text != view.text else None


_LEET = str.maketrans("0134578@$!|", "oleastbasil")
_LEET_I = str.maketrans("0134578@$!|", "oieastbasil")
_LEET_WORD = re.compile(r"[a-z][013457@$!]|[013457@$!][a-z]")


def leet_views(view: View) -> Iterator[View]:
    """Digits and signs read as the letters they stand for, when several words are written that way."""
    if sum(1 for word in view.text.split() if _LEET_WORD.search(word)) < 3:
        return
    for table in (_LEET, _LEET_I):
        yield View("leet", view.text.translate(table), view.origin, view.decoded)


# Words that announce a secret, with digits or signs for some letters: one such word is enough to disguise the label.
_LEET_LABEL = re.compile(
    r"(?<![^\W_])(?:p[a4@][s5$]{2}(?:[_-]?(?:w[o0]rd|c[o0]d[e3]|phr[a4@][s5$][e3])|wd)|[a4@]p[i1!][_ -]?k[e3]y"
    r"|s[e3]cr[e3]t|t[o0]k[e3]n|p[i1!]n)(?![^\W_])"
)
_LEET_LABEL_LETTERS = str.maketrans("01345@$!", "oieasasi")


def labels_view(view: View) -> View | None:
    """Words such as "passw0rd" as they are read, everything else as it is; None if there are none."""
    text = _LEET_LABEL.sub(lambda label: label.group().translate(_LEET_LABEL_LETTERS), view.text)
    return View("labels", text, view.origin, view.decoded) if text != view.text else None


def reversed_view(view: View) -> View:
    """Return the text from back to front."""
    return View("reversed", view.text[::-1], [*reversed(view.origin[:-1]), view.origin[-1]], decoded=True)
