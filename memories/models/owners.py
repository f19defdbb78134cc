"""Owners and their books."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.ids import uuid7


class Owner(models.Model):
    """The owner of conversations and memories: a Django user, or an end user of a parent owner's application."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="owner"
    )
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="end_users")
    namespace = models.CharField(max_length=64, blank=True)
    external_id = models.CharField("external ID", max_length=255, blank=True)
    memory_seq = models.PositiveBigIntegerField("newest memory", default=0, help_text="Number of the newest memory.")
    notification_seq = models.PositiveBigIntegerField(
        "newest notification", default=0, help_text="Number of the newest notification."
    )
    time_zone = models.CharField(max_length=64, blank=True, help_text="Empty until a browser has named its own: UTC.")
    created_at = models.DateTimeField("created", default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "namespace", "external_id"],
                condition=Q(parent__isnull=False),
                name="owner_end_user_once",
            )
        ]

    def __str__(self) -> str:
        return self.external_id or (self.user.get_username() if self.user else str(self.pk))


class Book(models.Model):
    """A memory scope of an owner."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="books")
    name = models.CharField(max_length=64)
    generation = models.PositiveBigIntegerField(
        default=1, help_text="Increases with every change to what may be injected."
    )
    epoch = models.PositiveIntegerField(
        default=1, help_text="Increases when earlier background work must be discarded."
    )
    next_expiry_at = models.DateTimeField("next expiry", null=True, blank=True)
    last_write_at = models.DateTimeField("last write", null=True, blank=True)
    created_at = models.DateTimeField("created", default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="book_name_once_per_owner")]
        indexes = [
            models.Index(fields=["next_expiry_at"], condition=Q(next_expiry_at__isnull=False), name="book_next_expiry")
        ]

    def __str__(self) -> str:
        return self.name


class BookLimits(models.Model):
    """The limits of books with this name, in characters; 0 = no limit. The gateway derives them from its agents."""

    name = models.CharField(max_length=64, unique=True)
    user_char_limit = models.PositiveIntegerField("user limit (characters)")
    memory_char_limit = models.PositiveIntegerField("memory limit (characters)")

    class Meta:
        verbose_name_plural = "book limits"

    def __str__(self) -> str:
        return self.name
