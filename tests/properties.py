"""Helpers for property tests: deterministic settings, and strategies for arbitrary text and JSON."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

BOUNDED = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

odd_text = st.text(st.characters(codec=None), max_size=40) | st.sampled_from(
    ["", "\x00", "\ud800", "\u2028", "a" * 300, "9" * 30, "-1", "null", "javascript:alert(1)", "../..", "%2e%2e"]
)
"""Any text that a Python string can hold, including lone surrogates and NUL."""

odd_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | odd_text | st.sampled_from([10**50, -(2**70), 1e308]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd_text, inner, max_size=4),
    max_leaves=8,
)
"""Any value that a JSON parser may return, including those that only a lenient one accepts."""


def odd_object(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for objects with any of these fields, valid or not, and perhaps one unknown field."""
    named = st.fixed_dictionaries({}, optional={name: value | odd_json for name, value in fields.items()})
    return st.builds(lambda known, more: {**more, **known}, named, st.dictionaries(odd_text, odd_json, max_size=1))
