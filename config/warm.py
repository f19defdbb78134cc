"""Loads what a web process will need, before the first request."""

import scanning
from search.entries import Entry
from search.index import BookIndex


def warm_up() -> None:
    """Load the scanner's rules and the search's stemmers and embeddings (half a second, off the path of any turn)."""
    scanning.warm()
    entry = Entry(number=1, content="Prefers tea in the morning.")
    BookIndex.build([entry]).search("What do they drink?", limit=1)
