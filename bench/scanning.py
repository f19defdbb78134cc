"""Measure recall and false alarms of the shipped memory scan by kind, and the time of a scan.

    python bench/scanning.py --data FILE…
    python bench/scanning.py --unseen --data bench/scanner_rows/*.jsonl

FILE is JSON Lines with `text` (or `parts`, joined without a separator), `label` (`benign`, `harmless`, or the kind of
attack or secret) and `kind`. Recall and false alarms count blocked texts; `caught` also counts texts held for a person.
With `--unseen` each file must hold one author's training rows; it is scanned by a model trained without them (two
minutes per author).
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
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # ahead of this folder, where scanning.py shadows the package

from bench.training.rows import Corpus, read_rows  # noqa: E402
from bench.training.scanner_model import RECIPE, packed  # noqa: E402
from scanning import RULES_VERSION, redact, scan, warm  # noqa: E402
from scanning.model import Model, model  # noqa: E402
from scanning.model.scoring import model_of  # noqa: E402

SCANS = 3  # per row; the median counts


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text and the result of its scan."""

    text: str
    label: str
    kind: str
    secrets: tuple[str, ...]
    outcome: str
    rules: tuple[str, ...]
    milliseconds: float

    @property
    def benign(self) -> bool:
        return self.label in ("benign", "harmless")

    @property
    def blocked(self) -> bool:
        return self.outcome == "block"


def scan_file(path: Path) -> list[Row]:
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
        rules = tuple(dict.fromkeys(f.rule for f in (*verdict.findings, *verdict.doubts)))
        milliseconds = statistics.median(costs) * 1000
        rows.append(Row(text, item["label"], item["kind"], secrets, verdict.outcome, rules, milliseconds))
    return rows


def model_without(author: str, corpus: Corpus) -> Model:
    """Train a model on the rows of all other authors, with the shipped thresholds."""
    fit = corpus.only(corpus.authors != author).fitted()
    return model_of(packed(fit, (model().hold_from, model().block_from)))


def share(rows: list[Row], *outcomes: str) -> float | None:
    """Return the share (0 to 1) of rows that were blocked, or had one of `outcomes`; None without rows."""
    return round(sum(row.outcome in (outcomes or ("block",)) for row in rows) / len(rows), 4) if rows else None


def by_kind(rows: list[Row]) -> dict[str, float | None]:
    """Return the blocked share per kind, in alphabetical order."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kind].append(row)
    return {kind: share(groups[kind]) for kind in sorted(groups)}


def secrets_left(rows: list[Row]) -> int:
    """Return how many of the rows' secrets are still readable after redaction."""
    return sum(secret in redact(row.text).text for row in rows for secret in row.secrets)


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def table(title: str, shares: dict[str, float | None], rows: list[Row]) -> None:
    """Print one section of the table."""
    print(f"\n{title}")
    for kind, value in shares.items():
        number = sum(row.kind == kind for row in rows)
        print(f"  {kind:<28} {number:>5}  {100 * (value or 0):>6.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--unseen", action="store_true", help="scan each author's rows with a model trained on the others' rows"
    )
    parser.add_argument("--misses", action="store_true", help="print missed texts and false alarms")
    options = parser.parse_args()
    warm()
    corpus = read_rows(RECIPE.rows) if options.unseen else None
    files = {}
    for path in options.data:
        learned = model_without(path.stem, corpus) if corpus else model()
        with patch("scanning.judging.model", lambda learned=learned: learned):
            files[path.name] = scan_file(path)
    rows = [row for group in files.values() for row in group]
    if not rows:
        parser.error("no rows in the data")
    bad = [row for row in rows if not row.benign]
    good = [row for row in rows if row.benign]
    if options.misses:
        for row in rows:
            if (row.outcome != "pass") == row.benign:
                wrong = "false alarm" if row.benign else "missed"
                print(f"{wrong} ({row.outcome}) [{row.kind}] {','.join(row.rules)} {row.text!r}")
    costs = [row.milliseconds for row in rows]
    result = {
        "n": len(rows),
        "blocked": share(bad),
        "held": share(bad, "hold"),
        "caught": share(bad, "block", "hold"),
        "benign_held": share(good, "hold"),
        "benign_blocked": share(good),
        "recall": share(bad),
        "recall_by_label": {
            label: share([r for r in bad if r.label == label]) for label in sorted({r.label for r in bad})
        },
        "recall_by_kind": by_kind(bad),
        "false_alarm_rate": share(good),
        "caught_by_file": {
            name: share([r for r in group if not r.benign], "block", "hold") for name, group in files.items()
        },
        "benign_held_by_file": {name: share([r for r in group if r.benign], "hold") for name, group in files.items()},
        "false_alarm_rate_by_file": {name: share([r for r in group if r.benign]) for name, group in files.items()},
        "false_alarm_rate_by_kind": by_kind(good),
        "secrets_kept_by_redaction": secrets_left(rows),
        "p50_ms": round(statistics.median(costs), 3),
        "p95_ms": round(p95(costs), 3),
        "max_ms": round(max(costs), 3),
        "rules_version": RULES_VERSION,
    }
    table("recall by kind", by_kind(bad), bad)
    table("false alarms by kind", by_kind(good), good)
    print(f"\nrecall {share(bad)}  false alarms {share(good)}  n {len(rows)}")
    print(f"p50 {result['p50_ms']} ms  p95 {result['p95_ms']} ms  max {result['max_ms']} ms")
    print(f"caught {result['caught']} (held {result['held']})  benign held {result['benign_held']}")
    for label, value in result["recall_by_label"].items():  # type: ignore[attr-defined]
        print(f"  {label}: recall {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
