"""The filters and sort order of the memories list, read from the query string."""

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.db.models import Func, QuerySet
from django.http import QueryDict
from django.utils import timezone

from memories.caller import DEFAULT_BOOK
from memories.models import Memory, Target, WriteOrigin
from memories.models.entries import text_order
from memories.page.rows import EXPIRES_SOON
from memories.pagination import parse_number
from memories.selectors import blocked_condition

BATCH_ROWS = 50
MAX_ROWS = 1000


class Order(NamedTuple):
    """A sort order: its label in the menu, its words in the headline, and its columns, which have an index."""

    label: str
    words: str
    columns: tuple[str | Func, ...]


ORDERS = {
    "": Order("Newest first", "newest first", ("-number",)),
    "changed": Order("Last changed", "last changed first", ("-updated_at", "-number")),
    "recalled": Order("Most recalled", "most recalled first", ("-usage_count", "-number")),
    "oldest": Order("Oldest first", "oldest first", ("number",)),
    "text": Order("Text, A to Z", "A to Z", (text_order(), "number")),
}
"""Sort orders by their value in the query string."""
_MAX_QUERY = 400
_MAX_SKIP = 1_000_000
_NUMBER = re.compile(r"#(\d{1,19})")
_CHIPS = ("pinned", "expiring", "blocked", "deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of the list; "", 0 or False means unset. `number` finds a memory in any book and ignores the other
    filters. The list shows `shown` rows after the first `skip`."""

    book: str = DEFAULT_BOOK
    query: str = ""
    number: int = 0
    target: str = ""
    category: str = ""
    origin: str = ""
    pinned: bool = False
    expiring: bool = False
    blocked: bool = False
    deleted: bool = False
    sort: str = ""
    shown: int = BATCH_ROWS
    skip: int = 0

    @property
    def narrowed(self) -> bool:
        """Whether anything but the book is set."""
        return bool(self.number or self.query or self.narrowed_besides_words)

    @property
    def narrowed_besides_words(self) -> bool:
        """Whether a filter other than the search is set."""
        return bool(self.target or self.category or self.origin or any(getattr(self, chip) for chip in _CHIPS))

    @property
    def more_query(self) -> str:
        """The query string for more rows, or for the next page if this one has MAX_ROWS."""
        if self.shown < MAX_ROWS:
            return self._address(n=min(self.shown + BATCH_ROWS, MAX_ROWS), skip=self.skip)
        return self._address(skip=self.skip + self.shown)

    @property
    def first_query(self) -> str:
        """The query string of the same list from the beginning."""
        return self._address()

    def _address(self, *, n: int = 0, skip: int = 0) -> str:
        given: dict[str, str | int] = {"book": self.book, "q": self.query, "target": self.target}
        given |= {"category": self.category, "origin": self.origin, "sort": self.sort, "n": n, "skip": skip}
        given |= {chip: "1" for chip in _CHIPS if getattr(self, chip)}
        return urlencode({name: value for name, value in given.items() if value})

    def of(self, memories: "QuerySet[Memory]") -> "QuerySet[Memory]":
        """Apply the filters, except for the search."""
        equal = {"target": self.target, "category": self.category, "write_origin": self.origin}
        memories = memories.filter(**{name: value for name, value in equal.items() if value})
        if self.pinned:
            memories = memories.filter(pinned=True)
        if self.expiring:
            memories = memories.filter(expires_at__lte=timezone.now() + EXPIRES_SOON)
        return memories.filter(blocked_condition()) if self.blocked else memories

    def in_order(self, memories: "QuerySet[Memory]") -> "QuerySet[Memory]":
        """Return the memories in the chosen order. By default deleted memories are ordered by time of deletion."""
        by_deletion = self.deleted and not self.sort
        return memories.order_by(*(("-deleted_at", "-number") if by_deletion else ORDERS[self.sort].columns))


def filters_of(query: QueryDict) -> Filters:
    """Return the filters in a query string. Unknown values are ignored. `q=#12` finds a memory by number."""
    target, origin, sort = query.get("target", ""), query.get("origin", ""), query.get("sort", "")
    words = " ".join(query.get("q", "").split())[:_MAX_QUERY]
    number_match = _NUMBER.fullmatch(words)
    number = number_match[1] if number_match else query.get("number", "")
    return Filters(
        book=(query.get("book") or DEFAULT_BOOK)[:64],
        query=words,
        number=parse_number(number) or 0,
        target=target if target in Target.values else "",
        category=query.get("category", "")[:40],
        origin=origin if origin in WriteOrigin.values else "",
        **{chip: query.get(chip) == "1" for chip in _CHIPS},
        sort=sort if sort in ORDERS else "",
        shown=min(max(parse_number(query.get("n", "")) or 0, BATCH_ROWS), MAX_ROWS),
        skip=min(parse_number(query.get("skip", "")) or 0, _MAX_SKIP),
    )
