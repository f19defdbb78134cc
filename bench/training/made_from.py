"""Hashes of what a packaged model was made from, to check that rows, code and weights still belong together."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scanning.model.scoring import arrays_of, version_of

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "bench" / "training"


def hashes_of(code: Iterable[Path], rows: Path, weights: Path) -> dict[str, str]:
    """Return the SHA-256, in hex, of the weights, of the files of code by path, and of the rows by name."""
    files = {str(path.relative_to(ROOT)): path for path in code} | {path.name: path for path in rows.glob("*.jsonl")}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())}
    return hashes | {"weights": version_of(arrays_of(weights))}


def write(path: Path, current: Mapping[str, str]) -> None:
    """Write the hashes to a file beside the model."""
    path.write_text(json.dumps(current, indent=1) + "\n", encoding="utf-8")


def outdated(path: Path, current: Mapping[str, str]) -> str:
    """Return a message that names what has changed since the model was made, or ""."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name in sorted({*stored, *current}) if stored.get(name) != current.get(name)]
    return f"The packaged model does not belong to {', '.join(changed)}" if changed else ""


def rows_to_train(description: str | None, rows: Path, check: Callable[[Path], str]) -> Path | None:
    """Parse the command line of a training. Return the folder of its rows, or None after a successful `--check`; a
    failed one exits with the message of `check`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=rows, help="folder with one *.jsonl for each author")
    parser.add_argument("--check", action="store_true", help="only compare hashes")
    options = parser.parse_args()
    folder: Path = options.rows
    if not options.check:
        return folder
    if problem := check(folder):
        sys.exit(f"{problem}: run `make scan-model`")
    return None
