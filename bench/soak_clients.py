"""The clients of soak.py. They retry unanswered requests as the chat page does.

A turn counts as tried once, however often it is requested, and as acknowledged when its whole answer has arrived.
Clients start no turn after the time is over, but finish the one in progress."""

import asyncio
import json
import random
import re
import secrets
from dataclasses import dataclass, field

import httpx2

AGENT = "soak"
CASE = re.compile(r"\bcase ([0-9a-z]+(?:-[0-9a-z]+)+)")
TURNS_PER_CONVERSATION = 6
_TIMEOUT_SECONDS = 20.0
# The retries of the chat page after a lost connection: after 0.5, 1, 2, 4, 8 s, and then every 15 s.
_MAX_ATTEMPTS = 12
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.5, 15.0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A turn whose whole answer arrived."""

    case: str
    run: str
    session: str
    text: str


@dataclass(slots=True)
class Ledger:
    """What the clients saw. `tried` counts turns, `interrupted` those without an answer to their first request; `sent`
    counts requests, `unanswered` those without a whole answer."""

    turns: list[Acknowledged] = field(default_factory=list)
    cases: set[str] = field(default_factory=set)
    tried: int = 0
    interrupted: int = 0
    sent: int = 0
    unanswered: int = 0
    refusals: dict[str, int] = field(default_factory=dict)

    def begin(self, case: str) -> None:
        """Count a turn as tried."""
        self.cases.add(case)
        self.tried += 1

    async def record_incomplete(self, attempt: int) -> None:
        """Count a request without a whole answer, then wait as long as a client does before it retries."""
        self.interrupted += attempt == 0
        self.unanswered += 1
        await asyncio.sleep(min(_FIRST_PAUSE_SECONDS * 2**attempt, _MAX_PAUSE_SECONDS))

    def check(self, answer: "httpx2.Response") -> None:
        """Count an error response and raise IncompleteAnswer for it."""
        if answer.is_success:
            return
        kind = f"{answer.status_code}"
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        raise IncompleteAnswer(kind)


class IncompleteAnswer(Exception):
    """The answer is missing or cut off; the client retries."""


@dataclass(slots=True)
class SoakClient:
    """A client of /v1. Those with odd numbers name their session; Daybook recognises the others by their messages."""

    number: int
    url: str
    key: str
    ledger: Ledger
    until: float  # in the event loop's time

    async def run(self) -> None:
        """Hold conversations until the time is over."""
        rng = random.Random(self.number)
        while not self._over():
            name = f"soak-{secrets.token_hex(6)}"
            messages: list[dict[str, str]] = []
            for turn in range(TURNS_PER_CONVERSATION):
                case = f"{self.number}-{secrets.token_hex(5)}-{turn}"
                messages.append({"role": "user", "content": f"Please look into case {case} for me."})
                answer = await self._ask(messages, case, name if self.number % 2 else "", stream=rng.random() < 0.5)
                if answer is None or self._over():
                    break
                messages.append({"role": "assistant", "content": answer})

    async def _ask(self, messages: list[dict[str, str]], case: str, session: str, *, stream: bool) -> str | None:
        """Send a turn until it is answered; return the text, or None after the last attempt."""
        self.ledger.begin(case)
        for attempt in range(_MAX_ATTEMPTS):
            headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": case}
            headers |= {"X-Daybook-Session": session} if session else {}
            headers |= {"x-stainless-retry-count": str(attempt)} if attempt else {}
            self.ledger.sent += 1
            try:
                found = await self._send({"model": AGENT, "messages": messages, "stream": stream}, headers, case)
            except (httpx2.HTTPError, IncompleteAnswer, ValueError):
                await self.ledger.record_incomplete(attempt)
                continue
            self.ledger.turns.append(found)
            return found.text
        return None

    async def _send(self, body: dict[str, object], headers: dict[str, str], case: str) -> Acknowledged:
        # A new connection each time: after a kill the old ones are dead, and detecting that is not measured.
        async with (
            httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream("POST", f"{self.url}/v1/chat/completions", json=body, headers=headers) as answer,
        ):
            content = (await answer.aread()).decode()
        self.ledger.check(answer)
        text = _streamed(content) if body["stream"] else str(json.loads(content)["choices"][0]["message"]["content"])
        given = answer.headers
        return Acknowledged(case, given["x-daybook-run"], given["x-daybook-session"], text)

    def _over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.until


class NativeClient(SoakClient):
    """A client of the native API with streaming, like the chat page. After an interruption it looks the turn up first,
    and then has it answered again in place."""

    async def run(self) -> None:
        """Hold conversations until the time is over."""
        while not self._over():
            session = ""
            for turn in range(TURNS_PER_CONVERSATION):
                case = f"{self.number}-{secrets.token_hex(5)}-{turn}"
                self.ledger.begin(case)
                found, session = await self._run_turn(case, session)
                if found is None:
                    break
                self.ledger.turns.append(found)
                if self._over():
                    break

    async def _run_turn(self, case: str, session: str) -> tuple[Acknowledged | None, str]:
        state = ConversationState(session)
        for attempt in range(_MAX_ATTEMPTS):
            self.ledger.sent += 1
            try:
                async with httpx2.AsyncClient(
                    base_url=self.url,
                    headers={"Authorization": f"Bearer {self.key}"},
                    timeout=_TIMEOUT_SECONDS,
                    trust_env=False,
                ) as client:
                    return await self._send_turn(client, case, state), state.session
            except (httpx2.HTTPError, IncompleteAnswer, ValueError):
                await self.ledger.record_incomplete(attempt)
        return None, state.session

    async def _send_turn(self, client: "httpx2.AsyncClient", case: str, state: "ConversationState") -> Acknowledged:
        if not state.session:
            made = await client.post("/api/sessions", json={"agent": AGENT})
            self.ledger.check(made)
            state.session = made.json()["id"]
        turns = f"/api/sessions/{state.session}/turns"
        body: dict[str, object] = {"content": f"Please look into case {case} for me.", "stream": True}
        if state.turn:
            before = await client.get(f"{turns}/{state.turn}")
            self.ledger.check(before)
            if before.json()["state"] == "completed":
                return Acknowledged(case, state.turn, state.session, before.json()["content"])
            if before.json()["state"] == "running":
                raise IncompleteAnswer("still running")
            body["replaces"] = state.turn
        async with client.stream("POST", turns, json=body) as answer:
            self.ledger.check(answer)
            async for line in answer.aiter_lines():
                data = json.loads(line[5:]) if line.startswith("data:") else {}
                if "turn" in data and isinstance(data["turn"], dict):
                    state.turn = data["turn"]["id"]
                if data.get("state") == "completed":
                    return Acknowledged(case, data["id"], state.session, data["content"])
        raise IncompleteAnswer("no end")


@dataclass(slots=True)
class ConversationState:
    """What a client knows of its conversation: the session, and the turn that has begun."""

    session: str
    turn: str = ""


def _streamed(content: str) -> str:
    """Return the text of a complete stream. Raises IncompleteAnswer if it has no end."""
    payloads = [line[5:].strip() for line in content.splitlines() if line.startswith("data:")]
    if not payloads or payloads[-1] != "[DONE]":
        raise IncompleteAnswer("no end")
    pieces = []
    for chunk in map(json.loads, payloads[:-1]):
        if "error" in chunk:
            raise IncompleteAnswer("an error in the stream")
        pieces += [choice["delta"].get("content") or "" for choice in chunk["choices"]]
    return "".join(pieces)
