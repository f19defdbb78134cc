"""Pages of a list without counting the table: one row more is read than is shown,
to know whether there is a next page."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

# Django asks how many rows there are, to decide whether to cut the list and which pages exist.
_MANY = 2**31 - 1
COUNTED = 1000  # rows of a list are counted up to this number


class LookAheadPage(Page):  # type: ignore[type-arg]  # not generic at run time
    """A page that knows from the row after its last one whether there is another."""

    def __init__(self, object_list: Any, number: int, paginator: "LookAheadPaginator", *, more: bool) -> None:
        super().__init__(object_list, number, paginator)
        self.more = more

    def has_next(self) -> bool:
        return self.more


class LookAheadPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Never counts. `more` says, once a page was read, whether another follows it."""

    template_name = "admin/paging.html"
    more = False

    @property
    def count(self) -> int:
        return _MANY

    def page(self, number: int | str) -> LookAheadPage:
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        rows = list(self.object_list[start : start + self.per_page + 1])
        self.more = len(rows) > self.per_page
        return LookAheadPage(rows[: self.per_page], number, self, more=self.more)


class LookAheadChangeList(ChangeList):
    """A list that knows of the rows it shows, and counts a few pages of further ones. `total_words` says how many there
    are, as far as that is known."""

    total_words = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_count = self.full_result_count = len(self.result_list)
        self.total_words = self._total()
        self.model_admin.rows_read(list(self.result_list))

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> "QuerySet[Any]":
        """Return the rows in their order. In the order of a column that may be empty, only rows that have it: else the
        empty ones, which may be most of the table, would have to be sorted by key."""
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        first = str(next(iter(rows.query.order_by), "")).lstrip("-")
        empty = {field.name for field in self.lookup_opts.concrete_fields if field.null}
        if first in empty:
            rows = rows.filter(**{f"{first}__isnull": False})
        return rows

    def _total(self) -> str:
        """Return how many rows there are, in words. The last page needs no query. The results of a search are not
        counted, since that would search twice."""
        seen = (self.page_num - 1) * self.list_per_page + len(self.result_list)
        if not getattr(self.paginator, "more", False):
            return f"{seen:,}"
        if self.query:
            return f"more than {seen:,}"
        number = self.queryset.order_by("-pk")[: COUNTED + 1].count() if seen < COUNTED else COUNTED + 1
        return f"more than {max(seen, COUNTED):,}" if number > COUNTED else f"{number:,}"
