"""bench/review_quality.py: its scoring, and the harness with invented cases"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.review_scoring import score_case, totals
from tests import warm_process
from tests.migrated import migrated_file

BENCH = Path(__file__).resolve().parents[2] / "bench" / "review_quality.py"
CASE: dict[str, Any] = {
    "id": "a",
    "title": "Moving",
    "kinds": ["contradiction_update", "personal_fact"],
    "lang": "en",
    "existing": [
        {"id": "m1", "target": "user", "content": "Lives in Leeds."},
        {"id": "m2", "target": "user", "content": "Had an operation."},
    ],
    "messages": [
        {"role": "user", "content": "I moved from Leeds to York and only drink oolong. Forget the operation."},
        {"role": "assistant", "content": "Fine."},
    ],
    "expected": {
        "save": [{"target": "user", "any_of": [["oolong"], ["blue", "tea"]]}],
        "update": [{"id": "m1", "must_contain_any": [["york"]], "must_not_contain": ["leeds"]}],
        "delete": ["m2"],
        "never": [{"why": "asked to forget", "patterns": [["operation"], ["surgery"]]}],
        "allowed": [{"any_of": [["museum"]]}],
    },
}
SMALL_TALK: dict[str, Any] = {
    "id": "b",
    "title": "Small talk",
    "kinds": ["nothing"],
    "lang": "en",
    "existing": [],
    "messages": [{"role": "user", "content": "It rains."}, {"role": "assistant", "content": "It does."}],
    "expected": {"save": [], "update": [], "delete": [], "never": [{"why": "weather", "patterns": [["rain"]]}]},
}
TEA = {"op": "add", "target": "user", "content": "Drinks only OOLONG."}
YORK = {"op": "update", "id": "m1", "content": "Lives in York."}
FORGET = {"op": "delete", "id": "m2"}


def rates(case: dict[str, Any], *writes: dict[str, Any]) -> dict[str, Any]:
    return totals([score_case(case, writes)])


def test_a_perfect_review_gets_full_scores() -> None:
    found = rates(CASE, TEA, YORK, FORGET)
    assert {name: found[name] for name in ("fact_recall", "precision", "target_accuracy", "update_rate")} == {
        "fact_recall": 1.0,
        "precision": 1.0,
        "target_accuracy": 1.0,
        "update_rate": 1.0,
    }
    assert (found["nothing_accuracy"], found["never_violations"]) == (None, 0)


@pytest.mark.parametrize(
    ("write", "name", "value"),
    [
        ({**TEA, "target": "memory"}, "target_accuracy", 0.0),
        ({"op": "add", "target": "user", "content": "Lives in York."}, "update_rate", 0.0),
        ({**YORK, "content": "Moved from Leeds to York."}, "update_rate", 0.0),
        ({"op": "add", "target": "user", "content": "x" * 400 + " oolong"}, "fact_recall", 0.0),
        ({"op": "add", "target": "user", "content": "Had surgery, drinks oolong."}, "precision", 0.0),
        ({"op": "add", "target": "user", "content": "Had surgery."}, "never_violations", 1),
        ({"op": "add", "target": "user", "content": "Works at a museum."}, "precision", None),
    ],
)
def test_each_mistake_lowers_its_score(write: dict[str, Any], name: str, value: float | None) -> None:
    assert rates(CASE, write)[name] == value


def test_only_the_first_five_writes_can_match() -> None:
    noise = [{"op": "add", "target": "user", "content": f"Noise {n}."} for n in range(5)]
    assert rates(CASE, *noise, TEA)["fact_recall"] == 0.0


def test_no_writes_are_correct_if_none_are_expected() -> None:
    assert rates(SMALL_TALK)["nothing_accuracy"] == 1.0
    found = rates(SMALL_TALK, {"op": "add", "target": "user", "content": "Likes rain."})
    assert (found["nothing_accuracy"], found["never_violations"]) == (0.0, 1)


def test_the_harness_runs_the_products_review_on_the_cases(tmp_path: Path) -> None:
    data = tmp_path / "cases.json"
    data.write_text(json.dumps([CASE, SMALL_TALK]))
    env = {**os.environ, "MIGRATED_DATABASE": str(migrated_file())}
    completed = warm_process.run([str(BENCH), "--data", str(data), "--scripted"], env=env, timeout=120)
    assert completed.returncode == 0, completed.stderr
    found = json.loads(completed.stdout.splitlines()[-1])
    assert [found[name] for name in ("fact_recall", "precision", "update_rate", "nothing_accuracy")] == [1.0] * 4
    assert (found["never_violations"], found["states"]) == (0, {"nothing_to_save": 1, "saved": 1})
    assert found["tokens_per_review"] > 100
    assert set(found["by_kind"]) == {"contradiction_update", "personal_fact", "nothing"}
