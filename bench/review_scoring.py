"""Scoring of memory reviews: which of the expected memories did a reviewer write, and what should it not have written?

A case says what is expected: `save` (facts), `update`, `delete`, `never` (rules), `allowed`. Texts are compared by
keywords after folding: a text fits when it holds every keyword of one group. Only the first five writes can fit, and
only texts of at most 400 characters, so that writing the whole conversation down gains nothing."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_WRITES = 5
LONGEST = 400
_FOLDED = str.maketrans({"ي": "ی", "ك": "ک", "ё": "е", "’": "'", "‘": "'"} | dict.fromkeys("\u00ad\u200b\u200c\u200d"))
RATES = {
    "fact_recall": ("facts_found", "facts"),
    "precision": ("right", "judged"),
    "target_accuracy": ("placed", "facts_found"),
    "update_rate": ("changes_done", "changes"),
    "nothing_accuracy": ("quiet", "nothing_expected"),
}


@dataclass(slots=True)
class Scored:
    """Counts of one case, and what went wrong in it, for people."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def folded(text: str) -> str:
    """The text without what does not matter: case, width, spacing, joiners, look-alike letters."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_FOLDED).split())


def fits(text: str, groups: Iterable[Iterable[str]]) -> bool:
    """Whether a folded text holds every keyword of one of the groups."""
    return any(all(folded(keyword) in text for keyword in group) for group in groups)


def score_case(case: dict[str, Any], writes: Sequence[dict[str, Any]]) -> Scored:
    """Score the writes `{op, id?, target?, content?}` of one review, in their order."""
    expected, scored = case["expected"], Scored()
    targets = {memory["id"]: memory["target"] for memory in case["existing"]}
    found: dict[int, bool] = {}  # fact: under the right target?
    done: set[tuple[str, str]] = set()
    broken: set[int] = set()
    for place, write in enumerate(writes):
        text = folded(write.get("content") or "")
        now_broken = _rules_broken(expected, write, text)
        broken |= now_broken
        before = len(found) + len(done)
        counts = place < MOST_WRITES and len(text) <= LONGEST
        if counts:
            _find_facts(expected, write, text, targets, found)
            done |= _changes_done(expected, write, text)
        right = len(found) + len(done) > before and not now_broken
        if right:
            scored.counts.update(right=1, judged=1)
        elif not (counts and not now_broken and _is_allowed(expected, write, text)):
            scored.counts["judged"] += 1
            scored.notes.append(f"wrong: {write['op']} {write.get('id') or ''} {text[:80]}")
    wanted = [("update", u["id"]) for u in expected["update"]] + [("delete", key) for key in expected["delete"]]
    nothing = not expected["save"] and not wanted
    scored.counts.update(
        facts=len(expected["save"]),
        facts_found=len(found),
        placed=sum(found.values()),
        changes=len(wanted),
        changes_done=len(done),
        nothing_expected=int(nothing),
        quiet=int(nothing and not writes),
        never_violations=len(broken),
    )
    scored.notes += [f"missed: {fact['any_of'][0]}" for n, fact in enumerate(expected["save"]) if n not in found]
    scored.notes += [f"not done: {' '.join(change)}" for change in wanted if change not in done]
    scored.notes += [f"never: {expected['never'][rule]['why']}" for rule in sorted(broken)]
    return scored


def totals(scored: Iterable[Scored]) -> dict[str, Any]:
    """Rates over cases; None where nothing of its sort was expected."""
    sum_: Counter[str] = Counter()
    number = 0
    for one in scored:
        sum_.update(one.counts)
        number += 1
    rates = {name: round(sum_[part] / sum_[whole], 4) if sum_[whole] else None for name, (part, whole) in RATES.items()}
    return rates | {"never_violations": sum_["never_violations"], "cases": number}


def _rules_broken(expected: dict[str, Any], write: dict[str, Any], text: str) -> set[int]:
    if write["op"] == "delete":
        return set()
    return {number for number, rule in enumerate(expected["never"]) if fits(text, rule["patterns"])}


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
        if number not in found and fits(text, fact["any_of"]):
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
        and fits(text, wanted["must_contain_any"])
        and not fits(text, [[old] for old in wanted["must_not_contain"]])
    }


def _is_allowed(expected: dict[str, Any], write: dict[str, Any], text: str) -> bool:
    return write["op"] != "delete" and any(fits(text, allowed["any_of"]) for allowed in expected.get("allowed", []))
