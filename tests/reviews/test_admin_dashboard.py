"""/admin/: what is going on now, charts of the last days, and their cost"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
import time_machine
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.tasks import async_task

from gateway.limits.money import dollars
from gateway.models import Run, Worker
from gateway.services import configuration_save
from memories.ids import first_id, uuid7
from memories.models import Book, Owner, Revision, ScanDay, WriteOrigin
from reviews.admin.dashboard import dashboard, owners
from reviews.admin.dashboard.charts import _DASHES, Chart, Series
from reviews.admin.dashboard.now import queue_facts
from reviews.admin.dashboard.owners import OwnerUse
from reviews.admin.dashboard.periods import Period
from reviews.models import ConsolidationDay, ConsolidationRun, ReviewRun
from tests.admin_rows import book_make, memory_make, owner_make, session_make, staff_client, user_make
from tests.factories import review_make
from tests.reviews.conftest import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]


def board(*, days: str = "", superuser: bool = True) -> dict[str, Any]:
    request = RequestFactory().get("/admin/", {"part": "charts", **({"days": days} if days else {})})
    request.user = user_make(f"staff{uuid7()}", is_staff=True, is_superuser=superuser)
    return dashboard(request, {"kept": 1})


def chart(name: str, context: dict[str, Any] | None = None) -> Chart:
    found: Chart = next(chart for chart in (context or board())["charts"] if chart.name == name)
    return found


def numbers(name: str, context: dict[str, Any] | None = None) -> dict[str, tuple[int, ...]]:
    return {series.word: series.numbers for series in chart(name, context).series}


def totals(name: str, context: dict[str, Any] | None = None) -> dict[str, int]:
    return {series.word: series.total for series in chart(name, context).series if series.total}


def consolidation_make(book: Book, **fields: Any) -> ConsolidationRun:
    return ConsolidationRun.objects.create(owner=book.owner, book=book, trigger="request", book_epoch=1, **fields)


def usage(prompt: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


# ---- charts ----


def test_turns_and_failures_are_counted_by_day() -> None:
    session_make(turns=4)
    Run.objects.filter(turn=1).update(state="failed")
    Run.objects.filter(turn=4).update(started_at=NOON - timedelta(days=2))
    assert numbers("turns") == {"Turns": (0, 0, 0, 0, 1, 0, 3), "Failed": (0, 0, 0, 0, 0, 0, 1)}


@pytest.mark.any_database
def test_the_period_is_seven_or_thirty_days() -> None:
    with time_machine.travel(NOON - timedelta(days=29), tick=False):
        session_make(turns=1)
    assert [len(chart("turns", board(days=days)).days) for days in ("", "7", "30", "4000", "x", "-1")] == [
        7, 7, 30, 7, 7, 7,
    ]  # fmt: skip
    assert totals("turns", board(days="7")) == {}
    assert totals("turns", board(days="30")) == {"Turns": 1}


def test_days_begin_at_midnight_utc() -> None:
    first = datetime(2026, 5, 14, tzinfo=UTC)
    for moment in (first - timedelta(seconds=1), first):
        with time_machine.travel(moment, tick=False):
            session_make(title=str(moment), turns=1)
    assert numbers("turns")["Turns"] == (1, 0, 0, 0, 0, 0, 0)


def test_tokens_are_shown_by_turns_reviews_and_consolidation() -> None:
    book = book_make()
    session_make(book.owner, turns=2)
    Run.objects.update(usage=usage(90, 10))
    review_make(book, usage=usage(40, 2))
    review_make(book, state="failed", usage={})
    consolidation_make(book, tokens=7)
    assert totals("tokens") == {"Turns": 200, "Reviews": 42, "Consolidation": 7}


def test_turns_without_reported_tokens_are_not_denied() -> None:
    session_make(turns=1)
    Run.objects.update(usage={})
    assert totals("turns")["Turns"] == 1
    assert chart("tokens").empty == "No server reported tokens in this period."


def test_reviews_are_shown_by_state() -> None:
    book = book_make()
    for state in ("saved", "failed", "timed_out", "nothing_to_save", "awaiting_approval", "cancelled", "undone"):
        review_make(book, state)
    context = board()
    assert totals("reviews", context) == {
        "Saved": 1,
        "Nothing new": 1,
        "Waiting": 1,
        "Failed or timed out": 2,
        "Others": 2,
    }
    assert dict(chart("reviews", context).tallies).keys() >= {"Timed out", "Failed", "Undone", "Cancelled"}


@pytest.mark.any_database
def test_writes_are_shown_by_author() -> None:
    book = book_make()
    for place, origin in enumerate(WriteOrigin.values):
        memory_make(f"Fact {place}.", book=book, origin=WriteOrigin(origin))
    memory_make("Likes tea.", book=book)
    context = board()
    assert totals("writes", context) == {"Agent": 2, "Review": 1, "Consolidated": 1, "Owner": 1, "Others": 3}
    assert dict(chart("writes", context).tallies)["Import"] == 1


def test_refusals_by_the_scan_are_shown_by_kind_and_rule() -> None:
    today = NOON.date()
    for day, rule, kind, number in (
        (today, "password", "secret", 3),
        (today, "instruction_override", "injection", 2),
        (today - timedelta(days=6), "prompt_copy", "prompt", 1),
        (today - timedelta(days=7), "password", "secret", 50),
    ):
        ScanDay.objects.create(day=day, rule=rule, kind=kind, number=number)
    context = board()
    assert totals("scan", context) == {"Prompt injection": 2, "Secrets": 3, "Copies of our prompts": 1}
    assert chart("scan", context).tallies[0] == ("password", 3)


def test_every_line_has_its_own_colour_and_dash() -> None:
    tones = [*_DASHES]
    for shown in board()["charts"]:
        assert len({series.dash for series in shown.series}) == len({s.tone for s in shown.series}) == len(shown.series)
        assert [tones.index(s.tone) for s in shown.series] == sorted(tones.index(s.tone) for s in shown.series)


def chart_of(*numbers: int) -> Chart:
    days = tuple(NOON.date() - timedelta(days=ago) for ago in reversed(range(len(numbers))))
    return Chart(name="n", title="Turns", days=days, series=(Series("Turns", numbers, "accent"),), empty="None.")


@pytest.mark.parametrize(
    ("highest", "scale"),
    [
        (0, [0, 1, 2, 3, 4]),
        (3, [0, 1, 2, 3, 4]),
        (7, [0, 2, 4, 6, 8]),
        (26, [0, 10, 20, 30]),
        (10_000, [0, 2_000, 4_000, 6_000, 8_000, 10_000]),
        (1_234_567, [0, 500_000, 1_000_000, 1_500_000]),
    ],
)
def test_the_scale_of_a_chart_includes_its_highest_number(highest: int, scale: list[int]) -> None:
    found = chart_of(0, highest, 0).scale
    assert [number for number, _ in found] == scale
    assert (found[0][1], found[-1][1]) == (100, 0)


def test_a_line_has_a_point_for_each_day() -> None:
    drawn = chart_of(0, 4, 1)
    assert [points for _, points in drawn.lines] == ["0.00,100.00 50.00,0.00 100.00,75.00"]
    assert [left for left, _, _ in drawn.bands] == [-25, 25, 75]
    assert drawn.bands[1][2].splitlines()[1] == "Turns: 4"


@pytest.mark.parametrize("days", [1, 7, 30, 90])
def test_at_most_five_days_are_labelled_including_the_last(days: int) -> None:
    drawn = chart_of(*range(days))
    assert 1 <= len(drawn.named_days) <= 5
    assert drawn.named_days[0] == (date_format(drawn.days[-1], "j M"), 100 if days > 1 else 0)


def test_the_table_of_a_chart_has_the_numbers_of_its_lines() -> None:
    session_make(turns=3)
    Run.objects.filter(turn=3).update(state="failed")
    turns = chart("turns")
    assert turns.heads == ["Turns", "Failed"]
    assert (len(turns.rows), turns.rows[0], turns.rows[1][1]) == (7, (NOON.date(), [3, 1], ""), [0, 0])


# ---- money and owners ----


def owner_rows(**options: Any) -> list[OwnerUse]:
    found: list[OwnerUse] = board(**options)["owners"]
    return found


def test_without_prices_no_money_is_shown() -> None:
    session_make(turns=1)
    Run.objects.update(usage=usage(1_000_000, 0), model="fine")
    context = board()
    assert (context["shows_money"], chart("tokens", context).heads[-1]) == (False, "Consolidation")
    assert ">Cost</th>" not in staff_client(superuser=True).get("/admin/?part=charts").content.decode()


def test_only_models_with_a_price_have_a_cost() -> None:
    configuration_save("prices", {"fine": {"input": 2, "output": 10}})
    book = book_make()
    session_make(book.owner, turns=2)
    Run.objects.filter(turn=1).update(usage=usage(1_000_000, 100_000), model="fine")
    Run.objects.filter(turn=2).update(usage=usage(1_000_000, 100_000), model="unknown")
    review_make(book, usage=usage(500_000, 0), model="fine")
    context = board()
    assert chart("tokens", context).rows[0][2] == "$4.00"
    assert chart("tokens", context).note == "Turns and reviews cost $4.00."
    assert (context["owners"][0].cost, context["unpriced"]) == ("$4.00", ("unknown",))


def test_amounts_are_formatted_with_cents() -> None:
    assert [dollars(amount) for amount in (0, 0.004, 0.01, 1234.5)] == ["$0.00", "under $0.01", "$0.01", "$1,234.50"]


def test_owners_are_sorted_by_tokens_and_the_rest_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "MAX_OWNERS", 2)
    for name, turns, reviewed, consolidated in (
        ("ann", 0, 0, 900),
        ("ben", 5, 500, 0),
        ("cem", 300, 1, 1),
        ("di", 8, 0, 0),
    ):
        book = book_make(owner_make(name))
        session_make(book.owner, turns=1)
        Run.objects.filter(owner=book.owner).update(usage=usage(turns, 0))
        review_make(book, usage=usage(reviewed, 0))
        consolidation_make(book, tokens=consolidated)
    rows = owner_rows()
    assert [(use.name, use.total) for use in rows] == [("ann", 900), ("ben", 505), ("All others", 310)]
    assert (rows[2].turns, rows[2].reviews, rows[2].consolidation) == (308, 1, 1)


def test_todays_usage_is_shown_with_the_quotas(settings: Any) -> None:
    settings.REVIEWS_PER_DAY, settings.REVIEW_TOKENS_PER_DAY = 10, 1000
    book = book_make()
    review_make(book, usage=usage(950, 0), started_at=NOON)
    review_make(book, usage=usage(400, 0), started_at=NOON - timedelta(days=1))
    ConsolidationDay.objects.create(owner=book.owner, day=NOON.date(), tokens=70)
    ConsolidationDay.objects.create(owner=book.owner, day=NOON.date() - timedelta(days=1), tokens=5)
    reviews, tokens, consolidation = owner_rows()[0].quotas
    assert (reviews.used, reviews.limit, reviews.is_near) == (1, 10, False)
    assert (tokens.used, tokens.percent, tokens.is_near) == (950, 95, True)
    assert (consolidation.used, consolidation.limit) == (70, 10_000_000)


def test_a_limit_of_zero_is_no_quota(settings: Any) -> None:
    settings.REVIEW_TOKENS_PER_DAY = 0
    review_make(book_make(), usage=usage(950, 0), started_at=NOON)
    tokens = owner_rows()[0].quotas[1]
    assert (tokens.used, tokens.percent, tokens.is_near) == (950, 0, False)


# ---- now ----


def now() -> dict[str, Any]:
    found: dict[str, Any] = board()["now_facts"]
    return found


def test_live_workers_are_counted() -> None:
    Worker.objects.create(host="box", pid=1)
    Worker.objects.create(host="box", pid=2, beat_at=timezone.now() - timedelta(hours=1))
    assert now()["workers"] == 1


def test_hanging_turns_are_linked() -> None:
    session_make(turns=2)
    session_make(title="Short", turns=1)
    Run.objects.filter(session__title="Short").update(state="running")
    late = Run.objects.get(session__title="Tea", turn=1)
    Run.objects.filter(pk=late.pk).update(
        state="running", started_at=NOON - timedelta(minutes=5), lease_expires_at=NOON - timedelta(seconds=1)
    )
    [found] = now()["open"]
    assert (found["what"], found["why"]) == ("Turn 1 of alice", "its lease expired")
    assert staff_client(superuser=True).get(found["link"]).status_code == 200


def test_hanging_reviews_and_consolidations_are_listed() -> None:
    book = book_make()
    long_ago = NOON - timedelta(hours=2)
    review_make(book, "running", session=session_make(book.owner), started_at=long_ago, lease_expires_at=long_ago)
    review_make(book, "running", session=session_make(book.owner), started_at=NOON)
    review_make(book, "scheduled", not_before=long_ago)
    review_make(book, "scheduled", not_before=NOON + timedelta(minutes=1))
    consolidation_make(book, state="running", created_at=long_ago)
    consolidation_make(book_make(book.owner, "side"), state="running")
    assert [(run["what"], run["why"]) for run in now()["open"]] == [
        ("Review for alice", "its lease expired"),
        ("Review for alice", "waits for a worker"),
        ("Consolidation for alice", "running"),
    ]
    ReviewRun.objects.filter(state="running").delete()
    User.objects.filter(username="alice").update(is_active=False)  # whose work waits until she is active again
    assert now()["open"] == []


def test_only_the_oldest_of_many_open_runs_are_shown() -> None:
    session_make(turns=1)
    for back in range(8):
        open_runs = Run.objects.filter(session=session_make(title=f"{back}", turns=1))
        open_runs.update(turn=back, state="running", started_at=NOON - timedelta(minutes=10 + back))
    facts = now()
    assert [run["what"] for run in facts["open"]] == [f"Turn {turn} of alice" for turn in (7, 6, 5, 4, 3)]
    assert facts["more"]


def test_the_queue_shows_its_length_and_oldest_job() -> None:
    get_broker().purge_queue()  # Redis still has the jobs of other tests
    assert queue_facts(NOON)["length"] == 0
    with time_machine.travel(NOON - timedelta(minutes=7), tick=False):
        async_task("math.floor", 1)
    async_task("math.floor", 2)
    try:
        facts = queue_facts(timezone.now())
        assert (facts["length"], facts["oldest"]) == (2, NOON - timedelta(minutes=7))
    finally:
        get_broker().purge_queue()


def test_a_running_job_is_not_counted() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the queue is in Redis here, which no longer contains a running job")
    OrmQ.objects.create(key=get_broker().list_key, payload="", lock=NOON + timedelta(hours=1))
    assert queue_facts(NOON) == {"length": 0, "oldest": None}


def test_an_unreachable_queue_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Down:
        list_key = "daybook"

        def queue_size(self) -> int:
            raise redis.ConnectionError("down")

    monkeypatch.setattr("reviews.admin.dashboard.now.get_broker", Down)
    assert queue_facts(NOON) == {"length": None}
    assert "The queue does not answer" in staff_client(superuser=True).get("/admin/?part=charts").content.decode()


# ---- permissions and queries ----


def test_staff_who_may_not_see_runs_get_no_numbers() -> None:
    session_make(turns=1)
    assert board(superuser=False) == {"kept": 1}


def test_staff_who_may_not_see_runs_get_the_list_of_pages() -> None:
    page = staff_client(may=("memories.view_memory",)).get("/admin/").content.decode()
    assert "Tokens by owner" not in page
    assert "db-chart" not in page


def test_staff_who_may_see_only_runs_get_no_other_links() -> None:
    book = book_make()
    review_make(book, "scheduled", not_before=NOON - timedelta(hours=1), usage=usage(5, 0))
    page = staff_client(may=("gateway.view_run",)).get("/admin/?part=charts").content.decode()
    assert "Review for alice" in page
    assert "/admin/reviews/reviewrun/" not in page
    assert f"/admin/memories/owner/{book.owner_id}" not in page


def test_the_page_contains_no_text_of_conversations_or_memories() -> None:
    book = book_make()
    memory_make("Likes lapsang souchong.", book=book)
    session_make(book.owner, title="About lapsang", turns=1)
    Run.objects.update(state="running", started_at=NOON - timedelta(minutes=5), text="lapsang")
    page = staff_client(superuser=True).get("/admin/").content.decode()
    assert "Turn 1 of alice" in page
    assert "lapsang" not in page


@pytest.mark.any_database
def test_the_dashboard_needs_no_more_queries_for_more_rows() -> None:
    request = RequestFactory().get("/admin/", {"part": "charts"}, headers={"HX-Request": "true"})
    request.user = user_make("root", is_superuser=True, is_staff=True)
    counts = []
    for names in (("alice",), ("bea", "cem", "dora", "emil")):
        for name in names:
            _fill(owner_make(name))
        cache.clear()
        for _ in ("cold", "warm"):
            with CaptureQueriesContext(connection) as queries:
                dashboard(request, {})
            counts.append(len(queries))
    assert counts[:2] == counts[2:]
    assert counts[1] < counts[0] <= 30


def _fill(owner: Owner) -> None:
    book = book_make(owner)
    memory_make(book=book)
    session = session_make(owner, turns=5)
    Run.objects.filter(session=session, turn=5).update(state="running", started_at=NOON - timedelta(hours=1))
    Run.objects.filter(session=session).update(usage=usage(5, 5), model=f"model of {owner}")
    review_make(book, usage=usage(5, 5), started_at=NOON, model="m")
    review_make(book, "scheduled", not_before=NOON - timedelta(hours=1))
    consolidation_make(book, tokens=3, created_at=NOON - timedelta(hours=2))


def test_no_query_scans_all_runs_or_revisions() -> None:
    many_rows(NOON - timedelta(days=400), 4000)
    _fill(owner_make())
    request = RequestFactory().get("/admin/", {"days": "30", "part": "charts"})
    request.user = user_make("root", is_superuser=True, is_staff=True)
    if connection.vendor == "postgresql":  # it would do so automatically; SQLite never does
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as queries:
        dashboard(request, {})
    plans = [plan_of(query["sql"]) for query in queries if query["sql"].startswith("SELECT")]
    assert any("gateway_run" in plan for plan in plans)
    assert [line for plan in plans for line in plan.splitlines() if _reads_all(line)] == []


def plan_of(sql: str) -> str:
    """Return the database's query plan, one step per line."""
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with connection.cursor() as cursor:
        cursor.execute(explain + sql.replace("%", "%%"), [])
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def _reads_all(step: str) -> bool:
    """Return whether a step reads all runs or revisions, by table or index. The index of open runs is small."""
    for table in ("gateway_run", "memories_revision"):
        if f"Seq Scan on {table}" in step or (f"SCAN {table}" in step and "run_open" not in step):
            return True
    return False


def many_rows(since: datetime, number: int) -> None:
    """Create so many old rows that scanning the table would be expensive."""
    memory = memory_make("Old.", book=book_make(owner_make("old")))
    session = session_make(memory.owner, title="Old")
    moments = [since + timedelta(seconds=n) for n in range(number)]
    Run.objects.bulk_create(
        Run(
            id=first_id(moment),
            owner=memory.owner,
            session=session,
            turn=turn,
            state="completed",
            started_at=moment,
            request_id="r",
            text="words " * 50,
        )
        for turn, moment in enumerate(moments)
    )
    change_set = memory.revisions.get().change_set
    Revision.objects.bulk_create(
        Revision(
            id=first_id(moment),
            owner=memory.owner,
            memory=memory,
            change_set=change_set,
            version=version,
            action="update",
            after={"content": "words " * 50},
            actor="model",
            write_origin="tool",
            created_at=moment,
        )
        for version, moment in enumerate(moments, start=2)
    )


def test_the_first_id_of_a_moment_precedes_the_ids_created_at_it() -> None:
    made = uuid7()
    moment = datetime.fromtimestamp((made.int >> 80) / 1000, UTC)
    assert first_id(moment) <= made < first_id(moment + timedelta(milliseconds=1))
    assert first_id(moment).version == 7
    assert Period.of("7", NOON).since == datetime(2026, 5, 14, tzinfo=UTC)


@pytest.mark.any_database
def test_past_days_are_cached_and_today_is_not() -> None:
    session = session_make()

    def turn(number: int, at: datetime) -> None:
        Run.objects.create(
            id=first_id(at),
            owner=session.owner,
            session=session,
            turn=number,
            state="completed",
            started_at=at,
            request_id="r",
            usage=usage(10, 0),
        )

    turn(1, NOON - timedelta(days=2))
    assert numbers("turns")["Turns"] == (0, 0, 0, 0, 1, 0, 0)
    turn(2, NOON - timedelta(days=3))
    turn(3, NOON - timedelta(hours=1))
    context = board()
    assert numbers("turns", context)["Turns"] == (0, 0, 0, 0, 1, 0, 1)
    assert context["owners"][0].total == 20
    cache.clear()
    assert numbers("turns")["Turns"] == (0, 0, 0, 1, 1, 0, 1)
    assert owner_rows()[0].total == 30


def test_rows_with_older_ids_are_ignored() -> None:
    many_rows(NOON - timedelta(days=400), 3)
    Run.objects.update(started_at=NOON)
    Revision.objects.filter(version__gt=1).update(created_at=NOON)
    context = board(days="30")
    assert totals("turns", context) == {}
    assert totals("writes", context) == {"Agent": 1}  # the memory itself was added now


def test_a_superuser_sees_every_chart() -> None:
    session_make(turns=1)
    page = staff_client(superuser=True).get("/admin/?days=30&part=charts").content.decode()
    for title in ("Turns", "Tokens", "Reviews by state", "Writes to memory by author", "Blocked writes"):
        assert f">{title}</h2>" in page
