"""What a web process loads before it is needed."""

from django.urls import get_resolver

import scanning
from gateway.upstream.known import known
from search.entries import Entry
from search.index import BookIndex


def warm_up() -> None:
    """Load every view, what is known of upstreams, the scanner's rules and the search's stemmers and embeddings (off
    the path of any turn)."""
    get_resolver().url_patterns  # noqa: B018 - reading it imports them
    known.sync()
    scanning.warm()
    entry = Entry(number=1, content="Prefers tea in the morning.")
    BookIndex.build([entry]).search("What do they drink?", limit=1)
