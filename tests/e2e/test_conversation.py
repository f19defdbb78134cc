"""The main use case, end to end: `up`, ten turns, background reviews, a notification over a real websocket, the
admin."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.http_user import HttpUser
from tests.e2e.running import AS_SHIPPED, RunningDaybook, wait_until_none_left
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

MESSAGES = (
    "Hello there.",
    "I'm vegetarian and I prefer short answers.",
    "What could I cook tonight?",
    "I live in Lisbon.",
    "Which herbs grow there?",
    "Thanks.",
    "My sister is called Marta.",
    "What should I give her?",
    "Good idea.",
    "What do you know about me?",
)


def test_ten_turns_are_reviewed_and_remembered(start_daybook: Callable[..., RunningDaybook], home: Path) -> None:
    daybook = start_daybook(AS_SHIPPED | {"DAYBOOK_ADMIN_PASSWORD": "correct horse"})
    alice = HttpUser(daybook.address)
    alice.log_in("admin", "correct horse")
    _, session = alice.call("POST", "/api/sessions", {"agent": "assistant"})

    socket_address = f"ws://127.0.0.1:{daybook.port}/ws/notifications/"
    origin = f"http://127.0.0.1:{daybook.port}"
    with connect(socket_address, origin=origin, additional_headers={"Cookie": alice.cookies()}) as socket:  # type: ignore[arg-type]
        counters = []
        for number, text in enumerate(MESSAGES, start=1):
            status, turn = alice.call("POST", f"/api/sessions/{session['id']}/turns", {"content": text})
            assert (status, turn["state"]) == (200, "completed")
            counters.append(turn["turns_since_memory_review"])
            if number == 3:
                assert _next_saved_notification(socket) == "Saved 2 memories from your last conversation."
        assert counters == [1, 2, 0, 1, 2, 0, 1, 2, 0, 1]
    assert "Is vegetarian." in turn["content"]  # the last turn had the first review's memory

    reviews = eventually(lambda: _three_ended_reviews(alice), within=20, description="three reviews")
    assert {review["trigger"] for review in reviews} == {"interval"}
    _, memories = alice.call("GET", "/api/memories?write_origin=background_review")
    assert "Is vegetarian." in {memory["content"] for memory in memories["data"]}

    for page, words in {
        "/admin/memories/memory/": ("Is vegetarian.", "background_review"),
        "/admin/gateway/session/": ("Hello there.", "assistant"),
        "/admin/reviews/reviewrun/": ("Saved",),
        "/admin/memories/revision/": ("add",),
    }.items():
        shown = alice.page(page)
        assert all(word in shown for word in words), f"{page} does not show {words}"

    assert daybook.stop() == 0
    wait_until_none_left(home)
    again = start_daybook(AS_SHIPPED)
    alice = HttpUser(again.address)
    alice.log_in("admin", "correct horse")
    _, stored = alice.call("GET", f"/api/sessions/{session['id']}")
    assert (stored["turns"], stored["turns_since_memory_review"]) == (10, 1)


def _next_saved_notification(socket: ClientConnection) -> str:
    """Return the text of the next notification of a saved review."""
    while (notification := json.loads(socket.recv(timeout=20)))["kind"] != "review.saved":
        pass
    return str(notification["text"])


def _three_ended_reviews(user: HttpUser) -> list[dict[str, str]]:
    _, reviews = user.call("GET", "/api/reviews")
    ended = [review for review in reviews["data"] if review["state"] in {"saved", "nothing_to_save"}]
    return ended if len(ended) == 3 else []
