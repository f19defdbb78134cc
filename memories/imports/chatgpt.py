"""ChatGPT's data export: `conversations.json` (or `conversations-000.json` and so on), alone or in its zip.

A conversation is a tree of messages, `mapping`; the path from the root to `current_node` is the branch last shown. The
export has no list of memories. They are in messages to the tool `bio`, and in older conversations in the context
`model_set_context`. The list of «Manage memories» is read as JSON (`memories` with `content`) or as copied text.

OpenAI publishes no description of the format. It was taken from public readers of such exports, among them the notes of
TomzxCode/llm-conversations-viewer (docs/formats.md)."""

import re
from typing import Any

from memories.imports.contents import ImportContents, ImportedMessage, memory_fields
from memories.imports.reading import Item, JsonFile, object_of, objects_of, parse_past_time, path_to, text_of

SOURCE = "chatgpt"
_READ = ("attachments", "citations", "content_references", "search_result_groups")  # in the metadata of a message
_SPOKEN_TYPES = ("text", "multimodal_text")
_FORGETS = re.compile(r"\s*(?:forg[eo]t|remove|delete|the user (?:wants|asked|would like) (?:\w+ )?to forget)\b", re.I)
_NUMBERED = re.compile(r"^[^\S\n]*\d{1,4}\.\s+(?:\[[\d-]{8,10}\]\.?\s*)?", re.MULTILINE)
_MAX_CONTEXT = 200_000  # characters


def is_chatgpt(item: Item) -> bool:
    """Return True for a conversation or an entry of the list of memories."""
    value = object_of(item.value)
    if item.key == "memories":
        return "content" in value and not {"state", "metadata", "app_id"} & value.keys()
    if item.key == "mapping":
        return any("message" in node for node in objects_of(list(value.values())))
    return not item.key and isinstance(value.get("mapping"), dict)


def add_chatgpt(item: Item, contents: ImportContents) -> None:
    """Add a memory, or a conversation and the memories saved in it. Raises TooLarge."""
    if item.key:
        _memory(item.place, text_of(object_of(item.value).get("content")), contents)
    else:
        _conversation(item.place, object_of(item.value), contents)


def finish_chatgpt(file: JsonFile, contents: ImportContents) -> None:
    """Add the saved memories of the file's newest conversation that has them as its context. Raises TooLarge."""
    (_, context), contents.newest_context = contents.newest_context, (None, "")
    for number, words in enumerate(_NUMBERED.split(context[:_MAX_CONTEXT])[1:], start=1):
        _memory(file.place(f"saved memory {number}"), words, contents)


def _memory(place: str, words: str, contents: ImportContents) -> None:
    if words.strip() and not _FORGETS.match(words):
        contents.add_memory(place, memory_fields(words.strip()))


def _conversation(place: str, data: dict[str, Any], contents: ImportContents) -> None:
    context = ""
    messages: list[ImportedMessage] = []
    changed_at = parse_past_time(data.get("update_time")) or parse_past_time(data.get("create_time"))
    for message in _shown_messages(data):
        content = object_of(message.get("content"))
        words = _message_text(content)
        if content.get("content_type") == "model_editable_context":
            context = text_of(content.get("model_set_context"))
        elif message.get("recipient") == "bio":
            _memory(f"{place}, saved to memory", words, contents)
        elif role := _role(message, content):
            messages.append(ImportedMessage(role=role, text=words, at=parse_past_time(message.get("create_time"))))
    id = text_of(data.get("conversation_id")) or text_of(data.get("id"))
    contents.add_conversation(
        place,
        SOURCE,
        id,
        title=text_of(data.get("title")),
        began_at=parse_past_time(data.get("create_time")),
        messages=messages,
        reads_elsewhere=any(map(_reads_elsewhere, _shown_messages(data))),
    )
    known_at = contents.newest_context[0]
    if context.strip() and (known_at is None or (changed_at is not None and changed_at >= known_at)):
        contents.newest_context = changed_at, context


def _shown_messages(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages from the root to the node last shown, or else to the last node of the file."""
    nodes = object_of(data.get("mapping"))
    at = data.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        at = next(reversed(nodes), None)
    return [object_of(node.get("message")) for node in path_to(at, nodes, "parent")]


def _role(message: dict[str, Any], content: dict[str, Any]) -> str:
    """Return a message's role, or "" if it is not part of the dialogue: tool calls and results, reasoning, contexts,
    and hidden messages."""
    role = text_of(object_of(message.get("author")).get("role"))
    hidden = object_of(message.get("metadata")).get("is_visually_hidden_from_conversation")
    to_tool = message.get("recipient") not in (None, "all")
    thought = message.get("channel") == "analysis" or content.get("content_type") not in _SPOKEN_TYPES
    return "" if role not in ("user", "assistant") or hidden or to_tool or thought else role


def _reads_elsewhere(message: dict[str, Any]) -> bool:
    """Whether a message is the result of a tool other than `bio`, has files or pictures, or cites pages."""
    author, parts = object_of(message.get("author")), object_of(message.get("content")).get("parts")
    is_result = author.get("role") == "tool" and author.get("name") != "bio"
    has_media = isinstance(parts, list) and any("text" not in part for part in objects_of(parts))
    metadata = object_of(message.get("metadata"))
    return is_result or has_media or any(metadata.get(name) for name in _READ)


def _message_text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_of(content.get("text"))
    # Audio messages have their transcript in a part of their own; images have no text.
    words = (part if isinstance(part, str) else text_of(object_of(part).get("text")) for part in parts)
    return "\n".join(part for part in words if part)
