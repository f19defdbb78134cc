"""Titles of sessions, for those who may see sessions: a title is made of somebody's first words.
Memory auditors see reviews and extractions, but no transcript; they are shown the session's id instead."""

from typing import Any

from django.db.models import QuerySet, Value
from django.http import HttpRequest
from django.utils.safestring import SafeString

from gateway.models import Session
from memories.admin.columns import row_link


class SessionTitles:
    """For a ModelAdmin of rows that have a session: marks the rows of a request that may not see titles."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]  # a page's
        return rows if may_see_titles(request) else rows.annotate(titles_hidden=Value(True))

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Without titles where they are hidden: a search that finds tells what they are."""
        fields: tuple[str, ...] = super().get_search_fields(request)  # type: ignore[misc]  # a page's
        return fields if may_see_titles(request) else tuple(name for name in fields if name != "session__title")


def may_see_titles(request: HttpRequest) -> bool:
    """Return True if the user may see sessions."""
    return bool(request.user.has_perm("gateway.view_session"))


def title_of(row: Any) -> str:
    """Return the title of the row's session as the row's reader may see it."""
    session: Session | None = row.session
    if session is None:
        return "Deleted"
    if getattr(row, "titles_hidden", False):
        return f"Session {session.pk}"
    return session.title or "Untitled"


def session_link(row: Any) -> SafeString | str:
    """Return a link to the row's session, by the title that the row's reader may see."""
    if row.session_id is None or getattr(row, "titles_hidden", False):
        return title_of(row)
    return row_link("gateway_session", row.session_id, title_of(row))
