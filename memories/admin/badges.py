"""Badges for origins and states: always an icon with a label, never colour alone. And formats of times and numbers."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.models import Memory, Target, WriteOrigin
from memories.selectors import blocked_condition, unexpired

# Other labels than on a person's own pages, where the owner is "You".
ORIGINS: dict[str, tuple[str, str]] = {
    WriteOrigin.TOOL: ("chat_bubble", "Agent"),
    WriteOrigin.BACKGROUND_REVIEW: ("visibility", "Review"),
    WriteOrigin.CONSOLIDATION: ("stacks", "Consolidated"),
    WriteOrigin.USER: ("edit", "Owner"),
    WriteOrigin.ADMIN: ("shield", "Admin"),
    WriteOrigin.IMPORT: ("move_to_inbox", "Import"),
    WriteOrigin.SYSTEM: ("schedule", "System"),
}
TARGETS: dict[str, str] = {Target.USER: "The person", Target.MEMORY: "The work"}
STATES: dict[str, tuple[str, str, str]] = {
    "live": ("check", "Live", "ok"),
    "pinned": ("keep", "Pinned", "accent"),
    "blocked": ("error", "Blocked", "danger"),
    "expired": ("schedule", "Expired", "warn"),
    "deleted": ("delete", "Deleted", "muted"),
}

# The states of runs, jobs and writes in all apps, by tone and icon.
_LOOKS = {
    ("ok", "check"): "active applied completed extracted open saved",
    ("accent", "play_arrow"): "running",
    ("accent", "schedule"): "queued scheduled",
    ("accent", "hourglass_empty"): "awaiting_client_tools",
    ("warn", "hourglass_empty"): "awaiting_approval waiting",
    ("warn", "pause"): "paused",
    ("warn", "schedule"): "failing",
    ("warn", "stop"): "stopped",
    ("warn", "edit"): "left_alone",
    ("danger", "error"): "failed refused",
    ("danger", "timer_off"): "timed_out",
    ("muted", "remove"): "empty joined known nothing_to_do nothing_to_save",
    ("muted", "block"): "cancelled disabled ended passed rejected revoked",
    ("muted", "done_all"): "accepted",
    ("muted", "undo"): "undone",
    ("muted", "timer_off"): "expired",
}
LOOK_OF = {state: look for look, states in _LOOKS.items() for state in states.split()}


def origin_badge(origin: str) -> SafeString:
    """Return the icon and label of a write's origin."""
    icon, word = ORIGINS.get(origin, ("help", origin))
    return format_html(
        '<span class="db-mark"><span class="material-symbols-outlined" aria-hidden="true">{}</span>{}</span>',
        icon,
        word,
    )


def badge(word: str, tone: str = "muted", icon: str = "") -> SafeString:
    """Return the HTML of a badge. `tone` is ok, accent, warn, danger or muted."""
    picture = format_html('<span class="material-symbols-outlined" aria-hidden="true">{}</span>', icon) if icon else ""
    return format_html('<span class="db-badge db-badge--{}">{}{}</span>', tone, picture, word)


def state_badge(row: Any) -> SafeString:
    """Return the badge of a row's `state`, which must be in LOOK_OF."""
    return badge(row.get_state_display(), *LOOK_OF[row.state])


def named_badge(state: str) -> SafeString:
    """Return the badge of a state that has no other label than its name."""
    return badge(state.capitalize(), *LOOK_OF[state])


def memory_state_name(memory: Memory) -> str:
    """Return the state to show for a memory: the first that applies of deleted, expired, blocked, pinned and live."""
    if memory.deleted_at:
        return "deleted"
    if memory.expired:
        return "expired"
    if memory.blocked:
        return "blocked"
    return "pinned" if memory.pinned else "live"


def memory_state_query(name: str, now: datetime | None = None) -> Q:
    """Return the filter condition of a state. All memories that may be injected are live, including pinned ones."""
    now = now or timezone.now()
    kept, blocked = Q(deleted_at__isnull=True), blocked_condition()
    present = kept & unexpired(now)
    return {
        "live": present & ~blocked,
        "pinned": present & ~blocked & Q(pinned=True),
        "blocked": present & blocked,
        "expired": kept & Q(expires_at__lte=now),
        "deleted": Q(deleted_at__isnull=False),
    }[name]


def memory_badge(memory: Memory) -> SafeString:
    """Return the badge of a memory's state."""
    icon, word, tone = STATES[memory_state_name(memory)]
    return badge(word, tone, icon)


def moment(at: datetime | None) -> str:
    """Format a time: 20 Nov 2026, 09:41."""
    return date_format(timezone.localtime(at), "j M Y, H:i") if at else "–"


def day(at: datetime | None) -> str:
    """Format a date: 20 Nov 2026."""
    return date_format(timezone.localtime(at), "j M Y") if at else "–"


def seconds(since: datetime | None, until: datetime | None) -> str:
    """Format a duration in seconds."""
    return f"{(until - since).total_seconds():.1f}" if since and until else "–"


def total_tokens(usage: Any) -> str:
    """Format the total of a stored usage, if the model reported it."""
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return f"{total:,}" if isinstance(total, int) else "–"
