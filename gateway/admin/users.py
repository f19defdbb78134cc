"""Users in the admin. The form explains the roles. Deactivating an account or changing its password ends every login at
once."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from gateway.accounts.logins import logins_end, other_logins
from gateway.accounts.roles import ADMINISTRATOR, AUDITOR, MEANINGS, STAFF, USER
from gateway.authentication import forget_keys
from gateway.sockets import recheck_logins
from memories.admin.users import UserAdmin
from memories.audit.auditors import AUDITORS
from memories.audit.log import actor_of
from memories.models import Owner

_REQUIREMENTS = {
    USER: "active, nothing else ticked",
    AUDITOR: f"staff status, group “{AUDITORS}”",
    STAFF: "staff status, and groups or permissions of your choice",
    ADMINISTRATOR: "staff status and superuser status",
}
_DEACTIVATION_HELP = (
    "Untick this instead of deleting an account: every login, API key, connected app and open page of it is refused "
    "at once. Memories, conversations and the audit log stay, and ticking it again brings the account back."
)

admin.site.unregister(User)


def roles_help() -> SafeString:
    """Return help text that describes the roles and how to assign them."""
    rows = ((role.capitalize(), _REQUIREMENTS[role], MEANINGS[role]) for role in MEANINGS)
    return format_html_join("", "<p><strong>{}</strong> ({}): {}</p>", rows)


@admin.register(User)
class PeopleAdmin(UserAdmin):
    """People who sign in."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        parts = super().get_fieldsets(request, obj)
        return [
            (title, options | ({"description": roles_help()} if "is_staff" in options["fields"] else {}))
            for title, options in parts
        ]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change=change, help_texts={"is_active": _DEACTIVATION_HELP}, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save; sign a deactivated account out everywhere."""
        super().save_model(request, obj, form, change)
        if change and not obj.is_active:
            self._sign_out(request, obj)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]  # as the base
        """Record a change; a new password ends every other login."""
        super().log_change(request, obj, message)
        if message == [{"changed": {"fields": ["password"]}}]:
            self._sign_out(request, obj)

    def _sign_out(self, request: HttpRequest, user: User) -> None:
        logins_end(user, other_logins(request, user), by=actor_of(request.user))
        forget_keys()
        for owner_id in Owner.objects.filter(user=user).values_list("pk", flat=True):
            recheck_logins(owner_id)
