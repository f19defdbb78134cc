"""Tags of sessions: changed through the API, limited, used as a filter in lists and searches, and exported"""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.models import Message, Session
from gateway.portability import export_conversations
from gateway.sessions.keeping import MAX_TAGS, TAG_LENGTH, session_change, session_discard, tags_of
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.pages import html_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(alice: Owner) -> Session:
    return session_make(alice, agent_make(), title="The oven")


def message_make(session: Session, text: str) -> None:
    Message.objects.create(owner=session.owner, session=session, seq=1, role="user", text=text)


async def test_tags_are_added_and_removed(alice_api: Api, session: Session) -> None:
    path = f"/api/sessions/{session.pk}"
    status, body = await alice_api.call("PATCH", path, {"tags": ["Home ", "kitchen  stuff", "HOME", ""]})
    assert (status, body["tags"], body["title"]) == (200, ["home", "kitchen stuff"], "The oven")
    _, body = await alice_api.call("PATCH", path, {"pinned": True})
    assert body["tags"] == ["home", "kitchen stuff"]
    _, body = await alice_api.call("PATCH", path, {"tags": []})
    assert body["tags"] == []
    assert (await alice_api.get(path))[1]["tags"] == []


@pytest.mark.parametrize(
    "tags", [["x" * (TAG_LENGTH + 1)], [f"t{n}" for n in range(MAX_TAGS + 1)], ["a,b"], ["a\u007fb"], "home", [7]]
)
async def test_invalid_tags_are_refused(alice_api: Api, session: Session, tags: object) -> None:
    status, body = await alice_api.call("PATCH", f"/api/sessions/{session.pk}", {"tags": tags})
    assert (status, body["error"]["code"]) == (400, "invalid_request")


async def test_the_maximum_of_tags_is_accepted(alice_api: Api, session: Session) -> None:
    tags = [f"{n:02}" + "x" * (TAG_LENGTH - 2) for n in range(MAX_TAGS)]
    status, body = await alice_api.call("PATCH", f"/api/sessions/{session.pk}", {"tags": tags})
    assert (status, body["tags"]) == (200, tags)


async def test_nobody_else_tags_a_session(charlie_api: Api, session: Session) -> None:
    status, _ = await charlie_api.call("PATCH", f"/api/sessions/{session.pk}", {"tags": ["mine"]})
    assert (status, (await in_thread(Session.objects.get)).tag_list) == (404, [])


async def test_the_list_filters_by_complete_tags(alice_api: Api, alice: Owner, session: Session) -> None:
    other = await in_thread(session_make, alice, session.agent, title="Trains")
    await in_thread(lambda: [session_change(session, tags=["home", "50%"]), session_change(other, tags=["homework"])])

    async def listed(query: str) -> list[str]:
        return [row["title"] for row in (await alice_api.get(f"/api/sessions?{query}"))[1]["data"]]

    assert await listed("tag=home") == ["The oven"]
    assert await listed("tag=HomeWork") == ["Trains"]
    assert await listed("tag=50%25") == ["The oven"]
    assert await listed("tag=5_%25") == []
    assert await listed("tag=home&archived=true") == []
    assert (await alice_api.get(f"/api/sessions?tag={'x' * 41}"))[0] == 400


async def test_a_search_considers_only_sessions_with_the_tag(alice_api: Api, alice: Owner, session: Session) -> None:
    """A page contains only tagged sessions, however many other sessions match."""

    def make() -> None:
        session_change(session, tags=["home"])
        message_make(session, "The oven light is broken")
        for number in range(5):
            message_make(session_make(alice, session.agent, title=f"Other {number}"), "Another oven light")

    await in_thread(make)
    _, unfiltered = await alice_api.get("/api/sessions?search=light&limit=2")
    assert (len(unfiltered["data"]), unfiltered["has_more"]) == (2, True)
    _, found = await alice_api.get("/api/sessions?search=light&limit=2&tag=home")
    assert ([row["title"] for row in found["data"]], found["has_more"]) == (["The oven"], False)
    assert found["data"][0]["tags"] == ["home"]


async def test_exports_contain_the_tags(alice_api: Api, alice: Owner, session: Session) -> None:
    await in_thread(lambda: session_change(session, tags=["home", "repairs"]))
    markdown = await alice_api.raw("GET", f"/api/sessions/{session.pk}/export")
    assert "\nTags: home, repairs\n" in b"".join([part async for part in markdown]).decode()
    as_json = await alice_api.raw("GET", f"/api/sessions/{session.pk}/export?format=json")
    assert json.loads(b"".join([part async for part in as_json]))["session"]["tags"] == ["home", "repairs"]
    (line,) = await in_thread(lambda: [row for row in export_conversations(alice.pk) if row["type"] == "session"])
    assert line["tags"] == ["home", "repairs"]


def test_tags_of_lists_the_tags_of_an_owner(alice: Owner, charlie: Owner, session: Session) -> None:
    session_change(session, tags=["repairs", "home"])
    session_change(session_make(alice, session.agent), tags=["home", "bread"])
    session_change(session_make(charlie, session.agent), tags=["secret"])
    temporary = session_make(alice, session.agent)
    Session.objects.filter(pk=temporary.pk).update(temporary=True, tags="\nhidden\n")
    assert tags_of(alice.pk) == ["bread", "home", "repairs"]
    session_discard(session)
    assert tags_of(alice.pk) == ["bread", "home"]


def test_the_page_shows_tags_and_filters_by_them(page: Client, alice: Owner, session: Session) -> None:
    session_change(session, tags=["home", "repairs"])
    session_change(session_make(alice, session.agent, title="Trains"), tags=["travel"])
    html = html_of(page, "/fragments/sessions/")
    assert 'data-tags="home, repairs"' in html
    assert html.count("<option") == 3
    assert text_of(html_of(page, "/fragments/sessions/?tag=Travel")) == "Today Trains travel"
    assert "No sessions with the tag “nothing”. Show all" in text_of(html_of(page, "/fragments/sessions/?tag=nothing"))
    assert "with the tag “travel”" in text_of(html_of(page, "/fragments/sessions/?tag=travel&q=oven"))
    whole = html_of(page, f"/c/{session.pk}/")
    assert '<span class="session__tags" id="session-tags">home, repairs</span>' in whole


def test_a_filtered_list_uses_the_tag_filter_with_a_limit(alice: Owner, session: Session, page: Client) -> None:
    session_change(session, tags=["home"])
    with CaptureQueriesContext(connection) as queries:
        html_of(page, "/fragments/sessions/?tag=home")
    filtered = [query["sql"] for query in queries if "LIKE" in query["sql"] and "tags" in query["sql"]]
    assert filtered
    assert all("LIMIT" in sql for sql in filtered)
