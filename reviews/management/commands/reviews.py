"""`manage.py reviews try --session ID`: show what a review of a session would write now, without writing it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.models import Session
from gateway.upstream import disconnect
from memories.errors import DomainError
from memories.number_words import counted
from memories.selectors import row_by_id
from reviews.frozen import last_reviewable_seq
from reviews.models import ReviewRun
from reviews.runner import ReviewAttempt, prepare, run_attempt
from reviews.schedule import new_review
from reviews.writes import ReviewWrite


class Command(BaseCommand):
    help = "Inspect background reviews."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        trial = verbs.add_parser("try", help="show what a review of a session would write now, without writing")
        trial.add_argument("--session", required=True, metavar="ID", help="its id, or the name that the client gave it")
        trial.add_argument("--all", action="store_true", help="read the whole session, not only new messages")
        trial.add_argument("--model", default="", help="ask this model instead of the agent's")
        trial.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        session = _session(options["session"])
        if session.temporary:
            raise CommandError("A temporary session is never reviewed.")
        review = new_review(session, ReviewRun.Trigger.REQUEST, last_reviewable_seq(session.owner_id, session.pk))
        if options["model"]:
            review.settings["memory_review_model"] = options["model"]
        attempt = prepare(review, reviewed_through=0 if options["all"] else session.reviewed_through)
        if not attempt.conversation.has_news:
            raise CommandError("Nothing was said in this session since its last review; --all reads it from the start.")
        try:
            asyncio.run(ask(attempt, seconds=review.settings["memory_review_timeout"]))
        except (DomainError, TimeoutError) as error:
            raise CommandError(str(error) or "The model did not answer in time.") from None
        writes = attempt.book.writes
        if options["json"]:
            result = {"writes": [write.to_json() for write in writes], "usage": attempt.outcome.usage}
            self.stdout.write(json.dumps(result, ensure_ascii=False))
            return
        self._print(attempt, writes)

    def _print(self, attempt: ReviewAttempt, writes: list[ReviewWrite]) -> None:
        for write in writes:
            self.stdout.write("\n".join(lines_of(write)))
        if not writes:
            self.stdout.write("Nothing to save.")
        for name, times in attempt.book.dropped.items():
            self.stdout.write(f"dropped: {times} call(s) of {name}")
        outcome = attempt.outcome
        tokens = outcome.usage.get("total_tokens", 0)
        steps = counted(outcome.steps, "step")
        self.stdout.write(f"\n{outcome.model}, {steps}, {tokens} tokens. Nothing was written.")


def _session(given: str) -> Session:
    """Return the session with this id, or the only one with this name of a client. Raises CommandError."""
    rows = Session.objects.select_related("agent", "owner")
    session = row_by_id(rows, given)
    found = [session] if session else list(rows.filter(external_id=given)[:2])
    if not found:
        raise CommandError("There is no such session.")
    if len(found) > 1:
        raise CommandError("Sessions of several people have this name: give the id, which the admin shows.")
    return found[0]


def lines_of(write: ReviewWrite) -> Iterator[str]:
    """Yield the lines that show a write: the change, and below it the reason, the old text and the keywords."""
    number = f" {write.memory_id}" if write.memory_id else ""
    kind = f"[{write.target}, {write.category}]"
    yield f"{write.action}{number} {kind} {write.after or write.before or ''}"
    if write.reason:
        yield f"    refused: {write.reason}"
    if write.before and write.after:
        yield f"    instead of: {write.before}"
    if write.keywords and write.after:
        yield f"    found also by: {', '.join(write.keywords)}"


async def ask(attempt: ReviewAttempt, *, seconds: float) -> None:
    """Ask the model within a time limit. Raises DomainErrors, TimeoutError."""
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        async with asyncio.timeout_at(deadline):
            await run_attempt(attempt, deadline)
    finally:
        await disconnect()
