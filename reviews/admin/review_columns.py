"""What the list and the page of a review say of it, each value in words."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin.sessions import pretty
from memories.admin.diffs import word_diff
from memories.admin.marks import TARGETS, badge, moment
from reviews.models import ReviewRun

_TONES = {
    ReviewRun.State.SCHEDULED: ("accent", "schedule"),
    ReviewRun.State.RUNNING: ("accent", "play_arrow"),
    ReviewRun.State.AWAITING_APPROVAL: ("warn", "hourglass_empty"),
    ReviewRun.State.SAVED: ("ok", "check"),
    ReviewRun.State.NOTHING_TO_SAVE: ("muted", "remove"),
    ReviewRun.State.TIMED_OUT: ("danger", "timer_off"),
    ReviewRun.State.FAILED: ("danger", "error"),
    ReviewRun.State.CANCELLED: ("muted", "block"),
    ReviewRun.State.UNDONE: ("muted", "undo"),
}


class ReviewColumns:
    """Columns by name, for a ModelAdmin of review runs."""

    @admin.display(description="State")
    def state_badge(self, run: ReviewRun) -> SafeString:
        tone, icon = _TONES[ReviewRun.State(run.state)]
        return badge(run.get_state_display(), tone, icon)

    @admin.display(description="Session")
    def session_title(self, run: ReviewRun) -> str:
        return (run.session.title or "Untitled") if run.session else "Deleted"

    @admin.display(description="Session")
    def session_link(self, run: ReviewRun) -> SafeString | str:
        if run.session is None:
            return "Deleted"
        return format_html(
            '<a class="db-link" href="{}">{}</a>',
            reverse("admin:gateway_session_change", args=[run.session_id]),
            self.session_title(run),
        )

    @admin.display(description="Writes")
    def writes_count(self, run: ReviewRun) -> int:
        return len(run.writes)

    @admin.display(description="Tokens")
    def tokens(self, run: ReviewRun) -> str:
        total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
        return f"{total:,}" if isinstance(total, int) else "–"

    @admin.display(description="Error")
    def error_code(self, run: ReviewRun) -> str:
        return str(run.error.get("code", "–")) if isinstance(run.error, dict) else "–"

    @admin.display(description="Scheduled")
    def scheduled(self, run: ReviewRun) -> str:
        return moment(run.created_at)

    @admin.display(description="Started")
    def started(self, run: ReviewRun) -> str:
        return moment(run.started_at)

    @admin.display(description="Finished")
    def finished(self, run: ReviewRun) -> str:
        return moment(run.finished_at)

    @admin.display(description="Seconds")
    def seconds(self, run: ReviewRun) -> str:
        return (
            f"{(run.finished_at - run.started_at).total_seconds():.1f}" if run.finished_at and run.started_at else "–"
        )

    @admin.display(description="Changes")
    def changes(self, run: ReviewRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        link = f"{reverse('admin:memories_revision_changelist')}?review={run.pk}"
        return format_html('<a class="db-link" href="{}">the revisions of this review</a>', link)

    @admin.display(description="Error")
    def error_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.error)

    @admin.display(description="Usage")
    def usage_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.usage)

    @admin.display(description="Dropped tool calls")
    def dropped_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.dropped_calls)

    @admin.display(description="Settings at the time")
    def settings_json(self, run: ReviewRun) -> SafeString | str:
        return pretty(run.settings)


def write_words(write: dict[str, Any]) -> dict[str, Any]:
    """One write of a review for the page: what it is about, what it does to the words, and what became of it."""
    before, after = write.get("before"), write.get("after")
    return {
        "action": write.get("action", ""),
        "state": write.get("state", ""),
        "reason": write.get("reason") or "",
        "number": write.get("memory_id") or "",
        "diff": word_diff(before or "", after or "") if before or not after else after,
        "target": TARGETS.get(write.get("target", ""), ""),
        "category": write.get("category", ""),
    }
