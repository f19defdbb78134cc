"""The version of the rules, under which verdicts are stored."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from scanning.model import model


def rules_version() -> str:
    """Return a hash of this package's code and words, of the learned weights, and of the library's version."""
    digest = hashlib.sha256(f"{version('kingfisher-secret-scanner')} {model().version}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
