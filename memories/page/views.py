"""The memories page and its fragments. What changes something goes through the native API; these only show."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memories.errors import DomainError, NotFound
from memories.models import Memory, Target, WriteOrigin
from memories.page.history import history_of
from memories.page.importing import rewordings
from memories.page.listing import Listed, filters_of, listed
from memories.page.rows import TARGET_WORDS, mark_of, rows_of, short_name, with_changes
from memories.page.summary import summary_of
from memories.readers import Reader, action_view, fragment_view, page_view
from memories.selectors import memory_get


@page_view
def memories(request: HttpRequest, reader: Reader) -> HttpResponse:
    """`/memories/`: everything that is remembered, with what narrows the list in the address."""
    found = listed(reader, filters_of(request.GET))
    context = {"tab": "memories", "summary": summary_of(reader, found.filters.book)} | _list_context(reader, found)
    return render(request, "memories/memories.html", context)


@fragment_view
def list_fragment(request: HttpRequest, reader: Reader) -> HttpResponse:
    """The rows, and how many there are."""
    return render(request, "memories/list.html", _list_context(reader, listed(reader, filters_of(request.GET))))


@fragment_view
def summary_fragment(request: HttpRequest, reader: Reader) -> HttpResponse:
    """The health line and the meters of a book."""
    return render(request, "memories/summary.html", {"summary": summary_of(reader, filters_of(request.GET).book)})


@fragment_view
def row_fragment(request: HttpRequest, reader: Reader, number: int) -> HttpResponse:
    """One memory as the list shows it; of a deleted one what is left, with the way back."""
    memory = with_changes(Memory.objects.filter(owner_id=reader.owner.pk, number=number)).first()
    if memory is None:
        return HttpResponse(status=404)
    return render(request, "memories/row.html", {"row": rows_of([memory], reader)[0]})


@fragment_view
def edit_fragment(request: HttpRequest, reader: Reader, number: int) -> HttpResponse:
    """The editor of one memory, as it reads now; `mine` makes it say who changed it meanwhile."""
    memory = _memory(reader, number)
    if memory is None:
        return HttpResponse(status=404)
    categories = (
        Memory.objects.filter(owner_id=reader.owner.pk, book=memory.book, deleted_at__isnull=True)
        .order_by("category")
        .values_list("category", flat=True)
        .distinct()
    )
    context: dict[str, Any] = {
        "memory": memory,
        "name": short_name(memory),
        "categories": categories,
        "targets": [(str(target), words) for target, words in TARGET_WORDS.items()],
        "keywords": ", ".join(memory.keywords),
        "expires": reader.local(memory.expires_at).date().isoformat() if memory.expires_at else "",
        "zone": reader.zone.key,
    }
    if request.GET.get("mine"):
        latest = memory.revisions.order_by("-version").first()
        context["changed_by"] = mark_of(latest.write_origin).word if latest else "somebody"
        return render(request, "memories/conflict.html", context)
    return render(request, "memories/edit.html", context)


@fragment_view
def history_fragment(request: HttpRequest, reader: Reader, number: int) -> HttpResponse:
    """The history of a memory, also of a deleted one."""
    memory = _memory(reader, number, deleted=True)
    if memory is None:
        return HttpResponse(status=404)
    context = {"memory": memory, "name": short_name(memory), "steps": history_of(memory, reader)}
    return render(request, "memories/history.html", context)


@action_view
def import_fragment(request: HttpRequest, reader: Reader) -> HttpResponse:
    """The words that an import (the body, JSON Lines) would change; nothing is written. 400 where it is no import."""
    try:
        found = rewordings(reader, request.body.decode(), filters_of(request.GET).book)
    except (DomainError, UnicodeDecodeError):
        return HttpResponse(status=400)
    return render(request, "memories/rewordings.html", {"rewordings": found})


def _list_context(reader: Reader, found: Listed) -> dict[str, Any]:
    return {
        "listed": found,
        "filters": found.filters,
        "targets": [(str(target), words) for target, words in TARGET_WORDS.items()],
        "origins": [(str(origin), origin.label) for origin in WriteOrigin],
        "default_target": str(Target.USER),
        "zone": reader.zone.key,
    }


def _memory(reader: Reader, number: int, *, deleted: bool = False) -> Memory | None:
    try:
        return memory_get(reader.owner.pk, number, deleted=deleted)
    except NotFound:
        return None
