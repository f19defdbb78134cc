"""/ws/notifications/: who may listen, what is sent, and when the socket is closed"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlencode

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.test import Client
from pytest_django.fixtures import Settings

from gateway import consumers
from gateway.keys import api_key_revoke, api_key_rotate, api_key_update
from gateway.metrics import open_websockets
from gateway.models import ApiKey, Session
from gateway.routing import websocket_application
from gateway.sessions import changes
from gateway.sessions.keeping import session_change, session_discard, session_restore
from gateway.sockets import recheck_logins
from memories.database.access import in_thread
from memories.messaging.datagrams import DatagramChannelLayer
from memories.messaging.outbox import notify, wake
from memories.models import Notification, Owner
from memories.services import owner_for_end_user
from tests.factories import agent_make, key_make, memory_make
from tests.pages import client_of
from tests.unsliced import session_delete
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
HOST = (b"host", b"testserver")
ORIGIN = (b"origin", b"http://testserver")


@pytest.fixture(autouse=True)
def no_polling(settings: Settings) -> None:
    """Turn polling off, so that everything received was pushed."""
    settings.PUSH_POLL_SECONDS = 1000


@pytest.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    """Close the connection of the thread in which Channels reads cookies."""
    yield
    await sync_to_async(connections.close_all)()
    layer = get_channel_layer()
    if isinstance(layer, DatagramChannelLayer):
        await layer.close()
    elif own := layer._layers.get(asyncio.get_running_loop()):  # close_pools() would touch loops of earlier tests
        await own.flush()


@pytest.fixture
def alice_login(alice: Owner) -> Client:
    return client_of(alice)


def cookie(client: Client) -> tuple[bytes, bytes]:
    return b"cookie", f"daybook_session={client.cookies['daybook_session'].value}".encode()


def bearer(plain: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {plain}".encode()


def socket(*headers: tuple[bytes, bytes], **query: Any) -> WebsocketCommunicator:
    path = "/ws/notifications/" + (f"?{urlencode(query)}" if query else "")
    return WebsocketCommunicator(websocket_application, path, headers=[HOST, *headers])  # type: ignore[arg-type]


@asynccontextmanager
async def opened(*headers: tuple[bytes, bytes], **query: Any) -> AsyncIterator[WebsocketCommunicator]:
    communicator = socket(*headers, **query)
    connected, _ = await communicator.connect(timeout=10)
    assert connected
    yield communicator
    await communicator.disconnect()


async def refused(*headers: tuple[bytes, bytes]) -> bool:
    connected, _ = await socket(*headers).connect(timeout=10)
    return not connected


async def notify_owner(owner: Owner, text: str) -> None:
    await in_thread(notify, owner_id=owner.pk, kind=Notification.Kind.MEMORY_CHANGED, text=text)


async def texts(communicator: WebsocketCommunicator, count: int) -> list[str]:
    return [(await communicator.receive_json_from(timeout=10))["text"] for _ in range(count)]


async def test_the_number_of_sockets_per_person_is_limited(
    alice: Owner, alice_login: Client, bob: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "SOCKETS", 2)
    async with opened(cookie(alice_login), ORIGIN):
        async with opened(cookie(alice_login), ORIGIN):
            assert await refused(cookie(alice_login), ORIGIN)
            async with opened(cookie(await in_thread(client_of, bob)), ORIGIN):
                pass
        async with opened(cookie(alice_login), ORIGIN):
            pass
    assert not consumers._open


@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/notifications", "/api/memories", "/v1/responses", "/ws/%00"])
async def test_an_unknown_path_is_closed_without_an_error(path: str) -> None:
    communicator = WebsocketCommunicator(websocket_application, path, headers=[HOST, ORIGIN])  # type: ignore[arg-type]
    assert await communicator.connect(timeout=10) == (False, 1000)


async def test_a_browser_receives_notifications_from_now_on(alice: Owner, alice_login: Client) -> None:
    await notify_owner(alice, "before")
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await notify_owner(alice, "one")
        await notify_owner(alice, "two")
        assert await texts(browser, 2) == ["one", "two"]
        assert await browser.receive_nothing()


async def test_a_row_has_the_documented_fields(alice: Owner, alice_login: Client) -> None:
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await notify_owner(alice, "one")
        row = await browser.receive_json_from(timeout=10)
    assert row.keys() == {"id", "kind", "text", "review_id", "memory_ids", "created_at"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["created_at"])  # the API's format of times
    assert (row["id"], row["kind"]) == ("1", "memory.changed")


async def test_a_reconnect_neither_misses_nor_repeats_rows(alice: Owner, alice_login: Client) -> None:
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await notify_owner(alice, "one")
        seen = (await browser.receive_json_from(timeout=10))["id"]
    await notify_owner(alice, "two")
    async with opened(cookie(alice_login), ORIGIN, after=seen) as browser:
        await notify_owner(alice, "three")
        await in_thread(wake, alice.pk)  # an additional hint sends nothing twice
        assert await texts(browser, 2) == ["two", "three"]
        assert await browser.receive_nothing()


async def test_many_rows_arrive_in_order(alice: Owner, alice_login: Client) -> None:
    for number in range(250):
        await notify_owner(alice, str(number))
    async with opened(cookie(alice_login), ORIGIN, after=0) as browser:
        assert await texts(browser, 250) == [str(number) for number in range(250)]
        assert await browser.receive_nothing()


async def test_an_expired_after_gets_one_resync(alice: Owner, alice_login: Client) -> None:
    for number in range(3):
        await notify_owner(alice, str(number))
    await in_thread(Notification.objects.filter(seq__lte=2).delete)
    async with opened(cookie(alice_login), ORIGIN, after=1) as browser:
        rows = [await browser.receive_json_from(timeout=10) for _ in range(2)]
        assert [(row["kind"], row["id"]) for row in rows] == [("resync", "2"), ("memory.changed", "3")]


@pytest.mark.parametrize("after", [10**30, 99, "x", "-1", "²"])
async def test_an_invalid_after_is_tolerated(alice: Owner, alice_login: Client, after: Any) -> None:
    await notify_owner(alice, "before")
    async with opened(cookie(alice_login), ORIGIN, after=after) as browser:
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]


async def test_a_lost_hint_is_made_up_for_by_polling(
    alice: Owner, alice_login: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.messaging.outbox.wake", lambda owner_id: None)
    settings.PUSH_POLL_SECONDS = 0.05
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]


async def test_only_the_owner_receives_a_notification(alice: Owner, alice_login: Client, charlie: Owner) -> None:
    theirs = await in_thread(client_of, charlie)
    async with opened(cookie(alice_login), ORIGIN) as browser, opened(cookie(theirs), ORIGIN, after=0) as other:
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]
        assert await other.receive_nothing()


async def test_a_key_may_listen_without_origin(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    async with opened(bearer(plain)) as program:
        await notify_owner(alice, "one")
        assert await texts(program, 1) == ["one"]
        await program.send_to(text_data="not json")  # is ignored
        await program.send_to(bytes_data=b"\x00")
        await notify_owner(alice, "two")
        assert await texts(program, 1) == ["two"]


async def test_a_trusted_key_listens_for_its_end_user(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice, trusted=True)
    end_user = await in_thread(owner_for_end_user, parent=alice, namespace="daybook", external_id="u1")
    async with opened(bearer(plain), (b"x-daybook-user", b"u1")) as program:
        await notify_owner(alice, "alice's")
        await notify_owner(end_user, "theirs")
        assert await texts(program, 1) == ["theirs"]


async def test_unauthorised_connections_are_refused(alice: Owner, alice_login: Client) -> None:
    _, plain = await in_thread(key_make, alice)
    evil = (b"origin", b"https://evil.example")
    assert await refused(ORIGIN)
    assert await refused()
    assert await refused(bearer("dbk_wrong"))
    assert await refused(bearer("dbk_wrong"), cookie(alice_login), ORIGIN)
    assert await refused(cookie(alice_login))  # a browser always sends Origin
    assert await refused(cookie(alice_login), evil)
    assert await refused(cookie(alice_login), (b"origin", b"null"))
    assert await refused(bearer(plain), evil)
    assert await refused(bearer(plain), (b"x-daybook-user", b"u1"))
    _, trusted = await in_thread(key_make, alice, trusted=True)
    assert await refused(bearer(trusted), (b"x-daybook-user", b""))


async def test_an_unknown_host_is_refused(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    headers = [(b"host", b"evil.example"), bearer(plain)]
    communicator = WebsocketCommunicator(websocket_application, "/ws/notifications/", headers=headers)  # type: ignore[arg-type]
    assert not (await communicator.connect(timeout=10))[0]


async def test_a_trusted_origin_is_allowed(alice: Owner, alice_login: Client, settings: Settings) -> None:
    settings.TRUSTED_ORIGINS = ["https://chat.example.org"]
    async with opened(cookie(alice_login), (b"origin", b"https://chat.example.org")) as browser:
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]


async def closed_with(communicator: WebsocketCommunicator) -> int:
    message = await communicator.receive_output(timeout=10)
    assert message["type"] == "websocket.close"
    return int(message["code"])


async def test_signing_out_closes_the_sockets_of_that_login_at_once(alice: Owner, alice_login: Client) -> None:
    elsewhere = await in_thread(client_of, alice)
    async with opened(cookie(elsewhere), ORIGIN) as other:
        async with opened(cookie(alice_login), ORIGIN) as browser:
            await in_thread(alice_login.post, "/logout/")
            assert await closed_with(browser) == 4401
        await notify_owner(alice, "one")
        assert await texts(other, 1) == ["one"]


async def change_password(owner: Owner) -> None:
    def change() -> None:
        user = User.objects.get(pk=owner.user_id)
        user.set_password("another one")
        user.save()

    await in_thread(change)


async def test_a_new_password_closes_sockets_at_the_next_poll(
    alice: Owner, alice_login: Client, settings: Settings
) -> None:
    settings.PUSH_POLL_SECONDS = 0.05
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await change_password(alice)
        assert await closed_with(browser) == 4401


async def test_a_new_password_closes_sockets_at_once_after_a_hint(alice: Owner, alice_login: Client) -> None:
    async with opened(cookie(alice_login), ORIGIN) as browser:
        await in_thread(recheck_logins, alice.pk)
        assert await browser.receive_nothing()
        await change_password(alice)
        await in_thread(recheck_logins, alice.pk)
        assert await closed_with(browser) == 4401


async def test_deactivation_closes_sockets_of_logins_and_keys(alice: Owner, alice_login: Client) -> None:
    _, plain = await in_thread(key_make, alice)
    async with opened(cookie(alice_login), ORIGIN) as browser, opened(bearer(plain)) as program:
        await in_thread(User.objects.update, is_active=False)
        await in_thread(recheck_logins, alice.pk)
        assert [await closed_with(connection) for connection in (browser, program)] == [4401, 4401]
    assert await refused(cookie(alice_login), ORIGIN)


async def test_a_revoked_key_stops_listening(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    async with opened(bearer(plain)) as program:
        await in_thread(lambda: api_key_revoke(ApiKey.objects.get()))
        assert await closed_with(program) == 4401


@pytest.mark.parametrize(
    "change",
    [
        lambda key: api_key_rotate(key),
        lambda key: api_key_update(key, books=["code"]),
    ],
    ids=["rotated", "limited"],
)
async def test_a_replaced_or_limited_key_stops_listening(alice: Owner, change: Callable[[ApiKey], Any]) -> None:
    _, plain = await in_thread(key_make, alice)
    async with opened(bearer(plain)) as program:
        await in_thread(lambda: change(ApiKey.objects.get()))
        assert await closed_with(program) == 4401


async def test_a_key_with_an_overlap_continues_listening(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    async with opened(bearer(plain)) as program:
        await in_thread(lambda: api_key_rotate(ApiKey.objects.get(), overlap=timedelta(hours=1)))
        memory = await in_thread(memory_make, alice, "Likes tea.")
        assert (await program.receive_json_from(timeout=10))["memory_ids"] == [str(memory.number)]


def polling_tasks() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if "_poll" in repr(task.get_coro())]


async def test_a_closed_socket_leaves_no_task(alice: Owner, alice_login: Client) -> None:
    async with opened(cookie(alice_login), ORIGIN):
        assert len(polling_tasks()) == 1
    assert polling_tasks() == []


async def test_a_socket_of_a_stopping_server_leaves_no_task(alice: Owner, alice_login: Client) -> None:
    communicator = socket(cookie(alice_login), ORIGIN)
    assert await communicator.connect(timeout=10)
    open_before = open_websockets._value.get()
    communicator.future.cancel()
    await asyncio.wait([communicator.future])
    assert polling_tasks() == []
    assert open_websockets._value.get() == open_before - 1


async def test_a_failed_socket_leaves_no_task(
    alice: Owner, alice_login: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "notifications_after", Mock(side_effect=OperationalError("gone")))
    communicator = socket(cookie(alice_login), ORIGIN)
    assert await communicator.connect(timeout=10)
    await asyncio.wait([communicator.future], timeout=10)
    with pytest.raises(OperationalError):
        communicator.future.result()
    assert polling_tasks() == []


async def test_a_limited_key_receives_notifications_of_its_books_only(alice: Owner) -> None:
    await in_thread(agent_make, "coder", book="code")
    _, plain = await in_thread(key_make, alice, agents=["coder"])
    async with opened(bearer(plain)) as client:
        await in_thread(memory_make, alice, "Likes milk.")
        own = await in_thread(memory_make, alice, "Uses vim.", book="code")
        assert (await client.receive_json_from(timeout=10))["memory_ids"] == [str(own.number)]
        assert await client.receive_nothing()


async def test_a_key_shared_by_several_people_is_refused(alice: Owner) -> None:
    _, plain = await in_thread(key_make, alice)
    for name in (b"u1", b"u2"):
        assert await refused(bearer(plain), (b"x-openwebui-user-id", name)) == (name == b"u2")


async def test_a_page_learns_of_changes_of_its_session_beside_notifications(
    alice: Owner, alice_login: Client, session: Session
) -> None:
    async with opened(cookie(alice_login), ORIGIN, session=session.pk) as browser:
        assert (await browser.receive_json_from(timeout=10))["session_id"] == str(session.pk)
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]
        await in_thread(lambda: session_change(session, title="Cats"))
        assert (await browser.receive_json_from(timeout=10))["title"] == "Cats"
    assert not changes._watched


@pytest.mark.parametrize("wrong", ["", "x"])
async def test_what_is_no_id_of_a_session_is_ignored(alice: Owner, alice_login: Client, wrong: str) -> None:
    async with opened(cookie(alice_login), ORIGIN, session=wrong) as browser:
        await notify_owner(alice, "one")
        assert await texts(browser, 1) == ["one"]
        assert not changes._watched


async def test_a_page_that_reconnects_learns_that_its_session_was_deleted(
    alice: Owner, alice_login: Client, session: Session
) -> None:
    deleted = {"kind": "session.deleted", "session_id": str(session.pk)}
    await in_thread(session_discard, session)
    async with opened(cookie(alice_login), ORIGIN, session=session.pk) as browser:
        assert await browser.receive_json_from(timeout=10) == deleted
        await in_thread(session_restore, alice.pk, session.pk)
        assert (await browser.receive_json_from(timeout=10))["kind"] == "session.changed"
    await in_thread(session_delete, session)
    async with opened(cookie(alice_login), ORIGIN, session=session.pk) as browser:
        assert await browser.receive_json_from(timeout=10) == deleted


async def test_nobody_else_learns_of_changes_of_a_session(alice: Owner, charlie: Owner, session: Session) -> None:
    theirs = await in_thread(client_of, charlie)
    await in_thread(agent_make, "coder")
    _, limited = await in_thread(key_make, alice, agents=["coder"])
    async with (
        opened(cookie(theirs), ORIGIN, session=session.pk) as other,
        opened(bearer(limited), session=session.pk) as program,
    ):
        for stranger in (other, program):  # as for a session that does not exist
            assert (await stranger.receive_json_from(timeout=10))["kind"] == "session.deleted"
        assert not changes._watched
        await in_thread(lambda: session_change(session, title="Cats"))
        assert await other.receive_nothing()
        assert await program.receive_nothing()


async def test_signing_out_ends_the_watching_of_a_session(alice: Owner, alice_login: Client, session: Session) -> None:
    async with opened(cookie(alice_login), ORIGIN, session=session.pk) as browser:
        await browser.receive_json_from(timeout=10)
        await in_thread(alice_login.post, "/logout/")
        assert await closed_with(browser) == 4401
        await eventually_async(lambda: not changes._watched, within=10)
