"""What a change did, in words: the old struck through, the new underlined, beside what stayed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memories import word_diff as words_of

_FIELDS = {
    "target": "About",
    "category": "Category",
    "keywords": "Keywords",
    "pinned": "Pinned",
    "expires_at": "Expires",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that a revision changed, in words for people."""

    name: str
    before: str
    after: str


def word_diff(before: str, after: str) -> SafeString:
    """HTML of `after` with what went (`del`) and what came (`ins`); everything escaped."""
    return pieces_html(words_of.word_diff(before, after))


def pieces_html(pieces: Iterable[words_of.Piece]) -> SafeString:
    """HTML of pieces of text that stayed, went or came."""
    return format_html_join("", "{}", ((_piece(piece),) for piece in pieces))


def field_changes(before: dict[str, Any] | None, after: dict[str, Any]) -> list[FieldChange]:
    """What a revision changed besides the words."""
    if before is None:
        return []
    return [
        FieldChange(name=label, before=_plain(before.get(name)), after=_plain(after.get(name)))
        for name, label in _FIELDS.items()
        if before.get(name) != after.get(name)
    ]


def revision_diff(before: dict[str, Any] | None, after: dict[str, Any]) -> SafeString:
    """HTML of what a revision did to the words of a memory."""
    words = str(after.get("content", ""))
    if before is None:
        return format_html("{}", words)
    if after.get("deleted_at") and not before.get("deleted_at"):
        return format_html("<del>{}</del>", words)
    return word_diff(str(before.get("content", "")), words)


def _piece(piece: words_of.Piece) -> SafeString | str:
    if piece.kind == "same":
        return piece.text
    return format_html("<del>{}</del>" if piece.kind == "del" else "<ins>{}</ins>", piece.text)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)
