"""Files of the storage `attachments`, and the sessions that use them. A file without a row does not belong to Daybook.
If nothing uses a file it is deleted, and then its row."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from gateway.models.sessions import Session
from memories.ids import uuid7


class Attachment(models.Model):
    """A file of an owner. There is no foreign key to the owner, since the row must remain until the file is deleted,
    even if the owner is deleted first."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner_id = models.UUIDField()
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField(help_text="In bytes.")
    media_type = models.CharField(max_length=100, help_text="Detected from the first bytes of the file.")
    created_at = models.DateTimeField(default=timezone.now)
    deleting_at = models.DateTimeField(
        null=True, blank=True, help_text="When its deletion last began; from then on nothing may use it."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner_id", "sha256"], name="attachment_once_per_owner")]
        indexes = [
            models.Index(
                fields=["deleting_at"], condition=Q(deleting_at__isnull=False), name="attachment_being_deleted"
            )
        ]

    def __str__(self) -> str:
        return f"{self.media_type}, {self.size} bytes"


class AttachmentUse(models.Model):
    """The use of a file by messages of a session, which are deleted only with the session. A row without a session is
    reserved for a message about to be stored, or its session was deleted; it protects the file until `expires_at`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    attachment = models.ForeignKey(Attachment, on_delete=models.CASCADE, related_name="uses")
    session = models.ForeignKey(Session, null=True, on_delete=models.SET_NULL, related_name="attachment_uses")
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(session__isnull=True), name="attachment_use_without")
        ]

    def __str__(self) -> str:
        return str(self.pk)
