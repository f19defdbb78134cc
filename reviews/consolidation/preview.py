"""A preview of a run: what it would read, and an estimate of its tokens and cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
from reviews.consolidation.standing import Standing, standing_of
from reviews.models import ConsolidationState

# The estimate for the notes on one session.
_NOTE_TOKENS = 500
_Request = tuple[str, int]  # its model, and the tokens of the request and its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a run would read, and the estimate. `cost` is None if a model has no price. `obstacle` is set if no upstream
    may be given the book, so that nothing would be read."""

    book: str
    enabled: bool
    sessions: tuple[dict[str, Any], ...] = ()
    synthesis: bool = False
    requests: int = 0
    tokens: int = 0
    max_requests: int
    max_tokens: int
    cost: float | None = None
    standing: Standing
    obstacle: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the preview as the API shows it."""
        return asdict(self) | {
            "object": "consolidation_preview",
            "sessions_total": len(self.sessions),
            "obstacle": self.obstacle or None,
            "text": self.text,
        }

    @property
    def text(self) -> str:
        """The preview in sentences, for the page and the command."""
        if self.obstacle:
            return f"A rebuild would read nothing. {self.obstacle}"
        if not self.requests:
            return f"A rebuild would read and write nothing. {self.standing.text}"
        cost = f", about ${self.cost:.2f}" if self.cost is not None else ""
        return (
            f"A rebuild would read {counted(len(self.sessions), 'session')}: "
            f"about {self.tokens:,} tokens{cost}. It stops at {self.max_tokens:,} tokens. "
            f"Your edits to the documents are kept. {self.standing.text}"
        )


def consolidation_preview(book: Book, *, force: bool = False) -> Preview:
    """Return what a run requested now would do. Writes nothing and calls no model."""
    limits = consolidation_settings()
    models = BackgroundModels.now(book.name)
    nothing = Preview(
        book=book.name,
        enabled=limits.enabled,
        max_requests=limits.max_requests_per_run,
        max_tokens=limits.max_tokens_per_run,
        standing=standing_of(book, force=force),
    )
    if obstacle := models.obstacle(book.name):
        return replace(nothing, obstacle=obstacle)
    sessions = _sessions_read(book, limits, models, force=force)
    requests = [(model, session["tokens"]) for model, session in sessions]
    state = ConsolidationState.objects.filter(book=book).first()
    versions = versions_of(live_artifacts(book.owner_id, book.pk))
    changed = bool(sessions) or needs_synthesis(state, versions)
    # Without notes, the documents are rewritten only if notes were forgotten.
    sources = bool(sessions) or notes_in(book).exists() or bool(state and state.from_notes and versions)
    due = (force or changed) and sources
    if due:
        tokens = _synthesis_tokens(book, len(sessions), limits.synthesis_token_limit)
        requests.append((models.of_book(book.name, "smol").model, tokens))
    return replace(
        nothing,
        sessions=tuple(session for _, session in sessions),
        synthesis=due,
        requests=len(requests),
        tokens=sum(tokens for _, tokens in requests),
        cost=_cost(requests, models.of_book(book.name, "default").model),
    )


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
