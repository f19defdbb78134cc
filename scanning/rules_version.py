"""The version of the rules: a hash of patterns, vocabulary, tables and the model. Comments, renames and optimisations
do not change it. Increment LOGIC when the functions find something different."""

import hashlib
import re
import sys
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

from scanning.model import model

LOGIC = 7
"""Incremented manually when the functions find something different with the same patterns and words, or when their
callers scan more of an entry."""
_PACKAGE = __name__.rpartition(".")[0]


def rules_version() -> str:
    """Return the hash of all loaded modules of this package and of the versions of the library and the model."""
    values: set[str] = set()
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{_PACKAGE}.") and name != __name__:
            constants = (value for key, value in vars(module).items() if not key.startswith("__"))
            values.update(filter(None, map(_serialized, constants)))  # independent of their names
    digest = hashlib.sha256(f"{LOGIC} {version('kingfisher-secret-scanner')} {model().version}".encode())
    for value in sorted(values):
        digest.update(value.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def _serialized(value: Any) -> str:
    """Return a constant as a text that is the same in every process, or "" for anything else."""
    if isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_serialized, value))}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(_serialized, value)))}]"
    if isinstance(value, dict):
        return f"[{', '.join(sorted(f'{_serialized(key)}: {_serialized(item)}' for key, item in value.items()))}]"
    if is_dataclass(value) and not isinstance(value, type):
        return f"[{', '.join(_serialized(getattr(value, field.name)) for field in fields(value))}]"
    return ""
