"""The strict search: every keyword occurs in the entry, as SQL `LIKE '%keyword%'` would find it.

SQLite's LIKE ignores case for ASCII letters only, PostgreSQL's ILIKE for what its locale knows. So
that both databases and this module agree, case is taken away before the comparison and by one
function, `fold`; what is then compared are plain substrings.
"""

from __future__ import annotations

from collections.abc import Sequence

from memories.search.entries import Entry


def fold(text: str) -> str:
    """Return `text` as it is compared: Unicode case folding, nothing else.

    Folding works character by character, so a part of a text folds to a part of the folded text
    (`str.lower` does not keep that promise for the Greek final sigma).
    """
    return text.casefold()


def escape_like(keyword: str) -> str:
    r"""Return the folded keyword as a LIKE pattern with `\`, `%` and `_` escaped by `\`."""
    escaped = fold(keyword).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"


def holds_all(folded_content: str, folded_keywords: Sequence[str]) -> bool:
    """Say whether every folded keyword is a part of the folded content."""
    return all(keyword in folded_content for keyword in folded_keywords)


def places_of(folded_contents: Sequence[str], keywords: Sequence[str]) -> list[int]:
    """Return the places of the folded contents that hold every keyword, ascending; all without keywords."""
    places = list(range(len(folded_contents)))
    for keyword in sorted(map(fold, keywords), key=len, reverse=True):
        places = [at for at in places if keyword in folded_contents[at]]
        if not places:
            break
    return places


def match_all(
    entries: Sequence[Entry], keywords: Sequence[str], *, limit: int, category: str | None = None
) -> list[Entry]:
    """Return at most `limit` entries whose content holds every keyword, in insertion order.

    Without keywords every entry qualifies. `category` keeps only entries of exactly that category.
    """
    wanted = [fold(keyword) for keyword in keywords]
    found: list[Entry] = []
    for entry in entries:
        if len(found) >= limit:
            break
        if category is not None and entry.category != category:
            continue
        if holds_all(fold(entry.content), wanted):
            found.append(entry)
    return found
