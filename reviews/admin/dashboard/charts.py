"""Line charts over days, drawn as SVG in templates/admin/dashboard/chart.html. Each line has its own colour and dash
pattern, explained in a legend, and each chart has its numbers as a table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format

# Colours in order (static/admin/daybook.css), each with a dash pattern for people who cannot tell colours apart.
ACCENT, OK, WARN, DANGER, QUIET = "accent", "ok", "warn", "danger", "quiet"
_DASHES = {ACCENT: "none", OK: "8 4", WARN: "2 3", DANGER: "8 3 2 3", QUIET: "1 5"}
_MIN_TOP, _MAX_STEPS, _MAX_NAMED_DAYS = 4, 5, 5  # lowest maximum of the scale, grid lines, days with labels


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: its label, numbers by day, and tone."""

    word: str
    numbers: tuple[int, ...]
    tone: str

    @property
    def total(self) -> int:
        return sum(self.numbers)

    @property
    def dash(self) -> str:
        """The SVG stroke-dasharray."""
        return _DASHES[self.tone]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines over the same days. `tallies` are totals by finer categories; `money` is an extra column of the table."""

    name: str
    title: str
    days: tuple[date, ...]
    series: tuple[Series, ...]
    empty: str
    tallies: Sequence[tuple[str, int]] = ()
    money: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_empty(self) -> bool:
        return not any(series.total for series in self.series)

    @property
    def step(self) -> int:
        """The distance between grid lines: 1, 2 or 5 times a power of ten."""
        least = max(_MIN_TOP, *(number for series in self.series for number in series.numbers)) / _MAX_STEPS
        power: int = 10 ** math.floor(math.log10(max(1, least)))
        return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least)

    @property
    def scale(self) -> list[tuple[int, float]]:
        """The grid lines from the bottom: number, and distance from the top in percent."""
        highest = max(_MIN_TOP, *(number for series in self.series for number in series.numbers))
        steps = math.ceil(highest / self.step)
        return [(self.step * step, round(100 - 100 * step / steps, 2)) for step in range(steps + 1)]

    @property
    def named_days(self) -> list[tuple[str, float]]:
        """At most five labelled days, including the last one: day, and distance from the left in percent."""
        last = len(self.days) - 1
        places = range(last, -1, -math.ceil(len(self.days) / _MAX_NAMED_DAYS))
        return [(date_format(self.days[place], "j M"), round(100 * place / max(1, last), 2)) for place in places]

    @property
    def lines(self) -> list[tuple[Series, str]]:
        """Each series with its points, `x,y` by day, in percent from the upper left."""
        top, last = self.scale[-1][0], max(1, len(self.days) - 1)
        return [
            (
                series,
                " ".join(
                    f"{100 * day / last:.2f},{100 - 100 * number / top:.2f}"
                    for day, number in enumerate(series.numbers)
                ),
            )
            for series in self.series
        ]

    @property
    def bands(self) -> list[tuple[float, float, str]]:
        """The hover areas by day: left and width in percent, and the day's numbers as text."""
        width = 100 / max(1, len(self.days) - 1)
        return [
            (
                round((place - 0.5) * width, 2),
                round(width, 2),
                "\n".join(
                    [date_format(day, "j M"), *(f"{series.word}: {series.numbers[place]:,}" for series in self.series)]
                ),
            )
            for place, day in enumerate(self.days)
        ]

    @property
    def heads(self) -> list[str]:
        """The headings of the table's columns after the day."""
        return [*(series.word for series in self.series), *(["Cost"] if self.money else [])]

    @property
    def rows(self) -> list[tuple[date, list[int], str]]:
        """The rows of the table, newest day first: day, numbers, money."""
        rows = [
            (day, [series.numbers[place] for series in self.series], self.money[place] if self.money else "")
            for place, day in enumerate(self.days)
        ]
        return rows[::-1]


def series_of(
    days: Sequence[date], words: Mapping[str, str], counted: Mapping[tuple[date, str], int]
) -> tuple[Series, ...]:
    """Return a line for each of at most five labels, `{tone: label}`, from numbers by day and label."""
    return tuple(Series(word, tuple(counted.get((day, word), 0) for day in days), tone) for tone, word in words.items())
