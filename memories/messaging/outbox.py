"""The outbox of notifications: its rows are authoritative, and the channel layer only hints that there are new ones.
Written by memories.services and reviews; read by gateway.consumers and the API."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import BaseChannelLayer, get_channel_layer
from django.conf import settings
from django.db import connection, transaction

from memories.caller import UNLIMITED, KeyLimits
from memories.json_output import json_time
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
    """Store a notification; call this as the last statement of the transaction that it reports. `book` is the name of
    its book: a limited key gets notifications about its own books only.

    The number comes from the owner's row, whose lock makes numbers follow the order of commits; plain ids do not on
    PostgreSQL. Browsers are notified after the commit."""
    row = Notification.objects.create(
        owner_id=owner_id,
        seq=next_numbers(owner_id, "notification_seq", 1)[0],
        kind=kind,
        book=book,
        text=text,
        review_id=review_id,
        memory_numbers=list(memory_numbers),
    )
    transaction.on_commit(lambda: wake(owner_id), robust=True)
    return row


def wake(owner_id: UUID) -> None:
    """Tell every process with a browser of this owner that the outbox has new rows. The hint may be lost."""
    send_hint(owner_group(owner_id), {"type": "outbox.hint"})


def send_hint(group: str, message: dict[str, Any]) -> None:
    """Send a message to every consumer in a group, in every process. Returns at once; the message may be lost. Only its
    type matters: while a message is queued, others of the same group and type are dropped."""
    layer = get_channel_layer()
    if isinstance(layer, DatagramChannelLayer):
        layer.hint(group, message)  # never blocks
    elif layer is not None:
        redis_calls.submit((group, message["type"]), lambda: _send(layer, group, message))


def _send(layer: BaseChannelLayer, group: str, message: dict[str, Any]) -> None:
    """Send from the thread of hints, always in the same event loop, since the layer has a connection per loop."""
    if not settings.DB_THREADS:
        async_to_sync(layer.group_send)(group, message)
        return
    runner: asyncio.Runner | None = getattr(_own, "runner", None)
    if runner is None:
        runner = _own.runner = asyncio.Runner()
    runner.run(asyncio.wait_for(layer.group_send(group, message), ANSWER_SECONDS))


def next_numbers(owner_id: UUID, column: Literal["notification_seq", "memory_seq"], count: int) -> range:
    """Take and return the next `count` numbers of a counter of the owner, whose row is locked until the commit."""
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
    owner_id: UUID, after: int | None, *, limits: KeyLimits = UNLIMITED, max_count: int = PAGE
) -> list[dict[str, Any]]:
    """Return up to `max_count` notifications after number `after`, oldest first, as JSON. If some have been deleted
    already, a `resync` comes first. None returns an empty list, for clients that only want new ones."""
    # Read the number before the rows, so that a notification that is committed in between does not look like a gap.
    if after is None or (current := current_number(owner_id)) <= after:
        return []
    stored = Notification.objects.filter(owner_id=owner_id, seq__gt=after).order_by("seq")
    rows = list(limits.filter(stored, book="book")[:max_count])
    found = [notification_json(row) for row in rows]
    # Notifications that a limited key may not see are not gaps.
    oldest = stored.values_list("seq", flat=True).first() if limits else rows[0].seq if rows else None
    newest = oldest or current + 1
    if newest > after + 1:
        resync = Notification(seq=newest - 1, kind=Notification.Kind.RESYNC.value)
        found.insert(0, notification_json(resync) | {"created_at": None})
    return found


def current_number(owner_id: UUID) -> int:
    """Return the number of the owner's newest notification, or 0."""
    return Owner.objects.values_list("notification_seq", flat=True).get(pk=owner_id)


def notification_json(row: Notification) -> dict[str, Any]:
    """Return the JSON representation of a notification, for the API and websockets."""
    return {
        "id": str(row.seq),
        "kind": row.kind,
        "text": row.text,
        "review_id": str(row.review_id) if row.review_id else None,
        "memory_ids": [str(number) for number in row.memory_numbers],
        "created_at": json_time(row.created_at),
    }
