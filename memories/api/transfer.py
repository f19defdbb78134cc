"""/api/export, /api/import, and forgetting: all that is remembered, out, in and away."""

from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from ninja import Router

from memories.audit import Action, Actor, actor_of_caller, audit_record
from memories.batches import in_slices
from memories.caller import ApiRequest, Caller
from memories.database import in_read_thread, in_thread
from memories.errors import InvalidRequest
from memories.forgetting import forget_slices
from memories.importing import import_slices
from memories.limits import ShortText
from memories.models import Owner
from memories.portability import CONTENT_TYPE, download, export_lines

router = Router()
# JSON Lines in the OpenAPI document.
LINES: dict[str, Any] = {CONTENT_TYPE: {"schema": {"type": "string", "maxLength": settings.DAYBOOK_MAX_BODY}}}


@router.get("/export", openapi_extra={"responses": {200: {"content": LINES}}})
async def export(request: ApiRequest, book: ShortText | None = None) -> HttpResponseBase:
    """Everything about the owner as JSON Lines; with `book` only what that book remembers."""
    if book is None:
        request.auth.limits.refuse("An export of everything")
    else:
        request.auth.limits.require_books([book])
    await in_thread(_export_record, request.auth)
    return download(export_lines(request.auth.owner_id, book=book), "daybook-export.jsonl")


@router.post("/import", openapi_extra={"requestBody": {"content": LINES, "required": True}})
async def import_(request: ApiRequest, preview: bool = False, book: ShortText | None = None) -> dict[str, Any]:
    """Import JSON Lines (application/x-ndjson): our own export, or objects with a `content`. With `preview` nothing is
    written."""
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not valid UTF-8. Nothing was imported.") from None
    actor, limits = request.auth.actor, request.auth.limits
    name = limits.book_name(book)
    work = import_slices(request.auth.owner_id, text, actor=actor, book=name, preview=preview, limits=limits)
    return (await in_slices(work)).as_json()


@router.delete("/account/memories")
async def forget(request: ApiRequest, book: ShortText | None = None) -> dict[str, Any]:
    """Forget everything that is remembered, for good; answers with a receipt that holds numbers only."""
    request.auth.limits.refuse("Forgetting")
    by = await in_read_thread(actor_of_caller, request.auth.owner_id, request.auth.actor)
    return (await in_slices(forget_slices(request.auth.owner_id, book=book, by=by))).as_json()


def _export_record(caller: Caller) -> None:
    owner = Owner.objects.select_related("user").get(pk=caller.owner_id)
    audit_record(Action.EXPORT, actor=Actor(str(owner), caller.actor), kind="owner", object_id=owner.pk, owner=owner)
