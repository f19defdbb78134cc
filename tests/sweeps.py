"""Reset the throttles that limit how often a process looks for background work."""

from gateway import embeddings, keyword_generation, sweep
from reviews.consolidation import triggers


def reset_sweep_throttles() -> None:
    """Let the next sweep look for work immediately."""
    for throttle in (embeddings._throttle, keyword_generation._throttle, sweep._clearing, triggers._throttle):
        throttle.reset()


def forget_sweep_state() -> None:
    """Restore the state of a process that has not looked for work yet."""
    reset_sweep_throttles()
    triggers._sessions_left = None
