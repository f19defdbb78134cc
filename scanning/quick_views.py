"""The views of `views.py` where they can be told at once: what a text's letters are decides most of them, and a text
has few different letters. Each answers exactly like the function that it stands before."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from scanning.characters import LOOKALIKES, cleaned, folded
from scanning.views import View, cleaned_view, folded_view, leet_views, lookalike_view

_LEET = re.compile(r"[a-z][013457@$!]|[013457@$!][a-z]")
_LEET_WORDS = 3
_MARKS = frozenset({"Mn", "Me"})


def quick_folded(view: View) -> View:
    """Return views.folded_view: letter by letter only where a mark stands on a letter, or one becomes several."""
    if view.text.isascii():
        return folded_view(view)
    letters: dict[int, str] = {}
    for char in set(view.text):
        letters[ord(char)] = plain = folded(char)
        if len(plain) != 1 or (char > "\x7f" and unicodedata.category(char) in _MARKS):
            return folded_view(view)
    return View("folded", view.text.translate(letters), view.origin, view.decoded)


def quick_cleaned(view: View) -> View | None:
    """Return views.cleaned_view; None at once if no letter of the text would change."""
    if view.text.isascii() or all(cleaned(char) == char for char in set(view.text)):
        return None
    return cleaned_view(view)


def quick_lookalike(view: View) -> View | None:
    """Return views.lookalike_view; None at once if no letter of the text looks like another."""
    if all(LOOKALIKES.get(char, char)[0] == char for char in set(view.text)):
        return None
    return lookalike_view(view)


def quick_leet(view: View) -> Iterator[View]:
    """Return views.leet_views; none at once if the whole text has fewer such places than words are needed."""
    if len(_LEET.findall(view.text)) >= _LEET_WORDS:
        yield from leet_views(view)
