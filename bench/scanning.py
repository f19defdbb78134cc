"""Recall and false alarms of the memory scan, per kind, and what one scan costs; through the shipped code.

    python bench/scanning.py --data FILE…

FILE is JSON Lines with `text` (or `parts`, joined with the empty string), `label` (`benign` or what it is) and `kind`.
Prints a table and, as its last line, one JSON object. No network."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # before this folder, whose scanning.py is not the package

from scanning import RULES_VERSION, redact, scan, warm  # noqa: E402

SCANS = 3  # per row; the median counts, so that a busy machine does not


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text and what the scan made of it."""

    text: str
    label: str
    kind: str
    secrets: tuple[str, ...]
    blocked: bool
    rules: tuple[str, ...]
    milliseconds: float


def rows_of(path: Path) -> list[Row]:
    """Read and scan one file."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        item = json.loads(line)
        text = item["text"] if "text" in item else "".join(item["parts"])
        secrets = tuple("".join(parts) for parts in item.get("secrets", ()))
        costs = []
        for _ in range(SCANS):
            started = time.perf_counter()
            verdict = scan(text)
            costs.append(time.perf_counter() - started)
        rules = tuple(dict.fromkeys(f.rule for f in verdict.findings))
        milliseconds = statistics.median(costs) * 1000
        rows.append(Row(text, item["label"], item["kind"], secrets, verdict.blocked, rules, milliseconds))
    return rows


def share(rows: list[Row]) -> float | None:
    """Share of rows that were blocked, 0 to 1; None of nothing."""
    return round(sum(row.blocked for row in rows) / len(rows), 4) if rows else None


def by_kind(rows: list[Row]) -> dict[str, float | None]:
    """The share per kind, kinds in alphabetical order."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kind].append(row)
    return {kind: share(groups[kind]) for kind in sorted(groups)}


def kept_secrets(rows: list[Row]) -> int:
    """How many listed secrets are still to be read after redaction."""
    return sum(secret in redact(row.text).text for row in rows for secret in row.secrets)


def p95(values: list[float]) -> float:
    """95th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def table(title: str, shares: dict[str, float | None], rows: list[Row]) -> None:
    """Print one block of the table."""
    print(f"\n{title}")
    for kind, value in shares.items():
        number = sum(row.kind == kind for row in rows)
        print(f"  {kind:<28} {number:>5}  {100 * (value or 0):>6.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument("--misses", action="store_true", help="print what was missed and what was a false alarm")
    options = parser.parse_args()
    warm()
    files = {path.name: rows_of(path) for path in options.data}
    rows = [row for group in files.values() for row in group]
    if not rows:
        parser.error("no rows in the data")
    bad = [row for row in rows if row.label != "benign"]
    good = [row for row in rows if row.label == "benign"]
    if options.misses:
        for row in rows:
            if row.blocked == (row.label == "benign"):
                print(f"{'false alarm' if row.blocked else 'missed'} [{row.kind}] {','.join(row.rules)} {row.text!r}")
    costs = [row.milliseconds for row in rows]
    result = {
        "n": len(rows),
        "recall": share(bad),
        "recall_by_label": {
            label: share([r for r in bad if r.label == label]) for label in sorted({r.label for r in bad})
        },
        "recall_by_kind": by_kind(bad),
        "false_alarm_rate": share(good),
        "false_alarm_rate_by_file": {
            name: share([r for r in group if r.label == "benign"]) for name, group in files.items()
        },
        "false_alarm_rate_by_kind": by_kind(good),
        "secrets_kept_by_redaction": kept_secrets(rows),
        "p50_ms": round(statistics.median(costs), 3),
        "p95_ms": round(p95(costs), 3),
        "max_ms": round(max(costs), 3),
        "rules_version": RULES_VERSION,
    }
    table("recall by kind", by_kind(bad), bad)
    table("false alarms by kind", by_kind(good), good)
    print(f"\nrecall {share(bad)}  false alarms {share(good)}  n {len(rows)}")
    print(f"p50 {result['p50_ms']} ms  p95 {result['p95_ms']} ms  max {result['max_ms']} ms")
    for label, value in result["recall_by_label"].items():  # type: ignore[attr-defined]
        print(f"  {label}: recall {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
