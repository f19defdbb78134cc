"""What the list and the page of a memory say of it, each value in words."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import TARGETS, day, memory_badge, moment, origin_badge
from memories.admin.columns import column, moment_column, row_link
from memories.models import Memory
from memories.number_words import times

_WORDS = (
    '<span class="db-clamp"><span class="db-number">{}</span> <span class="db-words">{}</span></span>'
    '<span class="db-under">{} {}</span>'
)


def _words(memory: Memory) -> SafeString:
    subject = f"{_about(memory)} · {memory.category}"
    return format_html(_WORDS, memory.number, memory.content, origin_badge(memory.write_origin), subject)


def _about(memory: Memory) -> str:
    return TARGETS.get(memory.target, memory.target)


def _metadata(memory: Memory) -> str:
    return ", ".join(f"{key}: {value}" for key, value in sorted(memory.metadata.items())) or "–"


def _used(memory: Memory) -> str:
    return f"{moment(memory.last_used_at)} ({times(memory.usage_count)})" if memory.last_used_at else "Not recalled yet"


def _last_use(memory: Memory) -> str:
    return f"{day(memory.last_used_at)}, {memory.usage_count} ×" if memory.last_used_at else "Not yet"


def _where_from(memory: Memory) -> SafeString | str:
    key = memory.session_id
    return row_link("gateway_session", key, "the session it was said in") if key else "–"


class MemoryColumns:
    """Columns by name, for a ModelAdmin of memories."""

    words = column("Memory", _words)
    about = column("About", _about)
    whose = column("Owner and book", lambda memory: f"{memory.owner} · {memory.book.name}")
    keyword_words = column("Keywords", lambda memory: ", ".join(memory.keywords) or "–")
    metadata_words = column("Metadata", _metadata)
    origin = column("Written by", lambda memory: origin_badge(memory.write_origin))
    state = column("State", memory_badge)
    used = column("Last recalled", _used)
    last_use = column("Last recalled", _last_use, ordering="last_used_at")
    written = column("Written", lambda memory: day(memory.created_at), ordering="pk")
    changed = moment_column("updated_at", "Changed")
    created = moment_column("created_at", "Created")
    where_from = column("From", _where_from)
