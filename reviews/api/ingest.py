"""/api/memories/ingest: memories from messages, without a turn."""

import asyncio
from typing import Annotated, Any, Literal

from django.utils import timezone
from ninja import Header, Router, Schema, Status
from pydantic import Field, StringConstraints

from gateway.api.openai_body import check_length
from gateway.api.turn_body import MessageParts, MessageText, check_types
from gateway.command_syntax import COMMAND, without_commands
from gateway.runs.active import is_ending
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.fingerprint import text_of
from memories.api.bodies import Body
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.errors import InvalidRequest, TooLarge
from memories.limits import BROUGHT_CHARACTERS, BROUGHT_MESSAGES, SHORT_LENGTH, ShortText
from reviews.api.reviews import review_json
from reviews.frozen import tool_result_words
from reviews.ingest import ingest_prepare, review_ingest
from reviews.models import ReviewRun
from reviews.selectors import review_get

router = Router()
WAIT_SECONDS = 60.0
# Where the worker is another process, only the row says how far it is.
_FIRST_LOOK_SECONDS, _LOOK_SECONDS = 0.2, 1.0  # a server that ends gives requests two seconds


class IngestMessage(Schema):
    """A message as in OpenAI's chat completions; fields that are not named here are ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: MessageText | MessageParts | None = None

    def said(self, where: str) -> dict[str, str] | None:
        """Return the message as a review reads it, in words, or None for one that says nothing of the person or the
        assistant. Raises InvalidRequest, TooLarge."""
        check_types(self.content, f"{where}.content")
        check_length(self.content, where)
        text = text_of(self.content)
        if self.role in {"tool", "function"}:
            return {"role": "assistant", "content": tool_result_words(text)}
        return {"role": self.role, "content": text} if self.role in {"user", "assistant"} and text.strip() else None


class IngestIn(Body):
    messages: Annotated[
        list[IngestMessage],
        Field(
            min_length=1,
            max_length=BROUGHT_MESSAGES,
            description=f"Together {BROUGHT_CHARACTERS:,} characters at most, after which it is 413.",
        ),
    ]
    book: ShortText | None = None
    session_id: Annotated[
        Annotated[str, StringConstraints(max_length=MAX_EXTERNAL_ID)] | None,
        Field(description="A session's id, or an id of yours as in X-Daybook-Session: a new one makes a session."),
    ] = None
    wait: Annotated[bool, Field(description=f"Answer when the review has ended, after {WAIT_SECONDS:g} s at most.")] = (
        False
    )

    def said(self) -> list[dict[str, str]]:
        """Return what person and assistant said to each other, oldest first: no commands and no answers to them.
        Raises InvalidRequest, TooLarge."""
        read = [message.said(f"messages[{index}]") for index, message in enumerate(self.messages)]
        said, _ = without_commands([message for message in read if message is not None])
        if not any(message["role"] == "user" for message in said):
            raise InvalidRequest(
                f"Bring at least one message of the role user that has words and is no {COMMAND} command.",
                param="messages",
            )
        if sum(len(message["content"]) for message in said) > BROUGHT_CHARACTERS:
            raise TooLarge(
                f"The messages have more than {BROUGHT_CHARACTERS:,} characters together. Bring them in parts.",
                limit=BROUGHT_CHARACTERS,
            )
        return list(said)


@router.post("/memories/ingest", response={202: Any, 200: Any})
async def memory_ingest(
    request: ApiRequest,
    body: IngestIn,
    idempotency_key: Annotated[
        str,
        Header(
            "",
            alias="Idempotency-Key",
            max_length=SHORT_LENGTH,
            description="The same key of the same owner answers the same review.",
        ),
    ],
) -> Status[Any]:
    """Review messages that were said elsewhere: 202 with the review or, with `wait`, 200 when it has ended."""
    prepared = await in_read_thread(
        ingest_prepare,
        request.auth,
        body.said(),
        book=body.book,
        session_ref=body.session_id or "",
        idempotency_key=idempotency_key,
    )
    review = await in_thread(review_ingest, request.auth, prepared)
    if not body.wait:
        return Status(202, review_json(review))
    review = await _at_its_end(request.auth, review)
    return Status(202 if review.state in ReviewRun.OPEN else 200, review_json(review))


async def _at_its_end(caller: Caller, review: ReviewRun) -> ReviewRun:
    """Return the review when it has ended, or as it is when the time is up or the server ends. Waiting changes nothing
    about it."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + WAIT_SECONDS, _FIRST_LOOK_SECONDS
    while review.state in ReviewRun.OPEN and not is_ending():
        left = until - loop.time()
        if left <= 0 or (review.not_before - timezone.now()).total_seconds() > left:
            break  # such as one that waits for the next day
        await asyncio.sleep(min(pause, left))
        pause = min(1.5 * pause, _LOOK_SECONDS)
        review = await in_read_thread(review_get, caller.owner_id, review.pk, limits=caller.limits)
    return review
