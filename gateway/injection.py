"""What a run is given from memory: its session's snapshot, the recall of this turn, and the messages built from both.
With a warm snapshot nothing here touches the database."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from gateway.agents.model_choice import agent_target
from gateway.embeddings import query_vector
from gateway.model_call import ask
from gateway.runs import identity
from gateway.runs.context import AgentConfig, TurnContext
from memories.database import in_read_thread
from memories.documents import cut_to_tokens
from memories.errors import DomainError, UpstreamTimeout
from memories.frozen import freeze
from memories.providers import Scope
from memories.recall import NO_INJECTION, Injection, RecallSettings, recall
from memories.search.keywords import extract_keywords
from memories.snapshot import BookState, SessionSnapshot, snapshots
from memories.threads import ThreadTurn, ThreadView, outside_window, thread_cache
from prompts.consolidation import guidance
from prompts.conversation import earlier_block
from prompts.files import prompt_file

_SEPARATORS = re.compile(r"[,\s]+")
_MOST_KEYWORDS = 24


async def prepare(context: TurnContext) -> Injection:
    """Everything of memory for this run, once; its steps reuse it. Injection off: nothing, and no work."""
    agent = context.agent.settings
    if context.book is None or not (agent.inject_memories or context.agent.memories.enabled):
        return NO_INJECTION
    snapshot = await _snapshot(context)
    if not agent.inject_memories:
        return Injection(guidance=snapshot.guidance, trace={"snapshot": _as_of(snapshot)})
    thread = await _thread(context)
    vector, vector_trace = None, {}
    if settings.EMBEDDING_MODEL and not snapshot.frozen.holds_all:
        asked = asyncio.gather(_keywords(context), query_vector(context.user_text, upstream=agent.upstream))
        (keywords, trace), (vector, vector_trace) = await asked
    else:
        keywords, trace = await _keywords(context)
    injection = await recall(
        snapshot=snapshot,
        thread=thread,
        query=context.user_text,
        keywords=keywords,
        limits=RecallSettings(
            max_memories=agent.max_inject_memories,
            search=agent.memory_search,
            lane_seconds=settings.RECALL_LANE_SECONDS,
        ),
        scope=provider_scope(context),
        query_vector=vector,
    )
    injection.trace.update(trace | vector_trace | {"snapshot": _as_of(snapshot)})
    return injection


def provider_scope(context: TurnContext) -> Scope | None:
    """What other memory providers are told of a run; None for a run that memory has no part in."""
    if context.book is None:
        return None
    return Scope(
        owner_id=context.owner_id,
        book=context.book.name,
        session_id=context.session_id,
        request_id=context.request_id,
    )


def build_messages(context: TurnContext, injection: Injection) -> list[dict[str, Any]]:
    """The request's messages: one system message, the transcript, and the recall just before the last user message."""
    parts = (context.agent.settings.instructions, context.client_system, injection.guidance, injection.frozen)
    system = "\n\n".join(part for part in parts if part)
    messages = [{"role": "system", "content": system}] if system else []
    if context.summary:
        messages.append({"role": context.agent.settings.recall_role, "content": earlier_block(context.summary)})
    messages.extend(context.messages)
    if injection.recall:
        last_user = max(index for index, message in enumerate(messages) if message["role"] == "user")
        messages.insert(last_user, {"role": context.agent.settings.recall_role, "content": injection.recall})
    return messages


async def _snapshot(context: TurnContext) -> SessionSnapshot:
    assert context.book is not None
    version, agent = (context.agent.version, context.compaction_epoch), context.agent.settings
    warm = snapshots.warm(context.session_id, context.book, version)
    if warm is not None:
        return warm
    return await in_read_thread(
        snapshots.build,
        context.session_id,
        context.book,
        version,
        max_memories=agent.max_inject_memories,
        char_limit=agent.frozen_char_limit,
        guidance_tokens=guidance_tokens(context.agent),
    )


def _as_of(snapshot: SessionSnapshot) -> dict[str, int]:
    """What a run's trace says of its snapshot: the state it was made of (see `version` in _snapshot), and its size."""
    state, (agent_version, compaction_epoch) = snapshot.view.state, snapshot.version
    return {
        "generation": state.generation,
        "epoch": state.epoch,
        "agent_version": agent_version,
        "compaction_epoch": compaction_epoch,
        "frozen": len(snapshot.frozen.entries),
    }


def guidance_tokens(agent: AgentConfig) -> int:
    """How much of the summary a session of this agent carries, in tokens; 0 = consolidation is off."""
    return agent.memories.summary_injection_token_limit if agent.memories.enabled else 0


def injected_blocks(book: BookState, agent: AgentConfig) -> str:
    """What every request of a session with this agent carries from memory, in the very bytes. Uses the database."""
    view = snapshots.view(book)
    limit = guidance_tokens(agent)
    told = guidance(cut_to_tokens(view.summary, limit)) if limit else ""
    frozen = freeze(
        view.entries, max_memories=agent.settings.max_inject_memories, char_limit=agent.settings.frozen_char_limit
    )
    parts = (told, frozen.text if agent.settings.inject_memories else "")
    return "\n\n".join(part for part in parts if part)


async def _thread(context: TurnContext) -> ThreadView | None:
    if context.newest_record is None:
        return None
    turns: Sequence[ThreadTurn] | None = thread_cache.known(context.session_id, context.newest_record)
    if turns is None:
        turns = await in_read_thread(thread_cache.read, context.owner_id, context.session_id)
    window = {identity.fold(identity.text_of(message.get("content"))) for message in context.messages}
    # A turn that is being replaced, and what followed it, has left the conversation.
    return outside_window([turn for turn in turns if turn.turn < context.turn], window)


async def _keywords(context: TurnContext) -> tuple[list[str], dict[str, Any]]:
    """Search words of the last user message: by rule, or from one extra request that falls back to the rule."""
    if context.agent.settings.inject_memories_strategy == "local":
        return extract_keywords(context.user_text), {}
    messages = (
        {"role": "system", "content": prompt_file("keywords").text},
        {"role": "user", "content": context.user_text},
    )
    target = agent_target(context.agent.settings)
    try:
        answer = await ask(target, messages, seconds=settings.KEYWORDS_SECONDS, request_id=context.request_id)
        words = parse_keywords(answer.text)
    except UpstreamTimeout:
        return extract_keywords(context.user_text), {"keywords": {"strategy": "llm", "fallback": "timeout"}}
    except (DomainError, ValueError) as error:
        kind = getattr(error, "code", "unusable_answer")
        return extract_keywords(context.user_text), {"keywords": {"strategy": "llm", "fallback": kind}}
    return words, {"keywords": {"strategy": "llm", "found": len(words)}}


def parse_keywords(answer: str) -> list[str]:
    """Keywords separated by commas or white space; an empty answer is none. Raises ValueError for prose."""
    words = [word.strip(".;:\"'`()[]").casefold() for word in _SEPARATORS.split(answer)]
    found = list(dict.fromkeys(word for word in words if word))
    if len(found) > _MOST_KEYWORDS:
        raise ValueError("prose instead of keywords")
    return found
