"""Building blocks of the admin pages in all apps: columns, fieldsets, and links to other pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import moment

Column = Callable[[Any, Any], Any]


def column(description: str, value: Callable[[Any], Any], *, ordering: str | None = None) -> Column:
    """Return a column or read-only field that shows `value(row)`, or a dash for None and "". Django itself shows a dash
    in lists only."""

    def shown(page: Any, row: Any) -> Any:
        found = value(row)
        return page.empty_value_display if found is None or found == "" else found

    return admin.display(description=description, ordering=ordering)(shown)


def moment_column(name: str, description: str, *, ordering: str | None = None) -> Column:
    """Return a column for a time attribute."""
    return column(description, lambda row: moment(getattr(row, name)), ordering=ordering)


def yes_no_column(name: str, description: str) -> Column:
    """Return a column with Yes or No for an attribute. The theme's boolean icon would make "no" look like a failure."""
    return column(description, lambda row: "Yes" if getattr(row, name) else "No")


def fieldset(title: str | None, *rows: str | tuple[str, ...]) -> tuple[str | None, dict[str, Any]]:
    """Return a fieldset for a row's page. Fields in a tuple share a line."""
    return title, {"fields": rows}


def viewable_url(request: HttpRequest, model: type[Model], page: str, *args: object) -> str:
    """Return the URL of a model's `changelist` or `change` page, or "" if the user may not view it."""
    if not admin.site.get_model_admin(model).has_view_permission(request):
        return ""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def row_link(page: str, key: object, words: object) -> SafeString:
    """Return a link to a row's page; `page` is the app and model, such as `gateway_run`."""
    return _link(reverse(f"admin:{page}_change", args=[key]), words)


def list_link(page: str, query: str, words: object) -> SafeString:
    """Return a link to a list, filtered by a query string."""
    return _link(f"{reverse(f'admin:{page}_changelist')}?{query}", words)


def _link(address: str, words: object) -> SafeString:
    return format_html('<a class="db-link" href="{}">{}</a>', address, words)
