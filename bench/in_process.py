"""Measure an embedding model that runs in Daybook's own process: `python bench/in_process.py FOLDER` (docs/search.md
describes the folder). Prints medians in milliseconds and the memory that loading took in MB."""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from own_home import own_home

QUESTION = "What should I cook for dinner when Anna comes on Friday?"
FACT = "Prefers window seats on trains and never books the last one home."


def median_ms(work: Callable[[], object], times: int = 15) -> float:
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent) * 1_000


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with own_home("in-process"):
        from gateway.upstream.in_process import EmbeddingModel, unusable

        if why := unusable(folder):
            sys.exit(f"{folder}: {why}.")
        before, started = memory_mb(), time.perf_counter()
        model = EmbeddingModel(folder)
        print(f"loading {(time.perf_counter() - started) * 1_000:.0f} ms")
        print(f"a question {median_ms(lambda: model.embed([QUESTION])):.1f} ms")
        print(f"a fact, of 16 at once {median_ms(lambda: model.embed([FACT] * 16)) / 16:.1f} ms")
        print(f"a text of 512 tokens {median_ms(lambda: model.embed(['word ' * 600]), 5):.0f} ms")
        print(f"memory {memory_mb() - before:.0f} MB")


if __name__ == "__main__":
    main()
