"""/api/webhooks: addresses that get an owner's notifications. The secret is only in the answer that creates a
webhook."""

from typing import Annotated, Any, Literal

from ninja import Router, Status
from pydantic import Field, StringConstraints

from gateway.api import answers
from gateway.models import Webhook
from gateway.webhooks.addresses import URL_LENGTH
from gateway.webhooks.services import KINDS, webhook_create, webhook_delete, webhook_state
from memories.api.answers import as_shape, documented, list_of
from memories.api.bodies import Body
from memories.api.operations import reading, without_fields, writing
from memories.audit.log import actor_of_caller
from memories.caller import ApiRequest
from memories.ids import parse_uuid
from memories.limits import PageSize, ShortText
from memories.pagination import DEFAULT_LIMIT, list_json

router = Router(tags=["Webhooks"])
_WHAT = "A webhook"  # refused to limited keys, since it gets notifications about all books


class WebhookIn(
    Body,
    json_schema_extra={
        "examples": [{"url": "https://example.org/daybook", "kinds": ["memory.changed", "review.saved"]}]
    },
):
    url: Annotated[str, StringConstraints(min_length=1, max_length=URL_LENGTH), Field(description="http or https.")]
    kinds: Annotated[
        list[Literal[KINDS]],  # type: ignore[valid-type]
        Field(min_length=1, max_length=len(KINDS), description="Kinds of notifications; without it, all."),
    ] = [*KINDS]


@router.get("/webhooks", response=list_of(answers.Webhook, "Webhooks, newest first."))
@reading
def webhook_list(
    request: ApiRequest, limit: PageSize = DEFAULT_LIMIT, after: ShortText | None = None
) -> dict[str, Any]:
    """The owner's webhooks, newest first: at most ten."""
    request.auth.limits.refuse(_WHAT)
    rows = Webhook.objects.filter(owner_id=request.auth.owner_id)
    return list_json(rows, limit=limit, after=after, show=webhook_json)


@router.post("/webhooks", response={201: documented(answers.NewWebhook)})
@writing
def webhook_make(request: ApiRequest, body: WebhookIn) -> Status[Any]:
    """Create a webhook for notifications. The `secret` that signs them is only in this answer."""
    caller = request.auth
    caller.limits.refuse(_WHAT)
    by = actor_of_caller(caller)
    webhook, secret = webhook_create(caller.owner_id, url=body.url, kinds=body.kinds, by=by)
    return Status(201, webhook_json(webhook) | {"secret": secret})


@router.delete("/webhooks/{webhook_id}", response={204: None})
@without_fields
@writing
def webhook_forget(request: ApiRequest, webhook_id: str) -> Status[Any]:
    """Delete a webhook."""
    caller = request.auth
    caller.limits.refuse(_WHAT)
    webhook_delete(caller.owner_id, parse_uuid(webhook_id), by=actor_of_caller(caller))
    return Status(204, None)


def webhook_json(webhook: Webhook) -> dict[str, Any]:
    return as_shape(
        answers.Webhook,
        webhook,
        object="webhook",
        state=webhook_state(webhook),
        note=webhook.note or webhook.failure,
        last_delivered_at=webhook.delivered_at,
        last_failed_at=webhook.failed_at,
        next_attempt_at=None if webhook.disabled_at else webhook.next_attempt_at,
    )
