"""The usage of an answer: the figures of an upstream, checked so that the steps of a run can be added up."""

import math
from typing import Any

from memories.storable import storable_text

_MOST = 1_000_000_000  # no answer has more tokens; larger figures are nonsense
_COUNTED = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILED = ("prompt_tokens_details", "completion_tokens_details")  # figures by name, such as cached_tokens
_MOST_FIGURES = 20
_LONGEST_NAME = 200
_DIGITS = 12  # of a sum of costs, which are no whole numbers


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an upstream's usage with only those figures that can be added and stored; {} if there are none."""
    given = answer.get("usage")
    if not isinstance(given, dict):
        return {}
    counted = {name: _counted(given.get(name)) for name in _COUNTED if name in given}
    return given | counted | {name: _counted_details(given[name]) for name in _DETAILED if name in given}


def add_usage(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two usages, including figures that not every upstream gives (details, a cost)."""
    return dict.fromkeys(_COUNTED, 0) | _sum(_figures(total), _figures(more)) if more or total else {}


def usage_since(usage: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a usage that was added after `before`."""
    return dict.fromkeys(_COUNTED, 0) | _sum(_figures(usage), _figures(before), sign=-1) if usage else {}


def _figures(usage: dict[str, Any], *, nested: bool = True) -> dict[str, Any]:
    """Return the numbers of a usage, including those in its objects."""
    found: dict[str, Any] = {}
    for name, value in usage.items():
        if len(found) == _MOST_FIGURES:
            break
        if nested and isinstance(value, dict):
            if inner := _figures(value, nested=False):
                found[_name(name)] = inner
        elif _is_figure(value):
            found[_name(name)] = value
    return found


def _sum(one: Any, other: Any, *, sign: int = 1) -> Any:
    if isinstance(one, dict) or isinstance(other, dict):
        one, other = (figures if isinstance(figures, dict) else {} for figures in (one, other))
        return {name: _sum(one.get(name), other.get(name), sign=sign) for name in one | other}
    summed = (one or 0) + sign * (other or 0)
    return round(summed, _DIGITS) if isinstance(summed, float) else summed


def _is_figure(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) <= _MOST


def _counted_details(given: Any) -> dict[str, int]:
    found = given.items() if isinstance(given, dict) else ()
    figures = [(_name(key), _counted(value)) for key, value in found if isinstance(value, int)]
    return dict(figures[:_MOST_FIGURES])


def _counted(value: Any) -> int:
    try:
        return min(max(int(value), 0), _MOST)
    except (TypeError, ValueError, OverflowError):
        return 0


def _name(value: Any) -> str:
    return storable_text(str(value))[:_LONGEST_NAME]
