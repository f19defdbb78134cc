"""Forgetting in slices: short transactions, children first, finished by the sweep when it was interrupted."""

from collections.abc import Callable
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

from config.processes.worker import SWEEPS
from gateway.chat import account
from memories import forgetting
from memories.database.access import in_thread
from memories.database.batches import BatchSize, finish
from memories.forgetting import RECEIPT_LIFETIME, Scope, erasure_begin, erasure_slices, forgetting_sweep
from memories.models import AuditEntry, Book, Erasure, Invalidation, Memory, Owner, Revision
from memories.services.erasing import each_page, owner_tables
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.in_one_go import forget_memories, forget_owner
from tests.pages import client_of, text_of

pytestmark = pytest.mark.django_db
ROWS, EACH = 3, 5


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of three rows."""
    monkeypatch.setattr(forgetting, "BatchSize", partial(BatchSize, first=ROWS, most=ROWS))
    monkeypatch.setattr("memories.database.batches._MIN_ROWS", ROWS)
    monkeypatch.setattr(forgetting, "SWEEP_SECONDS", 600.0)  # one sweep finishes it, however slow the machine


def fill(owner: Owner) -> None:
    """Rows of an owner in every table that there is, whatever they say."""
    agent_make()
    for model in reversed(owner_tables()):
        for number in range(EACH):
            row_make(model, owner, number)


def row_make(model: type[models.Model], owner: Owner, number: int) -> None:
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField):
            continue
        if field.related_model is Owner:
            values[field.name] = owner
        elif field.is_relation:
            theirs: Any = field.related_model
            rows = theirs.objects.filter(owner=owner) if theirs in owner_tables() else theirs.objects
            empty = field.null and not rows.exists()  # no table of ours
            values[field.name] = None if theirs is model or empty else rows.order_by("pk")[number % rows.count()]
        elif (field.unique and not field.has_default()) or field.name in {"path_key", "seq", "number", "name"}:
            values[field.name] = _different(field, owner, number)
        elif isinstance(field, models.DateField) and not field.null and not field.has_default():
            values[field.name] = timezone.now() + timedelta(days=number)
        elif not field.has_default() and not field.null and not field.primary_key:
            values[field.name] = _different(field, owner, number)
    model._base_manager.create(**values)


def _different(field: Any, owner: Owner, number: int) -> Any:
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
    """How many rows an owner has, by table; of the tables that have any."""
    rows = {model.__name__: model._base_manager.filter(owner=owner.pk).count() for model in owner_tables()}
    return {name: count for name, count in rows.items() if count}


def test_every_table_of_an_owner_is_erased_before_what_it_refers_to() -> None:
    tables = owner_tables()
    for place, model in enumerate(tables):
        parents = {field.related_model for field in model._meta.concrete_fields if field.is_relation}
        assert not parents & {*tables[:place]}, model


def test_what_refers_to_something_of_an_owner_names_the_owner_too() -> None:
    for model in owner_tables():
        for relation in model._meta.related_objects:
            stays_without = relation.on_delete is models.SET_NULL  # type: ignore[union-attr]
            assert stays_without or relation.related_model in owner_tables(), relation


def test_an_owner_goes_in_many_transactions_of_few_rows(alice: Owner, charlie: Owner, small: None) -> None:
    end_user = Owner.objects.create(parent=alice, namespace="app", external_id="u1")
    for owner in (alice, end_user, charlie):
        fill(owner)
    assert {*counts(alice)} == {model.__name__ for model in owner_tables()}
    kept = counts(charlie)
    left = sum([*counts(alice).values(), *counts(end_user).values()])
    most, depth = left, len(connection.savepoint_ids)
    work = erasure_slices(erasure_begin(alice.pk, Scope.OWNER))
    slices = 0
    for _ in work:
        now = sum([*counts(alice).values(), *counts(end_user).values()])
        assert left - now <= ROWS
        assert len(connection.savepoint_ids) == depth
        left, slices = now, slices + 1
    assert slices >= most / ROWS
    assert left == 0  # and nothing was left for the last transaction
    assert (counts(alice), counts(end_user), counts(charlie)) == ({}, {}, kept)
    assert list(Owner.objects.all()) == [charlie]
    told = Invalidation.objects.filter(kind="owner").values_list("owner_id", flat=True)
    assert {alice.pk, end_user.pk} <= {*told}


@pytest.mark.parametrize("died_at", [0, 1, 2, 5, 20, 40, 60])
def test_a_deletion_whose_process_died_is_finished_by_the_sweep(
    alice: Owner, charlie: Owner, small: None, monkeypatch: pytest.MonkeyPatch, died_at: int
) -> None:
    fill(alice), fill(charlie)
    kept, name = counts(charlie), str(alice)
    at = _dies(monkeypatch, died_at)
    with pytest.raises(SystemExit):
        finish(erasure_slices(erasure_begin(alice.pk, Scope.ACCOUNT)))
    monkeypatch.setattr(forgetting, "_run_batch", at)
    assert counts(alice)
    assert not User.objects.get(username=name).is_active
    forgetting_sweep()
    assert counts(alice)  # another process may be at it
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert (counts(alice), counts(charlie)) == ({}, kept)
    assert not Owner.objects.filter(pk=alice.pk).exists()
    assert not User.objects.filter(username=name).exists()
    (entry,) = AuditEntry.objects.filter(action="forget")
    assert (entry.kind, entry.owner, entry.owner_id) == ("owner", name, str(alice.pk))
    erasure = Erasure.objects.get()
    assert (erasure.owner_id, erasure.actor, erasure.finished_at is not None) == (None, "", True)
    assert erasure.erased["memories"] == EACH


def test_a_deletion_whose_process_died_while_the_clock_was_ahead_is_finished_now(alice: Owner) -> None:
    memory_make(alice)
    erasure_begin(alice.pk, Scope.ACCOUNT)
    Erasure.objects.update(leased_until=timezone.now() + timedelta(hours=9))
    forgetting_sweep()
    assert not Owner.objects.exists()


def test_a_process_that_dies_in_the_last_transaction_leaves_it_to_the_sweep(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_make(alice)
    monkeypatch.setattr(User, "delete", _killed)
    with pytest.raises(SystemExit):
        finish(erasure_slices(erasure_begin(alice.pk, Scope.ACCOUNT)))
    monkeypatch.undo()
    assert Owner.objects.filter(pk=alice.pk).exists()
    Erasure.objects.update(leased_until=timezone.now())
    forgetting_sweep()
    assert not Owner.objects.exists()
    assert not User.objects.exists()


def _killed(user: User) -> None:
    raise SystemExit


def _dies(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[..., int]:
    """The process dies in the transaction number `at`, before it is committed. Returns what it was."""
    batch, calls = forgetting._run_batch, iter(range(10_000))

    def dying(*args: Any) -> int:
        if next(calls) == at:
            raise SystemExit
        return batch(*args)

    monkeypatch.setattr(forgetting, "_run_batch", dying)
    return batch


def test_asking_again_erases_what_an_interrupted_forgetting_left(
    alice: Owner, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(alice)
    batch = _dies(monkeypatch, 12)
    with pytest.raises(SystemExit):
        forget_memories(alice.pk)
    monkeypatch.setattr(forgetting, "_run_batch", batch)
    assert Revision.objects.exists()
    forget_memories(alice.pk)
    assert not Memory.objects.exists()
    assert not Revision.objects.exists()


def test_what_a_client_leaves_half_done_is_finished_by_the_next_sweep(alice: Owner, small: None) -> None:
    for number in range(10):
        memory_make(alice, f"Likes tea number {number}.")
    work = erasure_slices(erasure_begin(alice.pk, Scope.MEMORIES, book="main"))
    while Memory.objects.count() == 10:
        next(work)
    work.close()
    assert Memory.objects.count() == 10 - ROWS
    epoch = Book.objects.get().epoch
    forgetting_sweep()
    assert not Memory.objects.exists()
    assert Book.objects.get().epoch == epoch  # raised once
    assert AuditEntry.objects.get(action="forget").count == 10
    assert forgetting_sweep in SWEEPS


def test_a_forgetting_that_fails_does_not_hold_up_the_next_sweep(
    alice: Owner, charlie: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner in (alice, charlie):
        erasure_begin(owner.pk, Scope.OWNER)
    Erasure.objects.filter(owner_id=alice.pk).update(leased_until=timezone.now() - timedelta(minutes=2))
    Erasure.objects.filter(owner_id=charlie.pk).update(leased_until=timezone.now() - timedelta(minutes=1))
    batch = _dies(monkeypatch, 0)
    with pytest.raises(SystemExit):
        forgetting_sweep()
    monkeypatch.setattr(forgetting, "_run_batch", batch)
    forgetting_sweep()
    assert list(Owner.objects.all()) == [alice]


def test_numbers_of_a_forgetting_are_kept_for_a_day(alice: Owner) -> None:
    forget_owner(alice)
    forgetting_sweep()
    assert Erasure.objects.exists()
    Erasure.objects.update(finished_at=timezone.now() - RECEIPT_LIFETIME)
    forgetting_sweep()
    assert not Erasure.objects.exists()


def test_the_page_shows_how_far_a_long_deletion_is_until_the_sweep_has_finished_it(
    alice: Owner, small: None, monkeypatch: pytest.MonkeyPatch
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


def test_the_address_of_a_forgetting_of_memories_shows_nothing(alice: Owner) -> None:
    erasure = erasure_begin(alice.pk, Scope.MEMORIES, book="main")
    for key in (erasure.pk, uuid4()):
        assert Client().get(f"/account/deleting/{key}/").status_code == 404


async def test_the_api_forgets_in_slices_with_the_same_receipt(alice_api: Api, alice: Owner, small: None) -> None:
    for number in range(7):
        await in_thread(memory_make, alice, f"Likes tea number {number}.")
    response = await alice_api.raw("DELETE", "/api/account/memories")
    receipt = response.json()
    assert (receipt["erased"]["memories"], receipt["erased"]["revisions"], receipt["books"]) == (7, 7, ["main"])


async def test_a_book_that_is_not_there_is_neither_exported_nor_forgotten(alice_api: Api, alice: Owner) -> None:
    await in_thread(memory_make, alice, "Likes tea.", book="work")
    for method, path in (("GET", "/api/export"), ("DELETE", "/api/account/memories")):
        status, answer = await alice_api.call(method, f"{path}?book=wrok")
        assert (status, answer["error"]["message"]) == (404, "There is no such book.")
    assert not await in_thread(AuditEntry.objects.filter(action="export").exists)
    assert not await in_thread(Erasure.objects.exists)
    for path in ("/api/account/memories?book=main", "/api/account/memories?book=work"):
        assert (await alice_api.call("DELETE", path))[0] == 200, "main is there before its first use"


@pytest.mark.django_db
def test_pages_of_many_rows_are_found_in_few_looks_and_changed_as_they_are_then(alice: Owner) -> None:
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
