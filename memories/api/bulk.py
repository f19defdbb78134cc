"""/api/memories/bulk: one edit to many memories of a book, as one change set."""

from typing import Annotated, Any

from ninja import Router
from pydantic import Field

from memories.api import answers
from memories.api.answers import documented
from memories.api.bodies import Body, Category
from memories.api.memories import edit_source
from memories.bulk_edits import BulkAction, BulkEditResult, bulk_edit_slices, edit_of
from memories.caller import ApiRequest
from memories.database.access import in_read_thread
from memories.database.batches import in_slices
from memories.entry_rules import clean_category
from memories.limits import BULK_MEMORIES, ShortText
from memories.pagination import parse_number
from memories.selectors import book_named

router = Router()


class BulkIn(
    Body,
    json_schema_extra={"examples": [{"ids": ["12", "7"], "action": "categorise", "category": "food", "book": "main"}]},
):
    ids: Annotated[list[ShortText], Field(min_length=1, max_length=BULK_MEMORIES)]
    action: BulkAction = Field(description="`restore` is for deleted memories, the others are for live ones.")
    category: Category | None = Field(None, description="The new category, for `categorise`.")
    book: ShortText | None = Field(
        None, description="The book of these memories. The default is `main`, or the key's first book."
    )


@router.post("/memories/bulk", response=documented(answers.BulkEdited))
async def memory_bulk(request: ApiRequest, body: BulkIn) -> dict[str, Any]:
    """Delete, restore, pin, unpin or categorise many memories of one book; those of other books are left alone. The
    whole edit is one change set, which can be undone."""
    caller = request.auth
    edit = edit_of(body.action, clean_category(body.category or "") if body.action == "categorise" else "")
    numbers = {id: parse_number(id) for id in body.ids}
    valid = [parsed for parsed in numbers.values() if parsed is not None]
    book = await in_read_thread(book_named, caller.owner_id, caller.limits.book_name(body.book))
    result = BulkEditResult(change_set=None, changed=(), left_alone=tuple(valid))
    if book is not None:
        result = await in_slices(bulk_edit_slices(book, valid, edit, edit_source(caller)))
    answer = result.as_json()
    answer["left_alone"] += [id for id, parsed in numbers.items() if parsed is None]
    return answer
