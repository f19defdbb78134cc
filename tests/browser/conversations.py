"""Stored conversations for tests that are not about having one: a turn in the browser takes as long as a page."""

from datetime import datetime, timedelta

from django.utils import timezone

from gateway.models import Agent, Message, Run, Session
from gateway.services import session_create
from memories.models import Owner

CODE = "Here it is:\n\n```sh\nls -l {0}\n```\n\n" + "It lists files. " * 20


def conversation_make(owner: Owner, *turns: tuple[str, str], title: str = "Tea", at: datetime | None = None) -> Session:
    """Create a session of completed turns, each a message and its answer, dated `at` or now."""
    session = session_create(owner, Agent.objects.order_by("name")[0], title=title)
    previous = None
    for turn, texts in enumerate(turns, start=1):
        run = Run.objects.create(
            owner=owner, session=session, turn=turn, state="completed", request_id="r", text=texts[1], follows=previous
        )
        previous = run.pk
        Message.objects.bulk_create(
            Message(
                owner=owner,
                session=session,
                run=run,
                seq=2 * turn - 1 + index,
                role=("user", "assistant")[index],
                text=text,
                created_at=at or timezone.now(),
            )
            for index, text in enumerate(texts)
        )
    Session.objects.filter(pk=session.pk).update(turns=len(turns), message_seq=2 * len(turns))
    return session


def long_conversation(owner: Owner, turns: int, *, title: str = "Long talk", needle: int = 3) -> Session:
    """Create yesterday's session with many turns; the answer in turn `needle` mentions quinces."""
    messages = [
        (
            f"question {number}",
            CODE.format(number) + (" The quince tree of Zoë blooms late." if number == needle else ""),
        )
        for number in range(turns)
    ]
    return conversation_make(owner, *messages, title=title, at=timezone.now() - timedelta(days=1))
