"""Creates, deletes and disables webhooks; no other module does."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from gateway.models import Webhook
from gateway.webhooks.addresses import checked_url
from gateway.webhooks.signing import is_of_this_key, new_secret, secret_sha256
from memories.audit.log import Action, Actor, audit_record
from memories.errors import Conflict, NotFound
from memories.models import Notification, Owner

MAX_WEBHOOKS = 10
"""Maximum number of webhooks of an owner."""
KINDS = tuple(kind.value for kind in Notification.Kind if kind != Notification.Kind.RESYNC)
_KIND = "webhook"
BY_STAFF = "An administrator disabled it."


@transaction.atomic
def webhook_create(owner_id: UUID, *, url: str, kinds: Sequence[str], by: Actor) -> tuple[Webhook, str]:
    """Create a webhook for future notifications. Return it with its secret, which is not stored. Raises InvalidRequest,
    and Conflict if the owner already has MAX_WEBHOOKS."""
    checked = checked_url(url)
    owner = Owner.objects.select_for_update().get(pk=owner_id)  # so that concurrent requests keep to the limit
    if Webhook.objects.filter(owner=owner).count() >= MAX_WEBHOOKS:
        raise Conflict(f"You have {MAX_WEBHOOKS} webhooks. Delete one first.", limit=MAX_WEBHOOKS)
    webhook = Webhook(owner=owner, url=checked, kinds=[kind for kind in KINDS if kind in kinds])
    secret = new_secret(webhook.pk)
    webhook.secret_sha256, webhook.delivered_seq = secret_sha256(secret), owner.notification_seq
    webhook.save(force_insert=True)
    audit_record(Action.ADD, actor=by, kind=_KIND, object_id=webhook.pk, owner=owner)
    return webhook, secret


@transaction.atomic
def webhook_delete(owner_id: UUID, webhook_id: UUID | None, *, by: Actor) -> None:
    """Delete a webhook. A delivery under way may still arrive. Raises NotFound."""
    rows = Webhook.objects.select_related("owner").filter(owner_id=owner_id)
    webhook = rows.filter(pk=webhook_id).first() if webhook_id else None
    if webhook is None:
        raise NotFound("There is no such webhook.")
    audit_record(Action.DELETE, actor=by, kind=_KIND, object_id=webhook.pk, owner=webhook.owner)
    webhook.delete()


@transaction.atomic
def webhook_disable(webhook: Webhook, *, by: Actor) -> bool:
    """Disable a webhook on behalf of an administrator. Return False if it was already disabled."""
    rows = Webhook.objects.filter(pk=webhook.pk, disabled_at__isnull=True)
    if rows.update(disabled_at=timezone.now(), note=BY_STAFF) != 1:
        return False
    audit_record(Action.CHANGE, actor=by, kind=_KIND, object_id=webhook.pk, owner=webhook.owner, note="Disabled.")
    return True


def webhook_state(webhook: Webhook) -> str:
    """Return `active`, `failing` (to be retried) or `disabled`."""
    return "disabled" if webhook.disabled_at else "failing" if webhook.failures else "active"


def webhooks_of_older_keys() -> int:
    """Return the number of enabled webhooks whose secret was derived from an older signing key. They are disabled at
    their next delivery, unless that key is in DAYBOOK_SECRET_KEY_FALLBACKS."""
    rows = Webhook.objects.filter(disabled_at__isnull=True).values_list("pk", "secret_sha256")
    return sum(not is_of_this_key(pk, sha256) for pk, sha256 in rows.iterator())


def webhook_warnings(owner_id: UUID) -> list[str]:
    """Return a warning for each disabled webhook of an owner."""
    rows = Webhook.objects.filter(owner_id=owner_id, disabled_at__isnull=False).order_by("created_at")
    return [f"A webhook is disabled: {row.note} Delete it, and create another one at /api/webhooks." for row in rows]
