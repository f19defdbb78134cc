"""Deletes what is older than the operator keeps: sessions that nobody uses any more, and details of runs
(docs/decisions/0063)."""

from datetime import datetime, timedelta

from django.conf import settings

from gateway.models import Run, Session
from gateway.sessions.keeping import FOR_GOOD
from memories.database.ageing import AgeScan
from memories.ids import first_id

EXPIRE_SECONDS = 1.0
"""Approximate limit of the time that one sweep looks for old rows of one kind."""
_sessions = AgeScan(again_after=3600.0)  # a session may have been used until now, so that each is looked at again
_details = AgeScan()


def sessions_expire(now: datetime, *, scan: AgeScan = _sessions) -> None:
    """Have `sessions_purge` delete the sessions that nobody used for SESSION_DAYS, pinned and archived ones too. An
    imported conversation is kept for as long after its import."""
    if not settings.SESSION_DAYS:
        return
    before = now - timedelta(days=settings.SESSION_DAYS)
    for page in scan.pages(Session.objects.only("pk"), before=before, seconds=EXPIRE_SECONDS):
        unused = Session.objects.filter(pk__in=[row.pk for row in page], last_active_at__lt=before)
        unused.update(deleted_at=FOR_GOOD)


def details_have_expired(run: Run, now: datetime) -> bool:
    """Return True if `run_details_expire` deletes the details of a run."""
    days = settings.RUN_DETAIL_DAYS
    return bool(days) and run.pk < first_id(now - timedelta(days=days))


def run_details_expire(now: datetime, *, scan: AgeScan = _details) -> None:
    """Delete which memories the runs of more than RUN_DETAIL_DAYS ago were given, and the model's reasoning. Questions,
    answers, tool calls and figures stay."""
    if not settings.RUN_DETAIL_DAYS:
        return
    ended = Run.objects.exclude(state__in=[Run.State.RUNNING, Run.State.AWAITING_CLIENT_TOOLS])
    before = now - timedelta(days=settings.RUN_DETAIL_DAYS)
    for page in scan.pages(Run.objects.only("pk"), before=before, seconds=EXPIRE_SECONDS):
        detailed = ended.exclude(recalled=[], reasoning="").filter(pk__in=[row.pk for row in page])
        detailed.update(recalled=[], reasoning="")
