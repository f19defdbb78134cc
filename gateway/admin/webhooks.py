"""Webhooks in the admin: where each goes, when it was last delivered or failed, and a button that disables it. Of an
address only its host is shown: the rest may hold a secret."""

from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from gateway.models import Webhook
from gateway.webhooks.services import webhook_disable, webhook_state
from memories.admin.badges import badge, moment
from memories.admin.object_actions import ObjectAction, ObjectActionAdmin
from memories.audit import actor_of

_LOOKS = {"active": ("ok", "check"), "failing": ("warn", "schedule"), "disabled": ("muted", "block")}


@admin.register(Webhook)
class WebhookAdmin(ObjectActionAdmin):
    """Webhooks are made by their owners, at /api/webhooks."""

    object_actions = (
        ObjectAction(verb="disable", label="Disable", permission="gateway.change_webhook", look="danger"),
    )
    list_display = ("host", "owner", "state", "delivered", "failed", "created")
    list_select_related = ("owner__user",)
    list_filter = (("owner", AutocompleteSelectFilter),)
    searched_ids = ("pk",)
    fields = (("host", "owner"), "state", "wanted", ("delivered", "failed"), "said", "created")
    readonly_fields = ("host", "state", "wanted", "delivered", "failed", "said", "created")

    @admin.display(description="Host")
    def host(self, webhook: Webhook) -> str:
        return urlsplit(webhook.url).netloc

    @admin.display(description="State")
    def state(self, webhook: Webhook) -> SafeString:
        state = webhook_state(webhook)
        return badge(state.capitalize(), *_LOOKS[state])

    @admin.display(description="Kinds")
    def wanted(self, webhook: Webhook) -> str:
        return ", ".join(webhook.kinds)

    @admin.display(description="Last delivered")
    def delivered(self, webhook: Webhook) -> str:
        return moment(webhook.delivered_at)

    @admin.display(description="Last failed")
    def failed(self, webhook: Webhook) -> str:
        return moment(webhook.failed_at)

    @admin.display(description="Why")
    def said(self, webhook: Webhook) -> str:
        return webhook.note or webhook.failure

    @admin.display(description="Created")
    def created(self, webhook: Webhook) -> str:
        return moment(webhook.created_at)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return False

    def fits(self, row: Webhook, verb: str) -> bool:
        return row.disabled_at is None

    def do(self, request: HttpRequest, row: Webhook, verb: str) -> None:
        webhook_disable(row, by=actor_of(request.user))
        self.message_user(request, "The webhook is disabled.", messages.SUCCESS)
