"""What a web process loads before it is needed."""

from memories import scanning
from memories.search.entries import Entry
from memories.search.index import BookIndex


def warm_up() -> None:
    """Load the scanner's rules and the search's stemmers and embeddings (half a second, off the path of any turn)."""
    scanning.warm()
    entry = Entry(number=1, content="Prefers tea in the morning.")
    BookIndex.build([entry]).search("What do they drink?", limit=1)
