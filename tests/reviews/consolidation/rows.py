"""Sessions with completed turns, and consolidation runs from the request to their end."""

import asyncio
from datetime import timedelta
from typing import Any

from django.utils import timezone

from gateway.models import Agent, Message, Run, Session
from gateway.services import configuration_save
from memories.models import Artifact, Book, Owner
from memories.services import book_get_or_create
from reviews.consolidation.requests import Trigger, consolidation_request
from reviews.consolidation.runner import execute
from reviews.models import ConsolidationRun, Extraction
from tests.factories import agent_make, session_make

WITHOUT_WAITING = {"enabled": True, "min_rollout_idle_hours": 0, "retry_seconds": 0}


def settings_make(**changed: Any) -> None:
    """Enable consolidation without idle time and retry pauses, unless `changed` says otherwise."""
    configuration_save("memories", {**WITHOUT_WAITING, **changed})


def talk(owner: Owner, *messages: str, agent: Agent | None = None, hours_ago: float = 24, **fields: Any) -> Session:
    """Create a session with one completed turn per user message, last active `hours_ago`, by default with the agent
    `assistant`."""
    agent = agent or Agent.objects.filter(name="assistant").first() or agent_make()
    session = session_make(owner, agent, **fields)
    book_get_or_create(owner.pk, agent.book)
    add_turns(session, *(messages or ("I deploy with make ship.",)))
    Session.objects.filter(pk=session.pk).update(last_active_at=timezone.now() - timedelta(hours=hours_ago))
    session.refresh_from_db()
    return session


def add_turns(session: Session, *messages: str, **fields: Any) -> None:
    """Add one completed turn per user message to a session."""
    for text in messages:
        session.turns += 1
        values = {"state": Run.State.COMPLETED, "lease_token": None, "request_id": "t", "text": f"Noted: {text}"}
        run = Run.objects.create(owner=session.owner, session=session, turn=session.turns, **{**values, **fields})
        for role, words in ((Message.Role.USER, text), (Message.Role.ASSISTANT, f"Noted: {text}")):
            session.message_seq += 1
            Message.objects.create(
                owner=session.owner, session=session, run=run, seq=session.message_seq, role=role, text=words
            )
    session.save()


def book_of(owner: Owner, name: str = "main") -> Book:
    return Book.objects.get(owner=owner, name=name)


def request(owner: Owner, *, force: bool = False, trigger: Trigger = Trigger.REQUEST) -> ConsolidationRun:
    return consolidation_request(book_of(owner), trigger=trigger, force=force)


def run_slice(run: ConsolidationRun) -> ConsolidationRun:
    """Execute one slice of a run, as a worker does."""
    execute(run.pk, asyncio.run)
    run.refresh_from_db()
    return run


def consolidate(owner: Owner, *, force: bool = False, slices: int = 10) -> ConsolidationRun:
    """Request a run and execute it until it ends."""
    run = request(owner, force=force)
    for _ in range(slices):
        if run_slice(run).state not in ConsolidationRun.OPEN:
            return run
    raise AssertionError(f"the run is still {run.state}: {run.error}")


def document(owner: Owner, path: str, book: str = "main") -> str:
    """Return the content of a live document, or "" if there is none."""
    row = Artifact.objects.filter(book=book_of(owner, book), path=path, deleted_at__isnull=True).first()
    return row.content if row else ""


def notes(owner: Owner) -> dict[str, str]:
    """Return the raw memory by session id."""
    return {str(row.session_id): row.raw_memory for row in Extraction.objects.filter(owner=owner, cleared_at=None)}
