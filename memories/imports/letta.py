"""Letta (MemGPT): agent files, `.af`, and the list of archival passages, as JSON.

An agent file has `agents` with their messages and `blocks` of core memory; older ones are one agent with `core_memory`
and `messages`. The block `human` is about the person, the others are the agent's. What a person said is wrapped in JSON
with a `type`; what the agent said is the call of `send_message`, or plain text for newer agents. Passages of archival
memory are in no agent file: they come from its API as a list with `text` and `embedding`.

The form was read from Letta's source (letta-ai/letta: letta/schemas/agent_file.py, message.py and passage.py)."""

from typing import Any

from memories.database.batches import Slices
from memories.errors import InvalidRequest
from memories.imports.found import Found, ImportedMessage, memory_fields
from memories.imports.prose import markdown_passages
from memories.imports.reading import Item, JsonFile, each_item, moment, object_of, objects_of, text_of
from memories.json_input import read_json

SOURCE = "letta"
_BLOCKS = ("blocks", "core_memory")
_PASSAGES = ("", "passages", "archival_memory")
_MARKS = {"embedding", "embedding_config", "archive_id", "agent_id", "source_id"}


def is_letta(item: Item) -> bool:
    """Return True for an agent, a block of core memory, and a passage."""
    value = object_of(item.value)
    if item.key == "agents":
        return "messages" in value or "block_ids" in value
    if item.key in _BLOCKS:
        return {"label", "value"} <= value.keys()
    return item.key in _PASSAGES and isinstance(value.get("text"), str) and bool(value.keys() & _MARKS)


def read_letta(file: JsonFile, found: Found) -> Slices[None]:
    """Add the blocks, passages and conversations of a file. Raises TooLarge."""
    alone: dict[str, Any] = {}  # the members of a file that is one agent
    for item in each_item(file, found):
        if item is None:
            yield
            continue
        value = object_of(item.value)
        if item.key in _BLOCKS:
            _block(item.place, value, found)
        elif item.key == "agents":
            _conversation(item.place, value, found)
        elif item.key in _PASSAGES and text_of(value.get("text")):
            found.memory(item.place, memory_fields(text_of(value["text"]), target="memory", category="archival"))
        elif item.key == "messages":
            alone.setdefault("messages", []).append(value)
        elif item.key in {"name", "id", "created_at"}:
            alone[item.key] = item.value
    if "messages" in alone:
        _conversation(file.place("messages"), alone, found)


def _block(place: str, block: dict[str, Any], found: Found) -> None:
    label = text_of(block.get("label"))
    for passage in markdown_passages(text_of(block.get("value"))):
        target = "user" if label == "human" else "memory"
        category = (passage.headings[-1] if passage.headings else "") if target == "user" else label
        fields = memory_fields(passage.text, target=target, category=category, keywords=passage.headings)
        found.memory(f"{place}, line {passage.line}", fields)


def _conversation(place: str, agent: dict[str, Any], found: Found) -> None:
    said = []
    for message in objects_of(agent.get("messages")):
        role, at = message.get("role"), moment(message.get("created_at"))
        words = _of_person(message) if role == "user" else _of_agent(message) if role == "assistant" else ""
        if words:
            said.append(ImportedMessage(role=str(role), text=words, at=at))
    name = text_of(agent.get("name"))
    # The ids of an agent file (`agent-0`) are the same in every file: the words tell conversations apart.
    found.conversation(place, SOURCE, "", title=name, began_at=moment(agent.get("created_at")), messages=said)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (text_of(part.get("text")) for part in objects_of(content) if part.get("type", "text") == "text")
    return "\n\n".join(text for text in texts if text) or text_of(message.get("text"))


def _of_person(message: dict[str, Any]) -> str:
    """Return what a person said; "" for what the server told the agent (heartbeats, logins)."""
    words = _content(message)
    if not words.lstrip().startswith("{"):
        return words
    wrapped = _json(words)
    if not isinstance(wrapped.get("type"), str):
        return words
    return text_of(wrapped.get("message")) if wrapped["type"] == "user_message" else ""


def _of_agent(message: dict[str, Any]) -> str:
    calls = objects_of(message.get("tool_calls"))
    if not calls:
        return _content(message)
    # Beside its calls an agent writes down what it thinks.
    functions = [object_of(call.get("function")) for call in calls]
    sent = [_json(text_of(f.get("arguments"))) for f in functions if f.get("name") == "send_message"]
    return "\n\n".join(words for arguments in sent if (words := text_of(arguments.get("message"))))


def _json(text: str) -> dict[str, Any]:
    try:
        return object_of(read_json(text, repair=True))
    except InvalidRequest:
        return {}
