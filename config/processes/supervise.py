r"""What `manage.py up` becomes once everything is prepared: a program that imports nothing but the standard library,
and looks after the processes that `up` has started.

    python -m config.processes.supervise \
        '{"children": [["worker", 123]], "host": "127.0.0.1", "port": 8000, "ready": ["…"]}'
"""

import json
import signal
import sys
from typing import TextIO

from config.processes.forking import STOPS, name_process
from config.processes.supervisor import Supervisor, readiness


def main() -> int:
    """Return the exit code: 0 when a signal asked for the end."""
    told = json.loads(sys.argv[1])
    name_process("daybook")
    with Supervisor(tell=lambda line: _say(sys.stderr, f"daybook: {line}")) as supervisor:
        for name, pid in told["children"]:
            supervisor.adopt(name, pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # `up` blocked them, so that none is lost on the way
        return supervisor.watch(
            probe=lambda: readiness(told["host"], told["port"]), on_ready=lambda: _say(sys.stdout, *told["ready"])
        )


def _say(stream: TextIO, *lines: str) -> None:
    stream.writelines(f"{line}\n" for line in lines)
    stream.flush()  # through a pipe too, at once


if __name__ == "__main__":
    sys.exit(main())
