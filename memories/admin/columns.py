"""What the pages of the admin are made of, in every app: columns, groups of fields, and links to other pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import moment

Column = Callable[[Any, Any], Any]


def column(description: str, value: Callable[[Any], Any], *, ordering: str | None = None) -> Column:
    """Return a column, or a field to read, of a page: what `value` gives for a row."""

    def shown(page: Any, row: Any) -> Any:
        return value(row)

    return admin.display(description=description, ordering=ordering)(shown)


def moment_column(name: str, description: str, *, ordering: str | None = None) -> Column:
    """Return a column for the time in a row's attribute."""
    return column(description, lambda row: moment(getattr(row, name)), ordering=ordering)


def yes_no_column(name: str, description: str) -> Column:
    """Return a column that says yes or no for a row's attribute. With the theme's own icon for a boolean, "no" would
    look like a failure."""
    return column(description, lambda row: "Yes" if getattr(row, name) else "No")


def fieldset(title: str | None, *rows: str | tuple[str, ...]) -> tuple[str | None, dict[str, Any]]:
    """Return a group of fields for a row's page. Those of a tuple stand beside each other."""
    return title, {"fields": rows}


def row_link(page: str, key: object, words: object) -> SafeString:
    """Return a link to the page of a row; `page` is its app and model, such as `gateway_run`."""
    return _link(reverse(f"admin:{page}_change", args=[key]), words)


def list_link(page: str, query: str, words: object) -> SafeString:
    """Return a link to the list of the rows that a query chooses."""
    return _link(f"{reverse(f'admin:{page}_changelist')}?{query}", words)


def _link(address: str, words: object) -> SafeString:
    return format_html('<a class="db-link" href="{}">{}</a>', address, words)
