"""What a staff member may see of conversations. Those with permission for runs, but not for sessions and memories, such
as memory auditors, see figures and no text. Titles quote the person's first message, so they see a session's id."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Value
from django.http import HttpRequest
from django.utils.safestring import SafeString

from gateway.models import Session
from memories.admin.columns import row_link


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """`words`: the text of conversations. The other fields: the rows of these admin pages."""

    words: bool
    memories: bool
    changes: bool
    documents: bool
    reviews: bool

    @classmethod
    def of(cls, request: HttpRequest) -> "Visibility":
        """Return the visibility from the permissions of the request's user."""
        has_perm = request.user.has_perm
        return cls(
            words=may_see_titles(request),
            memories=has_perm("memories.view_memory"),
            changes=has_perm("memories.view_changeset") and has_perm("memories.view_revision"),
            documents=has_perm("memories.view_artifact"),
            reviews=has_perm("reviews.view_reviewrun"),
        )


class SessionTitles:
    """A ModelAdmin mixin for rows with a session. It annotates the rows if the viewer may not see titles."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]  # a page's
        return rows if may_see_titles(request) else rows.annotate(titles_hidden=Value(True))

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Exclude hidden titles, since search results would reveal them."""
        fields: tuple[str, ...] = super().get_search_fields(request)  # type: ignore[misc]  # a page's
        return fields if may_see_titles(request) else tuple(name for name in fields if name != "session__title")


def may_see_titles(request: HttpRequest) -> bool:
    return bool(request.user.has_perm("gateway.view_session"))


def title_of(row: Any) -> str:
    """Return the title of the row's session, or its id if the viewer may not see titles."""
    session: Session | None = row.session
    if session is None:
        return "Deleted"
    if getattr(row, "titles_hidden", False):
        return f"Session {session.pk}"
    return session.title or "Untitled"


def session_link(row: Any) -> SafeString | str:
    """Return a link to the row's session, if it still has one."""
    return row_link("gateway_session", row.session_id, title_of(row)) if row.session_id else title_of(row)
