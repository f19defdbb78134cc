"""/healthz: this process lives. /readyz: a person could chat now and would be reviewed.
Both are open and say nothing about the data."""

import asyncio
import logging

from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from config import heartbeat
from gateway.upstream import is_demo
from memories.database import in_thread

logger = logging.getLogger("daybook.health")
_DATABASE_SECONDS = 5.0
_NO_STORE = {"Cache-Control": "no-store"}
_migrated = False


async def healthz(request: HttpRequest) -> JsonResponse:
    """200 `{"status": "ok"}`, always."""
    return JsonResponse({"status": "ok"}, headers=_NO_STORE)


async def readyz(request: HttpRequest) -> JsonResponse:
    """200 `{"status": "ready", "model": "demo" or "upstream", "reasons": []}`; 503 with status "unready"."""
    try:
        async with asyncio.timeout(_DATABASE_SECONDS):
            reasons = await in_thread(unready_reasons)
    except TimeoutError:
        reasons = [f"the database does not answer within {_DATABASE_SECONDS:.0f} s"]
    response = JsonResponse(
        {"status": "unready" if reasons else "ready", "model": model_kind(), "reasons": reasons},
        status=503 if reasons else 200,
        headers=_NO_STORE,
    )
    # Django would log each 503 as an error, and a load balancer asks every second.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def unready_reasons() -> list[str]:
    """Why this installation is not ready, for operators; empty when it is. Asks the database."""
    try:
        if pending_migrations():
            return ["migrations are pending"]
        if not heartbeat.alive():
            return [f"no worker was heard for {heartbeat.stale_after().total_seconds():.0f} s"]
    except DatabaseError:
        logger.warning("The database does not answer.", exc_info=True)
        return ["the database does not answer"]
    return []


def pending_migrations() -> list[str]:
    """Migrations of the code that the database does not have, as `app.name`. Once there are none this is not
    asked again: a running process can't get new ones."""
    global _migrated
    if _migrated:
        return []
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    _migrated = not plan
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def model_kind() -> str:
    """`demo` while no upstream at all is configured, which the page says too."""
    return "demo" if is_demo() else "upstream"
