"""API keys, connected apps, the daily usage of each key, and webhooks."""

from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memories.ids import uuid7
from memories.models import Owner


class ApiKey(models.Model):
    """A key of an owner. Only the hash of its 256 random bits is stored.

    A row with a `client` is a connected app: it has no plain text, and its client uses access tokens (gateway.oauth).
    In all other respects it is a key."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, help_text="The first characters, to tell keys apart.")
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    read_only = models.BooleanField(default=False, help_text="May read, but not write or chat.")
    trusted = models.BooleanField(default=False, help_text="May name end users with X-Daybook-User.")
    agents = models.JSONField(default=list, blank=True, help_text="Names of the agents it may use; empty: all.")
    books = models.JSONField(
        default=list, blank=True, help_text="Names of the books it may use; empty: those of its agents, or all."
    )
    requests_per_minute = models.PositiveIntegerField(default=0, help_text="0 = no limit.")
    tokens_per_day = models.PositiveBigIntegerField(default=0, blank=True, help_text="Per UTC day; 0 = no limit.")
    money_per_day = models.FloatField(
        default=0.0, blank=True, help_text="In the currency of the prices, per UTC day; 0 = no limit."
    )
    streams_at_once = models.PositiveIntegerField(default=0, blank=True, help_text="Concurrent answers; 0 = no limit.")
    end_user_seen = models.CharField(max_length=64, blank=True, editable=False, help_text="Hash of an end user's id.")
    end_users_mixed_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When an untrusted key was first used for two end users."
    )
    client = models.ForeignKey(
        "oauth2_provider.Application",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="connections",
        help_text="The connected app; empty for an API key.",
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="When the key expires; empty: never.")
    previous_sha256 = models.CharField(max_length=64, blank=True, editable=False, db_index=True)
    previous_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Until when the key from before the last rotation is accepted."
    )
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "client"],
                condition=Q(revoked_at=None, client__isnull=False),
                name="api_key_one_connection",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ConnectedApps(models.Manager["ConnectedApp"]):
    """A manager for the rows with a client."""

    def get_queryset(self) -> "models.QuerySet[ConnectedApp]":
        return super().get_queryset().filter(client__isnull=False)


class ConnectedApp(ApiKey):
    """A proxy for the rows of ApiKey that are connected apps, for the admin."""

    objects = ConnectedApps()  # type: ignore[misc]  # ApiKey's manager has another type

    class Meta:
        proxy = True
        verbose_name = "connected app"

    def __str__(self) -> str:
        return self.name


class UsageDay(models.Model):
    """The usage of an owner on a UTC day, by key, agent and model. The numbers remain when runs are deleted."""

    NO_KEY = UUID(int=0)

    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="usage_days")
    day = models.DateField()
    key_id = models.UUIDField("API key", default=NO_KEY, help_text="The key that was used; all zeros: a login.")
    agent = models.CharField(
        max_length=64, blank=True, help_text="Empty if the requests named a model instead of an agent."
    )
    model = models.CharField(max_length=200, blank=True)
    turns = models.PositiveBigIntegerField(default=0, help_text="Answered user turns.")
    requests = models.PositiveBigIntegerField(default=0, help_text="Model steps.")
    unpriced_requests = models.PositiveBigIntegerField(default=0, help_text="Model steps whose model had no price.")
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0, help_text="Input tokens that were read from a cache.")
    cost = models.FloatField(default=0, help_text="In the currency of the prices, at the prices of the day.")

    class Meta:
        verbose_name = "usage of a day"
        verbose_name_plural = "usage"
        constraints = [
            # In this order, since each turn reads what its key has spent today.
            models.UniqueConstraint(fields=["key_id", "day", "owner", "agent", "model"], name="usage_day_once")
        ]
        indexes = [models.Index(fields=["owner", "day"], name="usage_of_owner")]

    def __str__(self) -> str:
        return f"{self.day} {self.agent} {self.model}"


class Webhook(models.Model):
    """An address that receives an owner's notifications in order. Its secret is not stored; see gateway.webhooks."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    kinds = models.JSONField(default=list, help_text="The kinds of notifications that are sent.")
    secret_sha256 = models.CharField(
        max_length=64, editable=False, help_text="Identifies the signing key that the secret was derived from."
    )
    delivered_seq = models.PositiveBigIntegerField(
        default=0, help_text="Number of the last delivered or skipped notification."
    )
    failures = models.PositiveIntegerField(default=0, help_text="Failed attempts to deliver the next notification.")
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    attempted_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=200, blank=True, help_text="Why the last failed attempt failed.")
    disabled_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=200, blank=True, help_text="Why it is disabled.")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return str(self.pk)
