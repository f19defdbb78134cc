"""Webhooks in the admin: host, last delivery and failure, and a button that disables a webhook. The rest of the URL is
not shown, since it may contain a secret."""

from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.http import HttpRequest

from gateway.models import Webhook
from gateway.webhooks.services import webhook_disable, webhook_state
from memories.admin.badges import named_badge
from memories.admin.base import ReadOnlyAdmin
from memories.admin.columns import column, moment_column
from memories.admin.filters import OWNER_FILTER
from memories.admin.object_actions import ObjectActionAdmin, object_action
from memories.audit.log import actor_of


@admin.register(Webhook)
class WebhookAdmin(ObjectActionAdmin, ReadOnlyAdmin):
    """Webhooks, which owners create at /api/webhooks."""

    object_actions = ("disable",)
    list_display = ("host", "owner", "state", "delivered", "failed", "created")
    list_select_related = ("owner__user",)
    list_filter = (OWNER_FILTER,)
    search_fields = ("pk",)
    search_help_text = "The webhook's id, as in the audit log"
    searched_ids = ("pk",)
    fields = (("host", "owner"), "state", "wanted", ("delivered", "failed"), "said", "created")
    delivered = moment_column("delivered_at", "Last delivered")
    failed = moment_column("failed_at", "Last failed")
    created = moment_column("created_at", "Created")
    host = column("Host", lambda webhook: urlsplit(webhook.url).netloc)

    state = column("State", lambda webhook: named_badge(webhook_state(webhook)))
    wanted = column("Kinds", lambda webhook: ", ".join(webhook.kinds))
    said = column("Why", lambda webhook: webhook.note or webhook.failure)

    @object_action("Disable", "gateway.change_webhook", look="danger", applies=lambda row: row.disabled_at is None)
    def disable(self, request: HttpRequest, row: Webhook) -> None:
        webhook_disable(row, by=actor_of(request.user))
        self.message_user(request, "The webhook is disabled.", messages.SUCCESS)
