"""mem0: the results of `get_all` and its exports, as JSON, and the backups of OpenMemory.

Entries are in `results` (the outermost list in older versions) or `memories`; their text is `memory`, or `content` in
OpenMemory. The first of an entry's `categories` becomes the category, the others become keywords.

The format was taken from mem0's documentation (docs.mem0.ai: get memories, exporting memories) and its source
(mem0ai/mem0, mem0/memory/main.py)."""

from memories.imports.contents import ImportContents, memory_fields
from memories.imports.reading import Item, object_of, parse_iso_time, text_of

MEM0_LISTS = ("", "results", "memories")
_REMOVED_STATES = ("deleted", "archived")
_MEMORY_KEYS = {"memory", "hash", "state", "metadata", "app_id", "category_ids"}


def is_mem0(item: Item) -> bool:
    """Return True for a memory."""
    value = object_of(item.value)
    if item.key not in MEM0_LISTS or not _text(value):
        return False
    return "memory" in value or item.key == "results" or bool(value.keys() & _MEMORY_KEYS)


def add_mem0(item: Item, contents: ImportContents) -> None:
    """Add a memory, unless it was deleted or archived. Raises TooLarge."""
    value = object_of(item.value)
    if (words := _text(value)) and value.get("state") not in _REMOVED_STATES:
        category, *more = _categories(value) or [""]
        expires_at = parse_iso_time(value.get("expiration_date"))
        contents.add_memory(item.place, memory_fields(words, category=category, keywords=more, expires_at=expires_at))


def _categories(value: dict[str, object]) -> list[str]:
    listed, metadata = value.get("categories"), object_of(value.get("metadata"))
    names = [*(listed if isinstance(listed, list) else ()), metadata.get("category")]
    return [name for name in map(text_of, names) if name]


def _text(value: dict[str, object]) -> str:
    return next((text for key in ("memory", "content", "text", "data") if (text := text_of(value.get(key)))), "")
