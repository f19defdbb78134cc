"""Containment of errors in recall: a part that fails contributes nothing, and the turn continues."""

import logging
import traceback
from types import TracebackType
from typing import Any

from memories.counters import recall_lanes

logger = logging.getLogger("daybook.recall")


class contained:
    """Suppress errors of the block and note them in the run's trace under `name`, the metrics and the log."""

    __slots__ = ("_name", "_trace")

    def __init__(self, name: str, trace: dict[str, Any]) -> None:
        self._name = name
        self._trace = trace

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        note(self._name, "failed", self._trace, kind=type(error).__name__)  # memory never breaks a turn
        log_failure(self._name, error)
        return True


def log_failure(name: str, error: Exception) -> None:
    """Log the type and place of an error in recall, but not its message, which may quote people's text."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-3:]]
    logger.error("recall: %s failed with %s at %s", name, type(error).__name__, " > ".join(places))


def note(name: str, state: str, trace: dict[str, Any], **more: str) -> None:
    """Note the state of a part in the run's trace and the metrics."""
    trace[name] = {"state": state, **more}
    recall_lanes[name, state] += 1
