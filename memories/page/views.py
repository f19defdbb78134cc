"""The memories page and its fragments. These views only read: changes go through the native API."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from memories.imports.formats import FORMATS
from memories.models import Memory, Target, WriteOrigin
from memories.page.filters import ORDERS, filters_of
from memories.page.listing import MemoryList, list_memories
from memories.page.rows import TARGET_WORDS, history_of, origin_label, rows_of, short_name, with_changes
from memories.page.summary import summary_of
from memories.selectors import categories_of, memory_get
from memories.viewers import Viewer, fragment_view, page_view


@page_view
def memories(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """`/memories/`: the list of memories. The filters are in the query string."""
    listed = list_memories(viewer, filters_of(request.GET))
    formats = [(format.name, format.label) for format in FORMATS.values()]
    summary = summary_of(viewer, listed.filters.book)
    page = {"tab": "memories", "summary": summary, "formats": formats, "undo_days": settings.UNDO_DAYS}
    return render(request, "memories/memories.html", page | _list_context(viewer, listed))


@fragment_view
def list_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """The rows of the list and their number."""
    return render(request, "memories/list.html", _list_context(viewer, list_memories(viewer, filters_of(request.GET))))


@fragment_view
def summary_fragment(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """A book's health line and meters."""
    return render(request, "memories/summary.html", {"summary": summary_of(viewer, filters_of(request.GET).book)})


@fragment_view
def row_fragment(request: HttpRequest, viewer: Viewer, number: int) -> HttpResponse:
    """One row of the list. A deleted memory can be restored from it."""
    memory = with_changes(Memory.objects.filter(owner_id=viewer.owner.pk, number=number)).first()
    if memory is None:
        return HttpResponse(status=404)
    return render(request, "memories/row.html", {"row": rows_of([memory], viewer)[0]})


@fragment_view
def edit_fragment(request: HttpRequest, viewer: Viewer, number: int) -> HttpResponse:
    """The editor of a memory. With `mine` it shows an edit conflict and who made the other change."""
    memory = memory_get(viewer.owner.pk, number)
    expires = viewer.local(memory.expires_at).date().isoformat() if memory.expires_at else ""
    tomorrow = _tomorrow(viewer)
    context: dict[str, Any] = {
        "memory": memory,
        "name": short_name(memory),
        "categories": categories_of(memory.book),
        "targets": [(str(target), words) for target, words in TARGET_WORDS.items()],
        "keywords": ", ".join(memory.keywords),
        "expires": expires,
        "earliest": min(expires or tomorrow, tomorrow),
        "zone": viewer.zone.key,
    }
    if request.GET.get("mine"):
        latest = memory.revisions.order_by("-version").first()
        context["changed_by"] = origin_label(latest.write_origin).word if latest else "somebody"
        return render(request, "memories/conflict.html", context)
    return render(request, "memories/edit.html", context)


@fragment_view
def history_fragment(request: HttpRequest, viewer: Viewer, number: int) -> HttpResponse:
    """The history of a memory, which may be deleted."""
    memory = memory_get(viewer.owner.pk, number, deleted=True)
    context = {"memory": memory, "name": short_name(memory), "steps": history_of(memory, viewer)}
    return render(request, "memories/history.html", context)


def _list_context(viewer: Viewer, listed: MemoryList) -> dict[str, Any]:
    return {
        "listed": listed,
        "filters": listed.filters,
        "targets": [(str(target), words) for target, words in TARGET_WORDS.items()],
        "sorts": [(name, order.label) for name, order in ORDERS.items()],
        "origins": [(str(origin), origin.label) for origin in WriteOrigin],
        "default_target": str(Target.USER),
        "earliest": _tomorrow(viewer),
        "zone": viewer.zone.key,
    }


def _tomorrow(viewer: Viewer) -> str:
    """Return the first day on which a memory may be made to expire: one that expires today has done so at midnight."""
    return viewer.local(timezone.now() + timedelta(days=1)).date().isoformat()
