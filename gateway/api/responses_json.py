"""Responses, their items and the parts of these as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.api.responses_body import Names

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reasons in `incomplete_details` by the model's finish reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kind of part. Its text is in `field` and streamed in events named after `text_event`. The part is an entry of
    the item's list `container`, whose events are named after `part_event`; without a container, the text is a field of
    the item itself. `lists` are further fields of the part."""

    text_event: str
    field: str
    type: str = ""
    part_event: str = "content_part"
    container: str = "content"
    lists: tuple[str, ...] = ()

    def as_json(self, text: str, **lists: list[Any]) -> dict[str, Any]:
        more = {name: lists.get(name, []) for name in self.lists}
        return {"type": self.type, self.field: text, **more} if self.container else {self.field: text}


TEXT = Part(text_event="output_text", field="text", type="output_text", lists=("annotations", "logprobs"))
REFUSAL = Part(text_event="refusal", field="refusal", type="refusal")
REASONING = Part(text_event="reasoning_text", field="text", type="reasoning_text")
SUMMARY = Part(
    text_event="reasoning_summary_text",
    field="text",
    type="summary_text",
    part_event="reasoning_summary_part",
    container="summary",
)
ARGUMENTS = Part(text_event="function_call_arguments", field="arguments", container="")
INPUT = Part(text_event="custom_tool_call_input", field="input", container="")
# OpenAI's codes that clients act on. All other codes are unchanged.
_ERROR_CODES = {"rate_limited": "rate_limit_exceeded", "overloaded": "server_is_overloaded"}


def response_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error as the `error` of a response."""
    details = {"details": error["details"]} if error.get("details") else {}
    return {"code": _ERROR_CODES.get(error["code"], error["code"]), "message": error["message"], **details}


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


def reasoning_item(id: str, text: str = "", part: Part = REASONING, status: str = "completed") -> dict[str, Any]:
    """Return reasoning as an item. `part` is that of `reasoning_part`."""
    parts = [part.as_json(text)] if text else []
    return {"id": id, "type": "reasoning", "summary": [], "content": [], part.container: parts, "status": status}


def reasoning_part(echo: Mapping[str, Any]) -> Part:
    """Return the part for the model's reasoning: its summary, for requests that asked for one, or its text."""
    reasoning = echo.get("reasoning")
    return SUMMARY if isinstance(reasoning, dict) and reasoning.get("summary") else REASONING


def call_item(call: Mapping[str, Any], names: Names, status: str = "completed") -> dict[str, Any]:
    """Return a call of a client's tool as an item."""
    call_id, custom = str(call.get("id", "")), call.get("custom")
    tool = custom if isinstance(custom, dict) else call.get("function") or {}
    name, namespace = names.get(tool.get("name", ""), (tool.get("name", ""), ""))
    kind, prefix, arguments = (
        ("custom_tool_call", "ctc_", {"input": tool.get("input") or ""})
        if isinstance(custom, dict)
        else ("function_call", "fc_", {"arguments": tool.get("arguments") or "{}"})
    )
    item = {"id": prefix + call_id.removeprefix("call_"), "type": kind, "status": status, "call_id": call_id}
    return {**item, "name": name, **({"namespace": namespace} if namespace else {}), **arguments}
