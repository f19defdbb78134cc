"""Leases in the admin: which worker has which phase of which book, and until when. Read-only: the next worker takes an
overdue lease by itself."""

from django.contrib import admin
from django.db.models import Q
from django.utils import timezone
from django.utils.safestring import SafeString

from memories.admin.badges import badge, moment
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, list_link
from memories.admin.filters import StateFilter
from memories.ids import parse_uuid
from memories.models import Lease
from reviews.models import ConsolidationRun

_PHASES: dict[str, str] = {str(value): str(label) for value, label in ConsolidationRun.Phase.choices}


class LeaseStateFilter(StateFilter):
    words = {"held": "Held", "overdue": "Overdue"}

    def conditions(self) -> dict[str, Q]:
        now = timezone.now()
        return {"held": Q(expires_at__gt=now), "overdue": Q(expires_at__lte=now)}


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Claims that expire. Released leases are deleted."""

    list_display = ("what", "holder", "state_badge", "until", "runs")
    list_filter = (LeaseStateFilter,)
    search_fields = ("name", "holder")
    search_help_text = "The lease's name, or who holds it"
    fields = ("name", "what", "holder", ("state_badge", "until"), "runs")

    @admin.display(description="What")
    def what(self, lease: Lease) -> str:
        phase = _PHASES.get(lease.name.rpartition(":")[2])
        return f"Consolidation: {phase}" if phase else lease.name

    @admin.display(description="State")
    def state_badge(self, lease: Lease) -> SafeString:
        overdue = lease.expires_at <= timezone.now()
        return badge("Overdue", "danger", "schedule") if overdue else badge("Held", "ok", "check")

    until = column("Expires", lambda lease: f"{moment(lease.expires_at)}:{timezone.localtime(lease.expires_at):%S}")

    @admin.display(description="Of")
    def runs(self, lease: Lease) -> SafeString | str:
        book = parse_uuid(lease.name.split(":")[1]) if lease.name.count(":") == 2 else None
        query = f"book__id__exact={book}"
        return list_link("reviews_consolidationrun", query, "the runs of its book") if book else "–"
