"""Stored runs as responses, for GET /v1/responses/{id}, its input items, and references to items."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from gateway.api import responses_json as shapes
from gateway.api.responses_body import ECHOED, Names
from gateway.attachments.reading import contents_read
from gateway.messages import PARAGRAPH
from gateway.models import Message, Run
from gateway.runs.call_ids import call_prefix, run_of_call
from gateway.runs.responses import (
    SystemMessage,
    before_run,
    parts_of,
    response_id,
    responses_with_system,
    with_system,
    written_in_order,
)
from gateway.upstream.reasoning import reasoning_in
from gateway.upstream.usage import usage_since

_NO_NAMES: Names = {}
_STATUS = {Run.State.RUNNING: "in_progress", Run.State.FAILED: "failed", Run.State.STOPPED: "cancelled"}


def stored_response(run: Run, part: int) -> dict[str, Any]:
    """Return a stored response. The run's session and agent must be selected with it."""
    parts, stored = parts_of(run), run.responses or {}
    is_last = part >= len(parts) - 1
    status = _STATUS.get(Run.State(run.state), "completed") if is_last else "completed"
    finish_reason = str(run.trace.get("finish_reason", "")) if is_last else ""
    is_whole = status == "completed" and finish_reason not in shapes.INCOMPLETE
    request = stored.get(str(part)) or {}
    usage_before, names = request.get("usage_before", {}), request.get("names", {})
    output = parts[part].output if part < len(parts) else []
    completed_at = output[-1].created_at if output else run.finished_at
    later_parts = (str(later) for later in range(part + 1, len(parts)))
    usage_after = next((stored[later]["usage_before"] for later in later_parts if later in stored), run.usage)
    return shapes.response_object(
        id=response_id(run.pk, part),
        created_at=int(run.started_at.timestamp()),
        completed_at=int(completed_at.timestamp()) if completed_at else None,
        model=run.session.agent.name,
        status=status,
        output=output_items(
            run.pk,
            part,
            output,
            status=status if is_whole or status == "in_progress" else "incomplete",
            refused=int(run.trace.get("refused", 0)) if is_last else 0,
            thinking_part=shapes.reasoning_part(request),
            names=names,
        ),
        usage=None if status == "in_progress" else usage_since(usage_after, usage_before),
        error=shapes.response_error(run.error) if status == "failed" and run.error else None,
        finish_reason=finish_reason,
        echo={name: request.get(name, default) for name, default in ECHOED.items()},
    )


def output_items(
    run_id: UUID,
    part: int,
    rows: Sequence[Message],
    *,
    status: str = "completed",
    refused: int = 0,
    thinking_part: shapes.Part = shapes.REASONING,
    names: Names = _NO_NAMES,
) -> list[dict[str, Any]]:
    """Return the items of a response, with the ids and in the order that they had in its stream. Only reasoning that
    came with calls is stored. `status` is that of the message, `refused` the number of characters at its end that are
    a refusal; `names` are the client's tool names."""
    id_suffix, prefix = f"{run_id.hex}_{part}", call_prefix(run_id)
    items: list[dict[str, Any]] = []
    texts: list[str] = []  # of the messages among the items
    is_open = False  # whether the next text belongs to the last of them
    thoughts = 0
    for row in rows:
        if row.role != Message.Role.ASSISTANT:
            continue
        if thinking := reasoning_in((row.kept or {}).get("fields") or {}):
            items.append(shapes.reasoning_item(f"rs_{id_suffix}_{thoughts}", thinking, thinking_part))
            thoughts += 1
        calls = (call for call in row.calls if str(call.get("id", "")).startswith(prefix))
        for piece in written_in_order(row, calls):
            if not isinstance(piece, str):
                is_open = False
                items.append(shapes.call_item(piece, names))
            elif is_open:
                texts[-1] += ("" if texts[-1][-1].isspace() or piece[0].isspace() else PARAGRAPH) + piece
            else:
                is_open = True
                items.append(shapes.message_item(f"msg_{id_suffix}_{len(texts)}", [], status))
                texts.append(piece)
    messages = [item for item in items if item["type"] == "message"]
    for item, text in zip(messages, texts, strict=True):
        item["content"] = [shapes.TEXT.as_json(text)]
    if refused and messages:
        said, refusal = texts[-1][:-refused].rstrip(), texts[-1][-refused:]
        content = [shapes.TEXT.as_json(said)] if said else []
        messages[-1]["content"] = [*content, shapes.REFUSAL.as_json(refusal)]
    return items


def input_items(run: Run, part: int) -> list[dict[str, Any]]:
    """Return the input of a response, oldest first, without calls of Daybook's own tools and their results. Content
    parts are in their stored form, for `items_shown`."""
    parts = parts_of(run)
    given = parts[part].input if part < len(parts) else []
    own = [row for earlier in parts[:part] for row in (*earlier.input, *earlier.output)] + given
    requests = (run.responses or {}).values()
    names = {flat: name for request in requests for flat, name in request.get("names", {}).items()}
    rows = with_system(run.owner_id, [*before_run(run, own), *own], responses_with_system(run, part))
    return list(_as_input(rows, names, forked=run.session.parent_id is not None))


async def items_shown(owner_id: UUID, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items from `input_items` as clients get them, with the bytes of attachments."""
    shown = []
    for item in await contents_read(owner_id, await contents_read(owner_id, items), name="output"):
        name = "content" if "role" in item and item["role"] != "assistant" else "output"
        parts = item.get(name)
        shown.append({**item, name: [_input_part(part) for part in parts]} if isinstance(parts, list) else item)
    return shown


def _as_input(rows: Iterable[Message | SystemMessage], names: Names, *, forked: bool) -> Iterable[dict[str, Any]]:
    custom: set[str] = set()
    for row in rows:
        if isinstance(row, SystemMessage):
            content = row.message["content"]
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            yield {**shapes.message_item(row.id, parts), "role": row.message["role"]}
            continue
        calls = [call for call in row.calls if _is_shown(str(call.get("id", "")), row, forked=forked)]
        id = f"msg_{row.pk.hex}"
        if row.role == Message.Role.USER:
            parts = row.parts or [{"type": "text", "text": row.text}]
            yield {**shapes.message_item(id, parts), "role": "user"}
        elif row.role == Message.Role.ASSISTANT:
            for number, piece in enumerate(written_in_order(row, calls)):
                if isinstance(piece, str):
                    yield shapes.message_item(f"{id}_{number}" if number else id, [shapes.TEXT.as_json(piece)])
                else:
                    yield shapes.call_item(piece, names)
        elif row.role == Message.Role.TOOL and _is_shown(row.tool_call_id, row, forked=forked):
            yield {
                "id": f"fco_{row.pk.hex}",
                "type": "custom_tool_call_output" if row.tool_call_id in custom else "function_call_output",
                "call_id": row.tool_call_id,
                "output": row.text if row.parts is None else row.parts,
                "status": "completed",
            }
        custom.update(str(call.get("id", "")) for call in calls if call.get("type") == "custom")


def _is_shown(call_id: str, row: Message, *, forked: bool) -> bool:
    """Return True if a call was of one of the client's tools. Messages without a run were sent by the client with its
    own ids, or in a fork come from the parent session."""
    if row.run_id:
        return call_id.startswith(call_prefix(row.run_id))
    return not forked or run_of_call(call_id) is not None


def _input_part(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if kind == "text":
        return {**part, "type": "input_text"}
    inner = part.get(str(kind))
    if kind == "image_url" and isinstance(inner, dict):
        return {"type": "input_image", "image_url": inner.get("url"), "detail": inner.get("detail", "auto")}
    if kind == "file" and isinstance(inner, dict):
        return {"type": "input_file", **inner}
    return part
