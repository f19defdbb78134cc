"""Names of tools that chat completions do not take as they are. Pure functions."""

import hashlib

LONGEST_NAME = 64
_HASH = 8


def short_name(name: str) -> str:
    """Return the name under which a tool is known to the model: the same, or for one that is too long its beginning and
    a hash of it."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - _HASH - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_HASH]}"
