"""bench/review_latency.py: when it reports a failure"""

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("review_latency")


def figures(**changed: float) -> dict[str, Any]:
    return {"ratio_turn_p50": 1.0, "ratio_first_token_p50": 1.0, "review_requests": 3, **changed}


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.05])
def test_ratios_up_to_the_limit_pass(bench: Any, ratio: float) -> None:
    assert bench.problems(figures(ratio_turn_p50=ratio, ratio_first_token_p50=ratio), due=3, limit=1.05) == []


@pytest.mark.parametrize("name", ["ratio_turn_p50", "ratio_first_token_p50"])
@pytest.mark.parametrize("ratio", [1.0501, 2.0, float("nan")])
def test_each_ratio_above_the_limit_fails(bench: Any, name: str, ratio: float) -> None:
    (problem,) = bench.problems(figures(**{name: ratio}), due=3, limit=1.05)
    assert problem.startswith(name)


def test_missing_reviews_fail(bench: Any) -> None:
    assert bench.problems(figures(review_requests=2), due=3, limit=1.05)
