"""Circuit breakers: a model that keeps failing gets no requests for a while. Then a single request probes it before the
others may pass again. The state is in memory, per process."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW_SECONDS = 60.0
_MIN_REQUESTS = 5  # in the window
_MAX_FAILURE_RATE = 0.5
_FIRST_REST = 5.0
_MAX_REST = 30.0
_MAX_OUTCOMES = 1000  # in memory, the newest ones


@dataclass(slots=True)
class Breaker:
    """One circuit breaker. `clock` returns seconds."""

    clock: Callable[[], float]
    _outcomes: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=_MAX_OUTCOMES))
    _until: float = 0.0  # 0: closed
    _rest: float = 0.0
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, possibly until a probe succeeds."""
        return bool(self._until)

    def seconds(self) -> float:
        """Return the seconds until a request may pass; 0 if it may pass now."""
        if not self._until:
            return 0.0
        left = self._until - self.clock()
        return max(left, 1.0) if self._probing else max(left, 0.0)

    def enter(self) -> bool:
        """Return True if this request is the probe, which must end with `leave`."""
        probe = bool(self._until) and not self._probing and self.clock() >= self._until
        self._probing = self._probing or probe
        return probe

    def begin(self) -> None:
        """Let others pass, since the probe's answer has begun. Its end still counts as the probe's outcome."""
        self._probing, self._until = False, 0.0
        self._outcomes.clear()

    def leave(self, *, ok: bool | None, probe: bool, begun: bool = False) -> None:
        """End a request. `ok` is its outcome, None if that says nothing about the server, as of a cancelled request.
        While the breaker is open only the outcome of the probe counts. `begun`: its answer had begun."""
        now = self.clock()
        if probe:
            self._end_probe(now, ok=ok, begun=begun)
            return
        if self._until or ok is None:
            return
        self._outcomes.append((now, ok))
        while self._outcomes and self._outcomes[0][0] < now - WINDOW_SECONDS:
            self._outcomes.popleft()
        if ok or len(self._outcomes) < _MIN_REQUESTS:
            return
        if sum(not succeeded for _, succeeded in self._outcomes) > len(self._outcomes) * _MAX_FAILURE_RATE:
            self._open(now)

    def _end_probe(self, now: float, *, ok: bool | None, begun: bool) -> None:
        if begun and self._until:  # other requests have opened the breaker, or hold it, since
            return
        if not begun:
            self._probing = False
        if ok is False:
            self._open(now)
        elif begun:
            self._rest = 0.0
        elif ok:
            self._outcomes.clear()
            self._until = self._rest = 0.0

    def hold(self, seconds: float) -> None:
        """Hold requests back for at least this long."""
        self._until = max(self._until, self.clock() + seconds)

    def _open(self, now: float) -> None:
        self._rest = min(max(self._rest * 2, _FIRST_REST), _MAX_REST)
        self._until = max(self._until, now + self._rest)


class Circuit:
    """The two breakers of a model. `any_fault` counts all faults and applies to requests that another model can answer;
    `connection` counts failed connections and applies to all other requests."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.any_fault, self.connection = Breaker(clock), Breaker(clock)

    def seconds(self, *, alone: bool) -> float:
        """Return the seconds until a request may pass. `alone`: no other model can answer it."""
        return (self.connection if alone else self.any_fault).seconds()

    def enter(self) -> tuple[bool, bool]:
        """Return for each breaker whether this request is its probe. It must end with `leave`."""
        return self.any_fault.enter(), self.connection.enter()

    def begin(self, probes: tuple[bool, bool]) -> None:
        """Note that the answer to a request has begun."""
        for breaker, probe in zip((self.any_fault, self.connection), probes, strict=True):
            if probe:
                breaker.begin()

    def leave(self, probes: tuple[bool, bool], *, ok: bool | None, connected: bool | None, begun: bool = False) -> None:
        self.any_fault.leave(ok=ok, probe=probes[0], begun=begun)
        self.connection.leave(ok=connected, probe=probes[1], begun=begun)
