"""Reading the outbox: only deleted notifications leave a gap, not those that are being written."""

from typing import Any

import pytest
from django.db import connection

from memories.database.access import in_thread
from memories.messaging.outbox import notifications_after, notify
from memories.models import Notification, Owner
from tests.conftest import Api

pytestmark = pytest.mark.django_db


def test_a_notification_written_during_a_read_is_not_a_gap(alice: Owner) -> None:
    statements: list[str] = []

    def write_after_first(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        statements.append(sql)
        if len(statements) == 1:
            notify(owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED, text="one")
        return answer

    with connection.execute_wrapper(write_after_first):
        found = notifications_after(alice.pk, 0)
    found = found or notifications_after(alice.pk, 0)
    assert [(note["kind"], note["text"]) for note in found] == [("memory.changed", "one")]


def test_deleted_notifications_are_a_gap(alice: Owner) -> None:
    for text in ("one", "two"):
        notify(owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED, text=text)
    Notification.objects.filter(text="one").delete()
    assert [(note["kind"], note["id"]) for note in notifications_after(alice.pk, 0)] == [
        ("resync", "1"),
        ("memory.changed", "2"),
    ]
    Notification.objects.all().delete()
    assert [(note["kind"], note["id"]) for note in notifications_after(alice.pk, 0)] == [("resync", "2")]


async def test_a_list_has_at_most_limit_notifications(alice: Owner, alice_api: Api) -> None:
    for _ in range(5):
        await in_thread(notify, owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED)
    await in_thread(Notification.objects.filter(seq=1).delete)
    pages, after, more = [], "0", True
    while more:
        status, page = await alice_api.get(f"/api/notifications?after={after}&limit=2")
        assert status == 200
        pages.append([note["id"] for note in page["data"]])
        assert (page["first_id"], page["last_id"]) == (pages[-1][0], pages[-1][-1])
        after, more = page["last_id"], page["has_more"]
    assert pages == [["1", "2"], ["3", "4"], ["5"]]
    assert (await alice_api.get("/api/notifications?limit=0"))[0] == 400
