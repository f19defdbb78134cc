"""The numbers of each day: turns, tokens, reviews, writes, refusals. One query for each kind of row, over a stretch of
keys; as many groups come back as there are days, states and models."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.db.models import CharField, Count, Q, Sum

from gateway.limits.money import Money, Tokens, dollars, token_sums
from gateway.models import Run
from memories.admin.badges import ORIGINS
from memories.models import Revision, ScanDay, WriteOrigin
from reviews.admin.dashboard.charts import ACCENT, DANGER, OK, QUIET, WARN, Chart, lines
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
    tone: ORIGINS[origin][1]
    for tone, origin in (
        (ACCENT, WriteOrigin.TOOL),
        (OK, WriteOrigin.BACKGROUND_REVIEW),
        (WARN, WriteOrigin.CONSOLIDATION),
        (DANGER, WriteOrigin.USER),
    )
} | {QUIET: _OTHERS}
_KINDS = {"injection": "Prompt injection", "secret": "Secrets", "prompt": "Copies of our prompts"}
_SCANNED = {ACCENT: "Prompt injection", OK: "Secrets", WARN: "Copies of our prompts"}

ByDay = Counter[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens by day and kind of use, and money by day."""

    tokens: ByDay = field(default_factory=Counter)
    spent: dict[date, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, word: str, day: date, taken: Tokens, cost: float) -> None:
        """Add what a model took on a day."""
        self.tokens[day, word] += taken.total
        self.spent[day] += cost

    def total(self, word: str) -> int:
        return sum(number for (_, kind), number in self.tokens.items() if kind == word)


def day_charts(period: Period, money: Money) -> tuple[tuple[Chart, ...], Used]:
    """Return the charts in the order of the page, and what was used. Five queries, nine of a cold process."""
    used = Used()
    turns, reviews, states = ByDay(), ByDay(), Counter[str]()
    for day, state, model, number, total, written in _by_model(period, Run, "started_at"):
        turns[day, "Turns"] += number
        turns[day, "Failed"] += number if state == Run.State.FAILED else 0
        taken = Tokens.of(total, written)
        used.add("Turns", day, taken, money.cost(model, taken))
    for day, state, model, number, total, written in _by_model(period, ReviewRun, "created_at"):
        states[state] += number
        reviews[day, _REVIEW_LINES.get(state, _OTHERS)] += number
        taken = Tokens.of(total, written)
        used.add("Reviews", day, taken, money.cost(model, taken))
    for day, tokens in period.read("consolidation", "created_at", _of_consolidation):
        used.tokens[day, "Consolidation"] += tokens
    charts = (
        Chart(
            name="turns",
            title="Turns",
            days=period.days,
            series=lines(period.days, _TURNS, turns),
            empty="Nobody talked to an agent in these days.",
        ),
        _tokens_chart(period, used, money),
        Chart(
            name="reviews",
            title="Reviews by state",
            days=period.days,
            series=lines(period.days, _REVIEWS, reviews),
            tallies=_tallies({str(value): str(label) for value, label in State.choices}, states),
            empty="No review was scheduled in these days.",
        ),
        _writes_chart(period),
        _scan_chart(period),
    )
    return charts, used


def _by_model(period: Period, table: type[Run] | type[ReviewRun], column: str) -> list[Any]:
    """Return rows of day, state, model, how many, their tokens, and the written ones of these."""

    def groups(rows: Q) -> Iterable[tuple[Any, ...]]:
        by = table._default_manager.filter(rows).annotate(day=day_of(column)).order_by()
        return by.values_list("day", "state", "model").annotate(Count("pk"), **token_sums())

    return period.read(table.__name__, column, groups)


def _of_consolidation(rows: Q) -> Iterable[tuple[Any, ...]]:
    by = ConsolidationRun.objects.filter(rows).annotate(day=day_of("created_at")).order_by()
    return by.values_list("day").annotate(Sum("tokens"))


def _of_revisions(rows: Q) -> Iterable[tuple[Any, ...]]:
    by = Revision.objects.filter(rows).annotate(day=day_of("created_at"), by=group_of("write_origin", CharField()))
    return by.order_by().values_list("day", "by").annotate(Count("pk"))


def _tokens_chart(period: Period, used: Used, money: Money) -> Chart:
    return Chart(
        name="tokens",
        title="Tokens",
        days=period.days,
        series=lines(period.days, _TOKENS, used.tokens),
        money=tuple(dollars(used.spent[day]) for day in period.days) if money.known else (),
        note=f"Turns and reviews cost {dollars(sum(used.spent.values()))}." if money.known else "",
        empty="No model was asked in these days.",
    )


def _writes_chart(period: Period) -> Chart:
    words = {origin: word for origin, (_, word) in ORIGINS.items()}
    drawn = set(_WRITERS.values())
    origins = Counter[str]()
    writes = ByDay()
    for day, origin, number in period.read("writes", "created_at", _of_revisions):
        origins[origin] += number
        word = words.get(origin, _OTHERS)
        writes[day, word if word in drawn else _OTHERS] += number
    return Chart(
        name="writes",
        title="Writes to memory, by whom",
        days=period.days,
        series=lines(period.days, _WRITERS, writes),
        tallies=_tallies(words, origins),
        empty="Nothing was written in these days.",
    )


def _scan_chart(period: Period) -> Chart:
    rows = ScanDay.objects.filter(day__gte=period.days[0]).order_by()
    rules = Counter[str]()
    blocks = ByDay()
    for day, rule, kind, number in rows.values_list("day", "rule", "kind", "number"):
        rules[rule] += number
        blocks[day, _KINDS.get(kind, kind)] += number
    return Chart(
        name="scan",
        title="Blocked writes",
        days=period.days,
        series=lines(period.days, _SCANNED, blocks),
        tallies=_tallies({}, rules),
        empty="No write was blocked in these days.",
    )


def _tallies(words: Mapping[str, str], counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the tallies, largest first."""
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [(words.get(name, name), number) for name, number in ordered]
