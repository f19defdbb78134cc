"""Python programs for end-to-end tests, started as forks of a warm process that has imported what they import: a start
costs a quarter to a half. How such a program differs from one with an interpreter of its own: docs/decisions/0061.

`python -m tests.warm FD` is the warm process: one for each test process, started at first use. A message on the socket
FD is a request in JSON, with file descriptors beside it: a socket, on which it says the process id and then the exit
code, and the program's standard input, output and error."""

import array
import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "aiohttp",
    "authlib.integrations.base_client",
    "authlib.oauth2",
    "channels.layers",
    "cryptography.x509",
    "django.contrib.admin",
    "django.contrib.auth.hashers",
    "django.contrib.postgres.fields",
    "django.core.management.commands.shell",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.forms",
    "django.views.debug",
    "django.views.generic",
    "joserfc.jwt",
    "jwcrypto.jwk",
    "latex2mathml.converter",
    "limits.aio.strategies",
    "markdown_it",
    "numpy",
    "oauth2_provider.validators",
    "oauthlib.oauth2",
    "openai.types.responses",
    "opentelemetry.trace",
    "psycopg",
    "pydantic.networks",
    "pydantic_settings",
    "pygments.lexers",
    "redis.asyncio",
    "requests",
    "scanning",
    "search",
    "servestatic",
    "uvicorn",
    "wordllama",
    "yaml",
)
"""Modules of other people and of our libraries that take long to import and know neither settings nor the environment.
One that looked at Django's settings could not be imported: there are none yet."""

# Variables that matter when an interpreter starts, or that libraries of C read when they are loaded.
_EARLY = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "OPENBLAS_", "OMP_")
_KEPT = (*_EARLY, "PATH", "HOME", "KF_RULE_CACHE_DIR")
_ROOM = 24_000
"""Bytes for a program's environment, where /proc shows it."""
_LONGEST = 200_000
"""Bytes of a request."""


class Started:
    """A program that was started here, with what tests use of `subprocess.Popen`."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.pid = self._said()
        self.returncode: int | None = None
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None

    def poll(self) -> int | None:
        """The exit code, if it has ended; minus the signal's number if one has killed it."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it ends."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = self._said()
            self._told.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _said(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._told.recv(1)):
                raise AssertionError("The warm process has ended; standard error says why (tests/warm.py).")
            line += byte
        return int(line)


Program = Started | subprocess.Popen[str]


class _WarmProcess:
    """The warm process of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket

    def ask(self, request: Mapping[str, Any], files: Sequence[int]) -> Started:
        """Have a program started with those files."""
        with self._lock:
            if self._process is None:
                self._start()
            told, theirs = socket.socketpair()
            with theirs:
                passed = array.array("i", [theirs.fileno(), *files])
                beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)]
                self._socket.sendmsg([json.dumps(request).encode()], beside)
        return Started(told)

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        env = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        env |= {"OPENBLAS_NUM_THREADS": "1", "ROOM": "-" * _ROOM}  # with threads nothing may fork
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=ROOT,
                env=env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()  # it ends when nobody can ask
        if self._process is not None:
            self._process.wait(10)


_warm_process = _WarmProcess()


def start(
    program: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    new_session: bool = False,
    umask: int = -1,
    anew: bool = False,
) -> Program:
    """Start `python PROGRAM…` (a file with arguments, or -m and a module) in the main folder, with that environment.
    Files are those of `subprocess.Popen`; pipes are for text. `anew`: with an interpreter of its own, as also where the
    environment has something that an interpreter reads when it starts."""
    if anew or _early(env) != _early(os.environ):
        return subprocess.Popen(
            [sys.executable, *program],
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            text=True,
            start_new_session=new_session,
            umask=umask,
        )
    request = {"program": list(program), "env": dict(env), "new_session": new_session, "umask": umask}
    with ExitStack() as theirs:
        ours: list[int] = []
        files = [_file(number, file, ours, theirs) for number, file in enumerate((stdin, stdout, stderr))]
        started = _warm_process.ask(request, files)
    if stdin == subprocess.PIPE:
        started.stdin = os.fdopen(ours.pop(0), "w")
    if stdout == subprocess.PIPE:
        started.stdout = os.fdopen(ours.pop(0), "r")
    return started


def _file(number: int, file: int, ours: list[int], theirs: ExitStack) -> int:
    """The descriptor that the program gets; our end of a pipe is added to `ours`."""
    if file == subprocess.DEVNULL:
        return theirs.enter_context(Path(os.devnull).open("r+b")).fileno()
    if file != subprocess.PIPE:
        return file
    reads, writes = os.pipe()
    ours.append(writes if number == 0 else reads)
    given = reads if number == 0 else writes
    theirs.callback(os.close, given)
    return given


def run(
    program: Sequence[str], *, env: Mapping[str, str], timeout: float, umask: int = -1, anew: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, like `subprocess.run` with text that is captured."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = start(program, env=env, stdout=out.fileno(), stderr=err.fileno(), umask=umask, anew=anew)
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait(10)
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(program), code, out.read(), err.read())


def _early(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_EARLY)}


def main() -> None:
    """The warm process, and every program: it goes on here as a fork."""
    gc.disable()
    for name in PACKAGES:
        importlib.import_module(name)
    _libraries_warm_up()
    gc.collect()
    gc.freeze()
    gc.enable()
    if sys.modules["django.conf"].settings.configured:
        sys.exit("tests.warm: something that is imported here reads settings")
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        sys.exit("tests.warm: something that is imported here starts a thread, which forks would lack")
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _become(request)


def _libraries_warm_up() -> None:
    """Load what `config.serving.warm.warm_up` loads of our libraries: rules, stemmers, embeddings."""
    sys.modules["scanning"].warm()
    entry = sys.modules["search.entries"].Entry(number=1, content="Prefers tea in the morning.")
    sys.modules["search.index"].BookIndex.build([entry]).search("What do they drink?", limit=1)


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. Return the request in the fork, and None when there will be no more."""
    wakes, woken = socket.socketpair()
    wakes.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the tests
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([requests, wakes], [], [])
        if wakes in readable:
            wakes.recv(4096)
            _reap(running)
        if requests not in readable:
            continue
        message, beside, _, _ = requests.recvmsg(_LONGEST, socket.CMSG_SPACE(4 * 4))
        if not message:
            return None
        files = array.array("i", b"".join(data for _, _, data in beside))
        told = socket.socket(fileno=files[0])
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, interrupt)
            for number, file in enumerate(files[1:]):
                os.dup2(file, number)
                os.close(file)
            for ours in (requests, wakes, woken, told, *running.values()):
                ours.close()
            return dict(json.loads(message))
        for file in files[1:]:
            os.close(file)
        running[pid] = told
        told.sendall(b"%d\n" % pid)


def _reap(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as told, suppress(BrokenPipeError):
                told.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended[1]))


def _become(request: Mapping[str, Any]) -> NoReturn:
    """Run the program as `python` would."""
    if request["new_session"]:
        os.setsid()
    if request["umask"] >= 0:
        os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    _show_environment()
    first, *sys.argv = request["program"]
    try:
        if first == "-m":
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv.insert(0, first)
            sys.path[0] = str(Path(first).resolve().parent)
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        _end(ended.code)
    _end(None)


def _end(code: object) -> NoReturn:
    """End as an interpreter does, but take nothing apart: that would first copy all that is shared."""
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def _show_environment() -> None:
    """Write the environment where /proc shows it, in place of that of the warm process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[47]), int(fields[48])  # env_start and env_end of proc(5)
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in os.environ.items())
    if len(shown) > end - begin:
        sys.exit("tests.warm: the environment is longer than the room for it")
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, shown, len(shown))


if __name__ == "__main__":
    main()
