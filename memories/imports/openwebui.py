"""Open WebUI: the list of memories, and the export of chats, as JSON.

A memory is `{id, user_id, content, updated_at, created_at}`. A chat has `chat.history.messages` by id; the path from
the root to `currentId` is the branch last shown. Older chats only have the list `chat.messages`. Reasoning and tool
calls are embedded in the answer's text as `<details type="…">` and are left out.

The format was taken from Open WebUI's source (open-webui/open-webui: backend/open_webui/models/memories.py,
chats.py)."""

import re
from typing import Any

from memories.imports.contents import ImportContents, ImportedMessage, memory_fields
from memories.imports.reading import Item, object_of, objects_of, parse_past_time, path_to, text_of

SOURCE = "openwebui"
_ROLES = ("user", "assistant")
# A block that is cut off takes the rest of the text.
_DETAILS = re.compile(
    r'<details\b[^<>]{0,2000}\btype="(?:reasoning|tool_calls|code_interpreter)"[^<>]{0,100000}>.*?(?:</details>|\Z)',
    re.DOTALL,
)
_TOOL_DETAILS = re.compile(r'<details\b[^<>]{0,2000}\btype="(?:tool_calls|code_interpreter)"')
_READ = ("files", "sources", "citations")  # fields of a message


def is_openwebui(item: Item) -> bool:
    """Return True for a memory or a chat."""
    value = object_of(item.value)
    if item.key:
        return item.key == "chat" and bool({"history", "messages"} & value.keys())
    chat = object_of(value.get("chat"))
    is_memory = {"user_id", "content", "created_at"} <= value.keys() and isinstance(value["created_at"], int | float)
    return bool({"history", "messages"} & chat.keys()) or is_memory


def add_openwebui(item: Item, contents: ImportContents) -> None:
    """Add a memory or a chat. Raises TooLarge."""
    value = object_of(item.value)
    if isinstance(value.get("chat"), dict):
        _chat(item.place, value, contents)
    elif words := text_of(value.get("content")):
        contents.add_memory(item.place, memory_fields(words))


def _chat(place: str, data: dict[str, Any], contents: ImportContents) -> None:
    chat = object_of(data.get("chat"))
    messages = [
        ImportedMessage(role=role, text=_message_text(message), at=parse_past_time(message.get("timestamp")))
        for message in _shown_messages(chat)
        if (role := text_of(message.get("role"))) in _ROLES
    ]
    contents.add_conversation(
        place,
        SOURCE,
        text_of(data.get("id")),
        title=text_of(data.get("title")) or text_of(chat.get("title")),
        began_at=parse_past_time(data.get("created_at")) or parse_past_time(chat.get("timestamp")),
        messages=messages,
        reads_elsewhere=any(map(_reads_elsewhere, _shown_messages(chat))),
    )


def _reads_elsewhere(message: dict[str, Any]) -> bool:
    """Whether a message has files, sources or calls of tools."""
    return any(message.get(name) for name in _READ) or bool(_TOOL_DETAILS.search(text_of(message.get("content"))))


def _shown_messages(chat: dict[str, Any]) -> list[dict[str, Any]]:
    history = object_of(chat.get("history"))
    branch = path_to(history.get("currentId"), object_of(history.get("messages")), "parentId")
    return branch or objects_of(chat.get("messages"))


def _message_text(message: dict[str, Any]) -> str:
    """Return the text without the blocks of reasoning and tool calls."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(text_of(part.get("text")) for part in objects_of(content))
    return _DETAILS.sub("", text_of(content))
