"""Large imports and exports: short transactions, few queries, and undo after an interruption"""

import asyncio
import json
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from psycopg.errors import DiskFull

from memories import selectors
from memories.api import export, transfer
from memories.api.export import LONG, export_lines, in_chunks
from memories.database import batches
from memories.database.access import disk_full_recently, in_thread
from memories.database.batches import BatchSize, finish, in_slices
from memories.errors import Conflict, InvalidRequest, Overloaded, TooLarge
from memories.forgetting import erasure_begin, erasure_slices
from memories.history.undo import change_set_get
from memories.ids import parse_uuid
from memories.imports.files import Upload
from memories.imports.formats import read_upload
from memories.imports.running import ImportRequest, import_slices
from memories.limits import IMPORT_LINE_LENGTH, IMPORT_LINES, IMPORT_MESSAGES
from memories.models import Book, ChangeSet, Erasure, Memory, Notification, Owner, Revision, WriteOrigin
from memories.selectors import PAGE
from memories.services import Source, book_limits_set, writing
from tests.conftest import Api
from tests.factories import memory_make
from tests.memories.import_samples import edited_line
from tests.unsliced import forget_memories, import_text, undo_changes


def lines(count: int, **fields: Any) -> str:
    return "\n".join(json.dumps({"content": f"Likes tea number {number}.", **fields}) for number in range(count))


@pytest.fixture(autouse=True)
def no_budget(db: None) -> None:
    book_limits_set({"main": (0, 0), "new": (0, 0)})


@pytest.fixture
def fast_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine that is so fast that batches only grow: 50 rows, 100, 200, 400, 500."""
    monkeypatch.setattr(batches, "SLICE_SECONDS", 1_000)


def test_a_large_import_is_one_change_set_with_one_notification(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_NAMED_MEMORIES", 100)
    memory_make(alice, "Likes rum.")
    generation = Book.objects.get().generation
    Notification.objects.all().delete()
    report = import_text(alice.pk, lines(200))
    assert (report.new, len(report.change_sets)) == (200, 1)
    imported = Memory.objects.exclude(content="Likes rum.")
    assert sorted(imported.values_list("number", flat=True)) == list(range(2, 202))
    assert Revision.objects.filter(change_set=report.change_sets[0], action="add").count() == 200
    assert Book.objects.get().generation > generation
    assert Notification.objects.get().memory_numbers == []  # too many to list, so clients reload everything
    undone = undo_changes(
        change_set_get(alice.pk, parse_uuid(report.change_sets[0])),
        Source(actor="user:1", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO),
    )
    assert len(undone.undone) == 200
    assert Memory.objects.get(deleted_at=None).content == "Likes rum."


def test_an_import_needs_few_queries_per_line(alice: Owner, fast_machine: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        import_text(alice.pk, lines(400))
    assert len(queries) < 120
    with CaptureQueriesContext(connection) as again:
        report = import_text(alice.pk, lines(400))
    assert (report.known, report.change_sets) == (400, [])
    assert len(again) < 40


def test_a_preview_writes_nothing(alice: Owner) -> None:
    with CaptureQueriesContext(connection) as queries:
        report = import_text(alice.pk, lines(100, book="new"), preview=True)
    assert (report.new, report.written) == (100, False)
    assert {query["sql"].split()[0] for query in queries} == {"SELECT"}
    assert not Book.objects.exists()


def test_a_preview_has_the_same_counts_as_the_import(alice: Owner) -> None:
    book_limits_set({"main": (200, 0)})
    changed = edited_line(memory_make(alice, "Likes tea number 3."), "Likes coffee.")
    text = "\n".join([lines(20), lines(5), changed, json.dumps({"content": "x", "keywords": ["w"] * 101})])
    preview = import_text(alice.pk, text, preview=True)
    assert preview.counts() == import_text(alice.pk, text).counts()
    assert min(preview.new, preview.known, preview.changed, preview.refused) > 0


def test_a_memory_changed_by_two_lines_has_both_revisions(alice: Owner) -> None:
    memory = memory_make(alice, "Likes tea.")
    text = "\n".join(edited_line(memory, content) for content in ("Likes rum.", "Likes gin."))
    assert import_text(alice.pk, text).changed == 2
    memory = Memory.objects.get()
    assert (memory.content, memory.version) == ("Likes gin.", 3)
    assert list(memory.revisions.order_by("version").values_list("version", flat=True)) == [1, 2, 3]


@pytest.mark.parametrize("preview", [True, False])
def test_edited_lines_may_give_a_memory_the_text_that_another_one_had(alice: Owner, preview: bool) -> None:
    tea, rum = memory_make(alice, "Likes tea."), memory_make(alice, "Likes rum.")
    text = "\n".join([edited_line(tea, "Likes rum."), edited_line(rum, "Likes gin."), edited_line(rum, "Likes rum.")])
    report = import_text(alice.pk, text, preview=preview)
    assert (report.changed, report.known) == (2, 1)
    if not preview:
        assert [memory.content for memory in Memory.objects.order_by("number")] == ["Likes rum.", "Likes gin."]


def test_entries_imported_before_a_failure_remain_in_a_change_set(alice: Owner, fast_machine: None) -> None:
    def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and "memories_memory" in sql and Memory.objects.count() >= 100:
            raise OperationalError("disk full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(Overloaded) as failed:
        import_text(alice.pk, lines(300))
    stored = Memory.objects.count()
    assert 0 < stored < 300
    assert (failed.value.details["new"], failed.value.details["line"]) == (stored, stored + 1)
    assert Notification.objects.count() == 1
    (change_set,) = failed.value.details["change_sets"]
    assert Revision.objects.filter(change_set=change_set).count() == stored
    assert import_text(alice.pk, lines(300)).new == 300 - stored


def test_an_import_that_fills_the_disk_says_so(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.database.access._full_at", -1000.0)

    def fail(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and "memories_memory" in sql:
            raise OperationalError("no space") from DiskFull()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(Overloaded, match="disk of the database is full") as failed:
        import_text(alice.pk, lines(3))
    assert (failed.value.details["line"], failed.value.details["new"]) == (1, 0)
    assert failed.value.details["retry_after"] > 0
    assert disk_full_recently()


async def test_a_disconnected_client_stops_the_import_at_the_next_slice(alice: Owner) -> None:
    reached = asyncio.Event()
    upload = Upload.of(lines(2_000).encode())

    def watched() -> Any:
        for _ in import_slices(alice.pk, ImportRequest(upload=upload), actor="user:1"):
            if Memory.objects.exists():
                reached.set()
            yield

    async def watch() -> None:
        await in_slices(watched())

    task = asyncio.create_task(watch())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    count = await in_thread(Memory.objects.count)
    assert 0 < count < 2_000
    assert await in_thread(Notification.objects.count) == 1


def test_forgetting_everything_stops_a_running_import(alice: Owner) -> None:
    request = ImportRequest(upload=Upload.of(lines(2_000).encode()))
    work = import_slices(alice.pk, request, actor="user:1")
    while not Memory.objects.exists():
        next(work)
    forget_memories(alice.pk)
    with pytest.raises(Conflict) as ended:
        finish(work)
    assert "was cleared or forgotten" in str(ended.value)
    assert not Memory.objects.exists()


def test_an_import_that_began_during_a_forgetting_ends_with_it(alice: Owner, transactional_db: None) -> None:
    erasure = erasure_begin(alice.pk, Erasure.Scope.MEMORIES)
    memory_make(alice, "Likes rum.")
    forgetting = erasure_slices(erasure)
    while not erasure.stopped:
        next(forgetting)
    work = import_slices(alice.pk, ImportRequest(upload=Upload.of(lines(2_000).encode())), actor="user:1")
    while not ChangeSet.objects.filter(kind=ChangeSet.Kind.IMPORT).exists():
        next(work)
    finish(forgetting)  # its change set, too
    with pytest.raises(Conflict) as ended:
        finish(work)
    assert "was cleared or forgotten" in str(ended.value)
    assert not Memory.objects.exists()


def test_the_batch_size_adapts_to_the_time_a_batch_takes() -> None:
    size = BatchSize(initial=50, maximum=500)
    size.adapt(0.0001)
    assert size.rows == 100
    size.adapt(10)
    assert size.rows == 10


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}\n" * (IMPORT_LINES + IMPORT_MESSAGES + 2), TooLarge),
        ('{"content": "' + "x" * IMPORT_LINE_LENGTH + '"}', InvalidRequest),
        ("[" * 5000 + "]" * 5000, InvalidRequest),
        ('{"content": "x", "id": ' + "9" * 5000 + "}", InvalidRequest),
        ("\n".join(json.dumps({"content": "x", "book": f"b{number}"}) for number in range(101)), Conflict),
    ],
    ids=["lines", "line", "depth", "digits", "books"],
)
def test_an_import_beyond_a_limit_is_refused_before_anything_is_written(
    alice: Owner, text: str, error: type[Exception]
) -> None:
    for preview in (True, False):
        with pytest.raises(error):
            import_text(alice.pk, text, actor="user:1", preview=preview)
    assert not Book.objects.exists()


def test_an_export_with_more_messages_than_an_import_has_memories_can_be_imported(alice: Owner) -> None:
    messages = '{"type": "message", "content": "hello"}\n' * (IMPORT_LINES + 1)
    import_text(alice.pk, messages + '{"content": "Likes tea."}')
    assert [memory.content for memory in Memory.objects.all()] == ["Likes tea."]


LONG_TEXT = "long text " * 100_000


def test_long_lines_that_are_not_memories_are_ignored(alice: Owner) -> None:
    """An export has a person's messages, which may be longer than any memory."""
    rows = [
        {"type": "message", "content": LONG_TEXT},
        {"content": "Likes tea."},
        {"type": "reasoning", "content": LONG_TEXT},
    ]
    report = import_text(alice.pk, "\n".join(map(json.dumps, rows)))
    assert (report.new, [memory.content for memory in Memory.objects.all()]) == (1, ["Likes tea."])


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"type": "memory", "content": LONG_TEXT}),
        json.dumps({"content": LONG_TEXT, "type": "message"}),  # only the beginning is examined
        json.dumps({"type": "message", "content": LONG_TEXT})[:-1],
    ],
    ids=["memory", "type at the end", "cut off"],
)
def test_other_long_lines_are_refused(alice: Owner, line: str) -> None:
    with pytest.raises(InvalidRequest, match="Line 2 has more than 200000 characters"):
        import_text(alice.pk, f'{{"content": "Likes tea."}}\n{line}')


async def test_the_api_imports_what_it_exports(alice: Owner, alice_api: Api, charlie_api: Api) -> None:
    response = await alice_api.client.post(
        "/api/import", data=lines(30).encode(), content_type="application/x-ndjson", headers=alice_api.headers
    )
    assert response.json()["new"] == 30
    exported = await alice_api.raw("GET", "/api/export")
    assert exported.streaming
    text = b"".join([chunk async for chunk in exported.streaming_content]).decode()
    kinds = [json.loads(line)["type"] for line in text.splitlines()]
    assert (kinds.count("memory"), kinds.count("revision")) == (30, 30)
    response = await charlie_api.client.post(
        "/api/import", data=text.encode(), content_type="application/x-ndjson", headers=charlie_api.headers
    )
    assert response.json()["new"] == 30


async def test_large_imports_are_limited_per_owner_and_process(
    alice: Owner, alice_api: Api, charlie_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    async def waiting(work: Any) -> Any:
        began.set()
        await may_end.wait()
        return await in_slices(work)

    monkeypatch.setattr(transfer, "in_slices", waiting)
    monkeypatch.setattr(transfer, "_SMALL_BYTES", len(lines(1)))
    monkeypatch.setattr(transfer, "IMPORTS", 1)

    async def send(api: Api, count: int) -> Any:
        return await api.client.post(
            "/api/import", data=lines(count).encode(), content_type="application/x-ndjson", headers=api.headers
        )

    running = asyncio.create_task(send(alice_api, 2))
    await began.wait()
    refused = [await send(alice_api, 2), await send(charlie_api, 2)]
    assert [(answer.status_code, answer.headers["Retry-After"]) for answer in refused] == [(429, "5"), (503, "5")]
    small = asyncio.create_task(send(alice_api, 1))
    may_end.set()
    assert [(await answer).status_code for answer in (running, small)] == [200, 200]
    assert (await send(charlie_api, 2)).status_code == 200


def test_an_export_reads_its_rows_in_pages(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    page = 20
    for module in (export, selectors):
        monkeypatch.setattr(module, "PAGE", page)
    import_text(alice.pk, lines(page + 3))
    with CaptureQueriesContext(connection) as queries:
        chunks = list(in_chunks(export_lines(alice.pk)))
    assert sum(chunk.count("\n") for chunk in chunks) == 2 * (page + 3) + 1
    assert max(chunk.count("\n") for chunk in chunks) == page
    pages = [query["sql"] for query in queries if 'FROM "memories_book"' not in query["sql"]]  # the books of a page
    assert pages
    assert all("LIMIT" in sql for sql in pages)


def test_finish_returns_the_generators_return_value() -> None:
    assert finish(read_upload(Upload.of(b'{"content": "x"}'), book="main")).entries[0].fields.content == "x"


def test_forgetting_erases_a_large_book(alice: Owner, charlie: Owner) -> None:
    import_text(alice.pk, lines(450))
    unrelated = memory_make(charlie, "Likes rum.")
    epoch = Book.objects.get(owner=alice).epoch
    receipt = forget_memories(alice.pk)
    assert (receipt.erased["memories"], receipt.erased["revisions"]) == (450, 450)
    assert list(Memory.objects.all()) == [unrelated]
    assert not ChangeSet.objects.filter(owner=alice).exists()
    assert Book.objects.get(owner=alice).epoch == epoch + 1


def test_an_export_is_sent_in_chunks_limited_by_lines_and_length() -> None:
    lines = ["x"] * (PAGE + 1) + ["y" * LONG] * 2 + ["z"]
    assert [len(chunk) for chunk in in_chunks(iter(lines))] == [PAGE, 1 + LONG, LONG, 1]
    assert list(in_chunks(iter(()))) == []
