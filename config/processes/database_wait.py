"""What a process says while it waits for the database: what it waits for and what to do, at once and then once a minute
at most."""

import logging
from collections.abc import Callable

from django.db import DatabaseError, close_old_connections

from config.health import database_problem, unusable_reason
from gateway.jobs import Throttle

logger = logging.getLogger("daybook.database")
_CHECK_SECONDS = 1.0
_LINE_SECONDS = 60.0


class DatabaseWait:
    """The waiting of one process; `process` is the subject of its lines."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._waiting = False
        self._lines = Throttle()

    def check(self) -> bool:
        """Return True if the database can be used; otherwise say why not."""
        if reason := unusable_reason():
            self._wait(reason)
        else:
            self.over()
        return not reason

    def until_usable(self, pause: Callable[[float], bool]) -> bool:
        """Check the database every second until it can be used, and return True; return False as soon as `pause`, which
        waits that many seconds, returns True."""
        while not self.check():
            if pause(_CHECK_SECONDS):
                return False
            close_old_connections()  # replaces one that has ended meanwhile
        return True

    def because(self, error: DatabaseError) -> bool:
        """Return True if the process has to wait, since the error means that the database cannot be used."""
        if reason := database_problem(error):
            self._wait(reason)
        return bool(reason)

    def over(self) -> None:
        """Say that the process works again, if it has waited."""
        if self._waiting:
            logger.info("%s waits no longer: the database can be used.", self._process)
        self._waiting = False

    def _wait(self, reason: str) -> None:
        self._waiting = True
        if self._lines.check(pause=_LINE_SECONDS):
            logger.warning("%s waits for the database: %s", self._process, reason)
