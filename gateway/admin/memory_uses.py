"""Where a memory was used: the newest turns that were given it, added to the memory's page of memories.admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from gateway.admin.sight import Sight
from gateway.chat.labels import why_given
from gateway.models import Run, Session
from memories.admin.memory_pages import MemoryAdmin
from memories.models import Memory

SESSIONS = 50
LOOKED_AT = 200
SHOWN = 10

admin.site.unregister(Memory)


@admin.register(Memory)
class UsedMemoryAdmin(MemoryAdmin):
    """Memories of all owners, and the turns that were given them."""

    def page_context(self, request: HttpRequest, row: Memory) -> dict[str, Any]:
        context: dict[str, Any] = super().page_context(request, row)
        if not request.user.has_perm("gateway.view_run"):
            return context
        return {**context, "uses": memory_uses(row, Sight.of(request)), "uses_looked_at": LOOKED_AT}


def memory_uses(memory: Memory, sight: Sight) -> list[dict[str, Any]]:
    """Return the newest SHOWN turns that were given a memory. Only the LOOKED_AT newest turns of the owner's SESSIONS
    newest sessions are searched, since no index tells which runs were given it. At most three queries, all by an
    index."""
    newest = Session.objects.filter(owner_id=memory.owner_id).order_by("-last_active_at")
    sessions = list(newest.values_list("pk", flat=True)[:SESSIONS])
    if not sessions:
        return []
    ids = Run.objects.filter(owner_id=memory.owner_id, session_id__in=sessions).order_by("-pk")
    looked_at = list(ids.values_list("pk", flat=True)[:LOOKED_AT])
    runs = Run.objects.filter(pk__in=looked_at).select_related("session").order_by("-pk")
    given = ((run, _item(run, memory.number)) for run in runs.only("recalled", "turn", "started_at", "session__title"))
    return [_use(run, item, sight) for run, item in given if item is not None][:SHOWN]


def _item(run: Run, number: int) -> dict[str, Any] | None:
    items = (item for item in run.recalled if isinstance(item, dict))
    return next((item for item in items if item.get("memory_id") == str(number)), None)


def _use(run: Run, item: dict[str, Any], sight: Sight) -> dict[str, Any]:
    return {
        "url": reverse("admin:gateway_run_change", args=[run.pk]),
        "words": f"Turn {run.turn}" + (f" of {run.session.title or 'an untitled session'}" if sight.words else ""),
        "at": run.started_at,
        "why": why_given(item, words=sight.words),
    }
