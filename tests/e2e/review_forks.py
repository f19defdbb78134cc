"""A minimal worker that is cheap to kill: `python -m tests.e2e.review_forks` reads review ids, one per line, forks a
child for each, which executes the review as the queue's worker does, and prints the child's process id."""

import os
import signal
import sys

import django


def main() -> None:
    django.setup()
    import scanning  # noqa: PLC0415 - models can be imported only now
    from reviews.tasks import review_execute  # noqa: PLC0415

    scanning.warm()
    scanning.scan("Likes tea.")  # initialise everything lazy before forking; no thread may be started here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies, so any existing process id is alive
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            review_execute(line.strip())
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
