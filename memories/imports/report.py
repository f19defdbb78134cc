"""What an import did, or would do, as the API and the page tell it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memories.errors import BlockedByScan, DomainError
from memories.evidence import HoldReason
from memories.imports.found import Conversation, Entry
from memories.models import Memory
from memories.services import MemoryFields

MOST_PROBLEMS = 1_000  # problems that a report lists; all are counted
MOST_SHOWN = 50  # new memories that a preview shows
MOST_TITLES = 100  # new conversations that a report names
_COUNTS = ("new", "known", "changed", "blocked", "refused", "held")


@dataclass(frozen=True, slots=True)
class HeldEntry:
    """An entry that waits for a person. `changes`: the memory that it would change."""

    entry: Entry
    fields: MemoryFields
    doubt: HoldReason
    changes: Memory | None


@dataclass(slots=True)
class ImportReport:
    """What an import did or would do. `problems` names the entries that were left out, without their words; `added`
    shows the first memories that a preview would add, `waiting` the first ones that wait for a person. `to_propose` are
    those that were not handed on yet."""

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
    to_propose: list[HeldEntry] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return what the API shows."""
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
            "waiting": self.waiting,
            "problems": self.problems,
        }

    def counts(self) -> dict[str, int]:
        """Return how many entries came to what."""
        return {name: getattr(self, name) for name in _COUNTS}

    def add(self, other: "ImportReport") -> None:
        """Take over the counts and problems of a batch."""
        for name, count in other.counts().items():
            setattr(self, name, getattr(self, name) + count)
        self.problems += other.problems[: MOST_PROBLEMS - len(self.problems)]
        self.waiting += other.waiting[: MOST_SHOWN - len(self.waiting)]
        self.to_propose += other.to_propose

    def refuse(self, line: int, place: str, error: DomainError) -> None:
        """Count an entry that is left out for its form or because the budget is used up."""
        self.refused += 1
        self._problem({"line": line, "place": place, "code": error.code, "message": str(error)})

    def block(self, entry: Entry, error: BlockedByScan) -> None:
        """Count an entry that the scan keeps out."""
        self.blocked += 1
        self._problem(
            {"line": entry.line, "place": entry.place, "code": error.code, "message": str(error), **error.details}
        )

    def hold(self, entry: Entry, fields: MemoryFields, doubt: HoldReason, changes: Memory | None) -> None:
        """Count an entry that waits for a person."""
        self.held += 1
        self.to_propose.append(HeldEntry(entry, fields, doubt, changes))
        if len(self.waiting) < MOST_SHOWN:
            told = {"line": entry.line, "place": entry.place, "rule": doubt.rule, "message": doubt.reason}
            self.waiting.append({**told, "content": fields.content})

    def turned_down(self, entry: Entry) -> None:
        """Count an entry that waits no more: the person did not want it before."""
        self.held -= 1
        self.refused += 1
        self.waiting = [told for told in self.waiting if told["line"] != entry.line]
        message = "It was rejected before, and is not asked about again."
        self._problem({"line": entry.line, "place": entry.place, "code": "turned_down", "message": message})

    def show(self, entry: Entry, fields: MemoryFields) -> None:
        """Show a memory that would be added."""
        if len(self.added) < MOST_SHOWN:
            self.added.append(
                {"line": entry.line, "content": fields.content, "target": fields.target, "category": fields.category}
            )

    def conversation(self, conversation: Conversation) -> None:
        """Count a conversation that is new."""
        self.conversations_new += 1
        self.messages += len(conversation.messages)
        if len(self.titles) < MOST_TITLES:
            messages = len(conversation.messages)
            self.titles.append({"title": conversation.title, "messages": messages, "created_at": conversation.began_at})

    def _problem(self, problem: dict[str, Any]) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
