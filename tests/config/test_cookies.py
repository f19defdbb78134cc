"""Cookies are read before anyone has signed in."""

import time

import httpx2
import pytest
from django.conf import settings

from config.asgi import application
from memories.database.access import in_thread
from memories.models import Owner
from tests.pages import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


async def get(path: str, cookie: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.get(path, headers={"cookie": cookie})


async def test_a_cookie_with_many_backslashes_does_not_stop_the_process() -> None:
    await get("/login/", "")
    cookie = 'a="' + 30_000 * "\\" + '"'
    begun = time.process_time()
    assert (await get("/login/", cookie)).status_code == 200
    assert time.process_time() - begun < 1  # older versions of Python would take several seconds


def session_of(alice: Owner) -> str:
    return client_of(alice).cookies[settings.SESSION_COOKIE_NAME].value


async def test_another_programs_cookie_with_backslashes_does_not_sign_out(alice: Owner) -> None:
    session = await in_thread(session_of, alice)
    assert (await get("/memories/", rf'theirs="a\054b"; {settings.SESSION_COOKIE_NAME}={session}')).status_code == 200
