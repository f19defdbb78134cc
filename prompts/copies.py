"""Is a text a copy of one of our own prompts? A model that repeats its instructions must not get them remembered.

Compared by runs of three words, so case, punctuation, line breaks and a word changed here and there do not matter."""

import re
import unicodedata
from functools import cache

from prompts.files import PROMPTS, packaged_texts, prompt_file

_WORD = re.compile(r"[^\W_]+")
_RUN = 3
# A copy shares half of its runs with a prompt, or so many that a whole passage of it must be inside.
_SHARE = 0.5
_FEWEST = 5
_SENTENCE = 4  # where every run is the prompt's
_PASSAGE = 25


def is_prompt_copy(text: str) -> bool:
    """Return True if a text is a close copy of a prompt of ours, of a part of one, or holds a passage of one."""
    runs = _runs(text)
    shared = len(runs & _runs_of(_texts()))
    needed = _SENTENCE if shared == len(runs) else max(_FEWEST, _SHARE * len(runs))
    return shared >= min(needed, _PASSAGE)


def _texts() -> frozenset[str]:
    """Return the prompts as they are used, and as they were shipped: a model may know those."""
    return frozenset([*(prompt_file(name).text for name in PROMPTS), *packaged_texts().values()])


@cache
def _runs_of(texts: frozenset[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(run for text in texts for run in _runs(text))


def _runs(text: str) -> set[tuple[str, ...]]:
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    words = _WORD.findall(visible.casefold())
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
