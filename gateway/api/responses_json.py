"""Responses and their items as JSON."""

from collections.abc import Mapping
from typing import Any

from gateway.api.responses_body import Names

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reasons in `incomplete_details` by the model's finish reason."""
_NO_NAMES: Names = {}


def response_object(
    *,
    id: str,
    created_at: int,
    completed_at: int | None = None,
    model: str,
    status: str,
    output: list[dict[str, Any]],
    echo: Mapping[str, Any],
    usage: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    finish_reason: str = "",
) -> dict[str, Any]:
    """Return a response object, with the status `incomplete` if `finish_reason` shows that it was cut off. Only a
    completed response has `completed_at`."""
    reason = INCOMPLETE.get(finish_reason) if status == "completed" else None
    return {
        "id": id,
        "object": "response",
        "created_at": created_at,
        "completed_at": completed_at if status == "completed" and not reason else None,
        "status": "incomplete" if reason else status,
        "background": False,
        "error": error,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model,
        "output": output,
        "usage": None if usage is None else usage_json(usage),
        **echo,
    }


def usage_json(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage of a chat completion with the field names of the Responses API."""
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0, **(usage.get("prompt_tokens_details") or {})},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0, **(usage.get("completion_tokens_details") or {})},
        "total_tokens": usage.get("total_tokens") or prompt + completion,
    }


def message_item(id: str, content: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    return {"id": id, "type": "message", "role": "assistant", "status": status, "content": content}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


def reasoning_item(id: str, text: str, status: str = "completed", *, as_summary: bool = False) -> dict[str, Any]:
    """Return reasoning as an item. With `as_summary` the text is its summary, for clients that asked for one."""
    kind, container = ("summary_text", "summary") if as_summary else ("reasoning_text", "content")
    parts = [{"type": kind, "text": text}] if text else []
    return {"id": id, "type": "reasoning", "summary": [], "content": [], container: parts, "status": status}


def wants_summary(echo: Mapping[str, Any]) -> bool:
    """Return True if a request asked for a summary of the model's reasoning."""
    reasoning = echo.get("reasoning")
    return isinstance(reasoning, dict) and bool(reasoning.get("summary"))


def call_item(call: Mapping[str, Any], names: Names = _NO_NAMES, status: str = "completed") -> dict[str, Any]:
    """Return a call of a client's tool as an item."""
    call_id, custom = str(call.get("id", "")), call.get("custom")
    tool = custom if isinstance(custom, dict) else call.get("function") or {}
    name, namespace = names.get(tool.get("name", ""), (tool.get("name", ""), ""))
    kind, prefix, arguments = (
        ("custom_tool_call", "ctc_", {"input": tool.get("input") or ""})
        if isinstance(custom, dict)
        else ("function_call", "fc_", {"arguments": tool.get("arguments") or ""})
    )
    item = {"id": prefix + call_id.removeprefix("call_"), "type": kind, "status": status, "call_id": call_id}
    return {**item, "name": name, **({"namespace": namespace} if namespace else {}), **arguments}
