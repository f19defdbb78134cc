"""The process that executes runs, as their rows name it, and whether it is still alive.

With SQLite all processes are on one machine. Each locks a file of its own, which the kernel unlocks however the process
ends, so its end is noticed at once. With a server database only leases tell."""

import fcntl
import os
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import connection

from memories.ids import uuid7

_FOLDER = "processes"
_mine: tuple[int, UUID] | None = None  # (process id, its name): a forked child is another process


def this_process() -> UUID:
    """Return the name of this process, which stays the same as long as it lives."""
    global _mine
    if _mine is None or _mine[0] != os.getpid():
        name = uuid7()
        if connection.vendor == "sqlite":
            _hold(_file(name))
        _mine = os.getpid(), name
    return _mine[1]


def is_gone(name: UUID | None) -> bool:
    """Return True if a process is known to have ended; False if only its leases can tell."""
    if name is None or connection.vendor != "sqlite" or (_mine is not None and name == _mine[1]):
        return False
    try:
        file = os.open(_file(name), os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        _file(name).unlink(missing_ok=True)
        return True
    finally:
        os.close(file)


def forget_gone() -> None:
    """Delete the files of processes that have ended."""
    if connection.vendor == "sqlite":
        for file in (Path(settings.DAYBOOK_HOME) / _FOLDER).glob("*.lock"):
            is_gone(UUID(file.stem))


def _hold(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_suffix(".new")  # under its own name it is never seen without its lock
    # Never closed: the lock is given back when the process ends.
    fcntl.flock(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), fcntl.LOCK_EX)
    new.rename(path)


def _file(name: UUID) -> Path:
    return Path(settings.DAYBOOK_HOME) / _FOLDER / f"{name}.lock"
