"""Reviews end to end: real web and worker processes, a scripted model server, websockets"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.conftest import StartDaybook
from tests.e2e.http_user import HttpUser
from tests.e2e.running import RunningDaybook, manage
from tests.upstream_server import UpstreamServer
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

REVIEWER = "reviewer"
PASSWORD = "correct horse battery"


def start(start_daybook: StartDaybook, upstream: UpstreamServer, folder: Path, **settings: Any) -> RunningDaybook:
    """A Daybook whose one agent is reviewed by a model of its own."""
    agent = {"model": "talker", "memory_review_model": REVIEWER, "memory_review_verbose": True, **settings}
    file = folder / "agents.json"  # JSON is YAML too
    file.write_text(json.dumps({"agents": {"assistant": agent}}))
    env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_AGENTS": str(file)}
    return start_daybook(env | {"DAYBOOK_ADMIN_PASSWORD": PASSWORD})


def logged_in(daybook: RunningDaybook) -> HttpUser:
    user = HttpUser(daybook.address)
    user.log_in("admin", PASSWORD)
    return user


def new_session(user: HttpUser) -> str:
    status, session = user.call("POST", "/api/sessions", {"agent": "assistant"})
    assert status == 201
    return str(session["id"])


def turn(user: HttpUser, session: str, text: str) -> dict[str, Any]:
    status, said = user.call("POST", f"/api/sessions/{session}/turns", {"content": text})
    assert (status, said["state"]) == (200, "completed")
    return dict(said)


def reviews(user: HttpUser) -> list[dict[str, Any]]:
    """All reviews, oldest first."""
    return list(reversed(user.call("GET", "/api/reviews")[1]["data"]))


def ended(user: HttpUser, number: int) -> list[dict[str, Any]]:
    """The reviews, when that many have ended; else nothing."""
    found = reviews(user)
    over = [review for review in found if review["state"] not in {"scheduled", "running"}]
    return found if len(over) == number else []


def add(*contents: str) -> dict[str, Any]:
    calls = [{"name": "add_memory", "arguments": {"content": text, "target": "user"}} for text in contents]
    return {"model": REVIEWER, "calls": calls}


def socket_of(daybook: RunningDaybook, user: HttpUser, after: int | None = None) -> ClientConnection:
    address = f"ws://127.0.0.1:{daybook.port}/ws/notifications/" + (f"?after={after}" if after is not None else "")
    origin = f"http://127.0.0.1:{daybook.port}"
    return connect(address, origin=origin, additional_headers={"Cookie": user.cookies()})  # type: ignore[arg-type]


def told(socket: ClientConnection, last: str) -> list[dict[str, Any]]:
    """What a socket is told, up to the first notification of that kind."""
    found = [json.loads(socket.recv(timeout=20))]
    while found[-1]["kind"] != last:
        found.append(json.loads(socket.recv(timeout=20)))
    return found


def silent(socket: ClientConnection, seconds: float = 0.5) -> bool:
    try:
        socket.recv(timeout=seconds)
    except TimeoutError:
        return True
    return False


def test_ten_turns_at_an_interval_of_three_are_three_reviews(
    start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path
) -> None:
    daybook = start(start_daybook, upstream, tmp_path, memory_review_interval=3)
    user = logged_in(daybook)
    upstream.script(add("Is vegetarian."))
    session = new_session(user)
    counters = [turn(user, session, f"Message {n}")["turns_since_memory_review"] for n in range(1, 11)]
    assert counters == [1, 2, 0, 1, 2, 0, 1, 2, 0, 1]
    done = eventually(lambda: ended(user, 3), within=20, saying="Three reviews")
    assert sorted(review["state"] for review in done) == ["nothing_to_save", "nothing_to_save", "saved"]
    _, memories = user.call("GET", "/api/memories?write_origin=background_review")
    assert [memory["content"] for memory in memories["data"]] == ["Is vegetarian."]
    asked = [request["body"] for request in upstream.requests(REVIEWER)]
    assert {tuple(tool["function"]["name"] for tool in body["tools"]) for body in asked} == {
        ("add_memory", "update_memory", "delete_memory")
    }
    spoken = [m["content"] for m in asked[0]["messages"][:-1]]
    assert spoken == ["Message 1", "Hello.", "Message 2", "Hello.", "Message 3", "Hello."]
    _, health = user.call("GET", "/api/memories/health")
    assert health["data"][0]["text"].startswith("Covers 0 of 1 session. About you 1 % full. Last review just now")


def test_turns_go_on_while_a_review_hangs_and_it_is_cut_with_nothing_left_behind(
    start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path
) -> None:
    daybook = start(start_daybook, upstream, tmp_path, memory_review_interval=3, memory_review_timeout=3)
    user = logged_in(daybook)
    upstream.script(add("Is vegetarian."), {"model": REVIEWER, "hang": "before"})
    session = new_session(user)
    for number in range(3):
        turn(user, session, f"Message {number}")
    eventually(lambda: len(upstream.requests(REVIEWER)) == 2, within=20, saying="The hanging request")
    began = time.monotonic()
    for number in range(2):
        turn(user, session, f"Meanwhile {number}")
    assert reviews(user)[0]["state"] == "running", f"two turns took {time.monotonic() - began:.1f} s"
    (review,) = eventually(lambda: ended(user, 1), within=20)
    assert (review["state"], review["attempts"], review["writes"]) == ("timed_out", 1, [])
    assert user.call("GET", "/api/memories")[1]["data"] == []
    assert upstream.requests(REVIEWER)[1]["state"] == "hung_up"
    turn(user, session, "The sixth.")  # its review reads the turns of the one that was cut
    eventually(lambda: ended(user, 2), within=20)
    first = upstream.requests(REVIEWER)[2]["body"]["messages"][0]
    assert first["content"] == "Message 0"


def test_each_socket_is_told_once_also_after_a_reconnect_and_nobody_else_is(
    start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path, home: Path, storage: dict[str, str]
) -> None:
    daybook = start(start_daybook, upstream, tmp_path, memory_review_interval=1)
    code = f"from django.contrib.auth.models import User; User.objects.create_user('charlie', password='{PASSWORD}')"
    assert manage(home, "shell", "-c", code, env=storage).returncode == 0
    user, charlie = logged_in(daybook), HttpUser(daybook.address)
    charlie.log_in("charlie", PASSWORD)
    upstream.script(add("Is vegetarian.", "Likes tea."))
    session = new_session(user)
    with (
        socket_of(daybook, user) as one,
        socket_of(daybook, user) as two,
        socket_of(daybook, charlie) as other,
    ):
        turn(user, session, "I'm a vegetarian who likes tea.")
        for socket in (one, two):
            quiet, loud = told(socket, "review.saved")
            assert (quiet["kind"], loud["text"]) == (
                "memory.changed",
                "Saved 2 memories from your last conversation.",
            )
        assert silent(other)
        assert silent(one, 0.1)
    with socket_of(daybook, user, after=int(loud["id"])) as again:
        assert silent(again)
    with socket_of(daybook, user, after=int(quiet["id"])) as late:
        assert [note["id"] for note in told(late, "review.saved")] == [loud["id"]]
        assert silent(late, 0.1)
    with socket_of(daybook, user, after=int(loud["id"])) as page:
        _, undone = user.call("POST", f"/api/reviews/{loud['review_id']}/undo", {})
        assert (undone["undone"], undone["left_alone"]) == (loud["memory_ids"], [])
        assert [note["kind"] for note in told(page, "review.undone")] == ["memory.changed", "review.undone"]
    assert user.call("GET", "/api/memories")[1]["data"] == []


def test_a_model_server_that_is_asked_too_much_is_asked_again(
    start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path
) -> None:
    daybook = start(start_daybook, upstream, tmp_path, memory_review_interval=1)
    user = logged_in(daybook)
    upstream.script({"model": REVIEWER, "status": 429, "headers": {"Retry-After": "6"}}, add("Is vegetarian."))
    turn(user, new_session(user), "I'm vegetarian.")
    waiting = eventually(lambda: [r for r in reviews(user) if r["attempts"] and r["state"] == "scheduled"], within=20)
    assert waiting[0]["error"]["code"] == "rate_limited"
    (review,) = eventually(lambda: ended(user, 1), within=30)
    assert (review["state"], review["attempts"]) == ("saved", 2)


def test_what_a_review_would_write_is_shown_without_writing(
    start_daybook: StartDaybook, upstream: UpstreamServer, tmp_path: Path, home: Path, storage: dict[str, str]
) -> None:
    daybook = start(start_daybook, upstream, tmp_path)
    user = logged_in(daybook)
    session = new_session(user)
    turn(user, session, "I'm vegetarian.")
    upstream.script(add("Is vegetarian."))
    env = storage | {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x"}
    shown = manage(home, "reviews", "try", "--session", session, env=env)
    assert (shown.returncode, "Unclosed" in shown.stderr) == (0, False), shown.stderr
    assert shown.stdout.splitlines() == [
        "add [user, general] Is vegetarian.",
        "",
        "reviewer, 2 steps, 20 tokens. Nothing was written.",
    ]
    assert reviews(user) == []
    assert user.call("GET", "/api/memories")[1]["data"] == []
    refused = manage(home, "reviews", "try", "--session", "nonsense", env=env)
    assert (refused.returncode, refused.stderr.strip()) == (1, "CommandError: There is no such session.")
