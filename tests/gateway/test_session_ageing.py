"""What the worker deletes because it is older than the operator keeps: sessions, and details of runs."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from gateway.admin.turn_given import given_to
from gateway.admin.visibility import Visibility
from gateway.models import Agent, Message, Run, Session
from gateway.sessions import ageing
from gateway.sessions.ageing import run_details_expire, sessions_expire
from gateway.sessions.keeping import sessions_purge
from memories.database.ageing import AgeScan
from memories.ids import first_id
from memories.models import Memory, Owner
from tests.factories import memory_make, session_make

pytestmark = pytest.mark.django_db
NOW = timezone.now()
GIVEN = [{"memory_id": "1", "turn_id": None, "lane": "frozen", "why": "In every answer of this session."}]


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def id_of(days: float) -> UUID:
    """The id of a row that was written so many days ago."""
    return UUID(int=first_id(ago(days)).int + 1)


def session_of(owner: Owner, agent: Agent, *, begun: float, used: float, **fields: Any) -> Session:
    """A session with one turn that began and was last used so many days ago."""
    fields = {"pk": id_of(begun), "last_active_at": ago(used), **fields}
    session = Session.objects.create(owner=owner, agent=agent, turns=1, **fields)
    run_of(session, days=begun)
    return session


def run_of(session: Session, *, days: float, **fields: Any) -> Run:
    given: dict[str, Any] = {
        "turn": 1,
        "state": "completed",
        "recalled": GIVEN,
        "reasoning": "Tea or coffee?",
        "text": "Tea.",
        "usage": {"total_tokens": 5},
        "trace": {"recall": {"snapshot": {"generation": 1, "frozen": 1}}},
        **fields,
    }
    run = Run.objects.create(pk=id_of(days), owner=session.owner, session=session, request_id="r", **given)
    Message.objects.create(owner=session.owner, session=session, run=run, seq=run.turn, role="user", text="A drink?")
    return run


def sessions_kept(settings: Settings, days: int, scan: AgeScan | None = None) -> set[Session]:
    settings.SESSION_DAYS = days
    sessions_expire(NOW, scan=scan or AgeScan())
    sessions_purge(NOW)
    return set(Session.with_deleted.all())


def test_sessions_are_kept_forever_by_default(alice: Owner, agent: Agent, settings: Settings) -> None:
    old = session_of(alice, agent, begun=4000, used=3999)
    assert settings.SESSION_DAYS == 0
    assert sessions_kept(settings, 0) == {old}


def test_a_session_that_nobody_uses_is_deleted(alice: Owner, agent: Agent, bob: Owner, settings: Settings) -> None:
    session_of(alice, agent, begun=40, used=31)
    session_of(bob, agent, begun=41, used=31, pinned_at=NOW, archived_at=NOW, state="ended")
    used = session_of(alice, agent, begun=42, used=29)
    memory = memory_make(alice, "Likes tea.")
    assert sessions_kept(settings, 30) == {used}
    assert {*Run.objects.values_list("session", flat=True), *Message.objects.values_list("session", flat=True)} == {
        used.pk
    }
    assert set(Memory.objects.all()) == {memory}


def test_an_imported_conversation_counts_from_its_import(alice: Owner, agent: Agent, settings: Settings) -> None:
    imported = session_of(alice, agent, begun=1, used=900)
    assert sessions_kept(settings, 30) == {imported}


def test_sessions_are_looked_at_again(
    alice: Owner, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(alice, agent, begun=90, used=10)
    scan = AgeScan(again_after=3600)
    assert sessions_kept(settings, 30, scan) == {session}
    Session.objects.update(last_active_at=ago(31))
    assert sessions_kept(settings, 30, scan) == {session}, "within the hour"
    monkeypatch.setattr("memories.database.ageing._clock", lambda: 1e9)
    assert sessions_kept(settings, 30, scan) == set()


def test_a_scan_goes_on_where_its_time_was_over(
    alice: Owner, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in range(40, 45):
        session_of(alice, agent, begun=days, used=31)
    monkeypatch.setattr("memories.database.ageing._PAGE", 2)
    monkeypatch.setattr(ageing, "EXPIRE_SECONDS", 0.0)
    scan = AgeScan()
    assert len(sessions_kept(settings, 30, scan)) == 5, "no time at all"
    monkeypatch.undo()
    assert sessions_kept(settings, 30, scan) == set()


def test_details_of_old_runs_are_deleted(alice: Owner, agent: Agent, settings: Settings) -> None:
    settings.RUN_DETAIL_DAYS = 30
    session = session_make(alice, agent)
    old, recent = run_of(session, days=31), run_of(session, days=29, turn=2)
    waiting = run_of(session, days=32, turn=3, state="awaiting_client_tools")
    scan = AgeScan()
    run_details_expire(NOW, scan=scan)
    rows = {run.pk: run for run in Run.objects.all()}
    assert (rows[old.pk].recalled, rows[old.pk].reasoning) == ([], "")
    assert (rows[old.pk].text, rows[old.pk].usage, rows[old.pk].trace) == (old.text, old.usage, old.trace)
    assert {rows[run.pk].reasoning for run in (recent, waiting)} == {"Tea or coffee?"}
    assert Message.objects.count() == 3
    run_details_expire(NOW + timedelta(days=2), scan=scan)
    assert Run.objects.get(pk=recent.pk).recalled == [], "what became older since"


def test_the_page_of_a_run_says_that_its_details_were_deleted(alice: Owner, agent: Agent, settings: Settings) -> None:
    run = run_of(session_make(alice, agent), days=31)
    everything = Visibility(words=True, memories=True, changes=True, documents=True, reviews=True)
    settings.RUN_DETAIL_DAYS = 30
    assert not any("was deleted" in line for line in given_to(run, everything)["lines"])
    run_details_expire(NOW, scan=AgeScan())
    run.refresh_from_db()
    assert "Which memories it was given was deleted after 30 days." in given_to(run, everything)["lines"]
