"""A session's transcript for the admin: all stored messages, even superseded and failed ones. One query per page."""

from typing import Any

from gateway.chat.highlight import SECONDS_PER_PAGE, Budget
from gateway.chat.labels import answered_words, toolless_words
from gateway.chat.markdown import render_markdown
from gateway.messages import other_parts
from gateway.models import Message, Run, Session

PAGE_MESSAGES = 200
MAX_RENDERED_CHARS = 400_000
"""Characters of a page that are rendered; the rest is shown as plain text."""
# The viewer is not the person of the session, so no role is "You".
ROLE_LABELS = {
    Message.Role.USER: ("edit", "Person"),
    Message.Role.ASSISTANT: ("chat_bubble", "Agent"),
    Message.Role.TOOL: ("build", "Tool"),
}


def transcript(session: Session, *, first: int = 1, last: int | None = None) -> dict[str, Any]:
    """Return at most PAGE_MESSAGES messages from number `first` on, up to number `last` if it is given, as `lines`, and
    the message number where the next page begins, if there is one, as `later`. The `html` of a line is a model's
    rendered text; if it is empty, the message's text is shown unchanged."""
    messages = Message.objects.filter(owner_id=session.owner_id, session=session, seq__gte=first)
    if last is not None:
        messages = messages.filter(seq__lte=last)
    rows = list(messages.select_related("run").order_by("seq")[: PAGE_MESSAGES + 1])
    later = rows[PAGE_MESSAGES].seq if len(rows) > PAGE_MESSAGES else None
    lines, colours, characters = [], Budget(SECONDS_PER_PAGE), 0
    for row in rows[:PAGE_MESSAGES]:
        characters += len(row.text)
        rendered = row.role == Message.Role.ASSISTANT and characters <= MAX_RENDERED_CHARS
        icon, who = ROLE_LABELS[Message.Role(row.role)]
        line = {
            "message": row,
            "who": who,
            "icon": icon,
            "html": render_markdown(row.text, colours, scope=str(row.pk)) if rendered else "",
            "calls": [_call(call) for call in row.calls],
            "attachments": attachments_of(row),
            "note": _note(row, row.run),
        }
        lines.append(line)
    return {"lines": lines, "later": later}


def attachments_of(message: Message) -> int:
    """Return the number of images, files and sounds in a message."""
    return sum(1 for _ in other_parts(message.parts))


def _call(call: dict[str, Any]) -> str:
    called = call.get("function") or call.get("custom") or call
    return f"{called.get('name', 'tool')}({called.get('arguments', called.get('input', ''))})"


def _note(message: Message, run: Run | None) -> str:
    notes = [message.get_kind_display() if message.kind != Message.Kind.CHAT else ""]
    if run is not None:
        notes.append("Superseded" if run.superseded else "")
        notes.append(run.get_state_display() if run.state in {Run.State.FAILED, Run.State.STOPPED} else "")
        if message.role == Message.Role.ASSISTANT:
            notes.append(answered_words(run.trace.get("attempts", ())))
            notes.append(toolless_words(run.trace.get("toolless")))
    return ", ".join(note for note in notes if note)
