"""Every list of the native API: its pagination and its filters with fixed choices."""

from functools import reduce
from typing import Any

import pytest
from django.utils import timezone

from config.api import api
from gateway.models import Agent
from gateway.runs.rows import messages_insert
from gateway.services import session_create
from memories.database.access import in_thread
from memories.messaging.outbox import notify
from memories.models import Notification, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_writing
from reviews.models import ConsolidationRun
from tests.conftest import Api
from tests.factories import key_make, memory_make, review_make
from tests.gateway.receivers import webhook_make

CHOICES = {
    ("/api/memories", "target"): ["user", "memory"],
    ("/api/memories", "write_origin"): [
        "tool", "background_review", "consolidation", "user", "admin", "import", "system",
    ],
    ("/api/reviews", "state"): [
        "scheduled", "running", "awaiting_approval", "saved", "nothing_to_save", "timed_out", "failed", "cancelled",
        "undone",
    ],
    ("/api/proposals", "state"): ["waiting", "approved", "rejected", "expired"],
    ("/api/usage", "by"): ["day", "key", "agent", "model"],
    ("/api/sessions", "archived"): ["true", "false"],
}  # fmt: skip
AUDIT = ("/api/audit", "action")


@pytest.fixture
def bob_api(bob: Owner) -> Api:
    return Api(key_make(bob)[1])


@pytest.mark.parametrize(("path", "name"), [*CHOICES, AUDIT])
async def test_a_filter_refuses_unknown_values(bob_api: Api, path: str, name: str) -> None:
    for value in ("zz", "ZZ", "user,memory"):
        status, answer = await bob_api.get(f"{path}?{name}={value}")
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", name)
    for allowed in CHOICES.get((path, name), ["view", "change"]):
        assert (await bob_api.get(f"{path}?{name}={allowed}"))[0] == 200
        if name not in {"archived", "action"}:
            assert allowed in answer["error"]["message"]


MOMENTS = [("/api/memories", "created_after"), ("/api/memories", "created_before"), ("/api/usage", "from"),
           ("/api/usage", "to")]  # fmt: skip


NUMBERS = [("/api/memories", "limit"), ("/api/notifications", "after"), ("/v1/models", "limit")]


@pytest.mark.parametrize(("path", "name"), [*CHOICES, AUDIT, *MOMENTS, *NUMBERS])
async def test_an_empty_filter_is_ignored(bob_api: Api, path: str, name: str) -> None:
    assert (await bob_api.get(f"{path}?{name}="))[0] == 200


async def test_a_request_that_changes_something_needs_the_values_of_its_parameters(alice_api: Api) -> None:
    """A script whose variable is empty must not forget all books instead of one."""
    _, memory = await alice_api.post("/api/memories", {"content": "Likes tea."})
    assert (await alice_api.call("DELETE", "/api/account/memories?book="))[0] == 400
    assert (await alice_api.call("DELETE", "/api/sessions/some?restorable="))[0] == 400
    assert (await alice_api.post("/api/import?preview=", {}))[0] == 400
    assert (await alice_api.get(f"/api/memories/{memory['id']}"))[0] == 200


def test_the_choices_are_documented() -> None:
    document = api.get_openapi_schema()["paths"]
    for (path, name), allowed in CHOICES.items():
        (parameter,) = [each for each in document[path]["get"]["parameters"] if each["name"] == name]
        if name != "archived":
            assert allowed == _enum(parameter["schema"]), (path, name)


def _enum(schema: dict[str, Any]) -> Any:
    inner = [_enum(each) for key in ("anyOf", "allOf") for each in schema.get(key, ())]
    return schema.get("enum") or next(filter(None, inner), None)


PAGED = [
    "/api/sessions",
    "/api/sessions?search=tea",
    "/api/sessions?archived=false",
    "/api/sessions/{session}/messages",
    "/api/memories",
    "/api/memories?target=user&q=tea",
    "/api/memories/1/revisions",
    "/api/reviews",
    "/api/reviews?state=awaiting_approval",
    "/api/proposals",
    "/api/proposals?state=waiting",
    "/api/consolidations",
    "/api/keys",
    "/api/notifications",
    "/api/audit?action=key_create",
    "/api/webhooks",
]


@pytest.fixture
def session_id(bob: Owner, agent: Agent) -> str:
    """A session of Bob's, who has several rows of every list."""
    source = Source(actor="user:1", origin=WriteOrigin.USER)
    memory = memory_make(bob, "Likes tea.")
    for number in range(3):
        memory_make(bob, f"Likes tea number {number}.", book=f"book{number % 2}")
        with book_writing(memory.book, source) as writer:
            writer.update(1, MemoryFields(category=f"c{number}"))
        session = session_create(bob, agent, title=f"Tea {number}")
        messages_insert(session, None, [{"role": "user", "content": f"Tea {n}?"} for n in range(3)], history=3)
        session.save()
        write = {"action": "add", "state": "waiting", "target": "user", "category": "c", "keywords": [], "after": "x"}
        writes = [{"index": index, "key": f"new{index}", **write} for index in range(2)]
        values = {"session": session, "finished_at": timezone.now(), "proposals": 2, "writes": writes}
        review_make(memory.book, "awaiting_approval", **values)
        ConsolidationRun.objects.create(owner=bob, book=memory.book, book_epoch=1, trigger="request", state="completed")
        key_make(bob)
        webhook_make(bob, "https://example.org/daybook")
        notify(owner_id=bob.pk, kind=Notification.Kind.MEMORY_CHANGED)
    return str(session.pk)


@pytest.mark.every_case
@pytest.mark.parametrize("path", PAGED)
async def test_pages_of_one_entry_make_up_the_whole_list(bob_api: Api, session_id: str, path: str) -> None:
    path = path.format(session=session_id)
    path += "&" if "?" in path else "?"
    _, whole = await bob_api.get(f"{path}limit=200")
    ids = [entry["id"] for entry in whole["data"]]
    assert len(ids) > 2
    assert (whole["first_id"], whole["last_id"], whole["has_more"]) == (ids[0], ids[-1], False)
    seen_ids: list[str] = []
    more = True
    while more and len(seen_ids) < len(ids):
        status, page = await bob_api.get(f"{path}limit=1" + (f"&after={seen_ids[-1]}" if seen_ids else ""))
        assert status == 200
        (entry,) = page["data"]
        assert page["first_id"] == page["last_id"] == entry["id"]
        seen_ids.append(entry["id"])
        more = page["has_more"]
    assert (seen_ids, more) == (ids, False)
    _, after_last = await bob_api.get(f"{path}limit=1&after={ids[-1]}")
    assert (after_last["data"], after_last["has_more"], after_last["first_id"], after_last["last_id"]) == (
        [],
        False,
        None,
        None,
    )
    _, exact = await bob_api.get(f"{path}limit={len(ids)}")
    assert (len(exact["data"]), exact["has_more"]) == (len(ids), False)


@pytest.mark.any_database
@pytest.mark.parametrize("path", PAGED)
async def test_an_invalid_cursor_is_refused(bob_api: Api, session_id: str, path: str) -> None:
    path = path.format(session=session_id)
    status, answer = await bob_api.get(f"{path}{'&' if '?' in path else '?'}after=zz")
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", "after")


def test_every_paginated_list_is_tested() -> None:
    placeholders = {"{session}": "{session_id}", "/1/": "/{memory_id}/"}
    tested = {
        reduce(lambda path, name: path.replace(*name), placeholders.items(), each.partition("?")[0]) for each in PAGED
    }
    paged = {
        path
        for path, operations in api.get_openapi_schema()["paths"].items()
        if {"limit", "after"} <= {parameter["name"] for parameter in operations.get("get", {}).get("parameters", ())}
    }
    assert paged == tested


async def test_a_search_says_whether_there_are_more_hits(bob_api: Api, session_id: str) -> None:
    for strategy in ("ranked", "match_all"):
        body = {"query": "tea", "book": "*", "search": strategy}
        _, whole = await bob_api.post("/api/memories/search", {**body, "limit": 100})
        ids = [memory["id"] for memory in whole["data"]]
        assert (len(ids), whole["has_more"]) == (4, False)
        for limit in range(1, 5):
            _, page = await bob_api.post("/api/memories/search", {**body, "limit": limit})
            assert [memory["id"] for memory in page["data"]] == ids[:limit]
            assert page["has_more"] == (limit < 4)


EXTENSIBLE = {"ToolResult", "IngestMessage"}  # messages as in OpenAI's chat completions


def test_every_body_refuses_unknown_fields() -> None:
    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            refs = [each["$ref"] for each in (body, *body.get("anyOf", ())) if "$ref" in each]
            for name in (ref.rpartition("/")[2] for ref in refs):
                assert schemas[name].get("additionalProperties") is False or name in EXTENSIBLE, (method, path, name)


@pytest.mark.any_database
async def test_an_unknown_field_is_named_in_the_error(bob_api: Api, bob: Owner, session_id: str) -> None:
    key = (await in_thread(key_make, bob))[0]
    for method, path in (
        ("POST", "/api/sessions"),
        ("PATCH", f"/api/sessions/{session_id}"),
        ("POST", f"/api/sessions/{session_id}/turns"),
        ("POST", "/api/memories/search"),
        ("PATCH", "/api/memories/1"),
        ("POST", "/api/consolidations"),
        ("POST", f"/api/keys/{key.pk}/rotate"),
        ("POST", "/api/keys"),
    ):
        valid = {"agent": "assistant"} if path == "/api/sessions" else {"query": "x"} if path.endswith("search") else {}
        valid |= {"content": "Hi"} if path.endswith("turns") else {"name": "x"} if path == "/api/keys" else {}
        status, answer = await bob_api.call(method, path, {**valid, "zz": 1})
        assert (status, answer["error"]["param"]) == (400, "zz"), path


async def test_a_session_search_accepts_only_its_own_hits_as_cursor(bob_api: Api, session_id: str) -> None:
    await bob_api.call("PATCH", f"/api/sessions/{session_id}", {"archived": True})
    for after in (session_id, "01a20650-d0a0-7484-b03a-04197972ff6f"):
        status, answer = await bob_api.get(f"/api/sessions?search=tea&archived=false&after={after}")
        assert (status, answer["error"]["param"]) == (400, "after")
