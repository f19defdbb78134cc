"""Fixtures for the tests of upstreams: a server of each kind, in this process."""

import pytest
from pytest_django.fixtures import Settings

from gateway import upstream as upstreams
from gateway.upstream import OpenAIModel
from tests.upstreams.rules import RULES
from tests.upstreams.server import KEY, RuledServer, Serve, connect_to


@pytest.fixture
def serve(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return a function that configures the default upstream as one kind of server and answers as that server."""
    upstreams.install(OpenAIModel())

    def start(kind: str) -> RuledServer:
        server = RuledServer(RULES[kind])
        settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": KEY, "dialect": kind}}
        connect_to(server, monkeypatch)
        return server

    return start


@pytest.fixture
def server(serve: Serve) -> RuledServer:
    """A server of the kind "openai"."""
    return serve("openai")


@pytest.fixture
def undescribed_server(server: RuledServer, settings: Settings) -> RuledServer:
    """The same server, whose dialect does not cover what it refuses, so that nothing is left out before."""
    settings.DAYBOOK_UPSTREAMS = {"default": {**settings.DAYBOOK_UPSTREAMS["default"], "dialect": "vllm"}}
    return server
