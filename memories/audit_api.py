"""/api/audit: the audit log, for staff that may view it."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from ninja import Router

from memories.audit import Action, Actor, actor_of_caller, audit_entries, audit_json, audit_lines, audit_record
from memories.caller import ApiRequest, Caller
from memories.database import in_thread
from memories.errors import Forbidden
from memories.ids import parse_uuid
from memories.lists import DEFAULT_LIMIT, list_json

router = Router()
PERMISSION = "memories.view_auditentry"
_LINES = "application/x-ndjson"
_AS_LINES: dict[str, Any] = {"responses": {200: {"content": {_LINES: {"schema": {"type": "string"}}}}}}


@router.get("/audit", response={200: Any}, openapi_extra=_AS_LINES)
async def audit_list(
    request: ApiRequest,
    actor: str = "",
    owner: str = "",
    action: str = "",
    limit: int = DEFAULT_LIMIT,
    after: str | None = None,
) -> Any:
    """Who looked at or changed whose what, newest first. `actor`, `owner` and `action` choose entries with exactly
    these. With `Accept: application/x-ndjson` all of them come as JSON Lines, oldest first; that is recorded."""
    named = {"actor": actor, "owner": owner, "action": action}
    if _LINES not in request.headers.get("accept", ""):
        return await in_thread(_list, request.auth, named, limit, after)
    response = HttpResponse(await in_thread(_lines, request.auth, named), content_type=_LINES)
    response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    return response


def require_right(caller: Caller) -> None:
    """Raises Forbidden unless the caller's account is active staff with the right to view the log."""
    user = User.objects.filter(owner=caller.owner_id, is_active=True, is_staff=True).first()
    caller.limits.refuse("The audit log")
    if user is None or not user.has_perm(PERMISSION):
        raise Forbidden("Only staff with the right to view audit entries may read the audit log.")


def _list(caller: Caller, named: dict[str, str], limit: int, after: str | None) -> dict[str, Any]:
    require_right(caller)
    return list_json(audit_entries(**named), limit=limit, after=after, key="id", show=audit_json, parse=parse_uuid)


def _lines(caller: Caller, named: dict[str, str]) -> str:
    require_right(caller)
    actor: Actor = actor_of_caller(caller.owner_id, caller.actor)
    audit_record(Action.EXPORT, actor=actor, kind="audit entry")
    return "".join(audit_lines(audit_entries(**named)))
