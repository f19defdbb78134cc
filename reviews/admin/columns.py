"""What several pages of this app's admin are made of: times, groups of fields, and links to other pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin.session_titles import title_of
from memories.admin.badges import moment


def moment_column(name: str, words: str, *, ordering: str | None = None) -> Callable[[Any, Any], str]:
    """Return a column for the time in a row's attribute."""

    @admin.display(description=words, ordering=ordering)
    def column(page: Any, row: Any) -> str:
        return moment(getattr(row, name))

    return column


def fieldset(title: str | None, *rows: str | tuple[str, ...]) -> tuple[str | None, dict[str, Any]]:
    """Return a group of fields for a row's page. Those of a tuple stand beside each other."""
    return title, {"fields": rows}


def link(address: str, words: object) -> SafeString:
    """Return a link to a page of the admin."""
    return format_html('<a class="db-link" href="{}">{}</a>', address, words)


def session_link(row: Any) -> SafeString | str:
    """Return the page of the row's session, by the title that the row's reader may see."""
    if row.session_id is None:
        return "Deleted"
    return link(reverse("admin:gateway_session_change", args=[row.session_id]), title_of(row))
