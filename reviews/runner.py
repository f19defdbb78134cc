"""Executing a review in the queue's worker (reviews.tasks): claim it, read the conversation, ask the model within one
deadline, stage its writes and apply them at most once. The database is used before and after the model call, never
during it."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings

from gateway import telemetry
from gateway.agents.model_choice import review_target
from gateway.calls_in_text import calls_in_text
from gateway.errors import ToolsRefused
from gateway.steps import ModelStepResult, ask
from gateway.upstream import ModelTarget
from gateway.upstream.usage import add_usage
from memories import tools as memory_tools
from memories.database.access import overloaded, release_connection
from memories.errors import DomainError
from memories.evidence import Hold
from memories.model_json import objects_in
from memories.selectors import live_in
from memories.services import book_limits, refusals_stored
from memories.tokens import text_tokens
from prompts.review import ExistingMemory, review_in_json, review_prompt
from reviews import services
from reviews.claiming import ReviewClaim, review_claim
from reviews.errors import AnswerCutOff, InternalError, NeedsTools
from reviews.frozen import FrozenConversation, read_frozen
from reviews.models import ReviewRun
from reviews.schedule import enqueue_next
from reviews.staged import StagedBook, StagedEntry
from search.entries import Entry
from search.index import BookIndex

logger = logging.getLogger("daybook.reviews")

_NEEDS_TOOLS = (
    "The model {model} does not support tools, and its answer was not the JSON asked for instead. Choose another model "
    "for reviews (memory_review_model)."
)
_CUT_OFF = (
    "The answer of the model {model} was cut off before it made a call: it reached its server's limit for an answer or "
    "for the context. Raise that limit, or choose another model for reviews (memory_review_model)."
)
_NOTHING = "nothing to save"
_REVIEW_TOOLS = memory_tools.tools_at(memory_tools.Stage.REVIEW)
_TOOL_NAMES = frozenset(tool.name for tool in _REVIEW_TOOLS)
_NEVER_LEFT = frozenset({"delete_memory"})  # it needs no evidence, so it must not be made of a quotation
_ANSWER_BYTES = 200_000
RunAsync = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(slots=True, kw_only=True)
class ReviewAttempt:
    """The state of a review attempt in memory: what the model is asked about, and what it has answered so far."""

    book: StagedBook
    conversation: FrozenConversation
    target: ModelTarget
    request_id: str = ""
    owner: str = ""
    outcome: services.ReviewOutcome = field(init=False)

    def __post_init__(self) -> None:
        self.outcome = services.ReviewOutcome(
            writes=self.book.writes,
            dropped=self.book.dropped,
            model=self.target.model,
            frozen_hash=self.conversation.sha256,
        )


def execute(run_id: UUID, run_async: RunAsync) -> None:
    """Execute one review, if it can be claimed. `run_async` runs it in the event loop with the upstream's client."""
    claim = review_claim(run_id)
    if claim is None:
        return
    try:
        with refusals_stored():  # staging, and so the scan's refusals, run outside of any transaction
            _execute_claimed(claim, run_async)
    finally:
        enqueue_next(claim.session_id)


def _execute_claimed(claim: ReviewClaim, run_async: RunAsync) -> None:
    outcome = services.ReviewOutcome()
    try:
        session = claim.review.session
        attempt = prepare(claim.review, reviewed_through=session.reviewed_through if session else 0)
        outcome = attempt.outcome
        run_async(_run_in_time(attempt, claim.deadline))
        services.review_finish(claim, outcome)
    except TimeoutError:
        services.review_time_out(claim, outcome)
    except DomainError as error:
        services.review_fail(claim, outcome, error)
    except Exception as error:
        logger.exception("review %s failed", claim.review.pk)
        release_connection()  # which may be lost
        message = f"The review was aborted by an internal error ({type(error).__name__})."
        services.review_fail(claim, outcome, overloaded(error) or InternalError(message))


def prepare(review: ReviewRun, *, reviewed_through: int) -> ReviewAttempt:
    """Read everything that a review needs from the database: the current book and the frozen conversation."""
    target = review_target(review.settings)
    conversation = read_frozen(review, reviewed_through=reviewed_through)
    return ReviewAttempt(
        book=StagedBook.of(
            list(live_in(review.book).order_by("number")),
            book_limits(review.book.name),
            max_writes=review.settings["memory_review_max_writes"],
            conversation=conversation.evidence,
            hold=Hold(review.settings.get("memory_hold", Hold.UNTRUSTED)),
        ),
        conversation=conversation,
        target=target,
        request_id=str(review.pk),
        owner=str(review.owner_id),
    )


async def _run_in_time(attempt: ReviewAttempt, deadline: float) -> None:
    in_loop = asyncio.get_running_loop().time() + deadline - time.monotonic()
    with telemetry.span("daybook.review", {"daybook.review": attempt.request_id}) as reviewing:
        async with asyncio.timeout_at(in_loop):
            await run_attempt(attempt, in_loop)
        reviewing.note({"daybook.steps": attempt.outcome.steps})


async def run_attempt(attempt: ReviewAttempt, deadline: float) -> None:
    """Ask the model until it makes no more tool calls or has used up its steps. `deadline` is a time of the event
    loop. Changes only `attempt`. Raises DomainErrors."""
    if not attempt.conversation.has_news:
        return
    messages = list(build_messages(attempt))
    tools = memory_tools.definitions(_REVIEW_TOOLS)
    for number in range(1, settings.REVIEW_STEPS + 1):
        attempt.outcome.steps = number
        try:
            result = await _answer(attempt, messages, deadline, tools)
        except ToolsRefused:
            await _ask_in_json(attempt, messages, deadline, tools)
            return
        if not result.calls:
            # A server that has parsed a call parses all of them: later ones in the text are quotations.
            if number == 1 and not _says_nothing(result) and not _take_written(attempt, result, _NEVER_LEFT):
                _check_complete(attempt, result)
            return
        messages.append(result.message())
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": attempt.book.call(call)} for call in result.calls
        )


async def _answer(
    attempt: ReviewAttempt, messages: Sequence[dict[str, Any]], deadline: float, tools: Sequence[dict[str, Any]]
) -> ModelStepResult:
    result = await ask(
        attempt.target,
        messages,
        seconds=deadline - asyncio.get_running_loop().time(),
        tools=tools,
        owner=attempt.owner,
        request_id=attempt.request_id,
        answer_bytes=_ANSWER_BYTES,
    )
    answering = ModelTarget(result.kept.upstream, result.kept.model)
    attempt.target = attempt.target.preferring(answering)  # the conversation now contains its reasoning
    attempt.outcome.model = result.model or answering.model
    attempt.outcome.usage = add_usage(attempt.outcome.usage, result.usage)
    return result


async def _ask_in_json(
    attempt: ReviewAttempt, messages: Sequence[dict[str, Any]], deadline: float, tools: Sequence[dict[str, Any]]
) -> None:
    """Ask a model that does not support tools, once, to write its calls as JSON. Raises NeedsTools if it does not."""
    *before, last = messages
    prompt = {**last, "content": f"{last['content']}\n\n{review_in_json(tools)}"}
    result = await _answer(attempt, [*before, prompt], deadline, ())
    is_format = any("calls" in data for data in objects_in(result.visible_text))
    if _take_written(attempt, result, () if is_format else _NEVER_LEFT) or _says_nothing(result):
        return
    if not is_format:
        _check_complete(attempt, result)
        raise NeedsTools(_NEEDS_TOOLS.format(model=attempt.target.model))


def _says_nothing(result: ModelStepResult) -> bool:
    return _NOTHING in result.visible_text.casefold()


def _take_written(attempt: ReviewAttempt, result: ModelStepResult, never: Collection[str] = ()) -> bool:
    """Stage the calls that a model wrote into its text, except for tools in `never`. Return False if there are none."""
    written = [call for call in calls_in_text(result.visible_text, _TOOL_NAMES) if call.name not in never]
    for call in written:
        attempt.book.call(call)
    return bool(written)


def _check_complete(attempt: ReviewAttempt, result: ModelStepResult) -> None:
    """Raise AnswerCutOff if an answer without calls ended at a length limit: it does not say that nothing is to be
    saved."""
    if result.finish_reason == "length":
        raise AnswerCutOff(_CUT_OFF.format(model=attempt.outcome.model))


def build_messages(attempt: ReviewAttempt) -> tuple[dict[str, Any], ...]:
    """Return the frozen conversation, followed by the review prompt."""
    conversation = attempt.conversation.messages
    existing = choose_existing(list(attempt.book.entries.values()), conversation)
    prompt = review_prompt(existing, room=attempt.book.room(), max_writes=attempt.book.max_writes)
    return (*conversation, {"role": "user", "content": prompt})


def choose_existing(entries: Sequence[StagedEntry], conversation: Sequence[dict[str, Any]]) -> Sequence[ExistingMemory]:
    """Return the memories that the prompt shows: all entries or, if they take more than settings.REVIEW_TOKENS, those
    that match the conversation, then the newest, up to that limit."""
    if sum(text_tokens(entry.content) for entry in entries) <= settings.REVIEW_TOKENS:
        return [_shown(entry) for entry in entries]
    index = BookIndex.build([Entry(number=int(e.key), content=e.content, keywords=tuple(e.keywords)) for e in entries])
    queries = [message["content"] for message in conversation if message["role"] == "user"]
    hits = [hit.number for text in queries for hit in index.search(text, limit=20)]
    newest = sorted((int(entry.key) for entry in entries), reverse=True)
    by_number = {int(entry.key): entry for entry in entries}
    tokens_left, chosen = settings.REVIEW_TOKENS, set()
    for number in dict.fromkeys([*hits, *newest]):
        tokens_left -= text_tokens(by_number[number].content)
        if tokens_left < 0:
            break
        chosen.add(number)
    return [_shown(by_number[number]) for number in sorted(chosen)]


def _shown(entry: StagedEntry) -> ExistingMemory:
    return ExistingMemory(number=int(entry.key), target=entry.target, category=entry.category, content=entry.content)
