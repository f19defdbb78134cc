"""What the list and the page of a memory say of it, each value in words."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.badges import TARGETS, day, memory_badge, moment, origin_badge
from memories.models import Memory

_WORDS = '<span class="db-number">{}</span> <span class="db-words">{}</span><span class="db-under">{} {}</span>'


class MemoryColumns:
    """Columns by name, for a ModelAdmin of memories."""

    @admin.display(description="Memory")
    def words(self, memory: Memory) -> SafeString:
        return format_html(
            _WORDS, memory.number, memory.content, origin_badge(memory.write_origin), self.subject(memory)
        )

    @admin.display(description="About")
    def about(self, memory: Memory) -> str:
        return TARGETS.get(memory.target, memory.target)

    def subject(self, memory: Memory) -> str:
        """Return what it is about, and its category."""
        return f"{self.about(memory)} · {memory.category}"

    @admin.display(description="Owner and book")
    def whose(self, memory: Memory) -> str:
        return f"{memory.owner} · {memory.book.name}"

    @admin.display(description="Keywords")
    def keyword_words(self, memory: Memory) -> str:
        return ", ".join(memory.keywords) or "–"

    @admin.display(description="Metadata")
    def metadata_words(self, memory: Memory) -> str:
        return ", ".join(f"{key}: {value}" for key, value in sorted(memory.metadata.items())) or "–"

    @admin.display(description="Written by")
    def origin(self, memory: Memory) -> SafeString:
        return origin_badge(memory.write_origin)

    @admin.display(description="State")
    def state(self, memory: Memory) -> SafeString:
        return memory_badge(memory)

    @admin.display(description="Last recalled")
    def used(self, memory: Memory) -> str:
        times = "once" if memory.usage_count == 1 else f"{memory.usage_count} times"
        return f"{moment(memory.last_used_at)} ({times})" if memory.last_used_at else "Not recalled yet"

    @admin.display(description="Last recalled", ordering="last_used_at")
    def last_use(self, memory: Memory) -> str:
        return f"{day(memory.last_used_at)}, {memory.usage_count} ×" if memory.last_used_at else "Not yet"

    @admin.display(description="Written", ordering="pk")
    def written(self, memory: Memory) -> str:
        return day(memory.created_at)

    @admin.display(description="Changed")
    def changed(self, memory: Memory) -> str:
        return moment(memory.updated_at)

    @admin.display(description="Created")
    def created(self, memory: Memory) -> str:
        return moment(memory.created_at)

    @admin.display(description="From")
    def where_from(self, memory: Memory) -> SafeString | str:
        if memory.session_id is None:
            return "–"
        return format_html(
            '<a class="db-link" href="{}">the session it was said in</a>',
            reverse("admin:gateway_session_change", args=[memory.session_id]),
        )
