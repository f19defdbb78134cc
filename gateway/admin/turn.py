"""The explanation of a turn on a run's admin page: the question, what memory gave and why, the model's steps and tool
calls, the writes, the answer, and the error. The app above adds the reviews that followed."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString

from gateway.admin.transcript import attachments_of
from gateway.admin.turn_given import given_to
from gateway.admin.visibility import Visibility
from gateway.agents.configuration import prices
from gateway.chat.highlight import SECONDS_PER_PAGE, Budget
from gateway.chat.labels import INTERRUPTED, ErrorWords, error_words, fault_words, stopped_words, toolless_words
from gateway.chat.markdown import render_markdown
from gateway.chat.tool_uses import tool_use
from gateway.chat.turn_views import cost_words
from gateway.limits.money import usage_words
from gateway.models import Message, Run
from memories.admin.badges import seconds
from memories.admin.change_words import shown_change_sets
from memories.models import ChangeSet

MAX_CHANGE_SETS = 20
MAX_MESSAGES = 200
MAX_TOOL_CHARS = 10_000
_INTERRUPTED = "Interrupted: Daybook was restarted, or its process went away."


def turn_explained(run: Run, visible: Visibility) -> dict[str, Any]:
    """Return the explanation of a run, which must be selected with its session and agent. `question` and `answer` are
    empty if the viewer may not see words; `first_seq` and `last_seq` are message numbers, 0 if there are none. At most
    twelve queries."""
    budget = Budget(SECONDS_PER_PAGE)
    messages = _first_messages(run)
    asked = [row for row in messages if row.role == Message.Role.USER]
    steps = _steps(messages, visible, budget)
    return {
        "sight": visible,
        "figures": _figures(run, steps),
        "trouble": _failure(run, visible),
        "question": "\n\n".join(row.text for row in asked) if visible.words else "",
        "question_characters": sum(len(row.text) for row in asked),
        "attachments": sum(map(attachments_of, asked)),
        "given": given_to(run, visible),
        "steps": steps,
        "steps_unseen": max(0, _step_count(run) - len(steps)),
        "attempts": _attempts(run),
        "toolless": toolless_words(run.trace.get("toolless")),
        "changes": _changes(run) if visible.changes else (),
        "answer": render_markdown(run.text, budget) if visible.words else SafeString(),
        "answer_characters": len(run.text),
        "first_seq": messages[0].seq if messages else 0,
        "last_seq": messages[-1].seq if messages else 0,
    }


def error_sentence(run: Run, *, words: bool) -> str:
    """Return why a run failed, or "". Without `words` only its code is described, since a model server's message may
    quote the request."""
    return _error(run, words=words).headline if run.error else ""


def _error(run: Run, *, words: bool) -> ErrorWords:
    found = error_words(run.error)
    return found if words else error_words({"code": found.code})


def _figures(run: Run, steps: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    step_count = _step_count(run) or len(steps)
    calls = sum(len(step["calls"]) for step in steps)
    return [
        ("Time", f"{seconds(run.started_at, run.finished_at)} s" if run.finished_at else "Not finished"),
        ("Tokens", usage_words(run.usage)),
        ("Cost", _cost(run)),
        ("Model", run.model or "No model answered"),
        ("Agent", run.session.agent.name),
        ("Model steps", str(step_count)),
        ("Tool calls", str(calls)),
    ]


def _cost(run: Run) -> str:
    if not run.usage.get("total_tokens"):
        return "–"
    return cost_words(run, prices()) or "No price is set for this model"


def _step_count(run: Run) -> int:
    return int(run.trace.get("steps", 0))


def _failure(run: Run, visible: Visibility) -> dict[str, Any] | None:
    if run.state == Run.State.FAILED or run.error:
        found = _error(run, words=visible.words)
        return {"words": found.headline, "code": found.code}
    if run.state == Run.State.STOPPED:
        by = str(run.trace.get("stopped_by", ""))
        words = stopped_words(by, by_person="Stopped by its owner.")
        return {"words": _INTERRUPTED if by in INTERRUPTED else words, "code": by}
    if run.state == Run.State.AWAITING_CLIENT_TOOLS:
        return {"words": "The turn waits for the results of the client's tools."}
    return None


def _changes(run: Run) -> list[dict[str, Any]]:
    rows = ChangeSet.objects.filter(owner_id=run.owner_id, run_id=run.pk, kind=ChangeSet.Kind.TOOL).order_by("pk")
    return shown_change_sets(run.owner_id, list(rows[:MAX_CHANGE_SETS]))


def _first_messages(run: Run) -> list[Message]:
    """Return the first MAX_MESSAGES stored messages of a run, in their order. One query."""
    rows = Message.objects.filter(owner_id=run.owner_id, session_id=run.session_id, run_id=run.pk)
    return list(rows.order_by("seq")[:MAX_MESSAGES])


def _steps(messages: Sequence[Message], visible: Visibility, budget: Budget) -> list[dict[str, Any]]:
    """Return the steps that stored a message. A step without a call is the answer, or a part of it."""
    results = {row.tool_call_id: row.text for row in messages if row.role == Message.Role.TOOL}
    answers = [row for row in messages if row.role == Message.Role.ASSISTANT]
    return [_step(number, row, results, visible, budget) for number, row in enumerate(answers, start=1)]


def _attempts(run: Run) -> list[dict[str, Any]]:
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
