"""Executing a slice of a consolidation run in the queue's worker: claim it, work under a heartbeat, then pause or end
it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from uuid import UUID

from gateway.jobs import LeaseLost, lease_release, work_while_held
from memories.database.access import in_thread, overloaded
from memories.errors import DomainError, RateLimited
from reviews.consolidation import runs
from reviews.consolidation.extraction import ExtractionResult, extract
from reviews.consolidation.quotas import tomorrow
from reviews.consolidation.runs import ConsolidationClaim, Phase
from reviews.consolidation.synthesis import synthesize
from reviews.errors import InternalError, QuotaExceeded, RunCancelled, RunOutOfQuota

logger = logging.getLogger("daybook.consolidation")


def execute(run_id: UUID, run_async: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    """Execute a slice of a run, if it can be claimed. `run_async` runs a coroutine in the event loop that owns the
    upstream's client."""
    claim = runs.claim(run_id)
    if claim is None:
        return
    try:
        run_async(work(claim))
    except Exception as error:  # noqa: BLE001 - _end logs it and ends the run
        _end(claim, _main_error(error))


async def work(claim: ConsolidationClaim) -> None:
    """Work until the slice is over. Raises the error that ended it, or LeaseLost."""
    renew = partial(in_thread, runs.heartbeat, claim)
    await work_while_held(_phases(claim), renew, seconds=claim.limits.lease_seconds)


async def _phases(claim: ConsolidationClaim) -> None:
    if claim.run.phase == Phase.EXTRACTION:
        until = asyncio.get_running_loop().time() + runs.SLICE_SECONDS
        result = await extract(claim, until=until)
        if not await in_thread(_leave_extraction, claim, result):
            return
    try:
        await synthesize(claim)
    except QuotaExceeded as reached:
        await in_thread(_end_at_quota, claim, reached.scope)
    except RateLimited as error:
        await in_thread(runs.pause, claim, claim.after_rest(error), error)


def _leave_extraction(claim: ConsolidationClaim, result: ExtractionResult) -> bool:
    """Pause the run, or advance it to synthesis and return True."""
    if result.quota == "day":
        _end_at_quota(claim, "day")
        return False
    if result.resume_at is not None:
        runs.pause(claim, result.resume_at, result.error)
        return False
    runs.advance(claim, ceiling=result.quota)
    return True


def _end_at_quota(claim: ConsolidationClaim, scope: str) -> None:
    """Pause the run until tomorrow if the day's quota is used up, or end it if its own is."""
    if scope == "day":
        error = RunOutOfQuota("Today's requests or tokens are used up; it resumes tomorrow.")
        runs.pause(claim, tomorrow(), error)
    else:
        claim.row.update(ceiling="run")
        error = RunOutOfQuota("The run's requests or tokens were used up before the documents were done.")
        runs.fail(claim, error)


def _end(claim: ConsolidationClaim, error: BaseException) -> None:
    """Record the error that ended a run's slice."""
    if isinstance(error, LeaseLost | RunCancelled) or overloaded(error):
        # The run was stopped, its book cleared, or another worker has it: this worker must not write anything more. If
        # the database failed, the sweep resumes the run.
        logger.warning("consolidation %s was left: %s", claim.run.pk, error)
        if isinstance(error, RunCancelled):
            runs.cancel(claim.run, str(error))
        lease_release(claim.lease, claim.token)
    elif isinstance(error, DomainError):
        runs.fail(claim, error)
    else:
        logger.error("consolidation %s failed", claim.run.pk, exc_info=error)
        message = f"The consolidation was aborted by an internal error ({type(error).__name__})."
        runs.fail(claim, InternalError(message))


def _main_error(error: BaseException) -> BaseException:
    """Return the error or, of an exception group, LeaseLost or RunCancelled if it contains one, else the first."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    errors = [_main_error(inner) for inner in error.exceptions]
    return next((inner for inner in errors if isinstance(inner, LeaseLost | RunCancelled)), errors[0])
