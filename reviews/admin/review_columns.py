"""What the list and the page of a review say of it, each value in words: why it came to nothing, what it cost, what the
model wanted besides, and how it was set."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin.session_titles import session_link, title_of
from gateway.limits.money import usage_words
from memories.admin.badges import moment, seconds, state_badge, total_tokens
from memories.admin.columns import moment_column, page_link
from reviews.labels import counted
from reviews.models import ReviewRun
from reviews.presenter import reason_words
from reviews.selectors import review_model
from reviews.turns_read import turns_read

_TIMES = {1: "once", 2: "twice", 3: "three times"}


class ReviewColumns:
    """Columns by name, for a ModelAdmin of review runs."""

    scheduled = moment_column("created_at", "Scheduled", ordering="pk")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")

    @admin.display(description="State")
    def state_badge(self, run: ReviewRun) -> SafeString:
        return state_badge(run)

    @admin.display(description="Session")
    def session_title(self, run: ReviewRun) -> str:
        return title_of(run)

    @admin.display(description="Session")
    def session_link(self, run: ReviewRun) -> SafeString | str:
        return session_link(run)

    @admin.display(description="Turns it read")
    def turns_link(self, run: ReviewRun) -> SafeString | str:
        turns = turns_read(run.owner_id, [run]).get(run.pk)
        if turns is None:
            return "–"
        return page_link(reverse("admin:gateway_run_change", args=[turns.run_id]), turns.words)

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

    @admin.display(description="Seconds")
    def seconds(self, run: ReviewRun) -> str:
        return seconds(run.started_at, run.finished_at)

    @admin.display(description="Changes")
    def changes(self, run: ReviewRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        address = f"{reverse('admin:memories_revision_changelist')}?review={run.pk}"
        return page_link(address, "the revisions of this review")

    @admin.display(description="Error")
    def outcome(self, run: ReviewRun) -> SafeString | str:
        if not run.error:
            return "–"
        words, code, said = error_words(run), str(run.error.get("code", "")), str(run.error.get("message", ""))
        detail = f"{code}: {said}" if said and said not in words else code
        return format_html('{} <span class="db-call">{}</span>', words, detail)

    @admin.display(description="Tokens")
    def usage_in_words(self, run: ReviewRun) -> str:
        return usage_words(run.usage)

    @admin.display(description="Dropped calls of other tools")
    def dropped_in_words(self, run: ReviewRun) -> str:
        """`shell twice, web_search once`."""
        calls = [f"{name} {_TIMES.get(n, f'{n} times')}" for name, n in sorted(run.dropped_calls.items())]
        return ", ".join(calls) or "No other tool was called"

    @admin.display(description="Settings at the time")
    def settings_in_words(self, run: ReviewRun) -> str:
        settings = run.settings
        most, seconds = settings.get("memory_review_max_writes", 5), settings.get("memory_review_timeout", 30)
        waits = "wait for a person" if settings.get("memory_review_approval") else "are saved at once"
        told = "the owner is told" if settings.get("memory_review_verbose") else "the owner is not told"
        return (
            f"At most {counted(most, 'write')} by {review_model(run)}, {seconds} seconds for an attempt; "
            f"its writes {waits}, {told}."
        )

    @admin.display(description="Messages")
    def frozen_range(self, run: ReviewRun) -> str:
        return f"{run.first_seq} to {run.last_seq} of the session"


def error_words(run: ReviewRun) -> str:
    """Return why it ended without a result, or why it waits; "" when neither is so."""
    words = reason_words(run, own=False)
    if run.state == ReviewRun.State.SCHEDULED and words:
        return f"{words} The next attempt begins {moment(run.not_before)}."
    return words
