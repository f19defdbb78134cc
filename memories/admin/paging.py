"""Pages of a list without counting the table: one row more is read than is shown,
to know whether there is a next page."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from unfold.views import ChangeList

# Django asks how many rows there are, to decide whether to cut the list and which pages exist.
_MANY = 2**31 - 1


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
    """A list that knows of the rows it shows and of no others, so no number of results is claimed."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_count = self.full_result_count = len(self.result_list)
