"""Content blocks of the Anthropic Messages API as parts of chat messages. Blocks of tools that only Anthropic's servers
run are left out. So is thinking: what a server said with its calls is stored here, and found by the ids of the
calls."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.api.openai_body import short_name
from memories.errors import InvalidRequest

Block = dict[str, Any]
Message = dict[str, Any]
_GAP = "\n\n"
_NOTHING = " "  # some servers refuse an empty result
_ERROR = "Error:"
_LONGEST_NAME = 150
_NO_BRACKETS = str.maketrans("[]", "()")


def blocks_of(content: Any, where: str) -> list[Block]:
    """Return content as blocks; a text is one block. Raises InvalidRequest."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content):
        return content
    raise InvalidRequest(f"{where} is text or a list of content blocks, each with its type.", param=where)


def parts_of(blocks: Sequence[Block], where: str) -> list[dict[str, Any]]:
    """Return blocks as parts, with their `cache_control`. Empty texts are left out. Raises InvalidRequest for a file
    that is stored elsewhere."""
    found = []
    for block in blocks:
        translate = _PARTS.get(str(block.get("type")))
        part = translate(block, where) if translate else None
        if part is None or part.get("text") == "":
            continue
        if part["type"] == "file" and block.get("context"):
            found.append(_file_text(block, block["context"]))
        cached = block.get("cache_control")
        found.append({**part, "cache_control": cached} if cached else part)
    return found


def plain(parts: Sequence[dict[str, Any]]) -> Any:
    """Return parts as the content of a message. A single text becomes a plain string, which every server takes."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0].keys() == {"type", "text"} else list(parts)


def joined_text(blocks: Sequence[Block]) -> str:
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return _GAP.join(text for text in texts if isinstance(text, str) and text)


def assistant_message(blocks: Sequence[Block], where: str) -> Message:
    """Return a message of the assistant with its tool calls. Raises InvalidRequest."""
    message: Message = {"role": "assistant", "content": joined_text(blocks) or None}
    calls = [_call(block, where) for block in blocks if block.get("type") == "tool_use"]
    return {**message, "tool_calls": calls} if calls else message


def result_message(block: Block, where: str) -> Message:
    """Return the result of a tool call as a message. Raises InvalidRequest."""
    parts = parts_of(blocks_of(block.get("content") or "", f"{where}.tool_result.content"), where)
    if block.get("is_error"):
        parts = [{"type": "text", "text": _ERROR}, *parts]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    content: Any = _GAP.join(texts) or _NOTHING
    if len(texts) < len(parts) or "cache_control" in block:
        content = parts or [{"type": "text", "text": _NOTHING}]
        if cached := block.get("cache_control"):
            content = [*content[:-1], {**content[-1], "cache_control": cached}]
    return {"role": "tool", "tool_call_id": str(block.get("tool_use_id", "")), "content": content}


def _call(block: Block, where: str) -> dict[str, Any]:
    if not isinstance(block.get("name"), str) or not isinstance(block.get("id"), str):
        raise InvalidRequest(f"{where} holds a tool_use without id or name.", param=where)
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": short_name(block["name"]), "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _text(block: Block, where: str) -> dict[str, Any]:
    text = block.get("text")
    if not isinstance(text, str):
        raise InvalidRequest(f"{where} holds a text block without text.", param=where)
    return {"type": "text", "text": text}


def _image(block: Block, where: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": _address(_source(block, where), where)}}


def _document(block: Block, where: str) -> dict[str, Any]:
    source = _source(block, where)
    if source.get("type") == "text":
        return _file_text(block, block.get("context"), source.get("data"))
    if source.get("type") == "content":
        return _file_text(block, block.get("context"), joined_text(blocks_of(source.get("content"), where)))
    title = block.get("title")
    named = title if isinstance(title, str) and title else "document.pdf"
    return {"type": "file", "file": {"filename": named, "file_data": _address(source, where)}}


def _search_result(block: Block, where: str) -> dict[str, Any]:
    found = joined_text(blocks_of(block.get("content") or "", where))
    return _file_text(block, block.get("source"), found)


def _file_text(block: Block, *texts: Any) -> dict[str, Any]:
    """Return the text of a file. Its first line names the file, as in the chat: the person did not write this text."""
    said = _GAP.join(str(text) for text in texts if text)
    name = " ".join(str(block.get("title") or "document").translate(_NO_BRACKETS).split())[:_LONGEST_NAME]
    return {"type": "text", "text": said and f"[File {name}]\n{said}"}


def _source(block: Block, where: str) -> Mapping[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict):
        raise InvalidRequest(f"{where} holds a block of type {block['type']} without a source.", param=where)
    return source


def _address(source: Mapping[str, Any], where: str) -> str:
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        return f"data:{source.get('media_type', 'application/octet-stream')};base64,{source['data']}"
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return str(source["url"])
    raise InvalidRequest(
        f"{where} holds a source that is not known here. There is no store of files: send it as base64 or url.",
        param=where,
    )


_PARTS: Mapping[str, Callable[[Block, str], dict[str, Any]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
}
