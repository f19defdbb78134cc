"""What a packaged model was made from, as hashes: whether rows, code and weights still belong together."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write(path: Path, present: Mapping[str, str]) -> None:
    """Keep the hashes beside a model."""
    path.write_text(json.dumps(present, indent=1) + "\n", encoding="utf-8")


def outdated(path: Path, present: Mapping[str, str]) -> str:
    """Return what the packaged model was not made from, or the empty string."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name in sorted({*stored, *present}) if stored.get(name) != present.get(name)]
    return f"The packaged model does not belong to {', '.join(changed)}" if changed else ""


def rows_to_train(description: str | None, rows: Path, check: Callable[[Path], str]) -> Path | None:
    """Read the command line of a training. Returns the folder of its rows; None after `--check`, which exits with what
    `check` finds in it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=rows, help="folder with one *.jsonl for each author")
    parser.add_argument("--check", action="store_true", help="only compare hashes")
    options = parser.parse_args()
    folder: Path = options.rows
    if not options.check:
        return folder
    if told := check(folder):
        sys.exit(f"{told}: run `make scan-model`")
    return None
