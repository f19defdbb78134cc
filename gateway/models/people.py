"""Rows about people: their logins, their identities at OpenID providers, and invitations. Logins and identities are
deleted with Django's user or session."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from memories.ids import uuid7


class Login(models.Model):
    """A browser in which somebody is signed in: Django's session, with a description of the device."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="logins")
    session = models.OneToOneField("sessions.Session", on_delete=models.CASCADE, related_name="login")
    device = models.CharField(max_length=80, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.device or "A browser"


class Identity(models.Model):
    """A user's identity at an OpenID provider. A subject, unlike a mail address, is never reassigned."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Invitation(models.Model):
    """A link with which one person creates an account. Only the hash of its token is stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    sha256 = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(blank=True, help_text="The email address of the new account; empty: none.")
    role = models.CharField(max_length=16, default="user")
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL, related_name="+"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True, editable=False)
    accepted_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)

    def __str__(self) -> str:
        return self.email or "open invitation"
