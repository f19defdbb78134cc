"""What soak.py finds in the database afterwards. Imported once Django is set up; reads only."""

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
GRACE = timedelta(seconds=15)  # a lease that ran out is taken back by a sweep, and a job is found again, within this
LOST = timedelta(seconds=90)  # a scheduled review whose job was lost is enqueued anew after a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures that must be 0, and how much there was to look at."""

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
    """Runs and reviews that are still to end."""
    runs = Run.objects.filter(state=Run.State.RUNNING).count()
    return runs + ReviewRun.objects.filter(state__in=[State.SCHEDULED, State.RUNNING]).count()


def findings(ledger: Ledger) -> Findings:
    """Look at everything."""
    return Findings(
        turns_lost=turns_lost(ledger),
        partial_reviews=partial_reviews(),
        double_writes=turns_counted_twice(ledger) + memories_twice(),
        stuck_runs=stuck(),
        runs=dict(Counter(Run.objects.values_list("state", flat=True))),
        reviews=dict(Counter(ReviewRun.objects.values_list("state", flat=True))),
        memories=Memory.objects.count(),
    )


def turns_lost(ledger: Ledger) -> int:
    """Acknowledged turns that are not stored whole: the run completed, with its question and its answer."""
    return sum(not _stored_whole(turn) for turn in ledger.turns)


def _stored_whole(turn: Acknowledged) -> bool:
    run = Run.objects.filter(pk=turn.run, state=Run.State.COMPLETED, superseded=False).first()
    if run is None or str(run.session_id) != turn.session:
        return False
    said = Message.objects.filter(run=run).order_by("seq").values_list("role", "text")
    return list(said) == [("user", f"Please look into case {turn.case} for me."), ("assistant", turn.text)]


def partial_reviews() -> int:
    """Reviews of which something else is in the book than their row says: all of their writes, or nothing."""
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


def turns_counted_twice(ledger: Ledger) -> int:
    """Questions that stand more than once in the conversations, though they were asked once and repeated."""
    said = Message.objects.filter(role="user", kind="chat", run__state=Run.State.COMPLETED, run__superseded=False)
    cases = Counter(case for text in said.values_list("text", flat=True) for case in CASE.findall(text))
    return sum(count - 1 for case, count in cases.items() if case in ledger.cases)


def memories_twice() -> int:
    """Live memories of one book that say the same."""
    live = Memory.objects.filter(deleted_at__isnull=True)
    same = live.values("book", "content_key").annotate(count=Count("pk")).filter(count__gt=1)
    return sum(row["count"] - 1 for row in same)


def stuck() -> int:
    """Runs and reviews that nobody will take up: past their lease, or due for long."""
    now = timezone.now()
    late = Q(lease_expires_at__lt=now - GRACE)
    runs = Run.objects.filter(late, state=Run.State.RUNNING).count()
    reviews = ReviewRun.objects.filter(
        Q(late, state=State.RUNNING) | Q(state=State.SCHEDULED, not_before__lt=now - LOST, created_at__lt=now - LOST)
    )
    return runs + reviews.count()
