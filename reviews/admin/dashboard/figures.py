"""The numbers by day: turns, tokens, reviews, writes, blocked writes. One query per kind of row, over a range of keys,
grouped by day, state and model."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.db.models import CharField, Count, Sum

from gateway.limits.money import Money, dollars, token_sums
from gateway.models import Run
from memories.admin.badges import ORIGINS
from memories.models import Revision, ScanDay, WriteOrigin
from reviews.admin.dashboard.charts import ACCENT, DANGER, OK, QUIET, WARN, Chart, series_of
from reviews.admin.dashboard.periods import Period, day_of, group_of
from reviews.models import ConsolidationRun, ReviewRun

State = ReviewRun.State
_OTHERS = "Others"
_TURNS = {ACCENT: "Turns", DANGER: "Failed"}
_TOKENS = {ACCENT: "Turns", OK: "Reviews", WARN: "Consolidation"}
_REVIEWS = {ACCENT: "Saved", OK: "Nothing new", WARN: "Waiting", DANGER: "Failed or timed out", QUIET: _OTHERS}
_REVIEW_LINES = {
    State.SAVED: "Saved",
    State.NOTHING_TO_SAVE: "Nothing new",
    State.AWAITING_APPROVAL: "Waiting",
    State.FAILED: "Failed or timed out",
    State.TIMED_OUT: "Failed or timed out",
}
_WRITERS = {
    ACCENT: ORIGINS[WriteOrigin.TOOL][1],
    OK: ORIGINS[WriteOrigin.BACKGROUND_REVIEW][1],
    WARN: ORIGINS[WriteOrigin.CONSOLIDATION][1],
    DANGER: ORIGINS[WriteOrigin.USER][1],
    QUIET: _OTHERS,
}
_KINDS = {"injection": "Prompt injection", "secret": "Secrets", "prompt": "Copies of our prompts"}
_SCANNED = {ACCENT: "Prompt injection", OK: "Secrets", WARN: "Copies of our prompts"}

CountsByDay = Counter[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by day and kind of use, and cost by day."""

    tokens: CountsByDay = field(default_factory=Counter)
    spent: dict[date, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, word: str, day: date, tokens: float | None, cost: float) -> None:
        self.tokens[day, word] += int(tokens or 0)
        self.spent[day] += cost

    def total(self, word: str) -> int:
        return sum(number for (_, kind), number in self.tokens.items() if kind == word)


def day_charts(period: Period, money: Money) -> tuple[tuple[Chart, ...], Usage]:
    """Return the charts in page order, and the usage. Five queries, nine with a cold cache."""
    usage = Usage()
    turns, reviews, states = CountsByDay(), CountsByDay(), Counter[str]()
    for day, state, model, number, total, written in _read_by_model(period, Run, "started_at"):
        turns[day, "Turns"] += number
        turns[day, "Failed"] += number if state == Run.State.FAILED else 0
        usage.add("Turns", day, total, money.cost(model, total, written))
    for day, state, model, number, total, written in _read_by_model(period, ReviewRun, "created_at"):
        states[state] += number
        reviews[day, _REVIEW_LINES.get(state, _OTHERS)] += number
        usage.add("Reviews", day, total, money.cost(model, total, written))
    consolidated = ConsolidationRun.objects.annotate(day=day_of("created_at")).order_by().values_list("day")
    for day, number in period.read("consolidation", "created_at", consolidated.annotate(Sum("tokens"))):
        usage.tokens[day, "Consolidation"] += number
    tallies = _tallies({str(value): str(label) for value, label in State.choices}, states)
    charts = (
        _chart(period, "turns", "Turns", _TURNS, turns, "No turns"),
        _tokens_chart(period, usage, money),
        _chart(period, "reviews", "Reviews by state", _REVIEWS, reviews, "No reviews", tallies=tallies),
        _writes_chart(period),
        _scan_chart(period),
    )
    return charts, usage


def _chart(
    period: Period, name: str, title: str, lines: Mapping[str, str], numbers: CountsByDay, nothing: str, **options: Any
) -> Chart:
    """Return a chart of `numbers`; `lines` are labels by tone, `nothing` is what an empty chart says."""
    series = series_of(period.days, lines, numbers)
    return Chart(name=name, title=title, days=period.days, series=series, empty=f"{nothing} in this period.", **options)


def _read_by_model(period: Period, table: type[Run] | type[ReviewRun], column: str) -> list[Any]:
    """Return rows of day, state, model, count, total tokens and output tokens."""
    by = table._default_manager.annotate(day=day_of(column)).order_by().values_list("day", "state", "model")
    return period.read(table.__name__, column, by.annotate(Count("pk"), **token_sums()))


def _tokens_chart(period: Period, usage: Usage, money: Money) -> Chart:
    cost: dict[str, Any] = {}
    if money.known:
        cost["money"] = tuple(dollars(usage.spent[day]) for day in period.days)
        cost["note"] = f"Turns and reviews cost {dollars(sum(usage.spent.values()))}."
    return _chart(period, "tokens", "Tokens", _TOKENS, usage.tokens, "No server reported tokens", **cost)


def _writes_chart(period: Period) -> Chart:
    words = {origin: word for origin, (_, word) in ORIGINS.items()}
    drawn = set(_WRITERS.values())
    origins = Counter[str]()
    writes = CountsByDay()
    by = Revision.objects.annotate(day=day_of("created_at"), by=group_of("write_origin", CharField())).order_by()
    groups = by.values_list("day", "by").annotate(Count("pk"))
    for day, origin, number in period.read("writes", "created_at", groups):
        origins[origin] += number
        word = words.get(origin, _OTHERS)
        writes[day, word if word in drawn else _OTHERS] += number
    tallies = _tallies(words, origins)
    return _chart(period, "writes", "Writes to memory by author", _WRITERS, writes, "No writes", tallies=tallies)


def _scan_chart(period: Period) -> Chart:
    rows = ScanDay.objects.filter(day__gte=period.days[0]).order_by()
    rules = Counter[str]()
    blocks = CountsByDay()
    for day, rule, kind, number in rows.values_list("day", "rule", "kind", "number"):
        rules[rule] += number
        blocks[day, _KINDS.get(kind, kind)] += number
    tallies = _tallies({}, rules)
    return _chart(period, "scan", "Blocked writes", _SCANNED, blocks, "No blocked writes", tallies=tallies)


def _tallies(words: Mapping[str, str], counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the tallies, largest first."""
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [(words.get(name, name), number) for name, number in ordered]
