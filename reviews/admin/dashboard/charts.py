"""The charts of the first page: lines over days, drawn by the theme's packaged Chart.js. Each line has a colour and a
dash of its own, which the key beside it shows too, and each chart has its numbers as a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.utils.formats import date_format

# Colours in their order (static/admin/daybook.css), each with a dash, for those who tell lines apart by that.
ACCENT, OK, WARN, DANGER, QUIET = "accent", "ok", "warn", "danger", "quiet"
_DASHES: dict[str, list[int]] = {ACCENT: [], OK: [8, 4], WARN: [2, 3], DANGER: [8, 3, 2, 3], QUIET: [1, 5]}


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its word, its numbers by day, and its tone."""

    word: str
    numbers: tuple[int, ...]
    tone: str

    @property
    def total(self) -> int:
        """The sum of the days."""
        return sum(self.numbers)

    @property
    def dash(self) -> str:
        """For the key: an SVG's stroke-dasharray."""
        return " ".join(str(length) for length in _DASHES[self.tone]) or "none"


@dataclass(frozen=True, slots=True)
class Tally:
    """A number with its word."""

    word: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines over the same days. `tallies`: the sum of them, told finer; `money`: one more column of the table."""

    name: str
    title: str
    days: tuple[date, ...]
    series: tuple[Series, ...]
    empty: str
    tallies: Sequence[Tally] = ()
    money: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Nothing to draw."""
        return not any(series.total for series in self.series)

    @property
    def data(self) -> str:
        """What the theme's component takes as `data`: Chart.js's JSON."""
        return json.dumps(
            {
                "labels": [date_format(day, "j M") for day in self.days],
                "datasets": [_dataset(series) for series in self.series],
            }
        )

    @property
    def options(self) -> str:
        """What it takes as `options`."""
        return _OPTIONS

    @property
    def heads(self) -> list[str]:
        """Headings of the table's columns after the day."""
        return [*(series.word for series in self.series), *(["Cost"] if self.money else [])]

    @property
    def rows(self) -> list[tuple[date, list[int], str]]:
        """The table, newest day first: day, numbers, money."""
        rows = [
            (day, [series.numbers[place] for series in self.series], self.money[place] if self.money else "")
            for place, day in enumerate(self.days)
        ]
        return rows[::-1]


def lines(
    days: Sequence[date], words: Mapping[str, str], counted: Mapping[tuple[date, str], int]
) -> tuple[Series, ...]:
    """Return a line for each of at most five words, `{tone: word}`, from numbers by day and word."""
    return tuple(Series(word, tuple(counted.get((day, word), 0) for day in days), tone) for tone, word in words.items())


def _dataset(series: Series) -> dict[str, Any]:
    colour = f"var(--db-chart-{series.tone})"
    return {
        "label": series.word,
        "data": series.numbers,
        "borderColor": colour,
        "backgroundColor": colour,
        "borderDash": _DASHES[series.tone],
        "borderWidth": 2,
        "pointRadius": 2 if len(series.numbers) <= 7 else 0,
        "pointHoverRadius": 4,
    }


_OPTIONS = json.dumps(
    {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {"legend": {"display": False}},  # its own key shows no dashes
        # The theme colours both grids, also the one that is not shown.
        "scales": {
            "x": {"grid": {"display": False}, "ticks": {"maxRotation": 0, "autoSkipPadding": 12}},
            "y": {
                "beginAtZero": True,
                "suggestedMax": 4,
                "grid": {"display": True},
                "border": {"display": False},
                "ticks": {"precision": 0, "maxTicksLimit": 6},
            },
        },
    }
)
