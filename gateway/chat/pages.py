"""What every page of Daybook shows around its content: the owner, the current tab, and whether the demo model
answers."""

from collections.abc import Sequence
from dataclasses import dataclass

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
"""What can be typed in the composer as a whole message, and what it does."""


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    initials: str
    demo: bool
    notification: int
    time_zone: str
    commands: Sequence[tuple[str, str]] = COMMAND_LINES


def page(request: HttpRequest) -> dict[str, object]:
    """Context processor: `page` for gateway/base.html, computed only if a template uses it."""
    return {"page": SimpleLazyObject(lambda: _page(request))}


def _page(request: HttpRequest) -> Page | None:
    if not request.user.is_authenticated:
        return None
    login_seen(request)
    owner = owner_for_user(request.user)
    name = request.user.get_full_name() or request.user.get_username()
    return Page(
        name=name,
        initials=_initials(name),
        demo=is_demo(),
        notification=current_number(owner.pk),
        time_zone=zone_of(owner).key,
    )


def _initials(name: str) -> str:
    words = name.replace("@", " ").replace(".", " ").replace("_", " ").split()
    letters = [word[0] for word in (words[:1] + words[-1:] if len(words) > 1 else words)]
    return "".join(letters).upper()[:2] or "?"
