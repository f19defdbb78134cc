"""An agent's default parameters, below those that a client gives with its request."""

from collections.abc import Mapping
from typing import Any

# Names of one thing: a client that gives one of them does not want the default of another.
_ALIKE = (frozenset({"max_tokens", "max_completion_tokens"}), frozenset({"reasoning_effort", "reasoning", "thinking"}))


def with_defaults(given: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request: the client's own, and the defaults for what it left out. A null of the
    client's leaves a parameter out."""
    if not defaults:
        return given
    said = set(given).union(*(names for names in _ALIKE if names & given.keys()))
    return {name: value for name, value in defaults.items() if name not in said} | given
