"""Finding memories: strict substring search and ranked search over one book, in memory, without a model.

Knows nothing of the database, of owners or of the web; settings come in as arguments. Each module needs only those
above it; docs/search.md says why it works as it does.

    entries          one thing that can be found: a remembered fact or one turn of a conversation
    keywords         the `local` keyword rule and the strict search
    languages        function words, stemmers and other word lists
    times            does a text ask when, does it say when, which days does it name
    tokens           cuts a text into search terms
    vectors          static word embeddings, and products of rows
    analysis         what is worked out once per entry and kept in the process
    postings         BM25 over sparse arrays
    context_window   entries of one session in order, and what spreads between them
    book             the arrays of one book, laid out from the analyses of its entries
    upstream         vectors of an embedding model, and how close a message is by them
    term_similarity  which words of a book are close to a word of a message
    parts            the parts of a long message, each searched by itself
    query            what a message asks for
    evidence         how well each entry answers, one kind of evidence at a time
    ranking          one score from all evidence, when to return nothing, and the best entries
    superseded       of two facts about the same thing the newer one first
    hits             what is returned, and why
    index            `BookIndex`, which puts these together
"""

from collections.abc import Callable

from search import query, tokens, vectors
from search.analysis import PROCESS_CACHE, AnalysisCache, BookKey
from search.entries import Entry
from search.hits import Hit, Reason
from search.index import BookIndex
from search.keywords import extract_keywords
from search.parts import PART as LONG_MESSAGE


def forget(matches: Callable[[BookKey | None], bool]) -> None:
    """Drop what this process keeps of the texts of the books that `matches` names (None: texts of no book), and every
    word that it keeps only to save time."""
    PROCESS_CACHE.forget(matches)
    query.forget_words()
    tokens.forget_words()
    vectors.forget_words()
