"""Reviews end to end: real web and worker processes, a scripted model server, and websockets."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.conftest import migrated_storage
from tests.e2e.http_user import HttpUser
from tests.e2e.running import RunningDaybook, manage, running_daybook
from tests.upstream_server import UpstreamServer, serving_upstream
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

REVIEWER = "reviewer"
PASSWORD = "correct horse battery"


AGENTS: dict[str, dict[str, Any]] = {
    "seldom": {},
    "each": {"memory_review_interval": 1},
    "third": {"memory_review_interval": 3},
    "hasty": {"memory_review_interval": 3, "memory_review_timeout": 3},
}
"""The agents' settings that differ from the common ones."""
PEOPLE = ("ten-turns", "hanging", "sockets", "nobody", "asked-again", "trying")
"""The users of these tests, who share one Daybook but no data."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A Daybook, its model server, and the environment variables for commands."""

    daybook: RunningDaybook
    upstream: UpstreamServer
    variables: dict[str, str]

    def logged_in(self, name: str) -> HttpUser:
        user = HttpUser(self.daybook.address)
        user.log_in(name, PASSWORD)
        return user


@pytest.fixture(scope="module")
def running_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("reviews")
    home = folder / "home"
    common = {"model": "talker", "memory_review_model": REVIEWER, "memory_review_verbose": True}
    file = folder / "agents.json"  # JSON is YAML too
    file.write_text(json.dumps({"agents": {name: common | own for name, own in AGENTS.items()}}))
    with serving_upstream() as upstream, migrated_storage(home) as storage:
        env = {"OPENAI_BASE_URL": upstream.url, "OPENAI_API_KEY": "x", "DAYBOOK_AGENTS": str(file)}
        code = (
            "from django.contrib.auth.models import User\n"
            f"for name in {PEOPLE}: User.objects.create_user(name, password={PASSWORD!r})"
        )
        created = manage(home, "shell", "-c", code, env=storage | env)
        assert created.returncode == 0, created.stderr
        with running_daybook(home, storage | env) as daybook:
            yield Stage(daybook, upstream, storage | env)


@pytest.fixture
def stage(running_stage: Stage) -> Iterator[Stage]:
    running_stage.upstream.reset()
    yield running_stage
    running_stage.upstream.reset()


def new_session(user: HttpUser, agent: str) -> str:
    status, session = user.call("POST", "/api/sessions", {"agent": agent})
    assert status == 201
    return str(session["id"])


def turn(user: HttpUser, session: str, text: str) -> dict[str, Any]:
    status, answer = user.call("POST", f"/api/sessions/{session}/turns", {"content": text})
    assert (status, answer["state"]) == (200, "completed")
    return dict(answer)


def reviews(user: HttpUser) -> list[dict[str, Any]]:
    """Return all reviews, oldest first."""
    return list(reversed(user.call("GET", "/api/reviews")[1]["data"]))


def if_ended(user: HttpUser, number: int) -> list[dict[str, Any]]:
    """Return all reviews if that many have ended, else none."""
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


def notifications_until(socket: ClientConnection, last: str) -> list[dict[str, Any]]:
    """Return a socket's notifications up to the first of kind `last`."""
    notifications = [json.loads(socket.recv(timeout=20))]
    while notifications[-1]["kind"] != last:
        notifications.append(json.loads(socket.recv(timeout=20)))
    return notifications


def silent(socket: ClientConnection, seconds: float = 0.5) -> bool:
    try:
        socket.recv(timeout=seconds)
    except TimeoutError:
        return True
    return False


def test_ten_turns_at_an_interval_of_three_cause_three_reviews(stage: Stage) -> None:
    user, upstream = stage.logged_in("ten-turns"), stage.upstream
    upstream.script(add("Is vegetarian."))
    session = new_session(user, "third")
    counters = [turn(user, session, f"Message {n}")["turns_since_memory_review"] for n in range(1, 11)]
    assert counters == [1, 2, 0, 1, 2, 0, 1, 2, 0, 1]
    done = eventually(lambda: if_ended(user, 3), within=20, description="three reviews")
    assert sorted(review["state"] for review in done) == ["nothing_to_save", "nothing_to_save", "saved"]
    _, memories = user.call("GET", "/api/memories?write_origin=background_review")
    assert [memory["content"] for memory in memories["data"]] == ["Is vegetarian."]
    bodies = [request["body"] for request in upstream.requests(REVIEWER)]
    assert {tuple(tool["function"]["name"] for tool in body["tools"]) for body in bodies} == {
        ("add_memory", "update_memory", "delete_memory")
    }
    transcript = [m["content"] for m in bodies[0]["messages"][:-1]]
    assert transcript == ["Message 1", "Hello.", "Message 2", "Hello.", "Message 3", "Hello."]
    _, health = user.call("GET", "/api/memories/health")
    assert health["data"][0]["text"].startswith("Covers 0 of 1 session. About you 1 % full. Last review just now")


def test_turns_continue_while_a_review_hangs_and_its_timeout_leaves_nothing_behind(stage: Stage) -> None:
    user, upstream = stage.logged_in("hanging"), stage.upstream
    upstream.script(add("Is vegetarian."), {"model": REVIEWER, "hang": "before"})
    session = new_session(user, "hasty")
    for number in range(3):
        turn(user, session, f"Message {number}")
    eventually(lambda: len(upstream.requests(REVIEWER)) == 2, within=20, description="the hanging request")
    began = time.monotonic()
    for number in range(2):
        turn(user, session, f"Meanwhile {number}")
    assert reviews(user)[0]["state"] == "running", f"two turns took {time.monotonic() - began:.1f} s"
    (review,) = eventually(lambda: if_ended(user, 1), within=20)
    assert (review["state"], review["attempts"], review["writes"]) == ("timed_out", 1, [])
    assert user.call("GET", "/api/memories")[1]["data"] == []
    assert upstream.requests(REVIEWER)[1]["state"] == "hung_up"
    turn(user, session, "The sixth.")  # its review also covers the turns of the timed-out one
    eventually(lambda: if_ended(user, 2), within=20)
    first = upstream.requests(REVIEWER)[2]["body"]["messages"][0]
    assert first["content"] == "Message 0"


def test_each_socket_of_the_owner_gets_each_notification_once(stage: Stage) -> None:
    daybook, upstream = stage.daybook, stage.upstream
    user, nobody = stage.logged_in("sockets"), stage.logged_in("nobody")
    upstream.script(add("Is vegetarian.", "Likes tea."))
    session = new_session(user, "each")
    with (
        socket_of(daybook, user) as one,
        socket_of(daybook, user) as two,
        socket_of(daybook, nobody) as other,
    ):
        turn(user, session, "I'm a vegetarian who likes tea.")
        for socket in (one, two):
            quiet, loud = notifications_until(socket, "review.saved")
            assert (quiet["kind"], loud["text"]) == (
                "memory.changed",
                "Saved 2 memories from your last conversation.",
            )
        assert silent(other)
        assert silent(one, 0.1)
    with socket_of(daybook, user, after=int(loud["id"])) as again:
        assert silent(again)
    with socket_of(daybook, user, after=int(quiet["id"])) as late:
        assert [note["id"] for note in notifications_until(late, "review.saved")] == [loud["id"]]
        assert silent(late, 0.1)
    with socket_of(daybook, user, after=int(loud["id"])) as page:
        _, undone = user.call("POST", f"/api/reviews/{loud['review_id']}/undo", {})
        assert (undone["undone"], undone["left_alone"]) == (loud["memory_ids"], [])
        assert [note["kind"] for note in notifications_until(page, "review.undone")] == [
            "memory.changed",
            "review.undone",
        ]
    assert user.call("GET", "/api/memories")[1]["data"] == []


def test_a_rate_limited_review_is_retried(stage: Stage) -> None:
    user, upstream = stage.logged_in("asked-again"), stage.upstream
    limited = {"model": REVIEWER, "status": 429}
    upstream.script(
        limited, limited, limited, add("Is vegetarian.")
    )  # an attempt of a review sends up to three requests
    turn(user, new_session(user, "each"), "I'm vegetarian.")
    waiting = eventually(lambda: [r for r in reviews(user) if r["attempts"] and r["state"] == "scheduled"], within=20)
    assert waiting[0]["error"]["code"] == "rate_limited"
    (review,) = eventually(lambda: if_ended(user, 1), within=30)
    assert (review["state"], review["attempts"]) == ("saved", 2)


def test_reviews_try_shows_the_writes_without_saving_them(stage: Stage) -> None:
    user, upstream, home = stage.logged_in("trying"), stage.upstream, stage.daybook.home
    session = new_session(user, "seldom")
    turn(user, session, "I'm vegetarian.")
    upstream.script(add("Is vegetarian."))
    shown = manage(home, "reviews", "try", "--session", session, env=stage.variables)
    assert (shown.returncode, "Unclosed" in shown.stderr) == (0, False), shown.stderr
    assert shown.stdout.splitlines() == [
        "add [user, general] Is vegetarian.",
        "",
        "reviewer, 2 steps, 20 tokens. Nothing was written.",
    ]
    assert reviews(user) == []
    assert user.call("GET", "/api/memories")[1]["data"] == []
    refused = manage(home, "reviews", "try", "--session", "nonsense", env=stage.variables)
    assert (refused.returncode, refused.stderr.strip()) == (1, "CommandError: There is no such session.")
