"""Finds rows that have become older than a limit, some in each sweep, without an index on their age."""

import math
from collections.abc import Iterator
from datetime import datetime
from time import monotonic as _clock
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memories.ids import first_id

Row = TypeVar("Row", bound=Model)
_PAGE = 200
_START = UUID(int=0)


class AgeScan:
    """A walk of this process through a table in the order of its keys, which are UUIDv7 and so the order of age. It
    begins again `again_after` seconds after it reached the end; by default it never does."""

    def __init__(self, *, again_after: float = math.inf) -> None:
        self._again_after = again_after
        self._after = _START
        self._ended_at = math.inf

    def pages(self, rows: "QuerySet[Row]", *, before: datetime, seconds: float) -> Iterator[list[Row]]:
        """Yield pages of the rows that were written before a time, oldest first, for some seconds. The next call
        continues after the last page that was dealt with; later it yields what has become older since. `rows` without
        conditions, since it would read all rows that do not match again and again."""
        began = _clock()
        if began - self._ended_at >= self._again_after:
            self._after, self._ended_at = _START, math.inf
        older = rows.filter(pk__lt=first_id(before)).order_by("pk")
        while _clock() < began + seconds:
            page = list(older.filter(pk__gt=self._after)[:_PAGE])
            if not page:
                self._ended_at = min(self._ended_at, began)
                return
            yield page
            self._after = page[-1].pk
