"""Reset the throttles that limit how often a process looks for background work, and let time pass for it."""

from datetime import timedelta

import time_machine

from gateway import embeddings, keyword_generation, sweep
from memories import clocks
from reviews.consolidation import triggers


def reset_sweep_throttles() -> None:
    """Let the next sweep look for work immediately."""
    for throttle in (embeddings._throttle, keyword_generation._throttle, sweep._clearing, triggers._throttle):
        throttle.reset()


def forget_sweep_state() -> None:
    """Restore the state of a process that has not looked for work yet."""
    reset_sweep_throttles()
    triggers._sessions_left = None


def pass_time(clock: time_machine.Traveller, time: timedelta) -> None:
    """Let time pass on both clocks; `clock.shift` alone would set the clock forward."""
    clock.shift(time)
    clocks._difference += time.total_seconds()
    clocks._set_forward_at -= time.total_seconds()
