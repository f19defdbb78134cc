"""The staged book that a review's tool calls work on. It checks calls as the real book does (scan, budgets, duplicates,
existence) and includes earlier staged writes, so the model gets errors at once; nothing is written until the review
ends."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memories import entry_rules
from memories.errors import DomainError, NotFound, OverBudget
from memories.evidence import Conversation, Hold, HoldReason, Speaker, Utterance, decide, evidence_for
from memories.models import Evidence, Memory, Target
from memories.services import Budgets
from memories.tools import Tool, ToolCall, failure, memory_number, parse_arguments, tool_meant
from memories.tools.writing import (
    ADD_MEMORY,
    DELETE_MEMORY,
    UPDATE_MEMORY,
    AddMemory,
    DeleteMemory,
    UpdateMemory,
    fullness,
)
from reviews.writes import ReviewWrite, WriteState

_MAX_REFUSED = 50
NO_EVIDENCE = Evidence()


@dataclass(slots=True, kw_only=True)
class StagedEntry:
    """A memory as the review sees it: a stored one, or one added by this review (its key is `new1`, `new2` …).
    `original` is its content before the review, which evidence is weighed against: a page may plant its words a few at
    a time."""

    key: str
    version: int
    target: str
    category: str
    content: str
    keywords: list[str]
    original: str = ""
    held: bool = False  # its last staged write waits for approval, so later ones have to wait too


@dataclass(slots=True)
class StagedBook:
    """The book's live entries and the writes staged so far. `budgets` includes blocked entries, which are not shown to
    models."""

    entries: dict[str, StagedEntry]
    budgets: Budgets
    max_writes: int
    conversation: Conversation | None = None
    hold: Hold = Hold.UNTRUSTED
    writes: list[ReviewWrite] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    _new: int = 0

    @classmethod
    def of(
        cls,
        rows: Sequence[Memory],
        limits: dict[Target, int],
        *,
        max_writes: int,
        conversation: Conversation | None = None,
        hold: Hold = Hold.UNTRUSTED,
    ) -> "StagedBook":
        """Return a staged book over a book's live rows. Its writes need evidence in the conversation or in its
        memories."""
        said = conversation or Conversation()
        used = Counter[str]()
        for row in rows:
            used[row.target] += len(row.content)
        shown = [row for row in rows if not row.blocked]
        entries = {
            str(row.number): StagedEntry(
                key=str(row.number),
                version=row.version,
                target=row.target,
                category=row.category,
                content=row.content,
                keywords=list(row.keywords),
                original=row.content,
            )
            for row in shown
        }
        return cls(
            entries=entries,
            budgets=Budgets(limits, used),
            max_writes=max_writes,
            conversation=replace(said, utterances=[*map(_as_utterance, shown), *said.utterances]),
            hold=hold,
        )

    @property
    def accepted(self) -> list[ReviewWrite]:
        """The writes that were not refused, including those that will wait for approval."""
        return [write for write in self.writes if write.state in {WriteState.STAGED, WriteState.WAITING}]

    def room(self) -> dict[str, int | None]:
        """Return the characters left in the budget by target; None if there is no limit."""
        used = self.budgets.used
        return {
            str(target): max(0, limit - used.get(target, 0)) if limit else None
            for target, limit in self.budgets.limits.items()
        }

    def call(self, call: ToolCall) -> str:
        """Stage one tool call and return the text of its result."""
        name = tool_meant(call.name, STAGED_TOOLS)
        if name not in STAGED_TOOLS:
            # To the model the call looks accepted; the run counts it as dropped.
            self.dropped[call.name] = self.dropped.get(call.name, 0) + 1
            return ""
        tool, action, stage = STAGED_TOOLS[name]
        arguments = parse_arguments(tool, call)
        if isinstance(arguments, dict):
            return json.dumps(arguments, ensure_ascii=False)
        if len(self.accepted) >= self.max_writes:
            result = failure("write_limit", f"No more writes: a review makes at most {self.max_writes}. Stop here.")
            self._note_refused(action, arguments, result["message"])
            return json.dumps(result)
        try:
            result = stage(self, arguments)
        except DomainError as error:
            self._note_refused(action, arguments, str(error))
            result = self._refusal(error)
        return json.dumps(result, ensure_ascii=False)

    def _delete(self, arguments: DeleteMemory) -> dict[str, Any]:
        entry = self._entry(arguments.id)
        del self.entries[entry.key]
        self.budgets.release(entry.target, len(entry.content))
        self._stage("delete", entry, before=entry.content)
        return {"ok": True, "id": entry.key}

    def _add(self, arguments: AddMemory) -> dict[str, Any]:
        content = entry_rules.clean_content(arguments.content)
        if known := self._known(content):
            return {"ok": True, "id": known.key, "note": "Already known; nothing was stored twice."}
        keywords = entry_rules.clean_keywords(arguments.keywords)
        category = entry_rules.clean_category(arguments.category)
        verdict = entry_rules.check_scan(content, keywords, category=category)
        evidence = evidence_for(self.conversation, content, arguments.evidence, category=category, hold=self.hold)
        self.budgets.take(arguments.target, len(content))
        self._new += 1
        entry = StagedEntry(
            key=f"new{self._new}",
            version=0,
            target=arguments.target,
            category=category,
            content=content,
            keywords=keywords,
        )
        self.entries[entry.key] = entry
        self._stage("add", entry, evidence=evidence, doubt=decide(verdict, evidence, self.hold))
        return {"ok": True, "id": entry.key, **self._warning(entry.target)}

    def _update(self, arguments: UpdateMemory) -> dict[str, Any]:
        entry = self._entry(arguments.id)
        content = entry_rules.clean_content(arguments.content)
        keywords = entry.keywords if arguments.keywords is None else entry_rules.clean_keywords(arguments.keywords)
        category = entry.category if arguments.category is None else entry_rules.clean_category(arguments.category)
        if (content, keywords, category) == (entry.content, entry.keywords, entry.category):
            return {"ok": True, "id": entry.key, "note": "It says so already; nothing was changed."}
        same = entry_rules.content_key(content) == entry_rules.content_key(entry.content)
        if not same and (known := self._known(content)):
            raise entry_rules.said_already(known.key)
        verdict = entry_rules.check_scan(content, keywords, category=category)
        before = entry.content
        evidence = evidence_for(
            self.conversation,
            content,
            arguments.evidence,
            previous=entry.original,
            category=arguments.category or "",
            hold=self.hold,
        )
        self.budgets.take(entry.target, len(content), freed=len(before), freed_target=entry.target)
        entry.content, entry.keywords, entry.category = content, keywords, category
        self._stage("update", entry, before=before, evidence=evidence, doubt=decide(verdict, evidence, self.hold))
        return {"ok": True, "id": entry.key, **self._warning(entry.target)}

    def _stage(
        self,
        action: str,
        entry: StagedEntry,
        *,
        before: str | None = None,
        evidence: Evidence = NO_EVIDENCE,
        doubt: HoldReason | None = None,
    ) -> None:
        """Append an accepted write with the entry's current fields; let it wait if there is a doubt."""
        deleted = action == "delete"
        write = ReviewWrite(
            index=len(self.writes),
            action=action,
            key=entry.key,
            memory_id=entry.key if entry.key.isdecimal() else None,
            version=None if action == "add" else entry.version,
            target=entry.target,
            category=entry.category,
            keywords=None if deleted else entry.keywords,
            before=before,
            after=None if deleted else entry.content,
            evidence=evidence,
        )
        if doubt:
            write.wait(doubt.reason, doubt.rule)
        elif entry.held:
            write.wait("It changes a memory that itself waits for a decision.")
        entry.held = write.waiting
        self.writes.append(write)

    def _known(self, content: str) -> StagedEntry | None:
        key_of = entry_rules.content_key
        return next((entry for entry in self.entries.values() if key_of(entry.content) == key_of(content)), None)

    def _entry(self, key: int | str) -> StagedEntry:
        text = str(key).strip().lstrip("#")
        entry = self.entries.get(text) or self.entries.get(str(memory_number(key)))
        if entry is None:
            raise NotFound(f"There is no memory {text} in this book. It may have been deleted.")
        return entry

    def _warning(self, target: str) -> dict[str, str]:
        return fullness(target, limit=self.budgets.limits[Target(target)], used=self.budgets.used[target])

    def _refusal(self, error: DomainError) -> dict[str, Any]:
        result = failure(error.code, str(error), **error.details)
        if isinstance(error, OverBudget):
            shown = [entry for entry in self.entries.values() if entry.target == error.details["target"]]
            result["entries"] = [{"id": entry.key, "content": entry.content} for entry in shown]
        return result

    def _note_refused(self, action: str, arguments: Any, reason: str) -> None:
        """Append a refused write, without its text, which may be the reason for the refusal."""
        if len(self.writes) - len(self.accepted) >= _MAX_REFUSED:
            return  # the model does not stop
        key = str(getattr(arguments, "id", "new"))
        write = ReviewWrite(
            index=len(self.writes),
            action=action,
            key=key,
            memory_id=key if key.isdecimal() else None,
            target=getattr(arguments, "target", ""),
        )
        write.refuse(reason)
        self.writes.append(write)


def _as_utterance(row: Memory) -> Utterance:
    return Utterance(speaker=Speaker.MEMORY, text=row.content, session_id=row.session_id, run_id=row.run_id)


STAGED_TOOLS: dict[str, tuple[Tool, str, Callable[[StagedBook, Any], dict[str, Any]]]] = {
    ADD_MEMORY.name: (ADD_MEMORY, "add", StagedBook._add),
    UPDATE_MEMORY.name: (UPDATE_MEMORY, "update", StagedBook._update),
    DELETE_MEMORY.name: (DELETE_MEMORY, "delete", StagedBook._delete),
}
"""The tools offered to reviews by name: each tool, the action of its writes, and how a review stages its calls."""
