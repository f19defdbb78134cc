"""Start consolidations in the admin, from a book's page or for several books of the list, after a preview of what would
be read and its approximate cost. This extends the page of books of memories.admin."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from memories.admin.access import action_record, listing_record
from memories.admin.base import staff_actor
from memories.admin.records import BookAdmin
from memories.errors import Conflict
from memories.ids import parse_uuid
from memories.models import Book
from memories.number_words import counted
from reviews.admin.consolidation_runs import status_text
from reviews.consolidation.preview import consolidation_preview
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.models import ConsolidationRun

PERMISSION = "reviews.change_consolidationrun"
# A preview reads the sessions that it counts, so the number of books is limited.
MAX_BOOKS = 10

admin.site.unregister(Book)


@admin.register(Book)
class ConsolidatedBookAdmin(BookAdmin):
    """Books, and their consolidation."""

    actions = ("consolidate_books",)
    change_form_template = "admin/memories/book/change_form.html"

    def has_consolidate_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may start and stop runs."""
        return bool(request.user.has_perm(PERMISSION))

    @admin.action(description="Consolidate now…", permissions=["consolidate"])
    def consolidate_books(self, request: HttpRequest, queryset: QuerySet[Book]) -> HttpResponse | None:
        keys = [str(key) for key in queryset.values_list("pk", flat=True)[: MAX_BOOKS + 1]]
        if len(keys) > MAX_BOOKS:
            self.message_user(request, f"Choose at most {MAX_BOOKS} books at a time.", messages.ERROR)
            return None
        return HttpResponseRedirect(_consolidate_url(keys, force=False))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.consolidate_view)
        return [path("consolidate/", view, name="memories_book_consolidate"), *super().get_urls()]

    def consolidate_view(self, request: HttpRequest) -> HttpResponse:
        """Show what would be read and what it would cost (GET with one or more `book=ID`, and `force=1`), or start the
        runs (POST with the same parameters)."""
        if not self.has_consolidate_permission(request):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else request.GET
        keys = [key for value in data.getlist("book")[:MAX_BOOKS] if (key := parse_uuid(value))]
        books = list(Book.objects.filter(pk__in=keys).select_related("owner__user").order_by("pk"))
        if not books:
            self.message_user(request, "Choose a book first.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:memories_book_changelist"))
        force = data.get("force") == "1"
        if request.method == "POST":
            return self._start(request, books, force=force)
        listing_record(request, Book, books)
        previews = [(book, consolidation_preview(book, force=force)) for book in books]
        context = _preview_context(previews, force=force)
        return self.other_page(request, "admin/memories/book/consolidate.html", "Consolidate now", **context)

    def _start(self, request: HttpRequest, books: Sequence[Book], *, force: bool) -> HttpResponse:
        runs = []
        for book in books:
            try:
                runs.append(
                    consolidation_request(book, trigger=Trigger.REQUEST, actor=staff_actor(request), force=force)
                )
            except Conflict as refusal:
                self.message_user(request, f"{book.owner}, {book}: {refusal}", messages.ERROR)
        if not runs:
            return HttpResponseRedirect(_consolidate_url([str(book.pk) for book in books], force=force))
        action_record(request, ConsolidationRun, "Requested.", runs)
        started = counted(len(runs), "consolidation is", "consolidations are")
        self.message_user(request, f"{started} under way.", messages.SUCCESS)
        if len(runs) == 1:
            return HttpResponseRedirect(reverse("admin:reviews_consolidationrun_change", args=[runs[0].pk]))
        return HttpResponseRedirect(reverse("admin:reviews_consolidationrun_changelist"))

    def page_context(self, request: HttpRequest, row: Book) -> dict[str, Any]:
        context = super().page_context(request, row)
        if request.user.has_perm("reviews.view_consolidationrun"):
            run = ConsolidationRun.objects.filter(book=row).order_by("-pk").first()
            stands = status_text(run) if run else "Consolidation has not run yet."
            context["consolidation"] = {"run": run, "stands": stands}
        if self.has_consolidate_permission(request):
            context["consolidate_url"] = _consolidate_url([str(row.pk)], force=False)
        return context


def _consolidate_url(keys: Sequence[str], *, force: bool) -> str:
    query = [("book", key) for key in keys] + ([("force", "1")] if force else [])
    return f"{reverse('admin:memories_book_consolidate')}?{urlencode(query)}"


def _preview_context(previews: Sequence[tuple[Book, dict[str, Any]]], *, force: bool) -> dict[str, Any]:
    """Return the context of the preview page: a row per book, the sums, and the address with the opposite `force`."""
    costs = [preview["cost"] for _, preview in previews]
    return {
        "rows": [(book, preview, _money(preview["cost"])) for book, preview in previews],
        "sessions_total": sum(preview["sessions_total"] for _, preview in previews),
        "requests_total": sum(preview["requests"] for _, preview in previews),
        "tokens_total": sum(preview["tokens"] for _, preview in previews),
        "cost_total": _money(None if None in costs else sum(costs)),
        "nothing": not any(preview["requests"] for _, preview in previews),
        "enabled": previews[0][1]["enabled"],
        "force": force,
        "other_url": _consolidate_url([str(book.pk) for book, _ in previews], force=not force),
    }


def _money(cost: float | None) -> str:
    return "no price is known" if cost is None else f"about ${cost:.2f}"
