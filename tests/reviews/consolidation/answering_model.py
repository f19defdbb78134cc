"""A double of the model for consolidation: it tells extraction and synthesis apart by what is sent, and answers each
with what the test chose. Concurrent requests come in any order, so answers are functions of the request."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable

from gateway.upstream import Chunk, ModelRequest
from memories.database.access import in_thread

SESSION = re.compile(r"The record of session (\S+), as JSON")
Answer = str | Exception


def extraction(raw_memory: str = "", rollout_summary: str = "") -> str:
    """The JSON of an extraction."""
    return json.dumps({"raw_memory": raw_memory, "rollout_summary": rollout_summary})


def synthesis(memory_md: str = "# Memory", memory_summary: str = "A summary.", **skills: str) -> str:
    """The JSON of a synthesis; `skills` are contents by name."""
    named = [{"name": name.replace("_", "-"), "content": content} for name, content in skills.items()]
    return json.dumps({"memory_md": memory_md, "memory_summary": memory_summary, "skills": named})


class AnsweringModel:
    """Answers extractions and syntheses. `calls` keeps what was really sent. With `wait_for` the first extractions are
    answered when so many are asked for at once, and `most_at_once` tells how many it were at most."""

    def __init__(self) -> None:
        self.calls: list[ModelRequest] = []
        self.on_extraction: Callable[[str, ModelRequest], Answer] = lambda session, _: extraction(
            f"- Note of {session}", f"Synopsis of {session}."
        )
        self.on_synthesis: Callable[[ModelRequest], Answer] = lambda _: synthesis()
        self.wait_for = 0
        self._enough = asyncio.Event()
        self.most_at_once = self._at_once = 0
        self.usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk]:
        self.calls.append(request)
        session = session_of(request)
        if session and self.wait_for:
            await self._company()
        # In a database thread: an answer may look at rows, or change them as somebody else would meanwhile.
        answer = await in_thread(
            lambda: self.on_extraction(session, request) if session else self.on_synthesis(request)
        )
        if isinstance(answer, Exception):
            raise answer
        delta = {"role": "assistant", "content": answer}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
        yield {"model": "answering", "choices": [choice], "usage": self.usage}

    async def _company(self) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        if self.most_at_once >= self.wait_for:
            self._enough.set()
        async with asyncio.timeout(20):
            await self._enough.wait()
        for _ in range(20):  # time for one too many to come: it would look at its session in a database thread first
            await in_thread(int)
            await asyncio.sleep(0)
        self._at_once -= 1

    @property
    def extracted(self) -> list[str]:
        """Ids of the sessions that were read, in the order of the requests."""
        return [session for request in self.calls if (session := session_of(request))]

    @property
    def syntheses(self) -> list[str]:
        """Texts of the requests of syntheses."""
        return [text_of(request) for request in self.calls if not session_of(request)]


def session_of(request: ModelRequest) -> str:
    """The session an extraction reads, "" for a synthesis."""
    match = SESSION.search(text_of(request))
    return match[1] if match else ""


def text_of(request: ModelRequest) -> str:
    """The last message."""
    return str(request.messages[-1]["content"])
