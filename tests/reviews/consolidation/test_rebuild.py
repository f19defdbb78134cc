"""A requested rebuild starts at once, and explains which sessions it cannot read."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
import time_machine
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone
from django_q.models import OrmQ

from gateway.models import Run, Session
from memories.database.access import in_thread
from memories.errors import RateLimited, UpstreamError
from memories.models import Notification, Owner
from reviews.consolidation.requests import Trigger
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun, Extraction
from tests.conftest import Api
from tests.factories import owner_make
from tests.pages import client_of
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import add_turns, book_of, consolidate, request, run_slice, settings_make, talk

pytestmark = pytest.mark.usefixtures("consolidation_on")
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def break_synthesis(answering: AnsweringModel, error: Exception) -> None:
    def fail(request: object) -> str:
        raise error

    answering.on_synthesis = fail


def paused_run(alice: Owner, answering: AnsweringModel, error: Exception) -> ConsolidationRun:
    """Create a run that is paused for an hour because its synthesis failed."""
    settings_make(retry_seconds=3600)
    talk(alice)
    working = answering.on_synthesis
    break_synthesis(answering, error)
    run = run_slice(request(alice))
    assert (run.state, run.not_before > timezone.now()) == ("paused", True)
    answering.on_synthesis = working
    OrmQ.objects.all().delete()
    return run


@pytest.mark.any_database
@pytest.mark.parametrize("error", [UpstreamError("500", status=500), RateLimited("429", retry_after="900")])
def test_a_request_resumes_a_run_that_paused_after_an_error(
    alice: Owner, answering: AnsweringModel, error: Exception
) -> None:
    run = paused_run(alice, answering, error)
    joined = request(alice)
    assert (joined.pk, joined.state, joined.error, joined.failures) == (run.pk, "scheduled", None, 0)
    assert joined.not_before <= timezone.now()
    if not settings.REDIS_URL:  # with Redis, the queue is not a table
        assert OrmQ.objects.count() == 1
    assert run_slice(joined).state == "completed"


@pytest.mark.any_database
def test_the_schedule_does_not_resume_a_paused_run(alice: Owner, answering: AnsweringModel) -> None:
    run = paused_run(alice, answering, UpstreamError("500", status=500))
    joined = request(alice, trigger=Trigger.SCHEDULE)
    assert (joined.pk, joined.state, joined.not_before) == (run.pk, "paused", run.not_before)
    assert OrmQ.objects.count() == 0


def test_a_request_retries_a_failed_session_at_once(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(retry_seconds=3600)
    talk(alice)
    working = answering.on_extraction

    def fail(*_: object) -> str:
        raise UpstreamError("500", status=500)

    answering.on_extraction = fail
    assert run_slice(request(alice)).state == "paused"
    answering.on_extraction = working
    run = run_slice(request(alice))
    assert (run.state, run.sessions_done, Extraction.objects.get().attempts) == ("completed", 1, 1)


def test_a_request_joins_a_running_run_without_interrupting_it(alice: Owner, answering: AnsweringModel) -> None:
    talk(alice)
    run = request(alice)
    ConsolidationRun.objects.update(state="running", attempts=2)
    OrmQ.objects.all().delete()
    joined = request(alice, force=True)
    assert (joined.pk, joined.state, joined.attempts, joined.force) == (run.pk, "running", 2, True)
    assert OrmQ.objects.count() == 0


async def test_every_kind_of_request_resumes_a_paused_run(
    alice: Owner, alice_api: Api, answering: AnsweringModel, session: Session
) -> None:
    async def pause() -> None:
        later = timezone.now() + timedelta(hours=1)
        await in_thread(lambda: ConsolidationRun.objects.update(state="paused", not_before=later))

    async def state() -> str:
        return await in_thread(lambda: ConsolidationRun.objects.get().state)

    def request_in_admin() -> None:
        client = client_of(owner_make("root", is_staff=True, is_superuser=True))
        client.post("/admin/memories/book/consolidate/", {"book": str(book_of(alice).pk)})

    await in_thread(paused_run, alice, answering, UpstreamError("500", status=500))
    await alice_api.post("/api/consolidations", {"book": "main"})
    assert await state() == "scheduled"
    await pause()
    await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "/memory rebuild"})
    assert await state() == "scheduled"
    await pause()
    await in_thread(call_command, "consolidate", "--owner", "alice", stdout=StringIO())
    assert await state() == "scheduled"
    await pause()
    await in_thread(request_in_admin)
    assert await state() == "scheduled"


@pytest.fixture
def book_at_noon(consolidation_on: None, alice: Owner, answering: AnsweringModel) -> None:
    """Create sessions: one unchanged since it was read, one that can be read, two that are not idle for long enough,
    one in use, one too old, one that failed, one of another owner, and a temporary one."""
    settings_make(min_rollout_idle_hours=12, max_rollout_age_days=30, max_retries=0)
    with time_machine.travel(NOON, tick=False):
        talk(alice, hours_ago=20)
        consolidate(alice)

        def fail(*_: object) -> str:
            raise UpstreamError("500", status=500)

        working, answering.on_extraction = answering.on_extraction, fail
        talk(alice, hours_ago=21)
        consolidate(alice)
        answering.on_extraction = working
        talk(alice, hours_ago=13)
        for hours in (11, 2):
            talk(alice, hours_ago=hours)
        busy = talk(alice, hours_ago=14)
        Run.objects.create(owner=alice, session=busy, turn=2, request_id="r", lease_expires_at=timezone.now())
        talk(alice, hours_ago=31 * 24)
        talk(alice, temporary=True)
        talk(owner_make("dora"))


@pytest.mark.usefixtures("book_at_noon")
def test_the_standing_counts_each_session_once_and_uses_the_owners_time_zone(alice: Owner) -> None:
    alice.time_zone = "Europe/Berlin"
    alice.save()
    with time_machine.travel(NOON, tick=False):
        standing = standing_of(book_of(alice))
    counts = (
        standing.ready,
        standing.resting,
        standing.in_use,
        standing.unchanged,
        standing.given_up,
        standing.too_old,
    )
    assert counts == (1, 2, 1, 1, 1, 1)
    assert standing.first_rested_at == NOON + timedelta(hours=1)
    assert standing.text == (
        "1 session can be read now. 2 sessions rest for 12 hours after the last message, the first until 4 Mar, 14:00. "
        "1 session is in use. 1 session is unchanged since it was read. 1 session could not be read and waits until it "
        "changes or a rebuild is forced. 1 session is older than 30 days and not read."
    )


@pytest.mark.any_database
@pytest.mark.usefixtures("book_at_noon")
def test_a_forced_rebuild_includes_failed_sessions(alice: Owner) -> None:
    with time_machine.travel(NOON, tick=False):
        standing = standing_of(book_of(alice), force=True)
    assert (standing.ready, standing.given_up) == (2, 0)


def test_the_notification_of_a_rebuild_without_sessions_explains_why(alice: Owner, answering: AnsweringModel) -> None:
    settings_make(min_rollout_idle_hours=12)
    with time_machine.travel(NOON, tick=False):
        talk(alice, hours_ago=11)
        assert consolidate(alice).state == "nothing_to_do"
    assert Notification.objects.get().text == (
        "Nothing new was found. 1 session rests for 12 hours after the last message, until 4 Mar, 13:00."
    )


@pytest.mark.any_database
async def test_every_interface_shows_the_standing(
    alice: Owner, alice_api: Api, answering: AnsweringModel, session: Session
) -> None:
    words = "1 session rests for 12 hours after the last message, until "

    def prepare() -> None:
        settings_make(min_rollout_idle_hours=12)
        talk(alice, hours_ago=1)

    def pages() -> tuple[str, str]:
        client = client_of(alice)
        consolidate(alice)
        panel = client.get("/reviews/").content.decode()
        client.force_login(owner_make("root", is_staff=True, is_superuser=True).user)
        return panel, client.get(f"/admin/memories/book/consolidate/?book={book_of(alice).pk}").content.decode()

    await in_thread(prepare)
    _, preview = await alice_api.post("/api/consolidations", {"book": "main", "dry_run": True})
    assert words in preview["text"]
    assert (preview["standing"]["resting"], preview["standing"]["ready"]) == (1, 0)
    _, run = await alice_api.post("/api/consolidations", {"book": "main"})
    assert words in run["standing"]["text"]
    _, turn = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "/memory rebuild"})
    assert words in turn["content"]
    printed = StringIO()
    await in_thread(call_command, "consolidate", "--owner", "alice", "--dry-run", stdout=printed)
    assert words in printed.getvalue()
    panel, admin = await in_thread(pages)
    assert words in panel
    assert words in admin


@pytest.mark.any_database
def test_a_continued_session_can_be_read_again(alice: Owner, answering: AnsweringModel) -> None:
    session = talk(alice)
    consolidate(alice)
    assert standing_of(book_of(alice)).unchanged == 1
    session.refresh_from_db()
    add_turns(session, "And I test with make check.")
    standing = standing_of(book_of(alice))
    assert (standing.ready, standing.unchanged) == (1, 0)
