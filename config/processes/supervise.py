r"""The program that replaces `manage.py up` once everything is prepared. It supervises the processes that `up` has
started, and imports only the standard library.

    python -m config.processes.supervise \
        '{"children": [["worker", 123]], "host": "127.0.0.1", "port": 8000, "ready": ["…"]}'
"""

import json
import signal
import sys
from typing import TextIO

from config.processes.forking import STOPS, name_process, without_reader
from config.processes.supervisor import Supervisor, readiness


def main() -> int:
    """Return the exit code: 0 after a stop signal."""
    options = json.loads(sys.argv[1])
    name_process("daybook")
    with Supervisor(report=lambda line: _say(sys.stderr, f"daybook: {line}")) as supervisor:
        for name, pid in options["children"]:
            supervisor.adopt(name, pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # `up` blocked them, so that none is lost during exec
        return supervisor.watch(
            probe=lambda: readiness(options["host"], options["port"]),
            on_ready=lambda: _say(sys.stdout, *options["ready"]),
        )


def _say(stream: TextIO, *lines: str) -> None:
    stream.writelines(f"{line}\n" for line in lines)
    stream.flush()  # do not buffer the lines if the stream is a pipe


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(without_reader())
