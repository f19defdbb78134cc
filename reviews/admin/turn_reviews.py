"""Adds the reviews that read a turn to the admin page of its run, which belongs to gateway.admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from gateway.admin.runs import RunAdmin
from gateway.limits.money import usage_words
from gateway.models import Run
from memories.admin.badges import moment, seconds, state_badge
from reviews.admin.decisions import write_rows
from reviews.admin.review_runs import error_words
from reviews.models import ReviewRun

MAX_REVIEWS = 5

admin.site.unregister(Run)


@admin.register(Run)
class ReviewedRunAdmin(RunAdmin):
    """Runs of turns, and the reviews that read them."""

    def page_context(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        """Return the turn, and its reviews for users who may view reviews."""
        context: dict[str, Any] = super().page_context(request, row)
        turn = context["turn"]
        if not turn["sight"].reviews:
            return context
        return {**context, "review_parts": reviews_of_turn(row, turn["first_seq"], turn["last_seq"])}


def reviews_of_turn(run: Run, first_seq: int, last_seq: int) -> list[dict[str, Any]]:
    """Return the first MAX_REVIEWS reviews whose range overlaps the messages of a run, with their writes, as the page
    shows them. Two queries, one if there are no reviews."""
    if not first_seq:
        return []
    rows = ReviewRun.objects.filter(
        owner_id=run.owner_id, session_id=run.session_id, first_seq__lte=last_seq, last_seq__gte=first_seq
    )
    reviews = list(rows.order_by("pk")[:MAX_REVIEWS])
    writes = write_rows(run.owner_id, reviews)
    return [
        {
            "url": reverse("admin:reviews_reviewrun_change", args=[review.pk]),
            "when": moment(review.created_at),
            "badge": state_badge(review),
            "why": error_words(review),
            "trigger": review.get_trigger_display(),
            "seconds": seconds(review.started_at, review.answered_at),
            "usage": usage_words(review.usage),
            "writes": writes[review.pk],
        }
        for review in reviews
    ]
