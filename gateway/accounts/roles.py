"""User roles, from least to most privileged. A role sets Django's flags and the auditors group; finer permissions are
assigned in the admin."""

from django.contrib.auth.models import Group, User

from gateway.accounts.settings import ROLES
from memories.audit.auditors import AUDITORS, auditors_make
from memories.services import is_only_administrator

USER, AUDITOR, STAFF, ADMINISTRATOR = ROLES
MEANINGS = {
    USER: "Chats, and sees and keeps their own memories. Does not see the administration.",
    AUDITOR: "Also sees and corrects everybody's memories, documents and reviews in the administration, but no "
    "conversations, keys or users. Each look is recorded.",
    STAFF: "May open the administration, and sees there what their groups and permissions allow: nothing at first.",
    ADMINISTRATOR: "May do everything: agents, users, keys, settings, and everybody's conversations.",
}


def role_of(user: User) -> str:
    """Return the role that best matches a user's flags and groups."""
    if user.is_superuser:
        return ADMINISTRATOR
    if not user.is_staff:
        return USER
    return AUDITOR if user.groups.filter(name=AUDITORS).exists() else STAFF


def role_set(user: User, role: str) -> bool:
    """Set the flags and groups of a role. Return True if anything changed. The only administrator keeps that role."""
    if role_of(user) == role or is_only_administrator(user, lock=True):
        return False
    user.is_staff, user.is_superuser = role != USER, role == ADMINISTRATOR
    user.save(update_fields=["is_staff", "is_superuser"])
    if role == USER:
        user.groups.clear()
        user.user_permissions.clear()
    if role == AUDITOR:
        auditors_make()
        user.groups.add(Group.objects.get(name=AUDITORS))
    elif role == STAFF:
        user.groups.remove(*Group.objects.filter(name=AUDITORS))
    return True
