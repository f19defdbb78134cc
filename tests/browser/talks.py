"""Conversations as rows, for tests that are not about having them: a turn in the browser takes as long as a page."""

from datetime import datetime, timedelta

from django.utils import timezone

from gateway.models import Agent, Message, Run, Session
from gateway.services import session_create
from memories.models import Owner

CODE = "Here it is:\n\n```sh\nls -l {0}\n```\n\n" + "It lists files. " * 20


def talk(owner: Owner, *said: tuple[str, str], title: str = "Tea", at: datetime | None = None) -> Session:
    """A session of completed turns, each a message and its answer, said at that time or now."""
    session = session_create(owner, Agent.objects.order_by("name")[0], title=title)
    before = None
    for turn, texts in enumerate(said, start=1):
        run = Run.objects.create(
            owner=owner, session=session, turn=turn, state="completed", request_id="r", text=texts[1], follows=before
        )
        before = run.pk
        Message.objects.bulk_create(
            Message(
                owner=owner,
                session=session,
                run=run,
                seq=2 * turn - 1 + place,
                role=("user", "assistant")[place],
                text=text,
                created_at=at or timezone.now(),
            )
            for place, text in enumerate(texts)
        )
    Session.objects.filter(pk=session.pk).update(turns=len(said), message_seq=2 * len(said))
    return session


def long_talk(owner: Owner, turns: int, *, title: str = "Long talk", needle: int = 3) -> Session:
    """A session of yesterday with many turns; one answer, that of turn `needle`, speaks of quinces."""
    said = [
        (
            f"question {number}",
            CODE.format(number) + (" The quince tree of Zoë blooms late." if number == needle else ""),
        )
        for number in range(turns)
    ]
    return talk(owner, *said, title=title, at=timezone.now() - timedelta(days=1))
