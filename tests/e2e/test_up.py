"""`manage.py up` as a person uses it: real processes, a free port, an empty home."""

import os
import re
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from config.processes.supervisor import readiness
from tests import warm_process
from tests.conftest import free_port
from tests.e2e.conftest import StartDaybook
from tests.e2e.running import (
    AS_SHIPPED,
    MANAGE,
    START_SECONDS,
    STOP_SECONDS,
    RunningDaybook,
    environment,
    manage,
    open_paths,
    processes_of,
    wait_until_none_left,
)
from tests.waiting import eventually

pytestmark = pytest.mark.e2e


def _shell(home: Path, code: str, env: dict[str, str]) -> str:
    result = manage(home, "shell", "-v", "0", "-c", code, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def _check_first_start(daybook: RunningDaybook) -> None:
    """Check what a first start prints and serves."""
    assert daybook.address == f"http://127.0.0.1:{daybook.port}/"
    assert len(daybook.admin_password) >= 12
    assert daybook.api_key.startswith("dbk_")
    assert daybook.get("/healthz") == (200, {"status": "ok"})
    assert daybook.get("/readyz") == (200, {"status": "ready", "model": "demo", "reasons": []})
    assert daybook.get("/v1/models", {"Authorization": f"Bearer {daybook.api_key}"})[0] == 200
    assert daybook.get("/v1/models", {"Authorization": "Bearer dbk_wrong"})[0] == 401


def _prepare(home: Path, env: dict[str, str]) -> str:
    """Run `prepare`, which prints what a first start prints; return the first API key."""
    done = manage(home, "prepare", env=env)
    assert done.returncode == 0, done.stderr
    (key,) = re.findall(r"^Created the first API key: (\S+)$", done.stdout, re.MULTILINE)
    return str(key)


def test_a_first_start_prints_the_credentials_is_private_and_ctrl_c_leaves_no_process(
    start_daybook: StartDaybook, unmigrated: dict[str, str], home: Path
) -> None:
    daybook = start_daybook(unmigrated | AS_SHIPPED, umask=0, own_interpreter=True)
    _check_first_start(daybook)
    assert (home / "daybook.sqlite3").exists() != ("DATABASE_URL" in unmigrated)
    assert daybook.stop() == 0
    wait_until_none_left(home)
    assert open_paths(home) == []
    assert daybook.errors() == ""


def test_a_later_start_keeps_the_data_prints_no_secrets_and_ctrl_c_leaves_no_process(
    start_daybook: StartDaybook, storage: dict[str, str], home: Path
) -> None:
    key = _prepare(home, storage)
    second = start_daybook({"DAYBOOK_SERVER": "daphne"}, own_interpreter=True)
    assert (second.admin_password, second.api_key) == ("", "")
    assert second.get("/v1/models", {"Authorization": f"Bearer {key}"})[0] == 200
    assert not (home / "backups").exists()
    assert second.stop() == 0
    wait_until_none_left(home)
    assert second.errors() == ""


def test_sigterm_ends_up_while_a_task_is_running(
    start_daybook: StartDaybook, storage: dict[str, str], home: Path
) -> None:
    daybook = start_daybook({"DAYBOOK_WORKERS": "1"})
    mark = home / "task-has-begun"
    task = f"'subprocess.run', ['sh', '-c', 'touch {mark}; exec sleep 600']"
    _shell(home, f"from django_q.tasks import async_task; async_task({task})", storage)
    eventually(mark.exists, within=10)
    assert daybook.stop(signal.SIGTERM) == 0
    wait_until_none_left(home)


@pytest.mark.any_database
def test_the_supervisor_does_not_import_django_and_killing_it_leaves_no_process(
    start_daybook: StartDaybook, home: Path
) -> None:
    daybook = start_daybook(own_interpreter=True)
    _check_first_start(daybook)
    command = Path(f"/proc/{daybook.process.pid}/cmdline").read_bytes().split(b"\0")
    assert b"config.processes.supervisor" in command
    memory = Path(f"/proc/{daybook.process.pid}/smaps_rollup").read_text()
    (kilobytes,) = re.findall(r"^Private_Dirty: +(\d+) kB$", memory, re.MULTILINE)
    assert int(kilobytes) < 40_000  # with Django it would be three times as much
    assert len(processes_of(home)) > 3
    daybook.kill()
    wait_until_none_left(home)


@pytest.mark.any_database
def test_a_killed_worker_ends_everything(start_daybook: StartDaybook, home: Path) -> None:
    daybook = start_daybook(None, "--workers", "3")
    # supervisor, web, worker; and the queue's guard, three workers, monitor, pusher
    eventually(lambda: len(processes_of(home)) == 9, within=10)
    os.kill(daybook.child("worker"), signal.SIGKILL)
    assert daybook.wait() == 1
    assert daybook.errors().splitlines()[-1] == (
        "daybook: The worker ended unexpectedly (killed by SIGKILL); stopping everything."
    )
    wait_until_none_left(home)


@pytest.mark.any_database
def test_web_processes_share_the_address_and_the_end_of_one_ends_everything(
    start_daybook: StartDaybook, home: Path
) -> None:
    daybook = start_daybook(None, "--web", "2")
    first, second = daybook.children("web")
    for paused in (first, second):  # while one is paused, the other one answers
        os.kill(paused, signal.SIGSTOP)
        eventually(lambda: daybook.get("/healthz") == (200, {"status": "ok"}), within=20)
        os.kill(paused, signal.SIGCONT)
    os.kill(second, signal.SIGKILL)
    assert daybook.wait() == 1
    assert daybook.errors().splitlines()[-1] == (
        "daybook: The web server 2 ended unexpectedly (killed by SIGKILL); stopping everything."
    )
    wait_until_none_left(home)


@pytest.mark.any_database
def test_a_process_with_threads_does_not_fork_its_children(
    start_daybook: StartDaybook, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "threaded_provider.py").write_text(
        "import threading, time\n"
        "from memories.providers import MemoryProvider\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "class Provider(MemoryProvider):\n"
        "    name = 'threaded'\n"
    )
    env = {"PYTHONPATH": str(tmp_path), "DAYBOOK_MEMORY_PROVIDERS": "threaded_provider.Provider"}
    daybook = start_daybook(env, "--workers", "3")
    commands = [Path(f"/proc/{daybook.child(name)}/cmdline").read_bytes().split(b"\0") for name in ("web", "worker")]
    assert [command[2] for command in commands] == [b"web", b"worker"]
    assert daybook.stop() == 0
    wait_until_none_left(home)


@pytest.mark.any_database
def test_the_end_of_the_queue_ends_everything(start_daybook: StartDaybook, home: Path) -> None:
    daybook = start_daybook()
    worker = daybook.child("worker")
    (guard,) = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
    os.kill(int(guard), signal.SIGKILL)
    assert daybook.wait() == 1
    assert "daybook: The worker ended unexpectedly (exit code 1)" in daybook.errors()
    wait_until_none_left(home)


@pytest.mark.any_database
@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
def test_a_closed_terminal_ends_a_web_server_like_sigterm(home: Path, server: str) -> None:
    port = free_port()
    env = environment(home, {"DAYBOOK_PORT": str(port), "DAYBOOK_SERVER": server})
    web = warm_process.start([str(MANAGE), "web"], env=env)
    eventually(lambda: "does not answer" not in readiness("127.0.0.1", port).reasons[0], within=START_SECONDS)
    web.send_signal(signal.SIGHUP)
    assert web.wait(STOP_SECONDS) == {"uvicorn": -signal.SIGTERM, "daphne": 0}[server]


@pytest.mark.any_database
def test_a_closed_terminal_ends_a_worker_in_order(home: Path) -> None:
    reads, writes = os.pipe()
    worker = warm_process.start([str(MANAGE), "worker"], env=environment(home), stderr=writes)
    os.close(writes)
    with os.fdopen(reads) as errors:
        assert "The worker waits for the database" in errors.readline()
        worker.send_signal(signal.SIGHUP)
        assert worker.wait(STOP_SECONDS) == 0


def _remove_migrations(home: Path, storage: dict[str, str]) -> None:
    """Remove the tables and migrations of one app, as in an older database."""
    if storage:
        with psycopg.connect(storage["DATABASE_URL"]) as server:
            for (table,) in server.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'axes_%'").fetchall():
                server.execute(sql.SQL("DROP TABLE {} CASCADE").format(sql.Identifier(table)))
            server.execute("DELETE FROM django_migrations WHERE app = 'axes'")
        return
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as older, older:
        names = "SELECT name FROM sqlite_master WHERE name LIKE 'axes_%' AND type = 'table'"
        for (table,) in older.execute(names).fetchall():
            older.execute(f"DROP TABLE {table}")
        older.execute("DELETE FROM django_migrations WHERE app = 'axes'")


def test_two_concurrent_starts_migrate_once_and_create_one_administrator_and_one_key(
    storage: dict[str, str], home: Path
) -> None:
    _remove_migrations(home, storage)
    env = storage | {"DAYBOOK_SECRET_KEY": "a-key-of-this-test-only-0123456789abcdef"}
    with ThreadPoolExecutor(2) as pool:
        starts = [pool.submit(manage, home, "prepare", env=env, own_interpreter=True) for _ in range(2)]
    done = [start.result() for start in starts]
    assert [start.returncode for start in done] == [0, 0], [start.stderr for start in done]
    assert sorted("Created the first API key" in start.stdout for start in done) == [False, True]
    assert sorted("Created the first administrator" in start.stdout for start in done) == [False, True]
    count = "from gateway.models import ApiKey as K; from django.contrib.auth.models import User as U; "
    assert _shell(home, count + "print(K.objects.count(), U.objects.count())", env) == "1 1"


def test_an_older_sqlite_database_is_backed_up_and_migrated(storage: dict[str, str], home: Path) -> None:
    if storage:
        pytest.skip("only SQLite is copied; a database server has its own backups")
    _prepare(home, storage)
    _remove_migrations(home, storage)
    second = manage(home, "prepare")
    (backup,) = (home / "backups").iterdir()
    assert second.stdout.splitlines()[0] == f"Copied the database to {backup} before migrating it."
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("SELECT count(*) FROM auth_user").fetchone() == (1,)
        assert copy.execute("SELECT name FROM sqlite_master WHERE name = 'axes_accesslog'").fetchone() is None
        keys = copy.execute("SELECT * FROM gateway_apikey").fetchall()
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as migrated:
        assert migrated.execute("SELECT name FROM sqlite_master WHERE name = 'axes_accesslog'").fetchone()
        assert migrated.execute("SELECT * FROM gateway_apikey").fetchall() == keys != []


def test_up_survives_the_loss_of_its_database_connections(start_daybook: StartDaybook, storage: dict[str, str]) -> None:
    if not storage:
        pytest.skip("SQLite has no connections to cut")
    daybook = start_daybook()
    with psycopg.connect(storage["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (cut_at,) = connection.execute("SELECT clock_timestamp()").fetchone()

        def beats_again() -> bool:
            return connection.execute("SELECT max(beat_at) > %s FROM gateway_worker", [cut_at]).fetchone() == (True,)

        eventually(beats_again, within=20)
    eventually(lambda: daybook.get("/readyz")[0] == 200, within=20)
    assert daybook.stop() == 0
