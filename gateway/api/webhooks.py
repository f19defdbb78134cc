"""/api/webhooks: where an owner's notifications are sent. The secret is in the answer that makes a webhook, and nowhere
else."""

from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Router, Status
from pydantic import Field, StringConstraints

from gateway.models import Webhook
from gateway.webhooks.addresses import URL_LENGTH
from gateway.webhooks.services import KINDS, MOST, webhook_create, webhook_delete, webhook_json
from memories.api.bodies import Body
from memories.audit import actor_of_caller
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread, in_thread
from memories.ids import parse_uuid
from memories.pagination import page_json

router = Router()


class WebhookIn(Body):
    url: Annotated[str, StringConstraints(min_length=1, max_length=URL_LENGTH), Field(description="http or https.")]
    kinds: Annotated[
        list[
            Literal[
                "review.saved", "review.awaiting_approval", "review.undone", "memory.changed", "consolidation.finished"
            ]
        ],
        Field(min_length=1, max_length=len(KINDS), description="Kinds of notifications; without it, all."),
    ] = [*KINDS]  # type: ignore[list-item]


@router.get("/webhooks")
async def webhook_list(request: ApiRequest) -> dict[str, Any]:
    """The owner's webhooks, newest first: at most ten."""
    return await in_read_thread(_list, request.auth)


@router.post("/webhooks", response={201: Any})
async def webhook_make(request: ApiRequest, body: WebhookIn) -> Status[Any]:
    """Send notifications to an address from now on. `secret` signs them: it is in this answer only."""
    return Status(201, await in_thread(_create, request.auth, body))


@router.delete("/webhooks/{webhook_id}", response={204: None})
async def webhook_forget(request: ApiRequest, webhook_id: str) -> Status[Any]:
    """Delete a webhook."""
    await in_thread(_delete, request.auth, parse_uuid(webhook_id))
    return Status(204, None)


def _list(caller: Caller) -> dict[str, Any]:
    _refuse_limited(caller)
    rows = Webhook.objects.filter(owner_id=caller.owner_id).order_by("-id")[:MOST]
    return page_json([webhook_json(row) for row in rows])


def _create(caller: Caller, body: WebhookIn) -> dict[str, Any]:
    _refuse_limited(caller)
    by = actor_of_caller(caller.owner_id, caller.actor)
    webhook, secret = webhook_create(caller.owner_id, url=body.url, kinds=body.kinds, by=by)
    return webhook_json(webhook) | {"secret": secret}


def _delete(caller: Caller, webhook_id: UUID | None) -> None:
    _refuse_limited(caller)
    webhook_delete(caller.owner_id, webhook_id, by=actor_of_caller(caller.owner_id, caller.actor))


def _refuse_limited(caller: Caller) -> None:
    """Raises Forbidden: a webhook is sent what is about all books."""
    caller.limits.refuse("A webhook")
