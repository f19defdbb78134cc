"""The review itself: claimed, read once, asked within one deadline, staged, applied at most once.
Runs in the queue's worker (reviews.tasks); the database is touched before and after the model is asked, never between."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway.steps import Step, add_usage, complete_step
from gateway.upstream import ModelRequest
from memories import tools as memory_tools
from memories.errors import DomainError
from memories.selectors import live_memories
from memories.services import book_limits
from prompts.review import ExistingMemory, ReviewPrompt
from reviews import services
from reviews.frozen import FrozenConversation, read_frozen
from reviews.models import ReviewRun
from reviews.staged import StagedBook

logger = logging.getLogger("daybook.reviews")

MAX_STEPS = 8
_ANSWER_BYTES = 200_000


@dataclass(slots=True, kw_only=True)
class Reflection:
    """What asking the model came to."""

    book: StagedBook
    conversation: FrozenConversation
    usage: dict[str, int]
    steps: int = 0
    model: str = ""


def execute(run_id: UUID, runner: asyncio.Runner) -> None:
    """Execute one scheduled review, if it is still to be done. `runner` keeps the process's event loop and client."""
    claim = services.review_claim(run_id)
    if claim is None:
        return
    review = claim.review
    reflection = _prepare(claim)
    try:
        runner.run(_reflect_in_time(review, reflection))
    except TimeoutError:
        services.review_time_out(claim, reflection)
    except DomainError as error:
        services.review_fail(claim, reflection, error)
    except Exception as error:
        logger.exception("review %s failed", review.pk)
        services.review_fail(claim, reflection, DomainError(f"The review broke off ({type(error).__name__})."))
    else:
        services.review_finish(claim, reflection)
    finally:
        services.enqueue_next(review)


def _prepare(claim: services.Claim) -> Reflection:
    review = claim.review
    rows = list(live_memories(review.owner_id, review.book_id))
    limits = book_limits(review.book.name)
    return Reflection(
        book=StagedBook.of(rows, limits, max_writes=review.settings["memory_review_max_writes"]),
        conversation=read_frozen(review, reviewed_through=claim.reviewed_through),
        usage={},
    )


async def _reflect_in_time(review: ReviewRun, reflection: Reflection) -> None:
    async with asyncio.timeout(review.settings["memory_review_timeout"]):
        await reflect(review, reflection)


async def reflect(review: ReviewRun, reflection: Reflection) -> None:
    """Ask the model until it has nothing more to write. Raises DomainErrors; changes only `reflection`."""
    if not reflection.conversation.messages:
        return
    messages = list(build_messages(reflection))
    for number in range(1, MAX_STEPS + 1):
        step = Step(
            deadline=asyncio.get_running_loop().time() + review.settings["memory_review_timeout"],
            bytes_left=_ANSWER_BYTES,
        )
        request = ModelRequest(
            upstream=review.settings.get("upstream", "default"),
            model=services.review_model(review),
            messages=tuple(messages),
            tools=memory_tools.definitions(memory_tools.WRITING),
            request_id=str(review.pk),
        )
        async for _ in complete_step(request, step):
            pass
        result = step.result()
        reflection.steps = number
        reflection.model = result.model or request.model
        reflection.usage = add_usage(reflection.usage, result.usage)
        if not result.calls:
            return
        calls: list[dict[str, Any]] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in result.calls
        ]
        messages.append({"role": "assistant", "content": result.text or None, "tool_calls": calls})
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": reflection.book.call(call)} for call in result.calls
        )


def build_messages(reflection: Reflection) -> tuple[dict[str, Any], ...]:
    """The frozen conversation and, last, the review prompt."""
    entries = reflection.book.entries.values()
    prompt = ReviewPrompt(
        existing=[
            ExistingMemory(number=int(e.key), target=e.target, category=e.category, content=e.content) for e in entries
        ],
        room=reflection.book.room(),
        max_writes=reflection.book.max_writes,
    )
    return (*reflection.conversation.messages, {"role": "user", "content": prompt.render()})
