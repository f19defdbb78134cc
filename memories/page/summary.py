"""The head of the memories page for a book: its health line, its budgets, and a clear that can be undone."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from memories.artifacts.store import live_artifacts
from memories.health import ago, book_health
from memories.models import Book, ChangeSet, Revision, Target
from memories.number_words import counted
from memories.selectors import book_named, count_by, live_in
from memories.services import book_limits
from memories.services.books import NEARLY_FULL
from memories.viewers import Viewer

_TYPICAL_CHARACTERS = 80
_BAR_WIDTH = 99.6


def summary_of(viewer: Viewer, name: str) -> dict[str, Any]:
    """Return the head of the page for a book, which may not exist yet: its health as `figures` (memories.health,
    including the figures of the apps above), its meters, the progress of an open consolidation, and the last clear
    while that can be undone."""
    book, now = book_named(viewer.owner.pk, name), timezone.now()
    numbers: Mapping[str, int] = {}
    if book is None:
        limits = book_limits(name)
        figures: dict[str, Any] = {"targets": {str(t): {"used": 0, "limit": limits[t]} for t in Target}}
    else:
        figures, numbers = book_health(book, now), count_by(live_in(book), "target")
    last = figures.get("last_review_at")
    state = (figures.get("last_review") or {}).get("state", "")
    return {
        "book": name,
        "figures": figures,
        "last_review": ago(last, now) if last else "",
        "review_failed": state in {"failed", "timed_out"},
        "meters": [meter(Target(t), numbers.get(t, 0), **size) for t, size in figures["targets"].items()],
        "memories": sum(numbers.values()),
        "documents": live_artifacts(viewer.owner.pk, book.pk).count() if book else 0,
        "progress": progress(figures.get("consolidation") or {}),
        "cleared": last_clear(book, viewer) if book else None,
    }


def progress(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the progress of a book's newest consolidation (from memories.health), or None if it is over. `fill` is the
    bar's width out of 100; None before the sessions are chosen and while the documents are written."""
    if run.get("state") not in {"scheduled", "running", "paused"}:
        return None
    done, total = int(run["sessions_done"]), int(run["sessions_total"])
    read = f"{done} of {counted(total, 'session')} read"
    if run["state"] == "paused":
        words = f"Consolidation is paused{f': {read}' if total else ''}. It resumes by itself."
    elif run["phase"] == "synthesis":
        words = f"Consolidation writes the documents{f', {read}' if total else ''}."
    elif total:
        words = f"Consolidation is running: {read}."
    else:
        words = "Consolidation chooses the sessions it reads."
    fill = round(_BAR_WIDTH * done / total, 1) if total and run["phase"] != "synthesis" else None
    return {"words": words, "done": done, "total": total, "fill": fill}


def meter(target: Target, number: int, used: int, limit: int) -> dict[str, Any]:
    """Return how full a budget is, in characters. `number` is the number of memories in it. In the result `look` is "",
    near or full, and `fill` is the bar's width out of 100."""
    if not limit:
        return {"label": target.label, "words": f"{used:,}", "used": used, "limit": 0, "hint": "No limit"}
    share = min(1.0, used / limit)
    if used >= limit:
        look, hint = "full", "Full. Edit or delete something to make room."
    elif share >= NEARLY_FULL:
        look, hint = "near", f"Almost full. Past {limit:,} a new memory is refused, and you are told."
    else:
        typical = used / number if number else _TYPICAL_CHARACTERS
        look, hint = "", f"Room for about {max(1, int((limit - used) / max(typical, 1)))} more."
    return {
        "label": target.label,
        "words": f"{used:,} of {limit:,}",
        "used": used,
        "limit": limit,
        "look": look,
        "fill": round(_BAR_WIDTH * share, 1),
        "hint": hint,
    }


def last_clear(book: Book, viewer: Viewer) -> dict[str, Any] | None:
    """Return the newest clear of the book that can be undone, or None. Two queries. `words` is text such as
    `27 memories were deleted by /memory clear on 22 Nov, 14:03.`"""
    days = timedelta(days=settings.UNDO_DAYS)
    recent = ChangeSet.objects.filter(
        owner_id=book.owner_id, book=book, kind=ChangeSet.Kind.CLEAR, created_at__gt=timezone.now() - days
    )
    undos = ChangeSet.objects.filter(undoes=OuterRef("pk"))
    # An undo that was itself undone does not count.
    clear = recent.filter(~Exists(undos.filter(~Exists(undos)))).order_by("-created_at").first()
    if clear is None:
        return None
    number = Revision.objects.filter(owner_id=book.owner_id, change_set=clear).count()
    what = f"{counted(number, 'memory was', 'memories were')} deleted" if number else "This book was cleared"
    return {
        "change_set": clear.pk,
        "words": f"{what} by /memory clear on {viewer.minute(clear.created_at)}.",
        "until": viewer.day(clear.created_at + days),
    }
