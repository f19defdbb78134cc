"""A test double of the model for consolidation. It distinguishes extractions and syntheses by their requests. Since
concurrent requests arrive in any order, answers are functions of the request."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable

from gateway.upstream import Chunk, ModelRequest
from memories.database.access import in_thread

SESSION = re.compile(r"The record of session (\S+), as JSON")
Answer = str | Exception


def extraction(raw_memory: str = "", rollout_summary: str = "") -> str:
    """Return the JSON answer of an extraction."""
    return json.dumps({"raw_memory": raw_memory, "rollout_summary": rollout_summary})


def synthesis(memory_md: str = "# Memory", memory_summary: str = "A summary.", **skills: str) -> str:
    """Return the JSON answer of a synthesis; `skills` are contents by name."""
    rows = [{"name": name.replace("_", "-"), "content": content} for name, content in skills.items()]
    return json.dumps({"memory_md": memory_md, "memory_summary": memory_summary, "skills": rows})


class AnsweringModel:
    """Answers extractions and syntheses. `calls` has the requests. With `wait_for`, the first extractions are answered
    once that many are waiting; `max_concurrent` is the highest number that waited at once."""

    def __init__(self) -> None:
        self.calls: list[ModelRequest] = []
        self.on_extraction: Callable[[str, ModelRequest], Answer] = lambda session, _: extraction(
            f"- Note of {session}", f"Synopsis of {session}."
        )
        self.on_synthesis: Callable[[ModelRequest], Answer] = lambda _: synthesis()
        self.finish_reason = "stop"
        self.wait_for = 0
        self._enough = asyncio.Event()
        self.max_concurrent = self._concurrent = 0
        self.usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        self.calls.append(request)
        session = session_of(request)
        if session and self.wait_for:
            await self._wait_for_others()
        # In a database thread, since an answer may read rows, or change them as another process would.
        answer = await in_thread(
            lambda: self.on_extraction(session, request) if session else self.on_synthesis(request)
        )
        if isinstance(answer, Exception):
            raise answer
        delta = {"role": "assistant", "content": answer}
        choice = {"index": 0, "delta": delta, "finish_reason": self.finish_reason}
        yield {"model": "answering", "choices": [choice], "usage": self.usage}

    async def _wait_for_others(self) -> None:
        self._concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self._concurrent)
        if self.max_concurrent >= self.wait_for:
            self._enough.set()
        async with asyncio.timeout(20):
            await self._enough.wait()
        for _ in range(20):  # gives an excess request time to arrive; it would first read its session in a thread
            await in_thread(int)
            await asyncio.sleep(0)
        self._concurrent -= 1

    @property
    def extracted(self) -> list[str]:
        """The ids of the sessions that were read, in the order of the requests."""
        return [session for request in self.calls if (session := session_of(request))]

    @property
    def syntheses(self) -> list[str]:
        """The texts of the synthesis requests."""
        return [text_of(request) for request in self.calls if not session_of(request)]


def session_of(request: ModelRequest) -> str:
    """Return the id of the session that an extraction reads, or "" for a synthesis."""
    match = SESSION.search(text_of(request))
    return match[1] if match else ""


def text_of(request: ModelRequest) -> str:
    """Return the content of the last message."""
    return str(request.messages[-1]["content"])
