"""The report of an import or of its preview, as the API and the page show it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memories.errors import BlockedByScan, DomainError
from memories.evidence import HoldReason
from memories.history.word_diff import word_diff
from memories.imports.contents import Conversation, Entry, RefusedEntry
from memories.models import Memory

MAX_PROBLEMS = 1_000  # problems listed in a report; all are counted
MAX_SHOWN = 50  # new memories, and entries waiting for a decision, that are shown
MAX_TITLES = 100  # new conversations that are listed
_COUNT_FIELDS = ("new", "known", "changed", "blocked", "refused", "held")


@dataclass(slots=True)
class ImportReport:
    """What an import did or would do. `problems` lists the entries that were left out, without their text; `added`
    shows the first memories that a preview would add, `rewordings` the first texts that it would change, as diffs, and
    `waiting` the first entries that wait for a decision. `to_propose` holds the held entries that are not stored as
    proposals yet, with the memories that they would change."""

    formats: Sequence[str] = ()
    new: int = 0
    known: int = 0
    changed: int = 0
    blocked: int = 0
    refused: int = 0
    held: int = 0
    written: bool = False
    change_sets: list[str] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    conversations_new: int = 0
    conversations_known: int = 0
    messages: int = 0
    titles: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    rewordings: list[dict[str, Any]] = field(default_factory=list)
    to_propose: list[tuple[Entry, Memory | None]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report as the API shows it."""
        return {
            "object": "import",
            "format": ", ".join(self.formats),
            "lines": sum(self.counts().values()),
            **self.counts(),
            "conversations": {
                "new": self.conversations_new,
                "known": self.conversations_known,
                "messages": self.messages,
                "titles": self.titles,
            },
            "written": self.written,
            "change_sets": self.change_sets,
            "added": self.added,
            "rewordings": self.rewordings,
            "waiting": self.waiting,
            "problems": self.problems,
        }

    def counts(self) -> dict[str, int]:
        """Return the number of entries by outcome."""
        return {name: getattr(self, name) for name in _COUNT_FIELDS}

    def merge(self, other: "ImportReport") -> None:
        """Add the counts, problems and waiting entries of a batch."""
        for name, count in other.counts().items():
            setattr(self, name, getattr(self, name) + count)
        self.problems += other.problems[: MAX_PROBLEMS - len(self.problems)]
        self.waiting += other.waiting[: MAX_SHOWN - len(self.waiting)]
        self.to_propose += other.to_propose

    def refuse(self, entry: Entry | RefusedEntry, error: DomainError) -> None:
        """Count an entry that is left out because it is invalid or over budget."""
        self.refused += 1
        self._add_problem(entry, error.code, str(error))

    def block(self, entry: Entry, error: BlockedByScan) -> None:
        """Count an entry that the scan blocks."""
        self.blocked += 1
        self._add_problem(entry, error.code, str(error), **error.details)

    def hold(self, entry: Entry, doubt: HoldReason, memory: Memory | None) -> None:
        """Count an entry that waits for a decision, with the memory that it would change, if any."""
        self.held += 1
        self.to_propose.append((entry, memory))
        if len(self.waiting) < MAX_SHOWN:
            waiting = {"line": entry.line, "place": entry.place, "rule": doubt.rule, "message": doubt.reason}
            self.waiting.append({**waiting, "content": entry.fields.content})

    def reject(self, entry: Entry) -> None:
        """Count a held entry as refused because the person rejected it before."""
        self.held -= 1
        self.refused += 1
        self.waiting = [waiting for waiting in self.waiting if waiting["line"] != entry.line]
        self._add_problem(entry, "turned_down", "It was rejected before. You can still approve it on the reviews page.")

    def show_rewording(self, entry: Entry, before: str, after: str) -> None:
        """Show how a text would change."""
        if len(self.rewordings) < MAX_SHOWN:
            pieces = [piece._asdict() for piece in word_diff(before, after)]
            self.rewordings.append({"line": entry.line, "place": entry.place, "pieces": pieces})

    def add_memory(self, entry: Entry) -> None:
        """Count a new memory."""
        self.new += 1
        fields = entry.fields
        if len(self.added) < MAX_SHOWN:
            self.added.append(
                {"line": entry.line, "content": fields.content, "target": fields.target, "category": fields.category}
            )

    def add_conversation(self, conversation: Conversation) -> None:
        """Count a new conversation."""
        self.conversations_new += 1
        self.messages += len(conversation.messages)
        if len(self.titles) < MAX_TITLES:
            messages = len(conversation.messages)
            self.titles.append({"title": conversation.title, "messages": messages, "created_at": conversation.began_at})

    def _add_problem(self, entry: Entry | RefusedEntry, code: str, message: str, **details: Any) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            problem = {"line": entry.line, "place": entry.place, "code": code, "message": message, **details}
            self.problems.append(problem)
