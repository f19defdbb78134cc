"""The clients of soak.py: each talks, and asks again for what was not answered, as the chat page does.
A turn is tried once, however often it is asked for, and acknowledged when its whole answer has arrived. Nobody begins a
turn after the time is over, but everybody ends the one that was begun."""

import asyncio
import json
import random
import re
import secrets
from dataclasses import dataclass, field

import httpx2

AGENT = "soak"
CASE = re.compile(r"\bcase ([0-9a-z]+(?:-[0-9a-z]+)+)")
TURNS = 6  # of one conversation
_PATIENCE_SECONDS = 20.0
# As the chat page comes back after a broken connection: 0.5, 1, 2, 4, 8 s, and then every 15 s.
_ATTEMPTS = 12
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A turn whose whole answer arrived."""

    case: str
    run: str
    session: str
    text: str


@dataclass(slots=True)
class Ledger:
    """What the clients saw. `tried` counts turns, `interrupted` those of them that got no answer at the first request;
    `sent` counts requests, `unanswered` those without a whole answer."""

    turns: list[Acknowledged] = field(default_factory=list)
    cases: set[str] = field(default_factory=set)
    tried: int = 0
    interrupted: int = 0
    sent: int = 0
    unanswered: int = 0
    refusals: dict[str, int] = field(default_factory=dict)

    def begin(self, case: str) -> None:
        """A turn is tried."""
        self.cases.add(case)
        self.tried += 1

    async def broke(self, attempt: int) -> None:
        """A request got no whole answer; waits as long as a client does before the next."""
        self.interrupted += attempt == 0
        self.unanswered += 1
        await asyncio.sleep(min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE))

    def check(self, answer: "httpx2.Response") -> None:
        """Count a refusal. Raises Broken for one."""
        if answer.is_success:
            return
        kind = f"{answer.status_code}"
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        raise Broken(kind)


class Broken(Exception):
    """An answer that did not arrive whole; the client asks again."""


@dataclass(slots=True)
class SoakClient:
    """One person, through /v1. Every other one names the session, the rest are recognised by their words."""

    number: int
    url: str
    key: str
    ledger: Ledger
    until: float  # in the event loop's time

    async def talk(self) -> None:
        """Conversations until the time is over."""
        rng = random.Random(self.number)
        while not self._over():
            name = f"soak-{secrets.token_hex(6)}"
            messages: list[dict[str, str]] = []
            for turn in range(TURNS):
                case = f"{self.number}-{secrets.token_hex(5)}-{turn}"
                messages.append({"role": "user", "content": f"Please look into case {case} for me."})
                answer = await self._ask(messages, case, name if self.number % 2 else "", stream=rng.random() < 0.5)
                if answer is None or self._over():
                    break
                messages.append({"role": "assistant", "content": answer})

    async def _ask(self, messages: list[dict[str, str]], case: str, session: str, *, stream: bool) -> str | None:
        """Ask until there is an answer; None when that was tried often enough."""
        self.ledger.begin(case)
        for attempt in range(_ATTEMPTS):
            headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": case}
            headers |= {"X-Daybook-Session": session} if session else {}
            headers |= {"x-stainless-retry-count": str(attempt)} if attempt else {}
            self.ledger.sent += 1
            try:
                found = await self._once({"model": AGENT, "messages": messages, "stream": stream}, headers, case)
            except (httpx2.HTTPError, Broken, ValueError):
                await self.ledger.broke(attempt)
                continue
            self.ledger.turns.append(found)
            return found.text
        return None

    async def _once(self, body: dict[str, object], headers: dict[str, str], case: str) -> Acknowledged:
        # A connection of its own: after a kill the old ones are dead, and which one is no part of what is measured.
        async with (
            httpx2.AsyncClient(timeout=_PATIENCE_SECONDS, trust_env=False) as client,
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
    """One person at the chat page: the native API, streamed. What broke off is looked for first, and then answered
    again in its place."""

    async def talk(self) -> None:
        """Conversations until the time is over."""
        while not self._over():
            session = ""
            for turn in range(TURNS):
                case = f"{self.number}-{secrets.token_hex(5)}-{turn}"
                self.ledger.begin(case)
                found, session = await self._answered(case, session)
                if found is None:
                    break
                self.ledger.turns.append(found)
                if self._over():
                    break

    async def _answered(self, case: str, session: str) -> tuple[Acknowledged | None, str]:
        known = Known(session)
        for attempt in range(_ATTEMPTS):
            self.ledger.sent += 1
            try:
                async with httpx2.AsyncClient(
                    base_url=self.url,
                    headers={"Authorization": f"Bearer {self.key}"},
                    timeout=_PATIENCE_SECONDS,
                    trust_env=False,
                ) as client:
                    return await self._say(client, case, known), known.session
            except (httpx2.HTTPError, Broken, ValueError):
                await self.ledger.broke(attempt)
        return None, known.session

    async def _say(self, client: "httpx2.AsyncClient", case: str, known: "Known") -> Acknowledged:
        if not known.session:
            made = await client.post("/api/sessions", json={"agent": AGENT})
            self.ledger.check(made)
            known.session = made.json()["id"]
        turns = f"/api/sessions/{known.session}/turns"
        body: dict[str, object] = {"content": f"Please look into case {case} for me.", "stream": True}
        if known.turn:
            before = await client.get(f"{turns}/{known.turn}")
            self.ledger.check(before)
            if before.json()["state"] == "completed":
                return Acknowledged(case, known.turn, known.session, before.json()["content"])
            if before.json()["state"] == "running":
                raise Broken("still running")
            body["replaces"] = known.turn
        async with client.stream("POST", turns, json=body) as answer:
            self.ledger.check(answer)
            async for line in answer.aiter_lines():
                data = json.loads(line[5:]) if line.startswith("data:") else {}
                if "turn" in data and isinstance(data["turn"], dict):
                    known.turn = data["turn"]["id"]
                if data.get("state") == "completed":
                    return Acknowledged(case, data["id"], known.session, data["content"])
        raise Broken("no end")


@dataclass(slots=True)
class Known:
    """What a page knows of a conversation: its session, and the turn that began."""

    session: str
    turn: str = ""


def _streamed(content: str) -> str:
    """The text of a whole stream. Raises Broken for one without its end."""
    payloads = [line[5:].strip() for line in content.splitlines() if line.startswith("data:")]
    if not payloads or payloads[-1] != "[DONE]":
        raise Broken("no end")
    pieces = []
    for chunk in map(json.loads, payloads[:-1]):
        if "error" in chunk:
            raise Broken("an error in the stream")
        pieces += [choice["delta"].get("content") or "" for choice in chunk["choices"]]
    return "".join(pieces)
