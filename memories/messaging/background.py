"""Messages to Redis that no request waits for: hints and jobs, sent after the commit by one thread of this process.

Messages may be lost, because database rows contain the same information: websockets poll the outbox every few seconds,
and the sweep finds jobs that never arrived. So waiting messages are dropped while Redis does not respond."""

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable

from django.conf import settings

logger = logging.getLogger("daybook.redis")
MAX_WAITING = 10_000
_QUIET_SECONDS = 30.0
_EXIT_SECONDS = 1.0


class Faults:
    """Logs faults of Redis, at most once every _QUIET_SECONDS. `_fault` says what they mean."""

    _fault = ""
    _warned_at = -_QUIET_SECONDS

    def _warn(self, error: Exception) -> None:
        if time.monotonic() - self._warned_at >= _QUIET_SECONDS:
            self._warned_at = time.monotonic()
            logger.warning(self._fault, str(error) or "no answer")


class Background(Faults):
    """A thread that runs small calls one after the other. Started at the first call, and again in a forked process."""

    _fault = "Redis does not accept hints and jobs (%s); the database is polled instead."

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def submit(self, key: Hashable, call: Callable[[], object]) -> None:
        """Queue `call`, unless a call with the same key is waiting. Never blocks, never raises. With DB_THREADS=0
        (tests) the call runs at once."""
        if not settings.DB_THREADS:
            self._guarded(call)
            return
        with self._changed:
            if key in self._waiting or len(self._waiting) >= MAX_WAITING:
                return
            self._waiting[key] = call
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def drain(self, within: float) -> bool:
        """Wait up to `within` seconds until no call is waiting or running. Return False on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, within)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, Callable[[], object]] = {}
        self._thread = None
        self._busy = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                key = next(iter(self._waiting))
                call = self._waiting.pop(key)
                self._busy = True
            if not self._guarded(call):
                with self._changed:
                    self._waiting.clear()

    def _guarded(self, call: Callable[[], object]) -> bool:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the thread must survive any error of Redis and its libraries
            self._warn(error)
            return False
        return True


redis_calls = Background("daybook-redis")
atexit.register(redis_calls.drain, _EXIT_SECONDS)
