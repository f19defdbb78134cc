"""The model steps of a run and their tool calls, from the stored messages, for the run's admin page."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.admin.visibility import Visibility
from gateway.chat.highlight import Budget
from gateway.chat.labels import fault_words
from gateway.chat.markdown import render_markdown
from gateway.chat.tool_uses import tool_use
from gateway.models import Message, Run

MAX_MESSAGES = 200
MAX_TOOL_CHARS = 10_000


def first_messages(run: Run) -> list[Message]:
    """Return the first MAX_MESSAGES stored messages of a run, in their order. One query."""
    rows = Message.objects.filter(owner_id=run.owner_id, session_id=run.session_id, run_id=run.pk)
    return list(rows.order_by("seq")[:MAX_MESSAGES])


def steps_of(messages: Sequence[Message], visible: Visibility, budget: Budget) -> list[dict[str, Any]]:
    """Return the steps that stored a message. A step without a call is the answer, or a part of it."""
    results = {row.tool_call_id: row.text for row in messages if row.role == Message.Role.TOOL}
    answers = [row for row in messages if row.role == Message.Role.ASSISTANT]
    return [_step(number, row, results, visible, budget) for number, row in enumerate(answers, start=1)]


def attempts_of(run: Run) -> list[dict[str, Any]]:
    """Return the attempts in the run's trace (recorded only if one failed): upstream, model, outcome, duration."""
    return [
        {
            "who": f"{entry.get('model') or 'the default model'} of {entry.get('upstream') or 'the default upstream'}",
            "words": fault_words(str(entry.get("fault", ""))),
            "seconds": f"{float(entry.get('seconds') or 0):.1f} s",
            "failed": bool(entry.get("fault")),
        }
        for entry in run.trace.get("attempts", ())
    ]


def _step(number: int, row: Message, results: Mapping[str, str], visible: Visibility, budget: Budget) -> dict[str, Any]:
    calls = row.calls
    kept = row.kept or {}
    by = f"{kept['model']} of {kept['upstream']}" if kept.get("model") and kept.get("upstream") else ""
    return {
        "number": number,
        "by": by,
        "html": render_markdown(row.text, budget) if visible.words and calls else "",
        "calls": [tool_use(call, results, max_chars=MAX_TOOL_CHARS, words=visible.words) for call in calls],
        "characters": len(row.text),
        "is_answer": not calls,
    }
