"""Reading the outbox: a gap is what was deleted, never what is written at the same moment."""

from typing import Any

import pytest
from django.db import connection

from memories.models import Notification, Owner
from memories.outbox import notifications_after, notify

pytestmark = pytest.mark.django_db


def test_a_notification_written_while_another_reads_is_no_gap(alice: Owner) -> None:
    statements: list[str] = []

    def another_writes(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        statements.append(sql)
        if len(statements) == 1:
            notify(owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED, text="one")
        return answer

    with connection.execute_wrapper(another_writes):
        found = notifications_after(alice.pk, 0)
    found = found or notifications_after(alice.pk, 0)
    assert [(note["kind"], note["text"]) for note in found] == [("memory.changed", "one")]


def test_what_was_deleted_is_a_gap(alice: Owner) -> None:
    for text in ("one", "two"):
        notify(owner_id=alice.pk, kind=Notification.Kind.MEMORY_CHANGED, text=text)
    Notification.objects.filter(text="one").delete()
    assert [(note["kind"], note["id"]) for note in notifications_after(alice.pk, 0)] == [
        ("resync", "1"),
        ("memory.changed", "2"),
    ]
    Notification.objects.all().delete()
    assert [(note["kind"], note["id"]) for note in notifications_after(alice.pk, 0)] == [("resync", "2")]
