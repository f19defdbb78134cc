"""The demo model's HTTP transport, which acts as an OpenAI-compatible server inside this process."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from gateway import sse
from gateway.demo.brain import Answer, answer
from memories.ids import uuid7

_WORD_SECONDS = 0.01
_DATA_URL = re.compile(r'"data:[^"]*"')
_EVENT_STREAM = {"content-type": "text/event-stream"}


class DemoTransport(httpx2.AsyncBaseTransport):
    """Serves POST /chat/completions and /completions, streamed or not."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        if request.url.path.endswith("/embeddings"):
            return httpx2.Response(
                400, json={"error": {"message": "The demo model makes no vectors.", "param": "model"}}
            )
        if request.url.path.endswith("/v1/completions"):
            return _completion_response(body)
        functions = (tool.get("function") or {} for tool in body.get("tools", []))  # a custom tool has none
        reply = answer(body.get("messages", []), {name for function in functions if (name := function.get("name"))})
        head = {"id": f"chatcmpl-{uuid7().hex}", "created": int(time.time()), "model": "demo"}
        usage = _usage(body, reply)
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
            if reply.calls:
                message["tool_calls"] = _calls(reply)
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
            return httpx2.Response(200, json=head | {"object": "chat.completion", "choices": [choice], "usage": usage})
        stream = _stream(head | {"object": "chat.completion.chunk"}, reply, usage)
        return httpx2.Response(200, headers=_EVENT_STREAM, content=stream)


def _completion_response(body: dict[str, Any]) -> httpx2.Response:
    """Return the response to a text completion, which is always "…"."""
    choice = {"index": 0, "text": "…", "finish_reason": "stop", "logprobs": None}
    head = {"id": f"cmpl-{uuid7().hex}", "object": "text_completion", "created": int(time.time()), "model": "demo"}
    answer = head | {"choices": [choice]}
    if not body.get("stream"):
        return httpx2.Response(200, json=answer)
    return httpx2.Response(200, headers=_EVENT_STREAM, content=sse.data_line(answer) + sse.DONE_LINE)


async def _stream(head: dict[str, Any], reply: Answer, usage: dict[str, int]) -> AsyncIterator[bytes]:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return sse.data_line(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for line in reply.text.splitlines(keepends=True):
        for piece in line.split(" "):
            await asyncio.sleep(_WORD_SECONDS)  # streams visibly and leaves time for a stop
            yield event({"content": piece if piece.endswith("\n") else piece + " "})
    if reply.calls:
        yield event({"tool_calls": [call | {"index": index} for index, call in enumerate(_calls(reply))]})
    yield event({}, finish="tool_calls" if reply.calls else "stop")
    yield sse.data_line(head | {"choices": [], "usage": usage})
    yield sse.DONE_LINE


def _calls(reply: Answer) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def _usage(body: dict[str, Any], reply: Answer) -> dict[str, int]:
    # Estimated at four characters per token, without pictures: enough to show where usage appears.
    sent = _DATA_URL.sub("", json.dumps(body.get("messages", [])))
    prompt, completion = len(sent) // 4, max(1, len(reply.text) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
