"""An agent's default parameters, which a client's own parameters override."""

from collections.abc import Mapping
from typing import Any

# Parameters with the same meaning: if a client gives one of them, defaults for the others do not apply.
_ALIKE = (frozenset({"max_tokens", "max_completion_tokens"}), frozenset({"reasoning_effort", "reasoning", "thinking"}))


def with_defaults(given: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's parameters, with defaults for those that it omits. A null from the client removes a
    parameter."""
    if not defaults:
        return given
    overridden = set(given).union(*(names for names in _ALIKE if names & given.keys()))
    return {name: value for name, value in defaults.items() if name not in overridden} | given
