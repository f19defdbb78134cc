"""The numbers of each day: turns, tokens, reviews, writes, refusals. One query for each kind of row, over a stretch of
keys; as many groups come back as there are days, states and models."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.db.models import Count, Sum

from gateway.models import Run
from memories.admin.marks import ORIGINS
from memories.models import Revision, ScanDay, WriteOrigin
from reviews.admin.dashboard.charts import ACCENT, DANGER, OK, QUIET, WARN, Chart, Tally, lines
from reviews.admin.dashboard.money import Money, Tokens, dollars, token_sums
from reviews.admin.dashboard.periods import Period, day_of
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
_KINDS = {"injection": "Orders", "secret": "Secrets", "prompt": "Copies of our prompts"}
_SCANNED = {ACCENT: "Orders", OK: "Secrets", WARN: "Copies of our prompts"}

ByDay = Counter[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens by day and kind of use, and money by day."""

    tokens: ByDay = field(default_factory=Counter)
    spent: dict[date, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, row: Mapping[str, Any], word: str, money: Money) -> None:
        """A group of rows of one day and model."""
        taken = Tokens.of(row)
        self.tokens[row["day"], word] += taken.total
        self.spent[row["day"]] += money.cost(row["model"], taken)

    def total(self, word: str) -> int:
        """All tokens of one kind of use."""
        return sum(number for (_, kind), number in self.tokens.items() if kind == word)


def day_charts(period: Period, money: Money) -> tuple[tuple[Chart, ...], Used]:
    """The charts in the order of the page, and what was used. Five queries."""
    used = Used()
    turns, reviews, states = ByDay(), ByDay(), Counter[str]()
    for row in _of_runs(period):
        turns[row["day"], "Turns"] += row["number"]
        turns[row["day"], "Failed"] += row["number"] if row["state"] == Run.State.FAILED else 0
        used.add(row, "Turns", money)
    for row in _of_reviews(period):
        states[row["state"]] += row["number"]
        reviews[row["day"], _REVIEW_LINES.get(row["state"], _OTHERS)] += row["number"]
        used.add(row, "Reviews", money)
    for day, taken in _of_consolidation(period):
        used.tokens[day, "Consolidation"] += taken
    charts = (
        _turns_chart(period, turns),
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


def _of_runs(period: Period) -> Iterable[Mapping[str, Any]]:
    rows = Run.objects.filter(pk__gte=period.first_id, started_at__gte=period.since)
    by = rows.annotate(day=day_of("started_at")).values("day", "state", "model")
    return by.annotate(number=Count("pk"), **token_sums()).order_by()


def _of_reviews(period: Period) -> Iterable[Mapping[str, Any]]:
    rows = ReviewRun.objects.filter(pk__gte=period.first_id, created_at__gte=period.since)
    by = rows.annotate(day=day_of("created_at")).values("day", "state", "model")
    return by.annotate(number=Count("pk"), **token_sums()).order_by()


def _of_consolidation(period: Period) -> Iterable[tuple[date, int]]:
    rows = ConsolidationRun.objects.filter(pk__gte=period.first_id, created_at__gte=period.since)
    return rows.annotate(day=day_of("created_at")).order_by().values_list("day").annotate(Sum("tokens"))


def _turns_chart(period: Period, turns: ByDay) -> Chart:
    return Chart(
        name="turns",
        title="Turns",
        days=period.days,
        series=lines(period.days, _TURNS, turns),
        empty="Nobody talked to an agent in these days.",
    )


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
    rows = Revision.objects.filter(pk__gte=period.first_id, created_at__gte=period.since)
    by = rows.annotate(day=day_of("created_at")).order_by().values_list("day", "write_origin")
    words = {origin: word for origin, (_, word) in ORIGINS.items()}
    drawn = set(_WRITERS.values())
    origins = Counter[str]()
    writes = ByDay()
    for day, origin, number in by.annotate(Count("pk")):
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
        title="Writes that the scan refused",
        days=period.days,
        series=lines(period.days, _SCANNED, blocks),
        tallies=_tallies({}, rules),
        empty="The scan refused no write in these days.",
    )


def _tallies(words: Mapping[str, str], counted: Mapping[str, int]) -> list[Tally]:
    """Most first."""
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [Tally(words.get(name, name), number) for name, number in ordered]
