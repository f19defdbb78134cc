"""memories.database.statements with the models of a turn: precompiled statements have the same effect as the ORM"""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.db.models import Max, Subquery, TextField
from django.db.models.functions import Cast
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gateway.models import Agent, Message, Run, Session
from gateway.runs.session_rows import open_runs
from memories.database.statements import Given, Insert, RawStatement, RowFactory, Select, Update, UpdateRow, given
from memories.ids import uuid7
from memories.models import Owner
from tests.factories import session_make


@pytest.fixture(autouse=True, params=["watched", "by the driver"])
def _both_ways(request: pytest.FixtureRequest, one_writer: None) -> Generator[None]:
    """Run each test through Django's wrappers, as with watchers such as the tests, and directly through the driver."""
    watchers = connections["default"].execute_wrappers if request.param == "watched" else []
    with patch.object(connections["default"], "execute_wrappers", watchers):
        yield


@pytest.fixture
def session(alice: Owner, agent: Agent) -> Session:
    return session_make(alice, agent, title="Tea")


def _run(session: Session, **fields: Any) -> Run:
    return Run(owner_id=session.owner_id, session=session, turn=1, request_id="test", **fields)


def _columns(row: Any) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.local_concrete_fields}


def test_an_inserted_row_is_read_back_by_the_orm(session: Session) -> None:
    run = _run(session, usage={"total_tokens": 3}, recalled=[{"why": "“tea” 100 % – said"}], holder=uuid7(), error=None)
    Insert(Run).execute([run])
    assert _columns(Run.objects.get(pk=run.pk)) == _columns(run)
    assert not run._state.adding


@pytest.mark.parametrize("count", [1, 3, Insert.SIZES[0] + Insert.SIZES[1] + 1])
def test_any_number_of_rows_can_be_inserted(session: Session, count: int) -> None:
    insert: Insert[Message] = Insert(Message)
    for first in (0, count):  # the second time with the cached statement
        rows = [
            Message(owner_id=session.owner_id, session=session, seq=first + number, role="user", text=f"{number} %s")
            for number in range(count)
        ]
        insert.execute(rows)
    found = [_columns(row) for row in Message.objects.filter(session=session).order_by("seq")]
    assert found[count:] == [_columns(row) for row in rows]
    insert.execute([])
    assert len(found) == 2 * count


def test_inserting_an_existing_row_updates_the_named_fields(session: Session) -> None:
    insert: Insert[Session] = Insert(Session, update_fields=("title", "turns"))
    fresh = Session(owner_id=session.owner_id, agent_id=session.agent_id, title="fresh")
    session.title, session.turns, session.last_pair = "renewed", 7, "not stored"
    insert.execute([session, fresh])
    found = Session.objects.in_bulk([session.pk, fresh.pk])
    assert [(row.title, row.turns, row.last_pair) for row in (found[session.pk], found[fresh.pk])] == [
        ("renewed", 7, ""),
        ("fresh", 0, ""),
    ]


def test_a_value_may_be_an_expression(session: Session) -> None:
    newest = Run.objects.filter(**given(Run, "session")).values("session").annotate(newest=Max("turn")).values("newest")
    insert = Insert(Run, lambda: {"turn": Subquery(newest)})
    Insert(Run).execute([_run(session, state=Run.State.COMPLETED)])
    following = _run(session)
    insert.execute([following], session=session.pk)
    assert Run.objects.get(pk=following.pk).turn == 1


def test_constraints_raise_the_same_errors_as_the_orm(session: Session) -> None:
    Insert(Run).execute([_run(session)])
    with pytest.raises(IntegrityError):
        Insert(Run).execute([_run(session)])  # only one open run per session is allowed


def test_select_returns_the_values_of_fields(session: Session) -> None:
    select = Select(
        lambda: (
            Run.objects.filter(**given(Run, "session"), superseded=False)
            .order_by("-id")
            .values_list("pk", "usage", "started_at", "state")[:1]
        )
    )
    assert select.rows(session=session.pk) == []
    assert select.row(session=session.pk) is None
    for number in range(2):
        run = _run(session, state=Run.State.COMPLETED, usage={"number": number})
        Insert(Run).execute([run])
    assert select.rows(session=session.pk) == [(run.pk, {"number": 1}, run.started_at, "completed")]
    assert select.row(session=uuid7()) is None


def test_select_returns_an_instance(session: Session) -> None:
    select = Select(lambda: Session.objects.filter(**given(Session, "owner", "title")))
    found = select.instance(owner=session.owner_id, title="Tea")
    assert found is not None
    assert (found, _columns(found)) == (session, _columns(Session.objects.get(pk=session.pk)))
    assert select.instance(owner=session.owner_id, title="Coffee") is None


def test_update_changes_matching_rows_only(session: Session) -> None:
    run = _run(session)
    Insert(Run).execute([run])
    end = Update(
        lambda: Run.objects.filter(**given(Run, "pk"), lease_token=Given("lease", Run, "lease_token")),
        lambda: {**given(Run, "state", "usage", "finished_at", "error"), "lease_token": None},
    )
    at = timezone.now() - timedelta(minutes=1)
    values: dict[str, Any] = {"pk": run.pk, "state": "failed", "usage": {"a": 1}, "finished_at": at, "error": {"b": 2}}
    assert end.execute(lease=uuid7(), **values) == 0
    assert end.execute(lease=run.lease_token, **values) == 1
    run.refresh_from_db()
    assert (run.state, run.usage, run.finished_at, run.error, run.lease_token) == (
        "failed",
        {"a": 1},
        at,
        {"b": 2},
        None,
    )


def test_update_row_stores_the_named_fields_only(session: Session) -> None:
    store = UpdateRow(Session, "turns", "title")
    session.turns, session.title, session.message_seq = 3, "Coffee", 7
    assert store.execute(session) == 1
    session.refresh_from_db()
    assert (session.turns, session.title, session.message_seq) == (3, "Coffee", 0)
    assert store.execute(Session(turns=1, title="Nobody's")) == 0


def test_a_statement_is_compiled_once_per_connection(session: Session) -> None:
    built = []

    def build() -> Any:
        built.append(1)
        return Session.objects.filter(**given(Session, "pk"))

    select = Select(build)
    assert [select.instance(pk=session.pk), select.instance(pk=session.pk)] == [session, session]
    assert len(built) == 1


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Asia/Kathmandu")])
@pytest.mark.parametrize("microsecond", [0, 7])
def test_a_time_is_stored_as_by_the_orm(session: Session, zone: tzinfo, microsecond: int) -> None:
    at = datetime(2026, 11, 24, 8, 30, 0, microsecond, tzinfo=zone)
    rows = [_run(session, state=Run.State.COMPLETED, finished_at=at) for _ in range(2)]
    Insert(Run).execute(rows[:1])
    rows[1].save()
    stored = Run.objects.annotate(as_text=Cast("finished_at", TextField())).values_list("as_text", "finished_at")
    assert set(stored) == {(stored[0][0], at)}


def test_a_raw_statement_takes_plain_values(session: Session) -> None:
    table = Session._meta.db_table
    count = RawStatement(lambda: f"SELECT count(*), '100 %%' FROM {table} WHERE title = %s")  # noqa: S608 - our own names
    assert count.row(["Tea"]) == (1, "100 %")
    assert count.row(["Coffee ?"]) == (0, "100 %")
    assert RawStatement(lambda: f"UPDATE {table} SET turns = %s WHERE title = %s").execute([4, "Tea"]) == 1  # noqa: S608
    assert RawStatement(lambda: f"SELECT 1 FROM {table} WHERE title = %s").row(["Coffee"]) is None  # noqa: S608


def test_statements_are_refused_in_a_failed_transaction(session: Session) -> None:
    select = Select(lambda: Session.objects.filter(**given(Session, "pk")))
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            select.instance(pk=session.pk)


def test_row_factory_equals_the_model_constructor(session: Session) -> None:
    at = timezone.now()
    known = {"id": uuid7(), "lease_token": uuid7(), "started_at": at, "request_id": "test"}
    values: dict[str, Any] = {"owner_id": session.owner_id, "session_id": session.pk, "turn": 1, **known}
    fresh = RowFactory(Run)
    first, second = fresh.row(**values), fresh.row(**values)
    assert _columns(first) == _columns(Run(**values))
    assert first.usage is not second.usage
    assert first._state.adding
    with pytest.raises(TypeError, match="Run has no colour"):
        fresh.row(**values, colour="red")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by its statistics")
def test_open_runs_are_found_by_index(session: Session) -> None:
    """Every turn reads them under the lock, where scanning a long session would dominate."""
    _run(session, state=Run.State.COMPLETED).save(force_insert=True)
    _run(session).save(force_insert=True)
    _run(session, state=Run.State.AWAITING_CLIENT_TOOLS).save(force_insert=True)
    assert {run.state for run in open_runs(session)} == {"running", "awaiting_client_tools"}
    with CaptureQueriesContext(connection) as queries:
        open_runs(session)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {queries[0]['sql']}")
        plan = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "run_one_open_per_session" in plan
    assert "run_awaiting_of_session" in plan
    assert plan.count("SEARCH") == 2
