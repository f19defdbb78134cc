"""What a native request is built from: the stored messages that are still in its window."""

from typing import Any

from gateway.models import Compaction, Message, Run, Session
from gateway.upstream.kept import Kept, with_kept

# The window is cut by tokens later; rows beyond this many are out of it in any case.
WINDOW_ROWS = 400


def window_rows(session: Session, *, before: Run | None = None) -> tuple[str, list[Message]]:
    """Return what a native request is built from: the summary of compacted turns, and the messages after them, oldest
    first. Turns that failed, were replaced, or start at the one that is being replaced are left out; commands too."""
    rows = Message.objects.filter(owner_id=session.owner_id, session=session).exclude(run__superseded=True)
    rows = rows.exclude(kind=Message.Kind.COMMAND).exclude(run__state=Run.State.FAILED)
    if before is not None:
        rows = rows.exclude(run__turn__gte=before.turn)
    summary = ""
    if session.compaction_epoch and (latest := _latest_compaction(session, before=before)):
        summary, rows = latest.summary, rows.filter(seq__gt=latest.up_to)
    newest = list(reversed(rows.order_by("-seq")[:WINDOW_ROWS]))
    first = next((index for index, row in enumerate(newest) if row.role == Message.Role.USER), len(newest))
    return summary, newest[first:]


def _latest_compaction(session: Session, *, before: Run | None) -> Compaction | None:
    made = Compaction.objects.filter(owner_id=session.owner_id, session=session)
    if before is not None:  # a summary that tells of the turn being replaced has left the conversation with it
        first_seq = Message.objects.filter(run=before).order_by("seq").values_list("seq", flat=True).first()
        made = made.filter(up_to__lt=first_seq or 0)
    return made.order_by("-id").first()


def as_openai(row: Message) -> dict[str, Any]:
    """Return a stored message as a request carries it."""
    message: dict[str, Any] = {"role": row.role, "content": row.parts if row.parts else row.text}
    if row.tool_calls:
        message["tool_calls"] = row.tool_calls
        message["content"] = row.text or None
    if row.tool_call_id:
        message["tool_call_id"] = row.tool_call_id
    return with_kept(message, Kept.from_json(row.kept)) if row.kept else message
