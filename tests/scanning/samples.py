"""Fake secrets, assembled from parts so that secret scanners do not report this repository, and texts that the scan
is not sure about."""

import json

from bench.training.scanner_model import RECIPE
from scanning import scan

LETTERS = "Ab3dEf7hIj9kLm2nOp4qRs6tUv8wXy1zCd5eGh0i"


def body(length: int) -> str:
    """Return `length` letters and digits that look random."""
    return (LETTERS * (length // len(LETTERS) + 1))[:length]


def hexadecimal(length: int) -> str:
    """Return `length` hexadecimal digits."""
    return ("9f8e7d6c5b4a39281706f5e4d3c2b1a0" * (length // 32 + 1))[:length]


def key_block(label: str = "PRIVATE KEY") -> str:
    """Return a private key block with three lines."""
    lines = "\n".join(body(64) for _ in range(3))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", body(43)))
CARD = " ".join(("4111", "1111", "1111", "1111"))
IBAN = "DE89" + " 3704 0044 0532 0130 00"


def doubtful_texts(number: int) -> list[str]:
    """Return `number` short training texts that the scan holds but does not block."""
    found = []
    lines = (
        line for path in sorted(RECIPE.rows.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()
    )
    for text in (json.loads(line)["text"] for line in lines):
        if len(text) < 300 and "\n" not in text and scan(text).outcome == "hold":
            found.append(text)
        if len(found) == number:
            return found
    raise LookupError(f"The training rows have fewer than {number} short texts that are held")
