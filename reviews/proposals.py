"""Proposals: single writes that wait for approval. Those of turns, apps and imports are stored as reviews that are
never executed. Decisions about them are in reviews.approvals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from gateway.agents.rows import agent_settings
from gateway.agents.settings import AgentSettings
from gateway.models import Agent, Session
from memories.caller import KeyLimits
from memories.errors import InvalidRequest, NotFound
from memories.evidence import HeldWrites, KnownProposal, Proposal, proposal_id
from memories.ids import parse_uuid
from memories.models import Book
from reviews.ending import review_notify
from reviews.models import ReviewRun
from reviews.repeated import repeats_join
from reviews.schedule import stored_settings
from reviews.selectors import review_get
from reviews.writes import ReviewWrite

State, Trigger = ReviewRun.State, ReviewRun.Trigger
_PAGE = 100
_SOURCES = {
    Trigger.TURN: "turn",
    Trigger.APP: "turn",
    Trigger.INGEST: "ingest",
    Trigger.NOTES: "consolidation",
    Trigger.IMPORT: "import",
}


class ProposalState(StrEnum):
    """The state of a proposal."""

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedWrite:
    """A write that waits or waited for approval, with its review."""

    review: ReviewRun
    write: ReviewWrite

    @property
    def id(self) -> str:
        return proposal_id(self.review.pk, self.write.index)

    @property
    def source(self) -> str:
        return _SOURCES.get(Trigger(self.review.trigger), "review")

    @property
    def state(self) -> ProposalState:
        return ProposalState(self.write.state) if self.write.pending else ProposalState.APPROVED

    @property
    def expires_at(self) -> datetime | None:
        """When the proposal expires, if it is still waiting."""
        if not self.write.waiting or self.review.finished_at is None:
            return None
        return self.review.finished_at + timedelta(days=settings.APPROVAL_DAYS)


@transaction.atomic
def proposals_keep(
    book: Book, step: HeldWrites, *, trigger: ReviewRun.Trigger = Trigger.TURN
) -> dict[str, KnownProposal]:
    """Store the held writes of a turn's step, an app or other work, and notify the owner of new ones. They are dropped
    if their session was deleted or their book cleared. Returns, by proposal id, the earlier proposal that a repeated
    write joined."""
    seq = 0
    if step.session_id is not None:
        sessions = Session.objects.select_for_update(no_key=True)
        session = sessions.filter(pk=step.session_id, owner_id=book.owner_id).first()
        if session is None:
            return {}
        seq = session.message_seq
    if not Book.objects.select_for_update(no_key=True).filter(pk=book.pk, epoch=book.epoch).exists():
        return {}
    imports = [str(step.imported)] if step.imported else []
    writes = [_write(index, proposal, imports) for index, proposal in enumerate(step.proposals)]
    joined = repeats_join(book, step.session_id, writes)
    if waiting := [write for write in writes if write.waiting]:
        _keep(book, step, trigger, seq, waiting)
    return {proposal_id(step.id, index): kept for index, kept in joined.items()}


def _keep(book: Book, step: HeldWrites, trigger: ReviewRun.Trigger, seq: int, writes: list[ReviewWrite]) -> None:
    now = timezone.now()
    agent = Agent.objects.filter(name=step.agent).first() if step.agent else None
    run = ReviewRun(
        id=step.id,
        owner_id=book.owner_id,
        book=book,
        session_id=step.session_id,
        state=State.AWAITING_APPROVAL,
        trigger=Trigger.IMPORT if step.imported else trigger if step.session_id else Trigger.APP,
        first_seq=seq,
        last_seq=seq,
        agent_name=step.agent,
        settings=stored_settings(agent_settings(agent) if agent else AgentSettings()),
        book_epoch=book.epoch,
        writes=writes,
        proposals=len(writes),
        created_at=now,
        finished_at=now,
    )
    run.save(force_insert=True)
    review_notify(run, State.AWAITING_APPROVAL, writes)


def proposal_get(owner_id: UUID, given: str, *, limits: KeyLimits) -> ProposedWrite:
    """Return the owner's proposal with this public id. Raises NotFound."""
    review_id, index = _parse_id(given)
    if review_id is not None:
        for proposal in _of(review_get(owner_id, review_id, limits=limits)):
            if proposal.write.index == index:
                return proposal
    raise NotFound("There is no such proposal.")


def proposals_list(
    owner_id: UUID, *, limits: KeyLimits, state: ProposalState | None = None, after: str = "", page_size: int
) -> tuple[list[ProposedWrite], bool]:
    """Return proposals, newest first, of one state or all, and whether there are more. Raises InvalidRequest."""
    rows = ReviewRun.objects.filter(owner_id=owner_id, proposals__gt=0).select_related("book").order_by("-id")
    rows = limits.filter(rows, book="book__name", agent="agent_name")
    if state == ProposalState.WAITING:
        rows = rows.filter(state=State.AWAITING_APPROVAL)
    elif state in {ProposalState.REJECTED, ProposalState.EXPIRED}:
        rows = rows.filter(rejected_at__isnull=False)
    begin, index = _parse_id(after) if after else (None, -1)
    if after and begin is None:
        raise InvalidRequest("`after` must be the last_id of the previous page.", param="after")
    found: list[ProposedWrite] = []
    for proposal in _each(rows, begin):
        if (proposal.review.pk == begin and proposal.write.index <= index) or (state and proposal.state != state):
            continue
        found.append(proposal)
        if len(found) > page_size:
            return found[:page_size], True
    return found, False


def _each(rows: "QuerySet[ReviewRun]", begin: UUID | None) -> Iterator[ProposedWrite]:
    page = list((rows.filter(pk__lte=begin) if begin else rows)[:_PAGE])
    while page:
        for run in page:
            yield from _of(run)
        page = list(rows.filter(pk__lt=page[-1].pk)[:_PAGE]) if len(page) == _PAGE else []


def _of(run: ReviewRun) -> Iterator[ProposedWrite]:
    """Yield a review's proposals. Rows of earlier versions lack `proposed`, hence the look at the state."""
    return (ProposedWrite(review=run, write=write) for write in run.writes if write.proposed or write.pending)


def _parse_id(given: str) -> tuple[UUID | None, int]:
    review, _, index = given.rpartition("-")
    valid = index.isdecimal() and len(index) < 6
    return (parse_uuid(review), int(index)) if valid else (None, -1)


def _write(index: int, proposal: Proposal, imports: Sequence[str]) -> ReviewWrite:
    write = ReviewWrite(
        index=index,
        action=proposal.action,
        key=str(proposal.number) if proposal.number else f"new{index + 1}",
        memory_id=str(proposal.number) if proposal.number else None,
        version=proposal.version,
        target=proposal.target,
        category=proposal.category,
        keywords=proposal.keywords,
        before=proposal.before,
        after=proposal.after,
        more=proposal.more,
        imports=list(imports),
        evidence=proposal.evidence,
    )
    write.wait(proposal.reason, proposal.rule)
    return write
