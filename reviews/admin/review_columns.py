"""Admin columns for reviews: outcome, cost, dropped tool calls and settings, as text."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin.session_titles import session_link, title_of
from gateway.limits.money import usage_words
from memories.admin.badges import moment, seconds, state_badge, total_tokens
from memories.admin.columns import column, list_link, moment_column, row_link
from memories.number_words import counted, times
from reviews.models import ReviewRun
from reviews.presenter import reason_words
from reviews.selectors import review_model
from reviews.turns_read import turns_read


class ReviewColumns:
    """Columns for a ModelAdmin of review runs."""

    scheduled = moment_column("created_at", "Scheduled", ordering="pk")
    started = moment_column("started_at", "Started")
    finished = moment_column("finished_at", "Finished")
    state_badge = column("State", lambda run: state_badge(run))
    session_title = column("Session", title_of)
    session_link = column("Session", lambda run: session_link(run))
    writes_count = column("Writes", lambda run: len(run.writes))
    tokens = column("Tokens", lambda run: total_tokens(run.usage))
    agent = column("Agent", lambda run: run.agent_name)
    why = column("Why", lambda run: error_words(run) or "–")
    seconds = column("Seconds", lambda run: seconds(run.started_at, run.finished_at))
    usage_in_words = column("Tokens", lambda run: usage_words(run.usage))
    frozen_range = column("Messages", lambda run: f"{run.first_seq} to {run.last_seq} of the session")

    @admin.display(description="Turns it read")
    def turns_link(self, run: ReviewRun) -> SafeString | str:
        turns = turns_read(run.owner_id, [run]).get(run.pk)
        return row_link("gateway_run", turns.run_id, turns.words) if turns else "–"

    @admin.display(description="Changes")
    def changes(self, run: ReviewRun) -> SafeString | str:
        if run.change_set is None:
            return "–"
        return list_link("memories_revision", f"review={run.pk}", "the revisions of this review")

    @admin.display(description="Error")
    def outcome(self, run: ReviewRun) -> SafeString | str:
        if not run.error:
            return "–"
        words, code, message = error_words(run), str(run.error.get("code", "")), str(run.error.get("message", ""))
        detail = f"{code}: {message}" if message and message not in words else code
        return format_html('{} <span class="db-call">{}</span>', words, detail)

    @admin.display(description="Dropped calls of other tools")
    def dropped_in_words(self, run: ReviewRun) -> str:
        """Return text such as `shell twice, web_search once`."""
        calls = [f"{name} {times(n)}" for name, n in sorted(run.dropped_calls.items())]
        return ", ".join(calls) or "No other tool was called"

    @admin.display(description="Settings at the time")
    def settings_in_words(self, run: ReviewRun) -> str:
        settings = run.settings
        max_writes, seconds = settings.get("memory_review_max_writes", 5), settings.get("memory_review_timeout", 30)
        waits = "wait for a person" if settings.get("memory_review_approval") else "are saved at once"
        notice = "the owner is told" if settings.get("memory_review_verbose") else "the owner is not told"
        return (
            f"At most {counted(max_writes, 'write')} by {review_model(run)}, {seconds} seconds for an attempt; "
            f"its writes {waits}, {notice}."
        )


def error_words(run: ReviewRun) -> str:
    """Return why the review failed or why it waits, else ""."""
    words = reason_words(run, own=False)
    if run.state == ReviewRun.State.SCHEDULED and words:
        return f"{words} The next attempt begins {moment(run.not_before)}."
    return words
