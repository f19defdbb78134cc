"""Usage of all owners in the admin: turns, requests, tokens and cost in a range of days, grouped by day, person, key,
agent or model. GET /api/usage returns an owner's own usage."""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from gateway.limits.money import dollars
from gateway.limits.spending import COLUMNS, FIGURES, MAX_DAYS, first_day, is_priced, today, totals
from gateway.models import Agent, ApiKey, UsageDay
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import viewable_url
from memories.models import Owner

MAX_ROWS = 100_000
"""Only so many of the newest rows are added up. Rows are created on their day, so these are the newest days."""
MAX_GROUPS = 200
LABELS = {"day": "Day", "person": "Person", "key": "Key", "agent": "Agent", "model": "Model"}
# Sortable columns by the name in the query string: label, and annotation of `totals`.
_SORTS = {
    "turns": ("Turns", "all_turns"),
    "requests": ("Requests", "all_requests"),
    "input": ("Input tokens", "all_input_tokens"),
    "output": ("Output tokens", "all_output_tokens"),
    "cost": ("Cost", "all_cost"),
}
_MAX_FILTER_CHARS = 200  # of a value in a filter
_NO_AGENT = "No agent"

Link = Callable[[Any], str]


class UsageForm(forms.Form):
    """The range of days, the grouping, the order and the filters. All fields are optional."""

    first = forms.DateField(required=False, error_messages={"invalid": "The first day is a date: 2026-11-01."})
    last = forms.DateField(required=False, error_messages={"invalid": "The last day is a date: 2026-11-30."})
    by = forms.ChoiceField(required=False, choices=[(name, name) for name in LABELS])
    sort = forms.CharField(required=False, max_length=20)
    person = forms.UUIDField(required=False)
    key = forms.UUIDField(required=False)
    agent = forms.CharField(required=False, max_length=_MAX_FILTER_CHARS, empty_value=None)
    model = forms.CharField(required=False, max_length=_MAX_FILTER_CHARS, empty_value=None)

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        last = cleaned.get("last") or today()
        first = cleaned.get("first") or first_day(last)
        if first > last:
            raise forms.ValidationError("The first day is not after the last one.")
        if (last - first).days >= MAX_DAYS:
            raise forms.ValidationError(f"Choose at most {MAX_DAYS} days.")
        return {**cleaned, "first": first, "last": last, "by": cleaned.get("by") or "day"}


@admin.register(UsageDay)
class UsageAdmin(ReadOnlyAdmin):
    """One page with totals in place of a change list."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """GET with the fields of UsageForm. Two queries, and one for names."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = UsageForm(request.GET)
        report = _context(request, form.cleaned_data) if form.is_valid() else {}
        errors = [message for messages in form.errors.values() for message in messages]
        status = 400 if errors else 200
        return self.other_page(request, "admin/gateway/usage.html", "Usage", status=status, errors=errors, **report)


def _context(request: HttpRequest, query: dict[str, Any]) -> dict[str, Any]:
    by, sort = query["by"], query["sort"]
    rows, filters = _rows(query)
    column, descending = sort.removeprefix("-"), sort.startswith("-")
    order = ("-" * descending + _SORTS[column][1],) if column in _SORTS else ()
    found = totals(rows, by, limit=MAX_GROUPS, order=order)
    base = {"first": query["first"].isoformat(), "last": query["last"].isoformat(), **filters}
    return {
        "rows": list(_lines(request, by, found[:MAX_GROUPS], base)),
        "total": _total(found) if 1 < len(found) <= MAX_GROUPS else (),
        "by": by,
        "word": LABELS[by],
        "first": base["first"],
        "last": base["last"],
        "choices": [(word, _address({**base, "by": name}), name == by) for name, word in LABELS.items()],
        "headings": list(_headings(column if order else "", descending, {**base, "by": by})),
        "only": [(LABELS[name].lower(), _name_of(name, [value])(value)) for name, value in filters.items()],
        "everything": _address({"first": base["first"], "last": base["last"], "by": by}),
        "hidden": {**filters, "by": by, **({"sort": sort} if order else {})},
        "has_more": len(found) > MAX_GROUPS,
        "shown": MAX_GROUPS,
        "is_cut": _is_cut(query["first"]),
        "most_rows": MAX_ROWS,
    }


def _rows(query: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """Return the rows to add up, and the filters that were applied."""
    newest = UsageDay.objects.order_by("-pk").values("pk")[:MAX_ROWS]
    rows = UsageDay.objects.filter(pk__in=newest, day__range=(query["first"], query["last"]))
    filters = {name: query[name] for name in LABELS if query.get(name) is not None}
    rows = rows.filter(**{COLUMNS[name]: value for name, value in filters.items()})
    return rows, {name: str(value) for name, value in filters.items()}


def _is_cut(first: date) -> bool:
    """Return True if MAX_ROWS excludes rows of these days."""
    days = UsageDay.objects.order_by("-pk").values_list("day", flat=True)
    oldest = days[MAX_ROWS : MAX_ROWS + 1].first()
    return oldest is not None and oldest >= first


def _lines(
    request: HttpRequest, by: str, groups: list[dict[str, Any]], base: dict[str, str]
) -> Iterable[dict[str, Any]]:
    values = [group[COLUMNS[by]] for group in groups]
    name_of, link_of = _name_of(by, values), _link_of(request, by, values)
    for group, value in zip(groups, values, strict=True):
        days = {**base, "first": str(value), "last": str(value), "by": "person"} if by == "day" else {}
        drill_down = days or {**base, by: str(value), "by": "day"}
        yield {
            "name": name_of(value),
            "link": link_of(value),
            "by_day": _address(drill_down) if value != "" else "",
            "figures": _figures(group),
        }


def _figures(group: dict[str, Any]) -> tuple[str, ...]:
    numbers = (group[name] for name in ("turns", "requests", "input_tokens", "output_tokens"))
    return (*(f"{number:,}" for number in numbers), dollars(group["cost"]) if is_priced(group) else "–")


def _total(groups: list[dict[str, Any]]) -> tuple[str, ...]:
    return _figures({name: sum(group[name] for group in groups) for name in FIGURES})


def _name_of(by: str, values: list[Any]) -> Callable[[Any], str]:
    """Return a function that names a group. At most one query."""
    if by == "person":
        people = {str(owner.pk): str(owner) for owner in Owner.objects.select_related("user").filter(pk__in=values)}
        return lambda value: people.get(str(value), "A person who is gone")
    if by == "key":
        keys = {str(pk): name for pk, name in ApiKey.objects.filter(pk__in=values).values_list("pk", "name")}
        return lambda value: "Signed in" if str(value) == str(UsageDay.NO_KEY) else keys.get(str(value), "Deleted key")
    return lambda value: value.isoformat() if isinstance(value, date) else str(value) or _NO_AGENT


def _link_of(request: HttpRequest, by: str, values: list[Any]) -> Link:
    """Return a function that returns the admin URL of a group's object, or "" if there is none or the viewer may not
    open it."""
    model: type[Any] | None = {"person": Owner, "key": ApiKey, "agent": Agent}.get(by)
    if model is None or not viewable_url(request, model, "changelist"):
        return lambda value: ""
    field = "name" if by == "agent" else "pk"
    ids = dict(model.objects.filter(**{f"{field}__in": values}).values_list(field, "pk"))
    return lambda value: viewable_url(request, model, "change", ids[value]) if value in ids else ""


def _headings(column: str, descending: bool, base: dict[str, str]) -> Iterable[dict[str, Any]]:
    for name, (word, _) in _SORTS.items():
        is_current = name == column
        order = ("descending" if descending else "ascending") if is_current else "none"
        sort = name if is_current and descending else f"-{name}"
        yield {"word": word, "link": _address({**base, "sort": sort}), "order": order}


def _address(query: dict[str, str]) -> str:
    return "?" + urlencode(query)
