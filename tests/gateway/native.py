"""Send turns to the native API."""

from dataclasses import dataclass
from typing import Any

import pytest

from gateway.models import Session
from tests.conftest import Api


def turns_path(session: Session) -> str:
    return f"/api/sessions/{session.pk}/turns"


@dataclass(frozen=True, slots=True)
class Turns:
    """Sends the turns of a session and returns (status, JSON)."""

    api: Api
    session: Session

    def path(self, turn: Any = None, rest: str = "") -> str:
        """Return the path of the turns, or of one turn."""
        return turns_path(self.session) + (f"/{turn['id']}{rest}" if turn else "")

    async def send(self, content: Any = "Hi", **body: Any) -> tuple[int, Any]:
        return await self.api.post(self.path(), {"content": content, **body})

    async def answer(self, turn: Any, *texts: str, **body: Any) -> tuple[int, Any]:
        """Send the results of the first calls that a turn waits for."""
        return await self.api.post(self.path(turn, "/results"), {"results": results(turn, *texts), **body})


def results(turn: Any, *texts: str) -> list[dict[str, str]]:
    return [
        {"tool_call_id": call["id"], "content": text} for call, text in zip(turn["tool_calls"], texts, strict=False)
    ]


@pytest.fixture
def turns(alice_api: Api, session: Session) -> Turns:
    return Turns(alice_api, session)
