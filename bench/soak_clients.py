"""The clients of soak.py: each talks, and sends again what was not answered, as the SDKs do.
A turn counts as acknowledged when its whole answer has arrived; the ledger keeps these."""

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
_PAUSE_SECONDS = 0.3
_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A turn whose whole answer arrived."""

    case: str
    run: str
    session: str
    text: str


@dataclass(slots=True)
class Ledger:
    """What the clients saw. `sent` counts requests, repetitions too."""

    turns: list[Acknowledged] = field(default_factory=list)
    cases: set[str] = field(default_factory=set)
    sent: int = 0
    unanswered: int = 0
    refusals: dict[str, int] = field(default_factory=dict)


class Broken(Exception):
    """An answer that did not arrive whole; the client asks again."""


@dataclass(slots=True)
class SoakClient:
    """One person with one connection. Every other one names the session, the rest are recognised by their words."""

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
                if answer is None:
                    return
                messages.append({"role": "assistant", "content": answer})

    async def _ask(self, messages: list[dict[str, str]], case: str, session: str, *, stream: bool) -> str | None:
        """Ask until there is an answer; None when the time is over."""
        self.ledger.cases.add(case)
        attempt = 0
        while not self._over():
            headers = {"Authorization": f"Bearer {self.key}", "Idempotency-Key": case}
            headers |= {"X-Daybook-Session": session} if session else {}
            headers |= {"x-stainless-retry-count": str(attempt)} if attempt else {}
            self.ledger.sent += 1
            try:
                found = await self._once({"model": AGENT, "messages": messages, "stream": stream}, headers, case)
            except (httpx2.HTTPError, Broken, ValueError):
                self.ledger.unanswered += 1
                attempt += 1
                await asyncio.sleep(_PAUSE_SECONDS)
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
        if answer.status_code != 200:
            kind = f"{answer.status_code}"
            self.ledger.refusals[kind] = self.ledger.refusals.get(kind, 0) + 1
            raise Broken(kind)
        text = _streamed(content) if body["stream"] else str(json.loads(content)["choices"][0]["message"]["content"])
        given = answer.headers
        return Acknowledged(case, given["x-daybook-run"], given["x-daybook-session"], text)

    def _over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.until


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
