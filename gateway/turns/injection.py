"""Memory injection: the session's snapshot, the recall of this turn, and the request messages built from both. With a
warm snapshot it needs no database query. Each step is contained: if it fails, its result is empty, the run's trace
names the error, and the turn continues. Injection happens once per run: a run that waits for its client's tools stores
it (`stored_injection`) and resumes with the same bytes."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from gateway.agents.model_choice import agent_target, agent_upstreams
from gateway.embeddings import query_vector
from gateway.messages import joined_content, last_user_index, text_of
from gateway.runs.call_ids import runs_called
from gateway.runs.context import AgentConfig, TurnContext
from gateway.steps import ask
from gateway.upstream.dialects import dialect_of
from memories.counters import recall_lanes
from memories.database.access import in_read_thread
from memories.errors import DomainError, UpstreamTimeout
from memories.providers import Scope, record_later
from memories.recall.book_views import BookState
from memories.recall.failures import contained, log_failure
from memories.recall.frozen import freeze
from memories.recall.snapshot import SessionSnapshot, empty_snapshot, snapshots
from memories.recall.threads import ThreadTurn, ThreadView, outside_window, thread_cache
from memories.recall.two_lanes import Injection, RecallSettings, recall, searches_book
from memories.tokens import cut_to_tokens
from memories.tools import READ
from prompts.consolidation import guidance
from prompts.conversation import earlier_block
from prompts.files import prompt_file
from search.keywords import extract_keywords

_SEPARATORS = re.compile(r"[,，、\s]+")
_MAX_KEYWORDS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """Search words for the long-term lane. `none_matter` is True if a model was asked and named none; `usage` is the
    model's."""

    words: Sequence[str] = ()
    none_matter: bool = False
    usage: dict[str, Any] = field(default_factory=dict)


async def prepare(context: TurnContext, *, read_tool: str = READ.name) -> Injection:
    """Return the injection for all steps of a run; it is empty if nothing is to be injected. `read_tool` is the name
    that the guidance uses for the tool that reads documents. Never raises."""
    if context.injected is not None:
        stored = {name: context.injected[name] for name in _STORED_FIELDS}
        return Injection(**stored, trace=context.earlier.trace.get("recall", {}))
    agent = context.agent.settings
    if context.book is None or not (agent.inject_memories or context.agent.consolidation.enabled):
        return Injection()
    trace: dict[str, Any] = {}
    snapshot = await _snapshot(context, context.book, trace)
    guidance_text = ""
    with contained("guidance", trace):
        guidance_text = guidance(snapshot.summary, read_tool=read_tool)
    if not agent.inject_memories:
        return Injection(guidance=guidance_text, trace=trace)
    thread = await _thread(context, trace)
    keywords, vector = await _search_terms(context, snapshot, trace)
    injection = await recall(
        snapshot=snapshot,
        thread=thread,
        query=context.user_text,
        keywords=keywords.words,
        limits=RecallSettings(
            max_memories=agent.max_inject_memories,
            search=agent.memory_search,
            lane_seconds=settings.RECALL_LANE_SECONDS,
        ),
        scope=_provider_scope(context),
        query_vector=vector,
        long_term=not keywords.none_matter,
    )
    return replace(injection, guidance=guidance_text, trace=injection.trace | trace, usage=keywords.usage)


_STORED_FIELDS = ("frozen", "guidance", "recall")


def stored_injection(context: TurnContext, injection: Injection, read_tool: str) -> dict[str, Any]:
    """Return the injection of a run that waits for its client's tools, for `Run.injected`: its next request then begins
    with the same bytes in any process. `epoch` is None if the run has no book, and thus nothing from memory."""
    agent = context.agent.settings
    return {
        "epoch": context.book.epoch if context.book else None,
        "instructions": agent.instructions,
        "recall_role": agent.recall_role,
        "read_tool": read_tool,
        **{name: getattr(injection, name) for name in _STORED_FIELDS},
    }


def _provider_scope(context: TurnContext) -> Scope | None:
    """Return the scope of a run for other memory providers; None for a run without memory."""
    if context.book is None:
        return None
    return Scope(
        owner_id=context.owner_id, book=context.book.name, session_id=context.session_id, request_id=context.request_id
    )


def notify_providers(context: TurnContext, answer: str, trace: dict[str, Any]) -> None:
    """Report a completed turn to other memory providers, in the background."""
    with contained("providers", trace):
        if scope := _provider_scope(context):
            about = {"agent": context.agent.name, "turn": context.turn}
            record_later(scope, user=context.user_text, assistant=answer, run_id=context.run_id, metadata=about)


def build_messages(context: TurnContext, injection: Injection) -> list[dict[str, Any]]:
    """Return the messages of the request: one system message, the transcript, and the recall before the turn's user
    message, or inside that message if a server's rules on roles require it."""
    parts = (context.agent.settings.instructions, context.client_system, injection.guidance, injection.frozen)
    system = joined_content(*parts)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    with contained("earlier_conversation", injection.trace):
        if earlier := earlier_block(context.summary):
            messages.append({"role": context.agent.settings.recall_role, "content": earlier})
    messages.extend(context.messages)
    if injection.recall:
        at, has_user = _place_of_recall(context, messages)
        # Every server that may answer must accept the messages, including the fall-backs.
        inside = any(dialect_of(upstream).recall_inside for upstream in agent_upstreams(context.agent.settings))
        if has_user and inside:
            messages[at] = {**messages[at], "content": joined_content(injection.recall, messages[at].get("content"))}
        else:
            messages.insert(at, {"role": context.agent.settings.recall_role, "content": injection.recall})
    return messages


def _place_of_recall(context: TurnContext, messages: Sequence[dict[str, Any]]) -> tuple[int, bool]:
    """Return the index of the turn's user message, and True. It is the same in each step of a client's tool loop: what
    a client sends as the user within the loop (editor state, a tool's pictures) comes after it. If the client left that
    message out, return the index at which the loop begins, and False."""
    loop = (at for at, message in enumerate(messages) if context.run_id in runs_called(message))
    start = next(loop, len(messages))
    last_user = last_user_index(messages[:start])
    return (start, False) if last_user < 0 else (last_user, True)


async def _snapshot(context: TurnContext, book: BookState, trace: dict[str, Any]) -> SessionSnapshot:
    version, agent = (context.agent.version, context.compaction_epoch), context.agent.settings
    with contained("snapshot", trace):
        found = snapshots.warm(context.session_id, book, version)
        limits = {"max_memories": agent.max_inject_memories, "char_limit": agent.frozen_char_limit}
        tokens = guidance_tokens(context.agent)
        if found is None and not tokens:
            found = snapshots.from_view(context.session_id, book, version, **limits)
        if found is None:
            found = await in_read_thread(
                snapshots.build, context.session_id, book, version, **limits, guidance_tokens=tokens
            )
        agent_version, compaction_epoch = found.version
        trace["snapshot"] = {  # the state that it was built from, and its size
            "generation": found.view.state.generation,
            "epoch": found.view.state.epoch,
            "agent_version": agent_version,
            "compaction_epoch": compaction_epoch,
            "frozen": len(found.frozen.items),
        }
        return found
    return empty_snapshot(book)


def guidance_tokens(agent: AgentConfig) -> int:
    """Return the maximum tokens of the summary in the guidance of this agent's sessions; 0 if consolidation is off."""
    return agent.consolidation.summary_injection_token_limit if agent.consolidation.enabled else 0


def injected_blocks(book: BookState, agent: AgentConfig) -> str:
    """Return exactly the memory blocks in each request of a session with this agent. Uses the database."""
    view = snapshots.view(book)
    limit = guidance_tokens(agent)
    guidance_text = guidance(cut_to_tokens(view.summary, limit)) if limit else ""
    frozen = freeze(
        view.entries, max_memories=agent.settings.max_inject_memories, char_limit=agent.settings.frozen_char_limit
    )
    parts = (guidance_text, frozen.text if agent.settings.inject_memories else "")
    return "\n\n".join(part for part in parts if part)


async def _thread(context: TurnContext, trace: dict[str, Any]) -> ThreadView | None:
    """Return the turns of this session that are no longer in the request; None if none were recorded."""
    newest = context.newest_record
    if newest is None:
        return None
    with contained("thread", trace):
        turns: Sequence[ThreadTurn] | None = thread_cache.known(context.session_id, newest)
        if turns is None:
            turns = await in_read_thread(thread_cache.read, context.owner_id, context.session_id, newest)
        # Neither a turn that is being replaced nor those after it are part of the conversation any more.
        earlier = [turn for turn in turns if turn.turn < context.turn]
        return thread_cache.view(context.session_id, outside_window(earlier, _window(context.messages)))
    return None


def _window(messages: Sequence[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return the text of each user message, with the texts of the assistant messages after it."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for message in messages:
        if message.get("role") == "user":
            found.append((text_of(message.get("content")), []))
        elif message.get("role") == "assistant":
            found[-1][1].append(text_of(message.get("content")))
    return found


async def _search_terms(
    context: TurnContext, snapshot: SessionSnapshot, trace: dict[str, Any]
) -> tuple[Keywords, Sequence[float] | None]:
    """Return the keywords and the vector of the user message; both empty, without a model, if no book is searched."""
    agent = context.agent.settings
    if not searches_book(snapshot, agent.max_inject_memories):
        if agent.inject_memories_strategy == "llm":
            trace["keywords"] = {"strategy": "llm", "skipped": "nothing_to_search"}
        return Keywords(), None
    if not settings.EMBEDDING_MODEL:
        return await _keywords(context, trace), None
    vector_model = snapshot.view.vectors.model
    return await asyncio.gather(_keywords(context, trace), _vector(context, vector_model, trace))


async def _vector(context: TurnContext, model: str, trace: dict[str, Any]) -> Sequence[float] | None:
    with contained("embedding", trace):
        vector, outcome = await query_vector(
            context.user_text, upstreams=agent_upstreams(context.agent.settings), model=model
        )
        trace |= outcome
        state = outcome["embedding"]
        recall_lanes["embedding", state if state in {"ok", "timeout"} else "failed"] += 1
        return vector
    return None


async def _keywords(context: TurnContext, trace: dict[str, Any]) -> Keywords:
    """Return search words of the user message: by rule, or from a model with the rule as fall-back."""
    if context.agent.settings.inject_memories_strategy == "local":
        return Keywords(words=extract_keywords(context.user_text))
    messages = (
        {"role": "system", "content": prompt_file("keywords").text},
        {"role": "user", "content": context.user_text},
    )
    usage: dict[str, Any] = {}
    words: list[str] = []
    fallback = ""
    try:
        answer = await ask(
            agent_target(context.agent.settings),
            messages,
            seconds=settings.KEYWORDS_SECONDS,
            owner=str(context.owner_id),
            request_id=context.request_id,
        )
        usage = answer.usage
        words = parse_keywords(answer.visible_text, finished=answer.was_ended and answer.finish_reason == "stop")
    except UpstreamTimeout:
        fallback = "timeout"
    except DomainError as error:
        fallback = error.code
    except ValueError:
        fallback = "unusable_answer"
    except Exception as error:  # noqa: BLE001 - memory never breaks a turn
        fallback = f"failed:{type(error).__name__}"
        log_failure("keywords", error)
    outcome = {"fallback": fallback} if fallback else {"found": len(words)}
    trace["keywords"] = {"strategy": "llm", **outcome, "usage": usage}
    state = fallback or "ok"
    recall_lanes["keywords", state if state in {"ok", "timeout"} else "failed"] += 1
    if fallback:
        return Keywords(words=extract_keywords(context.user_text), usage=usage)
    return Keywords(words=words, none_matter=not words, usage=usage)


def parse_keywords(answer: str, *, finished: bool = True) -> list[str]:
    """Return the keywords in an answer, separated by commas or white space; none for an empty answer. Raises ValueError
    for prose, and for an empty answer that is not `finished`."""
    words = [word.strip(".;:\"'`()[]").casefold() for word in _SEPARATORS.split(answer)]
    found = list(dict.fromkeys(word for word in words if word))
    if not found and not finished:
        raise ValueError("no answer")
    if len(found) > _MAX_KEYWORDS:
        raise ValueError("prose instead of keywords")
    return found
