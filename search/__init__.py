"""Search for memories: strict substring search and ranked search over one book, in memory, without a model.

Independent of the database, owners and the web; settings are passed as arguments. Each module imports only modules
listed above it. docs/search.md explains the design.

    normal_form      normalises texts that anybody may have written
    entries          the searchable unit: a remembered fact or one turn of a conversation
    keywords         the `local` keyword rule and the strict search
    languages        function words, stemmers and other word lists
    times            whether a text asks for or states a time, and the dates it names
    tokens           splits a text into search terms
    vectors          static word embeddings, and products of rows
    analysis         per-entry analysis, cached in the process
    postings         BM25 over sparse arrays
    context_window   neighbouring entries of a session, and how evidence spreads between them
    book             the arrays of one book, built from the analyses of its entries
    upstream         vectors of an embedding model, and their closeness to a message
    term_similarity  the words of a book that are close to a word of a message
    query            analysis of a message, and of the parts of a long one
    evidence         how well each entry answers, by kind of evidence
    ranking          the combined score, the cut-off, and the best entries
    superseded       moves newer facts before the older ones that they replace
    hits             results with their reasons
    index            `BookIndex`, which combines all of these
"""

from collections.abc import Callable

from search import tokens, vectors
from search.analysis import PROCESS_CACHE, AnalysisCache, BookKey
from search.entries import Entry
from search.hits import Hit, Reason
from search.index import BookIndex
from search.keywords import extract_keywords, query_keywords
from search.query import PART_CHARS as LONG_MESSAGE
from search.query import message_of


def forget(matches: Callable[[BookKey | None], bool]) -> None:
    """Drop this process's cached analyses of the books for which `matches` returns True (None: texts without a book),
    and all cached words."""
    PROCESS_CACHE.forget(matches)
    message_of.cache_clear()
    tokens.forget_words()
    vectors.forget_words()
