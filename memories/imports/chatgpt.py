"""ChatGPT's data export: `conversations.json` (or `conversations-000.json` and so on), alone or in its zip.

A conversation is a tree of messages, `mapping`, whose line from `current_node` to the root is what was last seen. The
export has no list of memories: what the model was told to remember stands in messages to the tool `bio`, and in the
context `model_set_context` that older conversations hold. The list of «Manage memories» is read as JSON (`memories`
with `content`) or as copied text.

The form was read from public readers of such exports, among them the notes of TomzxCode/llm-conversations-viewer
(docs/formats.md); OpenAI publishes no description."""

import re
from datetime import datetime
from typing import Any

from memories.database.batches import Slices
from memories.imports.found import Found, ImportedMessage, memory_fields
from memories.imports.reading import Item, JsonFile, each_item, line_to, moment, object_of, objects_of, text_of

SOURCE = "chatgpt"
_SAID = ("text", "multimodal_text")
_FORGETS = re.compile(r"\s*(?:forg[eo]t|remove|delete|the user (?:wants|asked|would like) (?:\w+ )?to forget)\b", re.I)
_NUMBERED = re.compile(r"^\s*\d{1,4}\.\s+(?:\[[\d-]{8,10}\]\.?\s*)?", re.MULTILINE)
_MOST_CONTEXT = 200_000


def is_chatgpt(item: Item) -> bool:
    """Return True for a conversation, and for an entry of the list of memories."""
    value = object_of(item.value)
    if item.key == "memories":
        return "content" in value and not {"state", "metadata", "app_id"} & value.keys()
    if item.key == "mapping":
        return any("message" in node for node in objects_of(list(value.values())))
    return not item.key and isinstance(value.get("mapping"), dict)


def read_chatgpt(file: JsonFile, found: Found) -> Slices[None]:
    """Add the conversations and memories of a file. Raises TooLarge."""
    context: tuple[datetime | None, str] = (None, "")
    alone: dict[str, Any] = {}  # the members of a file that is one conversation
    for item in each_item(file, found):
        if item is None:
            yield
        elif item.key == "memories":
            _memory(file.place(f"memory {item.number}"), text_of(object_of(item.value).get("content")), found)
        elif item.key:
            alone[item.key] = item.value
        else:
            context = _newer(context, _conversation(item.place, object_of(item.value), found))
    if alone:
        context = _newer(context, _conversation(file.place("conversation 1"), alone, found))
    for number, words in enumerate(_NUMBERED.split(context[1][:_MOST_CONTEXT])[1:], start=1):
        _memory(file.place(f"saved memory {number}"), words, found)


def _newer(one: tuple[datetime | None, str], other: tuple[datetime | None, str]) -> tuple[datetime | None, str]:
    """Return the later of two contexts; one without words counts as none."""
    if not other[1].strip() or (one[0] and (other[0] is None or other[0] < one[0])):
        return one
    return other


def _memory(place: str, words: str, found: Found) -> None:
    if words.strip() and not _FORGETS.match(words):
        found.memory(place, memory_fields(words.strip()))


def _conversation(place: str, data: dict[str, Any], found: Found) -> tuple[datetime | None, str]:
    """Add a conversation and what was to be remembered in it. Return the context of memories in it, with its time."""
    context: tuple[datetime | None, str] = (None, "")
    said: list[ImportedMessage] = []
    changed = moment(data.get("update_time")) or moment(data.get("create_time"))
    for message in _line(data):
        content = object_of(message.get("content"))
        words = _words(content)
        if content.get("content_type") == "model_editable_context":
            context = changed, text_of(content.get("model_set_context"))
        elif message.get("recipient") == "bio":
            _memory(f"{place}, saved to memory", words, found)
        elif role := _role(message, content):
            said.append(ImportedMessage(role=role, text=words, at=moment(message.get("create_time"))))
    id = text_of(data.get("conversation_id")) or text_of(data.get("id"))
    began = moment(data.get("create_time"))
    found.conversation(place, SOURCE, id, title=text_of(data.get("title")), began_at=began, messages=said)
    return context


def _line(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages from the root to the node that was shown last, or to the last one of the file."""
    nodes = object_of(data.get("mapping"))
    at = data.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        at = next(reversed(nodes), None)
    return [object_of(node.get("message")) for node in line_to(at, nodes, "parent")]


def _role(message: dict[str, Any], content: dict[str, Any]) -> str:
    """Return who said a message; "" for what nobody said to the other: calls and results of tools, thoughts, contexts
    and hidden messages."""
    role = text_of(object_of(message.get("author")).get("role"))
    hidden = object_of(message.get("metadata")).get("is_visually_hidden_from_conversation")
    to_tool = message.get("recipient") not in (None, "all")
    thought = message.get("channel") == "analysis" or content.get("content_type") not in _SAID
    return "" if role not in ("user", "assistant") or hidden or to_tool or thought else role


def _words(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_of(content.get("text"))
    # Spoken messages are parts of their own; pictures have no words.
    words = (part if isinstance(part, str) else text_of(object_of(part).get("text")) for part in parts)
    return "\n".join(part for part in words if part)
