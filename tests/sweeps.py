"""The pauses between a process's searches for background work."""

from gateway import embeddings, keyword_generation
from reviews.consolidation import triggers


def look_again() -> None:
    """Let the next sweep look for work at once."""
    for throttle in (embeddings._throttle, keyword_generation._throttle, triggers._throttle):
        throttle.reset()


def forget_searches() -> None:
    """Forget what earlier searches left over, too: as in a process that never looked."""
    look_again()
    triggers._sessions_left = None
