"""Request bodies: the sender is authenticated first, and size, time and memory are limited, for pages and APIs
alike."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from pytest_django.fixtures import Settings

from config.asgi import application
from config.serving import asgi_handler
from config.serving.bodies import JSON_BYTES, SMALL_BYTES, _budget
from gateway.api import body_parser
from gateway.runs import active
from memories.api import transfer
from memories.database.access import in_thread, working_for
from memories.database.lanes import BUSY, DatabaseBusy
from memories.json_input import read_json
from memories.models import Owner
from tests.factories import agent_make, key_make, session_make
from tests.waiting import eventually_async

pytestmark = pytest.mark.django_db(transaction=True)
MEGABYTE = 1_000_000
APIS = ["/v1/chat/completions", "/api/memories", "/mcp"]


@pytest.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    """Close the connections of the threads in which pages run."""
    yield
    await sync_to_async(connections.close_all)()


class Sender:
    """A client that sends a body in pieces; with `ends=False` it sends nothing more after them."""

    def __init__(self, path: str, *pieces: bytes, ends: bool = True, announced: int | None = None, **headers: str):
        self.path, self.pieces, self.ends = path, list(pieces), ends
        self.read = 0
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.answer = b""
        self.answered = asyncio.Event()
        length = ("transfer-encoding", "chunked") if announced is None else ("content-length", str(announced))
        all_headers = {"host": "testserver", "content-type": "application/json"} | headers
        self.request_headers = [(name.encode(), value.encode()) for name, value in (*all_headers.items(), length)]

    async def receive(self) -> dict[str, Any]:
        if not self.pieces:
            await (self.answered.wait() if self.ends else asyncio.Event().wait())
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0)
        self.read += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or not self.ends}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.answer += message.get("body", b"")
            if not message.get("more_body"):
                self.answered.set()

    async def go(self) -> int:
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "server": ("testserver", 80),
            "client": ("127.0.0.1", 1),
            "headers": self.request_headers,
        }
        async with asyncio.timeout(20):
            await application(scope, self.receive, self.send)
        return self.status

    def code(self) -> str:
        return str(json.loads(self.answer)["error"]["code"])


def bearer(plain: str) -> dict[str, str]:
    return {"authorization": f"Bearer {plain}"}


async def key_of(owner: Owner) -> dict[str, str]:
    return bearer((await in_thread(key_make, owner))[1])


def login_of(owner: Owner) -> dict[str, str]:
    browser = Client()
    browser.force_login(User.objects.get(pk=owner.user_id))
    return {"cookie": f"daybook_session={browser.cookies['daybook_session'].value}"}


@pytest.mark.parametrize("path", APIS)
async def test_without_a_key_no_body_is_read(path: str) -> None:
    sender = Sender(path, b"x" * MEGABYTE, ends=False, announced=19 * MEGABYTE)
    assert (await sender.go(), sender.code(), sender.read) == (401, "unauthorized", 0)


@pytest.mark.parametrize("path", APIS)
async def test_with_an_unknown_key_no_body_is_read(path: str) -> None:
    sender = Sender(path, b"x" * MEGABYTE, ends=False, announced=19 * MEGABYTE, **bearer("dbk_unknown"))
    assert (await sender.go(), sender.code(), sender.read) == (401, "unauthorized", 0)


@pytest.mark.parametrize("headers", [bearer("dbk_unknown"), {"cookie": "daybook_session=unknown"}])
async def test_of_a_chunked_body_only_a_small_beginning_is_read(headers: dict[str, str]) -> None:
    sender = Sender("/api/memories", *[b"x" * 10_000] * 100, ends=False, **headers)
    assert (await sender.go(), sender.code()) == (401, "unauthorized")
    assert sender.read <= SMALL_BYTES + 10_000


async def test_a_large_body_with_a_key_is_accepted(alice: Owner) -> None:
    body = json.dumps({"query": "tea"}).encode() + b" " * MEGABYTE
    pieces = [body[start : start + 100_000] for start in range(0, len(body), 100_000)]
    for announced in (len(body), None):
        sender = Sender("/api/memories/search", *pieces, announced=announced, **await key_of(alice))
        assert await sender.go() == 200
    assert _budget.held == 0


async def test_a_large_turn_is_parsed_outside_the_event_loop(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []

    async def in_a_thread(job: Any, *args: Any) -> Any:
        jobs.append(job)
        return job(*args)

    monkeypatch.setattr(body_parser, "in_read_thread", in_a_thread)
    session = await in_thread(lambda: session_make(alice, agent_make()))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 6 * MEGABYTE}}
    path, key = f"/api/sessions/{session.pk}/turns", await key_of(alice)
    for content, status in (([image, {"type": "text", "text": "/"}, {"no": "type"}], 400), ("x" * 300_000, 413)):
        body = json.dumps({"content": content}).encode()
        sender = Sender(path, body, announced=len(body), **key)
        assert await sender.go() == status, sender.answer[:300]
    broken = b'{"content": "' + b"x" * MEGABYTE
    assert await Sender(path, broken, announced=len(broken), **key).go() == 400
    assert jobs == [read_json] * 3


async def test_a_large_body_that_finds_no_free_thread_is_refused(alice: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*given: Any) -> None:
        raise DatabaseBusy(BUSY)

    monkeypatch.setattr(body_parser, "in_read_thread", busy)
    body = b'{"content": "' + b"x" * MEGABYTE + b'"}'
    sender = Sender("/api/memories", body, announced=len(body), **await key_of(alice))
    assert (await sender.go(), sender.code()) == (503, "overloaded")
    assert sender.headers.keys() >= {b"Retry-After", b"x-request-id"}


@pytest.mark.parametrize("announced", [600 * MEGABYTE, 30 * MEGABYTE, SMALL_BYTES + 1])
async def test_an_anonymous_client_may_send_pages_only_small_bodies(announced: int) -> None:
    sender = Sender("/login/", b"x" * MEGABYTE, ends=False, announced=announced)
    assert (await sender.go(), sender.read) == (413, 0)
    assert sender.headers[b"Content-Type"].startswith(b"text/html")


async def test_an_anonymous_clients_chunks_are_limited_too() -> None:
    sender = Sender("/login/", *[b"x" * 10_000] * 1000, ends=False)
    assert await sender.go() == 413
    assert sender.read <= SMALL_BYTES + 10_000


async def test_a_signed_in_person_may_send_pages_as_much_as_the_apis(alice: Owner, settings: Settings) -> None:
    settings.DAYBOOK_MAX_BODY = 200_000
    login = await in_thread(login_of, alice)
    form = {"content-type": "application/x-www-form-urlencoded"}
    within = Sender("/account/time-zone/", b"x=" + b"y" * 100_000, announced=100_002, **login, **form)
    assert await within.go() == 403  # the body was read; the CSRF token is missing
    above = Sender("/account/time-zone/", *[b"x" * 50_000] * 5, announced=250_000, **login, **form)
    assert await above.go() == 413


@pytest.mark.parametrize("kind", ['form; x="' + ";" * 60_000, "form; x*=undefined''%41", "form; x*=punycode''%41-a"])
@pytest.mark.parametrize(("path", "status"), [("/login/", 403), ("/api/memories", 401), ("/healthz", 200)])
async def test_a_strange_content_type_costs_nothing(path: str, status: int, kind: str) -> None:
    sender = Sender(path, b"{}", announced=2, **{"content-type": kind})
    began = time.process_time()
    assert await sender.go() == status
    assert time.process_time() - began < 1  # it was 3 s


@pytest.mark.parametrize("charset", ["zlib", "punycode", "latin1"])
async def test_a_form_with_files_is_in_utf_8(charset: str) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="username"\r\n\r\nA-a\r\n--b--\r\n'
    headers = {
        "content-type": f"multipart/form-data; boundary=b; charset={charset}",
        "cookie": f"daybook_csrf={'a' * 32}",
    }
    sender = Sender("/login/", form, announced=len(form), **headers)
    assert await sender.go() == 400
    assert b"send forms in UTF-8" in sender.answer


async def test_a_body_above_the_limit_is_refused(alice: Owner, settings: Settings) -> None:
    settings.DAYBOOK_MAX_BODY = 100_000
    for announced in (150_000, None):
        sender = Sender("/api/memories/search", *[b" " * 50_000] * 3, announced=announced, **await key_of(alice))
        assert (await sender.go(), sender.code()) == (413, "too_large")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/memories/search", 413), ("/mcp", 413), ("/v1/chat/completions", 400), ("/api/memories/ingest", 400)],
)
async def test_only_conversations_and_imports_may_use_the_full_body_limit(alice: Owner, path: str, status: int) -> None:
    body = b" " * (JSON_BYTES + 1)
    sender = Sender(path, body, announced=len(body), **await key_of(alice))
    assert await sender.go() == status


async def test_a_raised_message_limit_raises_the_body_limit(alice: Owner, settings: Settings) -> None:
    settings.DAYBOOK_MAX_MESSAGE = JSON_BYTES
    body = json.dumps({"query": "tea"}).encode() + b" " * JSON_BYTES
    sender = Sender("/api/memories/search", body, announced=len(body), **await key_of(alice))
    assert await sender.go() == 200


async def test_a_silent_client_times_out(alice: Owner, settings: Settings) -> None:
    settings.BODY_SILENCE_SECONDS = 0.1
    sender = Sender("/api/memories/search", b" " * 100_000, ends=False, announced=200_000, **await key_of(alice))
    assert (await sender.go(), sender.code()) == (408, "request_timeout")
    page = Sender("/login/", b"x=", ends=False, announced=1000)
    assert await page.go() == 408
    assert _budget.held == 0


async def test_a_slow_body_times_out(alice: Owner, settings: Settings) -> None:
    settings.BODY_SECONDS = 0.1
    sender = Sender("/api/memories/search", b" " * 1000, ends=False, announced=2000, **await key_of(alice))
    assert (await sender.go(), sender.code()) == (408, "request_timeout")


async def test_the_bodies_of_all_requests_share_a_budget(alice: Owner, settings: Settings) -> None:
    settings.BODY_BUDGET = 150_000
    key = await key_of(alice)
    waiting = Sender("/api/memories/search", b" " * 100_000, ends=False, announced=110_000, **key)
    first = asyncio.create_task(waiting.go())
    await eventually_async(lambda: bool(_budget.held), within=10)
    second = Sender("/api/memories/search", b" " * 100_000, announced=100_000, **key)
    assert (await second.go(), second.code()) == (503, "overloaded")
    assert int(second.headers[b"Retry-After"]) >= 1
    first.cancel()
    await asyncio.wait([first])
    assert _budget.held == 0


async def test_an_owner_has_a_share_of_the_budget(alice: Owner, charlie: Owner, settings: Settings) -> None:
    settings.BODY_BUDGET, settings.DAYBOOK_MAX_BODY = 300_000, 150_000
    key, other = await key_of(alice), await key_of(charlie)
    waiting = Sender("/api/memories/search", b" " * 100_000, ends=False, announced=110_000, **key)
    first = asyncio.create_task(waiting.go())
    await eventually_async(lambda: bool(_budget.held), within=10)
    second = Sender("/api/memories/search", b" " * 100_000, announced=100_000, **key)
    assert (await second.go(), second.code()) == (503, "overloaded")
    third = Sender("/api/memories/search", b" " * 100_000, announced=100_000, **other)
    assert (await third.go(), third.code()) == (400, "invalid_request")
    first.cancel()
    await asyncio.wait([first])
    assert (_budget.held, _budget.by_owner) == (0, {})


@pytest.mark.parametrize("known", [False, True])
async def test_a_large_body_is_parsed_when_it_is_its_senders_turn(
    alice: Owner, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    owners: list[Any] = []

    async def parse_ahead(request: Any) -> None:
        owners.append(working_for.get())

    monkeypatch.setattr(asgi_handler, "parse_ahead", parse_ahead)
    key = await key_of(alice)
    if known:
        await Sender("/v1/completions", b"{}", announced=2, **key).go()
    sender = Sender("/api/memories/search", b" " * 100_000, announced=100_000, **key)
    assert (await sender.go(), owners) == (400, [alice.pk])


@pytest.mark.parametrize("ending", [True, False], ids=["shutdown", "disconnected"])
async def test_an_import_that_a_shutdown_interrupts_is_answered(
    alice: Owner, monkeypatch: pytest.MonkeyPatch, ending: bool
) -> None:
    begun = asyncio.Event()

    async def endless(work: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(transfer, "in_slices", endless)
    sender = Sender("/api/import", b'{"content": "Likes tea."}', announced=25, **await key_of(alice))
    going = asyncio.create_task(sender.go())
    await begun.wait()
    monkeypatch.setattr(active, "_ending", ending)
    going.cancel()
    if not ending:
        with pytest.raises(asyncio.CancelledError):
            await going
        assert sender.status == 0
        return
    await going
    assert (sender.status, sender.code(), sender.headers[b"Retry-After"]) == (503, "overloaded", b"5")
    assert "x-request-id" in {name.decode().lower() for name in sender.headers}
