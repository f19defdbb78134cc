"""Filters of the admin's lists. None of them counts rows or lists all owners."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet, TextChoices
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter, RangeDateFilter, TextFilter
from unfold.utils import parse_date_str

from memories.admin.actors import actors_named
from memories.admin.badges import ORIGINS, STATES, TARGETS, memory_state_query
from memories.ids import first_id, parse_uuid

_FIRST_DAY, _LAST_DAY = date(1970, 1, 2), date(9998, 12, 30)  # a day within the years, for time zones
OWNER_FILTER = ("owner", AutocompleteSelectFilter)
BOOK_FILTER = ("book", AutocompleteSelectFilter)


class ChoiceFilter(DropdownFilter):
    """A drop-down over the column `parameter_name`; `words` maps values to labels."""

    words: dict[str, str]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.words.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.parameter_name: value}) if value in self.words else queryset


def words_filter(title: str, column: str, words: dict[str, str]) -> type[ChoiceFilter]:
    """Return a filter class for the given values of a column."""
    return type(f"{title.title()}Filter", (ChoiceFilter,), {"title": title, "parameter_name": column, "words": words})


def choice_filter(column: str, choices: type[TextChoices]) -> type[ChoiceFilter]:
    """Return a filter class for the choices of a column."""
    return words_filter(column, column, {str(value): str(label) for value, label in choices.choices})


OriginFilter = words_filter("origin", "write_origin", {origin: word for origin, (_, word) in ORIGINS.items()})
TargetFilter = words_filter("target", "target", TARGETS)


class StateFilter(ChoiceFilter):
    """A filter by a state that is not a column."""

    title = "state"
    parameter_name = "state"

    def conditions(self) -> dict[str, Q]:
        """Return the condition of each state that restricts the list, with "" for no choice."""
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = str(self.value())
        return queryset.filter(self.conditions().get(value if value in self.words else "", Q()))


class MemoryStateFilter(StateFilter):
    """A filter by state. By default deleted memories are excluded."""

    all_option = ["", "Not deleted"]
    words = {**{name: word for name, (_, word, _) in STATES.items()}, "all": "All"}

    def conditions(self) -> dict[str, Q]:
        return {"": Q(deleted_at=None)} | {name: memory_state_query(name) for name in STATES}


class DayFilter(RangeDateFilter):
    """A filter by an inclusive range of days in the current time zone. Invalid dates are ignored. Days outside
    1970 to 9998 are replaced by the nearest one: not every time zone, database and key has them."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        limits: dict[str, datetime] = {}
        if first := self._day("_from"):
            limits[f"{self.parameter_name}__gte"] = first
        if last := self._day("_to"):
            limits[f"{self.parameter_name}__lt"] = last + timedelta(days=1)
        return queryset.filter(**limits)

    def _day(self, end: str) -> datetime | None:
        day = parse_date_str(str(self.used_parameters.get(f"{self.parameter_name}{end}") or ""))
        if day is None:
            return None
        return timezone.make_aware(datetime.combine(min(max(day, _FIRST_DAY), _LAST_DAY), time.min))


class CreatedDayFilter(DayFilter):
    """A filter by the day of creation, for tables whose primary key is a UUIDv7: the range of the key excludes older
    rows without reading them."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().queryset(request, queryset)
        first = self._day("_from")
        return rows.filter(pk__gte=first_id(first)) if first else rows


class TypedFilter(TextFilter):
    """A filter by a text that is typed in; `condition` is that of the rows that match it."""

    condition: Callable[[str], Q]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = (self.value() or "").strip()
        return queryset.filter(self.condition(value)) if value else queryset


def _typed_filter(title: str, parameter: str, condition: Callable[[str], Q]) -> type[TypedFilter]:
    named = {"title": title, "parameter_name": parameter, "condition": staticmethod(condition)}
    return type(f"{parameter.title()}Filter", (TypedFilter,), named)


def text_filter(title: str, column: str) -> type[TypedFilter]:
    """Return a filter class for an exact text in a column."""
    return _typed_filter(title, column, lambda text: Q(**{column: text}))


def id_filter(parameter: str, column: str) -> type[TypedFilter]:
    """Return a filter class for an id in a column; `parameter` is its name in the query string. Text that is not an id
    matches nothing."""

    def condition(text: str) -> Q:
        key = parse_uuid(text)
        return Q(**{column: key}) if key else Q(pk__in=())

    return _typed_filter(parameter.replace("_", " "), parameter, condition)


ActorFilter = _typed_filter(
    "actor (account name, model or system)", "actor", lambda name: Q(actor__in=actors_named(name))
)
"""A filter by the name of an account, which includes its writes as administrator, or by a stored actor."""
