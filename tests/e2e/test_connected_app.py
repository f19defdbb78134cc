"""An app that knows only the address of /mcp, against a real server: the official client discovers the endpoints,
registers, sends a person to sign in and consent, calls tools, refreshes its tokens and is disconnected."""

import asyncio
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.callback_listener import CallbackListener, listening
from tests.e2e.conftest import migrated_storage
from tests.e2e.http_user import HttpUser
from tests.e2e.running import RunningDaybook, running_daybook
from tests.lazy_module import LazyModule

mcp: Any = LazyModule("mcp")
auth: Any = LazyModule("mcp.client.auth")
shared: Any = LazyModule("mcp.shared.auth")
streamable_http: Any = LazyModule("mcp.client.streamable_http")

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]


@pytest.fixture(scope="module")
def daybook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaybook]:
    """A running Daybook."""
    home = tmp_path_factory.mktemp("oauth") / "home"
    with migrated_storage(home) as storage, running_daybook(home, storage) as running:
        yield running


@pytest.fixture
def listener() -> Iterator[CallbackListener]:
    with listening() as server:
        yield server


class Person(HttpUser):
    """A person whose browser an app opens at the consent page."""

    def __init__(self, daybook: RunningDaybook) -> None:
        super().__init__(daybook.address)
        self.name, self.password = daybook.admin_user, daybook.admin_password
        self.rights = "write"

    def decide(self, address: str) -> None:
        """Open the address, sign in if necessary, and connect."""
        url, page = self.open(address)
        if "/login/" in url:
            url, page = self.send(url, page, username=self.name, password=self.password, next=next_of(page))
        assert "Connect an app" in page
        self.send(url, page, decision="connect", book="main", rights=self.rights)

    def send(self, url: str, page: str, **fields: str) -> tuple[str, str]:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, "the form has no CSRF token"
        return self.open(url, urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode())

    def open(self, url: str, data: bytes | None = None) -> tuple[str, str]:
        request = urllib.request.Request(url, data=data, headers={"Referer": self.address})
        with self._opener.open(request, timeout=30) as response:
            return response.url, response.read().decode()


def next_of(page: str) -> str:
    field = re.search(r'name="next" value="([^"]+)"', page)
    assert field, "the sign-in form has no `next` field"
    return field[1].replace("&amp;", "&")


class Storage:
    """The official client's storage for tokens."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Connector:
    """An app that uses the official client and opens the person's browser when necessary."""

    def __init__(self, daybook: RunningDaybook, person: Person, listener: CallbackListener) -> None:
        self.address, self.person, self.listener = f"{daybook.address}mcp", person, listener
        self.storage, self.consents = Storage(), 0

    def provider(self) -> Any:
        metadata = shared.OAuthClientMetadata(
            client_name="Official client",
            redirect_uris=[self.listener.address],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )
        return auth.OAuthClientProvider(self.address, metadata, self.storage, self.open_browser, self.wait_for_callback)

    async def open_browser(self, address: str) -> None:
        self.consents += 1
        await asyncio.to_thread(self.person.decide, address)

    async def wait_for_callback(self) -> Any:
        callback = await asyncio.to_thread(self.listener.callbacks.get, True, 10)
        return auth.AuthorizationCodeResult(code=callback["code"], state=callback["state"], iss=callback["iss"])

    async def call(self, tool: str, **arguments: Any) -> Any:
        async with openai.DefaultAsyncHttpxClient(auth=self.provider()) as http_client:
            transport = streamable_http.streamable_http_client(self.address, http_client=http_client)
            async with mcp.Client(transport) as client:
                return await client.call_tool(tool, arguments)


async def test_the_official_client_connects_with_only_the_address(
    daybook: RunningDaybook, listener: CallbackListener
) -> None:
    person = Person(daybook)
    app = Connector(daybook, person, listener)
    added = await app.call("add_memory", content="Likes jazz in the evening.", target="user")
    assert added.is_error is False
    found = await app.call("search_memories", query="music in the evening")
    assert [memory["content"] for memory in found.structured_content["memories"]] == ["Likes jazz in the evening."]
    large = await app.call("add_memory", content="x" * 100_000)
    assert large.structured_content["error"] == "too_large"
    assert app.consents == 1

    first = app.storage.tokens
    app.storage.tokens = first.model_copy(update={"access_token": "dbo_lost", "expires_in": 3600})
    app.storage.tokens = await refresh(app)
    assert app.storage.tokens.refresh_token != first.refresh_token
    assert (await app.call("get_memories")).is_error is False
    assert app.consents == 1

    assert "Official client" in person.page("/account/")
    status, _ = await revoke(daybook, app)
    assert status == 200
    assert "Official client" not in person.page("/account/")
    assert "No apps yet." in person.page("/account/")
    again = await app.call("get_memories")  # the client asks the person again
    assert (again.is_error, app.consents) == (False, 2)


async def test_an_app_with_read_access_asks_for_write_access_when_needed(
    daybook: RunningDaybook, listener: CallbackListener
) -> None:
    person = Person(daybook)
    person.rights = "read"
    app = Connector(daybook, person, listener)
    assert (await app.call("get_memories")).is_error is False
    assert app.storage.tokens.scope == "memory:read"
    person.rights = "write"
    assert (await app.call("add_memory", content="Plays chess.", target="user")).is_error is False
    assert app.consents == 2
    assert app.storage.tokens.scope == "memory:read memory:write"


async def refresh(app: Connector) -> Any:
    """Refresh the tokens as the official client does when they expire; return the new ones."""
    form = {
        "grant_type": "refresh_token",
        "refresh_token": app.storage.tokens.refresh_token,
        "client_id": app.storage.client.client_id,
        "resource": app.address,
    }
    async with openai.DefaultAsyncHttpxClient() as client:
        answer = await client.post(app.address.replace("/mcp", "/oauth/token"), data=form)
    assert answer.status_code == 200, answer.text
    return shared.OAuthToken.model_validate(answer.json())


async def revoke(daybook: RunningDaybook, app: Connector) -> tuple[int, str]:
    form = {"token": app.storage.tokens.refresh_token, "client_id": app.storage.client.client_id}
    async with openai.DefaultAsyncHttpxClient() as client:
        answer = await client.post(f"{daybook.address}oauth/revoke", data=form)
    return answer.status_code, answer.text


def test_an_unauthenticated_request_is_told_where_to_sign_in(daybook: RunningDaybook) -> None:
    for path, body, status in (("mcp", b"{}", 401), ("oauth/token", b"x" * 70_000, 413)):
        request = urllib.request.Request(f"{daybook.address}{path}", data=body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        with refused.value as answer:
            assert (answer.code, answer.headers["Content-Type"]) == (status, "application/json")
            if status == 401:
                where = f"{daybook.address}.well-known/oauth-protected-resource/mcp"
                assert f'resource_metadata="{where}"' in answer.headers["WWW-Authenticate"]
    assert daybook.get("/.well-known/anything")[0] == 404
    assert daybook.get("/.well-known/anything")[1]["error"]["code"] == "not_found"


def test_no_token_is_in_the_log(daybook: RunningDaybook) -> None:
    assert not re.search(r"db[or]_[A-Za-z0-9_-]{20}", daybook.errors() + "\n".join(daybook.lines()))
