"""What the person had to ask for twice: how they want it, even if they never said so."""

import re
from collections.abc import Iterator, Sequence

from gateway.demo import cues, left_alone
from gateway.demo.statements import Statement, sentences_of, terms, third_person, unopened

_AGAIN = re.compile(
    r"\b(?:again|still|as I said|I (?:already )?(?:said|told|asked)|like before|once more"
    r"|same (?:\w+ )?(?:problem|thing|way|mistake|rule))\b",
    re.IGNORECASE,
)
_FAULT = re.compile(
    r"\b(?:too|way|so) (long|wordy|verbose|chatty|detailed|short|formal|complicated|vague|loud)\b", re.IGNORECASE
)
_LIMIT = re.compile(r"\bno [\w -]{3,40}|\b(?:\w+ ){1,3}max(?:imum)?\b|\bat most [\w ]{3,30}", re.IGNORECASE)
_BETTER = {
    **dict.fromkeys(("long", "wordy", "verbose", "chatty", "detailed"), "shorter"),
    **{"short": "longer", "formal": "less formal", "complicated": "simpler", "vague": "more precise"},
    "loud": "calmer",
}
_GENRE = re.compile(r"\b(e-?mail|letter|message|mail|summary|caption|post|report|list)\b", re.IGNORECASE)


def repeated_wishes(messages: Sequence[str]) -> list[Statement]:
    """How the person wants answers or texts, where they came back to it: of their messages in order."""
    found: dict[str, None] = {}
    for place, text in enumerate(messages):
        named = [match[1].casefold() for earlier in messages[: place + 1] for match in _GENRE.finditer(earlier)]
        for asked, wish in _wishes(text, f"{named[-1]}s".replace("ys", "ies") if named else "answers"):
            if any(_AGAIN.search(later) and terms(asked) & terms(later) for later in messages[place + 1 :]):
                found[wish] = None
    return [Statement(wish, "user", "preference", 0) for wish in found]


def _wishes(text: str, genre: str) -> Iterator[tuple[str, str]]:
    """(what was asked, how it is noted)"""
    for sentence in sentences_of(left_alone.own_words(text)):
        said = unopened(sentence)
        if left_alone.is_never_kept(said):
            continue
        if fault := _FAULT.search(said):
            yield fault[0], f"Wants {_BETTER[fault[1].casefold()]} {genre}."
        elif limit := _LIMIT.search(said):
            yield limit[0], f"Wants {genre} with {limit[0].removesuffix(' please').strip()}."
        elif cues.ORDER.match(said):
            yield said, f"Wants {genre} like this: {third_person(said)}"
