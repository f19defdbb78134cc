"""/api/memories/ingest: review messages that a client sends without a turn."""

import asyncio
from contextlib import suppress
from itertools import takewhile
from typing import Annotated, Any, Literal

from django.db import DatabaseError
from django.utils import timezone
from ninja import Header, Router, Schema, Status
from pydantic import Field, StringConstraints

from gateway.api.openai_body import check_length
from gateway.api.turn_body import MessageParts, MessageText, check_types
from gateway.command_syntax import COMMAND, without_commands
from gateway.messages import SYSTEM_ROLES, text_of
from gateway.runs.active import is_ending
from gateway.runs.by_id import MAX_EXTERNAL_ID
from gateway.runs.utterances import tool_result_words
from gateway.sessions.message_index import history_index
from memories.api.answers import documented
from memories.api.bodies import Body, BookName
from memories.caller import ApiRequest, Caller
from memories.database.access import in_read_thread, in_thread
from memories.database.batches import in_slices_to_the_end
from memories.errors import InvalidRequest, TooLarge
from memories.limits import INGEST_CHARACTERS, INGEST_MESSAGES, SHORT_LENGTH
from reviews.api.answers import Review
from reviews.api.reviews import review_json
from reviews.ingest import ingest_prepare, review_ingest
from reviews.models import ReviewRun
from reviews.selectors import review_get

router = Router(tags=["Memories"])
WAIT_SECONDS = 60.0
# The review's row is polled, since the worker may be another process. A server that shuts down gives requests two
# seconds.
_FIRST_POLL_SECONDS, _MAX_POLL_SECONDS = 0.2, 1.0


class IngestMessage(Schema):
    """A message as in OpenAI's chat completions; fields that are not named here are ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: MessageText | MessageParts | None = None
    name: Annotated[
        Annotated[str, StringConstraints(max_length=SHORT_LENGTH)] | None,
        Field(description="Who wrote a user message. In a group chat, only the person's messages are their own words."),
    ] = None

    def as_dialogue(self, where: str, *, leading: bool) -> dict[str, str] | None:
        """Return the message as role and text for a review, or None if it is not part of the dialogue. `where` names it
        in errors. A system message counts as a tool's result, unless it is `leading`. Raises InvalidRequest,
        TooLarge."""
        check_types(self.content, f"{where}.content")
        check_length(self.content, where)
        text = text_of(self.content)
        if self.role in {"tool", "function"} or (self.role in SYSTEM_ROLES and not leading):
            return {"role": "assistant", "content": tool_result_words(text)}
        if self.role not in {"user", "assistant"} or not text.strip():
            return None
        return {"role": self.role, "content": text, **({"name": self.name} if self.name else {})}


class IngestIn(
    Body,
    json_schema_extra={
        "examples": [
            {
                "messages": [
                    {"role": "user", "content": "I moved to York."},
                    {"role": "assistant", "content": "Noted."},
                ],
                "wait": True,
            }
        ]
    },
):
    messages: Annotated[
        list[IngestMessage],
        Field(
            min_length=1,
            max_length=INGEST_MESSAGES,
            description=f"At most {INGEST_CHARACTERS:,} characters together; more is answered with 413.",
        ),
    ]
    book: BookName | None = None
    session_id: Annotated[
        Annotated[str, StringConstraints(max_length=MAX_EXTERNAL_ID)] | None,
        Field(description="A session's id, or your own id as in X-Daybook-Session; a new one creates a session."),
    ] = None
    wait: Annotated[bool, Field(description=f"Answer when the review has ended, after {WAIT_SECONDS:g} s at most.")] = (
        False
    )

    def instructions(self) -> list[str]:
        """Return the texts of the system messages before the conversation."""
        leading = takewhile(lambda message: message.role in SYSTEM_ROLES, self.messages)
        return [text for message in leading if (text := text_of(message.content))]

    def dialogue(self) -> list[dict[str, str]]:
        """Return the dialogue of person and assistant, oldest first, without commands and the answers to them. Raises
        InvalidRequest, TooLarge."""
        begins = next((at for at, message in enumerate(self.messages) if message.role not in SYSTEM_ROLES), 0)
        messages = [
            message.as_dialogue(f"messages[{at}]", leading=at < begins) for at, message in enumerate(self.messages)
        ]
        dialogue, _ = without_commands([message for message in messages if message is not None])
        if not any(message["role"] == "user" for message in dialogue):
            raise InvalidRequest(
                f"Send at least one message of the role user that has text and is not a {COMMAND} command.",
                param="messages",
            )
        if sum(len(message["content"]) for message in dialogue) > INGEST_CHARACTERS:
            raise TooLarge(
                f"The messages have more than {INGEST_CHARACTERS:,} characters together. Send them in parts.",
                limit=INGEST_CHARACTERS,
            )
        return list(dialogue)


@router.post("/memories/ingest", response={202: documented(Review), 200: documented(Review)})
async def memory_ingest(
    request: ApiRequest,
    body: IngestIn,
    idempotency_key: Annotated[
        str,
        Header(
            "",
            alias="Idempotency-Key",
            max_length=SHORT_LENGTH,
            description="A repeated key of the same owner returns the same review.",
        ),
    ],
) -> Status[Any]:
    """Review messages of a conversation held elsewhere. Answers 202 with the review; with `wait`, 200 once it has
    ended."""
    prepared = await in_read_thread(
        ingest_prepare,
        request.auth,
        body.dialogue(),
        instructions=body.instructions(),
        book=body.book,
        session_ref=body.session_id or "",
        idempotency_key=idempotency_key,
    )
    review = await in_thread(review_ingest, request.auth, prepared)
    with suppress(DatabaseError):  # the messages are stored, and the worker's sweep indexes what is left
        await in_slices_to_the_end(history_index(request.auth.owner_id))
    if not body.wait:
        return Status(202, review_json(review))
    review = await _wait_for_end(request.auth, review)
    return Status(202 if review.state in ReviewRun.OPEN else 200, review_json(review))


async def _wait_for_end(caller: Caller, review: ReviewRun) -> ReviewRun:
    """Return the review once it has ended, or its present state after WAIT_SECONDS or when the server shuts down."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + WAIT_SECONDS, _FIRST_POLL_SECONDS
    while review.state in ReviewRun.OPEN and not is_ending():
        remaining = deadline - loop.time()
        if remaining <= 0 or (review.not_before - timezone.now()).total_seconds() > remaining:
            break  # it cannot end in time, for example because it waits for tomorrow's quota
        await asyncio.sleep(min(pause, remaining))
        pause = min(1.5 * pause, _MAX_POLL_SECONDS)
        review = await in_read_thread(review_get, caller.owner_id, review.pk, limits=caller.limits)
    return review
