"""The context of every page's frame: the owner's name, time zone and notifications, and whether it is the demo."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from gateway.accounts.logins import login_seen
from gateway.command_syntax import COMMANDS, NATIVE_HELP
from gateway.upstream import is_demo
from memories.messaging.outbox import current_number
from memories.services import owner_for_user
from memories.viewers import zone_of

COMMAND_LINES = (
    *((command.line, command.about) for command in COMMANDS),
    (NATIVE_HELP, "Show commands and shortcuts."),
)
"""The commands of the composer, each with its description."""


def page(request: HttpRequest) -> dict[str, object]:
    """Context processor that adds `page` for gateway/base.html, computed lazily."""
    return {"page": SimpleLazyObject(lambda: _page(request))}


def _page(request: HttpRequest) -> dict[str, Any] | None:
    if not request.user.is_authenticated:
        return None
    login_seen(request)
    owner = owner_for_user(request.user)
    name = request.user.get_full_name() or request.user.get_username()
    return {
        "owner": owner.pk,
        "name": name,
        "initials": _initials(name),
        "demo": is_demo(),
        "notification": current_number(owner.pk),
        "time_zone": zone_of(owner).key,
        "has_time_zone": bool(owner.time_zone),
        "commands": COMMAND_LINES,
    }


def _initials(name: str) -> str:
    words = name.replace("@", " ").replace(".", " ").replace("_", " ").split()
    letters = [word[0] for word in (words[:1] + words[-1:] if len(words) > 1 else words)]
    return "".join(letters).upper()[:2] or "?"
