"""Time expressions: whether a message asks for a time, whether an entry states one, and the dates a message names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

_MONTH_NAMES: Final = (
    "january januar janvier enero janeiro gennaio januari января январь январе",
    "february februar février febrero fevereiro febbraio februari февраля февраль феврале",
    "march märz mars marzo março maart марта март марте",
    "april avril abril aprile апреля апрель апреле",
    "may mai mayo maio maggio mei мая май мае",
    "june juni juin junio junho giugno июня июнь июне",
    "july juli juillet julio julho luglio июля июль июле",
    "august août agosto augustus августа август августе",
    "september septembre septiembre setembro settembre сентября сентябрь сентябре",
    "october oktober octobre octubre outubro ottobre октября октябрь октябре",
    "november novembre noviembre novembro ноября ноябрь ноябре",
    "december dezember décembre diciembre dezembro dicembre декабря декабрь декабре",
)
_MONTHS: Final = {name: at + 1 for at, names in enumerate(_MONTH_NAMES) for name in names.split()}
_ALSO_WORDS: Final = ("may", "mai", "mars", "mei", "march")
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.|er)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W\d_]+")
_ISO: Final = re.compile(r"\b(?P<year>(?:19|20)\d\d)[-/](?P<month>[01]?\d)(?:[-/](?P<day>[0-3]?\d))?\b")
_DOTTED: Final = re.compile(r"\b(?P<day>[0-3]?\d)\.(?P<month>[01]?\d)\.(?P<year>(?:19|20)\d\d)\b")
_CHINESE: Final = re.compile(r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>[01]?\d)月(?:(?P<day>[0-3]?\d)[日号])?")
_DAY_FIRST: Final = re.compile(
    rf"\b(?:{_DAY}\s+(?:of\s+|de\s+)?)?(?P<name>{_MONTH})\b(?:,?\s+(?:de\s+)?{_YEAR})?", re.IGNORECASE
)
_MONTH_FIRST: Final = re.compile(rf"\b(?P<name>{_MONTH})\s+{_DAY}\b(?!\d)(?:,?\s+{_YEAR})?", re.IGNORECASE)

_ASKS_WHEN: Final = re.compile(
    r"^\W*(?:(?:and|so|since|until|by|on|in)\s+)?(?:when|what\s+(?:date|day|month|year|time)|how\s+long)\b"
    r"|\b(?:how\s+long|wann|wie\s+lange|quand|cuándo|quando|когда|как\s+долго)\b"
    r"|什么时候|几点|何时|多久|چه\s+زمانی|چه\s+وقت",
    re.IGNORECASE,
)
_SAYS_WHEN: Final = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|recently|this\s+(?:week|month|year|morning|summer|"
    r"fall|autumn|winter|spring)|weekends?|days?|weeks?|months?|years?|since|just|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"gestern|heute|morgen|letzte\w*|nächste\w*|vor|seit|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|"
    r"hier|demain|dernier\w*|prochaine?|depuis|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"ayer|mañana|pasad[oa]|próxim[oa]|desde|hace|lunes|martes|miércoles|jueves|viernes|sábado|domingo|"
    r"вчера|сегодня|завтра|прошл\w+|следующ\w+|назад|понедельник\w*|вторник\w*|сред[уаы]|четверг\w*|"
    r"пятниц\w+|суббот\w+|воскресен\w+|"
    r"دیروز|امروز|فردا|پیش|گذشته|آینده|شنبه)\b"
    rf"|\b(?:{_MONTH})\b|\d|[一二三四五六七八九十][月日点]|昨天|今天|明天|上周|下周|去年|明年|星期|周[一二三四五六日]"
)


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A day or a month that a message names; parts that it leaves open are None."""

    year: int | None
    month: int
    day: int | None


def asks_when(text: str) -> bool:
    """Return True if the message asks for a time."""
    return bool(_ASKS_WHEN.search(text))


def says_when(text: str) -> bool:
    """Return True if the text has words or numbers that denote a time."""
    return bool(_SAYS_WHEN.search(text.lower()))


def named_times(text: str) -> tuple[NamedTime, ...]:
    """Return the days and months that the text names, without repeats.

    Invalid dates are left out. "may" counts as a month only next to a day or a year, or capitalised inside a sentence.
    """
    found: dict[NamedTime, None] = {}
    patterns = (_ISO, _DOTTED, _CHINESE) if _DIGIT.search(text) else ()
    if not _MONTHS.keys().isdisjoint(_WORD.findall(text.casefold())):
        patterns = (*patterns, _MONTH_FIRST, _DAY_FIRST)
    for pattern in patterns:
        for match in pattern.finditer(text):
            named = _named(match)
            if named is not None and not any(_covers(known, named) for known in found):
                found[named] = None
    return tuple(found)


def _named(match: re.Match[str]) -> NamedTime | None:
    parts = match.groupdict()
    name = parts.get("name")
    # Case-insensitive matching accepts "JULİ" as "juli"; folding does not.
    month = _MONTHS.get(name.casefold(), 0) if name else int(parts["month"])
    day = int(parts["day"]) if parts.get("day") else None
    year = int(parts["year"]) if parts.get("year") else None
    is_lone_word = name is not None and name.casefold() in _ALSO_WORDS and day is None and year is None
    if is_lone_word and not (match.group("name")[0].isupper() and match.start() > 0):
        return None
    try:
        date(year or 2000, month, 1 if day is None else day)
    except ValueError:
        return None
    return NamedTime(year, month, day)


def _covers(known: NamedTime, other: NamedTime) -> bool:
    return (
        known.month == other.month
        and (other.day is None or known.day == other.day)
        and (other.year is None or known.year == other.year)
    )
