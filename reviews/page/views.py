"""The reviews page: the timeline, consolidation and its documents. Changes go through the native API, except for
cancelling a review, which only this page does."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from gateway.agents.rows import agent_settings
from gateway.models import Agent
from memories.artifacts.store import artifact_get
from memories.caller import DEFAULT_BOOK
from memories.errors import NotFound
from memories.ids import parse_uuid
from memories.models import Artifact, ArtifactRevision
from memories.number_words import counted
from memories.pagination import parse_number
from memories.selectors import book_get, row_by_id
from memories.viewers import Viewer, action_view, fragment_view, page_view
from reviews import services
from reviews.models import ReviewRun
from reviews.page.document import document_history, shown_document
from reviews.page.panel import panel_of
from reviews.page.rows import rows_of
from reviews.quotas import usage_today
from reviews.selectors import review_get

BATCH_ROWS = 30
MAX_ROWS = 300


@page_view
def reviews(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/reviews/`: the timeline and the consolidation panel; `doc` opens one of the documents."""
    book = _book(request)
    context = _timeline(request, viewer) | {"tab": "reviews", "intro": _intro(viewer), "panel": panel_of(viewer, book)}
    if path := request.GET.get("doc"):
        with suppress(NotFound):
            context["shown"] = shown_document(_document(viewer, book, path), viewer)
    return render(request, "reviews/reviews.html", context)


@fragment_view
def timeline_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """The newest `n` reviews, or as many as needed to include the review `through`."""
    return render(request, "reviews/timeline.html", _timeline(request, viewer) | {"intro": _intro(viewer)})


@fragment_view
def consolidation_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """The consolidation panel of a book."""
    return render(request, "reviews/panel.html", {"panel": panel_of(viewer, _book(request))})


@fragment_view
def document_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """A document (`path` in `book`), its history or editor (`view`), or the text of a `revision`."""
    artifact = _document(viewer, _book(request), request.GET.get("path", ""))
    if revision_id := request.GET.get("revision"):
        revision = row_by_id(ArtifactRevision.objects.filter(artifact=artifact), revision_id)
        if revision is None:
            return HttpResponse(status=404)
        return HttpResponse(str(revision.after.get("content", "")), content_type="text/plain; charset=utf-8")
    context: dict[str, Any] = {"shown": shown_document(artifact, viewer), "book": _book(request)}
    if request.GET.get("view") == "history":
        context["steps"] = document_history(artifact, viewer)
        return render(request, "reviews/document_history.html", context)
    template = "reviews/document_edit.html" if request.GET.get("view") == "edit" else "reviews/document.html"
    return render(request, template, context)


@action_view
def review_cancel(request: HttpRequest, viewer: Viewer, review_id: UUID) -> HttpResponse:
    """Cancel a review that is scheduled or running. Answers 204 even if it has ended."""
    review = review_get(viewer.owner.pk, review_id)
    if review.state in ReviewRun.OPEN:
        services.review_cancel(review, "You cancelled it.")
    return HttpResponse(status=204)


def _timeline(request: HttpRequest, viewer: Viewer) -> dict[str, Any]:
    rows = ReviewRun.objects.filter(owner_id=viewer.owner.pk).order_by("-id")
    shown = min(max(parse_number(request.GET.get("n", "")) or 0, BATCH_ROWS), MAX_ROWS)
    if (through := parse_uuid(request.GET.get("through", ""))) is not None:
        shown = min(MAX_ROWS, max(shown, rows.filter(pk__gte=through).count()))
    found = list(rows[: shown + 1])
    more = min(shown + BATCH_ROWS, MAX_ROWS) if len(found) > shown and shown < MAX_ROWS else 0
    return {"rows": rows_of(found[:shown], viewer), "number": shown, "more": more}


def _intro(viewer: Viewer) -> dict[str, Any]:
    """Return how often reviews run, how many wait for a decision, and whether today's quota is used up."""
    agents = [agent_settings(agent) for agent in Agent.objects.all()]
    intervals = {agent.memory_review_interval for agent in agents} - {0}
    reviews = ReviewRun.objects.filter(owner_id=viewer.owner.pk, state=ReviewRun.State.AWAITING_APPROVAL)
    waiting = list(reviews.order_by("-id").values_list("pk", flat=True))
    interval = intervals.pop() if len(intervals) == 1 else 0
    return {
        "on": any(agent.reviews_on for agent in agents),
        "after_turns": bool(interval or intervals),
        "interval": interval,
        "waiting": f"{counted(len(waiting), 'review needs', 'reviews need')} your decision." if waiting else "",
        "first_waiting": waiting[0] if waiting else None,
        "used_up": usage_today(viewer.owner).reached,
    }


def _book(request: HttpRequest) -> str:
    return (request.GET.get("book") or DEFAULT_BOOK)[:64]


def _document(viewer: Viewer, book_name: str, path: str) -> Artifact:
    """Return a document of a book. Raises NotFound."""
    return artifact_get(viewer.owner.pk, book_get(viewer.owner.pk, book_name).pk, path)
