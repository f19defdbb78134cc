"""Letta (MemGPT): agent files, `.af`, and the list of archival passages, as JSON.

An agent file has `agents` with their messages and `blocks` of core memory; older files are one agent with `core_memory`
and `messages`. The block `human` is about the person, the others belong to the agent. The person's messages are wrapped
in JSON with a `type`; the agent's messages are calls of `send_message`, or plain text from newer agents. Archival
passages are not part of agent files: Letta's API returns them as a list with `text` and `embedding`.

The format was taken from Letta's source (letta-ai/letta: letta/schemas/agent_file.py, message.py and passage.py)."""

import re
from typing import Any

from memories.errors import InvalidRequest
from memories.imports.contents import ImportContents, ImportedMessage, memory_fields
from memories.imports.prose import markdown_passages
from memories.imports.reading import Item, object_of, objects_of, parse_past_time, text_of
from memories.json_input import read_json

SOURCE = "letta"
_OWN_TOOL = re.compile(r"send_message|memory|conversation_search")
_BLOCKS = ("blocks", "core_memory")
_PASSAGES = ("", "passages", "archival_memory")
LETTA_LISTS = (*_BLOCKS, *_PASSAGES, "agents")
_PASSAGE_KEYS = {"embedding", "embedding_config", "archive_id", "agent_id", "source_id"}


def is_letta(item: Item) -> bool:
    """Return True for an agent, a block of core memory or a passage."""
    value = object_of(item.value)
    if item.key == "agents":
        return "messages" in value or "block_ids" in value
    if item.key in _BLOCKS:
        return {"label", "value"} <= value.keys()
    return item.key in _PASSAGES and isinstance(value.get("text"), str) and bool(value.keys() & _PASSAGE_KEYS)


def add_letta(item: Item, contents: ImportContents) -> None:
    """Add a block, a passage or an agent's conversation. Raises TooLarge."""
    value = object_of(item.value)
    if item.key in _BLOCKS:
        _block(item.place, value, contents)
    elif item.key == "agents" or "messages" in value:
        _conversation(item.place, value, contents)
    elif words := text_of(value.get("text")):
        contents.add_memory(item.place, memory_fields(words, target="memory", category="archival"))


def _block(place: str, block: dict[str, Any], contents: ImportContents) -> None:
    label = text_of(block.get("label"))
    for passage in markdown_passages(text_of(block.get("value"))):
        target = "user" if label == "human" else "memory"
        category = (passage.headings[-1] if passage.headings else "") if target == "user" else label
        fields = memory_fields(passage.text, target=target, category=category, keywords=passage.headings)
        contents.add_memory(f"{place}, line {passage.line}", fields)


def _conversation(place: str, agent: dict[str, Any], contents: ImportContents) -> None:
    messages = []
    for message in objects_of(agent.get("messages")):
        role, at = message.get("role"), parse_past_time(message.get("created_at"))
        words = _person_text(message) if role == "user" else _agent_text(message) if role == "assistant" else ""
        if words:
            messages.append(ImportedMessage(role=str(role), text=words, at=at))
    name = text_of(agent.get("name"))
    # Ids such as `agent-0` are the same in every agent file, so conversations are identified by their text.
    contents.add_conversation(
        place,
        SOURCE,
        "",
        title=name,
        began_at=parse_past_time(agent.get("created_at")),
        messages=messages,
        reads_elsewhere=any(map(_reads_elsewhere, objects_of(agent.get("messages")))),
    )


def _reads_elsewhere(message: dict[str, Any]) -> bool:
    """Whether a message calls tools other than Letta's own, which send messages and search memory."""
    functions = [object_of(call.get("function")) for call in objects_of(message.get("tool_calls"))]
    return not all(_OWN_TOOL.search(text_of(function.get("name"))) for function in functions)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (text_of(part.get("text")) for part in objects_of(content) if part.get("type", "text") == "text")
    return "\n\n".join(text for text in texts if text) or text_of(message.get("text"))


def _person_text(message: dict[str, Any]) -> str:
    """Return the person's text, or "" for the server's own events (heartbeats, logins)."""
    words = _content(message)
    if not words.lstrip().startswith("{"):
        return words
    wrapped = _json(words)
    if not isinstance(wrapped.get("type"), str):
        return words
    return text_of(wrapped.get("message")) if wrapped["type"] == "user_message" else ""


def _agent_text(message: dict[str, Any]) -> str:
    calls = objects_of(message.get("tool_calls"))
    if not calls:
        return _content(message)
    # Text beside tool calls is the agent's reasoning.
    functions = [object_of(call.get("function")) for call in calls]
    sent = [
        _json(text_of(function.get("arguments"))) for function in functions if function.get("name") == "send_message"
    ]
    return "\n\n".join(words for arguments in sent if (words := text_of(arguments.get("message"))))


def _json(text: str) -> dict[str, Any]:
    try:
        return object_of(read_json(text, repair=True))
    except InvalidRequest:
        return {}
