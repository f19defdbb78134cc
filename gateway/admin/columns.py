"""Columns that several pages of the admin have: times, and yes or no."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin

from memories.admin.badges import moment, yes_no

Column = Callable[[Any, Any], str]


def moment_column(name: str, words: str, *, ordering: str | None = None) -> Column:
    """Return a column for the time in a row's attribute."""
    return _column(name, words, moment, ordering)


def yes_no_column(name: str, words: str) -> Column:
    """Return a column that says yes or no for a row's attribute."""
    return _column(name, words, yes_no, None)


def _column(name: str, words: str, say: Callable[[Any], str], ordering: str | None) -> Column:
    @admin.display(description=words, ordering=ordering)
    def column(page: Any, row: Any) -> str:
        return say(getattr(row, name))

    return column
