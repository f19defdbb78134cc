"""Check the database after soak.py, without writing. Import it only after django.setup()."""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db.models import Count, Q
from django.utils import timezone
from soak_clients import CASE, Acknowledged, Ledger

from gateway.models import Message, Run
from memories.models import Memory, Revision
from reviews.models import ReviewRun

State = ReviewRun.State
GRACE = timedelta(seconds=15)  # a sweep takes back an expired lease within this time
JOB_LOST_AFTER = timedelta(seconds=90)  # a scheduled review whose job was lost is enqueued again after a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures that must be 0, and counts of what was checked."""

    turns_lost: int
    partial_reviews: int
    double_writes: int
    stuck_runs: int
    runs: dict[str, int]
    reviews: dict[str, int]
    memories: int

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def open_work() -> int:
    """Return the number of runs and reviews that have not ended."""
    runs = Run.objects.filter(state=Run.State.RUNNING).count()
    return runs + ReviewRun.objects.filter(state__in=[State.SCHEDULED, State.RUNNING]).count()


def findings(ledger: Ledger) -> Findings:
    """Run all checks."""
    return Findings(
        turns_lost=turns_lost(ledger),
        partial_reviews=partial_reviews(),
        double_writes=duplicate_turns(ledger) + duplicate_memories(),
        stuck_runs=stuck_work(),
        runs=dict(Counter(Run.objects.values_list("state", flat=True))),
        reviews=dict(Counter(ReviewRun.objects.values_list("state", flat=True))),
        memories=Memory.objects.count(),
    )


def turns_lost(ledger: Ledger) -> int:
    """Count acknowledged turns that are not stored completely: a completed run with its question and answer."""
    return sum(not _stored_completely(turn) for turn in ledger.turns)


def _stored_completely(turn: Acknowledged) -> bool:
    run = Run.objects.filter(pk=turn.run, state=Run.State.COMPLETED, superseded=False).first()
    if run is None or str(run.session_id) != turn.session:
        return False
    said = Message.objects.filter(run=run).order_by("seq").values_list("role", "text")
    return list(said) == [("user", f"Please look into case {turn.case} for me."), ("assistant", turn.text)]


def partial_reviews() -> int:
    """Count reviews whose revisions in the book differ from their row: all applied writes if saved, otherwise none."""
    written = dict(
        Revision.objects.filter(change_set__review_id__isnull=False)
        .values_list("change_set__review_id")
        .annotate(count=Count("pk"))
        .values_list("change_set__review_id", "count")
    )
    partial = 0
    for review in ReviewRun.objects.all():
        applied = sum(write.state == "applied" for write in review.writes) if review.state == State.SAVED else 0
        partial += written.get(review.pk, 0) != applied
    return partial


def duplicate_turns(ledger: Ledger) -> int:
    """Count questions that are stored more than once because a retry was taken for a new turn."""
    said = Message.objects.filter(role="user", kind="chat", run__state=Run.State.COMPLETED, run__superseded=False)
    cases = Counter(case for text in said.values_list("text", flat=True) for case in CASE.findall(text))
    return sum(count - 1 for case, count in cases.items() if case in ledger.cases)


def duplicate_memories() -> int:
    """Count live memories that repeat another one of their book."""
    live = Memory.objects.filter(deleted_at__isnull=True)
    same = live.values("book", "content_key").annotate(count=Count("pk")).filter(count__gt=1)
    return sum(row["count"] - 1 for row in same)


def stuck_work() -> int:
    """Count runs and reviews that nothing will resume: past their lease, or long overdue."""
    now = timezone.now()
    late = Q(lease_expires_at__lt=now - GRACE)
    runs = Run.objects.filter(late, state=Run.State.RUNNING).count()
    reviews = ReviewRun.objects.filter(
        Q(late, state=State.RUNNING)
        | Q(state=State.SCHEDULED, not_before__lt=now - JOB_LOST_AFTER, created_at__lt=now - JOB_LOST_AFTER)
    )
    return runs + reviews.count()
