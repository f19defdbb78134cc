"""Forgetting in slices: short transactions, children first, and finished by the sweep after an interruption."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from config.processes.worker import SWEEPS
from gateway.chat import account
from memories import forgetting
from memories.database import batches
from memories.database.access import in_thread
from memories.database.batches import BatchSize, finish
from memories.forgetting import RECEIPT_LIFETIME, Scope, erasure_begin, erasure_slices, forgetting_sweep
from memories.models import AuditEntry, Book, Erasure, Invalidation, Memory, Owner, Revision
from memories.services.erasing import each_page, owner_tables
from tests.conftest import Api
from tests.factories import agent_make, memory_make, owner_make
from tests.pages import client_of, text_of
from tests.shared_rows import shared_rows
from tests.unsliced import forget_memories, forget_owner

pytestmark = pytest.mark.django_db
BATCH_ROWS, ROWS_PER_TABLE = 3, 5


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit transactions to three rows."""
    monkeypatch.setattr(batches, "BatchSize", partial(BatchSize, initial=BATCH_ROWS, maximum=BATCH_ROWS))
    monkeypatch.setattr("memories.database.batches._MIN_ROWS", BATCH_ROWS)
    monkeypatch.setattr(forgetting, "SWEEP_SECONDS", 600.0)  # one sweep finishes it, however slow the machine


def fill(owner: Owner) -> None:
    """Create rows of the owner with arbitrary values in every table."""
    for model in reversed(owner_tables()):
        for number in range(ROWS_PER_TABLE):
            row_make(model, owner, number)


def row_make(model: type[models.Model], owner: Owner, number: int) -> None:
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField):
            continue
        if field.related_model is Owner:
            values[field.name] = owner
        elif field.is_relation:
            related: Any = field.related_model
            rows = related.objects.filter(owner=owner) if related in owner_tables() else related.objects
            empty = field.null and not rows.exists()  # a table of another app
            values[field.name] = None if related is model or empty else rows.order_by("pk")[number % rows.count()]
        elif (field.unique and not field.has_default()) or field.name in {"path_key", "seq", "number", "name"}:
            values[field.name] = _unique_value(field, owner, number)
        elif isinstance(field, models.DateField) and not field.null and not field.has_default():
            values[field.name] = timezone.now() + timedelta(days=number)
        elif not field.has_default() and not field.null and not field.primary_key:
            values[field.name] = _unique_value(field, owner, number)
    model._base_manager.create(**values)


def _unique_value(field: Any, owner: Owner, number: int) -> Any:
    if isinstance(field, models.UUIDField):
        return uuid4()
    if isinstance(field, models.IntegerField):
        return 1000 + number
    if isinstance(field, models.BinaryField):
        return b"1234"
    if isinstance(field, models.JSONField):
        return {}
    return f"{owner.pk}{number}"[: field.max_length][::-1] if field.max_length else "word"


def counts(owner: Owner) -> dict[str, int]:
    """Return the number of the owner's rows per table, without empty tables."""
    rows = {model.__name__: model._base_manager.filter(owner=owner.pk).count() for model in owner_tables()}
    return {name: count for name, count in rows.items() if count}


def rows_counter(*owners: Owner) -> Callable[[], int]:
    """Return a function that counts the owners' rows in all tables, by one statement that is compiled once."""
    tables = [model._base_manager.filter(owner__in=owners).values_list(models.Value(1)) for model in owner_tables()]
    sql, params = tables[0].union(*tables[1:], all=True).query.sql_with_params()

    def count() -> int:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM ({sql}) AS counted", params)  # noqa: S608
            return int(cursor.fetchone()[0])

    return count


def test_every_table_is_erased_before_the_tables_it_refers_to() -> None:
    tables = owner_tables()
    for place, model in enumerate(tables):
        parents = {field.related_model for field in model._meta.concrete_fields if field.is_relation}
        assert not parents & {*tables[:place]}, model


def test_every_table_that_refers_to_an_owners_table_has_an_owner() -> None:
    for model in owner_tables():
        for relation in model._meta.related_objects:
            stays_without = relation.on_delete is models.SET_NULL  # type: ignore[union-attr]
            assert stays_without or relation.related_model in owner_tables(), relation


def test_a_deletion_with_a_lease_far_in_the_future_is_finished_at_once(alice: Owner) -> None:
    memory_make(alice)
    erasure_begin(alice.pk, Scope.ACCOUNT)
    Erasure.objects.update(leased_until=timezone.now() + timedelta(hours=9))
    forgetting_sweep()
    assert not Owner.objects.exists()


def test_the_sweep_finishes_a_deletion_after_a_crash_in_the_last_transaction(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_make(alice)
    monkeypatch.setattr(User, "delete", _exit)
    with pytest.raises(SystemExit):
        finish(erasure_slices(erasure_begin(alice.pk, Scope.ACCOUNT)))
    monkeypatch.undo()
    assert Owner.objects.filter(pk=alice.pk).exists()
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert not Owner.objects.exists()
    assert not User.objects.exists()


def _exit(user: User) -> None:
    raise SystemExit


@contextmanager
def crash_in_batch(at: int) -> Iterator[None]:
    """Let the process end in batch number `at`, before its commit."""
    batch, calls = forgetting._run_batch, iter(range(10_000))

    def crash(*args: Any) -> int:
        if next(calls) == at:
            raise SystemExit
        return batch(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forgetting, "_run_batch", crash)
        with pytest.raises(SystemExit):
            yield


def test_the_next_sweep_finishes_what_a_disconnected_client_started(alice: Owner, small_batches: None) -> None:
    for number in range(10):
        memory_make(alice, f"Likes tea number {number}.")
    work = erasure_slices(erasure_begin(alice.pk, Scope.MEMORIES, book="main"))
    while Memory.objects.count() == 10:
        next(work)
    work.close()
    assert Memory.objects.count() == 10 - BATCH_ROWS
    epoch = Book.objects.get().epoch
    forgetting_sweep()
    assert not Memory.objects.exists()
    assert Book.objects.get().epoch == epoch  # incremented only once
    assert AuditEntry.objects.get(action="forget").count == 10
    assert forgetting_sweep in SWEEPS


def test_a_failed_forgetting_does_not_block_the_next_sweep(alice: Owner, charlie: Owner) -> None:
    for owner in (alice, charlie):
        erasure_begin(owner.pk, Scope.OWNER)
    Erasure.objects.filter(owner_id=alice.pk).update(leased_until=timezone.now() - timedelta(minutes=2))
    Erasure.objects.filter(owner_id=charlie.pk).update(leased_until=timezone.now() - timedelta(minutes=1))
    with crash_in_batch(0):
        forgetting_sweep()
    forgetting_sweep()
    assert list(Owner.objects.all()) == [alice]


def test_the_receipt_of_a_forgetting_is_kept_for_a_day(alice: Owner) -> None:
    forget_owner(alice)
    forgetting_sweep()
    assert Erasure.objects.exists()
    Erasure.objects.update(finished_at=timezone.now() - RECEIPT_LIFETIME)
    forgetting_sweep()
    assert not Erasure.objects.exists()


def test_the_page_shows_the_progress_of_a_long_deletion(
    alice: Owner, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        memory_make(alice, f"Likes tea number {number}.")
    browser = client_of(alice)
    monkeypatch.setattr(account, "DELETE_SECONDS", 0)
    answer = browser.post("/account/delete/", {"line": "delete everything", "password": "alice knows it"})
    html = answer.content.decode()
    address = f"/account/deleting/{Erasure.objects.get().pk}/"
    assert f'hx-get="{address}"' in html
    assert "Everything is being deleted. 0 entries deleted so far." in text_of(html)
    assert not User.objects.get(username="alice").is_active
    forgetting_sweep()
    html = browser.get(address).content.decode()
    assert "hx-get" not in html
    assert "Everything is deleted." in text_of(html)
    assert "memories 4" in text_of(html)
    assert not User.objects.filter(username="alice").exists()


def test_a_busy_database_leaves_the_deletion_to_the_sweep(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*args: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(account, "run_slices_within", busy)
    answer = client_of(alice).post("/account/delete/", {"line": "delete everything", "password": "alice knows it"})
    assert "Everything is being deleted." in text_of(answer.content.decode())
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert not Owner.objects.exists()


def test_only_an_account_deletion_has_a_progress_page(alice: Owner) -> None:
    erasure = erasure_begin(alice.pk, Scope.MEMORIES, book="main")
    for key in (erasure.pk, uuid4()):
        assert Client().get(f"/account/deleting/{key}/").status_code == 404


async def test_the_api_returns_a_receipt_of_a_forgetting_in_slices(
    alice_api: Api, alice: Owner, small_batches: None
) -> None:
    for number in range(7):
        await in_thread(memory_make, alice, f"Likes tea number {number}.")
    response = await alice_api.raw("DELETE", "/api/account/memories")
    receipt = response.json()
    assert (receipt["erased"]["memories"], receipt["erased"]["revisions"], receipt["books"]) == (7, 7, ["main"])


async def test_a_missing_book_is_neither_exported_nor_forgotten(alice_api: Api, alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.", book="work")
    for method, path in (("GET", "/api/export"), ("DELETE", "/api/account/memories")):
        status, answer = await alice_api.call(method, f"{path}?book=wrok")
        assert (status, answer["error"]["message"]) == (404, "There is no such book.")
    assert not await in_thread(AuditEntry.objects.filter(action="export").exists)
    assert not await in_thread(Erasure.objects.exists)
    for path in ("/api/account/memories?book=main", "/api/account/memories?book=work"):
        assert (await alice_api.call("DELETE", path))[0] == 200, "main exists before its first use"


def test_pages_are_found_with_few_queries_and_filtered_again(alice: Owner) -> None:
    rows = [memory_make(alice, f"Likes tea number {number}.").pk for number in range(30)]
    changed: list[Any] = []
    page = each_page(
        Memory.objects.filter(owner=alice, pinned=False),
        lambda found: changed.extend(found.values_list("pk", flat=True)),
    )
    with CaptureQueriesContext(connection) as queries:
        assert page(10) == 10
        Memory.objects.filter(pk=rows[-1]).update(pinned=True)
        assert [page(10), page(10), page(10)] == [10, 10, 0]
    assert len([query for query in queries if "ORDER BY" in query["sql"]]) == 2  # each reads all rows of the owner
    assert sorted(changed) == sorted(rows[:-1])


# ---- last, since their rows stay until the module ends --------------------------------------------------------------

Filled = tuple[Owner, Owner]


@pytest.fixture(scope="module")
def all_filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Filled]:
    def make() -> Filled:
        agent_make()
        owners = owner_make("alice"), owner_make("charlie")
        for owner in owners:
            fill(owner)
        return owners

    with shared_rows(django_db_blocker, make) as made:
        yield made


@pytest.fixture
def filled(all_filled: Filled, db: None) -> Filled:
    """Alice and Charlie, with rows in every table."""
    return all_filled


def test_an_owner_is_erased_in_small_transactions(filled: Filled, small_batches: None) -> None:
    alice, charlie = filled
    end_user = Owner.objects.create(parent=alice, namespace="app", external_id="u1")
    fill(end_user)
    assert {*counts(alice)} == {model.__name__ for model in owner_tables()}
    charlies = counts(charlie)
    count_rows = rows_counter(alice, end_user)
    total = remaining = count_rows()
    assert total == sum([*counts(alice).values(), *counts(end_user).values()])
    depth = len(connection.savepoint_ids)
    work = erasure_slices(erasure_begin(alice.pk, Scope.OWNER))
    slices = 0
    for _ in work:
        now = count_rows()
        assert remaining - now <= BATCH_ROWS
        assert len(connection.savepoint_ids) == depth
        remaining, slices = now, slices + 1
    assert slices >= total / BATCH_ROWS
    assert remaining == 0  # nothing was left for the last transaction
    assert (counts(alice), counts(end_user), counts(charlie)) == ({}, {}, charlies)
    assert list(Owner.objects.all()) == [charlie]
    invalidated = Invalidation.objects.filter(kind="owner").values_list("owner_id", flat=True)
    assert {alice.pk, end_user.pk} <= {*invalidated}


@pytest.mark.parametrize("crashed_at", [0, 1, 2, 5, 20, 40, 60])
def test_the_sweep_finishes_a_deletion_after_a_crash(filled: Filled, small_batches: None, crashed_at: int) -> None:
    alice, charlie = filled
    charlies, name = counts(charlie), str(alice)
    with crash_in_batch(crashed_at):
        finish(erasure_slices(erasure_begin(alice.pk, Scope.ACCOUNT)))
    assert counts(alice)
    assert not User.objects.get(username=name).is_active
    forgetting_sweep()
    assert counts(alice)  # another process may still hold the lease
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert (counts(alice), counts(charlie)) == ({}, charlies)
    assert not Owner.objects.filter(pk=alice.pk).exists()
    assert not User.objects.filter(username=name).exists()
    (entry,) = AuditEntry.objects.filter(action="forget")
    assert (entry.kind, entry.owner, entry.owner_id) == ("owner", name, str(alice.pk))
    erasure = Erasure.objects.get()
    assert (erasure.owner_id, erasure.actor, erasure.finished_at is not None) == (None, "", True)
    assert erasure.erased["memories"] == ROWS_PER_TABLE


def test_forgetting_again_finishes_an_interrupted_forgetting(filled: Filled, small_batches: None) -> None:
    alice = filled[0]
    with crash_in_batch(12):
        forget_memories(alice.pk)
    assert Revision.objects.filter(owner=alice).exists()
    forget_memories(alice.pk)
    assert not Memory.objects.filter(owner=alice).exists()
    assert not Revision.objects.filter(owner=alice).exists()
