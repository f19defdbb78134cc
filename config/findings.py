"""What `doctor` finds."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `text` never contains a key or a password."""

    check: str
    level: Level
    text: str
