"""The window of a native session: the stored messages from which a request is built."""

from collections.abc import Iterable, Sequence
from itertools import dropwhile
from typing import Any

from django.db.models import Exists, F, OuterRef

from gateway.attachments.references import Attached
from gateway.models import HAS_PARTS, Compaction, Message, Run, Session
from gateway.runs.session_rows import from_run, shown_messages
from gateway.upstream.kept import KeptFields, with_kept
from prompts.conversation import ATTACHMENT_OMITTED

# The window is cut by tokens later; it never contains more rows than this.
WINDOW_ROWS = 400
# Limits on the pictures and files of earlier messages that are sent again, newest first, since all of them would be
# read, sent and paid for with every turn.
ATTACHED_MESSAGES = 20
ATTACHED_CHARACTERS = 8_000_000


def window_rows(session: Session, *, before: Run | None = None) -> tuple[str, list[Message]]:
    """Return the summary of compacted turns, and the messages after them, oldest first. Commands are left out, and so
    are turns that failed, were replaced, or come from `before`, the run that is being replaced, on.

    Each row has the `history_hash` after its run, and no content parts, which `parts_read` loads."""
    rows = shown_messages(session.owner_id, session.pk).exclude(run__state=Run.State.FAILED)
    if before is not None:
        rows = rows.exclude(from_run(before, "run__"))
    summary = ""
    if session.compaction_epoch and (latest := _latest_compaction(session, before=before)):
        summary, rows = latest.summary, rows.filter(seq__gt=latest.up_to)
    found = (
        rows.defer("parts", "created_at")  # to reach created_at, SQLite would read through the parts before it
        .annotate(has_parts=HAS_PARTS, history_hash=F("run__history_hash_after"))
        .order_by("-seq")[:WINDOW_ROWS]
    )
    return summary, from_first_question(reversed(found))


def from_first_question(rows: Iterable[Message]) -> list[Message]:
    """Return the rows from the first user message on."""
    return list(dropwhile(lambda row: row.role != Message.Role.USER, rows))


def parts_read(rows: Sequence[Message]) -> None:
    """Load the content parts of a window's newest rows; older ones keep only their text. Called after the transaction
    of a turn, since messages of earlier versions may contain megabytes; messages never change."""
    with_parts = [row for row in rows if row.has_parts]  # type: ignore[attr-defined]
    found: dict[Any, Any] = {}
    left = ATTACHED_CHARACTERS
    for row in reversed(with_parts[-ATTACHED_MESSAGES:]):  # one by one: SQLite would read all of them to sort them
        parts = Message.objects.filter(pk=row.pk).values_list("parts", flat=True).first()
        left -= content_length(parts)
        if left < 0:
            break
        found[row.pk] = parts
    for row in rows:
        row.parts = found.get(row.pk)
    for row in with_parts:
        if row.parts is None:
            row.text = f"{row.text}\n\n{ATTACHMENT_OMITTED}".strip()


def content_length(value: Any) -> int:
    """Return the number of characters of text in a JSON value, including the attachments that it refers to."""
    if isinstance(value, Attached):
        return value.reference.length
    if isinstance(value, dict | list):
        return sum(map(content_length, value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, str) else 0


def _latest_compaction(session: Session, *, before: Run | None) -> Compaction | None:
    # A compaction of another branch does not count: its last message belongs to a superseded run.
    last = Message.objects.filter(session=session, seq=OuterRef("up_to"), run__superseded=True)
    made = Compaction.objects.filter(~Exists(last), owner_id=session.owner_id, session=session)
    if before is not None:  # nor does a summary that includes the turn being replaced
        first_seq = Message.objects.filter(run=before).order_by("seq").values_list("seq", flat=True).first()
        made = made.filter(up_to__lt=first_seq or 0)
    return made.order_by("-id").first()


def as_openai(row: Message) -> dict[str, Any]:
    """Return a stored message in the format of a request."""
    message: dict[str, Any] = {"role": row.role, "content": row.parts or row.text}
    if calls := row.calls:
        message["tool_calls"] = calls
        message["content"] = row.text or None
    if row.tool_call_id:
        message["tool_call_id"] = row.tool_call_id
    if row.participant:
        message["name"] = row.participant
    return with_kept(message, KeptFields.from_json(row.kept)) if row.kept else message
