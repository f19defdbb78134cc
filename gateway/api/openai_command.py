"""What /v1 answers to a `/memory` command: a completion like any other, for which no model was asked."""

import json
import time
from collections.abc import AsyncGenerator
from typing import Any

from django.http import HttpResponse, HttpResponseBase

from gateway import sse
from gateway.api.openai_answer import chunk_head
from gateway.commands import CommandTurn

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def command_completion(answered: CommandTurn, *, stream: bool, include_usage: bool) -> HttpResponseBase:
    """The answer as one completion, or as chunks."""
    response: HttpResponseBase
    if stream:
        response = sse.response(_chunks(answered, include_usage=include_usage))
    else:
        response = HttpResponse(json.dumps(_whole(answered), ensure_ascii=False), content_type="application/json")
    response["x-daybook-session"] = str(answered.session_id)
    response["x-daybook-run"] = str(answered.turn_id)
    return response


def _whole(answered: CommandTurn) -> dict[str, Any]:
    message = {"role": "assistant", "content": answered.text}
    return {
        "id": f"chatcmpl-{answered.turn_id.hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": answered.agent_name,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": _NO_USAGE,
    }


async def _chunks(answered: CommandTurn, *, include_usage: bool) -> AsyncGenerator[bytes]:
    head = chunk_head(answered.turn_id.hex, answered.agent_name)
    for delta, reason in (
        ({"role": "assistant", "content": ""}, None),
        ({"content": answered.text}, None),
        ({}, "stop"),
    ):
        yield head + sse.encode({"index": 0, "delta": delta, "finish_reason": reason}) + b"]}\n\n"
    if include_usage:
        yield head + b'],"usage":' + sse.encode(_NO_USAGE) + b"}\n\n"
    yield sse.DONE_LINE
