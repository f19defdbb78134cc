"""Circuit breakers: a model that fails again and again is left alone for a while. One request then probes it before it
gets the others again. The state is in memory, per process."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW_SECONDS = 60.0
LEAST_CALLS = 5
_SHARE = 0.5
_FIRST_REST = 5.0
_LONGEST_REST = 30.0
_MOST_KEPT = 1000  # outcomes that are kept of a window: the newest


@dataclass(slots=True)
class Breaker:
    """One circuit breaker. `clock` returns seconds."""

    clock: Callable[[], float]
    _outcomes: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _until: float = 0.0  # 0: closed
    _rest: float = 0.0
    _probing: bool = False

    @property
    def is_open(self) -> bool:
        """Whether requests are held back, or wait for a probe."""
        return bool(self._until)

    def seconds(self) -> float:
        """Return the seconds until a request may pass; 0 if it may pass now."""
        if not self._until:
            return 0.0
        left = self._until - self.clock()
        return max(left, 1.0) if self._probing else max(left, 0.0)

    def enter(self) -> bool:
        """Return True if this request is the probe, which must end with `ended` or `left`."""
        probe = bool(self._until) and not self._probing and self.clock() >= self._until
        self._probing = self._probing or probe
        return probe

    def left(self, *, probe: bool) -> None:
        """Note that a request ended without telling anything about the server: it was cancelled or refused."""
        if probe:
            self._probing = False

    def ended(self, *, well: bool, probe: bool) -> None:
        """Note how a request ended. While the breaker is open, requests that began before it opened do not count."""
        now = self.clock()
        if probe:
            self._probing = False
            if well:
                self._outcomes.clear()
                self._until = self._rest = 0.0
            else:
                self._open(now)
            return
        if self._until:
            return
        self._outcomes.append((now, well))
        while self._outcomes and self._outcomes[0][0] < now - WINDOW_SECONDS:
            self._outcomes.popleft()
        if well or len(self._outcomes) < LEAST_CALLS:
            return
        if sum(not fine for _, fine in self._outcomes) > len(self._outcomes) * _SHARE:
            self._open(now)

    def rest(self, seconds: float) -> None:
        """Hold requests back for as many seconds as the server asked for."""
        self._until = max(self._until, self.clock() + seconds)

    def _open(self, now: float) -> None:
        self._rest = min(max(self._rest * 2, _FIRST_REST), _LONGEST_REST)
        self._until = max(self._until, now + self._rest)


@dataclass(slots=True)
class Circuit:
    """The two breakers of a model: one counts all faults and holds for requests that another model can answer; the
    other counts failed connections and holds for all other requests."""

    any_fault: Breaker
    connection: Breaker

    @classmethod
    def of(cls, clock: Callable[[], float]) -> "Circuit":
        """Return a closed circuit."""
        return cls(Breaker(clock), Breaker(clock))

    def seconds(self, *, alone: bool) -> float:
        """Return the seconds until a request may pass. `alone` means that no other model can answer it."""
        return (self.connection if alone else self.any_fault).seconds()

    def enter(self) -> tuple[bool, bool]:
        """Return the breakers that this request probes; it must end with `ended` or `left`."""
        return self.any_fault.enter(), self.connection.enter()

    def left(self, probes: tuple[bool, bool]) -> None:
        """Note that a request ended without telling anything about the server."""
        self.any_fault.left(probe=probes[0])
        self.connection.left(probe=probes[1])

    def ended(self, probes: tuple[bool, bool], *, well: bool, connected: bool) -> None:
        """Note how a request ended."""
        self.any_fault.ended(well=well, probe=probes[0])
        self.connection.ended(well=connected, probe=probes[1])
