"""Invitations in the admin: created, listed and revoked. The link is shown once, when it is created."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminRadioSelectWidget

from gateway.accounts.invitations import MAX_DAYS, invitation_create, invitation_revoke, invitation_state
from gateway.accounts.mails import mail_configured, mail_origin
from gateway.accounts.roles import MEANINGS, USER
from gateway.accounts.settings import ROLES
from gateway.admin.shown_once import ShownOnceAdmin
from gateway.models import Invitation
from memories.admin.badges import named_badge
from memories.admin.columns import column, moment_column
from memories.admin.forms import RefusableForm
from memories.admin.object_actions import object_action
from memories.audit.log import actor_of


class InvitationForm(RefusableForm):
    """The person to invite, their role, and how long the invitation is open."""

    role = forms.ChoiceField(
        choices=[(role, f"{role.capitalize()}. {MEANINGS[role]}") for role in ROLES],
        initial=USER,
        widget=UnfoldAdminRadioSelectWidget,
    )
    days = forms.IntegerField(
        label="Valid for (days)", min_value=1, max_value=MAX_DAYS, initial=7, widget=UnfoldAdminIntegerFieldWidget
    )

    class Meta:
        model = Invitation
        fields = ("email", "role")


@admin.register(Invitation)
class InvitationAdmin(ShownOnceAdmin):
    """Links with which people can create their own accounts."""

    form = InvitationForm
    made_title = "New invitation"
    object_actions = ("revoke",)
    list_display = ("whom", "role", "state", "by", "mailed", "created", "expires")
    sortable_by = ("created",)
    list_select_related = ("invited_by", "user")
    search_fields = ("email",)
    fields = (("whom", "role"), ("state", "by"), ("mailed", "account"), ("created", "expires"))
    mailed = moment_column("mailed_at", "Mailed")
    created = moment_column("created_at", "Created", ordering="pk")
    expires = moment_column("expires_at", "Valid until")
    whom = column("For", lambda row: row.email or "anyone with the link")
    state = column("State", lambda row: named_badge(invitation_state(row)))
    by = column("Invited by", lambda row: str(row.invited_by or ""))
    account = column("Account", lambda row: str(row.user or ""))

    def get_fieldsets(self, request: HttpRequest, obj: Invitation | None = None) -> Any:
        if obj is not None:
            return super().get_fieldsets(request, obj)
        note = "The link is mailed there, and shown to you once." if mail_configured() else "The link is shown once."
        return [(None, {"fields": ("email", "role", "days"), "description": note})]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False also while passwords are disabled, which makes invitations useless."""
        return bool(settings.PASSWORDS) and bool(super().has_add_permission(request))

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        """Raises InvalidRequest and Forbidden, which the form shows."""
        assert request.user.is_authenticated
        row, link = invitation_create(**form.cleaned_data, by=request.user, origin=mail_origin(request))
        # The admin logs and redirects with obj, so it needs the values of the stored row.
        obj.pk, obj.expires_at = row.pk, row.expires_at
        self.show_once(request, invitation=obj, link=link, mailed=bool(obj.email) and mail_configured())

    @object_action(
        "Revoke", "gateway.change_invitation", look="danger", applies=lambda row: invitation_state(row) == "open"
    )
    def revoke(self, request: HttpRequest, row: Invitation) -> None:
        invitation_revoke(row, by=actor_of(request.user))
        self.message_user(request, "The invitation is revoked.", messages.SUCCESS)
