"""The runs that this process executes. One task keeps all of them, however many there are: every half second it stores
what they said, every five seconds it renews their leases and stops those of revoked keys and deactivated accounts, and
it notices which of them were asked to stop. At shutdown all of them are stopped and closed, in a database thread that
no request keeps busy."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import Error

from gateway.errors import Restarting, RunStopped
from gateway.runs import leases
from gateway.runs.access import Requester, without_access
from gateway.runs.context import RunOutput, TurnContext
from memories.database.access import in_patient_shared_thread, in_spare_thread
from memories.errors import DomainError

logger = logging.getLogger("daybook.runs")

P = ParamSpec("P")
T = TypeVar("T")
FLUSH_SECONDS = 0.5
BEAT_SECONDS = 5.0
SHUTDOWN_SECONDS = 1.7
RETRY_SECONDS = 5  # about what a restart takes
_SHARE = 10  # storing texts takes a tenth of the time at most: long answers are stored less often
_POLL_SECONDS = 0.02


class StoppedBy(StrEnum):
    """Why a run was stopped; kept in its trace."""

    CLIENT = "client"  # hung up
    REQUEST = "request"
    UNWATCHED = "unwatched"
    RESTART = "restart"
    ACCESS = "access"  # the key was revoked, or the account deactivated
    TAKEN_OVER = "taken_over"  # its lease was lost: another process closed it


@dataclass(eq=False, slots=True)
class HeldRun:
    """A run and the task that executes it. `closing`: its end has begun, and nothing may interrupt it."""

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

    def interrupted(self) -> DomainError | None:
        """Return the error for the client of a cancelled task, or None if the client itself disconnected."""
        if self.stopped_by is None:
            return None
        self.task.uncancel()
        run_id = str(self.context.run_id)
        if self.stopped_by is StoppedBy.RESTART:
            return restarting(run_id=run_id)
        return RunStopped("This answer was stopped. What was said so far is kept.", run_id=run_id)


_held: dict[UUID, HeldRun] = {}
_opening: "set[asyncio.Future[Any]]" = set()
_keeper: "asyncio.Task[None] | None" = None
_ending = False


def hold(context: TurnContext, output: RunOutput) -> HeldRun:
    """Keep an open run that the present task executes, until `release`."""
    global _keeper
    task = asyncio.current_task()
    assert task is not None
    held = HeldRun(context, output, task, flushed=len(output.text))
    _held[context.run_id] = held
    if _keeper is None or _keeper.done():
        _keeper = asyncio.create_task(_keep(), name="keeper of runs")
    if _ending:
        held.stop(StoppedBy.RESTART)
    return held


def release(held: HeldRun) -> None:
    """Stop keeping a run that is closed."""
    _held.pop(held.context.run_id, None)
    if not _held and _keeper is not None:
        _keeper.cancel()


def stop(run_id: UUID, by: StoppedBy) -> bool:
    """Stop a run of this process. False when it is none, or is over."""
    held = _held.get(run_id)
    if held is not None:
        held.stop(by)
    return held is not None


def is_idle() -> bool:
    """Return True if this process has no open run, and none that is being opened."""
    return not _held and not _opening


def is_ending() -> bool:
    """Return True if this process is being shut down."""
    return _ending


def restarting(**details: Any) -> Restarting:
    """Return the refusal of a process that is being shut down."""
    return Restarting("The server is restarting. Try again in a few seconds.", retry_after=RETRY_SECONDS, **details)


def refuse_at_shutdown() -> None:
    """Raises Restarting once the process takes no new work. Also called in database threads."""
    if _ending:
        raise restarting()


def expect(opening: "asyncio.Future[Any]") -> None:
    """Make a shutdown wait until this run is opened or refused."""
    _opening.add(opening)
    opening.add_done_callback(_opening.discard)


async def in_closing_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that ends a run in a database thread; at shutdown in the spare one."""
    run: Callable[..., Awaitable[T]] = in_spare_thread if _ending else in_patient_shared_thread
    return await run(function, *args, **kwargs)


async def stop_all(by: StoppedBy) -> None:
    """Stop every run of this process and wait until they are closed, for SHUTDOWN_SECONDS at most."""
    deadline = asyncio.get_running_loop().time() + SHUTDOWN_SECONDS
    while not is_idle() and asyncio.get_running_loop().time() < deadline:
        for held in list(_held.values()):
            held.stop(by)
        await asyncio.sleep(_POLL_SECONDS)
    if not is_idle():
        logger.warning("%s runs were not closed in time; the next start ends them.", len(_held) + len(_opening))


async def shut_down() -> None:
    """Take no new run, end those that are open as stopped, and wait until they are closed: two seconds at most."""
    global _ending
    _ending = True
    if _held:
        logger.info("%s open runs end as stopped.", len(_held))
    await stop_all(StoppedBy.RESTART)


def reset() -> None:
    """Take runs again (tests: a process is shut down once)."""
    global _ending
    _ending = False


async def _keep() -> None:
    loop = asyncio.get_running_loop()
    renewed, pause = loop.time(), FLUSH_SECONDS
    while True:
        await asyncio.sleep(pause)
        began = loop.time()
        renew = began - renewed >= BEAT_SECONDS
        now = list(_held.values())
        changed = {held: held.output.text for held in now if len(held.output.text) != held.flushed and not held.closing}
        texts = {held.context.lease_token: text for held, text in changed.items()}
        try:
            open_runs = await in_spare_thread(leases.keep, texts, renew=renew)
            refused = await in_spare_thread(without_access, {held.requester for held in now}) if renew else set()
        except Error as error:
            logger.warning("open runs could not be kept (%s); it is tried again", type(error).__name__)
            continue
        renewed = began if renew else renewed
        for held, text in changed.items():
            held.flushed = len(text)
        for held in now:
            asked = open_runs.get(held.context.lease_token)
            if asked is None:
                held.stop(StoppedBy.TAKEN_OVER)  # does nothing to one that has just been closed here
            elif asked:
                held.stop(StoppedBy.REQUEST)
            elif held.requester in refused:
                held.stop(StoppedBy.ACCESS)
        pause = max(FLUSH_SECONDS, _SHARE * (loop.time() - began))
