"""The table of formats, and the way from an upload to what is found in it. A format is recognised by its structure;
the person may name another one."""

from collections.abc import Callable
from dataclasses import dataclass

from memories.database.batches import Slices, reads
from memories.errors import InvalidRequest
from memories.imports.chatgpt import is_chatgpt, read_chatgpt
from memories.imports.claude import is_claude, read_claude
from memories.imports.files import Files, SourceFile, Upload
from memories.imports.found import Found
from memories.imports.json_members import members_of
from memories.imports.jsonl import is_jsonl, read_jsonl
from memories.imports.letta import is_letta, read_letta
from memories.imports.mem0 import is_mem0, read_mem0
from memories.imports.openwebui import is_openwebui, read_openwebui
from memories.imports.prose import is_markdown, read_markdown, read_text
from memories.imports.reading import Item, JsonFile

AUTO = "auto"
_CONSTANTS = ("null", "true", "false")  # JSON that a program sends by mistake, and no words to remember
IMPORT_TYPES = (
    "application/json", "application/octet-stream", "application/zip", "application/x-zip-compressed", "text/markdown",
    "text/plain",
)  # fmt: skip
"""Content types of an import beside that of JSON Lines."""
_LOOKED_AT = 20  # members of a file that recognise its format


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format. `label` is for people; `read_text` reads text, `read_json` and `recognises` are for JSON."""

    name: str
    label: str
    read_text: Callable[[SourceFile, Found], Slices[None]]
    read_json: Callable[[JsonFile, Found], Slices[None]] | None = None
    recognises: Callable[[Item], bool] = lambda item: False


_TABLE = (
    Format(name="jsonl", label="Daybook export, or JSON Lines", read_text=read_jsonl),
    Format(name="chatgpt", label="ChatGPT", read_text=read_text, read_json=read_chatgpt, recognises=is_chatgpt),
    Format(name="claude", label="Claude", read_text=read_markdown, read_json=read_claude, recognises=is_claude),
    Format(name="letta", label="Letta", read_text=read_text, read_json=read_letta, recognises=is_letta),
    Format(
        name="openwebui", label="Open WebUI", read_text=read_text, read_json=read_openwebui, recognises=is_openwebui
    ),
    Format(name="mem0", label="mem0", read_text=read_text, read_json=read_mem0, recognises=is_mem0),
    Format(name="markdown", label="Markdown list", read_text=read_markdown),
    Format(name="text", label="Text, one memory a line or paragraph", read_text=read_text),
)
FORMATS = {format.name: format for format in _TABLE}
"""Formats by name. Of two that recognise the same the earlier one counts."""
_BY_SUFFIX = {"jsonl": "jsonl", "ndjson": "jsonl", "md": "markdown", "markdown": "markdown"}


@reads
def found_in(upload: Upload, *, format: str = AUTO, book: str, with_conversations: bool = True) -> Slices[Found]:
    """Return what an upload holds, read in slices.

    Raises InvalidRequest for a format, a file or an archive that cannot be read, and TooLarge beyond a bound."""
    if format != AUTO and format not in FORMATS:
        raise InvalidRequest(f"format is one of {', '.join([AUTO, *FORMATS])}.", param="format")
    found = Found(book=book, with_conversations=with_conversations)
    files = Files(upload)
    for name in files.names:
        file = yield from files.read(name)
        yield
        chosen = _BY_SUFFIX.get(upload.name.rpartition(".")[2].lower(), AUTO) if format == AUTO else format
        yield from _read(file, chosen, found)
        yield
    return found


def _read(file: SourceFile, chosen: str, found: Found) -> Slices[None]:
    json = yield from _json_of(file, chosen)
    if chosen != AUTO:
        format = FORMATS[chosen]
    elif json is not None:
        format = _recognised(json)
    elif file.text.strip() in _CONSTANTS:
        raise _unknown(file)
    else:
        format = FORMATS["jsonl" if is_jsonl(file.text) else "markdown" if is_markdown(file.text) else "text"]
    found.formats[format.name] = None
    if json is not None and format.read_json:
        yield from format.read_json(json, found)
    else:
        yield from format.read_text(file, found)


def _json_of(file: SourceFile, chosen: str) -> Slices[JsonFile | None]:
    """Return a file as JSON, or None for one that is text or is to be read as text. Raises InvalidRequest for broken
    JSON."""
    as_text = chosen != AUTO and FORMATS[chosen].read_json is None
    if as_text or not file.text.lstrip().startswith(("{", "[")) or (chosen == AUTO and is_jsonl(file.text)):
        return None
    return JsonFile(file, (yield from members_of(file.text, file.name or "The file")))


def _recognised(json: JsonFile) -> Format:
    for number, member in enumerate(json.parts.members[:_LOOKED_AT], start=1):
        try:
            item = json.item(number, member)
        except InvalidRequest:
            continue  # it will be refused by name
        for format in _TABLE:
            if format.recognises(item):
                return format
    raise _unknown(json.source)


def _unknown(file: SourceFile) -> InvalidRequest:
    return InvalidRequest(
        f"{file.name or 'The file'} is JSON of a form that is not known. Choose the format, or bring one memory "
        'a line, as {"content": "…"}. Nothing was imported.'
    )
