"""Hashes of what a packaged model was made from, to check that rows, code and weights still belong together."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from scanning.model.scoring import arrays_of, version_of

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "bench" / "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a packaged model is made from: the files of its code, and a folder of rows with one *.jsonl for each author.
    The hashes of these and of `weights` are stored in the file `made_from` beside the model."""

    code: tuple[Path, ...]
    rows: Path
    weights: Path
    made_from: Path

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256, in hex, of the weights, of the files of code by path, and of the rows by name."""
        files = {str(path.relative_to(ROOT)): path for path in self.code}
        files |= {path.name: path for path in self.rows.glob("*.jsonl")}
        hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())}
        return hashes | {"weights": version_of(arrays_of(self.weights))}

    def write(self) -> None:
        """Store the hashes."""
        self.made_from.write_text(json.dumps(self.hashes(), indent=1) + "\n", encoding="utf-8")

    def outdated(self) -> str:
        """Return a message that names what has changed since the model was made, or ""."""
        stored, current = json.loads(self.made_from.read_text(encoding="utf-8")), self.hashes()
        changed = [name for name in sorted({*stored, *current}) if stored.get(name) != current.get(name)]
        return f"The packaged model does not belong to {', '.join(changed)}" if changed else ""

    def to_train(self, description: str | None) -> Recipe | None:
        """Parse the command line of a training. Return the recipe with the given rows, or None after a successful
        `--check`; a failed one exits with what is outdated."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--rows", type=Path, default=self.rows, help="folder with one *.jsonl for each author")
        parser.add_argument("--check", action="store_true", help="only compare hashes")
        options = parser.parse_args()
        recipe = replace(self, rows=options.rows)
        if not options.check:
            return recipe
        if problem := recipe.outdated():
            sys.exit(f"{problem}: run `make scan-model`")
        return None
