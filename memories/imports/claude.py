"""Claude's data export: `conversations.json`, `memories.json` and `projects.json` (or one file for each), alone or in
its zip.

A conversation has `chat_messages` of `human` and `assistant`, whose `content` is a list of blocks. A memory file has
Markdown texts, `conversations_memory` and `project_memories` by the id of the project. A project gives its description;
its instructions and documents are not memories and are left out.

The form was read from public readers of such exports, among them Sinity/polylogue (docs/providers/claude-ai.md);
Anthropic publishes no description."""

from typing import Any

from memories.database.batches import Slices
from memories.imports.found import Found, ImportedMessage, memory_fields
from memories.imports.prose import markdown_passages
from memories.imports.reading import Item, JsonFile, each_item, moment, object_of, objects_of, text_of

SOURCE = "claude"
_ROLES = {"human": "user", "assistant": "assistant"}
_MEMORY_KEYS = {"conversations_memory", "project_memories"}


def is_claude(item: Item) -> bool:
    """Return True for a conversation, a memory file and a project."""
    if item.key:
        return item.key in {"chat_messages", "prompt_template"} | _MEMORY_KEYS
    keys = object_of(item.value).keys()
    return bool("chat_messages" in keys or keys & _MEMORY_KEYS or {"uuid", "prompt_template", "docs"} <= keys)


def read_claude(file: JsonFile, found: Found) -> Slices[None]:
    """Add the conversations, memories and projects of a file. Raises TooLarge."""
    alone: dict[str, Any] = {}  # the members of a file that is one object
    for item in each_item(file, found):
        if item is None:
            yield
        elif item.key == "chat_messages":
            alone.setdefault(item.key, []).append(item.value)
        elif item.key:
            alone[item.key] = item.value
        else:
            _take(item.place, object_of(item.value), found)
    if alone:
        _take(file.place("entry 1"), alone, found)


def _take(place: str, data: dict[str, Any], found: Found) -> None:
    if "chat_messages" in data:
        _conversation(place, data, found)
    elif data.keys() & _MEMORY_KEYS:
        _memories(place, data, found)
    else:
        _project(place, data, found)


def _conversation(place: str, data: dict[str, Any], found: Found) -> None:
    said = [
        ImportedMessage(role=role, text=_words(message), at=moment(message.get("created_at")))
        for message in objects_of(data.get("chat_messages"))
        if (role := _ROLES.get(text_of(message.get("sender"))))
    ]
    title, began = text_of(data.get("name")), moment(data.get("created_at"))
    found.conversation(place, SOURCE, text_of(data.get("uuid")), title=title, began_at=began, messages=said)


def _words(message: dict[str, Any]) -> str:
    """Return what was said; thoughts, calls of tools and their results are other blocks."""
    blocks = [block for block in objects_of(message.get("content")) if block.get("type") == "text"]
    words = "\n\n".join(text for block in blocks if (text := text_of(block.get("text"))))
    return words or text_of(message.get("text"))


def _memories(place: str, data: dict[str, Any], found: Found) -> None:
    _passages(place, text_of(data.get("conversations_memory")), "", found)
    for project, text in object_of(data.get("project_memories")).items():
        _passages(place, text_of(text), found.names.get(project, "project"), found)


def _passages(place: str, text: str, project: str, found: Found) -> None:
    for passage in markdown_passages(text):
        category = project or (passage.headings[-1] if passage.headings else "")
        keywords = passage.headings if project else passage.headings[:-1]
        fields = memory_fields(passage.text, category=category, keywords=keywords)
        found.memory(f"{place}, line {passage.line}", fields)


def _project(place: str, data: dict[str, Any], found: Found) -> None:
    name, description = text_of(data.get("name")).strip(), text_of(data.get("description")).strip()
    found.names[text_of(data.get("uuid"))] = name or "project"
    if description and not data.get("is_starter_project"):
        words = f"Project {name}: {description}" if name else f"Project: {description}"
        found.memory(place, memory_fields(words, category="project"))
