"""Compaction of native sessions: older turns are summarised in one stored text, so that the conversation fits the
context. The messages stay readable. The worker compacts after a turn; a turn that would not fit compacts before its
first model step. If the model fails, the oldest turns leave the window without a summary: the short-term lane still
finds them, and the run's trace records the failure."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F

from gateway.agents.model_choice import agent_target
from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings
from gateway.jobs import run_async
from gateway.messages import text_of
from gateway.models import Compaction, Session
from gateway.runs.closing import COMPACTION_SHARE
from gateway.runs.context import TurnContext
from gateway.runs.window import as_openai, parts_read, window_rows
from gateway.steps import ask
from gateway.tokens import estimate
from gateway.upstream import ModelTarget
from memories.database.access import in_thread
from memories.errors import DomainError
from memories.recall.two_lanes import TOTAL_BYTES
from memories.tokens import CHARS_PER_TOKEN, text_tokens
from prompts.conversation import compaction_prompt
from prompts.copies import is_prompt_copy

logger = logging.getLogger("daybook.compaction")

KEPT_SHARE = 0.4  # share of the limit that the newest turns may take afterwards
SUMMARY_SHARE = 0.1
WORDS_PER_TOKEN = 0.6


def choose_cut(messages: Sequence[dict[str, Any]], *, limit: int, target: ModelTarget | None = None) -> int:
    """Return how many messages leave the window, up to a user message, so that the newest turns take at most KEPT_SHARE
    of the limit; the last turn always stays. Return 0 if there is nothing to cut."""
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    kept, count, end = 0, 0, len(messages)
    for start in reversed(starts):
        kept += estimate(messages[start:end], target)
        end = start
        if start == starts[-1] or kept <= limit * KEPT_SHARE:
            count = start
    return count


async def fit_context(context: TurnContext) -> tuple[TurnContext, dict[str, Any]]:
    """Return the context of a native turn, compacted if it would exceed its limit, and entries for the trace."""
    if not context.is_native:
        return context, {}
    agent = context.agent.settings
    limit, target = agent.context_token_limit, agent_target(agent)
    taken = text_tokens(agent.instructions) + estimate(context.messages, target) + text_tokens(context.summary)
    if context.book is not None and agent.inject_memories:
        taken += min((agent.frozen_char_limit + TOTAL_BYTES) // CHARS_PER_TOKEN, limit // 4)
    if taken <= limit:
        return context, {}
    count = choose_cut(context.messages, limit=limit, target=target)
    if not count:
        return context, {"compaction": {"state": "nothing_to_cut"}}
    seqs, summary = context.message_seqs, context.summary
    trace: dict[str, Any] = {"state": "ok", "messages": count}
    caller = {"owner": str(context.owner_id), "request_id": context.request_id}
    try:
        summary = await summarise(agent, summary, context.messages[:count], **caller)
        trace["stored"] = await in_thread(
            compaction_store, context.session_id, epoch=context.compaction_epoch, up_to=seqs[count - 1], summary=summary
        )
    except (DomainError, DatabaseError) as error:
        trace |= {"state": "failed", "kind": getattr(error, "code", type(error).__name__)}
    shorter = replace(context, messages=context.messages[count:], message_seqs=seqs[count:], summary=summary)
    return shorter, {"compaction": trace}


async def summarise(
    agent: AgentSettings, earlier: str, messages: Sequence[dict[str, Any]], *, owner: str, request_id: str
) -> str:
    """Return the model's summary of messages and of the `earlier` summary. Raises DomainErrors."""
    spoken = [(m["role"], text_of(m.get("content"))) for m in messages if m["role"] in {"user", "assistant"}]
    words = int(agent.context_token_limit * SUMMARY_SHARE * WORDS_PER_TOKEN)
    prompt = compaction_prompt(earlier=earlier, conversation=[pair for pair in spoken if pair[1]], words=words)
    result = await ask(
        agent_target(agent),
        ({"role": "user", "content": prompt},),
        seconds=settings.COMPACTION_SECONDS,
        owner=owner,
        request_id=request_id,
    )
    summary = result.visible_text.strip()
    if not summary or result.refused or result.finish_reason == "content_filter" or is_prompt_copy(summary):
        raise DomainError("The model gave no summary.")
    return summary[: int(agent.context_token_limit * SUMMARY_SHARE) * 4]


@transaction.atomic
def compaction_store(session_id: UUID, *, epoch: int, up_to: int, summary: str) -> bool:
    """Store a compaction, which makes snapshots of the session outdated. Return False if another was stored first."""
    unchanged = Session.objects.filter(pk=session_id, compaction_epoch=epoch)
    if unchanged.update(compaction_epoch=F("compaction_epoch") + 1) != 1:
        return False
    owner_id = Session.objects.values_list("owner_id", flat=True).get(pk=session_id)
    Compaction.objects.create(owner_id=owner_id, session_id=session_id, up_to=up_to, summary=summary)
    return True


def compact_session(session_id: str) -> None:
    """Compact a session in the worker. An error is logged; the next turn tries again before its model step."""
    session = Session.objects.select_related("agent").filter(pk=session_id).first()
    if session is None:
        return
    agent = agent_settings(session.agent)
    summary, rows = window_rows(session)
    parts_read(rows)
    messages = [as_openai(row) for row in rows]
    limit, target = agent.context_token_limit, agent_target(agent)
    if estimate(messages, target) <= limit * (COMPACTION_SHARE - SUMMARY_SHARE):
        return
    count = choose_cut(messages, limit=limit, target=target)
    if not count:
        return
    caller = {"owner": str(session.owner_id), "request_id": f"compaction-{session_id}"}
    try:
        made = run_async(summarise(agent, summary, messages[:count], **caller))
    except DomainError as error:
        logger.warning("session %s was not compacted: %s", session_id, type(error).__name__)
        return
    compaction_store(session.pk, epoch=session.compaction_epoch, up_to=rows[count - 1].seq, summary=made)
