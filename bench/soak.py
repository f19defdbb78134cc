"""Kill Daybook's processes under load and check that nothing is lost, half done, or done twice.

    python bench/soak.py --seconds 60

Starts `manage.py up` against a scripted upstream, with a review after every second turn. Clients chat through /v1 and
the native API and retry unanswered requests. About every ten seconds the supervisor, the web server, the worker or one
of the worker's child processes gets SIGKILL or SIGTERM, in turn, and is started again. Once all leases had time to
expire, the database is checked.

Prints a table and, as its last line, one JSON object: `turns_tried` (each counts once, however often it was requested),
`turns_acknowledged` (the whole answer arrived; the goal is 95 % of those tried), `turns_interrupted` (no answer to the
first request), `turns_lost` (acknowledged, but not stored completely), `partial_reviews`, `double_writes` (turns or
memories), `stuck_runs` (runs and reviews past their lease that nothing resumed), `kills`, and further counts. The exit
code is 1 if any of `turns_lost`, `partial_reviews`, `double_writes` and `stuck_runs` is not 0, or fewer than 95 % were
acknowledged. Linux only: it reads /proc. Takes at most --seconds plus --settle plus about three minutes."""

import argparse
import asyncio
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from growth import database
from processes import (
    REPO,
    BenchError,
    Server,
    clean_environment,
    free_port,
    process_stop,
    product_python,
    server_start,
    server_wait,
    stop_on_signals,
)
from soak_clients import AGENT, Ledger, NativeClient, SoakClient

VICTIMS = ("supervisor", "web", "supervisor", "web", "worker", "job")
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
MIN_ACKNOWLEDGED = 0.95
START_SECONDS = 90.0
STOP_GRACE_SECONDS = 20.0
MUST_BE_ZERO = ("turns_lost", "partial_reviews", "double_writes", "stuck_runs")
AGENTS_FILE = f"""agents:
  {AGENT}:
    tools: [{{type: memory}}]
    inject_memories: true
    memory_review_interval: 2
    memory_review_model: reviewer
    memory_review_timeout: 5
    user_char_limit: 0
    memory_char_limit: 0
"""


class Daybook:
    """Starts `manage.py up` repeatedly with the same home and port."""

    def __init__(self, stack: ExitStack, env: dict[str, str], port: int, logs: Path) -> None:
        self.stack, self.env, self.port, self.logs = stack, env, port, logs
        self.starts = 0
        self.server: Server | None = None

    def start(self) -> None:
        """Start and wait until it is ready."""
        self.starts += 1
        command = [product_python(), str(REPO / "manage.py"), "up"]
        log = self.logs / f"up-{self.starts}.log"
        self.server = server_start(self.stack, "up", command, port=self.port, log=log, env=self.env)
        server_wait(self.server, "/readyz", seconds=START_SECONDS)

    def kill(self, victim: str, number: signal.Signals, rng: random.Random) -> bool:
        """Send a signal to one process; return False if there is no such process at the moment."""
        assert self.server is not None
        pid = self.server.process.pid if victim == "supervisor" else self._find(victim, rng)
        if pid is None:
            return False
        os.kill(pid, number)
        return True

    def restart(self) -> None:
        """Stop what is left after a kill, and start again."""
        assert self.server is not None
        process_stop(self.server.process, grace_seconds=STOP_GRACE_SECONDS)
        self.start()

    def stop(self) -> None:
        """Send SIGTERM and wait."""
        if self.server is not None:
            process_stop(self.server.process)

    def _find(self, victim: str, rng: random.Random) -> int | None:
        assert self.server is not None
        children = {_process_role(pid): pid for pid in _children(self.server.process.pid)}
        if victim != "job":
            return children.get(victim)
        descendants = _descendants(children["worker"]) if "worker" in children else []
        return rng.choice(descendants) if descendants else None


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def _descendants(pid: int) -> list[int]:
    return [found for child in _children(pid) for found in (child, *_descendants(child))]


def _process_role(pid: int) -> str:
    """Return the role of a Daybook process (web, worker), or "" if it has ended."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
    return name.removeprefix("daybook-")


async def soak(daybook: Daybook, options: argparse.Namespace, key: str) -> tuple[Ledger, dict[str, int]]:
    """Run the clients and kill processes until the time is over; return the ledger and the kills by kind."""
    ledger, kills, rng = Ledger(), {}, random.Random(options.seed)
    loop = asyncio.get_running_loop()
    until = loop.time() + options.seconds
    url = f"http://127.0.0.1:{daybook.port}"
    kinds = (SoakClient, SoakClient, NativeClient, NativeClient)
    clients = [kinds[number % 4](number, url, key, ledger, until) for number in range(options.clients)]
    tasks = [asyncio.create_task(client.run()) for client in clients]
    while (left := until - loop.time()) > 1:
        done, _ = await asyncio.wait(tasks, timeout=min(left, rng.uniform(0.5, 1.5) * options.pause))
        for task in done:
            task.result()  # an exception in a client is a bug of this benchmark
        if loop.time() >= until:
            break
        number = sum(kills.values())
        victim, how = VICTIMS[number // len(SIGNALS) % len(VICTIMS)], SIGNALS[number % len(SIGNALS)]
        if daybook.kill(victim, how, rng):
            name = f"{victim} {how.name}"
            kills[name] = kills.get(name, 0) + 1
            if victim != "job":  # the worker replaces its child processes
                await asyncio.to_thread(daybook.restart)
    await asyncio.gather(*tasks)
    return ledger, kills


def wait_until_settled(seconds: float) -> float:
    """Wait at most `seconds` until no work is open; return the seconds waited."""
    from soak_check import open_work

    started = time.monotonic()
    pause = asyncio.Event()
    with asyncio.Runner() as runner:
        while open_work() and time.monotonic() - started < seconds:
            runner.run(_wait(pause, 1.0))
    return time.monotonic() - started


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the whole soak test; return its figures."""
    key = f"dbk_{secrets.token_urlsafe(32)}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daybook-soak-")))
        variables = stack.enter_context(database(options.database_url))
        if options.redis_url:
            stack.callback(delete_queue, options.redis_url)
            delete_queue(options.redis_url)
        upstream = soak_upstream_start(stack, folder)
        (folder / "agents.yaml").write_text(AGENTS_FILE)
        port = free_port()
        settings = {
            "DAYBOOK_HOME": str(folder / "home"),
            "DAYBOOK_PORT": str(port),
            "DAYBOOK_SERVER": options.server,
            "DAYBOOK_AGENTS": str(folder / "agents.yaml"),
            "DAYBOOK_API_KEY": key,
            "DAYBOOK_SECRET_KEY": secrets.token_urlsafe(32),
            "DAYBOOK_MODEL": "scripted",
            "DAYBOOK_SWEEP_SECONDS": "1",
            "OPENAI_BASE_URL": f"{upstream.url}/v1",
            "OPENAI_API_KEY": "none",
            **({"REDIS_URL": options.redis_url} if options.redis_url else {}),
            **variables,
        }
        daybook = Daybook(stack, clean_environment(**settings), port, folder)
        daybook.start()
        ledger, kills = asyncio.run(soak(daybook, options, key))
        return check_results(daybook, ledger, kills, settings, options.settle)


def check_results(
    daybook: Daybook, ledger: Ledger, kills: dict[str, int], settings: dict[str, str], settle: float
) -> dict[str, Any]:
    """Let Daybook finish its open work, stop it, and check its database; return the figures."""
    os.environ.update(settings, DJANGO_SETTINGS_MODULE="config.settings", DAYBOOK_DB_THREADS="0")
    sys.path.insert(0, str(REPO))
    import django

    django.setup()
    from django.db import connections
    from soak_check import findings

    try:
        seconds = wait_until_settled(settle)
        daybook.stop()
        found = findings(ledger).as_json()
    finally:
        connections.close_all()
    return {
        "turns_tried": ledger.tried,
        "turns_acknowledged": len(ledger.turns),
        "turns_interrupted": ledger.interrupted,
        **{name: found.pop(name) for name in MUST_BE_ZERO},
        "kills": sum(kills.values()),
        "killed": kills,
        "starts": daybook.starts,
        "requests": ledger.sent,
        "unanswered": ledger.unanswered,
        "refusals": ledger.refusals,
        "settled_seconds": round(seconds, 1),
        **found,
    }


def delete_queue(redis_url: str) -> None:
    """Delete the job queue, which this or an earlier run may have left behind."""
    import redis

    with redis.Redis.from_url(redis_url) as client:
        client.delete("django_q:daybook:q")


def soak_upstream_start(stack: ExitStack, folder: Path) -> Server:
    """Start soak_upstream.py on a free port."""
    port = free_port()
    command = [product_python(), str(REPO / "bench" / "soak_upstream.py"), "--port", str(port), "--chunk-ms", "50"]
    server = server_start(stack, "upstream", command, port=port, log=folder / "upstream.log", env=clean_environment())
    server_wait(server, "/v1/models", seconds=START_SECONDS)
    return server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the chats and kills")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--pause", type=float, default=10.0, help="mean seconds from readiness to the next kill")
    parser.add_argument("--settle", type=float, default=120.0, help="maximum seconds for open work to finish")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the times between kills")
    parser.add_argument("--server", choices=["daphne", "uvicorn"], default="uvicorn")
    parser.add_argument("--database-url", default="", help="a PostgreSQL server to create a database on")
    parser.add_argument("--redis-url", default="", help="a Redis database that nothing else uses")
    options = parser.parse_args()
    stop_on_signals()
    try:
        figures = run(options)
    except BenchError as error:
        print(f"soak.py: {error}", file=sys.stderr)
        return 1
    for name, value in figures.items():
        print(f"{name:>20}  {value}")
    print(json.dumps(figures))
    enough = figures["turns_acknowledged"] >= MIN_ACKNOWLEDGED * figures["turns_tried"]
    return 1 if any(figures[name] for name in MUST_BE_ZERO) or not enough else 0


if __name__ == "__main__":
    sys.exit(main())
