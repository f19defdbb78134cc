"""The outbox of notifications: rows are the truth, the channel layer only hints that there is something to read.
Called by memories.services and reviews; read by gateway.consumers and the API."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import BaseChannelLayer, get_channel_layer
from django.conf import settings
from django.db import connection, transaction

from memories.caller import UNLIMITED, KeyLimits
from memories.messaging.background import redis_calls
from memories.messaging.datagrams import DatagramChannelLayer
from memories.messaging.redis_clients import ANSWER_SECONDS
from memories.models import Notification, Owner

PAGE = 100
_own = threading.local()


def owner_group(owner_id: UUID) -> str:
    """Return the channel group of an owner's browsers."""
    return f"owner.{owner_id}"


def notify(
    *,
    owner_id: UUID,
    kind: Notification.Kind,
    book: str = "",
    text: str = "",
    review_id: UUID | None = None,
    memory_numbers: Sequence[int] = (),
) -> Notification:
    """Store a notification; call it as the last statement of the transaction that it reports. `book` is the name of the
    book it is about: a limited key gets notifications about its own books only.

    The number comes from the owner's row: its lock makes the order of numbers the order of commits, which plain ids
    are not on PostgreSQL. Browsers are woken after the commit."""
    row = Notification.objects.create(
        owner_id=owner_id,
        seq=next_number(owner_id, "notification_seq"),
        kind=kind,
        book=book,
        text=text,
        review_id=review_id,
        memory_numbers=list(memory_numbers),
    )
    transaction.on_commit(lambda: wake(owner_id), robust=True)
    return row


def wake(owner_id: UUID) -> None:
    """Hint to every process with a browser of this owner that it should look at the outbox. A hint may be lost."""
    send_hint(owner_group(owner_id), {"type": "outbox.hint"})


def send_hint(group: str, message: dict[str, Any]) -> None:
    """Send to every consumer in a group, in every process. Returns at once; may be lost. The message is its type:
    while one waits to be sent, another of the same group and type adds nothing."""
    layer = get_channel_layer()
    if isinstance(layer, DatagramChannelLayer):
        layer.hint(group, message)  # never blocks
    elif layer is not None:
        redis_calls.submit((group, message["type"]), lambda: _send(layer, group, message))


def _send(layer: BaseChannelLayer, group: str, message: dict[str, Any]) -> None:
    """Send from the thread of hints, in a loop that it keeps: the layer has a connection for each loop."""
    if not settings.DB_THREADS:
        async_to_sync(layer.group_send)(group, message)
        return
    runner: asyncio.Runner | None = getattr(_own, "runner", None)
    if runner is None:
        runner = _own.runner = asyncio.Runner()
    runner.run(asyncio.wait_for(layer.group_send(group, message), ANSWER_SECONDS))


def next_number(owner_id: UUID, column: str) -> int:
    """Raise one of the owner's counters and return it, in one statement; holds the owner's row until the commit."""
    return next_numbers(owner_id, column, 1)[0]


def next_numbers(owner_id: UUID, column: str, count: int) -> range:
    """Raise one of the owner's counters by several numbers and return the last."""
    if column not in {"notification_seq", "memory_seq"}:
        raise ValueError(column)
    table = connection.ops.quote_name(Owner._meta.db_table)
    field = Owner._meta.get_field("id")
    sql = f"UPDATE {table} SET {column} = {column} + %s WHERE id = %s RETURNING {column}"  # noqa: S608 - names are ours
    with connection.cursor() as cursor:
        cursor.execute(sql, [count, field.get_db_prep_value(owner_id, connection)])
        row = cursor.fetchone()
    if row is None:
        raise Owner.DoesNotExist(f"No owner {owner_id}.")
    return range(int(row[0]) - count + 1, int(row[0]) + 1)


def notifications_after(
    owner_id: UUID, after: int | None, *, limits: KeyLimits = UNLIMITED, most: int = PAGE
) -> list[dict[str, Any]]:
    """The first `most` rows above `after`, oldest first, as the contract shows them. `after` that is older than what is
    kept gives one `resync` before them; None gives nothing (only new ones are wanted)."""
    # The number before the rows: a notification that is committed in between is among the rows, and no gap.
    if after is None or (current := current_number(owner_id)) <= after:
        return []
    kept = Notification.objects.filter(owner_id=owner_id, seq__gt=after).order_by("seq")
    rows = list(limits.filter(kept, book="book")[:most])
    found = [notification_json(row) for row in rows]
    # What is kept back from a limited key is not missing.
    oldest = kept.values_list("seq", flat=True).first() if limits else rows[0].seq if rows else None
    newest = oldest or current + 1
    if newest > after + 1:
        resync = Notification(seq=newest - 1, kind=Notification.Kind.RESYNC.value)
        found.insert(0, notification_json(resync) | {"created_at": None})
    return found


def current_number(owner_id: UUID) -> int:
    """Return the number of the owner's newest notification (0: none yet)."""
    return Owner.objects.values_list("notification_seq", flat=True).get(pk=owner_id)


def notification_json(row: Notification) -> dict[str, Any]:
    """Return a notification as API and websocket show it."""
    return {
        "id": str(row.seq),
        "kind": row.kind,
        "text": row.text,
        "review_id": str(row.review_id) if row.review_id else None,
        "memory_ids": [str(number) for number in row.memory_numbers],
        "created_at": row.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),  # as everywhere
    }
