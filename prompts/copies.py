"""Detects copies of our own prompts, so that a model which repeats its instructions cannot save them as memories.

Texts are compared by runs of three words, so case, punctuation, line breaks and single changed words do not matter."""

import re
import unicodedata
from functools import cache

from prompts.files import PROMPTS, packaged_texts, prompt_file

_WORD = re.compile(r"[^\W_]+")
_RUN_WORDS = 3
# A copy shares at least half of its runs with the prompts, or as many as a whole passage has.
_MIN_SHARE = 0.5
_MIN_RUNS = 5
_MIN_RUNS_IF_ALL_SHARED = 4  # enough if every run is shared
_PASSAGE_RUNS = 25


def is_prompt_copy(text: str) -> bool:
    """Return True if a text is a close copy of a prompt or of a part of one, or contains a passage of one."""
    runs = _runs(text)
    shared = len(runs & _runs_of(_texts()))
    needed = _MIN_RUNS_IF_ALL_SHARED if shared == len(runs) else max(_MIN_RUNS, _MIN_SHARE * len(runs))
    return shared >= min(needed, _PASSAGE_RUNS)


def _texts() -> frozenset[str]:
    """Return the current texts of the prompts, and the shipped ones, which a model may know."""
    return frozenset([*(prompt_file(name).text for name in PROMPTS), *packaged_texts().values()])


@cache
def _runs_of(texts: frozenset[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(run for text in texts for run in _runs(text))


def _runs(text: str) -> set[tuple[str, ...]]:
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    words = _WORD.findall(visible.casefold())
    return {tuple(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1)}
