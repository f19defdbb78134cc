"""Adds the newest turns that were given a memory to the memory's admin page."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from gateway.admin.visibility import Visibility
from gateway.chat.labels import why_given
from gateway.models import Run, Session
from memories.admin.memory_pages import MemoryAdmin
from memories.models import Memory

MAX_SESSIONS = 50
MAX_RUNS = 200
MAX_SHOWN = 10

admin.site.unregister(Memory)


@admin.register(Memory)
class UsedMemoryAdmin(MemoryAdmin):
    """Memories of all owners, and the turns that were given them."""

    def page_context(self, request: HttpRequest, row: Memory) -> dict[str, Any]:
        context: dict[str, Any] = super().page_context(request, row)
        if not request.user.has_perm("gateway.view_run"):
            return context
        return {**context, "uses": memory_uses(row, Visibility.of(request)), "uses_looked_at": MAX_RUNS}


def memory_uses(memory: Memory, visible: Visibility) -> list[dict[str, Any]]:
    """Return the newest MAX_SHOWN turns that were given a memory. No index tells which runs those are, so only the
    MAX_RUNS newest runs of the owner's MAX_SESSIONS newest sessions are searched. At most three indexed queries."""
    newest = Session.objects.filter(owner_id=memory.owner_id).order_by("-last_active_at")
    sessions = list(newest.values_list("pk", flat=True)[:MAX_SESSIONS])
    ids = Run.objects.filter(owner_id=memory.owner_id, session_id__in=sessions).order_by("-pk")
    run_ids = list(ids.values_list("pk", flat=True)[:MAX_RUNS])
    runs = Run.objects.filter(pk__in=run_ids).select_related("session").order_by("-pk")
    given = ((run, _item(run, memory.number)) for run in runs.only("recalled", "turn", "started_at", "session__title"))
    return [_use(run, item, visible) for run, item in given if item is not None][:MAX_SHOWN]


def _item(run: Run, number: int) -> dict[str, Any] | None:
    items = (item for item in run.recalled if isinstance(item, dict))
    return next((item for item in items if item.get("memory_id") == str(number)), None)


def _use(run: Run, item: dict[str, Any], visible: Visibility) -> dict[str, Any]:
    return {
        "url": reverse("admin:gateway_run_change", args=[run.pk]),
        "words": f"Turn {run.turn}" + (f" of {run.session.title or 'an untitled session'}" if visible.words else ""),
        "at": run.started_at,
        "why": why_given(item, words=visible.words),
    }
