"""Addresses that receive an owner's notifications."""

from django.db import models
from django.utils import timezone

from memories.ids import uuid7
from memories.models import Owner


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
