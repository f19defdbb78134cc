"""Pagination without counting the table: one row more than shown is read to know whether there is a next page."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

# Reported to Django as the number of rows, so that every page number is valid.
_UNCOUNTED = 2**31 - 1
MAX_COUNTED = 1000  # rows are counted up to this number


class LookAheadPage(Page):  # type: ignore[type-arg]  # not generic at run time
    """A page that is followed by another one if its paginator has read a further row."""

    paginator: "LookAheadPaginator"

    def has_next(self) -> bool:
        return self.paginator.more


class LookAheadPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """A paginator that never counts. `more` says whether a page follows the last one that was read."""

    template_name = "admin/paging.html"
    more = False

    @property
    def count(self) -> int:
        return _UNCOUNTED

    def page(self, number: int | str) -> LookAheadPage:
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        rows = list(self.object_list[start : start + self.per_page + 1])
        self.more = len(rows) > self.per_page
        return LookAheadPage(rows[: self.per_page], number, self)


class LookAheadChangeList(ChangeList):
    """A list that counts its rows only up to MAX_COUNTED. `total_words` is their number, or a lower bound, as text."""

    total_words = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_count = self.full_result_count = len(self.result_list)
        self.total_words = self._total()
        self.model_admin.prepare_rows(list(self.result_list))

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> "QuerySet[Any]":
        """Return the rows in their order. If the first column of the order is nullable, rows without a value are left
        out: they may be most of the table and would have to be sorted by key."""
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        first = str(next(iter(rows.query.order_by), "")).lstrip("-")
        empty = {field.name for field in self.lookup_opts.concrete_fields if field.null}
        if first in empty:
            rows = rows.filter(**{f"{first}__isnull": False})
        return rows

    def _total(self) -> str:
        """Return the number of rows as text. The last page needs no query. Search results are not counted, since that
        would search twice."""
        seen = (self.page_num - 1) * self.list_per_page + len(self.result_list)
        if not getattr(self.paginator, "more", False):
            return f"{seen:,}"
        if self.query:
            return f"more than {seen:,}"
        number = self.queryset.order_by("-pk")[: MAX_COUNTED + 1].count() if seen < MAX_COUNTED else MAX_COUNTED + 1
        return f"more than {max(seen, MAX_COUNTED):,}" if number > MAX_COUNTED else f"{number:,}"
