"""Open WebUI: the list of memories, and the export of chats, as JSON.

A memory is `{id, user_id, content, updated_at, created_at}`. A chat has `chat.history.messages` by id, whose line from
`currentId` to the root is what was last seen; older ones have only the list `chat.messages`. Reasoning and calls of
tools stand in the text of an answer as `<details type="…">` and are left out.

The form was read from Open WebUI's source (open-webui/open-webui: backend/open_webui/models/memories.py,
chats.py)."""

import re
from typing import Any

from memories.database.batches import Slices
from memories.imports.found import Found, ImportedMessage, memory_fields
from memories.imports.reading import Item, JsonFile, each_item, line_to, moment, object_of, objects_of, text_of

SOURCE = "openwebui"
_ROLES = ("user", "assistant")
_NOISE = re.compile(r'<details\b[^<>]{0,2000}\btype="(?:reasoning|tool_calls|code_interpreter)"[^<>]{0,100000}>')
_END = "</details>"


def is_openwebui(item: Item) -> bool:
    """Return True for a memory or a chat."""
    value = object_of(item.value)
    if item.key:
        return item.key == "chat" and bool({"history", "messages"} & value.keys())
    chat = object_of(value.get("chat"))
    is_memory = {"user_id", "content", "created_at"} <= value.keys() and isinstance(value["created_at"], int | float)
    return bool({"history", "messages"} & chat.keys()) or is_memory


def read_openwebui(file: JsonFile, found: Found) -> Slices[None]:
    """Add the memories and chats of a file. Raises TooLarge."""
    alone: dict[str, Any] = {}  # the members of a file that is one chat
    for item in each_item(file, found):
        if item is None:
            yield
        elif item.key:
            alone[item.key] = item.value
        elif isinstance((value := object_of(item.value)).get("chat"), dict):
            _chat(item.place, value, found)
        elif words := text_of(value.get("content")):
            found.memory(item.place, memory_fields(words))
    if isinstance(alone.get("chat"), dict):
        _chat(file.place("chat 1"), alone, found)


def _chat(place: str, data: dict[str, Any], found: Found) -> None:
    chat = object_of(data.get("chat"))
    said = [
        ImportedMessage(role=role, text=_words(message), at=moment(message.get("timestamp")))
        for message in _line(chat)
        if (role := text_of(message.get("role"))) in _ROLES
    ]
    title = text_of(data.get("title")) or text_of(chat.get("title"))
    began = moment(data.get("created_at")) or moment(chat.get("timestamp"))
    found.conversation(place, SOURCE, text_of(data.get("id")), title=title, began_at=began, messages=said)


def _line(chat: dict[str, Any]) -> list[dict[str, Any]]:
    history = object_of(chat.get("history"))
    found = line_to(history.get("currentId"), object_of(history.get("messages")), "parentId")
    return found or objects_of(chat.get("messages"))


def _words(message: dict[str, Any]) -> str:
    """Return what was said, without the blocks of reasoning and tools."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(text_of(part.get("text")) for part in objects_of(content))
    text, at = text_of(content), 0
    kept: list[str] = []
    while block := _NOISE.search(text, at):
        end = text.find(_END, block.end())
        if end < 0:  # it was cut off: what follows belongs to nobody else
            return "".join([*kept, text[at : block.start()]])
        kept.append(text[at : block.start()])
        at = end + len(_END)
    return "".join([*kept, text[at:]])
