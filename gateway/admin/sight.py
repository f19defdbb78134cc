"""What a staff member may see of a turn. With permission for runs, but not for sessions and memories, it is figures and
no words."""

from dataclasses import dataclass

from django.http import HttpRequest

from gateway.admin.session_titles import may_see_titles


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """`words`: the words of conversations. `memories`, `changes`, `documents`, `reviews`: the rows of these pages."""

    words: bool
    memories: bool
    changes: bool
    documents: bool
    reviews: bool

    @classmethod
    def of(cls, request: HttpRequest) -> "Sight":
        """Read the permissions of a user."""
        may = request.user.has_perm
        return cls(
            words=may_see_titles(request),
            memories=may("memories.view_memory"),
            changes=may("memories.view_changeset") and may("memories.view_revision"),
            documents=may("memories.view_artifact"),
            reviews=may("reviews.view_reviewrun"),
        )
