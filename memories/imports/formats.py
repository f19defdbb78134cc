"""The table of import formats, and reading an upload. The format is detected from the file's structure unless the
request names one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from memories.database.batches import Slices, reads
from memories.errors import InvalidRequest
from memories.imports.chatgpt import add_chatgpt, finish_chatgpt, is_chatgpt
from memories.imports.claude import add_claude, is_claude
from memories.imports.contents import ImportContents
from memories.imports.files import Files, SourceFile, Upload
from memories.imports.json_members import members_of
from memories.imports.jsonl import is_jsonl, read_jsonl
from memories.imports.letta import LETTA_LISTS, add_letta, is_letta
from memories.imports.mem0 import MEM0_LISTS, add_mem0, is_mem0
from memories.imports.openwebui import add_openwebui, is_openwebui
from memories.imports.prose import is_markdown, read_markdown, read_text
from memories.imports.reading import Item, JsonFile, read_items

AUTO = "auto"
_JSON_CONSTANTS = ("null", "true", "false")  # sent by programs by mistake; not read as text
IMPORT_TYPES = (
    "application/json", "application/octet-stream", "application/zip", "application/x-zip-compressed", "text/markdown",
    "text/plain",
)  # fmt: skip
"""Content types that an import accepts besides JSON Lines."""
_SAMPLED_MEMBERS = 20  # members of a file that are examined to detect its format


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An import format. `label` is shown to people. The others apply to JSON files only: `recognises` an item, `add`
    one, with the members `apart` as items by themselves, and `finish` a file."""

    name: str
    label: str
    read_text: Callable[[SourceFile, ImportContents], Slices[None]] = read_text
    recognises: Callable[[Item], bool] = lambda item: False
    add: Callable[[Item, ImportContents], None] | None = None
    apart: Collection[str] = ()
    finish: Callable[[JsonFile, ImportContents], None] = lambda file, contents: None


_TABLE = (
    Format(name="jsonl", label="Daybook export, or JSON Lines", read_text=read_jsonl),
    Format(
        name="chatgpt",
        label="ChatGPT",
        recognises=is_chatgpt,
        add=add_chatgpt,
        apart=["memories"],
        finish=finish_chatgpt,
    ),
    Format(name="claude", label="Claude", read_text=read_markdown, recognises=is_claude, add=add_claude),
    Format(name="letta", label="Letta", recognises=is_letta, add=add_letta, apart=LETTA_LISTS),
    Format(name="openwebui", label="Open WebUI", recognises=is_openwebui, add=add_openwebui),
    Format(name="mem0", label="mem0", recognises=is_mem0, add=add_mem0, apart=MEM0_LISTS),
    Format(name="markdown", label="Markdown list", read_text=read_markdown),
    Format(name="text", label="Text, one memory per line or paragraph"),
)
FORMATS = {format.name: format for format in _TABLE}
"""Formats by name. If several recognise an item, the first one is used."""
_BY_SUFFIX = {"jsonl": "jsonl", "ndjson": "jsonl", "md": "markdown", "markdown": "markdown"}


@reads
def read_upload(
    upload: Upload, *, format: str = AUTO, book: str, with_conversations: bool = True
) -> Slices[ImportContents]:
    """Parse an upload in slices.

    Raises InvalidRequest for an unknown format or an unreadable file or archive, TooLarge if a limit is exceeded."""
    if format != AUTO and format not in FORMATS:
        raise InvalidRequest(f"format is one of {', '.join([AUTO, *FORMATS])}.", param="format")
    contents = ImportContents(book=book, with_conversations=with_conversations)
    files = Files(upload)
    for name in files.names:
        file = yield from files.read(name)
        yield
        chosen = _BY_SUFFIX.get(upload.name.rpartition(".")[2].lower(), AUTO) if format == AUTO else format
        yield from _read_file(file, chosen, contents)
        yield
    return contents


def _read_file(file: SourceFile, chosen: str, contents: ImportContents) -> Slices[None]:
    json = yield from _parse_json_file(file, chosen)
    if chosen != AUTO:
        format = FORMATS[chosen]
    elif json is not None:
        format = _detect_format(json)
    elif file.text.strip() in _JSON_CONSTANTS:
        raise _unknown_format(file)
    else:
        # JSON Lines with a broken first line would be imported as text, braces included. Notes may quote one line.
        below, last = file.text.lstrip().partition("\n")[2], file.text.rstrip().rpartition("\n")[2]
        lines = is_jsonl(file.text) or (is_jsonl(below) and is_jsonl(last))
        format = FORMATS["jsonl" if lines else "markdown" if is_markdown(file.text) else "text"]
    contents.formats[format.name] = None
    if json is not None and format.add:
        yield from read_items(json, contents, format.add, format.apart)
        format.finish(json, contents)
    else:
        yield from format.read_text(file, contents)


def _parse_json_file(file: SourceFile, chosen: str) -> Slices[JsonFile | None]:
    """Return a file as JSON, or None if it is text or the chosen format reads text. Raises InvalidRequest for invalid
    JSON."""
    as_text = chosen != AUTO and FORMATS[chosen].add is None
    if as_text or not file.text.lstrip().startswith(("{", "[")) or (chosen == AUTO and is_jsonl(file.text)):
        return None
    return JsonFile(file.name, file.text, (yield from members_of(file.text, file.name or "The file")))


def _detect_format(json: JsonFile) -> Format:
    for number, member in enumerate(json.members[:_SAMPLED_MEMBERS], start=1):
        try:
            item = json.item(number, member)
        except InvalidRequest:
            continue  # the reader reports it
        for format in _TABLE:
            if format.recognises(item):
                return format
    raise _unknown_format(json)


def _unknown_format(file: SourceFile) -> InvalidRequest:
    return InvalidRequest(
        f"{file.name or 'The file'} is JSON in an unknown format. Choose the format, or import one memory per line, as "
        '{"content": "…"}. Nothing was imported.'
    )
