"""Keys limited to agents or books: in every API they reach only these agents, their sessions and their books"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from gateway.keys import api_key_create, key_limits
from gateway.models import Agent, ApiKey, Session, UsageDay
from memories.caller import KeyLimits
from memories.database.access import in_thread
from memories.ids import uuid7
from memories.models import ChangeSet, Memory, Notification, Owner
from reviews.models import ConsolidationRun
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make, owner_make, review_make, session_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db


# ---- tests with rows of their own, before those that share theirs until the module ends -----------------------------


async def test_a_key_shared_by_several_people_loses_memory_at_once(
    alice: Owner, agent: Agent, model: ScriptedModel
) -> None:
    model.script("Hello.", "Hello.", "Hello.")
    _, plain = await in_thread(key_make, alice)
    api = Api(plain)
    await in_thread(memory_make, alice, "Likes tea.")
    await ask(api, "Hi", headers={"x_openwebui_user_id": "u1"})
    assert "Likes tea." in str(model.calls[0].messages)
    await ask(api, "Hi", headers={"x_openwebui_user_id": "u2"})
    u1 = {"x_openwebui_user_id": "u1"}
    for method, path, body in (
        ("GET", "/api/memories", None),
        ("GET", "/api/export", None),
        ("POST", "/api/memories/search", {"query": "tea"}),
        ("POST", "/api/memories", {"content": "Likes rum."}),
    ):
        status, answer = await api.call(method, path, body, **u1)
        assert (status, "tea" in str(answer)) == (403, False), path
    call = {"name": "get_memories", "arguments": {}}
    _, answer = await api.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, **u1)
    assert (answer["result"]["isError"], "Likes tea." in json.dumps(answer)) == (True, False)
    await ask(api, "Hi again", headers=u1)
    assert "Likes tea." not in str(model.calls[-1].messages)


def limits_of(alice: Owner, **rights: Any) -> KeyLimits:
    return key_limits(key_make(alice, **rights)[0])


def test_a_key_with_books_may_use_the_agents_of_these_books(alice: Owner) -> None:
    for name, book in (("assistant", "main"), ("coder", "code"), ("tester", "code")):
        agent_make(name, book=book)
    assert limits_of(alice, books=["code"]) == KeyLimits(("coder", "tester"), ("code",))
    assert limits_of(alice, books=["code", "notes"], agents=["tester"]) == KeyLimits(("tester",), ("code", "notes"))
    assert limits_of(alice, books=["notes"], agents=["coder"]) == KeyLimits((), ("notes",))
    assert limits_of(alice, books=["notes"]) == KeyLimits((), ("notes",))


async def test_a_key_with_a_book_and_no_agent_reaches_that_book_only(alice: Owner, agent: Agent) -> None:
    def prepare() -> str:
        memory_make(alice, "Likes tea.")
        memory_make(alice, "Uses tabs.", book="notes")
        return key_make(alice, books=["notes"])[1]

    api = Api(await in_thread(prepare))
    status, listed = await api.get("/api/memories")
    assert (status, [row["content"] for row in listed["data"]]) == (200, ["Uses tabs."])
    assert (await api.get("/api/memories?book=main"))[1]["data"] == []
    assert (await api.post("/api/memories", {"content": "Likes milk.", "book": "main"}))[0] == 404
    assert (await api.post("/api/sessions", {"agent": "assistant"}))[0] == 404
    assert (await ask(api, "Hello")).status == 404


async def test_the_books_of_a_key_can_be_set_and_shown(alice_api: Api, alice: Owner) -> None:
    status, made = await alice_api.post("/api/keys", {"name": "notes", "books": ["notes", "notes"]})
    assert (status, made["books"], made["agents"]) == (201, ["notes"], [])
    status, changed = await alice_api.call("PATCH", f"/api/keys/{made['id']}", {"books": []})
    assert (status, changed["books"]) == (200, [])
    for book in ("*", "", "x" * 65):
        status, refused = await alice_api.post("/api/keys", {"name": "notes", "books": [book]})
        assert (status, refused["error"]["type"]) == (400, "invalid_request_error"), book


# ---- shared rows ----------------------------------------------------------------------------------------------------


class World:
    """Alice's rows and a key limited to the agent `coder`. `allowed` has a row of each kind in the book `code` of
    `coder`, `other` has the same in `main` of `assistant`."""

    def __init__(self) -> None:
        self.alice = owner_make("alice")
        for name, book in (("assistant", "main"), ("coder", "code"), ("tester", "code")):
            agent_make(name, book=book)
        self.allowed = self._rows("coder", "code", "Uses tabs.")
        self.other = self._rows("assistant", "main", "Likes tea.")
        tester = Agent.objects.get(name="tester")
        self.same_book_session = session_make(self.alice, tester, title="Same book, other agent")

    def key_make(self, **rights: Any) -> None:
        """Create the key. `rights` may limit it to books as well."""
        self.key, plain = key_make(self.alice, agents=["coder"], **rights)
        self.api = Api(plain)

    def _rows(self, agent: str, book: str, content: str) -> dict[str, Any]:
        session = session_make(self.alice, Agent.objects.get(name=agent), title=f"A talk with {agent}")
        memory = memory_make(self.alice, content, book=book)
        review = review_make(memory.book, session=session, agent_name=agent)
        run = ConsolidationRun.objects.create(
            owner=self.alice, book=memory.book, book_epoch=1, state="completed", phase="done", trigger="request"
        )
        change_set = ChangeSet.objects.get(book=memory.book)
        return {
            "memory": str(memory.number),
            "session": str(session.pk),
            "review": str(review.pk),
            "run": str(run.pk),
            "change_set": str(change_set.pk),
            "book": book,
        }


@pytest.fixture(scope="module")
def all_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with shared_rows(django_db_blocker, World) as world:
        yield world


@pytest.fixture(params=[{}, {"books": ["code"]}], ids=["agents", "agents and books"])
def world(all_rows: World, db: None, request: pytest.FixtureRequest) -> World:
    all_rows.key_make(**request.param)
    return all_rows


READS = [
    "/api/memories/{memory}",
    "/api/memories/{memory}/revisions",
    "/api/sessions/{session}",
    "/api/sessions/{session}/messages",
    "/api/reviews/{review}",
    "/api/consolidations/{run}",
    "/api/reviews?session_id={session}",
]


@pytest.mark.every_case
@pytest.mark.parametrize("path", READS)
async def test_it_reads_its_own_rows_only(world: World, path: str) -> None:
    assert (await world.api.get(path.format(**world.allowed)))[0] == 200
    status, answer = await world.api.get(path.format(**world.other))
    assert (status, answer["error"]["code"]) == (404, "not_found")


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/api/memories", {"content": "Prefers milk.", "book": "main"}),
    ("PATCH", "/api/memories/{memory}", {"content": "Prefers milk."}),
    ("DELETE", "/api/memories/{memory}", None),
    ("POST", "/api/memories/{memory}/restore", {"revision": str(uuid7())}),
    ("POST", "/api/memories/search", {"query": "tea", "book": "main"}),
    ("PATCH", "/api/sessions/{session}", {"title": "Mine now"}),
    ("DELETE", "/api/sessions/{session}", None),
    ("POST", "/api/sessions/{session}/end", {}),
    ("POST", "/api/sessions/{session}/turns", {"content": "Hi"}),
    ("POST", "/api/sessions/{session}/turns", {"content": "/memory view"}),
    ("POST", "/api/sessions/{session}/review", {}),
    ("POST", "/api/sessions/{session}/forget", {}),
    ("POST", "/api/reviews/{review}/undo", {}),
    ("POST", "/api/reviews/{review}/approve", {}),
    ("POST", "/api/reviews/{review}/reject", {}),
    ("POST", "/api/consolidations", {"book": "main"}),
    ("POST", "/api/consolidations", {"book": "main", "dry_run": True}),
    ("POST", "/api/consolidations/{run}/stop", {}),
    ("PUT", "/api/books/main/artifacts/MEMORY.md", {"content": "# Tea"}),
    ("GET", "/api/books/main/artifacts", None),
    ("GET", "/api/books/main/artifacts/MEMORY.md", None),
    ("GET", "/api/export?book=main", None),
    ("POST", "/api/sessions", {"agent": "assistant"}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_other_rows_of_its_owner_are_not_found(world: World, method: str, path: str, body: Any) -> None:
    status, _ = await world.api.call(method, path.format(**world.other), body)
    assert status == 404
    session = await in_thread(Session.objects.get, pk=world.other["session"])
    memory = await in_thread(Memory.objects.get, number=int(world.other["memory"]))
    assert (session.title, session.state) == ("A talk with assistant", "active")
    assert (memory.content, memory.deleted_at) == ("Likes tea.", None)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/export"),
        ("DELETE", "/api/account/memories"),
        ("DELETE", "/api/account/memories?book=code"),
    ],
)
async def test_requests_about_the_whole_account_are_refused(world: World, method: str, path: str) -> None:
    status, answer = await world.api.call(method, path.format(**world.other), {} if method == "POST" else None)
    assert (status, answer["error"]["code"]) == (403, "forbidden")
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 2


async def test_it_undoes_changes_of_its_own_book_only(world: World) -> None:
    status, answer = await world.api.post(f"/api/changes/{world.other['change_set']}/undo")
    assert (status, answer["error"]["message"]) == (404, "There is no such group of changes.")
    status, _ = await world.api.post(f"/api/changes/{world.allowed['change_set']}/undo")
    assert status == 200


async def test_its_lists_contain_its_own_rows_only(world: World) -> None:
    for path, name in (("/api/memories", "memory"), ("/api/sessions", "session"), ("/api/reviews", "review")):
        _, found = await world.api.get(path)
        assert [row["id"] for row in found["data"]] == [world.allowed[name]], path
    assert [row["id"] for row in (await world.api.get("/api/consolidations"))[1]["data"]] == [world.allowed["run"]]
    assert [row["book"] for row in (await world.api.get("/api/memories/health"))[1]["data"]] == ["code"]


async def test_it_learns_nothing_about_other_keys(world: World) -> None:
    def add_usage() -> None:
        other, _ = api_key_create(owner=world.alice, name="Ada’s laptop")
        ApiKey.objects.filter(pk=other.pk).update(end_users_mixed_at=timezone.now())
        for key in (other, world.key):
            row = {"owner": world.alice, "day": timezone.now().date(), "agent": "coder", "model": "m", "key_id": key.pk}
            UsageDay.objects.create(**row, turns=1)

    await in_thread(add_usage)
    _, usage = await world.api.get("/api/usage?by=key")
    assert {row["name"] for row in usage["data"]} == {"test", None}
    _, health = await world.api.get("/api/memories/health")
    assert "laptop" not in str(health)
    _, plain = await in_thread(key_make, world.alice)
    assert "laptop" in str(await Api(plain).get("/api/usage?by=key"))
    assert "laptop" in str(await Api(plain).get("/api/memories/health"))


async def test_its_default_book_is_its_own(world: World) -> None:
    status, memory = await world.api.post("/api/memories", {"content": "Runs the tests first."})
    assert (status, memory["book"]) == (201, "code")
    _, found = await world.api.post("/api/memories/search", {"query": "tabs"})
    assert [row["content"] for row in found["data"]] == ["Uses tabs."]


async def test_it_may_export_its_own_book(world: World) -> None:
    response = await world.api.raw("GET", "/api/export?book=code")
    text = b"".join([piece async for piece in response.streaming_content]).decode()
    assert "Uses tabs." in text


async def test_an_import_that_names_another_book_writes_nothing(world: World) -> None:
    lines = '{"content": "Uses spaces."}\n{"content": "Prefers rum.", "book": "main"}'
    response = await world.api.client.post(
        "/api/import", data=lines, content_type="application/x-ndjson", headers=world.api.headers
    )
    assert response.status_code == 404
    assert await in_thread(Memory.objects.count) == 2


async def test_sessions_of_other_agents_are_not_found_in_v1(world: World, model: ScriptedModel) -> None:
    for session in (world.other["session"], str(world.same_book_session.pk)):
        body = {"model": "coder", "messages": [{"role": "user", "content": "Hi"}]}
        status, answer = await world.api.post("/v1/chat/completions", body, x_daybook_session=session)
        assert (status, "assistant" in str(answer), "tester" in str(answer)) == (404, False, False)


async def test_it_receives_notifications_of_its_own_book_only(world: World) -> None:
    _, found = await world.api.get("/api/notifications")
    assert [row["memory_ids"] for row in found["data"]] == [[world.allowed["memory"]]]


async def test_hidden_notifications_cause_no_resync(world: World) -> None:
    first = await in_thread(Notification.objects.order_by("seq").first)
    await in_thread(memory_make, world.alice, "Likes milk.")
    _, found = await world.api.get(f"/api/notifications?after={first.seq}")
    assert found["data"] == []


@pytest.mark.parametrize("world", [{}], indirect=True)
async def test_a_key_whose_agents_are_deleted_can_use_nothing(world: World) -> None:
    await in_thread(Session.objects.all().delete)
    await in_thread(Agent.objects.filter(name="coder").delete)
    assert (await world.api.get("/api/memories"))[1]["data"] == []
    assert (await world.api.post("/api/memories", {"content": "Uses vim."}))[0] == 404
