"""Translates content blocks of the Anthropic Messages API to parts of chat messages. Blocks of tools that Anthropic's
servers run are left out. So is thinking: Daybook has stored it with the model's calls and finds it by their ids."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.api.openai_body import short_name
from gateway.messages import PARAGRAPH, ChatMessage
from memories.errors import InvalidRequest

Block = dict[str, Any]
_EMPTY_RESULT = " "  # some servers refuse an empty string
_ERROR = "Error:"
_TEXT_FIELDS = {"text": "text", "compaction": "content"}
_MAX_NAME_CHARS = 150
_NO_BRACKETS = str.maketrans("[]", "()")


def blocks_of(content: Any, where: str) -> list[Block]:
    """Return content as blocks. A string becomes one text block. Raises InvalidRequest."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content):
        return content
    raise InvalidRequest(f"{where} must be text or a list of content blocks, each with its type.", param=where)


def parts_of(blocks: Sequence[Block], where: str) -> list[dict[str, Any]]:
    """Return blocks as message parts, with their `cache_control`. Empty text is left out. Raises InvalidRequest, among
    others for a file that is referred to by an id."""
    parts = []
    for block in blocks:
        translate = _PARTS.get(str(block.get("type")))
        part = translate(block, where) if translate else None
        if part is None or part.get("text") == "":
            continue
        if part["type"] == "file" and block.get("context"):
            parts.append(_file_text(block, block["context"]))
        cache_control = block.get("cache_control")
        parts.append({**part, "cache_control": cache_control} if cache_control else part)
    return parts


def content_of(parts: Sequence[dict[str, Any]]) -> Any:
    """Return parts as a message content. A single text becomes a string, which every server accepts."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0].keys() == {"type", "text"} else list(parts)


def joined_text(blocks: Sequence[Block]) -> str:
    """Return the text of blocks, among it the summaries with which Anthropic's servers replace earlier messages."""
    texts = (block.get(_TEXT_FIELDS.get(str(block.get("type")), "")) for block in blocks)
    return PARAGRAPH.join(text for text in texts if isinstance(text, str) and text)


def assistant_message(blocks: Sequence[Block], where: str) -> ChatMessage:
    """Return blocks as an assistant message with its tool calls. Raises InvalidRequest."""
    message: ChatMessage = {"role": "assistant", "content": joined_text(blocks) or None}
    calls = [_call(block, where) for block in blocks if block.get("type") == "tool_use"]
    return {**message, "tool_calls": calls} if calls else message


def result_message(block: Block, where: str) -> ChatMessage:
    """Return a tool_result block as a message. Raises InvalidRequest."""
    parts = parts_of(blocks_of(block.get("content") or "", f"{where}.tool_result.content"), where)
    if block.get("is_error"):
        parts = [{"type": "text", "text": _ERROR}, *parts]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    content: Any = PARAGRAPH.join(texts) or _EMPTY_RESULT
    if len(texts) < len(parts) or "cache_control" in block:
        content = parts or [{"type": "text", "text": _EMPTY_RESULT}]
        if cache_control := block.get("cache_control"):
            content = [*content[:-1], {**content[-1], "cache_control": cache_control}]
    return {"role": "tool", "tool_call_id": str(block.get("tool_use_id", "")), "content": content}


def is_read_by_server(content: Any) -> bool:
    """Whether an assistant message has results of tools that Anthropic's servers ran, or text that cites them."""
    blocks = content if isinstance(content, list) else ()
    return any(block.get("citations") or str(block.get("type")).endswith("_tool_result") for block in blocks)


def _call(block: Block, where: str) -> dict[str, Any]:
    if not isinstance(block.get("name"), str) or not isinstance(block.get("id"), str):
        raise InvalidRequest(f"{where} has a tool_use block without an id or a name.", param=where)
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": short_name(block["name"]), "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _text(block: Block, where: str) -> dict[str, Any]:
    text = block.get("text")
    if not isinstance(text, str):
        raise InvalidRequest(f"{where} has a text block without text.", param=where)
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
    name = title if isinstance(title, str) and title else "document.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": _address(source, where)}}


def _search_result(block: Block, where: str) -> dict[str, Any]:
    return _file_text(block, block.get("source"), joined_text(blocks_of(block.get("content") or "", where)))


def _tool_reference(block: Block, where: str) -> dict[str, Any]:
    return {"type": "text", "text": f"You can now call `{short_name(str(block.get('tool_name')))}`."}


def _file_text(block: Block, *texts: Any) -> dict[str, Any]:
    """Return the text of a file as a part. As in the chat, its first line names the file, which marks the text as not
    written by the person."""
    text = PARAGRAPH.join(str(text) for text in texts if text)
    name = " ".join(str(block.get("title") or "document").translate(_NO_BRACKETS).split())[:_MAX_NAME_CHARS]
    return {"type": "text", "text": text and f"[File {name}]\n{text}"}


def _source(block: Block, where: str) -> Mapping[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict):
        raise InvalidRequest(f"{where} has a block of type {block['type']} without a source.", param=where)
    return source


def _address(source: Mapping[str, Any], where: str) -> str:
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        return f"data:{source.get('media_type', 'application/octet-stream')};base64,{source['data']}"
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return str(source["url"])
    raise InvalidRequest(
        f"{where} has a source of an unsupported type. Daybook has no file storage: send it as base64 or url.",
        param=where,
    )


_PARTS: Mapping[str, Callable[[Block, str], dict[str, Any]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_reference": _tool_reference,
}
