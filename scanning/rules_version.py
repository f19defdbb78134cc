"""The version of the rules: a hash of patterns, vocabulary, tables and the model. A comment, a rename or a faster way
to the same verdicts leaves it as it is; who changes what the functions find raises LOGIC."""

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

from scanning.model import model

LOGIC = 2
"""Raised by hand when a function finds something else than before with the same patterns and words."""
_PACKAGE = __name__.rpartition(".")[0]


def rules_version() -> str:
    """Return the hash over all modules of this package that are loaded, and over the versions of the library and the
    model."""
    values: set[str] = set()
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{_PACKAGE}.") and name != __name__:
            values.update(_constants(vars(module)))
    digest = hashlib.sha256(f"{LOGIC} {version('kingfisher-secret-scanner')} {model().version}".encode())
    for value in sorted(values):
        digest.update(value.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def _constants(names: dict[str, Any]) -> Iterator[str]:
    """The rules among the names of a module, in a form that does not depend on their names."""
    for name, value in names.items():
        if not name.startswith("__") and (written := _written(value)):
            yield written


def _written(value: Any) -> str:
    """Return a constant as text, the same in every process; "" for what is none."""
    if isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r} {value.flags}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(_written, value)))}]"
    if isinstance(value, dict):
        return f"[{', '.join(sorted(f'{_written(key)}: {_written(kept)}' for key, kept in value.items()))}]"
    if is_dataclass(value) and not isinstance(value, type):
        return f"[{', '.join(_written(getattr(value, field.name)) for field in fields(value))}]"
    return ""
