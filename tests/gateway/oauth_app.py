"""An OAuth client app: it registers, sends a person to the consent page, and requests tokens."""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import AsyncClient

from gateway.oauth.registration import client_register
from memories.database.access import in_thread
from memories.models import Owner
from tests.gateway.mcp import rpc
from tests.pages import client_of

RESOURCE = "http://testserver/mcp"
CALLBACK = "https://claude.example/api/mcp/auth_callback"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


class App:
    """A registered client and the tokens it was last given."""

    def __init__(self) -> None:
        self.client = AsyncClient()
        self.redirects: tuple[str, ...] = ()
        self.client_id = ""
        self.tokens: dict[str, Any] = {}

    async def registered(self, *redirects: str, name: str = "Claude") -> "App":
        self.redirects = redirects or (CALLBACK,)
        self.client_id = (await in_thread(client_register, name, self.redirects)).client_id
        return self

    async def register(self, **metadata: Any) -> tuple[int, Any]:
        response = await self.client.post("/oauth/register", metadata, content_type="application/json")
        return response.status_code, response.json()

    def address(self, **changed: str | None) -> str:
        """Return the URL of the consent page. A parameter that is None is left out."""
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirects[0],
            "scope": "memory:read memory:write",
            "state": "s1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        }
        parameters |= changed
        return f"/oauth/authorize?{urlencode({name: value for name, value in parameters.items() if value is not None})}"

    async def consent(self, owner: Owner, *, book: str = "main", rights: str = "write", **changed: str | None) -> Any:
        """Return the response to a person's decision."""
        chosen = {"decision": "connect", "book": book, "rights": rights}
        return await in_thread(lambda: client_of(owner).post(self.address(**changed), chosen))

    async def token(self, **form: str) -> tuple[int, Any]:
        response = await self.form("/oauth/token", form)
        return response.status_code, response.json()

    async def form(self, path: str, form: dict[str, str]) -> Any:
        body = urlencode({"client_id": self.client_id, **form})
        return await self.client.post(path, body, content_type="application/x-www-form-urlencoded")

    async def exchange(self, code: str, **form: str) -> tuple[int, Any]:
        given = {"redirect_uri": self.redirects[0], "code_verifier": VERIFIER, "resource": RESOURCE, **form}
        return await self.token(grant_type="authorization_code", code=code, **given)

    async def refresh(self, refresh_token: str = "", **form: str) -> tuple[int, Any]:
        return await self.token(
            grant_type="refresh_token", refresh_token=refresh_token or self.tokens["refresh_token"], **form
        )

    async def code(self, owner: Owner, **consent: Any) -> str:
        """Return the authorization code that a person's consent gives."""
        answer = await self.consent(owner, **consent)
        assert answer.status_code == 302, answer.content
        return callback_parameters(answer)["code"]

    async def connect(self, owner: Owner, **consent: Any) -> "App":
        """Go through the whole flow up to the tokens."""
        status, self.tokens = await self.exchange(await self.code(owner, **consent))
        assert status == 200, self.tokens
        return self

    async def revoke(self, token: str) -> int:
        return int((await self.form("/oauth/revoke", {"token": token})).status_code)

    async def call(self, tool: str = "search_memories", **arguments: Any) -> Any:
        """Call a tool at /mcp and return the response."""
        return await self.post("/mcp", rpc("tools/call", name=tool, arguments=arguments or {"query": "tea"}))

    async def post(self, path: str, body: Any, **headers: str) -> Any:
        if self.tokens:
            headers["authorization"] = f"Bearer {self.tokens['access_token']}"
        return await self.client.post(path, json.dumps(body), content_type="application/json", headers=headers)


def callback_parameters(response: Any) -> dict[str, str]:
    """Return the query parameters with which a consent response redirects to the app."""
    return dict(parse_qsl(urlsplit(response.headers["Location"]).query))
