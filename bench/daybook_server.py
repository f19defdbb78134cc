"""Daybook for a benchmark: the product's own `manage.py up` on a fresh, temporary DAYBOOK_HOME.

Uses only the public contract (commands, environment, agents file, `/api`), so it measures what a user gets. The agent
`assistant` has injection and memory tools, `plain` has neither; neither schedules reviews, whose cost is measured
elsewhere.
"""

import http.cookiejar
import json
import secrets
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from processes import (
    REPO,
    BenchError,
    Server,
    clean_environment,
    free_port,
    product_python,
    server_start,
    server_wait,
)

READY_SECONDS = 60.0
# One model per agent: the upstream counts requests by model name.
INJECTING_MODEL, PLAIN_MODEL = "scripted-daybook", "scripted-daybook-plain"

# Too small for all memories, so that a turn has both a frozen block and a recall for the rest.
FROZEN_CHARACTERS = 500

MEMORIES = (
    ("preference", "User is vegetarian and likes quick dinners"),
    ("preference", "User prefers short answers without preamble"),
    ("preference", "User uses a dark theme in every editor"),
    ("preference", "User wants deployment notes as a numbered list"),
    ("preference", "User likes to travel by train and avoids flying"),
    ("fact", "User lives in Porto, near the river"),
    ("fact", "User's sister is called Marta; her birthday is in May"),
    ("fact", "User works as a platform engineer at a shipping company"),
    ("fact", "User's manager is called Helena and likes plain wording"),
    ("fact", "User runs half marathons and trains on Tuesdays"),
    ("project", "The current project is a Python service named Tideline"),
    ("project", "The release of Tideline was moved to the end of the month"),
    ("project", "Planning meetings are on Monday at ten, Lisbon time"),
    ("project", "The team tests with pytest and formats with ruff"),
    ("project", "The staging database is restored every Sunday night"),
    ("habit", "User cooks on weekends and orders food on Fridays"),
    ("habit", "User reads on the train and takes notes by hand"),
    ("habit", "User does not take calls before nine in the morning"),
    ("habit", "User keeps gifts below forty euros"),
    ("habit", "User writes commit messages in the imperative"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daybook:
    """A running Daybook and an API key of its first user."""

    server: Server
    key: str
    home: Path
    env: dict[str, str]

    def manage(self, *arguments: str) -> str:
        """Run a management command and return its output. Raises BenchError if it fails."""
        command = [product_python(), str(REPO / "manage.py"), *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise BenchError(f"manage.py {arguments[0]} failed: {done.stderr[-300:]}")
        return done.stdout

    def trusted_key(self) -> str:
        """Create a key that may name end users with X-Daybook-User; each of them is a separate owner."""
        printed = self.manage("apikey", "create", "--user", "admin", "--name", "trusted", "--trusted")
        return next(word for word in printed.split() if word.startswith("dbk_"))

    def login(self) -> tuple[str, str]:
        """Log the administrator in; return the Cookie header and the CSRF token."""
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        browser.open(f"{self.server.url}/login/", timeout=30).read()
        form = {"username": "admin", "password": self.env["DAYBOOK_ADMIN_PASSWORD"]}
        form["csrfmiddlewaretoken"] = next(cookie.value or "" for cookie in jar if "csrf" in cookie.name)
        request = urllib.request.Request(f"{self.server.url}/login/", urllib.parse.urlencode(form).encode())
        request.add_header("Referer", f"{self.server.url}/login/")
        browser.open(request, timeout=30).read()
        cookies = {cookie.name: cookie.value or "" for cookie in jar}
        if not any("session" in name for name in cookies):
            raise BenchError("the administrator could not log in")
        token = next(value for name, value in cookies.items() if "csrf" in name)
        return "; ".join(f"{name}={value}" for name, value in cookies.items()), token

    def call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """Send one request to the native API and return its JSON. Raises BenchError with the response if it fails."""
        request = urllib.request.Request(
            self.server.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as exc:
            body_start = exc.read(300).decode(errors="replace")
            raise BenchError(f"Daybook answered {exc.code} to {method} {path}: {body_start}") from exc
        except (OSError, ValueError) as exc:
            raise BenchError(f"{method} {path} failed: {exc}") from exc

    def stored_turns(self, session: str) -> int:
        """Return the session's number of turns according to the native API; 0 if it has no answer."""
        turns = self.call("GET", f"/api/sessions/{session}")["turns"]
        messages = self.call("GET", f"/api/sessions/{session}/messages")["data"]
        answered = isinstance(messages, list) and any(message["role"] == "assistant" for message in messages)
        return int(str(turns)) if answered else 0


def agents_file() -> str:
    """Return the benchmark's agents file; JSON is valid YAML."""
    common = {"book": "main", "memory_review_interval": 0, "memory_review_idle_minutes": 0}
    injecting = {
        "model": INJECTING_MODEL,
        "instructions": "You are a helpful assistant. Be brief and kind.",
        "tools": [{"type": "memory"}],
        "inject_memories": True,
        "frozen_char_limit": FROZEN_CHARACTERS,
    }
    plain = {"model": PLAIN_MODEL, "instructions": "You are a helpful assistant.", "inject_memories": False}
    return json.dumps({"agents": {"assistant": common | injecting, "plain": common | plain}}, indent=2)


def daybook_start(
    stack: ExitStack,
    upstream: Server,
    *,
    server: str = "",
    memories: int = 20,
    agents: str = "",
    settings: Mapping[str, str] | None = None,
) -> Daybook:
    """Start the product against `upstream`, wait until it is ready, and seed the memories.

    `server` is DAYBOOK_SERVER ("" for the product's default), `agents` the text of another agents file, `settings` more
    environment variables. The stack stops the server and removes its home. Raises BenchError if it cannot start.
    """
    if not (REPO / "manage.py").exists():
        raise BenchError("Daybook cannot start: there is no manage.py in this tree")
    home = Path(tempfile.mkdtemp(prefix="daybook-bench-"))
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    (home / "agents.yaml").write_text(agents or agents_file())
    port, key = free_port(), "dbk_" + secrets.token_urlsafe(32)
    env = clean_environment(
        DAYBOOK_HOME=str(home / "var"),
        DAYBOOK_AGENTS=str(home / "agents.yaml"),
        DAYBOOK_API_KEY=key,
        DAYBOOK_ADMIN_PASSWORD=secrets.token_urlsafe(18),
        DAYBOOK_MODEL="background",
        OPENAI_BASE_URL=upstream.url + "/v1",
        OPENAI_API_KEY="x",
    ) | dict(settings or {})
    if server:
        env["DAYBOOK_SERVER"] = server
    command = [product_python(), str(REPO / "manage.py"), "up", "--port", str(port)]
    started = server_start(stack, "Daybook", command, port=port, log=home / "up.log", env=env)
    server_wait(started, "/readyz", seconds=READY_SECONDS)
    daybook = Daybook(server=started, key=key, home=home, env=env)
    for category, content in MEMORIES[:memories]:
        daybook.call("POST", "/api/memories", {"content": content, "category": category, "target": "user"})
    return daybook
