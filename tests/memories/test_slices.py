"""Large undos, clears and imports run in slices, with a transaction each, so that others can write in between."""

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from memories.database import access, batches
from memories.database.access import in_write_lane
from memories.database.batches import BatchSize, Slices, in_slices, in_slices_to_the_end
from memories.errors import Conflict
from memories.history import undo
from memories.imports import book_state, formats, running
from memories.imports.files import Upload
from memories.imports.running import ImportRequest, import_slices
from memories.models import Book, ChangeSet, Memory, Owner
from memories.services import book_limits_set
from reviews.consolidation import clear
from reviews.models import ReviewRun
from tests.factories import agent_make, key_make, memory_make, review_make, session_make
from tests.pages import client_of
from tests.shutdown import close_lanes
from tests.unsliced import import_text
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
ROWS, COUNT = 2, 7


@pytest.fixture(autouse=True)
def lanes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use real database threads, and slices of two memories."""
    settings.DB_THREADS = 1
    monkeypatch.setattr(undo, "ATOMIC", ROWS)
    monkeypatch.setattr(clear, "FIRST_BATCH", ROWS)
    for module in (undo, batches):
        monkeypatch.setattr(module, "BatchSize", partial(BatchSize, initial=ROWS, maximum=ROWS))
    monkeypatch.setattr("memories.database.batches._MIN_ROWS", ROWS)
    yield
    close_lanes()


def big_review_make(owner: Owner) -> ReviewRun:
    """Create a review that saved COUNT memories."""
    book_limits_set({"main": (0, 0)})
    lines = "\n".join(json.dumps({"content": f"Likes tea number {number}."}) for number in range(COUNT))
    (imported,) = import_text(owner.pk, lines).change_sets
    numbers = Memory.objects.filter(owner=owner).order_by("number").values_list("number", flat=True)
    writes = [
        {"action": "add", "after": "…", "state": "applied", "index": index, "memory_id": str(number)}
        for index, number in enumerate(numbers)
    ]
    review = review_make(Book.objects.get(owner=owner), change_set=imported, writes=writes)
    ChangeSet.objects.filter(pk=imported).update(kind=ChangeSet.Kind.REVIEW, review_id=review.pk)
    return review


class Watch:
    """Records the order of slices and another owner's write, which is queued during the first slice."""

    def __init__(self, other: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, bool]] = []
        self._other = threading.Thread(target=in_write_lane, args=(self._write, other))
        self._queued = threading.Event()
        self._submit = access._write_lane.submit
        monkeypatch.setattr(access._write_lane, "submit", self._watched_submit)

    def _watched_submit(self, *args: Any, **options: Any) -> Any:
        # The length of the queue is no indication, since the gateway queues writes itself (`write_later`).
        job = self._submit(*args, **options)
        if threading.current_thread() is self._other:
            self._queued.set()
        return job

    def _write(self, owner: Owner) -> None:
        memory_make(owner, "Likes rum.")
        self._note("other write")

    def _note(self, what: str) -> None:
        self.seen.append((what, threading.current_thread().name.startswith("daybook-db")))

    def slice(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = Memory.objects.filter(deleted_at=None).count()
        result = work(*args, **kwargs)
        assert before - Memory.objects.filter(deleted_at=None).count() <= ROWS
        self._note("slice")
        if self._other.ident is None:
            self._other.start()
            assert self._queued.wait(10)
        return result

    def join(self) -> None:
        self._other.join(10)


def undo_by_api(client: Client, path: str) -> Any:
    _, plain = key_make(Owner.objects.get(user__username="alice"))
    return client.post(path, data="{}", content_type="application/json", headers={"authorization": f"Bearer {plain}"})


def undo_change_set(client: Client, review: ReviewRun) -> Any:
    return undo_by_api(client, f"/api/changes/{review.change_set}/undo")


def undo_review(client: Client, review: ReviewRun) -> Any:
    return undo_by_api(client, f"/api/reviews/{review.pk}/undo")


def undo_review_in_the_admin(client: Client, review: ReviewRun) -> Any:
    address = reverse("admin:reviews_reviewrun_object_action", args=[review.pk])
    return client.post(address, {"verb": "undo"})


def undo_change_set_in_the_admin(client: Client, review: ReviewRun) -> Any:
    address = reverse("admin:memories_changeset_object_action", args=[review.change_set])
    return client.post(address, {"verb": "undo"})


def undo_many_in_the_admin(client: Client, review: ReviewRun) -> Any:
    chosen = {"action": "undo_reviews", "_selected_action": [str(review.pk)]}
    return client.post(reverse("admin:reviews_reviewrun_changelist"), chosen)


@pytest.mark.parametrize(
    "undo_request",
    [
        undo_change_set,
        undo_review,
        undo_review_in_the_admin,
        undo_change_set_in_the_admin,
        undo_many_in_the_admin,
    ],
)
def test_another_owner_can_write_between_two_slices_of_an_undo(
    alice: Owner, bob: Owner, charlie: Owner, undo_request: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    review = big_review_make(alice)
    watch = Watch(charlie, monkeypatch)
    revert = undo._Undoing.revert
    monkeypatch.setattr(undo._Undoing, "revert", lambda *args, **how: watch.slice(revert, *args, **how))
    client = client_of(bob)
    assert undo_request(client, review).status_code in {200, 302}
    watch.join()
    slices = [("slice", True)] * 4
    assert watch.seen == [slices[0], ("other write", True), *slices[1:]]
    assert list(Memory.objects.filter(deleted_at=None).values_list("content", flat=True)) == ["Likes rum."]
    assert ReviewRun.objects.get().state == "undone"


def test_another_owner_can_write_between_two_slices_of_a_clear(
    alice: Owner, charlie: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    big_review_make(alice)
    session = session_make(alice, agent_make())
    code = clear.clear_code_create(Book.objects.get(owner=alice))
    watch = Watch(charlie, monkeypatch)
    delete = clear._delete_memories
    monkeypatch.setattr(clear, "_delete_memories", lambda *args, **how: watch.slice(delete, *args, **how))
    _, plain = key_make(alice)
    answer = Client().post(
        f"/api/sessions/{session.pk}/turns",
        data=json.dumps({"content": f"/memory clear confirm {code}"}),
        content_type="application/json",
        headers={"authorization": f"Bearer {plain}"},
    )
    assert answer.status_code == 200, answer.content
    watch.join()
    assert [what for what, _ in watch.seen] == ["slice", "other write", *["slice"] * 4]
    assert all(in_lane_thread for _, in_lane_thread in watch.seen)
    assert list(Memory.objects.filter(deleted_at=None).values_list("content", flat=True)) == ["Likes rum."]


@pytest.mark.parametrize("preview", [False, True])
async def test_an_import_reads_and_scans_outside_the_write_thread(
    alice: Owner, monkeypatch: pytest.MonkeyPatch, preview: bool
) -> None:
    threads: dict[str, set[str]] = {}

    def watched(module: Any, name: str) -> None:
        function = getattr(module, name)

        def watch(*args: Any, **kwargs: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread().name.rpartition("_")[0])
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, watch)

    watched(formats, "_read_file")
    watched(book_state, "check_scan")
    watched(running, "_write")
    watched(running, "book_changed")
    lines = "\n".join(json.dumps({"content": f"Likes tea number {number}."}) for number in range(COUNT))
    request = ImportRequest(upload=Upload.of(lines.encode(), "memories.jsonl"), preview=preview)
    report = await in_slices(import_slices(alice.pk, request, actor="user:1"))
    assert report.new == COUNT
    reading = {"_read_file": {"daybook-read"}, "check_scan": {"daybook-read"}}
    assert threads == reading | ({} if preview else {"_write": {"daybook-db"}, "book_changed": {"daybook-db"}})


async def test_work_in_slices_to_the_end_survives_its_clients_disconnect() -> None:
    done: list[int] = []
    go = threading.Event()

    def work() -> Slices[None]:
        for number in range(3):
            assert number == 0 or go.wait(10)
            done.append(number)
            yield

    task = asyncio.create_task(in_slices_to_the_end(work()))
    await eventually_async(lambda: done, within=10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [0]
    go.set()
    await eventually_async(lambda: done == [0, 1, 2], within=10)


@pytest.mark.parametrize(("error", "logged"), [(Conflict("Busy."), []), (ValueError("wrong"), ["daybook.database"])])
async def test_only_a_failure_of_work_whose_client_is_gone_is_logged(
    error: Exception, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    go, ended = threading.Event(), threading.Event()

    def work() -> Slices[None]:
        yield
        assert go.wait(10)
        ended.set()
        raise error

    task = asyncio.create_task(in_slices_to_the_end(work()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await eventually_async(ended.is_set, within=10)
    del task
    await asyncio.sleep(0.05)
    gc.collect()
    assert [record.name for record in caplog.records if record.levelname == "ERROR"] == logged
