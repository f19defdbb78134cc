"""/api/audit: the audit log, for staff with the permission to view it."""

from collections.abc import Iterator
from typing import Annotated, Any

from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet
from ninja import Router

from memories.api import answers
from memories.api.answers import as_shape, list_of
from memories.api.bodies import inline_enum
from memories.api.export import CONTENT_TYPE, download
from memories.audit.log import KIND, Action, actor_of_caller, audit_entries, audit_record
from memories.caller import ApiRequest, Caller
from memories.database.access import in_thread
from memories.errors import Forbidden
from memories.json_output import json_line
from memories.limits import PageSize, ShortText
from memories.models import AuditEntry
from memories.pagination import DEFAULT_LIMIT, list_json
from memories.selectors import paged

router = Router(tags=["Audit"])
PERMISSION = "memories.view_auditentry"
_AS_LINES: dict[str, Any] = {"responses": {200: {"content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}}}


@router.get(
    "/audit", response=list_of(answers.AuditEntry, "Entries of the audit log, newest first."), openapi_extra=_AS_LINES
)
async def audit_list(
    request: ApiRequest,
    actor: ShortText = "",
    owner: ShortText = "",
    action: Annotated[Action | None, inline_enum(Action)] = None,
    limit: PageSize = DEFAULT_LIMIT,
    after: ShortText | None = None,
) -> Any:
    """List audit entries, newest first, filtered by the exact `actor`, `owner` and `action`. `after` is the last id of
    the previous page. With `Accept: application/x-ndjson` all entries are returned as JSON Lines, oldest first, and
    `limit` and `after` are ignored. Reading the log is itself recorded."""
    filters = {"actor": actor, "owner": owner, "action": action or ""}
    if CONTENT_TYPE not in request.headers.get("accept", "").lower():
        return await in_thread(_list, request.auth, filters, limit, after)
    await in_thread(_export_record, request.auth)
    return download(audit_lines(audit_entries(**filters)), "audit.jsonl")


def require_right(caller: Caller) -> None:
    """Raise Forbidden unless the caller's account is active staff with the permission to view the log."""
    user = User.objects.filter(owner=caller.owner_id, is_active=True, is_staff=True).first()
    caller.limits.refuse("The audit log")
    if user is None or not user.has_perm(PERMISSION):
        raise Forbidden("Only staff with the right to view audit entries may read the audit log.")


def audit_json(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as the API and the export show it."""
    shown = as_shape(answers.AuditEntry, entry, object="audit_entry")
    return {name: None if value == "" else value for name, value in shown.items()}


def audit_lines(entries: "QuerySet[AuditEntry]") -> Iterator[str]:
    """Yield the entries as JSON Lines, oldest first, read in pages."""
    for entry in paged(entries, "pk"):
        yield json_line(audit_json(entry), cls=DjangoJSONEncoder) + "\n"


def _list(caller: Caller, filters: dict[str, str], limit: int, after: str | None) -> dict[str, Any]:
    require_right(caller)
    page = list_json(audit_entries(**filters), limit=limit, after=after, show=audit_json)
    audit_record(Action.LIST, actor=actor_of_caller(caller), kind=KIND, count=len(page["data"]))
    return page


def _export_record(caller: Caller) -> None:
    require_right(caller)
    audit_record(Action.EXPORT, actor=actor_of_caller(caller), kind=KIND)
