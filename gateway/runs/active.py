"""The runs that this process executes. A single task maintains all of them: every half second it saves their text and
checks for requests to stop; every five seconds it renews their leases and stops runs of revoked keys and deactivated
accounts. At shutdown all runs are stopped and closed in a database thread that is not busy with requests."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import Error

from gateway.errors import Restarting, RunStopped
from gateway.keys import valid_keys
from gateway.runs import leases
from gateway.runs.context import RunOutput, TurnContext
from memories.database.access import in_patient_shared_thread, in_spare_thread
from memories.errors import DomainError
from memories.models import Owner

logger = logging.getLogger("daybook.runs")

P = ParamSpec("P")
T = TypeVar("T")
FLUSH_SECONDS = 0.5
BEAT_SECONDS = 5.0
RECHECK_SECONDS = 5.0
"""How often the access of somebody who waits for an answer, or watches it, is checked."""
SHUTDOWN_SECONDS = 1.7
RETRY_SECONDS = 5  # approximate duration of a restart
_PAUSE_FACTOR = 10  # saving texts takes at most a tenth of the time, so long answers are saved less often
_POLL_SECONDS = 0.02
Requester = tuple[UUID, UUID | None]
"""An owner, and the key of the request; None for a login."""


class StoppedBy(StrEnum):
    """Why a run was stopped. Stored in its trace."""

    CLIENT = "client"  # the client disconnected
    REQUEST = "request"
    UNWATCHED = "unwatched"
    RESTART = "restart"
    ACCESS = "access"  # the key was revoked, or the account deactivated
    TAKEN_OVER = "taken_over"  # its lease was lost: another process closed it


@dataclass(eq=False, slots=True)
class ActiveRun:
    """A run and the task that executes it. `closing`: the run is being closed and must not be interrupted."""

    context: TurnContext
    output: RunOutput
    task: "asyncio.Task[Any]"
    flushed: int
    closing: bool = False
    stopped_by: StoppedBy | None = None

    @property
    def requester(self) -> Requester:
        return self.context.owner_id, self.context.allowance.key_id

    def stop(self, by: StoppedBy) -> None:
        """Interrupt the task, which then closes the run as stopped."""
        if self.stopped_by is None and not self.closing:
            self.stopped_by = by
            self.task.cancel()

    def stop_error(self) -> DomainError | None:
        """Uncancel the task and return the error for its client. Return None if the client itself disconnected."""
        if self.stopped_by is None:
            return None
        self.task.uncancel()
        run_id = str(self.context.run_id)
        if self.stopped_by is StoppedBy.RESTART:
            return restarting(run_id=run_id)
        # Another process that closed the run may have deleted it, with its session or its account.
        kept = "" if self.stopped_by is StoppedBy.TAKEN_OVER else " Its text so far is kept."
        return RunStopped(f"This answer was stopped.{kept}", run_id=run_id)


_active: dict[UUID, ActiveRun] = {}
_opening: "set[asyncio.Future[Any]]" = set()
_keeper: "asyncio.Task[None] | None" = None
_ending = False


def register(context: TurnContext, output: RunOutput) -> ActiveRun:
    """Register an open run that the current task executes, until `unregister`."""
    global _keeper
    task = asyncio.current_task()
    assert task is not None
    run = ActiveRun(context, output, task, flushed=len(output.text))
    _active[context.run_id] = run
    if _keeper is None or _keeper.done():
        _keeper = asyncio.create_task(_keep_runs(), name="keeper of runs")
    if _ending:
        run.stop(StoppedBy.RESTART)
    return run


def unregister(run: ActiveRun) -> None:
    """Unregister a closed run."""
    _active.pop(run.context.run_id, None)
    if not _active and _keeper is not None:
        _keeper.cancel()


def stop(run_id: UUID, by: StoppedBy) -> None:
    """Stop a run, unless it is not executed in this process or has ended."""
    if run := _active.get(run_id):
        run.stop(by)


def is_idle() -> bool:
    """Return True if this process has no open run and is not opening one."""
    return not _active and not _opening


def is_ending() -> bool:
    """Return True if this process is shutting down."""
    return _ending


def restarting(**details: Any) -> Restarting:
    """Return the error of a process that is shutting down."""
    return Restarting("The server is restarting. Try again in a few seconds.", retry_after=RETRY_SECONDS, **details)


def refuse_at_shutdown() -> None:
    """Raise Restarting if the process is shutting down. Also called in database threads."""
    if _ending:
        raise restarting()


def await_at_shutdown(opening: "asyncio.Future[Any]") -> None:
    """Make a shutdown wait until this run has been opened or refused."""
    _opening.add(opening)
    opening.add_done_callback(_opening.discard)


async def in_closing_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that ends a run in a database thread; at shutdown in the spare one."""
    run: Callable[..., Awaitable[T]] = in_spare_thread if _ending else in_patient_shared_thread
    return await run(function, *args, **kwargs)


async def stop_all(by: StoppedBy) -> None:
    """Stop every run of this process and wait until they are closed, for SHUTDOWN_SECONDS at most."""
    deadline = asyncio.get_running_loop().time() + SHUTDOWN_SECONDS
    while not is_idle() and asyncio.get_running_loop().time() < deadline:
        for run in list(_active.values()):
            run.stop(by)
        await asyncio.sleep(_POLL_SECONDS)
    if not is_idle():
        logger.warning("%s runs were not closed in time; the next start ends them.", len(_active) + len(_opening))


async def shut_down() -> None:
    """Refuse new runs, stop the open ones, and wait until they are closed, for two seconds at most."""
    global _ending
    _ending = True
    if _active:
        logger.info("%s open runs end as stopped.", len(_active))
    await stop_all(StoppedBy.RESTART)


def reset() -> None:
    """Accept runs again. For tests, since a process shuts down only once."""
    global _ending
    _ending = False


def without_access(requesters: Collection[Requester]) -> set[Requester]:
    """Return the requesters whose key was revoked or has expired or, for logins, whose account was deactivated or
    deleted. Two queries at most."""
    keys = {key for _, key in requesters if key}
    owners = {owner for owner, key in requesters if key is None}
    valid = set(valid_keys().filter(pk__in=keys).values_list("pk", flat=True)) if keys else set()
    active = Owner.objects.filter(pk__in=owners, user__is_active=True).values_list("pk", flat=True)
    allowed = set(active) if owners else set()
    return {(owner, key) for owner, key in requesters if (key not in valid if key else owner not in allowed)}


async def _keep_runs() -> None:
    loop = asyncio.get_running_loop()
    renewed, pause = loop.time(), FLUSH_SECONDS
    while True:
        await asyncio.sleep(pause)
        began = loop.time()
        renew = began - renewed >= BEAT_SECONDS
        runs = list(_active.values())
        changed = {run: run.output.text for run in runs if len(run.output.text) != run.flushed and not run.closing}
        texts = {run.context.lease_token: text for run, text in changed.items()}
        try:
            tokens = [run.context.lease_token for run in runs]
            open_runs = await in_spare_thread(leases.save_and_renew, tokens, texts, renew=renew)
            refused = await in_spare_thread(without_access, {run.requester for run in runs}) if renew else set()
        except Error as error:
            logger.warning("open runs could not be saved (%s); this is tried again", type(error).__name__)
            continue
        renewed = began if renew else renewed
        for run, text in changed.items():
            run.flushed = len(text)
        for run in runs:
            stop_requested = open_runs.get(run.context.lease_token)
            if stop_requested is None:
                run.stop(StoppedBy.TAKEN_OVER)  # no effect on a run that this process has just closed
            elif stop_requested:
                run.stop(StoppedBy.REQUEST)
            elif run.requester in refused:
                run.stop(StoppedBy.ACCESS)
        pause = max(FLUSH_SECONDS, _PAUSE_FACTOR * (loop.time() - began))
