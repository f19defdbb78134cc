"""What a native request is built from: the stored messages that are still in its window."""

from collections.abc import Sequence
from typing import Any

from django.db.models import BooleanField, Case, Exists, F, OuterRef, When

from gateway.attachments.references import Attached
from gateway.models import Compaction, Message, Run, Session
from gateway.runs.session_rows import from_run
from gateway.upstream.kept import Kept, with_kept
from prompts.conversation import ATTACHMENT_OMITTED

# The window is cut by tokens later; rows beyond this many are out of it in any case.
WINDOW_ROWS = 400
# Pictures and files of earlier messages: the newest are sent again, as far as they take no more than this. All of them
# would be read, sent and paid for with every turn.
ATTACHED_MESSAGES = 20
ATTACHED_CHARACTERS = 8_000_000
# A plain IS NOT NULL, as a value, makes SQLite read all of the parts; a condition looks at their type alone.
HAS_PARTS = Case(When(parts__isnull=True, then=False), default=True, output_field=BooleanField())


def window_rows(session: Session, *, before: Run | None = None) -> tuple[str, list[Message]]:
    """Return what a native request is built from: the summary of compacted turns, and the messages after them, oldest
    first. Turns that failed, were replaced, or start at the one that is being replaced are left out; commands too.

    Each comes with the `history_hash` that its run left, and without content parts, which `parts_read` reads."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session).exclude(run__superseded=True)
    rows = rows.exclude(kind=Message.Kind.COMMAND).exclude(run__state=Run.State.FAILED)
    if before is not None:
        rows = rows.exclude(from_run(before, "run__"))
    summary = ""
    if session.compaction_epoch and (latest := _latest_compaction(session, before=before)):
        summary, rows = latest.summary, rows.filter(seq__gt=latest.up_to)
    found = (
        rows.defer("parts", "created_at")  # this is stored after the parts: SQLite would go through all of them
        .annotate(has_parts=HAS_PARTS, history_hash=F("run__history_hash_after"))
        .order_by("-seq")[:WINDOW_ROWS]
    )
    newest: list[Message] = [*reversed(found)]
    first = next((index for index, row in enumerate(newest) if row.role == Message.Role.USER), len(newest))
    return summary, newest[first:]


def parts_read(rows: Sequence[Message]) -> None:
    """Give the rows of a window their content parts; older ones keep their words only. Messages of earlier versions may
    hold megabytes themselves, so it is called after the transaction of a turn: messages never change."""
    holding = [row for row in rows if row.has_parts]  # type: ignore[attr-defined]
    found: dict[Any, Any] = {}
    left = ATTACHED_CHARACTERS
    for row in reversed(holding[-ATTACHED_MESSAGES:]):  # one at a time: SQLite would read all of them to sort them
        parts = Message.objects.filter(pk=row.pk).values_list("parts", flat=True).first()
        left -= _length(parts)
        if left < 0:
            break
        found[row.pk] = parts
    for row in rows:
        row.parts = found.get(row.pk)
    for row in holding:
        if row.parts is None:
            row.text = f"{row.text}\n\n{ATTACHMENT_OMITTED}".strip()


def _length(value: Any) -> int:
    """Return how many characters of text a JSON value holds, with what it refers to."""
    if isinstance(value, Attached):
        return value.reference.length
    if isinstance(value, dict | list):
        return sum(map(_length, value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, str) else 0


def _latest_compaction(session: Session, *, before: Run | None) -> Compaction | None:
    # One that tells of another branch does not count: the runs up to its last message are those of this one, or not.
    last = Message.objects.filter(session=session, seq=OuterRef("up_to"), run__superseded=True)
    made = Compaction.objects.filter(~Exists(last), owner_id=session.owner_id, session=session)
    if before is not None:  # a summary that tells of the turn being replaced has left the conversation with it
        first_seq = Message.objects.filter(run=before).order_by("seq").values_list("seq", flat=True).first()
        made = made.filter(up_to__lt=first_seq or 0)
    return made.order_by("-id").first()


def as_openai(row: Message) -> dict[str, Any]:
    """Return a stored message as a request carries it."""
    message: dict[str, Any] = {"role": row.role, "content": row.parts if row.parts else row.text}
    if calls := row.calls:
        message["tool_calls"] = calls
        message["content"] = row.text or None
    if row.tool_call_id:
        message["tool_call_id"] = row.tool_call_id
    return with_kept(message, Kept.from_json(row.kept)) if row.kept else message
