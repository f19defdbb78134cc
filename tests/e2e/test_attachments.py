"""An image through the real server, and the deletion of its file by the real worker."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.http_user import HttpUser
from tests.e2e.running import RunningDaybook
from tests.gateway.attachments import LARGE, picture
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.any_database]


def test_an_image_is_sent_upstream_survives_a_restart_and_is_deleted_with_its_session(
    start_daybook: Callable[..., RunningDaybook], home: Path, upstream: UpstreamServer
) -> None:
    env = {"DAYBOOK_ADMIN_PASSWORD": "correct horse", "OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x"}
    daybook = start_daybook(env)
    alice = HttpUser(daybook.address)
    alice.log_in("admin", "correct horse")
    _, session = alice.call("POST", "/api/sessions", {"agent": "assistant"})
    content_parts = [{"type": "text", "text": "What is this?"}, picture(LARGE * 20)]
    for content in (content_parts, "And now?"):
        status, turn = alice.call("POST", f"/api/sessions/{session['id']}/turns", {"content": content})
        assert (status, turn["state"]) == (200, "completed")
        assert content_parts in [message["content"] for message in upstream.requests()[-1]["body"]["messages"]]
    (file,) = [path for path in (home / "attachments").rglob("*") if path.is_file()]
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (LARGE * 20, 0o600)
    daybook.stop()
    daybook = start_daybook(env)
    alice = HttpUser(daybook.address)
    alice.log_in("admin", "correct horse")
    assert alice.call("GET", f"/api/sessions/{session['id']}/messages")[1]["data"][0]["content"] == content_parts
    assert alice.call("DELETE", f"/api/sessions/{session['id']}")[0] in {200, 204}
    eventually(lambda: not file.exists(), within=30, description="the deletion of the file")
