"""The upstream of soak.py: bench/scripted_upstream.py plus answers to reviews.

A request for the model `--slow-model` is a review. After `--slow-ms` the answer is one `add_memory` call for each of
the latest cases in the conversation; once the request has their results, the answer is a sentence."""

import argparse
import json
from typing import Any

import uvloop
from scripted_upstream import CREATED, Script, UpstreamProtocol, error_body, serve
from soak_clients import CASE

MAX_MEMORIES = 3
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def memory_of(case: str) -> str:
    """Return the memory of a case; always the same, so that duplicates can be found."""
    return f"Asked about case {case}."


class SoakProtocol(UpstreamProtocol):
    """One client connection."""

    def completion(self) -> None:
        try:
            request = json.loads(self.body)
            is_review = request.get("model") == self.script.slow_model
        except (ValueError, AttributeError):
            self.answer(400, error_body("the body is not a JSON object"))
            return
        if not is_review:
            super().completion()
            return
        self.timer = self.loop.call_later(self.script.slow_ms / 1000, self.review, request)

    def review(self, request: dict[str, Any]) -> None:
        """Answer a step of a review."""
        self.timer = None
        messages = request["messages"]
        message: dict[str, Any] = {"role": "assistant", "content": "Saved what was new."}
        if messages[-1]["role"] != "tool":
            message = {"role": "assistant", "content": None, "tool_calls": memory_calls(messages[:-1])}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        answer = {"id": "chatcmpl-review", "object": "chat.completion", "created": CREATED, "usage": USAGE}
        self.answer(200, json.dumps({**answer, "model": request["model"], "choices": [choice]}).encode())


def memory_calls(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one `add_memory` call for each of the latest cases."""
    said = " ".join(str(message.get("content")) for message in conversation if message["role"] == "user")
    cases = list(dict.fromkeys(CASE.findall(said)))[-MAX_MEMORIES:]
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "add_memory", "arguments": json.dumps({"content": memory_of(case)})},
        }
        for number, case in enumerate(cases)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="The upstream of soak.py.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=10)
    parser.add_argument("--chunk-ms", type=float, default=10.0)
    parser.add_argument("--slow-model", default="reviewer")
    parser.add_argument("--slow-ms", type=float, default=300.0)
    args = parser.parse_args()
    script = Script(chunks=args.chunks, chunk_ms=args.chunk_ms, slow_model=args.slow_model, slow_ms=args.slow_ms)
    uvloop.run(serve(script, port=args.port, protocol=SoakProtocol))


if __name__ == "__main__":
    main()
