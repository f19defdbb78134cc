"""Loading in advance what a web process will need."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.urls import get_resolver

import scanning
from config.serving.assets import prepare_assets
from gateway.upstream.known import known
from search.entries import Entry
from search.index import BookIndex


@contextmanager
def first_start_in_threads() -> Iterator[None]:
    """Prepare the static files and the scanner's rules in threads while the block runs. At the first start of a version
    this takes seconds, but needs no database and rarely holds the GIL. The threads have ended when the block ends, so
    that the process may fork."""
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(prepare_assets), pool.submit(scanning.warm)]
        yield
    for future in futures:
        future.result()


def warm_up() -> None:
    """Load all views, the known properties of upstreams, the scanner's rules, and the stemmers and embeddings of the
    search, so that no turn has to."""
    get_resolver().url_patterns  # noqa: B018 - reading it imports them
    known.sync()
    scanning.warm()
    entry = Entry(number=1, content="Prefers tea in the morning.")
    BookIndex.build([entry]).search("What do they drink?", limit=1)
