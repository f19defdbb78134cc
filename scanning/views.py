"""Views of a text: the same words with case, accents, disguise and spacing taken away.
Each view keeps, for every character, where it came from, so that findings point into the original. `rejoining.py` has
those of words that were taken apart, `decoding.py` those of encoded passages. What a text's letters are decides most
views, and a text has few different letters: they are looked at first."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from scanning.characters import LOOKALIKES, cleaned, folded


@dataclass(frozen=True, slots=True)
class View:
    """A text to look at. `origin[i]` is the position in the scanned text of character `i`;
    `origin` has one more item than the text, the end."""

    text: str
    origin: Sequence[int]
    decoded: bool = False  # its characters do not stand in the scanned text

    def located(self, start: int, end: int) -> tuple[int, int]:
        """Positions in the scanned text of a span of this view; the end is exclusive."""
        first = self.origin[min(start, len(self.text))]
        last = self.origin[max(end - 1, start)] + 1 if end > start else first
        return first, max(first, min(last, self.origin[-1]))

    def edited(self, edits: Iterable[tuple[int, int, str]]) -> View:
        """Return the view with some spans replaced, given in order; what is new stands for a span's first character."""
        letters: list[str] = []
        origin: list[int] = []
        at = 0
        for start, end, new in edits:
            letters += (self.text[at:start], new)
            origin += self.origin[at:start]
            origin += [self.origin[start]] * len(new)
            at = end
        letters.append(self.text[at:])
        origin += self.origin[at:]
        return View("".join(letters), origin, self.decoded)

    def respelled(self, text: str) -> View | None:
        """Return the view with a text of the same length; None if it is the same text."""
        return replace(self, text=text) if text != self.text else None


def raw_view(text: str) -> View:
    """Return the text as it is."""
    return View(text, range(len(text) + 1))


_MARKS = frozenset({"Mn", "Me"})


def folded_view(view: View) -> View:
    """Without case, accents, width, style and invisible characters; same length for plain ASCII."""
    if view.text.isascii():
        return replace(view, text=view.text.lower())
    plain = {char: folded(char) for char in set(view.text)}
    marks = {char for char in plain if char > "\x7f" and unicodedata.category(char) in _MARKS}
    if not marks and all(len(letter) == 1 for letter in plain.values()):
        return replace(view, text=view.text.translate({ord(char): letter for char, letter in plain.items()}))
    edits: list[tuple[int, int, str]] = []
    after_latin = False
    for at, char in enumerate(view.text):
        letter = plain[char]
        # A mark of another script says nothing on a Latin letter; it only hides the word.
        if after_latin and char in marks:
            letter = ""
        elif letter:
            after_latin = "a" <= letter[-1] <= "z"
        if letter != char:
            edits.append((at, at + 1, letter))
    return view.edited(edits)


def cleaned_view(view: View) -> View | None:
    """Width and style normalised and invisible characters taken out, case kept; None if nothing changes."""
    if view.text.isascii():
        return None
    clean = {char: cleaned(char) for char in set(view.text)}
    if all(char == letter for char, letter in clean.items()):
        return None
    return view.edited((at, at + 1, clean[char]) for at, char in enumerate(view.text) if clean[char] != char)


_LOOKALIKES = str.maketrans({char: letters[0] for char, letters in LOOKALIKES.items()})


def lookalike_view(view: View) -> View | None:
    """Letters of other scripts turned into the Latin letters they look like; None if there are none."""
    return None if view.text.isascii() else view.respelled(view.text.translate(_LOOKALIKES))


_LEET = str.maketrans("0134578@$!|", "oleastbasil")
_LEET_I = str.maketrans("0134578@$!|", "oieastbasil")
_LEET_PLACE = re.compile(r"[a-z][013457@$!]|[013457@$!][a-z]")
_LEET_WORDS = 3


def leet_views(view: View) -> Iterator[View]:
    """Digits and signs read as the letters they stand for, when several words are written that way."""
    if len(_LEET_PLACE.findall(view.text)) < _LEET_WORDS:
        return
    if sum(1 for word in view.text.split() if _LEET_PLACE.search(word)) >= _LEET_WORDS:
        yield from (replace(view, text=view.text.translate(table)) for table in (_LEET, _LEET_I))


# Words that announce a secret, with digits or signs for some letters: one such word is enough to disguise the label.
_LEET_LABEL = re.compile(
    r"(?<![^\W_])(?:p[a4@][s5$]{2}(?:[_-]?(?:w[o0]rd|c[o0]d[e3]|phr[a4@][s5$][e3])|wd)|[a4@]p[i1!][_ -]?k[e3]y"
    r"|s[e3]cr[e3]t|t[o0]k[e3]n|p[i1!]n)(?![^\W_])"
)
_LEET_LABEL_LETTERS = str.maketrans("01345@$!", "oieasasi")


def labels_view(view: View) -> View | None:
    """Words such as "passw0rd" as they are read, everything else as it is; None if there are none."""
    return view.respelled(_LEET_LABEL.sub(lambda label: label.group().translate(_LEET_LABEL_LETTERS), view.text))


def reversed_view(view: View) -> View:
    """Return the text from back to front."""
    return View(view.text[::-1], [*reversed(view.origin[:-1]), view.origin[-1]], decoded=True)
