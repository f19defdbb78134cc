"""A preview of a run: what it would read, and an estimate of its tokens and cost."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from gateway.agents.configuration import consolidation_settings, prices
from gateway.agents.model_choice import BackgroundModels
from gateway.agents.rows import agent_settings
from gateway.agents.settings import ConsolidationSettings
from gateway.limits.money import cost_of
from memories.artifacts.store import live_artifacts, versions_of
from memories.models import Book
from memories.number_words import counted
from memories.tokens import text_tokens
from prompts.consolidation import extraction_messages, synthesis_messages
from reviews.consolidation.conversation import read_record
from reviews.consolidation.model_call import ANSWER_TOKENS, estimated_tokens
from reviews.consolidation.selection import needs_synthesis, notes_in, sessions_of
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationState

# The estimate for the notes on one session.
_NOTE_TOKENS = 500
_Request = tuple[str, int]  # its model, and the tokens of the request and its answer


def consolidation_preview(book: Book, *, force: bool = False) -> dict[str, Any]:
    """Return what a run requested now would do, as the API shows it (ConsolidationPreview). Writes nothing and calls no
    model. `cost` is None if a model has no price; `obstacle` is why no upstream may be given the book, so that nothing
    would be read."""
    limits, models = consolidation_settings(), BackgroundModels.now(book.name)
    obstacle, cost, sessions = models.obstacle(book.name), None, list[dict[str, Any]]()
    requests: list[_Request] = []
    if not obstacle:
        for model, session in _sessions_read(book, limits, models, force=force):
            sessions.append(session)
            requests.append((model, session["tokens"]))
        if _has_synthesis(book, reads=bool(sessions), force=force):
            tokens = _synthesis_tokens(book, len(sessions), limits.synthesis_token_limit)
            requests.append((models.of_book(book.name, "smol").model, tokens))
        cost = _cost(requests, models.of_book(book.name, "default").model)
    preview = {
        "object": "consolidation_preview",
        "book": book.name,
        "enabled": limits.enabled,
        "sessions": sessions,
        "sessions_total": len(sessions),
        "synthesis": len(requests) > len(sessions),
        "requests": len(requests),
        "tokens": sum(tokens for _, tokens in requests),
        "max_requests": limits.max_requests_per_run,
        "max_tokens": limits.max_tokens_per_run,
        "cost": cost,
        "obstacle": obstacle or None,
        "standing": asdict(standing_of(book, force=force)),
    }
    return preview | {"text": _text(preview)}


def _text(preview: dict[str, Any]) -> str:
    """Return the preview in sentences, for the page and the command."""
    if preview["obstacle"]:
        return f"A rebuild would read nothing. {preview['obstacle']}"
    standing = preview["standing"]["text"]
    if not preview["requests"]:
        return f"A rebuild would read and write nothing. {standing}"
    cost = f", about ${preview['cost']:.2f}" if preview["cost"] is not None else ""
    return (
        f"A rebuild would read {counted(preview['sessions_total'], 'session')}: "
        f"about {preview['tokens']:,} tokens{cost}. It stops at {preview['max_tokens']:,} tokens. "
        f"Your edits to the documents are kept. {standing}"
    )


def _has_synthesis(book: Book, *, reads: bool, force: bool) -> bool:
    """Return True if the run would write the documents: something changed, and there is something to write from."""
    state = ConsolidationState.objects.filter(book=book).first()
    versions = versions_of(live_artifacts(book.owner_id, book.pk))
    # Without notes, the documents are rewritten only if notes were forgotten.
    sources = reads or notes_in(book).exists() or bool(state and state.from_notes and versions)
    return sources and (force or reads or needs_synthesis(state, versions))


def _sessions_read(
    book: Book, limits: ConsolidationSettings, models: BackgroundModels, *, force: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Return the sessions that would be read, as the API shows them, each with the model that would read it."""
    sessions = []
    for session in sessions_of(book, limits, force=force):
        extraction = getattr(session, "extraction", None)
        floor = extraction.floor_seq if extraction else 0
        record = read_record(book.owner_id, session.pk, floor=floor, token_limit=limits.extraction_token_limit)
        tokens = estimated_tokens(extraction_messages(thread_id=str(session.pk), items=record.items))
        model = models.of_session(book.name, agent_settings(session.agent), "default").model
        sessions.append((model, {"id": str(session.pk), "title": session.title, "tokens": tokens}))
    return sessions


def _synthesis_tokens(book: Book, new_sessions: int, max_notes: int) -> int:
    notes = sum(map(text_tokens, chain.from_iterable(notes_in(book).values_list("raw_memory", "synopsis"))))
    documents = sum(text_tokens(artifact.content) for artifact in live_artifacts(book.owner_id, book.pk))
    prompt = estimated_tokens(synthesis_messages(documents=(), notes=()))
    return prompt + documents + min(max_notes, notes + new_sessions * _NOTE_TOKENS)


def _cost(requests: Sequence[_Request], default_model: str) -> float | None:
    """Return the cost, or None if one of the models (`default_model` if there are none) has no price."""
    by_model = prices()
    if any(model not in by_model for model, _ in requests or [(default_model, 0)]):
        return None
    costs = (cost_of(by_model[model], tokens - ANSWER_TOKENS, ANSWER_TOKENS) for model, tokens in requests)
    return round(sum(costs, start=0.0), 4)
