"""What a staff member may see of a turn. Those with permission for runs, but not for sessions and memories, see figures
and no text."""

from dataclasses import dataclass

from django.http import HttpRequest

from gateway.admin.session_titles import may_see_titles


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
