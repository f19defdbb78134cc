"""Password hashing, limited to one hash at a time per process. A hash deliberately takes a third of a second of one
core, so many simultaneous sign-ins would otherwise slow down all conversations."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from memories.database.access import release_connection
from memories.errors import Overloaded

WAIT_SECONDS = 5.0
_one_at_a_time = threading.BoundedSemaphore(1)


@contextmanager
def hashing_slot() -> Iterator[None]:
    """Hold the process's only slot for hashing. Raises Overloaded after waiting for WAIT_SECONDS. Call it in threads,
    never on the event loop, and not in a transaction, which would keep others waiting."""
    release_connection()
    if not _one_at_a_time.acquire(timeout=WAIT_SECONDS):
        raise Overloaded("Too many people are signing in right now. Try again in a few seconds.")
    try:
        yield
    finally:
        _one_at_a_time.release()


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher within `hashing_slot`. The stored hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Raises Overloaded."""
        with hashing_slot():
            return super().encode(password, salt, iterations)
