"""search.ranking finds the best entries without sorting the whole book."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from search import ranking
from search.analysis import AnalysisCache
from search.book import build_arrays
from search.entries import Entry

SIZES = [1, 2, 7, 40, 319, 320, 321, 1000, 10_000]


def scores_of(size: int, *, with_ties: bool) -> Any:
    drawn = np.random.default_rng(size).normal(size=size).astype(np.float32)
    return np.round(drawn, 1) if with_ties else drawn


@pytest.mark.parametrize("with_ties", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_the_best_entries_are_the_same_as_with_sorting(size: int, with_ties: bool) -> None:
    found = scores_of(size, with_ties=with_ties)
    for count in (1, 13, 20, 140):
        best = (-found).argsort(kind="stable")[:count]
        assert ranking.best_places(found, count).tolist() == best.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_the_threshold_lies_between_the_middle_of_the_book_and_its_best_entry(size: int) -> None:
    nothing: Any = SimpleNamespace()
    found = scores_of(size, with_ties=False)
    with patch.object(ranking, "has_enough_evidence", return_value=True), patch.object(ranking, "chance_points"):
        threshold = ranking.min_score(nothing, nothing, found, ranking.best_places(found, size), nothing)
    middle = float(np.median(found.astype(np.float64)))
    assert threshold == pytest.approx(middle + ranking.TAIL_SHARE * (float(found.max()) - middle), abs=1e-5)


def test_facts_with_keywords_need_more_evidence() -> None:
    facts = [Entry(number=number, content=f"The kettle of flat {number} is blue") for number in range(3)]
    with_keywords = [replace(facts[0], keywords=("tea", "boiling")), *facts[1:]]
    plain, found = (build_arrays(entries, AnalysisCache()) for entries in (facts, with_keywords))
    assert ranking.chance_points(found) > ranking.chance_points(plain) == 0
