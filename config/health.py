"""/healthz: this process is alive. /readyz: chats and reviews work. Both are public and reveal nothing about the
data."""

import asyncio
import logging
import shutil

from django.conf import settings
from django.db import DatabaseError, Error, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse

from config.databases import unusable_database
from gateway import heartbeat
from gateway.upstream import is_demo
from memories.database.access import disk_full_recently, in_read_thread
from memories.messaging.redis_clients import redis_answers

logger = logging.getLogger("daybook.health")
_DATABASE_SECONDS = 5.0
# With less, a write may fail at any time: SQLite's write-ahead log alone grows to some megabytes.
MIN_FREE_BYTES = 20_000_000
_NO_REDIS = "Redis does not answer: chats work, reviews and notifications are delayed"
_NO_STORE = {"Cache-Control": "no-store"}
_migrated = False


async def healthz(request: HttpRequest) -> JsonResponse:
    """Always return 200 and `{"status": "ok"}`."""
    return JsonResponse({"status": "ok"}, headers=_NO_STORE)


async def readyz(request: HttpRequest) -> JsonResponse:
    """Return 200 and `{"status": "ready", "model": "demo" or "upstream", "reasons": []}`, or 503 and status "unready".

    If only Redis does not answer, that is listed as a reason but the status remains ready: otherwise a load balancer
    would take out all web servers at once, only because hints and jobs are late."""
    try:
        async with asyncio.timeout(_DATABASE_SECONDS):
            reasons = await in_read_thread(unready_reasons)
    except (TimeoutError, Error):
        reasons = [f"the database does not answer within {_DATABASE_SECONDS:.0f} s"]
    warnings = [] if not settings.REDIS_URL or await redis_answers() else [_NO_REDIS]
    response = JsonResponse(
        {"status": "unready" if reasons else "ready", "model": model_kind(), "reasons": [*reasons, *warnings]},
        status=503 if reasons else 200,
        headers=_NO_STORE,
    )
    # Otherwise Django would log each 503 as an error, and load balancers ask every second.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def unready_reasons() -> list[str]:
    """Return why this installation is not ready, for operators; empty if it is. Queries the database."""
    if full := _full_disk():
        return [full]
    try:
        if pending_migrations():
            return ["migrations are pending"]
        if not heartbeat.alive():
            return [f"no heartbeat of a worker for {heartbeat.stale_after().total_seconds():.0f} s"]
    except Error:
        logger.warning("The database does not answer.", exc_info=True)
        return ["the database does not answer"]
    return []


def _full_disk() -> str:
    """Return why nothing can be stored, or "" if there is enough space."""
    if disk_full_recently():
        return "the disk of the database is full: a write failed within the last minute"
    try:
        free = shutil.disk_usage(settings.DAYBOOK_HOME).free
    except OSError as error:
        return f"DAYBOOK_HOME cannot be read ({error.strerror})"
    return f"the disk of DAYBOOK_HOME has {free // 1_000_000} MB left" if free < MIN_FREE_BYTES else ""


def pending_migrations() -> list[str]:
    """Return the migrations that the database lacks, as `app.name`. Once there are none, the database is not queried
    again, since a running process cannot get new ones."""
    global _migrated
    if _migrated:
        return []
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    _migrated = not plan
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def newer_version() -> str:
    """Return that a newer version of Daybook has migrated the database, and what to do, or "" if none has. Migrations
    of earlier versions that no longer exist do not count: their numbers are not above those of this version."""
    loader = MigrationLoader(connection)
    last: dict[str, str] = {}
    for app, name in loader.disk_migrations:
        last[app] = max(last.get(app, ""), name)
    newer = sorted(f"{app}.{name}" for app, name in loader.applied_migrations if name > last.get(app, name))
    if not newer:
        return ""
    advice = "Start that version, or restore a copy from before the upgrade."
    return f"this database is of a newer version, which has the migration {newer[-1]}. {advice}"


def unusable_reason() -> str:
    """Return why the database cannot be used and what to do about it, in one line; "" if it can be used."""
    try:
        if not connection.introspection.table_names():
            return "this database is still empty. Run `python manage.py up` (or `prepare`) first."
        if newer := newer_version():
            return newer
        if pending_migrations():
            why = "this database is of an older version, or another command is migrating it."
            return f"{why} Run `python manage.py up` (or `prepare`) first."
    except DatabaseError as error:
        return unusable_database(error)
    return ""


def database_problem(error: DatabaseError) -> str:
    """Return what an operator can do about a database error, or "" if it is a defect of the code."""
    return unusable_reason() or (unusable_database(error) if isinstance(error, OperationalError) else "")


def model_kind() -> str:
    return "demo" if is_demo() else "upstream"
