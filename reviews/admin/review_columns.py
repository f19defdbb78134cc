"""What the list and the page of a review say of it, each value in words."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import badge, moment, seconds, total_tokens
from reviews.admin.review_labels import dropped_words, error_detail, error_words, settings_words, usage_words
from reviews.admin.session_titles import title_of
from reviews.models import ReviewRun
from reviews.selectors import review_model

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
        return title_of(run)

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
        return total_tokens(run.usage)

    @admin.display(description="Agent")
    def agent(self, run: ReviewRun) -> str:
        return run.agent_name

    @admin.display(description="Why")
    def why(self, run: ReviewRun) -> str:
        return error_words(run) or "–"

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
        return seconds(run.started_at, run.finished_at)

    @admin.display(description="Changes")
    def changes(self, run: ReviewRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        link = f"{reverse('admin:memories_revision_changelist')}?review={run.pk}"
        return format_html('<a class="db-link" href="{}">the revisions of this review</a>', link)

    @admin.display(description="Error")
    def outcome(self, run: ReviewRun) -> SafeString | str:
        if not run.error:
            return "–"
        return format_html('{} <span class="db-call">{}</span>', error_words(run), error_detail(run))

    @admin.display(description="Tokens")
    def usage_in_words(self, run: ReviewRun) -> str:
        return usage_words(run.usage)

    @admin.display(description="Dropped calls of other tools")
    def dropped_in_words(self, run: ReviewRun) -> str:
        return dropped_words(run.dropped_calls)

    @admin.display(description="Settings at the time")
    def settings_in_words(self, run: ReviewRun) -> str:
        return settings_words(run.settings, review_model(run))

    @admin.display(description="Messages")
    def frozen_range(self, run: ReviewRun) -> str:
        return f"{run.first_seq} to {run.last_seq} of the session"
