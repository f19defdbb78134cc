"""mem0: what `get_all` returns and what its export writes, as JSON; also the backup of OpenMemory.

Entries stand in `results` (in older versions in the outermost list) or `memories` and have their text as `memory`, or
as `content` in OpenMemory. The first of their `categories` becomes the category, the others become keywords.

The form was read from mem0's documentation (docs.mem0.ai: get memories, exporting memories) and its source
(mem0ai/mem0, mem0/memory/main.py)."""

from memories.database.batches import Slices
from memories.imports.found import Found, memory_fields
from memories.imports.reading import Item, JsonFile, each_item, iso_moment, object_of, text_of, texts_of

_LISTS = ("", "results", "memories")
_GONE = ("deleted", "archived")
_MARKS = {"memory", "hash", "state", "metadata", "app_id", "category_ids"}


def is_mem0(item: Item) -> bool:
    """Return True for an entry."""
    value = object_of(item.value)
    if item.key not in _LISTS or not _text(value):
        return False
    return "memory" in value or item.key == "results" or bool(value.keys() & _MARKS)


def read_mem0(file: JsonFile, found: Found) -> Slices[None]:
    """Add the memories of a file. Raises TooLarge."""
    for item in each_item(file, found):
        if item is None:
            yield
            continue
        value = object_of(item.value)
        if item.key in _LISTS and (words := _text(value)) and value.get("state") not in _GONE:
            category, *more = _categories(value) or [""]
            expires_at = iso_moment(value.get("expiration_date"))
            found.memory(item.place, memory_fields(words, category=category, keywords=more, expires_at=expires_at))


def _categories(value: dict[str, object]) -> list[str]:
    metadata = object_of(value.get("metadata"))
    return [name for name in (*texts_of(value.get("categories")), text_of(metadata.get("category"))) if name]


def _text(value: dict[str, object]) -> str:
    return next((text for key in ("memory", "content", "text", "data") if (text := text_of(value.get(key)))), "")
