"""Names the process that executes a run (`Run.holder`), and checks whether it is still alive.

With SQLite all processes are on one machine. Each locks its own file, which the kernel unlocks however the process
ends, so its end is noticed immediately. With a server database only expired leases show it."""

import os
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files import locks
from django.db import connection

from memories.ids import uuid7

_FOLDER = "processes"
_current: tuple[int, UUID] | None = None  # (process id, name); a forked child needs another name


def this_process() -> UUID:
    """Return the name of this process, which stays the same for its lifetime."""
    global _current
    if _current is None or _current[0] != os.getpid():
        name = uuid7()
        if connection.vendor == "sqlite":
            _lock(_file(name))
        _current = os.getpid(), name
    return _current[1]


def has_ended(name: UUID | None) -> bool:
    """Return True if a process is known to have ended; always False with a server database."""
    if name is None or connection.vendor != "sqlite" or (_current is not None and name == _current[1]):
        return False
    try:
        file = os.open(_file(name), os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        if ended := locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
            _file(name).unlink(missing_ok=True)
        return ended
    finally:
        os.close(file)


def delete_ended() -> None:
    """Delete the lock files of processes that have ended."""
    if connection.vendor == "sqlite":
        for file in (Path(settings.DAYBOOK_HOME) / _FOLDER).glob("*.lock"):
            has_ended(UUID(file.stem))


def _lock(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_suffix(".new")  # renamed once it is locked, so that it is never seen unlocked
    # Never closed: the kernel releases the lock when the process ends.
    locks.lock(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), locks.LOCK_EX)
    new.rename(path)


def _file(name: UUID) -> Path:
    return Path(settings.DAYBOOK_HOME) / _FOLDER / f"{name}.lock"
