"""Finding memories: strict substring search and ranked search over one book, in memory, without a model.

Knows nothing of the database, of owners or of the web; settings come in as arguments.
"""

from memories.search.analysis import AnalysisCache
from memories.search.entries import Entry
from memories.search.hits import Hit, Reason
from memories.search.index import BookIndex
from memories.search.keywords import extract_keywords
from memories.search.match_all import match_all

__all__ = ["AnalysisCache", "BookIndex", "Entry", "Hit", "Reason", "extract_keywords", "match_all"]
