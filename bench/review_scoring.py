"""Score memory reviews: which expected memories did a review write, and which writes are wrong?

A case lists what is expected: `save` (facts), `update`, `delete`, `never` (rules), `allowed`. Texts are compared by
keywords after normalisation: a text matches if it contains every keyword of one group. Only the first five writes, and
only texts of at most 400 characters, can match, so that saving the whole conversation gains nothing."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_WRITES = 5
MAX_TEXT_CHARS = 400
_EQUIVALENTS = str.maketrans(
    {"ي": "ی", "ك": "ک", "ё": "е", "’": "'", "‘": "'"} | dict.fromkeys("\u00ad\u200b\u200c\u200d")
)
RATES = {
    "fact_recall": ("facts_found", "facts"),
    "precision": ("right", "judged"),
    "target_accuracy": ("placed", "facts_found"),
    "update_rate": ("changes_done", "changes"),
    "nothing_accuracy": ("quiet", "nothing_expected"),
}


@dataclass(slots=True)
class Score:
    """Counts of one case, and notes on its errors."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def normalize(text: str) -> str:
    """Return the text without differences of case, width, spacing, joiners and look-alike letters."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_EQUIVALENTS).split())


def matches(text: str, groups: Iterable[Iterable[str]]) -> bool:
    """Return whether a normalised text contains every keyword of one of the groups."""
    return any(all(normalize(keyword) in text for keyword in group) for group in groups)


def score_case(case: dict[str, Any], writes: Sequence[dict[str, Any]]) -> Score:
    """Score the writes `{op, id?, target?, content?}` of one review, in their order."""
    expected, score = case["expected"], Score()
    targets = {memory["id"]: memory["target"] for memory in case["existing"]}
    found: dict[int, bool] = {}  # fact number: written to the right target
    done: set[tuple[str, str]] = set()
    broken: set[int] = set()
    for place, write in enumerate(writes):
        text = normalize(write.get("content") or "")
        now_broken = _rules_broken(expected, write, text)
        broken |= now_broken
        before = len(found) + len(done)
        counts = place < MAX_WRITES and len(text) <= MAX_TEXT_CHARS
        if counts:
            _find_facts(expected, write, text, targets, found)
            done |= _changes_done(expected, write, text)
        right = len(found) + len(done) > before and not now_broken
        if right:
            score.counts.update(right=1, judged=1)
        elif not (counts and not now_broken and _is_allowed(expected, write, text)):
            score.counts["judged"] += 1
            score.notes.append(f"wrong: {write['op']} {write.get('id') or ''} {text[:80]}")
    wanted = [("update", u["id"]) for u in expected["update"]] + [("delete", key) for key in expected["delete"]]
    nothing = not expected["save"] and not wanted
    score.counts.update(
        facts=len(expected["save"]),
        facts_found=len(found),
        placed=sum(found.values()),
        changes=len(wanted),
        changes_done=len(done),
        nothing_expected=int(nothing),
        quiet=int(nothing and not writes),
        never_violations=len(broken),
    )
    score.notes += [f"missed: {fact['any_of'][0]}" for n, fact in enumerate(expected["save"]) if n not in found]
    score.notes += [f"not done: {' '.join(change)}" for change in wanted if change not in done]
    score.notes += [f"never: {expected['never'][rule]['why']}" for rule in sorted(broken)]
    return score


def totals(scores: Iterable[Score]) -> dict[str, Any]:
    """Return the rates over all cases; None where nothing of the kind was expected."""
    counts: Counter[str] = Counter()
    number = 0
    for score in scores:
        counts.update(score.counts)
        number += 1
    rates = {
        name: round(counts[part] / counts[whole], 4) if counts[whole] else None for name, (part, whole) in RATES.items()
    }
    return rates | {"never_violations": counts["never_violations"], "cases": number}


def _rules_broken(expected: dict[str, Any], write: dict[str, Any], text: str) -> set[int]:
    if write["op"] == "delete":
        return set()
    return {number for number, rule in enumerate(expected["never"]) if matches(text, rule["patterns"])}


def _find_facts(
    expected: dict[str, Any], write: dict[str, Any], text: str, targets: dict[str, str], found: dict[int, bool]
) -> None:
    if write["op"] == "update" and write.get("id") in targets:
        target = targets[write["id"]]
    elif write["op"] == "add":
        target = write.get("target") or ""
    else:
        return
    for number, fact in enumerate(expected["save"]):
        if number not in found and matches(text, fact["any_of"]):
            found[number] = fact["target"] in {"any", target}


def _changes_done(expected: dict[str, Any], write: dict[str, Any], text: str) -> set[tuple[str, str]]:
    key = write.get("id")
    if write["op"] == "delete":
        return {("delete", key)} if key in expected["delete"] else set()
    if write["op"] != "update":
        return set()
    return {
        ("update", wanted["id"])
        for wanted in expected["update"]
        if wanted["id"] == key
        and matches(text, wanted["must_contain_any"])
        and not matches(text, [[old] for old in wanted["must_not_contain"]])
    }


def _is_allowed(expected: dict[str, Any], write: dict[str, Any], text: str) -> bool:
    return write["op"] != "delete" and any(matches(text, allowed["any_of"]) for allowed in expected.get("allowed", []))
