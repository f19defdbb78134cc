"""The panel beside the reviews: the state of a book's consolidation, and its documents."""

from typing import Any

from gateway.agents.configuration import consolidation_settings, prices
from gateway.agents.model_choice import BackgroundModels
from gateway.agents.settings import ConsolidationSettings
from gateway.limits.money import cost_of
from memories.artifacts.paths import SUMMARY_PATH, skill_name
from memories.artifacts.store import artifact_usage, live_artifacts
from memories.models import Artifact, ArtifactUsage, Book, WriteOrigin
from memories.number_words import times
from memories.viewers import Viewer
from reviews.consolidation.health import finished_text
from reviews.consolidation.model_call import ANSWER_TOKENS
from reviews.consolidation.standing import standing_of
from reviews.models import ConsolidationRun

State = ConsolidationRun.State
Phase = ConsolidationRun.Phase
_BAR_WIDTH = 99.6


def panel_of(viewer: Viewer, name: str) -> dict[str, Any]:
    """Return the panel of a book, which may not exist yet. `idle` is how long sessions must be idle before they are
    read; `said`, how the last run ended or why the open one is paused; `obstacle`, why no run can begin."""
    limits = consolidation_settings()
    books = {book.name: book for book in Book.objects.filter(owner_id=viewer.owner.pk).order_by("name")}
    hours = limits.min_rollout_idle_hours
    idle = f" for {hours:g} hour{'' if hours == 1 else 's'}" if hours else ""
    panel = {"book": name, "books": sorted(books or {name}), "enabled": limits.enabled, "idle": idle}
    book = books.get(name)
    if book is None:
        return panel
    runs = ConsolidationRun.objects.filter(owner_id=viewer.owner.pk, book=book).select_related("book__owner")
    run = runs.order_by("-id").first()
    is_open = run is not None and run.state in ConsolidationRun.OPEN
    return panel | {
        "run": run,
        "open": is_open,
        "steps": _steps(run) if run and is_open else (),
        "quotas": _quotas(run, limits) if run and is_open else (),
        "said": _outcome_text(run, viewer) if run else "",
        "obstacle": BackgroundModels.now(name).obstacle(name) if limits.enabled else "",
        "documents": _documents(viewer, book),
    }


def document_name(path: str) -> str:
    """Return the name of a document on the page: `skills/restore-a-dump` for a skill, else the path."""
    skill = skill_name(path)
    return f"skills/{skill}" if skill else path


def _steps(run: ConsolidationRun) -> list[dict[str, Any]]:
    """Return the steps of a run. `state` is done, now or next; `fill` is the bar's width out of 100, if there is a
    bar."""
    total, done, chosen = run.sessions_total, run.sessions_done, run.selected
    reading = run.phase == Phase.EXTRACTION
    bar = round(_BAR_WIDTH * done / total, 1) if chosen and reading and total else None
    read_state = "next" if not chosen else "now" if reading else "done"
    read_count = f"{done} of {total}" if chosen else "next"
    return [
        {"name": "Choose sessions", "state": "done" if chosen else "now", "count": f"{total} found" if chosen else ""},
        {"name": "Read each one", "state": read_state, "count": read_count, "fill": bar},
        {"name": "Write the documents", "state": "next" if reading else "now", "count": "next" if reading else ""},
    ]


def _quotas(run: ConsolidationRun, limits: ConsolidationSettings) -> list[tuple[str, str]]:
    rows = [("Tokens", f"{run.tokens:,} of at most {limits.max_tokens_per_run:,}")]
    # The price of the model that reads the book's sessions, if an upstream may be used for the book.
    book, models = run.book.name, BackgroundModels.now(run.book.name)
    price = None if models.obstacle(book) else prices().get(models.of_book(book, "default").model)
    if price is not None:
        written = min(run.tokens, run.requests * ANSWER_TOKENS)
        cost, tokens = cost_of(price, run.tokens - written, written), limits.max_tokens_per_run
        most = max(cost_of(price, tokens, 0), cost_of(price, 0, tokens))
        rows.append(("Cost", f"about ${cost:.2f} of at most ${most:.2f}"))
    return rows


def _outcome_text(run: ConsolidationRun, viewer: Viewer) -> str:
    problem = str((run.error or {}).get("message", ""))
    if run.state == State.PAUSED:
        return f"It is paused until {viewer.near_minute(run.not_before)}. {problem}".strip()
    if run.state in ConsolidationRun.OPEN or run.finished_at is None:
        return ""
    when = viewer.near_minute(run.finished_at)
    if run.state in {State.FAILED, State.CANCELLED}:
        verb = "failed" if run.state == State.FAILED else "was stopped"
        return f"The last run {verb} {when}. {problem} What was done is kept.".replace("  ", " ")
    ceiling = " It reached its limit; the next run continues." if run.ceiling else ""
    why = f" {standing_of(run.book, force=run.force).text}" if run.state == State.NOTHING_TO_DO else ""
    return f"Last run {when}. {finished_text(run)}{why}{ceiling}"


def _documents(viewer: Viewer, book: Book) -> list[dict[str, Any]]:
    artifacts = list(live_artifacts(viewer.owner.pk, book.pk))
    usage = artifact_usage(viewer.owner.pk, artifacts)
    return [
        {"artifact": row, "name": document_name(row.path), "meta": _meta(row, usage.get(row.pk), viewer)}
        for row in artifacts
    ]


def _meta(artifact: Artifact, usage: ArtifactUsage | None, viewer: Viewer) -> str:
    parts = [viewer.day(artifact.updated_at)]
    if artifact.scan_rule:
        parts.append("blocked, never sent to a model")
    elif artifact.write_origin == WriteOrigin.ADMIN:
        parts.append("edited by an administrator")
    elif artifact.person_lines or artifact.struck_lines or artifact.write_origin == WriteOrigin.USER:
        parts.append("edited by you")
    if artifact.path == SUMMARY_PATH:
        parts.append("sent with every new session")
    else:
        reads = usage.reads if usage else 0
        parts.append(f"read {times(reads)}" if reads else "not read yet")
    return ", ".join(parts)
