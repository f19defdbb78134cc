"""The token usage of an answer, validated so that the usage of a run's steps can be added up."""

from typing import Any

from gateway.upstream.answer import choices_of
from memories.storable import storable_text

_MAX_VALUE = 1_000_000_000  # larger values are nonsense: no answer has more tokens
_TOTALS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")  # numbers by name, such as cached_tokens
_MAX_NUMBERS = 20
_MAX_NAME_CHARS = 200
_DECIMALS = 12  # of costs


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the usage in an answer, or within a choice of it (Kimi), with its token counts as valid integers; {} if it
    has none. Thoughts that are only part of the total (Gemini, xAI) are added to the completion's tokens."""
    holders = (holder.get("usage") for holder in (answer, *choices_of(answer)))
    given = next((usage for usage in holders if isinstance(usage, dict)), None)
    if given is None:
        return {}
    totals = {name: _token_count(given.get(name)) for name in _TOTALS if name in given}
    if len(totals) == len(_TOTALS) and totals["prompt_tokens"]:
        written = totals["total_tokens"] - totals["prompt_tokens"]
        totals["completion_tokens"] = max(totals["completion_tokens"], written)
    return given | totals | {name: _details(given[name]) for name in _DETAILS if name in given}


def newer_usage(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of a stream that sent `before` and then `after`. A usage without tokens replaces no other: some
    servers send zeros with chunks that have none."""
    return after if not before or any(after.get(name) for name in _TOTALS) else before


def add_usage(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two usages, including numbers that not every upstream gives (details, a cost)."""
    return dict.fromkeys(_TOTALS, 0) | _sum(_numbers(total), _numbers(more)) if more or total else {}


def usage_since(usage: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a usage that was added after `before`."""
    return dict.fromkeys(_TOTALS, 0) | _sum(_numbers(usage), _numbers(before), sign=-1) if usage else {}


def _numbers(usage: dict[str, Any], *, nested: bool = True) -> dict[str, Any]:
    """Return the numbers of a usage, including those in nested objects."""
    numbers: dict[str, Any] = {}
    for name, value in usage.items():
        if len(numbers) == _MAX_NUMBERS:
            break
        if nested and isinstance(value, dict):
            if inner := _numbers(value, nested=False):
                numbers[_name(name)] = inner
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_VALUE:
            numbers[_name(name)] = value
    return numbers


def _sum(first: Any, second: Any, *, sign: int = 1) -> Any:
    if isinstance(first, dict) or isinstance(second, dict):
        first, second = (numbers if isinstance(numbers, dict) else {} for numbers in (first, second))
        return {name: _sum(first.get(name), second.get(name), sign=sign) for name in first | second}
    total = (first or 0) + sign * (second or 0)
    return round(total, _DECIMALS) if isinstance(total, float) else total


def _details(given: Any) -> dict[str, int]:
    items = given.items() if isinstance(given, dict) else ()
    counts = [(_name(key), _token_count(value)) for key, value in items if isinstance(value, int)]
    return dict(counts[:_MAX_NUMBERS])


def _token_count(value: Any) -> int:
    try:
        return min(max(int(value), 0), _MAX_VALUE)
    except (TypeError, ValueError, OverflowError):
        return 0


def _name(value: Any) -> str:
    return storable_text(str(value))[:_MAX_NAME_CHARS]
