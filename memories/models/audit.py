"""The append-only audit log. Its rows store names as text, and so outlive accounts and objects."""

from typing import Any, NoReturn

from django.db import models
from django.utils import timezone

from memories.ids import uuid7


class AppendOnlyError(RuntimeError):
    """Code tried to change or delete an entry of the append-only audit log."""


class AppendOnlyQuerySet(models.QuerySet["AuditEntry"]):
    """A query set that can only read and add rows."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError("Entries of the audit log are not changed.")

    def delete(self) -> NoReturn:
        raise AppendOnlyError("Entries of the audit log are not deleted.")


class AuditEntry(models.Model):
    """One action of an account on an object. It contains no text of a conversation or memory.

    Database triggers refuse UPDATE and DELETE too (memories.audit.triggers); the only exception, for old entries, is
    memories.audit.log.audit_purge. A migration that makes SQLite rebuild this table has to create them again."""

    class Action(models.TextChoices):
        VIEW = "view", "opened"
        LIST = "list", "listed"
        ADD = "add", "added"
        CHANGE = "change", "changed"
        DELETE = "delete", "deleted"
        ALLOW = "allow", "allowed"
        UNDO = "undo", "undid"
        EXPORT = "export", "exported"
        FORGET = "forget", "erased"
        SIGN_IN = "sign_in", "signed in"
        SIGN_IN_FAILED = "sign_in_failed", "failed to sign in"
        SIGN_IN_REFUSED = "sign_in_refused", "was locked out after too many failed sign-ins"
        SIGN_IN_UNLOCKED = "sign_in_unlocked", "unlocked sign-in for"
        SIGN_OUT = "sign_out", "signed out"
        PASSWORD_CHANGE = "password_change", "changed the password of"
        PASSWORD_FORGOTTEN = "password_forgotten", "requested a new password for"
        LOGINS_END = "logins_end", "signed out"
        IDENTITY_LINK = "identity_link", "linked single sign-on with"
        ROLE_CHANGE = "role_change", "changed the role of"
        INVITE = "invite", "made"
        INVITE_ACCEPT = "invite_accept", "accepted"
        INVITE_REVOKE = "invite_revoke", "revoked"
        USER_DEACTIVATE = "user_deactivate", "deactivated"
        KEY_CREATE = "key_create", "created"
        KEY_CHANGE = "key_change", "changed"
        KEY_REVOKE = "key_revoke", "revoked"
        SETTINGS_CHANGE = "settings_change", "changed the settings of"
        PURGE = "purge", "purged"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=255, blank=True, help_text="Name of the account; empty if it is not known.")
    actor_id = models.CharField("actor ID", max_length=80, blank=True, help_text="user:ID, key:ID or system.")
    # No `choices`, since a new action would make SQLite rebuild the table and lose the triggers.
    action = models.CharField(max_length=20)
    kind = models.CharField(max_length=64, blank=True, help_text="Kind of object, such as memory or session.")
    object_id = models.CharField("object ID", max_length=80, blank=True)
    owner = models.CharField(max_length=255, blank=True, help_text="Name of the person whose object it is.")
    owner_id = models.CharField("owner ID", max_length=40, blank=True)
    count = models.PositiveIntegerField(default=1, help_text="Number of objects.")
    note = models.CharField(max_length=200, blank=True, help_text="A sentence by Daybook; it never quotes a person.")
    address = models.CharField("network address", max_length=64, blank=True, help_text="Network address of the client.")
    request_id = models.CharField("request ID", max_length=64, blank=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["at"], name="audit_by_time"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["owner", "-id"], name="audit_by_owner"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["kind", "-id"], name="audit_by_kind"),
            models.Index(fields=["object_id"], name="audit_by_object"),
            models.Index(fields=["request_id"], name="audit_by_request"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.kind}".strip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the entry. Raises AppendOnlyError for a stored one."""
        if not self._state.adding:
            raise AppendOnlyError("Entries of the audit log are not changed.")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError("Entries of the audit log are not deleted.")
