"""Views of a text: the same words without case, accents and disguises.
Each view maps every character to its position in the original, so that findings point into the original.
`respelling.py` and `rejoining.py` have the views of disguised words, `decoding.py` those of encoded passages. Most
views depend only on which characters a text contains, which are few, so these are checked first."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scanning.characters import cleaned, folded


@dataclass(frozen=True, slots=True)
class View:
    """A text to scan. `origin[i]` is the position of character `i` in the scanned text; `origin` has one more item, the
    end."""

    text: str
    origin: Sequence[int]
    decoded: bool = False  # True if its characters do not occur in the scanned text

    def located(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the scanned text of a span of this view; the end is exclusive."""
        first = self.origin[min(start, len(self.text))]
        last = self.origin[max(end - 1, start)] + 1 if end > start else first
        return first, max(first, min(last, self.origin[-1]))

    def edited(self, edits: Iterable[tuple[int, int, str]]) -> View:
        """Return the view with spans replaced, in order. New text is mapped to the first character of its span."""
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


def raw_view(text: str) -> View:
    """Return the unchanged text as a view."""
    return View(text, range(len(text) + 1))


_MARK_CATEGORIES = frozenset({"Mn", "Me"})


def folded_view(view: View) -> View:
    """Return the view without case, accents, width, style and invisible characters. ASCII keeps its length."""
    if view.text.isascii():
        return replace(view, text=view.text.lower())
    plain = {char: folded(char) for char in set(view.text)}
    marks = {char for char in plain if char > "\x7f" and unicodedata.category(char) in _MARK_CATEGORIES}
    if not marks and all(len(letter) == 1 for letter in plain.values()):
        return replace(view, text=view.text.translate({ord(char): letter for char, letter in plain.items()}))
    edits: list[tuple[int, int, str]] = []
    after_latin = False
    for at, char in enumerate(view.text):
        letter = plain[char]
        # A mark of another script on a Latin letter only hides the word.
        if after_latin and char in marks:
            letter = ""
        elif letter:
            after_latin = "a" <= letter[-1] <= "z"
        if letter != char:
            edits.append((at, at + 1, letter))
    return view.edited(edits)


def cleaned_view(view: View) -> View | None:
    """Return the view with width and style normalised and without invisible characters, in its original case; None if
    nothing changes."""
    if view.text.isascii():
        return None
    clean = {char: cleaned(char) for char in set(view.text)}
    if all(char == letter for char, letter in clean.items()):
        return None
    return view.edited((at, at + 1, clean[char]) for at, char in enumerate(view.text) if clean[char] != char)
