"""A real Daybook for end-to-end tests: `manage.py up` in its own process, on a free port."""

import http.client
import json
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from tests import warm_process
from tests.waiting import eventually

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
START_SECONDS = 120.0  # for a busy machine
STOP_SECONDS = 20.0
AS_SHIPPED = {"DJANGO_SETTINGS_MODULE": "config.settings"}
"""With these variables a Daybook uses the product's settings instead of `tests/e2e/settings.py`."""
_OURS = re.compile(r"^(DAYBOOK_|OPENAI_|DATABASE_URL$|REDIS_URL$|DJANGO_|PYTEST_)")


def environment(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a Daybook's environment with that home: a free port, quick sweeps and password hashing, and `env`."""
    inherited = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    ours = {"DAYBOOK_HOME": str(home), "DAYBOOK_PORT": "0", "DAYBOOK_SWEEP_SECONDS": "0.5"}
    ours |= {"DJANGO_SETTINGS_MODULE": "tests.e2e.settings"}
    return inherited | ours | {"DAYBOOK_STATIC": str(settings.STATIC_ROOT)} | dict(env or {})


def manage(
    home: Path, *arguments: str, env: Mapping[str, str] | None = None, own_interpreter: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a management command to its end; `own_interpreter` as in tests/warm_process.py."""
    return warm_process.run(
        [str(MANAGE), *arguments], env=environment(home, env), timeout=START_SECONDS, own_interpreter=own_interpreter
    )


def processes_of(home: Path) -> dict[int, str]:
    """Return live processes whose environment or command line contains the home, as `{process id: command line}`."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended, or belongs to another user
            command = (folder / "cmdline").read_bytes()
            variables = (folder / "environ").read_bytes().split(b"\0")
            alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            if alive and (f"DAYBOOK_HOME={home}".encode() in variables or str(home).encode() in command):
                found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def open_paths(folder: Path) -> list[str]:
    """Return the folder and the paths in it to which group or others have any permission."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until_none_left(home: Path, *, within: float = STOP_SECONDS) -> None:
    """Wait until no process of that home is alive; fail otherwise."""
    eventually(lambda: not processes_of(home), within=within, description=f"the end of {processes_of(home)}")


@dataclass
class RunningDaybook:
    """A ready Daybook. `address` ends with a slash; password and key are as printed or configured, else ""."""

    home: Path
    process: warm_process.Program
    stdout_file: Path
    stderr_file: Path
    address: str = ""
    admin_user: str = "admin"
    admin_password: str = ""
    api_key: str = ""

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 80

    def lines(self) -> list[str]:
        """Return the lines printed since this start."""
        return self.stdout_file.read_text().splitlines()

    def errors(self) -> str:
        """Return the standard error of the supervisor and its children."""
        return self.stderr_file.read_text()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """GET a path; return the status and the JSON, or the text if it is not JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            body = response.read().decode()
        finally:
            connection.close()
        with suppress(ValueError):
            return response.status, json.loads(body)
        return response.status, body

    def child(self, name: str) -> int:
        """Return the process id of the only child with that name: "web" or "worker"."""
        (pid,) = self.children(name)
        return pid

    def children(self, name: str) -> list[int]:
        """Return the process ids of the children with that name."""
        names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in children_of(self.process.pid)}
        return [pid for pid, child_name in names.items() if child_name == f"daybook-{name}"]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send Ctrl-C (or another signal), wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        """Send SIGKILL to the supervisor."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def wait(self) -> int:
        """Wait until it ends by itself; return the exit code."""
        return self.process.wait(STOP_SECONDS)

    def _ready(self) -> bool:
        if (code := self.process.poll()) is not None:
            raise AssertionError(f"`up` ended with {code}: {self.errors()}")
        text = self.stdout_file.read_text()
        for name, pattern in {
            "address": r"^Daybook is ready at (\S+)$",
            "admin_password": r"^  password: (\S+)$",
            "api_key": r"^Created the first API key: (\S+)$",
        }.items():
            if match := re.search(pattern, text, re.MULTILINE):
                setattr(self, name, match[1])
        return bool(self.address)


@contextmanager
def running_daybook(
    home: Path,
    env: Mapping[str, str] | None = None,
    *arguments: str,
    umask: int = -1,
    own_interpreter: bool = False,
) -> Iterator[RunningDaybook]:
    """Start `manage.py up` with that home and wait until it is ready; `umask` and `own_interpreter` as in
    tests/warm_process.py.

    Processes that are left when the block ends are killed. Linux only, since it reads /proc."""
    home.parent.mkdir(parents=True, exist_ok=True)
    stdout_file, stderr_file = home.with_name(f"{home.name}.out"), home.with_name(f"{home.name}.err")
    variables = environment(home, env)
    with stdout_file.open("wb") as out, stderr_file.open("wb") as err:
        process = warm_process.start(
            [str(MANAGE), "up", *arguments],
            env=variables,
            stdout=out.fileno(),
            stderr=err.fileno(),
            umask=umask,
            own_interpreter=own_interpreter,
        )
    daybook = RunningDaybook(
        home=home,
        process=process,
        stdout_file=stdout_file,
        stderr_file=stderr_file,
        admin_user=variables.get("DAYBOOK_ADMIN_USER", "admin"),
        admin_password=variables.get("DAYBOOK_ADMIN_PASSWORD", ""),
        api_key=variables.get("DAYBOOK_API_KEY", ""),
    )
    try:
        eventually(daybook._ready, within=START_SECONDS, description="the ready line of `up`")
        yield daybook
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(STOP_SECONDS)
        for pid in processes_of(home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
