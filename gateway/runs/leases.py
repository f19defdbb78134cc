"""Leases of open runs. The process that executes a run holds its lease, so a process that ended does not block its
sessions, and a late close is detected by its token.

With SQLite all processes are on one machine. Each locks its own file, which the kernel unlocks however the process
ends, so its end is noticed immediately. With a server database only expired leases show it."""

import os
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files import locks
from django.db import connection
from django.utils import timezone

from gateway.models import Run
from memories.clocks import CLOCK_SKEW
from memories.ids import uuid7

LEASE = timedelta(seconds=30)  # time without renewal after which a run counts as left behind
_FOLDER = "processes"
_current: tuple[int, UUID] | None = None  # (process id, name); a forked child needs another name


def save_and_renew(tokens: Collection[UUID], texts: Mapping[UUID, str], *, renew: bool) -> dict[UUID, bool]:
    """Save the changed texts of the runs that this process executes (`texts` by lease token) in one statement and, with
    `renew`, extend their leases in another. `tokens` are those of all of these runs. Return the open ones by lease
    token, each with whether a stop was requested.

    A run of this process that is not among them could not be closed: its lease ends."""
    if texts:
        _store(texts)
    own = Run.objects.filter(state=Run.State.RUNNING, lease_token__in=tokens)
    if renew:
        own.update(lease_expires_at=lease_end())
    rows = own.values_list("lease_token", "stop_requested")
    return {token: stop_requested for token, stop_requested in rows if token}


def limit_leases(now: datetime) -> None:
    """Let leases that were taken while a clock was ahead end at most LEASE from now. The process of a live run renews
    its lease before."""
    ahead = Run.objects.filter(state=Run.State.RUNNING, lease_expires_at__gt=now + LEASE + CLOCK_SKEW)
    ahead.update(lease_expires_at=now + LEASE)


def _store(texts: Mapping[UUID, str]) -> None:
    # A table of values, since the ORM's CASE … WHEN is evaluated row by row and takes ten times as long.
    token_value = Run._meta.get_field("lease_token").get_db_prep_value
    values = [value for token, text in texts.items() for value in (token_value(token, connection), text)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH changed(token, text) AS (VALUES {', '.join(['(%s, %s)'] * len(texts))}) "  # noqa: S608 - no value in it
            "UPDATE gateway_run SET text = changed.text FROM changed "
            "WHERE gateway_run.lease_token = changed.token AND gateway_run.state = 'running'",
            values,
        )


def reopen(run: Run) -> bool:
    """Resume a run that waits for client tools. Return False if another request was first."""
    run.lease_token, run.lease_expires_at, run.holder = uuid7(), lease_end(), this_process()
    lease = {name: getattr(run, name) for name in ("lease_token", "lease_expires_at", "holder")}
    waiting = Run.objects.filter(pk=run.pk, state=Run.State.AWAITING_CLIENT_TOOLS)
    return waiting.update(state=Run.State.RUNNING, stop_requested=False, **lease) == 1


def lease_end() -> datetime:
    """Return the end of a lease that is taken or renewed now."""
    return timezone.now() + LEASE


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
