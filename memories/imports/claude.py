"""Claude's data export: `conversations.json`, `memories.json` and `projects.json` (or one file per project), alone or
in its zip.

A conversation has `chat_messages` by `human` and `assistant`, whose `content` is a list of blocks. A memory file has
Markdown texts: `conversations_memory`, and `project_memories` by project id. A project's description becomes a memory;
its instructions and documents are not memories and are left out.

Anthropic publishes no description of the format. It was taken from public readers of such exports, among them
Sinity/polylogue (docs/providers/claude-ai.md)."""

from typing import Any

from memories.imports.contents import ImportContents, ImportedMessage, memory_fields
from memories.imports.prose import markdown_passages
from memories.imports.reading import Item, object_of, objects_of, parse_past_time, text_of

SOURCE = "claude"
_ROLES = {"human": "user", "assistant": "assistant"}
_MEMORY_KEYS = {"conversations_memory", "project_memories"}


def is_claude(item: Item) -> bool:
    """Return True for a conversation, a memory file or a project."""
    if item.key:
        return item.key in {"chat_messages", "prompt_template"} | _MEMORY_KEYS
    keys = object_of(item.value).keys()
    return bool("chat_messages" in keys or keys & _MEMORY_KEYS or {"uuid", "prompt_template", "docs"} <= keys)


def add_claude(item: Item, contents: ImportContents) -> None:
    """Add a conversation, the memories of a memory file, or a project. Raises TooLarge."""
    data = object_of(item.value)
    if "chat_messages" in data:
        _conversation(item.place, data, contents)
    elif data.keys() & _MEMORY_KEYS:
        _memories(item.place, data, contents)
    else:
        _project(item.place, data, contents)


def _conversation(place: str, data: dict[str, Any], contents: ImportContents) -> None:
    messages = [
        ImportedMessage(role=role, text=_message_text(message), at=parse_past_time(message.get("created_at")))
        for message in objects_of(data.get("chat_messages"))
        if (role := _ROLES.get(text_of(message.get("sender"))))
    ]
    contents.add_conversation(
        place,
        SOURCE,
        text_of(data.get("uuid")),
        title=text_of(data.get("name")),
        began_at=parse_past_time(data.get("created_at")),
        messages=messages,
        reads_elsewhere=any(map(_reads_elsewhere, objects_of(data.get("chat_messages")))),
    )


def _reads_elsewhere(message: dict[str, Any]) -> bool:
    """Whether a message has files, results of tools or citations."""
    blocks = objects_of(message.get("content"))
    read = any(block.get("type") == "tool_result" or block.get("citations") for block in blocks)
    return read or bool(message.get("attachments") or message.get("files"))


def _message_text(message: dict[str, Any]) -> str:
    """Return the text blocks, without thinking, tool calls and tool results."""
    blocks = [block for block in objects_of(message.get("content")) if block.get("type") == "text"]
    words = "\n\n".join(text for block in blocks if (text := text_of(block.get("text"))))
    return words or text_of(message.get("text"))


def _memories(place: str, data: dict[str, Any], contents: ImportContents) -> None:
    _passages(place, text_of(data.get("conversations_memory")), "", contents)
    for project, text in object_of(data.get("project_memories")).items():
        _passages(place, text_of(text), contents.project_names.get(project, "project"), contents)


def _passages(place: str, text: str, project: str, contents: ImportContents) -> None:
    for passage in markdown_passages(text):
        category = project or (passage.headings[-1] if passage.headings else "")
        keywords = passage.headings if project else passage.headings[:-1]
        fields = memory_fields(passage.text, category=category, keywords=keywords)
        contents.add_memory(f"{place}, line {passage.line}", fields)


def _project(place: str, data: dict[str, Any], contents: ImportContents) -> None:
    name, description = text_of(data.get("name")).strip(), text_of(data.get("description")).strip()
    contents.project_names[text_of(data.get("uuid"))] = name or "project"
    if description and not data.get("is_starter_project"):
        words = f"Project {name}: {description}" if name else f"Project: {description}"
        contents.add_memory(place, memory_fields(words, category="project"))
