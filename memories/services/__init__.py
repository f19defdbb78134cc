"""Writing of memories: the only modules that save Owner, Book, Memory, ChangeSet, Revision and ScanDay rows. Called by
the other packages of memories and by apps of higher layers; memories.selectors reads."""

from memories.services.annotations import (
    keywords_claim,
    keywords_release,
    keywords_requested,
    keywords_wanted,
    usage_add,
    verdicts_store,
)
from memories.services.books import (
    Budgets,
    book_get_or_create,
    book_limits,
    book_limits_set,
    books_lock,
    books_of_owner_lock,
    characters_used,
    check_new_books,
    generations_raise,
    limits_of_books,
)
from memories.services.erasing import revisions_purge, tombstones_purge
from memories.services.owners import (
    WriteRequired,
    is_only_administrator,
    owner_delete,
    owner_for_end_user,
    owner_for_user,
    owner_lock,
    owner_time_zone_set,
)
from memories.services.refusals import refusals_stored, scan_days_purge
from memories.services.rows import (
    MemoryFields,
    Source,
    WriteResult,
    fields_cleaned,
    fields_given,
    memory_changes,
    memory_state,
    proposal_of,
    stored_state,
)
from memories.services.writing import (
    BookWriter,
    book_changed,
    book_expiry_note,
    book_touch,
    book_writing,
    session_unlink,
)
