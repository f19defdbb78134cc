"""Fixtures for the tests of upstreams: a server of each kind, in this process."""

from collections.abc import Callable

import pytest
from pytest_django.fixtures import Settings

from gateway import upstream as upstreams
from gateway.upstream import OpenAIModel
from tests.upstreams.rules import RULES
from tests.upstreams.server import KEY, RuledServer, connect_to


@pytest.fixture
def serve(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], RuledServer]:
    """Return a function that configures the default upstream as one kind of server and answers as that server."""
    upstreams.install(OpenAIModel())

    def start(kind: str) -> RuledServer:
        server = RuledServer(RULES[kind])
        settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": KEY, "dialect": kind}}
        connect_to(server, monkeypatch)
        return server

    return start
