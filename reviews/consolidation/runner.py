"""A slice of a consolidation run in the queue's worker: claimed, worked on under a heartbeat, handed on or ended."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from django.utils import timezone

from gateway.jobs import LeaseLost, lease_release, work_while_held
from memories.database.access import in_thread
from memories.errors import DomainError, RateLimited
from reviews.consolidation import runs
from reviews.consolidation.errors import QuotaExceeded, RunCancelled
from reviews.consolidation.extraction import Extracted, extract
from reviews.consolidation.quotas import Meter, tomorrow
from reviews.consolidation.runs import ConsolidationClaim, Phase
from reviews.consolidation.synthesis import synthesize
from reviews.errors import InternalError
from reviews.models import ConsolidationRun

logger = logging.getLogger("daybook.consolidation")


class QuotaUsedUp(DomainError):
    """A quota of the run or of the owner's day is used up."""

    code, http_type, http_status = "ceiling_reached", "rate_limit_error", 429


def execute(run_id: UUID, run_async: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    """Work on a run for a slice, if it is to be done and nobody else does it. `run_async` runs a coroutine in the
    process's event loop, which keeps the upstream's client."""
    claim = runs.claim(run_id)
    if claim is None:
        return
    job = Job(claim)
    try:
        run_async(job.work())
    except Exception as error:  # noqa: BLE001 - logged there; the run must not stay open without a word
        _end(job.claim, _first(error))


class Job:
    """The phases of one slice, and the claim as it moves on with them."""

    def __init__(self, claim: ConsolidationClaim) -> None:
        self.claim = claim
        self._moving = asyncio.Lock()  # from one lease to the next: no heartbeat in between

    async def work(self) -> None:
        """Work until the slice is over. Raises whatever ended it, LeaseLost when the heartbeat found the lease gone."""
        await work_while_held(self._phases(), self._renew, seconds=self.claim.limits.lease_seconds)

    async def _renew(self) -> bool:
        async with self._moving:
            return await in_thread(runs.heartbeat, self.claim)

    async def _phases(self) -> None:
        meter = await in_thread(Meter.of, self.claim.run, self.claim.limits)
        if self.claim.run.phase == Phase.EXTRACTION:
            until = asyncio.get_running_loop().time() + runs.SLICE_SECONDS
            outcome = await extract(self.claim, meter, until=until)
            async with self._moving:
                if not await in_thread(self._leave_extraction, outcome):
                    return
        try:
            await synthesize(self.claim, meter)
        except QuotaExceeded as reached:
            await in_thread(self._end_at_quota, reached.scope)
        except RateLimited as error:
            await in_thread(runs.pause, self.claim, self.claim.after_rest(error), error)

    def _leave_extraction(self, outcome: Extracted) -> bool:
        """Pause the run after its sessions, or go on to the documents. Returns True if the synthesis is next."""
        if outcome.quota == "day":
            self._end_at_quota("day")
            return False
        if outcome.resume_at is not None:
            runs.pause(self.claim, outcome.resume_at, outcome.error)
            return False
        if outcome.quota:
            ConsolidationRun.objects.filter(pk=self.claim.run.pk).update(ceiling=outcome.quota)
        moved = runs.advance(self.claim)
        if moved is None:
            runs.pause(self.claim, timezone.now())
            return False
        self.claim = moved
        return True

    def _end_at_quota(self, scope: str) -> None:
        """Pause the run until tomorrow if the day's quota is used up; end it if the run's is, with what is done."""
        if scope == "day":
            runs.pause(
                self.claim, tomorrow(), QuotaUsedUp("Today's requests or tokens are used up; it goes on tomorrow.")
            )
        else:
            ConsolidationRun.objects.filter(pk=self.claim.run.pk).update(ceiling="run")
            runs.fail(
                self.claim, QuotaUsedUp("The run's requests or tokens were used up before the documents were done.")
            )


def _end(claim: ConsolidationClaim, error: BaseException) -> None:
    """Record what became of a run whose slice was ended by an error."""
    if isinstance(error, LeaseLost | RunCancelled):
        # It was stopped or cleared, or another worker has it: this worker writes nothing more.
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


def _first(error: BaseException) -> BaseException:
    """Return the error itself, or of several tasks' errors the one that says most: a lost lease before a refusal."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_first(inner) for inner in error.exceptions]
    return next((inner for inner in found if isinstance(inner, LeaseLost | RunCancelled)), found[0])
