"""What each kind of caller gets of Alice's rows from every API operation, page and MCP tool.

A new route without a row here fails. The letters mean: `i` gets in, `u` 401, `f` 403, `n` 404, `s` is redirected to the
sign-in page."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.test import AsyncClient, Client
from django.urls import get_resolver
from pytest_django.plugin import DjangoDbBlocker

from config.api import api, v1
from gateway.mcp import tools
from gateway.mcp.api import READ_METHODS, SINGLE_PAGE_LISTS
from gateway.models import Agent, Message, Run, Session
from gateway.routing import websocket_routes
from gateway.webhooks.services import webhook_create
from memories.artifacts.store import artifact_put
from memories.audit.auditors import AUDITORS, auditors_make
from memories.audit.log import SYSTEM
from memories.models import ChangeSet, Erasure, Owner, Revision, WriteOrigin
from memories.services import Source
from reviews.models import ConsolidationRun, ReviewRun
from tests.factories import agent_make, app_make, key_make, login_make, memory_make, owner_make, session_make
from tests.shared_rows import shared_rows

SECRET = "Likes tea."
PICTURE = [{"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}}]
CALLERS = (
    "anonymous",
    "other user",
    "other key",
    "limited key",
    "read-only key",
    "trusted key for an end user",
    "staff",
    "auditor",
    "owner's key",
)
# Reading and writing one of Alice's rows; lists, of which everybody has their own.
READ_ROW, WRITE_ROW, LIST = "unnninnni", "unnnfnnni", "uiiiiiiii"
CREATE = "uiinfiiii"  # the limited key is limited to another agent or book

API: dict[str, tuple[str, Any]] = {
    "POST /api/sessions": (CREATE, {"agent": "assistant"}),
    "GET /api/sessions": (LIST, None),
    "GET /api/sessions/{session_id}": (READ_ROW, None),
    "PATCH /api/sessions/{session_id}": (WRITE_ROW, {"title": "Milk"}),
    "DELETE /api/sessions/{session_id}": (WRITE_ROW, None),
    "POST /api/sessions/{session_id}/restore": ("unnnfnnnn", {}),  # not deleted
    "GET /api/sessions/{session_id}/export": (READ_ROW, None),
    "POST /api/sessions/{session_id}/end": (WRITE_ROW, {}),
    "GET /api/sessions/{session_id}/messages": (READ_ROW, None),
    "POST /api/sessions/{session_id}/turns": (WRITE_ROW, {"content": "/memory help"}),
    "GET /api/sessions/{session_id}/turns/{turn_id}": (READ_ROW, None),
    "GET /api/sessions/{session_id}/turns/{turn_id}/events": (READ_ROW, None),
    "POST /api/sessions/{session_id}/turns/{turn_id}/stop": (WRITE_ROW, {}),
    "POST /api/sessions/{session_id}/turns/{turn_id}/choose": (WRITE_ROW, {}),
    "POST /api/sessions/{session_id}/turns/{turn_id}/results": (
        WRITE_ROW,
        {"results": [{"tool_call_id": "call_1", "content": "42"}]},
    ),
    "POST /api/sessions/{session_id}/review": (WRITE_ROW, {}),
    "POST /api/sessions/{session_id}/forget": (WRITE_ROW, {}),
    "GET /api/keys": ("uiifffiii", None),
    "POST /api/keys": ("uiifffiii", {"name": "laptop"}),
    "GET /api/keys/{key_id}": ("unnfffnni", None),
    "PATCH /api/keys/{key_id}": ("unnfffnni", {"name": "desk"}),
    "POST /api/keys/{key_id}/rotate": ("unnfffnni", {}),
    "DELETE /api/keys/{key_id}": ("unnfffnni", None),
    "GET /api/webhooks": ("uiifiiiii", None),
    "POST /api/webhooks": ("uiiffiiii", {"url": "https://93.184.216.34/hook"}),
    "DELETE /api/webhooks/{webhook_id}": ("unnffnnni", None),
    "GET /api/usage": (LIST, None),
    "GET /api/audit": ("ufffffiff", None),
    "POST /api/memories": (CREATE, {"content": "Likes milk.", "book": "main"}),
    "POST /api/memories/ingest": (CREATE, {"messages": [{"role": "user", "content": "I like gin."}], "book": "main"}),
    "GET /api/memories": (LIST, None),
    "POST /api/memories/search": ("uiiniiiii", {"query": "tea", "book": "main"}),
    "POST /api/memories/bulk": (CREATE, {"ids": ["{memory_id}"], "action": "pin", "book": "main"}),
    "GET /api/memories/health": (LIST, None),
    "GET /api/memories/{memory_id}": (READ_ROW, None),
    "PATCH /api/memories/{memory_id}": (WRITE_ROW, {"content": "Likes rum."}),
    "DELETE /api/memories/{memory_id}": (WRITE_ROW, None),
    "GET /api/memories/{memory_id}/revisions": (READ_ROW, None),
    "POST /api/memories/{memory_id}/restore": (WRITE_ROW, {"revision": "{revision}"}),
    "POST /api/changes/{change_set}/undo": (WRITE_ROW, {}),
    "GET /api/notifications": (LIST, None),
    "GET /api/export": ("uiifiiiii", None),
    "POST /api/import?book=main": (CREATE, {"content": "Likes gin."}),
    "DELETE /api/account/memories": ("uiiffiiii", None),
    "GET /api/books/{book:name}/artifacts": ("uiiniiiii", None),
    "GET /api/books/{book:name}/artifacts/{path:path}": (READ_ROW, None),
    "PUT /api/books/{book:name}/artifacts/{path:path}": (CREATE, {"content": "# Milk"}),
    "GET /api/proposals": (LIST, None),
    "GET /api/proposals/{proposal_id}": (READ_ROW, None),
    "POST /api/proposals/{proposal_id}/approve": (WRITE_ROW, {}),
    "POST /api/proposals/{proposal_id}/reject": (WRITE_ROW, {}),
    "GET /api/reviews": (LIST, None),
    "GET /api/reviews/{review_id}": (READ_ROW, None),
    "POST /api/reviews/{review_id}/undo": (WRITE_ROW, {}),
    "POST /api/reviews/{review_id}/approve": (WRITE_ROW, {}),
    "POST /api/reviews/{review_id}/reject": (WRITE_ROW, {}),
    "POST /api/consolidations": (CREATE, {"book": "main"}),
    "GET /api/consolidations": (LIST, None),
    "GET /api/consolidations/{run_id}": (READ_ROW, None),
    "POST /api/consolidations/{run_id}/stop": (WRITE_ROW, {}),
    # /v1 accepts only keys, no logins.
    "GET /v1/models": ("uuiiiiuui", None),
    "GET /v1/models/{path:name}": ("uuiniiuui", None),
    "POST /v1/chat/completions": (
        "uuinfiuui",
        {"model": "assistant", "messages": [{"role": "user", "content": "/memory help"}]},
    ),
    "POST /v1/messages": (
        "uuinfiuui",
        {"model": "assistant", "messages": [{"role": "user", "content": "/memory help"}]},
    ),
    "POST /v1/messages/count_tokens": (
        "uuiniiuui",
        {"model": "assistant", "messages": [{"role": "user", "content": "hi"}]},
    ),
    "POST /v1/responses": ("uuinfiuui", {"model": "assistant", "input": "/memory help"}),
    "POST /v1/responses/input_tokens": ("uuiniiuui", {"model": "assistant", "input": "hi"}),
    # Not offered, so refused for every key.
    "POST /v1/responses/compact": ("uunnnnuun", {}),
    "GET /v1/responses/{response_id}": ("uunninuui", None),
    "DELETE /v1/responses/{response_id}": ("uunnfnuui", None),
    "GET /v1/responses/{response_id}/input_items": ("uunninuui", None),
    "POST /v1/responses/{response_id}/cancel": ("uunnfnuui", {}),
    "POST /v1/completions": ("uuinfiuui", {"model": "assistant", "prompt": "def "}),
    # No embedding model is configured; those who may use the agent are told so.
    "POST /v1/embeddings": ("uuinfiuui", {"model": "assistant", "input": "tea"}),
}
PAGE_CALLERS = ("anonymous", "owner's key", "other user", "staff", "auditor", "owner")
OWN_PAGE, OWN_FORM, OWN_FRAGMENT, ALICES_PAGE, ALICES_FRAGMENT = "ssiiii", "ssiiii", "uuiiii", "ssnnni", "uunnni"
PAGES: dict[str, tuple[str, str, str]] = {
    "": (OWN_PAGE, "GET", "/"),
    "manifest.webmanifest": ("iiiiii", "GET", "/manifest.webmanifest"),
    "new/": (OWN_PAGE, "GET", "/new/"),
    "c/<uuid:session_id>/": (ALICES_PAGE, "GET", "/c/{session_id}/"),
    "fragments/sessions/": (OWN_FRAGMENT, "GET", "/fragments/sessions/"),
    "c/<uuid:session_id>/attached/<int:seq>/<int:index>/": (ALICES_FRAGMENT, "GET", "/c/{session_id}/attached/1/0/"),
    "fragments/turn/<uuid:session_id>/<uuid:run_id>/": (
        ALICES_FRAGMENT,
        "GET",
        "/fragments/turn/{session_id}/{turn_id}/",
    ),
    "fragments/turns/<uuid:session_id>/": (ALICES_FRAGMENT, "GET", "/fragments/turns/{session_id}/"),
    "fragments/review/<uuid:review_id>/": (ALICES_FRAGMENT, "GET", "/fragments/review/{review_id}/"),
    "memories/": (OWN_PAGE, "GET", "/memories/"),
    "fragments/memories/": (OWN_FRAGMENT, "GET", "/fragments/memories/"),
    "fragments/memories/summary/": (OWN_FRAGMENT, "GET", "/fragments/memories/summary/"),
    "fragments/memories/<int:number>/": (ALICES_FRAGMENT, "GET", "/fragments/memories/{memory_id}/"),
    "fragments/memories/<int:number>/edit/": (ALICES_FRAGMENT, "GET", "/fragments/memories/{memory_id}/edit/"),
    "fragments/memories/<int:number>/history/": (ALICES_FRAGMENT, "GET", "/fragments/memories/{memory_id}/history/"),
    "reviews/": (OWN_PAGE, "GET", "/reviews/"),
    "reviews/<uuid:review_id>/cancel/": (ALICES_FRAGMENT, "POST", "/reviews/{review_id}/cancel/"),
    "fragments/reviews/": (OWN_FRAGMENT, "GET", "/fragments/reviews/"),
    "fragments/consolidation/": (OWN_FRAGMENT, "GET", "/fragments/consolidation/"),
    "fragments/document/": (ALICES_FRAGMENT, "GET", "/fragments/document/?book=main&path=MEMORY.md"),
    "account/": (OWN_PAGE, "GET", "/account/"),
    "account/password/": (OWN_FORM, "POST", "/account/password/"),
    "account/time-zone/": (OWN_FORM, "POST", "/account/time-zone/"),
    "account/keys/": (OWN_FORM, "POST", "/account/keys/"),
    "account/keys/<uuid:key_id>/revoke/": (ALICES_PAGE, "POST", "/account/keys/{key_id}/revoke/"),
    "account/delete/": (OWN_FORM, "POST", "/account/delete/"),
    # Only numbers, for anyone who has the random address, since the login is deleted by then.
    "account/deleting/<uuid:erasure_id>/": ("iiiiii", "GET", "/account/deleting/{erasure_id}/"),
    "login/": ("iiiiii", "GET", "/login/"),
    "account/logins/end/": (OWN_FORM, "POST", "/account/logins/end/"),
    "account/logins/<uuid:login_id>/end/": (ALICES_PAGE, "POST", "/account/logins/{login_id}/end/"),
    # Without a provider or a valid token; the rest is in test_openid.py, test_invitations.py, test_password_reset.py.
    "login/sso/": ("nnnnnn", "GET", "/login/sso/"),
    "login/sso/callback/": ("nnnnnn", "GET", "/login/sso/callback/"),
    "invitation/<str:token>/": ("nnnnnn", "GET", "/invitation/x/"),
    "password/forgotten/": ("iiiiii", "GET", "/password/forgotten/"),
    "password/forgotten/<uidb64>/<token>/": ("iiiiii", "GET", "/password/forgotten/MQ/x/"),
    "admin/password_change/": ("iiiiii", "GET", "/admin/password_change/"),  # redirects to the account page
    "logout/": ("ssssss", "POST", "/logout/"),
    "admin/login/": ("ssfssf", "GET", "/admin/login/"),
    "^admin/r/": ("nnnnnn", "GET", "/admin/r/1/1/"),
    "admin/": ("sssiis", "GET", "/admin/"),  # page by page: tests/memories/test_admin_roles.py
    "account/apps/<uuid:key_id>/disconnect/": (ALICES_PAGE, "POST", "/account/apps/{app}/disconnect/"),
    # Requests of apps before anyone has signed in. Their tokens are valid only for /mcp: test_oauth_flow.py.
    ".well-known/oauth-protected-resource": ("iiiiii", "GET", "/.well-known/oauth-protected-resource"),
    ".well-known/oauth-protected-resource/mcp": ("iiiiii", "GET", "/.well-known/oauth-protected-resource/mcp"),
    ".well-known/oauth-authorization-server": ("iiiiii", "GET", "/.well-known/oauth-authorization-server"),
    "oauth/register": ("iiiiii", "POST", "/oauth/register"),
    "oauth/authorize": (OWN_PAGE, "GET", "/oauth/authorize"),
    "oauth/token": ("iiiiii", "POST", "/oauth/token"),
    "oauth/revoke": ("iiiiii", "POST", "/oauth/revoke"),
    "healthz": ("iiiiii", "GET", "/healthz"),
    "readyz": ("iiiiii", "GET", "/readyz"),
    "metrics": ("nnnnnn", "GET", "/metrics"),  # off unless configured
}
INCLUDED = {"api/", "v1/", "mcp"}  # their operations have rows above and below
TOOL_CALLERS = ("other key", "limited key", "read-only key", "trusted key for an end user", "owner's key")
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "add_memory": ("infii", {"content": "Likes cocoa."}),
    "update_memory": ("nnfni", {"id": "{memory_id}", "content": "Likes cocoa."}),
    "delete_memory": ("nnfni", {"id": "{memory_id}"}),
    "search_memories": ("iniii", {"query": "tea"}),
    "get_memories": ("iniii", {}),
    "read": ("nnini", {"path": "memory://root/MEMORY.md"}),
}
# MCP's other methods: method → letters and parameters.
MCP_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools/list": ("iiiii", {}),
    "resources/list": ("iniii", {}),
    "resources/templates/list": ("iiiii", {}),
    "resources/read": ("nnini", {"uri": "memory://memories/{memory_id}"}),
    "resources/read: document": ("nnini", {"uri": "memory://root/MEMORY.md"}),
    "prompts/list": ("iiiii", {}),
    "prompts/get": ("iniii", {"name": "review_my_memory"}),
}
# Each websocket and the file that tests its callers.
WEBSOCKETS = {"ws/notifications/": "tests/gateway/test_websocket.py"}


class World:
    """Alice's rows by name, and a client for each caller."""

    def __init__(self, alice: Owner) -> None:
        agent_make(), agent_make("coder", book="code")
        charlie, staff, auditor = (
            owner_make("charlie"),
            owner_make("staff", is_staff=True, is_superuser=True),
            owner_make("auditor", is_staff=True),
        )
        auditors_make()
        User.objects.get(pk=auditor.user_id).groups.add(Group.objects.get(name=AUDITORS))
        self.rows = rows_of(alice)
        _, own = key_make(alice)
        self.clients: dict[str, AsyncClient] = {
            "anonymous": AsyncClient(),
            "other user": logged_in(charlie),
            "other key": KeyClient(key_make(charlie)[1]),
            "limited key": KeyClient(key_make(alice, agents=["coder"])[1]),
            "read-only key": KeyClient(key_make(alice, read_only=True)[1]),
            "trusted key for an end user": KeyClient(key_make(alice, trusted=True)[1], "u1"),
            "staff": logged_in(staff),
            "auditor": logged_in(auditor),
            "owner's key": KeyClient(own),
            "owner": logged_in(alice),
        }
        self._cookies = {name: client.cookies.copy() for name, client in self.clients.items()}

    def reset_cookies(self) -> None:
        """Restore each client's cookies, since a test may have signed it out."""
        for name, client in self.clients.items():
            client.cookies = self._cookies[name].copy()

    def fill(self, value: Any) -> Any:
        """Replace the placeholders in a value by the ids of Alice's rows."""
        text = json.dumps(value)
        for name, key in self.rows.items():
            text = text.replace(f"{{{name}}}", key)
        return json.loads(text)


def rows_of(alice: Owner) -> dict[str, str]:
    memory = memory_make(alice, SECRET)
    session = session_make(alice, Agent.objects.get(name="assistant"), title=SECRET)
    run = Run.objects.create(
        owner=alice, session=session, turn=1, state="completed", request_id="r", text=SECRET, responses={"0": {}}
    )
    Session.objects.filter(pk=session.pk).update(message_seq=2)
    for seq, role in ((1, "user"), (2, "assistant")):
        Message.objects.create(owner=alice, session=session, run=run, seq=seq, role=role, text=SECRET, parts=PICTURE)
    artifact_put(memory.book, "MEMORY.md", f"# {SECRET}", Source(actor="user:1", origin=WriteOrigin.USER))
    change_set = ChangeSet.objects.filter(revisions__memory=memory).get()
    shared: dict[str, Any] = {"owner": alice, "book": memory.book, "book_epoch": 1, "trigger": "request"}
    review = ReviewRun.objects.create(
        **shared, session=session, state="saved", first_seq=1, last_seq=2, agent_name="assistant",
        change_set=change_set.pk, writes=[{"action": "add", "after": SECRET, "state": "applied", "index": 0,
        "memory_id": str(memory.number)}, {"action": "add", "after": SECRET, "state": "rejected", "index": 1}],
        proposals=1,
    )  # fmt: skip
    ChangeSet.objects.filter(pk=change_set.pk).update(kind=ChangeSet.Kind.REVIEW, review_id=review.pk)
    consolidation = ConsolidationRun.objects.create(**shared, state="completed", phase="done")
    return {
        "memory_id": str(memory.number),
        "revision": str(Revision.objects.get(memory=memory).pk),
        "session_id": str(session.pk),
        "turn_id": str(run.pk),
        "response_id": f"resp_{run.pk}",
        "review_id": str(review.pk),
        "proposal_id": f"{review.pk}-1",
        "run_id": str(consolidation.pk),
        "change_set": str(change_set.pk),
        "book:name": memory.book.name,
        "path:path": "MEMORY.md",
        "path:name": "assistant",
        "key_id": str(key_make(alice)[0].pk),
        "app": str(app_make(alice).pk),
        "login_id": str(login_make(alice).pk),
        "webhook_id": str(webhook_create(alice.pk, url="https://93.184.216.34/", kinds=[], by=SYSTEM)[0].pk),
        "erasure_id": str(Erasure.objects.create(owner_id=alice.pk, scope="account").pk),
    }


class KeyClient(AsyncClient):
    """A client that sends a key, and optionally an end user, with every request."""

    def __init__(self, plain: str, end_user: str = "") -> None:
        super().__init__()
        self.default_headers = {"authorization": f"Bearer {plain}"} | ({"x-daybook-user": end_user} if end_user else {})

    async def generic(self, *args: Any, headers: dict[str, str] | None = None, **kwargs: Any) -> Any:
        return await super().generic(*args, headers={**self.default_headers, **(headers or {})}, **kwargs)


def logged_in(owner: Owner) -> AsyncClient:
    client = AsyncClient()
    client.force_login(User.objects.get(pk=owner.user_id))
    return client


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with shared_rows(django_db_blocker, lambda: World(owner_make("alice"))) as world:
        yield world


@pytest.fixture
def world(shared_world: World, db: None) -> World:
    shared_world.reset_cookies()
    return shared_world


async def request(client: AsyncClient, method: str, path: str, body: Any) -> tuple[str, str]:
    """Send a request; return the letter for the response and its text."""
    options: dict[str, Any] = {}
    if body is not None:
        kind = "application/x-ndjson" if path.startswith("/api/import") else "application/json"
        options = {"data": json.dumps(body), "content_type": kind}
    response: Any = await getattr(client, method.lower())(path, **options)
    pieces = [piece async for piece in response] if response.streaming else [response.content]
    text = b"".join(pieces).decode()
    return letter_of(response, path), text


def letter_of(response: Any, path: str) -> str:
    letters = {401: "u", 403: "f", 404: "n"}
    if path.startswith("/fragments/review/") and response.status_code == 204:
        return "n"  # requested by a notice: an error would be logged in the browser's console
    if response.status_code == 302 and "login/" in response.headers["Location"]:
        return "s"
    # Other refusals (an empty form, a disabled feature) come from the view, so the caller got in.
    got_in = response.status_code in {200, 201, 202, 204, 302, 400, 409, 415, 422} or path in {"/readyz"}
    return letters.get(response.status_code, "i" if got_in else str(response.status_code))


@pytest.mark.every_case
@pytest.mark.django_db
@pytest.mark.parametrize("name", API)
async def test_each_caller_of_the_apis_gets_only_their_own_rows(world: World, name: str) -> None:
    letters, body = API[name]
    method, path = world.fill(name).split()
    seen = {}
    for caller in CALLERS:  # the owner, whose requests change things, comes last
        seen[caller], text = await request(world.clients[caller], method, path, world.fill(body))
        if caller not in {"owner's key", "read-only key"}:
            assert SECRET not in text, caller
    assert seen == dict(zip(CALLERS, letters, strict=True))


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_each_caller_of_the_pages_gets_only_their_own_rows(world: World, name: str) -> None:
    letters, method, path = PAGES[name]
    seen = {}
    for caller in PAGE_CALLERS:
        client = Client()  # pages are synchronous
        client.cookies = world.clients[caller].cookies
        default_headers = getattr(world.clients[caller], "default_headers", {})
        response: Any = getattr(client, method.lower())(world.fill(path), headers=default_headers)
        text = b"".join(response).decode("latin1")
        seen[caller] = letter_of(response, path)
        assert caller == "owner" or SECRET not in text, caller
    assert seen == dict(zip(PAGE_CALLERS, letters, strict=True))


async def mcp_answers(world: World, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a message to /mcp, which accepts only keys. Return the answer to each of TOOL_CALLERS."""
    message = {"jsonrpc": "2.0", "id": str(uuid4()), "method": method, "params": world.fill(params)}
    for caller in ("anonymous", "other user", "staff", "auditor"):
        assert (await request(world.clients[caller], "POST", "/mcp", message))[0] == "u"
    answers = {}
    for caller in TOOL_CALLERS:
        response = await world.clients[caller].post(
            "/mcp", data=json.dumps(message), content_type="application/json", headers={"x-daybook-book": "main"}
        )
        answers[caller] = response.json()
        if caller not in {"owner's key", "read-only key"}:
            assert SECRET not in response.content.decode(), caller
    return answers


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("name", TOOLS)
async def test_each_caller_of_the_tools_gets_only_their_own_rows(world: World, name: str) -> None:
    letters, arguments = TOOLS[name]
    answers = await mcp_answers(world, "tools/call", {"name": name, "arguments": arguments})
    results = [answer["result"]["structuredContent"] for answer in answers.values()]
    refusals = {"not_found": "n", "forbidden": "f"}
    seen = ["i" if result["ok"] else refusals.get(result["error"], result["error"]) for result in results]
    assert dict(zip(answers, seen, strict=True)) == dict(zip(TOOL_CALLERS, letters, strict=True))


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("name", MCP_METHODS)
async def test_each_caller_of_mcp_gets_only_their_own_rows(world: World, name: str) -> None:
    letters, params = MCP_METHODS[name]
    answers = await mcp_answers(world, name.partition(": ")[0], params)
    errors = [answer.get("error") for answer in answers.values()]
    seen = [{-32002: "n", -32602: "n"}.get(error["code"], str(error["code"])) if error else "i" for error in errors]
    assert dict(zip(answers, seen, strict=True)) == dict(zip(TOOL_CALLERS, letters, strict=True))


def operations() -> set[str]:
    """Return `METHOD /path` of every operation of /api and /v1."""
    return {
        f"{method} /{assembled.urls_namespace}{path}"
        for assembled in (api, v1)
        for _, router in assembled._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }


@pytest.mark.parametrize(
    ("existing", "table"),
    [
        (operations, {name.partition("?")[0] for name in API}),
        (lambda: {str(found.pattern) for found in get_resolver().url_patterns}, set(PAGES) | INCLUDED),
        (lambda: set(tools.NAMES), set(TOOLS)),
        (lambda: {*READ_METHODS, *SINGLE_PAGE_LISTS}, {name.partition(": ")[0] for name in MCP_METHODS}),
        (lambda: {str(route.pattern) for route in websocket_routes}, set(WEBSOCKETS)),
    ],
    ids=["operations", "pages", "tools", "methods of MCP", "websockets"],
)
def test_every_operation_page_and_tool_has_a_row_in_the_matrix(
    existing: Callable[[], set[str]], table: set[str]
) -> None:
    missing, gone = sorted(existing() - table), sorted(table - existing())
    assert not missing, f"Add rows to {__name__} for: {', '.join(missing)}"
    assert not gone, f"{__name__} has rows for what no longer exists: {', '.join(gone)}"
